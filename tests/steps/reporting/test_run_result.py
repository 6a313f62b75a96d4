"""The result of a run for CI: every change with its end, the gravest first, and never too large for an XCom."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest

from fakes.changes import plan_of, plan_to_create
from topicops.model.plans.plan import Blocked, Plan
from topicops.model.runs.results import LONGEST_TEXT, MOST_CHANGES, MOST_NOTES, Check, Outcome, OutcomeStatus, Verdict
from topicops.model.specs.diagnostics import Location
from topicops.steps.reporting.run_report import RunReport, is_verified_whole
from topicops.steps.reporting.run_result import GRAVITY, gauges_of, run_result

MOST_BYTES = 1_000_000
"""Of a result, whatever a run did."""


BLOCKED = Blocked(topic="b", codes=("TOP401",), reasons=("no",), way_out="wait", location=Location("b.yaml"))


def test_every_change_is_in_the_result_once_with_its_end_and_the_gravest_comes_first() -> None:
    plan = plan_to_create("done", "failed", "left", held=("held",), skipped=("skipped",))
    by_topic = {gated.change.topic: gated for gated in plan.changes}
    outcomes = (
        Outcome.of(by_topic["done"], OutcomeStatus.DONE, "said on the way"),
        Outcome.of(by_topic["failed"], OutcomeStatus.FAILED, "POLICY_VIOLATION (44)"),
    )
    result = run_result(RunReport(environment="local", plan=plan, outcomes=outcomes))
    assert [(change.topic, change.status, change.message) for change in result.changes] == [
        ("failed", "failed", "POLICY_VIOLATION (44)"),
        ("left", "not sent", ""),
        ("held", "held", "needs an approval"),
        ("skipped", "skipped", "needs an approval"),
        ("done", "done", ""),
    ]
    assert (result.success, result.headline) == (
        False,
        "Applied in part: 1 done, 1 failed (POLICY_VIOLATION (44)); 1 held, 1 skipped.",
    )


def test_what_moves_is_counted_neither_as_done_nor_as_failed() -> None:
    plan = plan_to_create("done", "moving")
    done, moving = plan.changes
    outcomes = (Outcome.of(done, OutcomeStatus.DONE), Outcome.of(moving, OutcomeStatus.MOVING, sent=True))
    checks = tuple(Check(id="V07", topic=g.change.topic, verdict=Verdict.HEALTHY) for g in plan.changes)
    report = RunReport(environment="local", plan=plan, outcomes=outcomes, checks=checks)

    gauges = gauges_of(report)
    assert {name: gauges[name] for name in ("done", "moving", "failed")} == {"done": 1, "moving": 1, "failed": 0}
    assert run_result(report).success
    assert is_verified_whole(report)  # moves of days do not keep the next environment waiting


def test_every_status_has_its_place() -> None:
    assert set(GRAVITY) == {*map(str, OutcomeStatus), "held", "skipped"}


def test_the_notes_say_what_no_change_says() -> None:
    plan = with_blocked(plan_to_create("a"))
    report = RunReport(
        environment="local",
        plan=plan,
        outcomes=(Outcome.of(plan.changes[0], OutcomeStatus.DONE),),
        checks=(Check(id="V07", topic="a", verdict=Verdict.DEGRADED, message="partition 0 lacks broker 3"),),
        failed_tasks=("quality_after",),
        notes=("no lease",),
    )
    assert run_result(report, remarks=["the question has no answer"]).notes == (
        "the question has no answer",
        "Task quality_after failed; its log says why, or the API server's.",
        "a: partition 0 lacks broker 3",
        "1 topic blocked: the plan names the way out of each.",
        "no lease",
    )


@pytest.mark.parametrize("message", ["x" * 10_000, "ü\n" * 500])
def test_a_result_is_small_whatever_the_run_did(message: str) -> None:
    plan = plan_to_create(*(f"{n:04}{'t' * 245}" for n in range(MOST_CHANGES + 7)))
    report = RunReport(
        environment="local",
        plan=plan,
        outcomes=tuple(Outcome.of(gated, OutcomeStatus.REFUSED, message) for gated in plan.changes),
        notes=(message,) * (MOST_NOTES + 3),
    )
    result = run_result(report)
    assert (len(result.changes), result.left_out) == (MOST_CHANGES, 7)
    assert {len(change.message) for change in result.changes} == {LONGEST_TEXT}
    assert len(result.notes) == MOST_NOTES
    assert result.notes[-1] == "4 more; the report has them."
    assert len(json.dumps(msgspec.to_builtins(result))) < MOST_BYTES


def test_a_run_without_a_plan_has_a_result_too() -> None:
    result = run_result(RunReport(environment="local", failed_tasks=("validate",)))
    assert (result.success, result.commit, result.changes) == (False, None, ())


EMPTY = plan_of()
ONE = plan_to_create("a")
HELD = plan_to_create(held=["a"])
HEALTHY = (Check(id="V01", topic="a", verdict=Verdict.HEALTHY),)


def ended(status: OutcomeStatus, checks: tuple[Check, ...] = HEALTHY) -> RunReport:
    return RunReport(environment="local", plan=ONE, outcomes=(Outcome.of(ONE.changes[0], status),), checks=checks)


def with_blocked(plan: Plan) -> Plan:
    return replace(plan, change_set=replace(plan.change_set, blocked=(BLOCKED,)))


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        pytest.param(RunReport(environment="local", plan=EMPTY), True, id="there was nothing to do"),
        pytest.param(ended(OutcomeStatus.DONE), True, id="done and verified"),
        pytest.param(ended(OutcomeStatus.ALREADY_SO), True, id="in place already"),
        pytest.param(ended(OutcomeStatus.DONE, checks=()), False, id="done and not verified"),
        pytest.param(
            ended(OutcomeStatus.DONE, checks=(replace(HEALTHY[0], verdict=Verdict.DEGRADED),)), False, id="not healthy"
        ),
        pytest.param(ended(OutcomeStatus.REFUSED), False, id="refused"),
        pytest.param(RunReport(environment="local", plan=HELD), False, id="held"),
        pytest.param(RunReport(environment="local", plan=with_blocked(EMPTY)), False, id="blocked"),
        pytest.param(RunReport(environment="local", plan=EMPTY, failed_tasks=("verify",)), False, id="a task failed"),
        pytest.param(RunReport(environment="local"), False, id="there is no plan"),
    ],
)
def test_only_a_whole_plan_that_is_in_place_and_verified_counts(report: RunReport, expected: bool) -> None:
    assert is_verified_whole(report) is expected
