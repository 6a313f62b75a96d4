"""When a run has put in place, and verified, all that the files ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.changes import create_topic, plan_of
from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import Blocked, Plan
from topicops.model.runs.results import Check, Outcome, OutcomeStatus, Verdict
from topicops.model.specs.diagnostics import Location
from topicops.steps.reporting.run_report import RunReport, is_verified_whole

EMPTY = plan_of()
ONE = plan_of(create_topic("a", (1, 2)))
HELD = plan_of(create_topic("a", (1, 2)), gates={"a": GateWord.HELD})
BLOCKED = Blocked(topic="b", codes=("TOP401",), reasons=("no",), way_out="wait", location=Location("b.yaml"))
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
