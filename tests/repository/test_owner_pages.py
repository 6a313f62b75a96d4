"""Each code, exit status and variable is explained in one row of one page; a page that names one leads to that page."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

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
