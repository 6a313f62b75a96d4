"""Which held changes the reviews approve: by whom, for whose topics, and for what the comment showed at that time."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from fakes.builders import delete_change
from fakes.changes import TARGET
from topicops.features.pull_requests.edges.forge import Authors, Review, ReviewVerdict
from topicops.features.pull_requests.reviews import (
    MOST_HEADS,
    SIGNED_WITHIN,
    ReviewFacts,
    already_shown,
    approved_digests,
    read_record,
    record_line,
    review_state,
    shown_from,
    with_record,
)
from topicops.features.pull_requests.signed_reviews import checked_key
from topicops.features.pull_requests.values import About, ReviewRules, Shown, ShownByDigest
from topicops.model.errors import UsageError
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


# ---- the record of a comment: whose it is, that nobody can change it, since when a change is shown ----


KEY = b"k" * 32
HEAD, NEXT = "1" * 40, "2" * 40
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
RECORDED = {
    "ab" * 32: Shown(owner="team-shop --> <!--", since=AT, heads=(HEAD,)),
    "cd" * 32: Shown(owner="team-shop --> <!--", since=AT, heads=(HEAD,)),
    "ef" * 32: Shown(owner="team-web", since=AT + timedelta(hours=1), heads=(HEAD, NEXT)),
}
ABOUT = About(repository="acme/topics", pull_request=12, base_branch="main", environment="prod")


POSTED = AT + timedelta(days=1)
PLAN = "### The plan\n\nNothing much."


def body_of(shown: ShownByDigest = RECORDED, key: bytes = KEY, *, plan: str = PLAN) -> str:
    return with_record(plan, record_line(shown, key, ABOUT, text=plan, posted_at=POSTED))


def read(
    text: str, key: bytes = KEY, about: About = ABOUT, updated_at: datetime = POSTED + timedelta(seconds=2)
) -> ShownByDigest | None:
    return read_record(text, key, about, updated_at=updated_at)


def test_a_record_is_read_as_it_was_written_and_is_one_hidden_line() -> None:
    body = body_of()
    line = body.splitlines()[-1]

    assert read(body) == RECORDED
    assert body == f"{PLAN}\n{line}\n"
    assert line.count("-->") == 1


def test_blanks_that_a_forge_drops_at_the_ends_of_lines_do_not_matter() -> None:
    body = body_of(plan="### The plan  \n\nNothing much. \n")

    assert read(body.replace("plan  \n", "plan\n").rstrip()) == RECORDED


def test_three_hundred_changes_take_less_than_twenty_thousand_characters() -> None:
    shown = {f"{number:064x}": Shown(owner=f"team-{number % 5}", since=AT, heads=(HEAD,)) for number in range(300)}

    body = body_of(shown)

    assert len(body) < 20_000
    assert read(body) == shown


@pytest.mark.parametrize(
    ("body", "key", "about"),
    [
        pytest.param(body_of(), b"x" * 32, ABOUT, id="signed with another key"),
        pytest.param(body_of(), KEY, replace(ABOUT, pull_request=13), id="copied from another pull request"),
        pytest.param(body_of(), KEY, replace(ABOUT, environment="staging"), id="copied from another environment"),
        pytest.param(body_of(), KEY, replace(ABOUT, base_branch="mine"), id="planned for another base branch"),
        pytest.param(f"{body_of()}\nmore", KEY, ABOUT, id="not the last line"),
        pytest.param(body_of().replace("<!--", "text <!--"), KEY, ABOUT, id="not a whole line"),
        pytest.param(body_of().replace("record ", "record A"), KEY, ABOUT, id="changed"),
        pytest.param(body_of().replace("Nothing", "Everything"), KEY, ABOUT, id="another text above it"),
        pytest.param("<!-- topicops:record e30= " + "0" * 64 + " -->", KEY, ABOUT, id="no record in it"),
        pytest.param("", KEY, ABOUT, id="no text"),
    ],
)
def test_any_other_text_is_no_record(body: str, key: bytes, about: About) -> None:
    assert read(body, key=key, about=about) is None


def test_an_old_text_that_somebody_puts_back_is_no_record() -> None:
    assert read(body_of(), updated_at=POSTED + SIGNED_WITHIN) == RECORDED
    assert read(body_of(), updated_at=POSTED + SIGNED_WITHIN + timedelta(seconds=1)) is None


def test_a_change_keeps_its_time_as_long_as_it_is_shown_without_a_gap() -> None:
    later = AT + timedelta(hours=2)
    owners = {"ab" * 32: "team-shop --> <!--", "12" * 32: "team-web"}

    shown = shown_from(already_shown(RECORDED, owners), owners, head=NEXT, posted_at=later)

    assert shown == {
        "ab" * 32: replace(RECORDED["ab" * 32], heads=(HEAD, NEXT)),
        "12" * 32: Shown(owner="team-web", since=later, heads=(NEXT,)),
    }
    again = shown_from(
        already_shown(shown, {"cd" * 32: "team-shop"}), {"cd" * 32: "team-shop"}, head=NEXT, posted_at=later
    )
    assert again["cd" * 32].since == later, "it was gone for a while"


def test_a_change_that_gets_another_owner_begins_anew() -> None:
    later, owners = AT + timedelta(hours=2), {"ab" * 32: "team-mallory"}

    shown = shown_from(already_shown(RECORDED, owners), owners, head=NEXT, posted_at=later)
    assert shown == {"ab" * 32: Shown(owner="team-mallory", since=later, heads=(NEXT,))}


def test_of_many_commits_a_record_names_the_first_and_the_newest_ones() -> None:
    commits, owners = [f"{number:040x}" for number in range(30)], {"ab" * 32: "team-shop"}
    shown: ShownByDigest = {}
    for commit in commits:
        shown = shown_from(shown, owners, head=commit, posted_at=AT)
    assert shown["ab" * 32].heads == (commits[0], *commits[31 - MOST_HEADS :])
    assert read(body_of(shown)) == shown


def test_a_record_of_an_earlier_format_shows_nothing() -> None:
    text = base64.b64decode(body_of().splitlines()[-1].split(" ")[2])
    earlier = base64.b64encode(text.replace(b'"format_version":"2.0"', b'"format_version":"1.0"')).decode()
    assert read(f"{PLAN}\n<!-- topicops:record {earlier} {'0' * 64} -->\n") is None


def test_a_key_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(UsageError, match="TOPICOPS_REVIEW_KEY has 5 characters"):
        checked_key("short")
    assert (checked_key(""), checked_key(None), checked_key("k" * 32)) == (None, None, KEY)
