"""YAML and JSON of other tools, with every value as its text: ``0.50``, ``010`` and ``on`` keep their spelling.

YAML is read from libyaml's events, as specs are: its composer crashes on deep nesting. Anchors, aliases, merge keys and
several documents are read here. What is shared is never copied, so aliases of aliases stay small.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from topicops.edges.specs.open_files import ReadingError, open_regular
from topicops.model.errors import UsageError
from topicops.model.specs.document import NULLS

ROOM = 256
"""Files may be this many times as large as a topic's: 16 MiB."""
_DEEPEST = 100
_MERGE = "<<"


class Map(dict[str, "Value"]):
    line = 1
    lines: dict[str, int] = {}  # noqa: RUF012 - each mapping from YAML gets its own

    def line_of(self, key: str) -> int:
        return self.lines.get(key, self.line)

    def map(self, key: str) -> Map:
        """Return the mapping below ``key``; empty if there is none."""
        found = self.get(key)
        return found if isinstance(found, Map) else Map()

    def text(self, key: str) -> str | None:
        """Return the text below ``key``; None if there is none, or another value."""
        found = self.get(key)
        return found if isinstance(found, str) else None

    def maps(self, key: str) -> list[Map]:
        found = self.get(key)
        return [item for item in found if isinstance(item, Map)] if isinstance(found, list) else []


Value = str | None | list["Value"] | Map


@dataclass(frozen=True)
class SourceFile:
    name: str
    """Path from the folder that was named, with ``/``."""
    text: str

    @cached_property
    def documents(self) -> Sequence[Map]:
        """Every document that is a mapping, or each mapping of a document that is a list. Raises ``UsageError``."""
        read = [json_value(self)] if self.name.endswith(".json") else list(_documents(self))
        return [
            found for value in read for found in (value if isinstance(value, list) else [value]) if type(found) is Map
        ]


def read_files(path: Path, suffixes: Sequence[str]) -> list[SourceFile]:
    """Read a file, or all of a folder with such names; links and hidden folders are left out.

    Raises ``UsageError``: there is none, or one is too large, no regular file or no UTF-8.
    """
    if not path.is_dir():
        return [_read(path, path.name)]
    found: list[SourceFile] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (Path(folder, name) for name in sorted(names) if name.endswith(tuple(suffixes)))
        found += [_read(each, each.relative_to(path).as_posix()) for each in paths if not each.is_symlink()]
    if not found:
        raise UsageError(f"{path}: no file there ends in {', '.join(suffixes)}")
    return found


def _read(path: Path, name: str) -> SourceFile:
    try:
        text = open_regular(path, room=ROOM).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: no UTF-8 text: byte {error.start}") from error
    except ReadingError as error:
        raise UsageError(f"{path}: it cannot be read: {error}; files of at most {ROOM // 16} MiB are read") from error
    return SourceFile(name, text)


def documents_of(files: Sequence[SourceFile]) -> list[tuple[str, Map]]:
    """Return each mapping with the name of its file. Raises ``UsageError``, for a template with its first brace."""
    for file in files:
        for number, line in enumerate(file.text.splitlines(), 1):
            if "{{" in line or "{%" in line:
                raise UsageError(f"{file.name}:{number}: this is a template; render it first, and import what comes")
    return [(file.name, document) for file in files for document in file.documents]


def json_value(file: SourceFile) -> Value:
    """Return what a JSON text says. Raises ``UsageError``."""
    try:
        return _of_json(json.loads(file.text, parse_float=str, parse_int=str, parse_constant=str), 0)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise UsageError(f"{file.name}:{line}: no JSON that can be read: {_first(str(error))}") from error


def _of_json(value: object, depth: int, line: int = 1) -> Value:
    if depth > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} levels")
    match value:
        case dict():
            found = Map({str(key): _of_json(below, depth + 1) for key, below in value.items()})
            found.line = line
            return found
        case list():
            return [_of_json(item, depth + 1) for item in value]
        case None:
            return None
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _documents(file: SourceFile) -> Iterator[Value]:
    anchors: dict[str, Value] = {}
    try:
        events = iter(yaml.parse(file.text, Loader=yaml.CSafeLoader))
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                anchors = {}
                yield _node(next(events), events, anchors, file)
    except yaml.YAMLError as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        line = mark.line + 1 if mark else 1
        problem = error.problem if isinstance(error, yaml.MarkedYAMLError) else _first(str(error))
        raise UsageError(f"{file.name}:{line}: no YAML that can be read: {problem}") from error


def _node(event: yaml.Event, events: Iterator[yaml.Event], anchors: dict[str, Value], file: SourceFile) -> Value:
    """Build one node from its events; the stack is our own, so that the depth has a limit."""
    stack: list[_Open] = []
    while True:
        line = event.start_mark.line + 1 if event.start_mark else 1
        match event:
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                if len(stack) >= _DEEPEST:
                    raise UsageError(f"{file.name}:{line}: more than {_DEEPEST} levels")
                stack.append(_Open([] if isinstance(event, yaml.SequenceStartEvent) else Map(), event.anchor, line))
                event = next(events)
                continue
            case yaml.ScalarEvent():
                value: Value = None if event.implicit[0] and event.value in NULLS else event.value
                anchor = event.anchor
            case yaml.AliasEvent():
                if event.anchor not in anchors:
                    raise UsageError(f"{file.name}:{line}: *{event.anchor} stands before its anchor, or inside it")
                value, anchor = anchors[event.anchor], None
            case _:
                value, anchor = stack[-1].value, stack.pop().anchor
        if anchor:
            anchors[anchor] = value
        if not stack:
            return value
        stack[-1].take(value, line)
        event = next(events)


class _Open:
    """A list or mapping whose end has not come yet."""

    def __init__(self, value: list[Value] | Map, anchor: str | None, line: int) -> None:
        self.value, self.anchor = value, anchor
        self.key: str | None = None
        if isinstance(value, Map):
            value.line, value.lines = line, {}

    def take(self, value: Value, line: int) -> None:
        """Take the next item, key or value; a merge key gives what the mapping does not say itself."""
        if isinstance(self.value, list):
            self.value.append(value)
        elif self.key is None:
            self.key = value if isinstance(value, str) else ""
            self.value.lines.setdefault(self.key, line)
        else:
            key, self.key = self.key, None
            if key != _MERGE:
                self.value[key] = value
            for merged in (value if isinstance(value, list) else [value]) if key == _MERGE else ():
                for name, below in merged.items() if isinstance(merged, Map) else ():
                    self.value.setdefault(name, below)


def _first(text: str) -> str:
    return text.splitlines()[0] if text else ""
