"""Spell keys and values: quotes where a YAML reader could misread, durations and sizes with a unit, one space."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from topicops.features.formatting.field_order import ConfigKind, Place, below, order_of
from topicops.features.shared.yaml_blocks import source_at
from topicops.features.shared.yaml_text import MISREAD_WORDS, scalar
from topicops.model.specs.document import Fields, Items, Node, Span, Text
from topicops.model.specs.files import AsWrittenKind, BooleanKind, DurationKind, IntegerKind
from topicops.model.specs.spellings import human_unit, largest_unit
from topicops.model.specs.topic_config import (
    LONGEST_NUMBER,
    TOPIC_CONFIGS,
    ConfigValueError,
    canonical_written,
    read_duration_ms,
)
from topicops.steps.specs.fields import WHOLE_NUMBER

_NUMBERLIKE = re.compile(r"[-+.]?[0-9].*")
_SMALLEST_UNIT = re.compile(r"[0-9]+(?:ms|B)")
_PLAINLY = re.compile(r"[\w ./,;:()'+-]*")
"""Text that people write without quotes; a pattern with a star is usually quoted."""
_PLAIN_DOUBLE = re.compile(r"[0-9]+(?:\.[0-9]+)?")


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
    if place is None or isinstance(place, AsWrittenKind) or source[:1] in ("|", ">"):
        return source
    match place:
        case IntegerKind() if len(text) <= LONGEST_NUMBER and WHOLE_NUMBER.fullmatch(text.strip()):
            return str(int(text))
        case BooleanKind() if text in ("true", "false"):
            return text
        case DurationKind():
            return _duration(text.strip()) or source
        case ConfigKind() if place.name in TOPIC_CONFIGS:
            return _config(place.name, node, source, inside=inside)
        case _:
            return _text(node, source, inside=inside)


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
    config = TOPIC_CONFIGS[name]
    try:
        canonical = canonical_written(name, node.text)
    except ConfigValueError:
        return source
    written = node.text.strip()
    if config.is_whole_number:
        is_spelled = not WHOLE_NUMBER.fullmatch(written) and not _SMALLEST_UNIT.fullmatch(written)
        return written if is_spelled else (human_unit(config, canonical) if int(canonical) > 0 else None) or canonical
    if config.type == "BOOLEAN":
        return canonical
    if config.type == "DOUBLE":
        return written if _PLAIN_DOUBLE.fullmatch(written) else source
    return _text(node, source, inside=inside)


def _duration(text: str) -> str | None:
    """The text as it is written; milliseconds get a larger unit where it divides them."""
    try:
        number = read_duration_ms(text)
    except ConfigValueError:
        return None
    if not _SMALLEST_UNIT.fullmatch(text) or not number:
        return text
    count, unit = largest_unit(number, "ms")
    return f"{count}{unit}"
