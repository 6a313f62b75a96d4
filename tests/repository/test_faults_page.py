"""The table of faults names tests that exist, and says of the rest why they are to come."""

from __future__ import annotations

import re

from fixtures.named_tests import TESTS, missing

PAGE = TESTS.parent / "docs/inside/faults.md"
ROW = re.compile(r"^\| FT-(\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def rows() -> list[tuple[str, ...]]:
    return [match.groups() for match in ROW.finditer(PAGE.read_text(encoding="utf-8"))]


def test_every_fault_has_one_row_in_its_order() -> None:
    assert [int(number) for number, *_ in rows()] == list(range(1, 59))


def test_every_test_that_the_table_names_exists() -> None:
    named = [test for _, _, tests, _ in rows() for test in re.findall(r"`([^`]+)`", tests)]
    assert len(named) > 60
    assert missing(named) == []


def test_a_fault_without_a_test_says_why_it_is_to_come() -> None:
    assert [number for number, _, tests, result in rows() if "`" not in tests and "later, because" not in result] == []


def test_the_invariants_of_the_page_are_those_that_are_checked() -> None:
    sources = [TESTS / "fixtures/fault_history.py", *(TESTS / "fixtures/simulation").glob("*.py")]
    rules = "".join(source.read_text(encoding="utf-8") for source in sources)
    checked = set(re.findall(r"\"(I\d+):", rules))
    assert set(re.findall(r"^\| (I\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) == checked
