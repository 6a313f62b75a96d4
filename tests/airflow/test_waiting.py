"""A question that waits is looked at again: it is told of once more, or it is withdrawn."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest
from airflow.sdk import BaseNotifier, Context, Param, exceptions
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import AirflowSkipException, TaskDeferred

from fixtures.answered_run import answer, answered, run_of
from fixtures.scripted_flow import DELETE, OTHER_DELETE, ScriptedFlow, ScriptedTask, context, digest, site
from topicops.edges.home.memories import HELD
from topicops.flow.runs.questions import read_answer
from topicops.model.errors import UsageError
from topicops.model.runs.memories import HeldSet
from topicops.on_airflow.airflow_inside import IS_3_2
from topicops.on_airflow.dags import operators
from topicops.on_airflow.dags.environment_dags import approval_dag
from topicops.on_airflow.site import Patience
from topicops.on_airflow.tasks import approval

PARKED = TaskDeferred if IS_3_2 else exceptions.TaskAwaitingInput
TIMEOUT = {"error": "The response timeout has passed.", "error_type": "timeout"}
"""What the scheduler resumes a task with whose time limit has passed."""
PATIENCE = Patience(answer_within=timedelta(hours=8), check_every=timedelta(minutes=5), remind_after=timedelta(hours=1))


class Heard(BaseNotifier):
    heard: list[Mapping[str, object]] = []  # noqa: RUF012  the factory makes a new notifier each time

    def notify(self, context: Context) -> None:
        self.heard.append(dict(context)["topicops_event"])


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, object]]:
    """Return what the notifier of the setting was told."""
    module = ModuleType("chat")
    module.notifier = Heard  # type: ignore[attr-defined]  # made here
    monkeypatch.setitem(sys.modules, "chat", module)
    monkeypatch.setenv("TOPICOPS_NOTIFY", "chat:notifier")
    monkeypatch.setattr(Heard, "heard", [])
    return Heard.heard


@pytest.fixture
def flow(topicops_home: Path) -> ScriptedFlow:
    hold(topicops_home, "delete topic.tmp-import", digest(DELETE))
    return ScriptedFlow(topicops_home, changes=(DELETE,))


def hold(home: Path, address: str, digest: str) -> None:
    HELD.of(home, "local").write(HeldSet(addresses={digest: address}, found_by="topic_pipeline_local/run-2"))


def replace_set(flow: ScriptedFlow) -> None:
    hold(flow.home, "delete topic.old-clicks", digest(OTHER_DELETE))


REPLACED = "the set was replaced by that of topic_pipeline_local/run-2, which holds delete old-clicks"


def woken(flow: ScriptedFlow, task: ScriptedTask, *, after: timedelta) -> BaseException:
    """How the task waits on, after the scheduler woke it."""
    asked_at = (datetime.now(UTC) - after).replace(microsecond=0)
    ask = operators.AskPerson(task_id="approve", site=site(flow), subject="Send to local?", patience=PATIENCE)
    with pytest.raises(PARKED) as parked:
        ask.execute_complete(context(task), TIMEOUT, asked_at=asked_at.isoformat())
    assert parked.value.kwargs == {"asked_at": asked_at.isoformat(), "reminded": after >= PATIENCE.remind_after}
    return parked.value


def test_in_airflow_3_2_the_triggerer_waits_until_the_next_look_and_judges_no_field(
    flow: ScriptedFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operators, "IS_3_2", True)
    ask = operators.AskPerson(task_id="approve", site=site(flow), subject="Send to local?", patience=PATIENCE)
    ask.params = ParamsDict({"comment": Param(None, type="string")})
    before = datetime.now(UTC)
    with pytest.raises(TaskDeferred) as parked:
        ask.execute_complete(context(answered(flow)), TIMEOUT, asked_at=before.isoformat())
    waiting = parked.value.trigger
    assert (waiting.options, waiting.defaults, dict(waiting.params)) == (["Approve", "Reject"], None, {})
    assert before <= waiting.timeout_datetime - PATIENCE.check_every <= datetime.now(UTC)
    assert parked.value.method_name == "execute_complete"
    assert parked.value.timeout == PATIENCE.check_every + PATIENCE.answer_within, "without a triggerer it ends, too"
    assert parked.value.kwargs == {"asked_at": before.isoformat(), "reminded": False}


def test_a_question_that_waits_for_long_is_told_of_once_more(
    flow: ScriptedFlow, heard: list[Mapping[str, object]]
) -> None:
    task = answered(flow)
    woken(flow, task, after=timedelta(minutes=59))
    assert heard == []
    asked_at = datetime(2026, 11, 20, 6, tzinfo=UTC)
    long_ago = datetime.now(UTC) - asked_at
    ask = operators.AskPerson(
        task_id="approve",
        site=site(flow),
        subject="Send to local?",
        patience=Patience(
            answer_within=2 * long_ago, check_every=timedelta(minutes=5), remind_after=timedelta(hours=1)
        ),
    )
    with pytest.raises(PARKED) as parked:
        ask.execute_complete(context(task), TIMEOUT, asked_at=asked_at.isoformat())
    (flow.home / "runs/topic_approval_local/manual__1/told.json").unlink()  # as if the disk had been full
    with pytest.raises(PARKED):
        ask.execute_complete(context(task), TIMEOUT, **parked.value.kwargs)
    (event,) = heard
    assert (event["kind"], event["counts"]) == ("held", {"changes": 1})
    said = "1 change of local still waits for an approval, since 2026-11-20 06:00 UTC: delete tmp-import"
    assert event["verdict"] == said
    assert "/dags/topic_approval_local/runs/manual__1/" in str(event["link"])


def test_a_question_whose_set_was_replaced_ends_skipped_and_is_told_once_as_withdrawn_not_reminded_of(
    flow: ScriptedFlow, heard: list[Mapping[str, object]]
) -> None:
    task = answered(flow)
    replace_set(flow)
    ask = operators.AskPerson(task_id="approve", site=site(flow), subject="Send to local?", patience=PATIENCE)
    long_ago = (datetime.now(UTC) - timedelta(hours=2)).isoformat()
    with pytest.raises(AirflowSkipException, match=REPLACED):
        ask.execute_complete(context(task), TIMEOUT, asked_at=long_ago)
    (event,) = heard
    assert event["kind"] == "withdrawn"
    verdict = f"The question is out of date, and nobody is asked any more: delete tmp-import; {REPLACED}"
    assert event["verdict"] == verdict

    task.states = {"approve": "skipped", "create": "skipped", "delete": "skipped"}
    with pytest.raises(AirflowSkipException, match=REPLACED):
        approval.approved_change("delete", site(flow), context(task))
    facts = approval.report(site(flow), context(task))
    assert facts["answer"] == "withdrawn"
    assert task.pushed["result"]["headline"] == f"Withdrawn, and nothing was sent: {REPLACED}."  # type: ignore[index]
    assert flow.sent == []


def test_a_held_set_that_cannot_be_read_ends_no_question(
    flow: ScriptedFlow, heard: list[Mapping[str, object]], caplog: pytest.LogCaptureFixture
) -> None:
    task = answered(flow)
    HELD.of(flow.home, "local").path.write_text("{", encoding="utf-8")
    woken(flow, task, after=timedelta(minutes=5))
    assert "so it waits on" in caplog.text
    assert heard == []
    found = read_answer(run_of(flow, task))
    assert found is not None
    assert found.withdrawn == ""


def test_a_question_that_is_asked_again_after_it_was_withdrawn_is_answered_as_any_other(flow: ScriptedFlow) -> None:
    task = answered(flow)
    replace_set(flow)
    ask = operators.AskPerson(task_id="approve", site=site(flow), subject="Send to local?", patience=PATIENCE)
    with pytest.raises(AirflowSkipException):
        ask.execute_complete(context(task), TIMEOUT, asked_at=datetime.now(UTC).isoformat())
    hold(flow.home, "delete topic.tmp-import", digest(DELETE))
    answer(flow, task, "Approve")
    approval.approved_change("delete", site(flow), context(task))
    assert flow.sent == [("delete", frozenset({digest(DELETE)}))]


@pytest.mark.parametrize(
    ("waited", "limit"),
    [
        pytest.param(timedelta(), timedelta(minutes=5), id="looks every five minutes"),
        pytest.param(timedelta(minutes=57), timedelta(minutes=3), id="wakes for the reminder"),
        pytest.param(timedelta(hours=2), timedelta(minutes=5), id="after the reminder"),
        pytest.param(timedelta(hours=8, minutes=-1), timedelta(minutes=1), id="wakes when the answer is due"),
        pytest.param(timedelta(hours=8), timedelta(seconds=1), id="never waits for no time"),
    ],
)
def test_the_task_wakes_for_whatever_comes_first(waited: timedelta, limit: timedelta) -> None:
    asked_at = datetime(2026, 11, 20, tzinfo=UTC)
    assert PATIENCE.next_look(asked_at, asked_at + waited) == limit


def test_with_neither_looks_nor_reminders_the_task_waits_for_the_answer_alone() -> None:
    asked_at = datetime(2026, 11, 20, tzinfo=UTC)
    patient = Patience(answer_within=timedelta(hours=8), check_every=timedelta(), remind_after=timedelta())
    assert patient.next_look(asked_at, asked_at) == timedelta(hours=8)
    assert not patient.reminds(asked_at, asked_at + timedelta(hours=7))


@pytest.mark.parametrize(("setting", "after"), [(None, timedelta(hours=1)), ("30m", timedelta(minutes=30))])
def test_the_dag_that_asks_has_its_patience_by_the_settings_and_no_deadline(
    flow: ScriptedFlow, monkeypatch: pytest.MonkeyPatch, setting: str | None, after: timedelta
) -> None:
    monkeypatch.setenv("TOPICOPS_NOTIFY", "chat:notifier")
    if setting:
        monkeypatch.setenv("TOPICOPS_REMIND_AFTER", setting)
    monkeypatch.setenv("TOPICOPS_CHECK_QUESTION_EVERY", "2m")
    dag = approval_dag(site(flow))
    assert not dag.deadline
    patience = dag.get_task("approve").patience
    assert patience == Patience(answer_within=timedelta(hours=8), check_every=timedelta(minutes=2), remind_after=after)


@pytest.mark.parametrize("name", ["TOPICOPS_REMIND_AFTER", "TOPICOPS_CHECK_QUESTION_EVERY"])
def test_a_time_that_is_none_is_named(flow: ScriptedFlow, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "soon")
    with pytest.raises(UsageError, match=f"{name} is 'soon'"):
        approval_dag(site(flow))
