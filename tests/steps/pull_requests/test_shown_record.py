"""The hidden record of a comment: whose it is, that nobody can change it, and since when a change is shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from topicops.model.errors import UsageError
from topicops.model.pull_requests.shown import Shown, ShownByDigest
from topicops.steps.pull_requests.shown_record import About, already_shown, read_record, record_line, shown_from
from topicops.steps.pull_requests.signing import checked_key

KEY = b"k" * 32
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
SHOWN = {
    "ab" * 32: Shown(owner="team-shop --> <!--", since=AT),
    "cd" * 32: Shown(owner="team-shop --> <!--", since=AT),
    "ef" * 32: Shown(owner="team-web", since=AT + timedelta(hours=1)),
}
ABOUT = About(repository="acme/topics", pull_request=12, base_branch="main", environment="prod")


def line_of(shown: ShownByDigest = SHOWN, key: bytes = KEY) -> str:
    return record_line(shown, key, ABOUT)


def read(body: str, key: bytes = KEY, *, about: About = ABOUT) -> ShownByDigest | None:
    return read_record(body, key, about)


def test_a_record_is_read_as_it_was_written_and_is_one_hidden_line() -> None:
    line = line_of()

    assert read(f"### The plan\n\n{line}\n") == SHOWN
    assert "\n" not in line
    assert line.count("-->") == 1


def test_three_hundred_changes_take_less_than_twenty_thousand_characters() -> None:
    shown = {f"{number:064x}": Shown(owner=f"team-{number % 5}", since=AT) for number in range(300)}

    line = line_of(shown)

    assert len(line) < 20_000
    assert read(line) == shown


@pytest.mark.parametrize(
    ("body", "key", "about"),
    [
        pytest.param(line_of(), b"x" * 32, ABOUT, id="signed with another key"),
        pytest.param(line_of(), KEY, replace(ABOUT, pull_request=13), id="copied from another pull request"),
        pytest.param(line_of(), KEY, replace(ABOUT, environment="staging"), id="copied from another environment"),
        pytest.param(line_of(), KEY, replace(ABOUT, base_branch="mine"), id="planned for another base branch"),
        pytest.param(f"{line_of()}\nmore", KEY, ABOUT, id="not the last line"),
        pytest.param(f"text {line_of()}", KEY, ABOUT, id="not a whole line"),
        pytest.param(line_of().replace("record ", "record A"), KEY, ABOUT, id="changed"),
        pytest.param("<!-- topicops:record e30= " + "0" * 64 + " -->", KEY, ABOUT, id="no record in it"),
        pytest.param("", KEY, ABOUT, id="no text"),
    ],
)
def test_any_other_text_is_no_record(body: str, key: bytes, about: About) -> None:
    assert read(body, key, about=about) is None


def test_a_change_keeps_its_time_as_long_as_it_is_shown_without_a_gap() -> None:
    later = AT + timedelta(hours=2)
    owners = {"ab" * 32: "team-shop --> <!--", "12" * 32: "team-web"}

    shown = shown_from(already_shown(SHOWN, owners), owners, posted_at=later)

    assert shown == {"ab" * 32: SHOWN["ab" * 32], "12" * 32: Shown(owner="team-web", since=later)}
    again = shown_from(already_shown(shown, {"cd" * 32: "team-shop"}), {"cd" * 32: "team-shop"}, posted_at=later)
    assert again["cd" * 32].since == later, "it was gone for a while"


def test_a_change_that_gets_another_owner_begins_anew() -> None:
    later, owners = AT + timedelta(hours=2), {"ab" * 32: "team-mallory"}

    assert already_shown(SHOWN, owners) == {}
    assert shown_from({}, owners, posted_at=later)["ab" * 32].since == later


def test_a_key_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(UsageError, match="TOPICOPS_REVIEW_KEY has 5 characters"):
        checked_key("short")
    assert (checked_key(""), checked_key(None), checked_key("k" * 32)) == (None, None, KEY)
