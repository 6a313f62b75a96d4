"""Which approvals count: by their way, their giver, their age and the risk of the change."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from topicops.model.plans.approval import Approval
from topicops.model.plans.plan import GatedChange
from topicops.model.specs.environment import Policy, Risk
from topicops.steps.planning.approval_rules import Counted, counted
from topicops.steps.planning.gate import gate
from topicops.testing import builders

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
RISKY, DELETE = builders.configure_change("orders", risk=Risk.RISKY), builders.delete_change("tmp-import")
PLAN = gate(builders.change_set((RISKY, DELETE)), builders.environment())
BOTH = builders.approval(RISKY, DELETE, given_at=NOW)


def judged(approval: Approval | None, policy: Policy, changes: tuple[GatedChange, ...] = PLAN.changes) -> Counted:
    return counted(approval, changes, builders.environment(policy=policy), now=NOW)


@pytest.mark.parametrize(
    ("approval", "policy"),
    [
        pytest.param(BOTH, Policy(), id="by default the question counts"),
        pytest.param(replace(BOTH, way="parameter"), Policy(), id="by default a parameter counts"),
        pytest.param(replace(BOTH, approver=None), Policy(), id="by default also of a giver who is not known"),
        pytest.param(BOTH, Policy(approvals=("question",), approvers=("ann", "bob")), id="one of the approvers"),
        pytest.param(replace(BOTH, given_at=NOW - timedelta(hours=24)), Policy(), id="as old as it may be"),
        pytest.param(replace(BOTH, authors=frozenset({"bob"})), Policy(), id="by default of the author"),
        pytest.param(
            replace(BOTH, authors=frozenset({"ann"})), Policy(author_approves=Risk.SAFE), id="another person's work"
        ),
    ],
)
def test_an_approval_that_counts(approval: Approval, policy: Policy) -> None:
    assert judged(approval, policy) == Counted(approval.digests)


@pytest.mark.parametrize(
    ("approval", "policy", "reason"),
    [
        pytest.param(
            replace(BOTH, way="parameter"), Policy(approvals=("question",)), "an approval by parameter", id="way"
        ),
        pytest.param(BOTH, Policy(approvals=()), "only by no way", id="no way at all"),
        pytest.param(BOTH, Policy(approvers=("ann",)), "bob is not one of the approvers", id="giver"),
        pytest.param(replace(BOTH, approver=None), Policy(approvers=("ann",)), "an unknown user", id="unknown giver"),
        pytest.param(
            replace(BOTH, given_at=NOW - timedelta(hours=24, seconds=1)), Policy(), "an approval lasts 24 h", id="age"
        ),
    ],
)
def test_an_approval_that_does_not_count_counts_for_nothing_and_says_why(
    approval: Approval, policy: Policy, reason: str
) -> None:
    found = judged(approval, policy)
    assert found.digests == frozenset()
    (objection,) = found.objections
    assert objection.startswith(f"The approval of 2 changes by {approval.signature} does not count: ")
    assert reason in objection
    assert "(policy." in objection


@pytest.mark.parametrize(
    "approver", [pytest.param("bob", id="the author"), pytest.param(None, id="perhaps the author")]
)
def test_the_author_approves_alone_only_up_to_the_risk_that_the_policy_names(approver: str | None) -> None:
    own = replace(BOTH, approver=approver, authors=frozenset({"bob"}))
    found = judged(own, Policy(author_approves=Risk.RISKY))
    assert found.digests == builders.approval(RISKY).digests
    assert "another person must approve it" in found.objections[0]
    assert "1 change by" in found.objections[0]


def test_an_approval_covers_no_change_that_it_does_not_name() -> None:
    assert judged(builders.approval(DELETE, given_at=NOW), Policy()).digests == builders.approval(DELETE).digests
    assert judged(None, Policy()) == Counted()


def test_an_approval_of_other_changes_is_no_news() -> None:
    assert judged(builders.approval(builders.create_change("x")), Policy(approvals=())) == Counted()
