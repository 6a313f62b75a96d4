"""The page of promises: each promise has tests that exist, and says what it does not cover."""

from __future__ import annotations

import re

import pytest

from fixtures.named_tests import TESTS, missing

PAGE = TESTS.parent / "docs/reference/promises.md"
PROMISE = re.compile(r"^## (?P<number>\d+)\. (?P<title>.+)\n(?P<text>(?:(?!^## ).*\n?)*)", re.MULTILINE)
PROMISES = [match.groupdict() for match in PROMISE.finditer(PAGE.read_text(encoding="utf-8"))]


def named_in(promise: dict[str, str]) -> list[str]:
    section = promise["text"].partition("\nTests:\n")[2].partition("\nLimits:\n")[0]
    return re.findall(r"^- `(\S+)`$", section, re.MULTILINE)


def test_the_promises_are_counted() -> None:
    assert [int(promise["number"]) for promise in PROMISES] == list(range(1, len(PROMISES) + 1))
    assert len(PROMISES) > 12


@pytest.mark.parametrize("promise", PROMISES, ids=[promise["title"] for promise in PROMISES])
def test_a_promise_names_tests_that_exist_and_its_limits(promise: dict[str, str]) -> None:
    tests = named_in(promise)
    assert len(tests) >= 3
    assert missing(tests) == []
    assert promise["text"].partition("\nLimits:\n")[2].startswith("- ")
