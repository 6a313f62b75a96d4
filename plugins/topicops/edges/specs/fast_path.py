"""A fast reader for plain files: each line is ``key: value``, and the value is on that line.

Most specs are like that, and most of the cost of reading them is libyaml's three Python objects for each event. Here
regular expressions find the nodes; libyaml only confirms that the file is YAML and counts its events. Every other file,
wrong or right, is left to the general reader (``reader``); both readers give the same nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import yaml
from yaml._yaml import CParser

from topicops.model.specs.document import NULLS, Entry, Fields, Items, Node, Span, Text

_KEY = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,248}"
_QUOTED = r"""\"[^"\\]*\"|'[^']*'"""
# A possessive group (`*+`) would do as well, but Python below 3.11.5 then matches too much.
_PLAIN = r"""-?[\w./(](?:[\w./()+,;=@'<>?-]++|:(?=\S)|\ ++(?=[^\ #]))*"""
_LINE = re.compile(
    rf"(\ *)({_KEY}):(?:(\ +)({_PLAIN}|{_QUOTED}|\{{[^\[\]{{}}]*\}}|\[[^\[\]{{}}]*\]))?(?:\ +(?:\#.*)?)?", re.VERBOSE
)
"""Pattern of indentation, key, gap and value."""
_NOTHING = re.compile(r" *(?:#.*)?")

_PLAIN_INSIDE = r"-?[\w./](?:[\w./+-]++|\ ++(?=[\w./+-]))*"
_FIELD_INSIDE = re.compile(rf"(\ *)({_KEY}):(\ +)({_PLAIN_INSIDE}|{_QUOTED})\ *[,}}]", re.VERBOSE)
_ITEM_INSIDE = re.compile(rf"(\ *)({_PLAIN_INSIDE}|{_QUOTED})\ *[,\]]", re.VERBOSE)

_EVENTS_AROUND = 4
"""The start and end of the stream and of the document."""
_LINES_KEPT = 1 << 14


class _Line(NamedTuple):
    column: int
    """Column of the entry; 0 means a blank line or a comment."""
    name: str
    entry: Entry
    """Entry of the line. If the value follows below, it is the key twice until the value is known."""
    events: int
    """Number of libyaml's events for the line; two of them are for what follows below."""
    opens: bool
    """Whether its value follows on the lines below."""


_NO_TEXT = Text("", True, Span(0, 0, 0, 0))
_BLANK_LINE = _Line(0, "", (_NO_TEXT, _NO_TEXT), 0, False)


class _NotSimpleError(Exception):
    """The file is not plain enough for this reader."""


def read_simple(text: str, *, deepest: int, most_nodes: int) -> Fields | None:
    """Return the nodes of ``text``, without tab and hidden character; None means that the general reader must read it.

    Args:
        deepest: How many mappings and lists may stand in each other.
        most_nodes: How many nodes there may be; a file that comes near is left to the general reader.
    """
    try:
        root, events = _document(text.split("\n"), deepest)
        # libyaml must accept the file and report the same number of events, else this reader has misread it.
        agreed = CParser(text).raw_parse() == events + _EVENTS_AROUND
    except (_NotSimpleError, yaml.YAMLError):
        return None
    return root if agreed and events <= most_nodes else None


def _document(lines: list[str], deepest: int) -> tuple[Fields, int]:
    """Mappings are opened and closed by their columns; ``fields`` is the innermost one that is open."""
    fields: dict[str, Entry] = {}
    outer: list[tuple[dict[str, Entry], int, Text]] = []
    column, events = 1, 2
    waiting: Text | None = None
    for number, line in enumerate(lines, 1):
        here, name, entry, more, opens = _read_line(number, line)
        if here != column or waiting is not None:
            if not here:
                continue
            if waiting is not None:
                if here <= column or len(outer) + 3 > deepest:  # null, or too deep if brackets follow
                    raise _NotSimpleError
                outer.append((fields, column, waiting))
                fields, column, waiting = {}, here, None
            while here < column:
                fields, column = _close(fields, outer, number, here)
            if here != column:
                raise _NotSimpleError
        if name in fields:
            raise _NotSimpleError
        fields[name] = entry
        events += more
        if opens:
            waiting = entry[0]
    if waiting is not None or not fields or lines[-1]:
        raise _NotSimpleError
    while outer:
        fields, column = _close(fields, outer, len(lines), 1)
    return _ended(fields, len(lines), 1), events


def _close(
    fields: dict[str, Entry], outer: list[tuple[dict[str, Entry], int, Text]], line: int, column: int
) -> tuple[dict[str, Entry], int]:
    """Put the innermost mapping into the one around it, which goes on at ``line`` and ``column``."""
    around, around_column, key = outer.pop()
    around[key.text] = (key, _ended(fields, line, column))
    return around, around_column


def _ended(fields: dict[str, Entry], line: int, column: int) -> Fields:
    entries = tuple(fields.values())
    first = entries[0][0].span
    return Fields(entries, Span(first.line, first.column, line, column))


@lru_cache(maxsize=_LINES_KEPT)
def _read_line(number: int, line: str) -> _Line:
    """Read one line at its place; files with the same line at the same place share its entry."""
    found = _LINE.fullmatch(line)
    if found is None:
        if _NOTHING.fullmatch(line):
            return _BLANK_LINE
        raise _NotSimpleError
    indentation, name, gap, value = found.groups()
    column = len(indentation) + 1
    key = _key(name, number, column)
    if value is None:
        return _Line(column, name, (key, key), 3, True)
    node = _value(value, number, column + len(name) + 1 + len(gap))
    return _Line(column, name, (key, node), 1 + _events(node), False)


def _key(text: str, line: int, column: int) -> Text:
    if text in NULLS:
        raise _NotSimpleError
    return Text(text, True, Span(line, column, line, column + len(text)))


def _value(value: str, line: int, column: int) -> Node:
    span = Span(line, column, line, column + len(value))
    match value[0]:
        case "{":
            fields = {key.text: (key, node) for key, node in _fields(value, line, column)}
            return Fields(tuple(fields.values()), span)  # a key that stands twice is one event too few
        case "[":
            return Items(tuple(_items(value, line, column)), span)
        case '"' | "'":
            return Text(value[1:-1], False, span)
        case _:
            return Text(value, True, span)


def _events(node: Node) -> int:
    match node:
        case Text():
            return 1
        case Items():
            return 2 + len(node.items)
        case Fields():
            return 2 + 2 * len(node.entries)


def _fields(value: str, line: int, column: int) -> Iterator[Entry]:
    for index, (before, key, gap, scalar) in _parts(_FIELD_INSIDE, value):
        start = column + index + len(before)
        yield _key(key, line, start), _value(scalar, line, start + len(key) + 1 + len(gap))


def _items(value: str, line: int, column: int) -> Iterator[Node]:
    for index, (before, scalar) in _parts(_ITEM_INSIDE, value):
        yield _value(scalar, line, column + index + len(before))


def _parts(part: re.Pattern[str], value: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield what stands between the brackets, each with the index where it starts; nothing is left out."""
    index = 1
    while index < len(value) and value[1:-1].strip(" "):
        found = part.match(value, index)
        if found is None:
            raise _NotSimpleError
        yield index, found.groups()
        index = found.end()
