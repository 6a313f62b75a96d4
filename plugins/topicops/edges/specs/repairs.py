"""Edits for files that cannot be read, where only one edit is possible."""

from __future__ import annotations

import re
from collections.abc import Callable

from topicops.model.specs.diagnostics import Fix, Position
from topicops.model.specs.document import Node, Span
from topicops.model.specs.document_values import plain_value

_INDENTATION_WITH_TABS = re.compile(r"^ *\t[ \t]*", re.MULTILINE)
_WIDTHS = (2, 4, 8)
"""How many blanks an editor shows for a tab."""
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]+")
"""Characters without which every text looks the same. Joiners are not here: they change the letters beside them."""


def blanks_for_tabs(text: str, read: Callable[[str], Node | None]) -> Fix | None:
    """Blanks instead of every tab of indentation, if the file then means the same however wide a tab is.

    Args:
        text: The whole file.
        read: What a text says, or None where it cannot be read.
    """
    found = list(_INDENTATION_WITH_TABS.finditer(text))
    if not found:
        return None
    meanings = [None if node is None else plain_value(node) for node in (read(_expanded(text, w)) for w in _WIDTHS)]
    readable = [meaning for meaning in meanings if meaning is not None]
    if not readable or any(meaning != readable[0] for meaning in readable):
        return None
    width = next(width for width, meaning in zip(_WIDTHS, meanings, strict=True) if meaning is not None)
    first, last = found[0].start(), found[-1].end()
    return Fix(_position(text, first), _position(text, last), _expanded(text[first:last], width))


def without_invisible(text: str, index: int, span: Span) -> Fix | None:
    """The run of invisible characters at ``index`` taken out; None for a character that shows or ends a line."""
    found = _INVISIBLE.match(text, index)
    if not found:
        return None
    return Fix(Position(span.line, span.column), Position(span.line, span.column + len(found[0])), "")


def _expanded(text: str, width: int) -> str:
    return _INDENTATION_WITH_TABS.sub(lambda found: found[0].replace("\t", " " * width), text)


def _position(text: str, index: int) -> Position:
    return Position(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))
