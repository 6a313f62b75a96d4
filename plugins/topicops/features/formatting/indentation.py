"""Indent each level by two blanks, list items by two more than their key; comments move with their field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from topicops.features.formatting.field_order import Layout
from topicops.model.specs.document import Fields, Items, Node
from topicops.steps.authoring.yaml_blocks import indentation, is_block, last_line

_STEP = 2


class _Place(NamedTuple):
    """The column, from 0, where a line started, and the one where it is to start."""

    old: int
    new: int


class _UnusualError(Exception):
    """The file is written in a way that this pass does not change."""


def reindented(text: str, root: Node, _layout: Layout) -> str:
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
    """How far each line moves."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.keys: dict[int, _Place] = {}
        """Lines that start with a key or a dash."""
        self.dashes: dict[int, int] = {}
        """Lines that start with a dash: the column, from 0, of the item after it."""
        self.inside: dict[int, int] = {}
        """Lines inside a value: how far each moves."""

    def block(self, node: Node, *, new: int) -> None:
        if isinstance(node, Fields):
            self._fields(node, new=new, first_is_placed=False)
        elif isinstance(node, Items):
            self._items(node, new=new)

    def _fields(self, node: Fields, *, new: int, first_is_placed: bool) -> None:
        for number, (key, value) in enumerate(node.entries):
            line, old = key.span.line, key.span.column - 1
            if number or not first_is_placed:
                if self.lines[line - 1][:old].strip():
                    raise _UnusualError
                self.keys[line] = _Place(old, new)
            self._value(value, line=line, old=old, new=new)

    def _items(self, node: Items, *, new: int) -> None:
        dash = node.span.column - 1
        for item in node.items:
            line, column = item.span.line, item.span.column - 1
            between = self.lines[line - 1][:column]
            if between.strip() != "-" or between.index("-") != dash or line in self.keys:
                raise _UnusualError
            self.keys[line] = _Place(dash, new)
            self.dashes[line] = column
            if isinstance(item, Fields) and is_block(item, self.lines):
                self._fields(item, new=new + _STEP, first_is_placed=True)
            else:
                self._value(item, line=line, old=dash, new=new)

    def _value(self, value: Node, *, line: int, old: int, new: int) -> None:
        if not isinstance(value, Fields | Items) or not is_block(value, self.lines):
            last = last_line(value, self.lines, below=old, line=line)
            self.inside |= dict.fromkeys(range(line + 1, last + 1), new - old)
            return
        if value.span.line == line:
            raise _UnusualError
        self.block(value, new=new + _STEP)

    def moved(self, number: int) -> str:
        line = self.lines[number - 1]
        if number in self.keys:
            new = self.keys[number].new
            if number in self.dashes:
                return f"{' ' * new}- {line[self.dashes[number] :]}"
            return " " * new + line[self.keys[number].old :]
        if not line.strip():
            return line
        if number in self.inside:
            return " " * max(indentation(line) + self.inside[number], 0) + line.lstrip(" ")
        if not line.lstrip(" ").startswith("#"):
            return line
        return " " * self._of_comment(number) + line.lstrip(" ")

    def _of_comment(self, number: int) -> int:
        """A comment moves like the next field below if that is indented as far or deeper; else like one above."""
        old = indentation(self.lines[number - 1])
        below = next((self.keys[n] for n in range(number + 1, len(self.lines) + 1) if n in self.keys), None)
        if below is not None and below.old >= old:
            return below.new
        above = (self.keys[n] for n in range(number - 1, 0, -1) if n in self.keys and self.keys[n].old <= old)
        nearest = next(above, None)
        if nearest is None:
            return old
        return nearest.new if nearest.old == old else nearest.new + _STEP
