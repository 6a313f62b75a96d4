"""What pages promise and explain: each in one place, with tests that exist."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fixtures.named_tests import TESTS, missing
from topicops.model.codes import Code
from topicops.model.errors import ExitStatus

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INSIDE = {DOCS / "code.md", *(DOCS / "decisions").glob("*.md"), *(DOCS / "inside").glob("*.md")}
PAGES = [ROOT / "README.md", *sorted({*DOCS.rglob("*.md")} - INSIDE)]
NAMES = re.compile(r"`?(TOP\d{3}|TOPICOPS_[A-Z_]+|\d+)`?(?:, |$)")
MENTIONS: Mapping[str, re.Pattern[str]] = {
    "codes.md": re.compile(r"\bTOP\d{3}\b"),
    "settings.md": re.compile(r"(?<![$\w{])TOPICOPS_[A-Z_]+\b"),
    "commands.md": re.compile(r"\bexit status \d", re.IGNORECASE),
}
"""What a page names, by the page that explains it."""


def explained(page: Path) -> Iterator[str]:
    """The names that fill the first cell of a row; a number counts where the column is ``status``."""
    header = ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            header = ""
            continue
        first = line.split("|")[1].strip()
        if header and not NAMES.sub("", first):
            yield from (name for name in NAMES.findall(first) if not name.isdigit() or "status" in header)
        header = header or first


def read_variables() -> set[str]:
    """The variables of ours that the code reads."""
    sources = [path for path in (ROOT / "plugins/topicops").rglob("*.py") if "testing" not in path.parts]
    return {name for path in sources for name in re.findall(r'"(TOPICOPS_[A-Z_]+)"', path.read_text(encoding="utf-8"))}


def test_each_code_exit_status_and_variable_is_explained_in_one_place() -> None:
    places = defaultdict(list)
    for page in PAGES:
        for name in explained(page):
            places[name].append(page.name)
    assert {name: pages for name, pages in places.items() if len(pages) > 1} == {}
    codes = {code.value for code in Code if code.startswith("TOP")}
    assert {name for name, pages in places.items() if pages == ["codes.md"]} == codes
    assert {name for name, pages in places.items() if pages == ["commands.md"]} == {str(int(s)) for s in ExitStatus}
    variables = read_variables()
    assert {"TOPICOPS_HOME", "TOPICOPS_SPARK"} <= variables <= {*places}
    assert {name for name in places if name.startswith("TOPICOPS_") and places[name] != ["settings.md"]} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_that_names_one_leads_to_the_page_that_explains_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = {owner for owner, mention in MENTIONS.items() if owner != page.name and mention.search(text)}
    assert {owner for owner in named if f"{owner})" not in text and f"{owner}#" not in text} == set()


# ---- The table of faults names tests that exist, and says of the rest why they are to come ----


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


# ---- The pages of promises: each promise says what it does not cover, and has tests that exist ----


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
