"""The parts of the pages that are made from the program are as the program is."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.made_parts import DOCS, made, pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(DOCS)))
def test_each_made_part_is_as_the_program_is(page: Path) -> None:
    written = page.read_text(encoding="utf-8")
    assert written == made(written), "type: make pages"


def test_a_part_that_is_older_than_the_program_is_seen() -> None:
    page = "<!-- made: statuses -->\n\n| status |\n\n<!-- end -->\n"
    assert page != made(page)
