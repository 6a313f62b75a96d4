"""Remove needless blanks: at the ends of lines, at both ends of the file, and repeated blank lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.features.formatting.field_order import Layout
from topicops.model.specs.document import Fields, Items, Node, Text
from topicops.steps.authoring.yaml_blocks import last_line


def without_idle_blanks(text: str, root: Node, _layout: Layout) -> str:
    """``text`` without needless blanks and with one line feed at its end; lines inside a value stay as they are."""
    lines = text.split("\n")
    kept = set(_lines_of_long_texts(root, lines))
    found: list[str] = []
    for number, line in enumerate(lines, 1):
        shown = line if number in kept else line.rstrip(" \t")
        if shown or number in kept or (found and found[-1]):
            found.append(shown)
    while found and not found[-1]:
        found.pop()
    return "\n".join([*found, ""])


def _lines_of_long_texts(node: Node, lines: Sequence[str], below: int = 0, line: int = 1) -> Iterator[int]:
    """The lines of each text that is longer than one line."""
    match node:
        case Text():
            last = max(last_line(node, lines, below=below, line=line), node.span.end_line)
            if last > node.span.line:
                yield from range(node.span.line, last + 1)
        case Items():
            for item in node.items:
                yield from _lines_of_long_texts(item, lines, node.span.column - 1, item.span.line)
        case Fields():
            for key, value in node.entries:
                yield from _lines_of_long_texts(value, lines, key.span.column - 1, key.span.line)
