"""The hidden record of a comment: whose it is, that nobody can change it, and since when a change is shown."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from topicops.features.pull_requests.reviews import (
    MOST_HEADS,
    SIGNED_WITHIN,
    already_shown,
    read_record,
    record_line,
    shown_from,
    with_record,
)
from topicops.features.pull_requests.signed_reviews import checked_key
from topicops.features.pull_requests.values import About, Shown, ShownByDigest
from topicops.model.errors import UsageError

KEY = b"k" * 32
HEAD, NEXT = "1" * 40, "2" * 40
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
SHOWN = {
    "ab" * 32: Shown(owner="team-shop --> <!--", since=AT, heads=(HEAD,)),
    "cd" * 32: Shown(owner="team-shop --> <!--", since=AT, heads=(HEAD,)),
    "ef" * 32: Shown(owner="team-web", since=AT + timedelta(hours=1), heads=(HEAD, NEXT)),
}
ABOUT = About(repository="acme/topics", pull_request=12, base_branch="main", environment="prod")


POSTED = AT + timedelta(days=1)
PLAN = "### The plan\n\nNothing much."


def body_of(shown: ShownByDigest = SHOWN, key: bytes = KEY, *, plan: str = PLAN) -> str:
    return with_record(plan, record_line(shown, key, ABOUT, text=plan, posted_at=POSTED))


def read(
    text: str, key: bytes = KEY, about: About = ABOUT, updated_at: datetime = POSTED + timedelta(seconds=2)
) -> ShownByDigest | None:
    return read_record(text, key, about, updated_at=updated_at)


def test_a_record_is_read_as_it_was_written_and_is_one_hidden_line() -> None:
    body = body_of()
    line = body.splitlines()[-1]

    assert read(body) == SHOWN
    assert body == f"{PLAN}\n{line}\n"
    assert line.count("-->") == 1


def test_blanks_that_a_forge_drops_at_the_ends_of_lines_do_not_matter() -> None:
    body = body_of(plan="### The plan  \n\nNothing much. \n")

    assert read(body.replace("plan  \n", "plan\n").rstrip()) == SHOWN


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
    assert read(body_of(), updated_at=POSTED + SIGNED_WITHIN) == SHOWN
    assert read(body_of(), updated_at=POSTED + SIGNED_WITHIN + timedelta(seconds=1)) is None


def test_a_change_keeps_its_time_as_long_as_it_is_shown_without_a_gap() -> None:
    later = AT + timedelta(hours=2)
    owners = {"ab" * 32: "team-shop --> <!--", "12" * 32: "team-web"}

    shown = shown_from(already_shown(SHOWN, owners), owners, head=NEXT, posted_at=later)

    assert shown == {
        "ab" * 32: replace(SHOWN["ab" * 32], heads=(HEAD, NEXT)),
        "12" * 32: Shown(owner="team-web", since=later, heads=(NEXT,)),
    }
    again = shown_from(
        already_shown(shown, {"cd" * 32: "team-shop"}), {"cd" * 32: "team-shop"}, head=NEXT, posted_at=later
    )
    assert again["cd" * 32].since == later, "it was gone for a while"


def test_a_change_that_gets_another_owner_begins_anew() -> None:
    later, owners = AT + timedelta(hours=2), {"ab" * 32: "team-mallory"}

    shown = shown_from(already_shown(SHOWN, owners), owners, head=NEXT, posted_at=later)
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
