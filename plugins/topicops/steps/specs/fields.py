"""From nodes to typed values: which fields there are, which are required, and what each field's text means.

The pydantic models are the schema. They are not handed the file: they could only say what is wrong, not on which
characters. Each model becomes a table of readers once; a file is then read in one walk.
"""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Annotated, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from annotated_types import Ge, Le
from pydantic import StringConstraints
from pydantic.fields import FieldInfo

from topicops.model.specs.codes import WARNINGS
from topicops.model.specs.diagnostics import Diagnostic, Fix, Location, Note, Position, Severity
from topicops.model.specs.document import NULLS, START, Entry, Fields, Items, Node, Span, Text
from topicops.model.specs.environment import Written
from topicops.model.specs.files import AsWritten
from topicops.model.specs.spellings import boolean_word, known_unit, plain_number, utc_time
from topicops.model.specs.topic_config import (
    AMBIGUOUS_NUMBER,
    TOPIC_CONFIGS,
    AmbiguousNumberError,
    ConfigValueError,
    UnknownUnitError,
    read_duration_ms,
)

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
    note: Note | None = None
    """The other of two places that do not go together."""
    meant: str | None = None
    """What the marked characters should be, where that is certain."""

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
            note=self.note,
            fix=fix_of(self.span, self.meant),
        )


def note_at(file: str, span: Span, text: str) -> Note:
    return Note(
        file=file, line=span.line, column=span.column, end_line=span.end_line, end_column=span.end_column, text=text
    )


def fix_of(span: Span, meant: str | None) -> Fix | None:
    """The edit that writes ``meant``; None for a text of several lines, whose end is not where it seems to be."""
    if meant is None or span.line != span.end_line:
        return None
    return Fix(Position(span.line, span.column), Position(span.end_line, span.end_column), meant)


class Bad:
    """Stands for a value that was given and could not be read."""


BAD = Bad()


class Value(msgspec.Struct, frozen=True, gc=False):
    """A field that was given."""

    value: object
    """``BAD``, None (only in configs), a scalar, a ``Section``, a tuple of ``Value``, or a ``Node`` as written."""
    span: Span
    key: Span


class Section(msgspec.Struct, frozen=True, gc=False):
    """A mapping after reading: the fields that were given, by the name in the file."""

    file: str
    first: Span = START
    """Where a missing field is shown."""
    values: Mapping[str, Value] = {}

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
        found = self.values.get(name)
        return found.value if found is not None and isinstance(found.value, Section) else Section(self.file)

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

    def bad(self, code: str, span: Span, summary: str, remedy: str = "", meant: str | None = None) -> Bad:
        self.found.append(Finding(code, self.file, span, summary, remedy, meant=meant))
        return BAD

    def is_fine(self, node: Node, read: Reader) -> bool:
        """Whether ``node`` is without a finding; what it holds is not kept."""
        trial = _Walk(self.file)
        read(node, trial)
        return not trial.found

    def fine(self, meant: str | None, node: Text, read: Reader) -> str | None:
        """``meant`` if it could stand in the place of ``node``."""
        return meant if meant is not None and self.is_fine(Text(meant, True, node.span), read) else None


Reader = Callable[[Node, _Walk], object]


class _Field(NamedTuple):
    required: bool
    read: Reader


def read_section(root: Node, model: type[Written], file: str) -> tuple[Section, list[Finding]]:
    """``root`` held to ``model``: every value that is right, and a finding for everything that is not."""
    walk = _Walk(file)
    read = _file_reader(model)(root, walk)
    return (read if isinstance(read, Section) else Section(file)), walk.found


@cache
def _file_reader(model: type[Written]) -> Reader:
    return _mapping_reader(model, top=True)


def _mapping_reader(model: type[Written], *, top: bool = False) -> Reader:
    """Of a mapping with the fields of ``model``; ``top`` when it is a whole file."""
    fields = {
        info.alias or name: _Field(info.is_required(), _reader_of(info.annotation, info.metadata))
        for name, info in _model_fields(model).items()
    }
    required = {name for name, field in fields.items() if field.required}
    known = _Known()
    find = known.get

    def read(node: Node, walk: _Walk) -> Section | Bad:
        if not isinstance(node, Fields):
            return _wrong_type(node, walk, "a mapping of fields")
        values: dict[str, Value] = {}
        for entry in node.entries:
            kept = find(id(entry))
            if kept is not None:
                values[kept.name] = kept.value
                continue
            key, below = entry
            field = fields.get(key.text)
            if field is None:
                meant = _meant_field(key.text, below, node, walk, fields)
                walk.bad("TOP201", key.span, f"unknown field {key.text}", _did_you_mean(key.text, fields), meant)
            elif below.__class__ is not Text or not below.plain or below.text not in NULLS:
                values[key.text] = known.read(entry, field.read, walk)
        first = START if top else node.first
        if required and not required <= values.keys():
            for name in (name for name in fields if name in required and name not in values):
                walk.bad("TOP202", first, f"{name} is missing")
        return Section(walk.file, first, values)

    return read


class _Kept(msgspec.Struct, frozen=True, gc=False):
    name: str
    value: Value
    entry: Entry


class _Known(dict[int, _Kept]):
    """What the fields of one sort of mapping say, by the identity of the entry, which is kept alive.

    Files that have the same line at the same place share its entry, see ``edges.simple_yaml``, and it is read once.
    """

    _MOST = 1 << 14

    def read(self, entry: Entry, read: Reader, walk: _Walk) -> Value:
        key, below = entry
        value = Value(read(below, walk), below.span, key.span)
        if below.__class__ is Text and value.value is not BAD:
            if len(self) == self._MOST:
                self.clear()
            self[id(entry)] = _Kept(key.text, value, entry)
        return value


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
        return _mapping_reader(annotation)
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
        near = _near(node.text, words)
        remedy = f"did you mean {near}?" if near else ""
        return walk.bad("TOP205", node.span, f"{node.text!r} is not one of {', '.join(words)}", remedy, near)

    return read


def _integer_reader(limits: Sequence[object]) -> Reader:
    lowest = max((int(str(limit.ge)) for limit in limits if isinstance(limit, Ge)), default=0)
    highest = min((int(str(limit.le)) for limit in limits if isinstance(limit, Le)), default=2**31 - 1)

    def read(node: Node, walk: _Walk) -> object:
        return read_integer(node, walk.bad, lowest=lowest, highest=highest)

    return read


Report = Callable[[str, Span, str, str, str | None], Bad]
"""Code, place, summary, remedy, and what was meant where that is certain."""
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_SMALL_NUMBERS: Mapping[str, int] = {str(number): number for number in range(1000)}
"""What is written most, by its one plain spelling."""


def read_integer(node: Node, report: Report, *, lowest: int, highest: int = 2**31 - 1) -> int | Bad:
    """The whole number of a node, spelled so that no reader takes it for another."""
    if not isinstance(node, Text):
        return report("TOP203", node.span, "a whole number is needed here", "", None)
    text = node.text
    if text in _SMALL_NUMBERS and lowest <= _SMALL_NUMBERS[text] <= highest:
        return _SMALL_NUMBERS[text]
    text = text.strip()
    if AMBIGUOUS_NUMBER.fullmatch(text):
        meant = plain_number(text)
        if meant is not None and not (WHOLE_NUMBER.fullmatch(meant) and _is_within(meant, lowest, highest)):
            meant = None
        remedy = f"write {meant} if that is meant" if meant else "write plain digits"
        return report("TOP204", node.span, f"{text} is read differently by different tools", remedy, meant)
    if not WHOLE_NUMBER.fullmatch(text):
        return report("TOP203", node.span, f"a whole number is needed here, not {_shown(text)}", "", None)
    if not _is_within(text, lowest, highest):
        return report("TOP205", node.span, f"{_shown(text)} is not in {lowest} … {highest}", "", None)
    return int(text)


def _is_within(digits: str, lowest: int, highest: int) -> bool:
    return len(digits) <= 20 and lowest <= int(digits) <= highest


def _shown(text: str) -> str:
    return repr(text) if len(text) <= 40 else f"{text[:37]!r}…"


def _read_boolean(node: Node, walk: _Walk) -> object:
    if not isinstance(node, Text):
        return _wrong_type(node, walk, "true or false")
    if node.text in ("true", "false"):
        return node.text == "true"
    if node.text.lower() in ("yes", "no", "on", "off"):
        meant = boolean_word(node.text)
        return walk.bad("TOP204", node.span, f"{node.text} is text to some tools", f"write {meant}", meant)
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
    meant = walk.fine(utc_time(node.text), node, _read_time)
    remedy = f"write {meant}" if meant else "write it like 2030-01-31T12:00:00Z"
    return walk.bad("TOP215", node.span, f"{_shown(node.text)} is no time in UTC", remedy, meant)


def _read_duration(node: Node, walk: _Walk) -> object:
    if not isinstance(node, Text):
        return _wrong_type(node, walk, "a duration such as 30s")
    try:
        return timedelta(milliseconds=read_duration_ms(node.text.strip()))
    except AmbiguousNumberError as error:
        meant = walk.fine(plain_number(node.text), node, _read_duration)
        return walk.bad("TOP204", node.span, str(error), "write plain digits and a unit, as in 30s", meant)
    except UnknownUnitError as error:
        meant = walk.fine(known_unit(node.text, "ms"), node, _read_duration)
        return walk.bad("TOP214", node.span, f"{_shown(node.text)}: {error}", f"write {meant}" if meant else "", meant)
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
    pattern = next((str(limit.pattern) for limit in get_args(key_type) if isinstance(limit, StringConstraints)), None)
    legal_key = re.compile(pattern) if pattern else None
    known = _Known()

    def read(node: Node, walk: _Walk) -> object:
        if not isinstance(node, Fields):
            return _wrong_type(node, walk, "a mapping")
        values = {}
        for entry in node.entries:
            kept = known.get(id(entry))
            if kept is not None:
                values[kept.name] = kept.value
                continue
            key, below = entry
            is_legal = legal_key is None or legal_key.fullmatch(key.text) is not None
            if not is_legal:
                walk.bad("TOP211", key.span, f"a key matches {pattern}; {_shown(key.text)} does not")
            if isinstance(below, Text) and below.is_null:
                if keeps_null:
                    values[key.text] = Value(None, below.span, key.span)
            elif is_legal:
                values[key.text] = known.read(entry, read_value, walk)
            else:
                values[key.text] = Value(read_value(below, walk), below.span, key.span)
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
    "properties": ("configs",),
    "params": ("configs",),
    "parameters": ("configs",),
    "topicconfig": ("configs",),
    "topicconfigs": ("configs",),
    "replicaassignment": ("assignment",),
    "strategy": ("placement",),
    "topic": ("name", "metadata"),
    "topicname": ("name", "metadata"),
    "team": ("owner",),
    "doc": ("description",),
    "tags": ("labels",),
    "annotations": ("labels",),
    "env": ("environments",),
    "clusters": ("environments",),
    "version": ("apiVersion",),
}
"""How other tools call a field, without dots, dashes and underscores, in lower case."""
_CONFIGS_BY_BARE_NAME: Mapping[str, str] = {name.replace(".", ""): name for name in TOPIC_CONFIGS}

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
    config = _CONFIGS_BY_BARE_NAME.get(_bare(key))
    if config is not None:
        return f"a topic's config goes below configs, as {config}"
    for name in (name for name in _WORDS_OF_OTHERS.get(_bare(key), ()) if name in _HOME):
        return f"it belongs to {_HOME[name]}, as {name}"
    return f"known here: {', '.join(fields)}"


def _meant_field(key: str, below: Node, node: Fields, walk: _Walk, fields: Mapping[str, _Field]) -> str | None:
    """The first guess, if it is not there already and takes what was written."""
    guess = next(_guesses(key, tuple(fields)), None)
    is_taken = any(key.text == guess for key, _ in node.entries)
    return guess if guess and not is_taken and walk.is_fine(below, fields[guess].read) else None


def _guesses(key: str, fields: Sequence[str]) -> Iterator[str]:
    bare = _bare(key)
    yield from (name for name in _WORDS_OF_OTHERS.get(bare, ()) if name in fields)
    yield from (name for name in fields if name.lower() == bare)
    yield from difflib.get_close_matches(key, fields, n=1, cutoff=0.75)


def _bare(key: str) -> str:
    return re.sub(r"[._-]", "", key).lower()


def _near(text: str, words: Sequence[str]) -> str | None:
    close = difflib.get_close_matches(text.lower(), words, n=1, cutoff=0.6)
    return close[0] if close else None
