"""The standard form of each spec file: order of keys, spelling, indentation, blanks. Comments and values stay.

Each pass takes a text and returns a text. The result is parsed again; if its values differ, the pass is undone.
"""

from __future__ import annotations

from collections.abc import Callable

from topicops.edges.specs.open_files import room_of
from topicops.features.files.formatting.field_order import PLACES, Place, canonical_value
from topicops.features.files.formatting.passes import reindented, reordered, respelled, without_idle_blanks
from topicops.features.shared.writer import node_of
from topicops.model.specs.document import FileKind, Node


def _with_line_feeds(text: str, _root: Node, _place: Place) -> str:
    return text.replace("\r\n", "\n")


PASSES: tuple[Callable[[str, Node, Place], str], ...] = (
    _with_line_feeds,
    reordered,
    respelled,
    reindented,
    without_idle_blanks,
)
_MOST_ROUNDS = 5


def formatted(text: str, kind: FileKind) -> str:
    """Return ``text`` in its standard form; unchanged if it cannot be parsed, or if each round changes it again."""
    found = text
    for _ in range(_MOST_ROUNDS):
        again = _one_round(found, kind)
        if again == found:
            return found
        found = again
    return text


def _one_round(text: str, kind: FileKind) -> str:
    place, room = PLACES[kind], room_of(kind)
    root = node_of(text, room=room)
    if root is None:
        return text
    value = canonical_value(root, place)
    for change in PASSES:
        candidate = change(text, root, place)
        if candidate == text:
            continue
        again = node_of(candidate, room=room)
        if again is not None and canonical_value(again, place) == value:
            text, root = candidate, again
    return text
