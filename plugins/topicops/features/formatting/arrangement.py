"""Where the lines of a file stand: the order of its fields, their indentation, and the blanks between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from topicops.features.formatting.field_order import Place, below, order_of
from topicops.features.shared.yaml_blocks import Chunk, chunks_of, end_of, indentation, is_block, last_line
from topicops.model.specs.document import Fields, Items, Node, Text

_STEP = 2


class _Place(NamedTuple):
    """The column, from 0, where a line started, and the one where it is to start."""

    old: int
    new: int


class _UnusualError(Exception):
    """The file is written in a way that this pass does not change."""


def reindented(text: str, root: Node, _place: Place) -> str:
    """Indent each level by two blanks, list items by two more than their key; comments move with their field."""
    lines = text.split("\n")
    if not is_block(root, lines):
        return text
    moves = _Moves(lines)
    try:
        moves.block(root, new=0)
    except _UnusualError:
        return text
    return "\n".join(moves.moved(number) for number in range(1, len(lines) + 1))


class _Moves:
    """Which lines move, and how they look then."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.places: dict[int, _Place] = {}
        """Lines that start with a key or a dash."""
        self.shown: dict[int, str] = {}
        """Those lines, and the lines inside values, as they are to be."""

    def block(self, node: Node, *, new: int, first_is_placed: bool = False) -> None:
        if isinstance(node, Items):
            self._items(node, new=new)
        elif isinstance(node, Fields):
            for number, (key, value) in enumerate(node.entries):
                line, old = key.span.line, key.span.column - 1
                if number or not first_is_placed:
                    if self.lines[line - 1][:old].strip():
                        raise _UnusualError
                    self._place(line, old, new, self.lines[line - 1][old:])
                self._value(value, line=line, old=old, new=new)

    def _items(self, node: Items, *, new: int) -> None:
        dash = node.span.column - 1
        for item in node.items:
            line, column = item.span.line, item.span.column - 1
            between = self.lines[line - 1][:column]
            if between.strip() != "-" or between.index("-") != dash or line in self.places:
                raise _UnusualError
            self._place(line, dash, new, f"- {self.lines[line - 1][column:]}")
            if isinstance(item, Fields) and is_block(item, self.lines):
                self.block(item, new=new + _STEP, first_is_placed=True)
            else:
                self._value(item, line=line, old=dash, new=new)

    def _place(self, line: int, old: int, new: int, text: str) -> None:
        self.places[line], self.shown[line] = _Place(old, new), " " * new + text

    def _value(self, value: Node, *, line: int, old: int, new: int) -> None:
        if isinstance(value, Fields | Items) and is_block(value, self.lines):
            if value.span.line == line:
                raise _UnusualError
            self.block(value, new=new + _STEP)
            return
        for number in range(line + 1, last_line(value, self.lines, below=old, line=line) + 1):
            if (text := self.lines[number - 1]).strip():
                self.shown[number] = " " * max(indentation(text) + new - old, 0) + text.lstrip(" ")

    def moved(self, number: int) -> str:
        line = self.shown.get(number, self.lines[number - 1])
        if number in self.shown or not line.lstrip(" ").startswith("#"):
            return line
        return " " * self._of_comment(number) + line.lstrip(" ")

    def _of_comment(self, number: int) -> int:
        """A comment moves like the next field below if that is indented as far or deeper; else like one above."""
        old = indentation(self.lines[number - 1])
        below = next((self.places[n] for n in range(number + 1, len(self.lines) + 1) if n in self.places), None)
        if below is not None and below.old >= old:
            return below.new
        above = (self.places[n] for n in range(number - 1, 0, -1) if n in self.places and self.places[n].old <= old)
        nearest = next(above, _Place(old, old))
        return nearest.new if nearest.old == old else nearest.new + _STEP


def without_idle_blanks(text: str, root: Node, _place: Place) -> str:
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


def reordered(text: str, root: Node, place: Place) -> str:
    """Sort the fields of the block mappings that have an order, each with its comments; other lines stay."""
    lines = text.split("\n")
    if not isinstance(root, Fields) or not root.entries or not is_block(root, lines):
        return text
    first = root.entries[0][0].span.line
    body = _in_order(root, place, lines, start=first, end=len(lines) + 1)
    return "\n".join([*lines[: first - 1], *body])


def _in_order(fields: Fields, place: Place, lines: Sequence[str], *, start: int, end: int) -> list[str]:
    tail = end_of(fields.entries[-1], lines, end=end)  # later lines belong to the mapping as a whole
    chunks = chunks_of(fields, lines, start=start, end=tail)
    order = order_of(place)
    chunks.sort(key=lambda chunk: order.get(chunk.entry[0].text, len(order)))
    found = [line for chunk in chunks for line in _lines(chunk, place, lines)]
    return [*found, *lines[tail - 1 : end - 1]]


def _lines(chunk: Chunk, place: Place, lines: Sequence[str]) -> Iterator[str]:
    key, value = chunk.entry
    inner = below(place, key.text)
    if inner is None or not isinstance(value, Fields) or not value.entries or not is_block(value, lines):
        yield from lines[chunk.start - 1 : chunk.end - 1]
        return
    yield from lines[chunk.start - 1 : key.span.line]
    yield from _in_order(value, inner, lines, start=key.span.line + 1, end=chunk.end)
