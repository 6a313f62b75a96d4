"""One way to write each file: order of keys, spelling, indentation, blanks. Comments stay, and so does the sense.

Each pass is text in, text out, at the places of the nodes; what it gives is read again and must say the same, or it is
dropped. Knows files as text only, and takes the reader as an argument.
"""

from __future__ import annotations

from collections.abc import Callable

from topicops.model.specs.document import FileKind, Node
from topicops.steps.authoring.formatting.blanks import without_idle_blanks
from topicops.steps.authoring.formatting.field_order import LAYOUTS, Layout, canonical_value
from topicops.steps.authoring.formatting.indentation import reindented
from topicops.steps.authoring.formatting.order import reordered
from topicops.steps.authoring.formatting.values import respelled

Parse = Callable[[str], Node | None]
"""What a text says; None where it cannot be read."""
Pass = Callable[[str, Node, Layout], str]

PASSES: tuple[Pass, ...] = (reordered, respelled, reindented, without_idle_blanks)
_MOST_ROUNDS = 5


def formatted(text: str, kind: FileKind, parse: Parse) -> str:
    """``text`` in the one way to write it; a text that cannot be read, or does not come to rest, stays as it is."""
    layout = LAYOUTS[kind]
    found = text
    for _ in range(_MOST_ROUNDS):
        again = _one_round(found, layout, parse)
        if again == found:
            return found
        found = again
    return text


def _one_round(text: str, layout: Layout, parse: Parse) -> str:
    root = parse(text)
    if root is None:
        return text
    sense = canonical_value(root, layout)
    for change in (_with_line_feeds, *PASSES):
        candidate = change(text, root, layout)
        if candidate == text:
            continue
        again = parse(candidate)
        if again is not None and canonical_value(again, layout) == sense:
            text, root = candidate, again
    return text


def _with_line_feeds(text: str, _root: Node, _layout: Layout) -> str:
    return text.replace("\r\n", "\n")
