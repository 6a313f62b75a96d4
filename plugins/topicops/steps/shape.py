"""From nodes to typed values: which fields there are, which are required, and what each field's text means.

The pydantic models are the schema. They are not handed the file: they could only say what is wrong, not on which
characters. Each model becomes a table of readers once; a file is then read in one walk.
"""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Annotated, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import StringConstraints
from pydantic.fields import FieldInfo

from topicops.model.codes import WARNINGS
from topicops.model.diagnostics import Diagnostic, Location, Severity
from topicops.model.document import START, Fields, Items, Node, Span, Text
from topicops.model.environment import Written
from topicops.model.topic_config import (
    AMBIGUOUS_NUMBER,
    TOPIC_CONFIGS,
    AmbiguousNumberError,
    ConfigValueError,
    UnknownUnitError,
    read_duration_ms,
)
from topicops.model.written_spec import AsWritten

T = TypeVar("T")


class Finding(NamedTuple):
    """A problem on its way to a diagnostic."""

    code: str
    file: str
    span: Span
    summary: str
    remedy: str = ""
    topic: str | None = None
    """Whose problem it is; an exception for that topic may make a warning of it."""
    warns: bool = False
    """A warning, though its code is usually an error."""

    def diagnostic(self, *, lifted: bool = False) -> Diagnostic:
        mild = lifted or self.warns or self.code in WARNINGS
        return Diagnostic(
            code=self.code,
            severity=Severity.WARNING if mild else Severity.ERROR,
            file=self.file,
            line=self.span.line,
            column=self.span.column,
            end_line=self.span.end_line,
            end_column=self.span.end_column,
            summary=self.summary,
            help=self.remedy,
        )


class Bad:
    """Stands for a value that was given and could not be read."""


BAD = Bad()


class Value(NamedTuple):
    """A field that was given."""

    value: object
    """``BAD``, None (only in configs), a scalar, a ``Section``, a tuple of ``Value``, or a ``Node`` as written."""
    span: Span
    key: Span


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping after reading: the fields that were given, by the name in the file."""

    file: str
    first: Span = START
    """Where a missing field is shown."""
    values: Mapping[str, Value] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, kind: type[T]) -> T | None:
        """The value if it was given and is right."""
        found = self.values.get(name)
        return found.value if found is not None and isinstance(found.value, kind) else None

    def is_bad(self, name: str) -> bool:
        found = self.values.get(name)
        return found is not None and isinstance(found.value, Bad)

    def section(self, name: str) -> Section:
        """The mapping below ``name``; empty if there is none."""
        return self.get(name, Section) or Section(self.file)

    def items(self, name: str) -> tuple[Value, ...]:
        return self.get(name, tuple) or ()

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(item.value for item in self.items(name) if isinstance(item.value, str))

    def location(self, name: str) -> Location:
        span = self.values[name].span
        return Location(self.file, span.line, span.column)


class _Walk:
    """Where the reading is, and what it found."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Finding] = []

    def bad(self, code: str, span: Span, summary: str, remedy: str = "") -> Bad:
        self.found.append(Finding(code, self.file, span, summary, remedy))
        return BAD


Reader = Callable[[Node, _Walk], object]


class _Field(NamedTuple):
    required: bool
    read: Reader


def read_section(root: Node, model: type[Written], file: str) -> tuple[Section, list[Finding]]:
    """``root`` held to ``model``: every value that is right, and a finding for everything that is not."""
    walk = _Walk(file)
    read = _read_mapping(root, walk, model, top=True)
    return (read if isinstance(read, Section) else Section(file)), walk.found


def _read_mapping(node: Node, walk: _Walk, model: type[Written], *, top: bool = False) -> Section | Bad:
    if not isinstance(node, Fields):
        return _wrong_type(node, walk, "a mapping of fields")
    fields = _fields_of(model)
    values: dict[str, Value] = {}
    for key, below in node.entries:
        known = fields.get(key.text)
        if known is None:
            walk.bad("TOP201", key.span, f"unknown field {key.text}", _did_you_mean(key.text, fields))
        elif not (isinstance(below, Text) and below.is_null):
            values[key.text] = Value(known.read(below, walk), below.span, key.span)
    first = START if top else node.first
    for name, known in fields.items():
        if known.required and name not in values:
            walk.bad("TOP202", first, f"{name} is missing")
    return Section(walk.file, first, values)


@cache
def _fields_of(model: type[Written]) -> Mapping[str, _Field]:
    return {
        info.alias or name: _Field(info.is_required(), _reader_of(info.annotation, info.metadata))
        for name, info in _model_fields(model).items()
    }


def _model_fields(model: type[Written]) -> Mapping[str, FieldInfo]:
    return model.model_fields


def _reader_of(annotation: object, limits: Sequence[object] = ()) -> Reader:
    """How a node becomes a value of ``annotation``; ``limits`` are what the model says beside the type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if any(isinstance(limit, AsWritten) for limit in limits):
        return _as_written
    if origin is Annotated:
        return _reader_of(arguments[0], (*limits, *arguments[1:]))
    if origin in (Union, types.UnionType):
        (kept,) = [argument for argument in arguments if argument is not type(None)]
        return _reader_of(kept, limits)
    if origin is Literal:
        return _word_reader([str(word) for word in arguments])
    if origin is tuple:
        return _list_reader(_reader_of(arguments[0]))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return _entries_reader(*arguments)
    if isinstance(annotation, type):
        return _reader_of_class(annotation, limits)
    raise TypeError(f"no reader for {annotation!r}")


def _reader_of_class(annotation: type, limits: Sequence[object]) -> Reader:
    if issubclass(annotation, Written):
        return lambda node, walk: _read_mapping(node, walk, annotation)
    if issubclass(annotation, StrEnum):
        return _word_reader([word.value for word in annotation])
    if annotation is int:
        return _integer_reader(limits)
    if annotation is str:
        return _text_reader(limits)
    readers: Mapping[type, Reader] = {bool: _read_boolean, datetime: _read_time, timedelta: _read_duration}
    return readers[annotation]


def _as_written(node: Node, _walk: _Walk) -> object:
    return node


def _wrong_type(node: Node, walk: _Walk, wanted: str) -> Bad:
    kinds = {Text: "text", Items: "a list", Fields: "a mapping"}
    return walk.bad("TOP203", node.span, f"{wanted} is needed here, not {kinds[type(node)]}")


def _text_reader(limits: Sequence[object]) -> Reader:
    longest = max((limit.max_length or 0 for limit in limits if isinstance(limit, StringConstraints)), default=0)

    def read(node: Node, walk: _Walk) -> object:
        if not isinstance(node, Text):
            return _wrong_type(node, walk, "text")
        if longest and len(node.text) > longest:
            return walk.bad("TOP211", node.span, f"{len(node.text):,} characters; at most {longest:,} are kept")
        return node.text

    return read


def _word_reader(words: Sequence[str]) -> Reader:
    def read(node: Node, walk: _Walk) -> object:
        if not isinstance(node, Text):
            return _wrong_type(node, walk, "one word")
        if node.text in words:
            return node.text
        return walk.bad("TOP205", node.span, f"{node.text!r} is not one of {', '.join(words)}", _near(node.text, words))

    return read


def _integer_reader(limits: Sequence[object]) -> Reader:
    lowest = max((int(str(limit.ge)) for limit in limits if isinstance(limit, Ge)), default=0)
    highest = min((int(str(limit.le)) for limit in limits if isinstance(limit, Le)), default=2**31 - 1)

    def read(node: Node, walk: _Walk) -> object:
        return read_integer(node, walk.bad, lowest=lowest, highest=highest)

    return read


WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")


def read_integer(
    node: Node, report: Callable[[str, Span, str, str], Bad], *, lowest: int, highest: int = 2**31 - 1
) -> int | Bad:
    """The whole number of a node, spelled so that no reader takes it for another."""
    if not isinstance(node, Text):
        return report("TOP203", node.span, "a whole number is needed here", "")
    text = node.text.strip()
    if AMBIGUOUS_NUMBER.fullmatch(text):
        return report("TOP204", node.span, f"{text} is read differently by different tools", _plain_number(text))
    if not WHOLE_NUMBER.fullmatch(text):
        return report("TOP203", node.span, f"a whole number is needed here, not {_shown(text)}", "")
    if len(text) > 20 or not lowest <= int(text) <= highest:
        return report("TOP205", node.span, f"{_shown(text)} is not in {lowest} … {highest}", "")
    return int(text)


def _plain_number(text: str) -> str:
    digits = text.replace("_", "").lstrip("0")
    return f"write {digits or '0'} if that is meant" if digits.isdigit() or not digits else "write plain digits"


def _shown(text: str) -> str:
    return repr(text) if len(text) <= 40 else f"{text[:37]!r}…"


def _read_boolean(node: Node, walk: _Walk) -> object:
    if not isinstance(node, Text):
        return _wrong_type(node, walk, "true or false")
    if node.text in ("true", "false"):
        return node.text == "true"
    if node.text.lower() in ("yes", "no", "on", "off"):
        return walk.bad("TOP204", node.span, f"{node.text} is text to some tools", "write true or false")
    return walk.bad("TOP203", node.span, f"true or false is needed here, not {_shown(node.text)}")


_RFC_3339_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|\+00:00)", re.ASCII)


def _read_time(node: Node, walk: _Walk) -> object:
    if not isinstance(node, Text):
        return _wrong_type(node, walk, "a time")
    try:
        if _RFC_3339_UTC.fullmatch(node.text):
            return datetime.fromisoformat(node.text).astimezone(UTC)
    except ValueError:
        pass  # a day or an hour that does not exist
    return walk.bad("TOP215", node.span, f"{_shown(node.text)} is no time in UTC", "write it like 2030-01-31T12:00:00Z")


def _read_duration(node: Node, walk: _Walk) -> object:
    if not isinstance(node, Text):
        return _wrong_type(node, walk, "a duration such as 30s")
    try:
        return timedelta(milliseconds=read_duration_ms(node.text.strip()))
    except AmbiguousNumberError as error:
        return walk.bad("TOP204", node.span, str(error), "write plain digits and a unit, as in 30s")
    except UnknownUnitError as error:
        return walk.bad("TOP214", node.span, f"{_shown(node.text)}: {error}")
    except (ConfigValueError, OverflowError) as error:
        return walk.bad("TOP203", node.span, f"{_shown(node.text)}: {error}")


def _list_reader(read_item: Reader) -> Reader:
    def read(node: Node, walk: _Walk) -> object:
        if not isinstance(node, Items):
            return _wrong_type(node, walk, "a list")
        return tuple(Value(_item(item, walk, read_item), item.span, item.span) for item in node.items)

    return read


def _item(node: Node, walk: _Walk, read_item: Reader) -> object:
    if isinstance(node, Text) and node.is_null:
        return walk.bad("TOP203", node.span, "a value is needed here, not nothing")
    return read_item(node, walk)


def _entries_reader(key_type: object, value_type: object) -> Reader:
    """A mapping whose keys people choose; null stays where the type allows it."""
    keeps_null = type(None) in get_args(value_type)
    read_value = _reader_of(value_type)
    patterns = [limit.pattern for limit in get_args(key_type) if isinstance(limit, StringConstraints)]
    legal_key = re.compile(str(patterns[0])) if patterns else None

    def read(node: Node, walk: _Walk) -> object:
        if not isinstance(node, Fields):
            return _wrong_type(node, walk, "a mapping")
        values = {}
        for key, below in node.entries:
            if legal_key is not None and not legal_key.fullmatch(key.text):
                walk.bad("TOP211", key.span, f"a key matches {legal_key.pattern}; {_shown(key.text)} does not")
            if not (isinstance(below, Text) and below.is_null):
                values[key.text] = Value(read_value(below, walk), below.span, key.span)
            elif keeps_null:
                values[key.text] = Value(None, below.span, key.span)
        return Section(walk.file, node.first, values)

    return read


# ---- what was meant ----

_WORDS_OF_OTHERS: Mapping[str, tuple[str, ...]] = {
    "replicas": ("replicationFactor",),
    "replication": ("replicationFactor",),
    "rf": ("replicationFactor",),
    "partition": ("partitions",),
    "config": ("configs",),
    "configuration": ("configs",),
    "settings": ("configs",),
    "topic": ("name", "metadata"),
    "topicname": ("name", "metadata"),
    "team": ("owner",),
    "doc": ("description",),
    "version": ("apiVersion",),
}
"""How other tools call a field, without dashes and underscores, in lower case."""

_HOME: Mapping[str, str] = {
    "name": "metadata", "owner": "metadata", "description": "metadata", "labels": "metadata",
    "environments": "metadata",
    "profile": "spec", "partitions": "spec", "replicationFactor": "spec", "configs": "spec", "keyed": "spec",
    "placement": "spec", "rackAware": "spec", "assignment": "spec",
    "state": "lifecycle", "reason": "lifecycle", "notBefore": "lifecycle", "until": "lifecycle",
    "topicIds": "lifecycle", "spec": "the top of the file", "lifecycle": "the top of the file",
}  # fmt: skip


def _did_you_mean(key: str, fields: Mapping[str, _Field]) -> str:
    for guess in _guesses(key, tuple(fields)):
        return f"did you mean {guess}?"
    if key in TOPIC_CONFIGS:
        return "a topic's config goes below configs"
    if key in _HOME:
        return f"it belongs to {_HOME[key]}"
    return f"known here: {', '.join(fields)}"


def _guesses(key: str, fields: Sequence[str]) -> Iterator[str]:
    bare = re.sub(r"[_-]", "", key).lower()
    yield from (name for name in _WORDS_OF_OTHERS.get(bare, ()) if name in fields)
    yield from (name for name in fields if name.lower() == bare)
    yield from difflib.get_close_matches(key, fields, n=1, cutoff=0.75)


def _near(text: str, words: Sequence[str]) -> str:
    close = difflib.get_close_matches(text.lower(), words, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else ""
