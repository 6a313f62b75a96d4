"""The check beside the merge button: by risk, with the way to approve."""

from __future__ import annotations

from dataclasses import replace

from fakes.builders import change_set, create_change, delete_change, environment, location
from fixtures.comments import PULL
from topicops.features.pull_requests.checks import check_of, labels_of
from topicops.features.pull_requests.edges.forge import CheckResult
from topicops.features.pull_requests.values import CommentContent, PlannedEnvironment, ReviewState
from topicops.model.plans.changes import Change
from topicops.model.plans.plan import Blocked, Plan
from topicops.steps.planning.gate import gate


def content(*changes: Change, own: str = "", problem: str = "", **reviews: ReviewState) -> CommentContent:
    plan = gate(change_set(changes), environment()) if not problem else None
    by_digest = {g.digest: reviews[g.change.topic] for g in plan.changes if g.change.topic in reviews} if plan else {}
    entry = PlannedEnvironment(environment="prod", own=tuple(own.split()), problem=problem)
    return CommentContent(pull=PULL, entry=entry, plan=plan, reviews=by_digest)


def with_blocked(found: CommentContent, topic: str) -> CommentContent:
    assert isinstance(found.plan, Plan)
    blocked = Blocked(topic=topic, codes=("TOP404",), reasons=("it shrinks",), way_out="", location=location(topic))
    return replace(found, plan=replace(found.plan, change_set=replace(found.plan.change_set, blocked=(blocked,))))


def test_a_pull_request_without_topics_is_a_success() -> None:
    check = check_of([])
    assert (check.result, check.title) == (CheckResult.SUCCESS, "No topic changes")


def test_changes_that_run_by_themselves_are_a_success() -> None:
    check = check_of([content(create_change("a"), own="a")])
    assert (check.result, check.title) == (CheckResult.SUCCESS, "1 change after the merge, in prod")


def test_a_held_change_is_neutral_and_says_who_can_approve_it() -> None:
    state = ReviewState(reviewers=("alice", "acme/shop"))
    check = check_of([content(create_change("a"), delete_change("b"), own="a b", b=state)])

    assert check.result is CheckResult.NEUTRAL
    assert check.title == (
        "prod: 1 change held: a review by acme/shop, alice, or the question in Airflow after the merge lets them run"
    )


def test_a_held_change_that_is_approved_or_was_pending_before_does_not_wait() -> None:
    approved = ReviewState(reviewers=("alice",), approved_by="alice")
    assert check_of([content(delete_change("b"), own="b", b=approved)]).result is CheckResult.SUCCESS
    assert check_of([content(create_change("a"), delete_change("b"), own="a")]).result is CheckResult.SUCCESS


def test_where_no_review_counts_the_check_names_airflow_alone() -> None:
    state = ReviewState(reviewers=("alice",), can_be_reviewed=False)
    check = check_of([content(delete_change("b"), own="b", b=state)])
    assert check.title == "prod: 1 change held: the question in Airflow after the merge lets them run"


def test_an_environment_that_cannot_be_planned_is_a_failure_before_all_else() -> None:
    check = check_of([content(delete_change("b"), own="b"), content(problem="**ZooKeeper** does not answer\nmore")])

    assert (check.result, check.title) == (CheckResult.FAILURE, "prod: **ZooKeeper** does not answer")
    assert check.summary.splitlines()[0] == r"- prod: \*\*ZooKeeper\*\* does not answer"
    assert len(check.summary.splitlines()) == 2


def test_a_blocked_topic_of_the_pull_request_is_a_failure_and_one_of_before_is_not() -> None:
    assert check_of([with_blocked(content(own="b"), "b")]).result is CheckResult.FAILURE
    assert check_of([with_blocked(content(own="a"), "b")]).result is CheckResult.SUCCESS


def test_the_label_is_that_of_the_highest_risk_of_the_pull_requests_own_changes() -> None:
    own = labels_of([content(create_change("a"), delete_change("b"), own="a b")])
    safe = labels_of([content(create_change("a"), delete_change("b"), own="a")])

    assert [label for label, wanted in own.items() if wanted] == ["topics:destructive"]
    assert [label for label, wanted in safe.items() if wanted] == ["topics:safe"]
    assert not any(labels_of([content()]).values())
