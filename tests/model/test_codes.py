"""The table of codes."""

from __future__ import annotations

import re

from topicops.model.codes import CODES, WARNINGS


def test_every_code_says_what_it_is_how_it_comes_and_what_to_do() -> None:
    incomplete = [entry.code for entry in CODES.values() if not (entry.title and entry.cause and entry.fix)]

    assert incomplete == []
    assert [code for code in CODES if not re.fullmatch(r"TOP[1-8]\d\d", code)] == []


def test_warnings_are_codes_in_use() -> None:
    assert [code for code in WARNINGS if CODES[code].is_reserved] == []
