"""The pages of promises: each promise says what it does not cover, and has tests that exist."""

from __future__ import annotations

import re

import pytest

from fixtures.named_tests import TESTS, missing

DOCS = TESTS.parent / "docs"
PROMISE = re.compile(r"^## (?P<number>\d+)\. (?P<title>.+)\n(?P<text>(?:(?!^## ).*\n?)*)", re.MULTILINE)


def sections(page: str) -> list[tuple[str, str, str]]:
    """Number, title and text of each promise on a page."""
    return PROMISE.findall((DOCS / page).read_text(encoding="utf-8"))


PROMISES, PROVED = sections("reference/promises.md"), sections("inside/promises.md")


def test_the_promises_are_counted_and_both_pages_have_the_same() -> None:
    assert [int(number) for number, _, _ in PROMISES] == list(range(1, len(PROMISES) + 1))
    assert len(PROMISES) > 12
    assert [title for _, title, _ in PROVED] == [title for _, title, _ in PROMISES]


@pytest.mark.parametrize("text", [pytest.param(text, id=title) for _, title, text in PROMISES])
def test_a_promise_names_its_limits(text: str) -> None:
    assert text.partition("\nLimits:\n")[2].startswith("- ")


@pytest.mark.parametrize("text", [pytest.param(text, id=title) for _, title, text in PROVED])
def test_a_promise_has_tests_that_exist(text: str) -> None:
    tests = re.findall(r"^- `(\S+)`$", text, re.MULTILINE)
    assert len(tests) >= 3
    assert missing(tests) == []
