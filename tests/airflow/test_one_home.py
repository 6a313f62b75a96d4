"""Workers that do not share TOPICOPS_HOME: each task says so, and no report calls an empty folder healthy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from fixtures.scripted_flow import ScriptedFlow, site
from fixtures.scripted_task import ScriptedTask, context
from topicops.flow import single_steps
from topicops.flow.runs.run import open_run
from topicops.model.errors import ArtifactError
from topicops.on_airflow.tasks import opening
from topicops.on_airflow.tasks.opening import FIRST_TASKS
from topicops.on_airflow.tasks.opening import HOME_KEY as KEY


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
