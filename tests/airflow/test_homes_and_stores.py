"""Where a run keeps what it found: the home that all workers share, and copies in a store that Airflow reaches."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import cast

import pytest
from airflow.sdk import Context, ObjectStoragePath
from airflow.sdk.exceptions import AirflowFailException

from fixtures.scripted_flow import ScriptedFlow, ScriptedTask, context, site
from topicops.flow import single_steps
from topicops.flow.runs.run import Run, open_run
from topicops.model.errors import ArtifactError
from topicops.model.runs.results import RunResult
from topicops.on_airflow.tasks import opening
from topicops.on_airflow.tasks.changes import RESULT, copy_artifacts
from topicops.on_airflow.tasks.opening import FIRST_TASKS
from topicops.on_airflow.tasks.opening import HOME_KEY as KEY

RESULT_OF_RUN = RunResult(headline="Applied and verified: 3 done.", success=True, commit=None, changes=())


@pytest.fixture
def run(tmp_path: Path) -> Run:
    group, run_id = "topic_pipeline_local", "manual__2026-11-20T06:00"
    run = open_run(environment="local", topics=tmp_path, group=group, run_id=run_id, home=tmp_path / "home")
    run.store.write_text("plan.json", '{"plan": 1}')
    run.store.write_text("report.md", "# Applied and verified")
    run.store.write_text("live.json", "of no use elsewhere")
    return run


@pytest.mark.parametrize("store", ["file://{}/store", "memory://topicops/prefix"])
def test_plan_report_and_result_lie_below_the_dag_and_the_run(
    run: Run, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = store.format(tmp_path)
    monkeypatch.setenv("TOPICOPS_ARTIFACTS", address)

    copy_artifacts(run, RESULT_OF_RUN)
    copy_artifacts(run, RESULT_OF_RUN)  # a second try replaces the copies

    folder = ObjectStoragePath(address) / "topic_pipeline_local" / run.store.folder.name
    assert {path.name for path in folder.iterdir()} == {"plan.json", "report.md", RESULT}
    assert (folder / "plan.json").read_text() == '{"plan": 1}'
    assert json.loads((folder / RESULT).read_bytes())["headline"] == RESULT_OF_RUN.headline


@pytest.mark.parametrize("address", ["no-such-store://bucket", "file:///proc/nobody/writes/here", "s3://unknown@b/p"])
def test_a_store_that_cannot_be_written_fails_no_run_and_is_in_the_log(
    run: Run, address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TOPICOPS_ARTIFACTS", address)

    with caplog.at_level(logging.INFO):
        copy_artifacts(run, RESULT_OF_RUN)

    assert "the run's artifacts are not copied (TOPICOPS_ARTIFACTS): " in caplog.text


def test_without_the_setting_nothing_is_copied(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOPICOPS_ARTIFACTS", raising=False)
    before = set(run.home.parent.rglob("*"))

    copy_artifacts(run, RESULT_OF_RUN)

    assert set(run.home.parent.rglob("*")) == before


def take_step(home: Path, task: ScriptedTask) -> None:
    with opening.opened(site(ScriptedFlow(home=home)), cast("Context", context(task))):
        pass


@pytest.mark.parametrize("first_task", FIRST_TASKS)
def test_a_task_with_another_home_names_both_hosts_and_is_not_tried_again(tmp_path: Path, first_task: str) -> None:
    first = ScriptedTask(task_id=first_task)
    take_step(tmp_path / "a", first)
    handed_on = {f"{first_task}.{KEY}": json.loads(json.dumps(first.pushed[KEY]))}

    take_step(tmp_path / "a", ScriptedTask(task_id="snapshot", xcoms=handed_on))
    with pytest.raises(AirflowFailException) as caught:
        take_step(tmp_path / "b", ScriptedTask(task_id="snapshot", xcoms=handed_on))

    host = first.pushed[KEY]["host"]  # type: ignore[index]
    assert f"is on host {host}, below {tmp_path / 'a'}; {tmp_path / 'b'} on host {host} is another" in str(caught.value)
    assert "one folder that all workers share" in str(caught.value)


def test_a_home_that_was_emptied_in_the_middle_of_a_run_is_another_one(tmp_path: Path) -> None:
    first = ScriptedTask(task_id="validate")
    take_step(tmp_path / "a", first)
    shutil.rmtree(tmp_path / "a")

    with pytest.raises(AirflowFailException, match="or was emptied since"):
        take_step(tmp_path / "a", ScriptedTask(task_id="plan", xcoms={f"validate.{KEY}": first.pushed[KEY]}))


@pytest.mark.parametrize("handed_on", [None, "x", {"host": "a"}], ids=["nothing", "a text", "half of it"])
def test_a_run_that_does_not_say_where_it_began_goes_on(tmp_path: Path, handed_on: object) -> None:
    take_step(tmp_path, ScriptedTask(task_id="plan", xcoms={f"validate.{KEY}": handed_on}))


def test_a_report_without_a_run_is_an_error_and_not_a_healthy_cluster(tmp_path: Path) -> None:
    run = open_run(environment="local", topics=tmp_path, group="g", run_id="r", home=tmp_path)

    with pytest.raises(ArtifactError, match="there is no run to report"):
        single_steps.report(run)

    assert not run.store.has("report.txt")


def test_a_report_of_a_run_whose_first_task_failed_says_that(tmp_path: Path) -> None:
    run = open_run(environment="local", topics=tmp_path, group="g", run_id="r", home=tmp_path)

    assert not single_steps.report(run, failed_tasks=["validate"]).ok
