"""An approval of what is not due any more: nothing is sent, nothing fails, and everybody hears it so."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from airflow.sdk import BaseNotifier, Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from fixtures.answered_run import answer as answer_with
from fixtures.answered_run import answered, approval_task, ask, run_of
from fixtures.scripted_flow import DELETE, OTHER_DELETE, ScriptedFlow, ScriptedTask, context, digest
from fixtures.scripted_flow import site as scripted_site
from topicops.edges.home.memories import HELD
from topicops.features.ask.history.file import read_history
from topicops.flow import single_steps
from topicops.flow.runs.run import EnvironmentRun, outcomes_file
from topicops.flow.single_steps import ReportSummary
from topicops.model.plans.changes import Action
from topicops.model.runs.memories import HeldSet
from topicops.model.runs.results import NO_TOMBSTONE, Outcome, OutcomeStatus, RunResult
from topicops.on_airflow.site import Options, Site
from topicops.on_airflow.tasks import approval
from topicops.on_airflow.tasks.changes import RefusedError

REVERTED = f"{NO_TOMBSTONE}: no file asks for the delete any more (TOP501)"
MOVED = "the topic changed since the plan (TOP501): partitions: planned 3, live 6"


@dataclass
class RefusingFlow(ScriptedFlow):
    """Refuses changes as the step does, and writes the real report."""

    refused: Mapping[str, str] = field(default_factory=dict)
    """Why, by topic; all others are done."""

    def apply(self, run: EnvironmentRun, *, actions: Collection[Action], **_: object) -> Mapping[str, int]:
        done = [g for g in run.read_plan().changes if g.change.action in actions]
        outcomes = [
            Outcome.of(gated, OutcomeStatus.REFUSED, self.refused[gated.change.topic])
            if gated.change.topic in self.refused
            else Outcome.of(gated, OutcomeStatus.DONE, sent=True)
            for gated in done
        ]
        (action,) = actions
        run.store.write_value(outcomes_file(action), tuple(outcomes))
        return single_steps.counts_of(outcomes)

    def report(self, run: EnvironmentRun, *, failed_tasks: Sequence[str]) -> ReportSummary:
        return single_steps.report(run, failed_tasks=failed_tasks)


class Heard(BaseNotifier):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, str]] = []

    def notify(self, context: Context) -> None:
        event: Any = dict(context)["topicops_event"]
        self.heard.append((event["kind"], event["verdict"]))


def site(flow: ScriptedFlow, *notifiers: BaseNotifier) -> Site:
    return replace(scripted_site(flow), options=Options(notifiers=notifiers))


@pytest.fixture
def flow(topicops_home: Path) -> RefusingFlow:
    held = {digest(DELETE): "delete topic.tmp-import", digest(OTHER_DELETE): "delete topic.old-clicks"}
    HELD.of(topicops_home, "local").write(HeldSet(addresses=held))
    return RefusingFlow(topicops_home, changes=(DELETE, OTHER_DELETE), refused={"tmp-import": REVERTED})


@pytest.fixture
def heard() -> Heard:
    return Heard()


def approved_both(flow: RefusingFlow) -> ScriptedTask:
    task = approval_task()
    ask(flow, task, digest(DELETE), digest(OTHER_DELETE))
    answer_with(flow, task, "Approve")
    return task


def result_of(task: ScriptedTask) -> RunResult:
    return msgspec.convert(task.pushed["result"], RunResult)


def reply(flow: ScriptedFlow, task: ScriptedTask) -> approval.Reply:
    return approval.reply_of(run_of(flow, task), context(task))


def test_a_change_that_no_file_asks_for_any_more_fails_nothing_and_the_report_is_skipped_with_the_reason(
    flow: RefusingFlow, heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    task = answered(flow, "Approve")
    with pytest.raises(AirflowSkipException, match="the files do not ask for it any more: delete tmp-import"):
        approval.approved_change("delete", site(flow), context(task))
    task.states |= {"create": "skipped", "delete": "skipped", "verify": "skipped"}
    caplog.set_level("INFO")
    with pytest.raises(AirflowSkipException, match="Approved, and nothing was sent"):
        approval.report(site(flow, heard), context(task))

    result, text = result_of(task), run_of(flow, task).store.read_text("report.txt")
    assert (result.success, result.headline.split(": ")[0]) == (True, "Approved, and nothing was sent")
    assert text.startswith(f"Approved, and nothing was sent: {REVERTED}")
    assert [line.run for line in read_history(flow.home, "local")[0]] == [run_of(flow, task).name]
    assert "Plan again" not in text
    assert "Approved, and nothing was sent: the files do not ask for it any more" in caplog.text
    ((kind, verdict),) = heard.heard
    assert kind == "approved"
    assert verdict.startswith("approved by admin (id 1): delete tmp-import, and nothing was sent: the files do not ask")


def test_a_change_that_is_refused_for_another_reason_fails_the_task_as_before(flow: RefusingFlow) -> None:
    flow.refused = {"tmp-import": MOVED}
    with pytest.raises(RefusedError, match="delete: 1 refused"):
        approval.approved_change("delete", site(flow), context(answered(flow, "Approve")))


def test_one_reason_that_is_a_failure_is_enough_to_fail_the_task(flow: RefusingFlow) -> None:
    flow.refused = {"tmp-import": REVERTED, "old-clicks": MOVED}
    with pytest.raises(AirflowFailException, match="delete: 2 refused"):
        approval.approved_change("delete", site(flow), context(approved_both(flow)))


def test_what_is_not_due_any_more_beside_what_was_sent_fails_neither_the_task_nor_the_run(
    flow: RefusingFlow, heard: Heard
) -> None:
    task = approved_both(flow)
    sent = approval.approved_change("delete", site(flow), context(task))
    assert isinstance(sent, dict)
    assert (sent["done"], sent["refused"]) == (1, 1)
    task.states |= {"create": "skipped", "delete": "success", "verify": "success"}
    assert approval.report(site(flow, heard), context(task))["answer"] == "approved"
    assert result_of(task).headline.startswith("Applied in part: 1 done, 1 refused")
    assert [kind for kind, _ in heard.heard] == ["applied"]


def test_an_approval_of_a_set_that_was_replaced_is_never_told_as_a_plain_approval(
    flow: RefusingFlow, heard: Heard
) -> None:
    task = answered(flow, "Approve")
    newer = HeldSet(addresses={digest(OTHER_DELETE): "delete topic.old-clicks"}, found_by="p/run-2")
    HELD.of(flow.home, "local").write(newer)
    approval.tell_of_answer(
        run_of(flow, task), site(flow, heard), context(task), reply(flow, task)
    )  # as `approve` does
    with pytest.raises(AirflowSkipException, match="the set was replaced"):
        approval.approved_change("delete", site(flow), context(task))
    task.states |= {"create": "skipped", "delete": "skipped"}
    with pytest.raises(AirflowSkipException):
        approval.report(site(flow, heard), context(task))
    replaced = "the set was replaced by that of p/run-2, which holds delete old-clicks"
    assert heard.heard == [
        ("approved", f"approved by admin (id 1): delete tmp-import, and nothing was sent: {replaced}")
    ]
    assert run_of(flow, task).store.read_text("report.txt").startswith(f"Approved, and nothing was sent: {replaced}")


def test_an_approval_that_may_be_sent_is_told_as_one(flow: RefusingFlow, heard: Heard) -> None:
    task = answered(flow, "Approve")
    approval.tell_of_answer(run_of(flow, task), site(flow, heard), context(task), reply(flow, task))
    assert heard.heard == [("approved", "approved by admin (id 1): delete tmp-import")]


def test_a_held_set_that_cannot_be_read_does_not_lose_the_answer(
    flow: RefusingFlow, heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    task = answered(flow, "Approve")
    HELD.of(flow.home, "local").path.write_text("{", encoding="utf-8")
    approval.tell_of_answer(run_of(flow, task), site(flow, heard), context(task), reply(flow, task))
    assert "held/local.json: cannot be read" in caplog.text
