"""What the task of all environments hands on, and how it fails."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from fixtures.scripted_flow import ScriptedTask, context
from topicops.features.fleet.fleet import Fleet
from topicops.features.fleet.on_airflow.look import look
from topicops.features.fleet.values import EnvironmentResult, FleetReport, Standing
from topicops.model.errors import ClusterUnreachableError, TopicopsError, UsageError, WrongTargetError

GOOD = EnvironmentResult(environment="local", result=Standing.DRIFT, counts={}, summary="Drift, in topics: 1 missing.")


def broken(environment: str, error: Exception) -> EnvironmentResult:
    return EnvironmentResult.failed(environment, error)


@pytest.fixture
def topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path / "home"))
    (tmp_path / "environments").mkdir()
    for name in ("local", "prod-eu"):
        (tmp_path / f"environments/{name}.yaml").touch()
    return tmp_path


def looked_at(topics: Path, task: ScriptedTask, *results: EnvironmentResult) -> dict[str, object]:
    def look_at(fleet: Fleet, only: str | None) -> FleetReport:
        assert (list(fleet.runs), only) == (["local", "prod-eu"], "shop.*")
        assert fleet.store.folder.name == task.run_id
        return FleetReport.of(results)

    return look(topics, context(task, only="shop.*"), look_at)


def test_each_environment_has_a_line_in_the_log_and_a_row_in_xcom(
    topics: Path, caplog: pytest.LogCaptureFixture
) -> None:
    task = ScriptedTask(dag_id="topic_fleet_drift")
    other = EnvironmentResult(environment="prod-eu", result=Standing.WITHOUT_DRIFT, counts={}, summary="No drift.")

    with caplog.at_level(logging.INFO, logger="topicops.features.fleet.on_airflow.look"):
        found = looked_at(topics, task, GOOD, other)

    assert found == {
        "summary": "1 of 2 environments without drift, 1 with drift.",
        "environments": {"local": "with drift", "prod-eu": "without drift"},
    }
    assert "| local | Drift, in topics: 1 missing. |" in str(task.pushed["fleet"])
    assert "prod-eu      No drift." in caplog.text


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(ClusterUnreachableError("no answer"), AirflowException, id="another try may find it"),
        pytest.param(WrongTargetError("no answer"), AirflowFailException, id="another try finds the same"),
    ],
)
def test_a_broken_environment_fails_the_task_after_all_others_are_shown(
    topics: Path, error: TopicopsError, kind: type[AirflowException]
) -> None:
    task = ScriptedTask(dag_id="topic_fleet_drift")

    with pytest.raises(AirflowException, match="1 broken: prod-eu: no answer") as raised:
        looked_at(topics, task, GOOD, broken("prod-eu", error))

    assert type(raised.value) is kind
    assert "| local | Drift" in str(task.pushed["fleet"])
    assert "| prod-eu |" in str(task.pushed["fleet"])


def test_an_error_of_the_whole_is_tried_again_only_where_that_helps(topics: Path) -> None:
    for error, kind in ((UsageError("no"), AirflowFailException), (TopicopsError("Spark failed"), AirflowException)):

        def fails(_: Fleet, __: str | None, error: TopicopsError = error) -> FleetReport:
            raise error

        with pytest.raises(AirflowException) as raised:
            look(topics, context(ScriptedTask()), fails)
        assert type(raised.value) is kind
