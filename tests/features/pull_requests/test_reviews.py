"""Which held changes the reviews approve: by whom, for whose topics, and for what the comment showed at that time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from fakes.builders import delete_change
from fakes.changes import TARGET
from topicops.features.pull_requests.forge import Authors, Review, ReviewVerdict
from topicops.features.pull_requests.reviews import ReviewFacts, approved_digests, review_state
from topicops.features.pull_requests.values import ReviewRules, Shown
from topicops.model.plans.changes import GateWord, digest_of
from topicops.model.plans.plan import GatedChange
from topicops.model.specs.environment import Risk

SHOWN_AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
EARLIER, LATER, LATEST = (SHOWN_AT + timedelta(minutes=minutes) for minutes in (-5, 5, 10))
DIGEST = "ab" * 32
FIRST, SECOND, OTHER = "1" * 40, "2" * 40, "3" * 40
SHOWN = {DIGEST: Shown(owner="team-shop", since=SHOWN_AT, heads=(FIRST, SECOND))}
APPROVED, WANTS_CHANGES = ReviewVerdict.APPROVED, ReviewVerdict.CHANGES_REQUESTED
TEAMS = {"acme/shop": frozenset({"bob", "carol"})}


def review(
    reviewer: str, verdict: ReviewVerdict = APPROVED, at: datetime = LATER, *, commit: str | None = SECOND
) -> Review:
    return Review(reviewer=reviewer, verdict=verdict, submitted_at=at, commit=commit)


def facts(*reviews: Review, authors: str = "dave", unknown_commit: str = "") -> ReviewFacts:
    return ReviewFacts(
        reviews=reviews,
        authors=Authors(logins=frozenset(authors.split()), unknown_commit=unknown_commit),
        reviewers={"team-shop": ("alice", "acme/shop"), "team-web": ("erin",)},
        members=lambda team: TEAMS.get(team, frozenset()),
    )


@pytest.mark.parametrize(
    ("reviews", "approver"),
    [
        pytest.param([], None, id="nobody has reviewed"),
        pytest.param([review("alice")], "alice", id="a login that is named"),
        pytest.param([review("carol")], "carol", id="a member of a team that is named"),
        pytest.param([review("erin")], None, id="a reviewer of another owner"),
        pytest.param([review("mallory")], None, id="a stranger"),
        pytest.param([review("alice", at=EARLIER)], None, id="before the comment showed the change"),
        pytest.param([review("alice", at=SHOWN_AT)], None, id="in the same second"),
        pytest.param([review("alice", commit=FIRST)], "alice", id="of an earlier commit that has the change"),
        pytest.param([review("alice", commit=OTHER)], None, id="of a commit that does not have it"),
        pytest.param([review("alice", commit="")], None, id="of a commit that the forge does not tell"),
        pytest.param([review("alice", commit=None)], "alice", id="on a forge that tells no commits"),
        pytest.param([review("alice", at=EARLIER, commit=None)], None, id="too early on such a forge"),
        pytest.param([review("alice", commit=OTHER), review("alice", at=LATEST)], "alice", id="again of the right one"),
        pytest.param([review("alice"), review("alice", WANTS_CHANGES, LATEST)], None, id="who wants changes since"),
        pytest.param([review("alice", WANTS_CHANGES, EARLIER), review("alice")], "alice", id="who wanted some before"),
        pytest.param([review("alice"), review("bob", WANTS_CHANGES)], None, id="another owner wants changes"),
        pytest.param([review("alice"), review("mallory", WANTS_CHANGES)], "alice", id="a stranger wants changes"),
        pytest.param([review("alice"), review("alice", ReviewVerdict.DISMISSED, LATEST)], None,
                     id="the review was dismissed"),
        pytest.param([review("alice"), review("alice", ReviewVerdict.COMMENTED, LATEST)], "alice",
                     id="a later comment takes nothing back"),
    ],
)  # fmt: skip
def test_who_approves_a_change(reviews: list[Review], approver: str | None) -> None:
    found = approved_digests(SHOWN, facts(*reviews))

    assert list(found) == ([approver] if approver else [])
    for order in permutations(reviews):
        assert approved_digests(SHOWN, facts(*order)) == found, "in whatever order the forge lists them"
    assert [digests for _, digests in found.values()] == ([(DIGEST,)] if approver else [])


def test_somebody_who_is_no_author_approves_before_an_author_does() -> None:
    found = approved_digests(SHOWN, facts(review("alice"), review("bob", at=LATEST), authors="alice dave"))

    assert list(found) == ["bob"]


def test_each_reviewer_approves_the_changes_of_his_owner_alone() -> None:
    shown = {DIGEST: SHOWN[DIGEST], "cd" * 32: Shown(owner="team-web", since=SHOWN_AT, heads=(SECOND,))}

    found = approved_digests(shown, facts(review("alice"), review("erin")))

    assert {name: digests for name, (_, digests) in found.items()} == {"alice": (DIGEST,), "erin": ("cd" * 32,)}


RULES = ReviewRules(counts=True, place="policy.approvals, prod.yaml:9", author_approves=Risk.NOTICE)
CHANGE = delete_change("shop.orders")
HELD = GatedChange(
    change=CHANGE, digest=digest_of(CHANGE, TARGET), gate=GateWord.HELD, reasons=("risk",), approvable=True
)


@pytest.mark.parametrize(
    ("facts_of_it", "has_key", "said"),
    [
        (facts(review("alice")), True, "approved by alice"),
        (facts(), True, ""),
        (facts(review("alice"), authors="alice"), True, "alice is an author, and above risk notice not alone"),
        (facts(review("alice", at=EARLIER)), True, "alice approved before this comment showed the change"),
        (
            facts(review("alice", commit=OTHER)),
            True,
            "alice approved commit 333333333333, which did not have the change as it is now; a new review is needed",
        ),
        (facts(review("alice", commit="")), True, "alice approved and the forge does not say of which commit"),
        (
            facts(review("alice"), unknown_commit=OTHER),
            True,
            "commit 333333333333 is of no account, so alice may have made it, and above risk notice an author does not",
        ),
        (facts(review("alice", WANTS_CHANGES)), True, "alice wants changes"),
        (facts(review("mallory")), True, "mallory approved, and is no reviewer of team-shop"),
        (facts(review("alice")), False, "TOPICOPS_REVIEW_KEY is not set in this job"),
    ],
)
def test_a_held_change_says_how_far_it_is_approved(facts_of_it: ReviewFacts, has_key: bool, said: str) -> None:
    state = review_state(HELD, "team-shop", SHOWN[DIGEST], facts_of_it, RULES, has_key=has_key)

    assert state.reviewers == ("alice", "acme/shop")
    assert (f"approved by {state.approved_by}" if state.approved_by else state.why_not).startswith(said)
    assert bool(said) == bool(state.approved_by or state.why_not)
    assert state.can_be_reviewed is has_key


def test_where_the_policy_counts_no_review_the_comment_says_where_it_says_so() -> None:
    state = review_state(HELD, "team-shop", None, facts(review("alice")), replace(RULES, counts=False), has_key=True)

    assert (
        state.why_not == "no review counts here (policy.approvals, prod.yaml:9): approve it in Airflow after the merge"
    )
    assert (state.approved_by, state.can_be_reviewed) == (None, False)
