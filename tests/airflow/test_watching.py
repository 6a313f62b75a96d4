"""That no good run comes any more is seen without a report: a metric with an age, and an alert on a late run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fakes.builders import NOW
from fixtures.scripted_flow import ScriptedFlow, ScriptedTask, context, report_of, site
from topicops.flow.runs.memory import NEVER_S, age_of_newest_good, note_newest_good
from topicops.flow.runs.run import open_run
from topicops.model.runs.results import Quiet
from topicops.on_airflow import airflow_inside, dags_of
from topicops.on_airflow.dags.dag_file import count_ages, gone, silent
from topicops.on_airflow.dags.environment_dags import pipeline_dag, tell_late
from topicops.on_airflow.names import place_of
from topicops.on_airflow.tasks import changes, planning


@pytest.fixture
def gauges(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    found: dict[str, float] = {}
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
    monkeypatch.setattr("topicops.on_airflow.dags.dag_file.begin_metrics", lambda: None)
    monkeypatch.setattr(airflow_inside.Stats, "gauge", lambda name, value: found.update({name: value}), raising=False)
    return found


def test_the_age_grows_until_a_run_is_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert age_of_newest_good(tmp_path, "local") == NEVER_S
    with pytest.raises(Exception, match="not good"):
        changes.report(site(ScriptedFlow(tmp_path, report_summary=report_of(ok=False))), context(ScriptedTask()))
    assert age_of_newest_good(tmp_path, "local") == NEVER_S
    changes.report(site(ScriptedFlow(tmp_path)), context(ScriptedTask(), only="shop.*"))
    assert age_of_newest_good(tmp_path, "local") == NEVER_S, "a part is no good run"
    changes.report(site(ScriptedFlow(tmp_path)), context(ScriptedTask()))
    assert age_of_newest_good(tmp_path, "local") < 60
    (tmp_path / "newest-good/local.json").write_text("no json", encoding="utf-8")
    assert age_of_newest_good(tmp_path, "local") == NEVER_S, "what nobody can read is the worse case"


def test_a_quiet_run_is_a_good_one(tmp_path: Path) -> None:
    quiet = Quiet(sentence="Nothing differs.", run="r", full_check_at=NOW, commit=None)
    planning.snapshot(site(ScriptedFlow(tmp_path, quiet=quiet)), context(ScriptedTask()))
    assert age_of_newest_good(tmp_path, "local") < 60


def test_each_reading_of_the_dag_file_sends_the_age(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gauges: dict[str, float]
) -> None:
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path))
    (tmp_path / "topics/environments").mkdir(parents=True)
    (tmp_path / "topics/environments/dev.yaml").write_text("kind: Environment\n", encoding="utf-8")
    dags_of(tmp_path / "topics")
    assert gauges == {"topicops.dev.last_good_run_age_s": NEVER_S}
    changes.report(site(ScriptedFlow(tmp_path)), context(ScriptedTask()))
    count_ages(["local"])
    assert gauges["topicops.local.last_good_run_age_s"] < 60


def test_without_metrics_no_reading_of_the_dag_file_looks_for_an_age(
    gauges: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "False")
    count_ages(["local"])
    assert not gauges


def test_a_late_run_is_told_by_a_deadline_where_a_setting_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pipeline_dag(site(ScriptedFlow(tmp_path))).deadline in (None, [])
    monkeypatch.setenv("TOPICOPS_RUN_WITHIN", "30m")
    monkeypatch.setenv("TOPICOPS_NOTIFY", "fixtures.writing_notifier:to_file")
    monkeypatch.setenv("TOLD_TO", str(tmp_path / "told.txt"))
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path))
    assert pipeline_dag(site(ScriptedFlow(tmp_path))).deadline
    run = {"dag_id": "topic_pipeline_local", "dag_run_id": "r1"}
    tell_late(environment="local", within="0:30:00", context={"dag_run": run})
    said = (tmp_path / "told.txt").read_text(encoding="utf-8")
    assert "it has not ended within 0:30:00; nothing was sent" in said


def describe(folder: Path, schedule: str) -> None:
    (folder / "topics/environments").mkdir(parents=True)
    text = f"kind: Environment\nspec: {{airflow: {{schedule: {schedule}, mode: plan}}}}\n"
    (folder / "topics/environments/local.yaml").write_text(text, encoding="utf-8")


def test_an_environment_without_a_good_run_for_days_is_a_problem_that_airflow_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path))
    describe(tmp_path, "'@hourly'")
    assert "topic_problems" not in dags_of(tmp_path / "topics"), "it never had a good run"

    changes.report(site(ScriptedFlow(tmp_path)), context(ScriptedTask()))
    last = tmp_path / "newest-good/local.json"
    assert "topic_problems" not in dags_of(tmp_path / "topics")

    os.utime(last, (last.stat().st_mtime - 4 * 86400,) * 2)
    (problem,) = silent(["local"])
    assert problem.startswith("local has had no good run since ")
    assert "paused" in problem
    assert "topic_problems" in dags_of(tmp_path / "topics")
    monkeypatch.setenv("TOPICOPS_GOOD_RUN_WITHIN", "5d")
    assert "topic_problems" not in dags_of(tmp_path / "topics")
    monkeypatch.setenv("TOPICOPS_GOOD_RUN_WITHIN", "0s")
    assert [*silent(["local"])] == []


def test_an_environment_whose_file_is_gone_is_a_problem_that_airflow_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path))
    bundle = tmp_path / "bundles/ours"
    parsed, in_a_run = bundle / "tracking_repo/topics", bundle / "versions/0f3a/topics"
    describe(parsed.parent, "null")
    run = open_run(environment="local", topics=in_a_run, group="topic_pipeline_local", run_id="1")
    note_newest_good(run, place_of(in_a_run))
    last = tmp_path / "newest-good/local.json"
    assert "topic_problems" not in dags_of(parsed)

    (parsed / "environments/local.yaml").unlink()
    assert [*dags_of(parsed)] == ["topic_problems"]
    assert dags_of(parsed)["topic_problems"].schedule.run_immediately, "nobody waits for the next full hour"
    (problem,) = gone([], parsed)
    assert problem.startswith("local has no DAGs any more: environments/local.yaml is gone, and its last good run")
    assert problem.endswith(f"delete {last}")
    assert [*gone([], tmp_path / "other/topics")] == [], "of another folder of files"

    last.write_text("no json", encoding="utf-8")
    (problem,) = gone([], parsed)
    assert "whether its file was taken away cannot be said" in problem
    last.unlink()
    assert [*dags_of(parsed)] == []


def test_an_age_that_nobody_can_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path))
    (tmp_path / "newest-good").mkdir()
    (tmp_path / "newest-good/local.json").symlink_to("local.json")
    (problem,) = silent(["local"])
    assert problem.startswith("local: nobody knows when its last good run was: ")


def test_what_runs_by_hand_alone_is_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path))
    describe(tmp_path, "null")
    changes.report(site(ScriptedFlow(tmp_path)), context(ScriptedTask()))
    os.utime(tmp_path / "newest-good/local.json", (0, 0))
    assert "topic_problems" not in dags_of(tmp_path / "topics")
