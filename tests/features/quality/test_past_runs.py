import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from fakes.builders import NOW
from fixtures.quality import quality_report
from topicops.edges.home.artifacts import ArtifactStore, runs_folder
from topicops.features.quality.past_runs import quality_history
from topicops.model.runs.results import QualitySuite, quality_file

DAG = "topic_pipeline_local"


def leave_report(home: Path, run_id: str, *, hour: int, suite: QualitySuite = "after") -> Path:
    report = replace(quality_report(suite), run=f"{DAG}/{run_id}", checked_at=NOW + timedelta(hours=hour))
    path = ArtifactStore(runs_folder(home, DAG, run_id)).write_value(quality_file(suite), report)
    os.utime(path, (hour, hour))
    return path


def test_there_is_no_history_before_the_first_run(tmp_path: Path) -> None:
    assert quality_history(tmp_path, DAG) == ()


def test_the_newest_runs_come_first_and_no_more_than_asked_for(tmp_path: Path) -> None:
    for hour in (2, 1, 4, 3):
        leave_report(tmp_path, f"scheduled__{hour}", hour=hour)
    runs = quality_history(tmp_path, DAG, most=3)
    assert [run.after.run for run in runs if run.after] == [f"{DAG}/scheduled__{hour}" for hour in (4, 3, 2)]


def test_a_run_that_ended_before_its_changes_has_only_the_first_suite(tmp_path: Path) -> None:
    leave_report(tmp_path, "stopped", hour=1, suite="before")
    [run] = quality_history(tmp_path, DAG)
    assert run.before == replace(quality_report("before"), run=f"{DAG}/stopped", checked_at=run.checked_at)
    assert run.after is None


def test_a_damaged_file_and_a_run_without_rules_hide_no_other_run(tmp_path: Path) -> None:
    leave_report(tmp_path, "good", hour=1)
    leave_report(tmp_path, "torn", hour=2).write_text("{", encoding="utf-8")
    runs_folder(tmp_path, DAG, "validated only").mkdir()
    assert [run.after.run for run in quality_history(tmp_path, DAG) if run.after] == [f"{DAG}/good"]


def test_another_dag_has_its_own_history(tmp_path: Path) -> None:
    leave_report(tmp_path, "one", hour=1)
    assert quality_history(tmp_path, "topic_approval_local") == ()
