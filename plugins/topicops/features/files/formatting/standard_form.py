"""The standard form of each spec file: order and spelling of keys, indentation, blanks. Comments and values stay.

Each pass takes a text and returns a text. The result is parsed again; if its values differ, the pass is undone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from topicops.edges.specs.open_files import room_of
from topicops.features.files.formatting.field_order import PLACES, ConfigKind, Place, below, canonical_value, order_of
from topicops.features.shared.writer import node_of
from topicops.features.shared.yaml_blocks import Chunk, chunks_of, end_of, indentation, is_block, last_line, source_at
from topicops.features.shared.yaml_text import MISREAD_WORDS, scalar
from topicops.model.specs.document import Fields, FileKind, Items, Node, Span, Text
from topicops.model.specs.files import IntegerKind, PlainKind, SizeKind
from topicops.model.specs.spellings import human_unit, largest_unit
from topicops.model.specs.topic_config import (
    LONGEST_NUMBER,
    TOPIC_CONFIGS,
    ConfigValueError,
    canonical_written,
    read_duration_ms,
    read_size,
)
from topicops.steps.specs.fields import WHOLE_NUMBER

_STEP = 2
_NUMBERLIKE = re.compile(r"[-+.]?[0-9].*")
_SMALLEST_UNIT = re.compile(r"[0-9]+(?:ms|B)")
_PLAINLY = re.compile(r"[\w ./,;:()'+-]*")
"""Text that people write without quotes; a pattern with a star is usually quoted."""
_PLAIN_DOUBLE = re.compile(r"[0-9]+(?:\.[0-9]+)?")


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
        lower = next((self.places[n] for n in range(number + 1, len(self.lines) + 1) if n in self.places), None)
        if lower is not None and lower.old >= old:
            return lower.new
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


class Edit(NamedTuple):
    """Replaces characters of one line; columns count from 1."""

    line: int
    column: int
    end_column: int
    text: str


def respelled(text: str, root: Node, place: Place) -> str:
    """Return ``text`` with each key, value and one-line flow collection in its standard spelling."""
    lines = text.split("\n")
    by_line: dict[int, list[Edit]] = {}
    for edit in _edits(root, place, lines):
        by_line.setdefault(edit.line, []).append(edit)
    return "\n".join(_edited(line, by_line.get(number, [])) for number, line in enumerate(lines, 1))


def _edited(line: str, edits: list[Edit]) -> str:
    """The line with all edits; a comment after them keeps its column where there is room."""
    if not edits:
        return line
    last = max(edit.end_column for edit in edits)
    before, behind = line[: last - 1], line[last - 1 :]
    for edit in sorted(edits, reverse=True):
        before = before[: edit.column - 1] + edit.text + before[edit.end_column - 1 :]
    comment = behind.lstrip(" \t")
    if not comment.startswith("#") or comment == behind:
        return before + behind
    gap = len(behind) - len(comment) + last - 1 - len(before)
    return f"{before}{' ' * max(gap, 1)}{comment}"


def _edits(node: Node, place: Place, lines: Sequence[str]) -> Iterator[Edit]:
    span = node.span
    if not isinstance(node, Text) and source_at(lines, span) in ("{", "["):
        if span.line == span.end_line:
            yield _edit(span, _flow(node, place, lines))
        return
    match node:
        case Text():
            if span.line == span.end_line and span.column < span.end_column:
                yield _edit(span, _value(node, place, lines, inside=False))
        case Items():
            for item in node.items:
                yield from _edits(item, below(place), lines)
        case Fields():
            for key, value in node.entries:
                if key.span.line == key.span.end_line:
                    yield _edit(key.span, _key(key, lines, inside=False))
                yield from _edits(value, below(place, key.text), lines)
                if value.span.line == key.span.line == key.span.end_line:
                    gap = lines[key.span.line - 1][key.span.end_column - 1 : value.span.column - 1]
                    if re.fullmatch(r"[ \t]*:[ \t]+", gap):
                        yield Edit(key.span.line, key.span.end_column, value.span.column, ": ")


def _edit(span: Span, text: str) -> Edit:
    return Edit(span.line, span.column, span.end_column, text)


def _source(span: Span, lines: Sequence[str]) -> str:
    return lines[span.line - 1][span.column - 1 : span.end_column - 1]


def _flow(node: Node, place: Place, lines: Sequence[str]) -> str:
    """Return a collection in brackets, on one line, its fields in order."""
    match node:
        case Items():
            return f"[{', '.join(_flow(item, below(place), lines) for item in node.items)}]"
        case Fields():
            order = order_of(place)
            entries = sorted(node.entries, key=lambda entry: order.get(entry[0].text, len(order)))
            shown = (
                f"{_key(key, lines, inside=True)}: {_flow(value, below(place, key.text), lines) or 'null'}"
                for key, value in entries
            )
            return f"{{{', '.join(shown)}}}"
        case Text():
            return _value(node, place, lines, inside=True)


def _key(key: Text, lines: Sequence[str], *, inside: bool) -> str:
    source, plain = _source(key.span, lines), scalar(key.text, inside=inside)
    return source if key.plain or plain.startswith('"') else plain


def _value(node: Text, place: Place, lines: Sequence[str], *, inside: bool) -> str:
    source, text = _source(node.span, lines), node.text
    if node.is_null:
        return "null" if text else source
    if place is None or place is PlainKind.AS_WRITTEN or source[:1] in ("|", ">"):
        return source
    try:
        match place:
            case IntegerKind() if len(text) <= LONGEST_NUMBER and WHOLE_NUMBER.fullmatch(text.strip()):
                return str(int(text))
            case PlainKind.BOOLEAN if text in ("true", "false"):
                return text
            case PlainKind.DURATION:
                return _duration(text.strip())
            case SizeKind():
                return _size(text.strip())
            case ConfigKind() if place.name in TOPIC_CONFIGS:
                return _config(place.name, node, source, inside=inside)
            case _:
                return _text(node, source, inside=inside)
    except ConfigValueError:
        return source


def _text(node: Text, source: str, *, inside: bool) -> str:
    """The text, quoted only where some YAML reader would misread it without quotes."""
    shown = scalar(node.text, inside=inside)
    if node.plain:
        is_misread = _NUMBERLIKE.fullmatch(node.text) or node.text.lower() in MISREAD_WORDS
        return shown if is_misread else source
    if any(character not in source for character in node.text):
        return source  # its escapes are kept
    is_ours = "\\" not in shown and "\\" not in source
    return shown if is_ours and (shown.startswith('"') or _PLAINLY.fullmatch(shown)) else source


def _config(name: str, node: Text, source: str, *, inside: bool) -> str:
    config, canonical, written = TOPIC_CONFIGS[name], canonical_written(name, node.text), node.text.strip()
    if config.is_whole_number:
        is_spelled = not WHOLE_NUMBER.fullmatch(written) and not _SMALLEST_UNIT.fullmatch(written)
        return written if is_spelled else (human_unit(config, canonical) if int(canonical) > 0 else None) or canonical
    if config.type == "BOOLEAN":
        return canonical
    if config.type == "DOUBLE":
        return written if _PLAIN_DOUBLE.fullmatch(written) else source
    return _text(node, source, inside=inside)


def _size(text: str) -> str:
    """The text as it is written; bytes without a unit get one where it divides them."""
    count, unit = largest_unit(read_size(text), "bytes")
    return f"{count}{unit}" if text.isdecimal() and unit != "B" else text


def _duration(text: str) -> str:
    """The text as it is written; milliseconds get a larger unit where it divides them."""
    number = read_duration_ms(text)
    if not _SMALLEST_UNIT.fullmatch(text) or not number:
        return text
    count, unit = largest_unit(number, "ms")
    return f"{count}{unit}"


PASSES: tuple[Callable[[str, Node, Place], str], ...] = (
    lambda text, _root, _place: text.replace("\r\n", "\n"),
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
