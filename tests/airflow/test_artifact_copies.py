"""TOPICOPS_ARTIFACTS: what a run found, copied to a store that Airflow's ObjectStoragePath reaches."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from airflow.sdk import ObjectStoragePath

from topicops.flow.runs.run import Run, open_run
from topicops.model.runs.run_result import RunResult
from topicops.on_airflow.tasks.changes import RESULT, copy_artifacts

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
