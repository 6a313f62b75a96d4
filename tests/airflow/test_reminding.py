"""A question that waits is told of again, by a Deadline alert of the DAG that asks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import pytest
from airflow.sdk import BaseNotifier, Context

from fixtures.answered_run import answer, answered
from fixtures.scripted_flow import DELETE, ScriptedFlow, site
from fixtures.scripted_task import ScriptedTask
from topicops.model.errors import UsageError
from topicops.on_airflow.dags import approval_dag
from topicops.on_airflow.reminding import remind


class Heard(BaseNotifier):
    heard: list[Mapping[str, object]] = []  # noqa: RUF012  the factory makes a new notifier each time

    def notify(self, context: Context) -> None:
        self.heard.append(dict(context)["topicops_event"])


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, object]]:
    """What the notifier of the setting was told."""
    module = ModuleType("chat")
    module.notifier = Heard  # type: ignore[attr-defined]  # made here
    monkeypatch.setitem(sys.modules, "chat", module)
    monkeypatch.setenv("TOPICOPS_NOTIFY", "chat:notifier")
    monkeypatch.setattr(Heard, "heard", [])
    return Heard.heard


@pytest.fixture
def flow(topicops_home: Path) -> ScriptedFlow:
    return ScriptedFlow(topicops_home, changes=(DELETE,))


def alarm(task: ScriptedTask) -> None:
    """What Airflow does when the deadline of this run has passed."""
    dag_run = {"dag_id": task.dag_id, "dag_run_id": task.run_id, "queued_at": "2026-11-20T06:00:00Z"}
    remind(environment="local", topics="topics", context={"dag_run": dag_run, "deadline": {"id": "1"}})


def test_a_question_that_waits_is_told_of_once_more(flow: ScriptedFlow, heard: list[Mapping[str, object]]) -> None:
    task = answered(flow)
    for _ in range(2):
        alarm(task)
    (event,) = heard
    assert (event["kind"], event["counts"]) == ("held", {"changes": 1})
    said = "1 change of local still wait for an approval, since 2026-11-20T06:00:00Z: delete tmp-import"
    assert event["verdict"] == said
    assert str(event["link"]).endswith("/dags/topic_approval_local/runs/manual__1/plugin/topicops-plan")


def test_a_question_that_was_answered_or_never_asked_is_not_told_of(
    flow: ScriptedFlow, heard: list[Mapping[str, object]]
) -> None:
    alarm(ScriptedTask(dag_id="topic_approval_local", run_id="never"))
    task = answered(flow)
    answer(flow, task, "Approve")
    alarm(task)
    assert heard == []


@pytest.mark.parametrize(("setting", "after"), [(None, timedelta(hours=1)), ("30m", timedelta(minutes=30))])
def test_airflow_watches_each_question_from_when_its_run_was_queued(
    flow: ScriptedFlow,
    heard: list[Mapping[str, object]],
    monkeypatch: pytest.MonkeyPatch,
    setting: str | None,
    after: timedelta,
) -> None:
    if setting:
        monkeypatch.setenv("TOPICOPS_REMIND_AFTER", setting)
    (alert,) = approval_dag(site(flow)).deadline
    assert alert.reference.reference_name == "DagRunQueuedAtDeadline"
    assert (alert.interval, alert.callback.path) == (after, f"{remind.__module__}.remind")
    assert alert.callback.kwargs == {"environment": "local", "topics": "topics"}
    assert heard == []


def test_without_anybody_to_tell_or_any_time_there_is_no_alert(
    flow: ScriptedFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not approval_dag(site(flow)).deadline
    monkeypatch.setenv("TOPICOPS_NOTIFY", "chat:notifier")
    monkeypatch.setenv("TOPICOPS_REMIND_AFTER", "0s")
    assert not approval_dag(site(flow)).deadline


def test_a_time_that_is_none_is_named(flow: ScriptedFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICOPS_REMIND_AFTER", "soon")
    with pytest.raises(UsageError, match="TOPICOPS_REMIND_AFTER is 'soon'"):
        approval_dag(site(flow))
