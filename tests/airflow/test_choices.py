"""Approve some changes of a question and reject others; what was rejected rests until it changes."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec
import pytest
from airflow.sdk.exceptions import AirflowSkipException

from fakes import builders
from fixtures.answered_run import answer, approval_task, ask, run_of
from fixtures.scripted_flow import DELETE, OTHER_DELETE, ScriptedFlow, ScriptedTask, context, digest, site
from topicops.edges.home.memories import HELD, REJECTIONS
from topicops.flow.runs.memory import read_rejections
from topicops.flow.runs.questions import read_question
from topicops.flow.runs.run import notes_of
from topicops.model.runs.memories import HeldSet, Rejection, Rejections
from topicops.model.runs.results import Outcome, OutcomeStatus, RunResult
from topicops.model.specs.environment import Risk
from topicops.on_airflow.dags import operators
from topicops.on_airflow.tasks import approval, planning
from topicops.on_airflow.tasks.question import form_params
from topicops.steps.planning.approvals import AS_THE_BUTTON, COMMENT, MOST_FIELDS, REJECT_FIELD, REJECTED

KEEP, DROP = digest(DELETE), digest(OTHER_DELETE)
MANY = tuple(builders.expand_change(f"shop.t{n}", risk=Risk.RISKY) for n in range(MOST_FIELDS + 1))


@pytest.fixture
def flow(tmp_path: Path) -> ScriptedFlow:
    held = {KEEP: "delete topic.tmp-import", DROP: "delete topic.old-clicks"}
    HELD.of(tmp_path, "local").write(HeldSet(addresses=held))
    return ScriptedFlow(tmp_path, changes=(DELETE, OTHER_DELETE))


def asked(flow: ScriptedFlow) -> ScriptedTask:
    task = approval_task()
    ask(flow, task, KEEP, DROP)
    return task


def approved_in_part(flow: ScriptedFlow) -> ScriptedTask:
    task = asked(flow)
    answer(flow, task, "Approve", filled={"delete old-clicks": REJECTED, COMMENT: "clicks are still read"})
    return task


def outcomes(flow: ScriptedFlow, task: ScriptedTask) -> list[tuple[str, OutcomeStatus]]:
    found = run_of(flow, task).store.read_value("outcomes-delete.json", tuple[Outcome, ...])
    return [(outcome.topic, outcome.status) for outcome in found]


def test_approve_sends_all_but_what_the_form_marks(flow: ScriptedFlow) -> None:
    approval.approved_change("delete", site(flow), context(approved_in_part(flow)))
    assert flow.sent == [("delete", frozenset({KEEP}))]
    (given,) = flow.approvals
    assert given.comment == "clicks are still read"


@pytest.mark.parametrize(
    "filled",
    [
        pytest.param({"delete old-clicks": REJECTED, "delete tmp-import": REJECTED}, id="all are marked"),
        pytest.param({"delete tmp_import": REJECTED}, id="a field that there is not"),
        pytest.param({REJECT_FIELD: "tmp-import"}, id="the field of another form"),
    ],
)
def test_approve_with_a_form_that_leaves_nothing_or_is_not_understood_sends_nothing(
    flow: ScriptedFlow, filled: dict[str, object]
) -> None:
    task = asked(flow)
    answer(flow, task, "Approve", filled=filled)
    with pytest.raises(AirflowSkipException, match="nothing is sent"):
        approval.approved_change("delete", site(flow), context(task))
    assert flow.sent == []


def test_a_name_that_is_no_topic_of_a_long_question_approves_nothing_and_rejects_nothing(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=MANY)
    task = approval_task()
    ask(flow, task, *map(digest, MANY))
    answer(flow, task, "Approve", filled={REJECT_FIELD: "shop.t1, shop.t99"})
    with pytest.raises(AirflowSkipException, match=r"names 'shop\.t99', which is no topic of the question"):
        approval.approved_change("expand", site(flow), context(task))
    assert approval.report(site(flow), context(task))["answer"] == "none"
    assert read_rejections(tmp_path, "local") == {}


def test_a_long_question_takes_patterns_of_what_is_rejected(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=MANY)
    held = HeldSet(addresses={digest(change): f"expand {change.address}" for change in MANY})
    HELD.of(tmp_path, "local").write(held)
    task = approval_task()
    ask(flow, task, *map(digest, MANY))
    answer(flow, task, "Approve", filled={REJECT_FIELD: "shop.t1*", COMMENT: None})
    approval.approved_change("expand", site(flow), context(task))
    left = {digest(change) for change in MANY if not change.topic.startswith("shop.t1")}
    assert flow.sent == [("expand", left)]


def test_reject_rejects_everything_whatever_the_form_says(flow: ScriptedFlow) -> None:
    task = asked(flow)
    answer(flow, task, "Reject", filled={"delete old-clicks": AS_THE_BUTTON})
    assert approval.report(site(flow), context(task))["answer"] == "rejected"
    assert set(read_rejections(flow.home, "local")) == {KEEP, DROP}
    assert flow.sent == []


def test_what_was_rejected_is_remembered_with_who_and_why_and_what_is_approved_later_is_forgotten(
    flow: ScriptedFlow,
) -> None:
    task = approved_in_part(flow)
    found = read_rejections(flow.home, "local")
    assert set(found) == {DROP}
    said = str(found[DROP])
    assert said.startswith("rejected by admin (id 1), ")
    assert said.endswith(": clicks are still read")
    answer(flow, task, "Approve", filled={"delete old-clicks": AS_THE_BUTTON})
    assert read_rejections(flow.home, "local") == {}


def test_a_set_of_rejected_changes_alone_is_not_asked_about_and_the_report_says_why(
    flow: ScriptedFlow, caplog: pytest.LogCaptureFixture
) -> None:
    approved_in_part(flow)
    task = ScriptedTask()
    flow.changes = (OTHER_DELETE,)
    with caplog.at_level(logging.INFO):
        found = planning.gate(site(flow), context(task))
    assert (found["question"], found["rests"]) == (None, 1)
    said = "delete topic.old-clicks rests until it changes: rejected by admin (id 1), "
    assert said in caplog.text
    assert any(line.startswith(said) for line in notes_of(run_of(flow, task)))
    task.xcoms = {"gate": found}
    with pytest.raises(AirflowSkipException, match="all that is held was rejected before"):
        asking(flow).execute(context(task))


def asking(flow: ScriptedFlow) -> operators.AskForApproval:
    return operators.AskForApproval(task_id="ask", trigger_dag_id=site(flow).approval_id, logical_date=None)


def test_a_new_change_is_asked_about_together_with_what_was_rejected_before(flow: ScriptedFlow) -> None:
    approved_in_part(flow)
    found = planning.gate(site(flow), context(ScriptedTask()))
    assert found["digests"] == sorted([KEEP, DROP])
    task = approval_task()
    facts = approval.load(site(flow), context(task, digests=found["digests"]))
    text = Path(str(facts["question"])).read_text(encoding="utf-8")
    assert "#### Rejected before; the form marks them" in text
    assert "clicks are still read" in text
    question = read_question(run_of(flow, task))
    assert question is not None
    assert question.fields == {"delete old-clicks": REJECTED, "delete tmp-import": AS_THE_BUTTON}


def test_a_changed_change_is_asked_about_again(flow: ScriptedFlow) -> None:
    once = Rejection(by="admin (id 1)", at=builders.NOW, run="p/1")
    REJECTIONS.of(flow.home, "local").write(Rejections(by_digest={"0" * 64: once}))
    assert planning.gate(site(flow), context(ScriptedTask()))["asked"] == 2


def test_the_report_of_a_part_says_who_left_out_what(flow: ScriptedFlow) -> None:
    task = approved_in_part(flow)
    run_of(flow, task).store.write_value("outcomes-create.json", ())
    facts = approval.report(site(flow), context(task))
    assert (facts["answer"], facts["rejected"], facts["comment"]) == ("approved", 1, "clicks are still read")
    notes = msgspec.convert(task.pushed["result"], RunResult).notes
    assert "rejected by admin (id 1): clicks are still read: delete old-clicks" in notes


def test_each_approved_change_has_an_outcome_also_when_its_task_never_ran(flow: ScriptedFlow) -> None:
    task = approved_in_part(flow)
    approval.report(site(flow), context(task))
    assert outcomes(flow, task) == [("tmp-import", OutcomeStatus.NOT_SENT)]


def test_a_replaced_set_is_refused_in_the_part_that_was_approved(flow: ScriptedFlow) -> None:
    task = approved_in_part(flow)
    HELD.of(flow.home, "local").write(HeldSet(addresses={DROP: "delete topic.old-clicks"}))
    with pytest.raises(AirflowSkipException, match="the set was replaced"):
        approval.approved_change("delete", site(flow), context(task))
    assert outcomes(flow, task) == [("tmp-import", OutcomeStatus.REFUSED)]


def test_the_form_has_a_field_for_each_change_and_one_for_a_comment(flow: ScriptedFlow) -> None:
    task = asked(flow)
    run = run_of(flow, task)
    question = read_question(run)
    assert question is not None
    params = form_params(run.read_plan(), question.fields, {})
    assert [*params] == ["delete tmp-import", "delete old-clicks", COMMENT]
    field = params["delete old-clicks"]
    assert (field.value, field.schema["enum"]) == (AS_THE_BUTTON, [AS_THE_BUTTON, REJECTED])
    assert field.description == "all 3 partitions, with every record; destructive"
