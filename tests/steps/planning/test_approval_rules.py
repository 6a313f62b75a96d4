"""Which approvals count: by their way, their giver, their age and the risk of the change."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from fakes import builders
from topicops.model.plans.plan import Approval, GatedChange
from topicops.model.specs.environment import Policy, Risk
from topicops.steps.planning.approvals import Counted, counted
from topicops.steps.planning.gate import gate

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
RISKY, DELETE = builders.configure_change("orders", risk=Risk.RISKY), builders.delete_change("tmp-import")
PLAN = gate(builders.change_set((RISKY, DELETE)), builders.environment())
BOTH = builders.approval(RISKY, DELETE, given_at=NOW)


def judged(*approvals: Approval, policy: Policy, changes: tuple[GatedChange, ...] = PLAN.changes) -> Counted:
    return counted(approvals, changes, builders.environment(policy=policy), now=NOW)


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
    assert judged(approval, policy=policy) == Counted(dict.fromkeys(approval.digests, approval.signature))


def test_in_production_nobody_approves_his_own_delete_by_default() -> None:
    """Whoever may start a run could delete with it, and nobody else had looked."""
    known = builders.environment()
    cluster = msgspec.structs.replace(known.spec.cluster, cluster_class="production")
    production = replace(known, spec=msgspec.structs.replace(known.spec, cluster=cluster))
    own = replace(BOTH, authors=frozenset({"bob"}))

    for approval, reason in (
        (replace(own, way="parameter"), "an approval by parameter is not accepted, only by question"),
        (replace(BOTH, way="review"), "an approval by review is not accepted"),
        (own, "the author of a change approves alone up to risk notice (policy.authorApproves, by default)"),
    ):
        found = counted([approval], PLAN.changes, production, now=NOW)
        assert found.digests == frozenset()
        assert reason in found.objections[0]
    assert counted([BOTH], PLAN.changes, production, now=NOW).digests == BOTH.digests


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
    found = judged(approval, policy=policy)
    assert found.digests == frozenset()
    (objection,) = found.objections
    assert objection.startswith(f"The approval of 2 changes by {approval.signature} does not count: ")
    assert reason in objection
    assert "(policy." in objection


@pytest.mark.parametrize(
    "approver",
    [
        pytest.param("bob", id="the author"),
        pytest.param("Bob", id="the author in other letters"),
        pytest.param(None, id="perhaps the author"),
    ],
)
def test_the_author_approves_alone_only_up_to_the_risk_that_the_policy_names(approver: str | None) -> None:
    own = replace(BOTH, approver=approver, authors=frozenset({"bob"}))
    found = judged(own, policy=Policy(author_approves=Risk.RISKY))
    assert found.digests == builders.approval(RISKY).digests
    assert "another person must approve it" in found.objections[0]
    assert "1 change by" in found.objections[0]


def test_an_approval_covers_no_change_that_it_does_not_name() -> None:
    assert judged(builders.approval(DELETE, given_at=NOW), policy=Policy()).digests == builders.approval(DELETE).digests
    assert judged(policy=Policy()) == Counted()


def test_an_approval_of_other_changes_is_no_news() -> None:
    assert judged(builders.approval(builders.create_change("x")), policy=Policy(approvals=())) == Counted()


REVIEW = replace(BOTH, way="review", approver="alice", signature="alice (review of acme/topics#12)")


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        pytest.param(Policy(), "an approval by review is not accepted, only by question or parameter", id="by default"),
        pytest.param(
            Policy(approvals=("review",), approval_lasts=timedelta(0)), "an approval lasts 0 h", id="it is too old"
        ),
        pytest.param(
            Policy(approvals=("review",), author_approves=Risk.SAFE),
            "another person must approve it",
            id="the author's",
        ),
    ],
)
def test_a_review_counts_only_by_the_policy(policy: Policy, reason: str) -> None:
    old = replace(REVIEW, given_at=NOW - timedelta(seconds=1), authors=frozenset({"alice"}))
    found = judged(old, policy=policy)
    assert found.digests == frozenset()
    assert reason in found.objections[0]


def test_approvers_name_users_of_airflow_and_no_reviewers() -> None:
    policy = Policy(approvals=("question", "review"), approvers=("ann",))
    assert judged(REVIEW, policy=policy).digests == REVIEW.digests
    assert judged(replace(REVIEW, way="question"), policy=policy).digests == frozenset()


def test_of_several_approvals_each_change_names_the_first_that_counts_for_it() -> None:
    of_delete = builders.approval(DELETE, approver="ann", given_at=NOW)
    too_old = replace(BOTH, given_at=NOW - timedelta(days=2))
    found = judged(too_old, of_delete, BOTH, policy=Policy())
    assert {found.signatures[digest] for digest in of_delete.digests} == {"ann (by question)"}
    assert {found.signatures[digest] for digest in builders.approval(RISKY).digests} == {"bob (by question)"}
    assert found.objections == ()


def test_one_approval_that_counts_is_enough_and_the_rest_of_another_is_objected_to() -> None:
    of_delete = builders.approval(DELETE, approver="ann", given_at=NOW)
    too_old = replace(BOTH, given_at=NOW - timedelta(days=2))
    found = judged(of_delete, too_old, policy=Policy())
    assert found.digests == of_delete.digests
    (objection,) = found.objections
    assert objection.startswith("The approval of 1 change by bob (by question) does not count: it was given at ")
