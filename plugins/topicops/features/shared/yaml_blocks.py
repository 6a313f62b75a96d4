"""Nodes and their lines: what a node means, and which lines of a file belong to which field, comments included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from topicops.model.specs.document import Entry, Fields, Items, Node, Span, Text

PlainValue = str | None | list["PlainValue"] | dict[str, "PlainValue"]


class Chunk(NamedTuple):
    """The lines of one field of a block mapping, counted from 1; ``end`` is the first line after it."""

    entry: Entry
    start: int
    """Comments and blank lines before the key belong to it."""
    end: int


def source_at(lines: Sequence[str], span: Span) -> str:
    """Return the character at the start of ``span``; empty past the end of the text."""
    line = lines[span.line - 1] if span.line <= len(lines) else ""
    return line[span.column - 1 : span.column]


def is_block(node: Node, lines: Sequence[str]) -> bool:
    """Return whether the node is a mapping or a list in block style, without brackets."""
    return not isinstance(node, Text) and source_at(lines, node.span) not in ("{", "[")


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def last_line(node: Node, lines: Sequence[str], *, below: int, line: int) -> int:
    """Return the last line that ``node`` needs; ``below`` is the indentation of its key or dash, on ``line``."""
    match node:
        case Text() if source_at(lines, node.span) in ("|", ">") and not node.plain:
            return _end_of_block_text(lines, node.span, below)
        case Text():
            return line if node.plain and not node.text else node.span.end_line
        case Fields() if node.entries and is_block(node, lines):
            key, value = node.entries[-1]
            return last_line(value, lines, below=key.span.column - 1, line=key.span.line)
        case Items() if node.items and is_block(node, lines):
            return last_line(node.items[-1], lines, below=node.span.column - 1, line=node.items[-1].span.line)
        case _:
            return node.span.end_line


def _end_of_block_text(lines: Sequence[str], header: Span, below: int) -> int:
    """Return the last line of a block text; with ``|+`` the blank lines after it belong to it."""
    keeps_blanks = "+" in lines[header.line - 1][header.column - 1 :].partition("#")[0]
    last = header.line
    for number, line in enumerate(lines[header.line :], header.line + 1):
        if line.strip() and indentation(line) <= below:
            break
        last = number if line.strip() or (keeps_blanks and number < len(lines)) else last
    return last


def chunks_of(fields: Fields, lines: Sequence[str], *, start: int, end: int) -> list[Chunk]:
    """Divide the lines from ``start`` up to ``end`` into one chunk for each field, in order; no line is left over.

    A comment that is indented deeper than the keys belongs to the field above it, any other to the field below.
    Lines after the last field belong to that field.
    """
    found: list[Chunk] = []
    for entry in fields.entries:
        begin = found[-1].end if found else start
        found.append(Chunk(entry, begin, end_of(entry, lines, end=end)))
    return [*found[:-1], found[-1]._replace(end=end)]


def end_of(entry: Entry, lines: Sequence[str], *, end: int) -> int:
    """Return the first line, at most ``end``, after a field and the comments below it that are indented deeper."""
    key, value = entry
    depth = key.span.column - 1
    line = last_line(value, lines, below=depth, line=key.span.line) + 1
    while line < end and (text := lines[line - 1]).lstrip(" ").startswith("#") and indentation(text) > depth:
        line += 1
    return line


def plain_value(node: Node | None) -> PlainValue:
    """Equal for two nodes exactly when every reader of specs takes them for the same."""
    match node:
        case Text():
            return None if node.is_null else node.text
        case Items():
            return [plain_value(item) for item in node.items]
        case Fields():
            return {key.text: plain_value(value) for key, value in node.entries}
        case None:
            return None


def field_of(node: Node | None, *path: str) -> Node | None:
    """Return what stands under a path of keys; None where there is no such field."""
    for name in path:
        entries = node.entries if isinstance(node, Fields) else ()
        node = next((value for key, value in entries if key.text == name), None)
    return node
