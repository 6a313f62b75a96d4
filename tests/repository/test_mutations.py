"""Each link of the chain of safety, removed from the code, is noticed by the tests that the list names."""

from __future__ import annotations

import sys

import pytest

from fixtures.named_tests import missing
from mutations.__main__ import main
from mutations.links_removed import (
    ROOT,
    Link,
    chosen_by,
    failing_with_all_links,
    links,
    removed_one_by_one,
    source_without,
    table,
    without,
)

EVERY = links()
QUICK = "a change that no plan of now has is not sent"


def test_each_link_is_in_its_file_exactly_once_and_the_rest_compiles() -> None:
    for link in EVERY:
        assert source_without(link, ROOT / "plugins")  # raises LinkError


def test_each_link_names_tests_that_exist() -> None:
    assert [link.name for link in EVERY if not link.tests] == []
    assert missing(sorted({test for link in EVERY for test in link.tests})) == []


def test_no_two_links_have_one_name() -> None:
    assert len({link.name for link in EVERY}) == len(EVERY)


def test_a_missing_link_is_noticed() -> None:
    (link,) = chosen_by([QUICK])
    assert without(link).problem == ""


def test_a_change_that_nobody_can_notice_is_reported() -> None:
    (link,) = chosen_by([QUICK])
    unchanged = Link(part="", name="nothing", file=link.file, old=link.old, new=f"{link.old}  #", tests=link.tests[:1])
    assert without(unchanged).problem.startswith("nobody noticed: tests/steps/applying/")


def test_words_that_name_no_link_are_told_and_not_taken_for_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nosuchword", "otherword"]) == 1
    assert capsys.readouterr().out.startswith("no link has nosuchword or otherword in its part, name or file: ")


@pytest.mark.soak
@pytest.mark.parametrize("part", dict.fromkeys(link.part for link in EVERY))
def test_every_missing_link_is_noticed(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [link for link in EVERY if link.part == part]
    assert failing_with_all_links(chosen) == ""
    results = list(removed_one_by_one(chosen))
    with capsys.disabled():
        sys.stdout.write(f"\n{table(results)}\n")
    assert [f"{result.link.name}: {result.problem}" for result in results if not result.is_caught] == []
