"""From nodes to typed values: which fields there are, which are required, and what the text of each field means.

The pydantic models are the schema, but pydantic does not read the file: it gives a whole model or nothing, and the
rules also need the good fields of a file that has a bad one. Each model becomes a table of readers once; a file is then
read in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import TypeVar, assert_never

import msgspec

from topicops.model.cluster.snapshot import Assignment
from topicops.model.codes import Code
from topicops.model.specs.diagnostics import Location, Note
from topicops.model.specs.document import COLON_WITHOUT_BLANK, NULLS, START, Entry, Fields, Items, Node, Span, Text
from topicops.model.specs.environment import Written
from topicops.model.specs.files import (
    EntriesKind,
    IntegerKind,
    Kind,
    ListKind,
    ModelKind,
    PlainKind,
    SizeKind,
    TextKind,
    WordKind,
    fields_of,
)
from topicops.model.specs.spellings import known_unit, likely_unit, plain_number, utc_time
from topicops.model.specs.topic_config import (
    AMBIGUOUS_NUMBER,
    LONGEST_NUMBER,
    AmbiguousNumberError,
    ConfigValueError,
    UnknownUnitError,
    read_duration_ms,
    read_size,
)
from topicops.steps.specs.findings import UNREADABLE, FileFindings, Finding, Unreadable
from topicops.steps.specs.suggestions import hint_for_field, similar_word

T = TypeVar("T")


class Value(msgspec.Struct, frozen=True, gc=False):
    """A field that is in the file."""

    value: object
    """``UNREADABLE``, None (only in configs), a scalar, a ``Section``, a tuple of ``Value``, or a ``Node``."""
    span: Span
    key: Span


class Section(msgspec.Struct, frozen=True, gc=False):
    """A mapping after reading: the fields that are in the file, by their names there."""

    file: str
    first: Span = START
    """Place where a missing field is reported."""
    values: Mapping[str, Value] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, kind: type[T]) -> T | None:
        """Return the value; None if it is missing or unreadable."""
        found = self.values.get(name)
        return found.value if found is not None and isinstance(found.value, kind) else None

    def get_or(self, name: str, default: T) -> T:
        """Return the value; ``default`` if it is missing or unreadable."""
        found = self.get(name, type(default))
        return default if found is None else found

    def is_unreadable(self, name: str) -> bool:
        found = self.values.get(name)
        return found is not None and isinstance(found.value, Unreadable)

    def section(self, name: str) -> Section:
        """Return the mapping below ``name``; empty if there is none."""
        return self.get(name, Section) or Section(self.file)

    def items(self, name: str) -> tuple[Value, ...]:
        return self.get(name, tuple) or ()

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(item.value for item in self.items(name) if isinstance(item.value, str))

    def texts_or_none(self, name: str) -> tuple[str, ...] | None:
        """Return the texts of a list; None if it is missing or unreadable."""
        return None if self.get(name, tuple) is None else self.texts(name)

    def finding(
        self,
        code: Code,
        name: str,
        summary: str,
        remedy: str = "",
        topic: str | None = None,
        *,
        warns: bool = False,
        note: Note | None = None,
    ) -> Finding:
        """Return a problem of the value of this field."""
        return Finding(code, self.file, self.values[name].span, summary, remedy, topic, warns, note)

    def location(self, name: str) -> Location:
        span = self.values[name].span
        return Location(self.file, span.line, span.column)


Reader = Callable[[Node, FileFindings], object]


def read_section(root: Node, model: type[Written], file: str) -> tuple[Section, list[Finding]]:
    """Return every value of ``root`` that ``model`` allows, and a finding for everything else."""
    findings = FileFindings(file)
    read = _model_reader(model, is_file=True)(root, findings)
    return (read if isinstance(read, Section) else Section(file)), findings.found


def _if_fine(suggestion: str | None, node: Text, read: Reader) -> str | None:
    """Return ``suggestion`` if it can be read in the place of ``node`` without a finding."""
    if suggestion is None:
        return None
    trial = FileFindings("")
    read(Text(suggestion, True, node.span), trial)
    return None if trial.found else suggestion


# ---- mappings and lists ----


@cache
def _model_reader(model: type[Written], *, is_file: bool = False) -> Reader:
    """Reads a mapping with the fields of ``model``."""
    fields = fields_of(model)
    readers = {name: _reader_of(field.kind) for name, field in fields.items()}
    required = {name for name, field in fields.items() if field.is_required}
    shared = _SharedEntries()
    find = shared.get

    def read(node: Node, findings: FileFindings) -> Section | Unreadable:
        if not isinstance(node, Fields):
            return _wrong_type(node, findings, "a mapping of fields")
        values: dict[str, Value] = {}
        unknown: list[Entry] = []
        for entry in node.entries:
            known = find(id(entry))
            if known is not None:
                values[known.name] = known.value
                continue
            key, below = entry
            read_field = readers.get(key.text)
            if read_field is None:
                unknown.append(entry)
            elif below.__class__ is not Text or not below.plain or below.text not in NULLS:
                values[key.text] = shared.read(entry, read_field, findings)
        if unknown:
            _add_unknown(unknown, tuple(fields), findings)
        first = START if is_file else node.first
        if required and not required <= values.keys():
            for name in (name for name in fields if name in required and name not in values):
                findings.add(Code.MISSING_FIELD, first, f"{name} is missing")
        return Section(findings.file, first, values)

    return read


def _add_unknown(unknown: Sequence[Entry], names: Sequence[str], findings: FileFindings) -> None:
    """Report fields that are not one of ``names``."""
    for n, (key, _) in enumerate(unknown):
        hint = hint_for_field(key.text, names) if n < _MOST_GUESSED else f"known here: {', '.join(names)}"
        findings.add(Code.UNKNOWN_FIELD, key.span, f"unknown field {key.text}", hint)


_MOST_GUESSED = 100
"""Most unknown fields of a mapping for which a similar known one is searched, which takes long."""


class _ReadEntry(msgspec.Struct, frozen=True, gc=False):
    name: str
    value: Value
    entry: Entry


class _SharedEntries(dict[int, _ReadEntry]):
    """Fields that one reader has read, by the identity of the entry; ``_ReadEntry`` keeps the entry alive.

    Files that have the same line at the same place share its entry (``edges.specs.fast_path``): it is read once.
    """

    _MOST = 1 << 14

    def read(self, entry: Entry, read: Reader, findings: FileFindings) -> Value:
        key, below = entry
        value = Value(read(below, findings), below.span, key.span)
        if below.__class__ is Text and value.value is not UNREADABLE:
            if len(self) == self._MOST:
                self.clear()
            self[id(entry)] = _ReadEntry(key.text, value, entry)
        return value


def _reader_of(kind: Kind) -> Reader:
    match kind:
        case TextKind():
            return _text_reader(kind)
        case WordKind():
            return _word_reader(kind.words)
        case IntegerKind():
            highest = _LARGEST_INTEGER if kind.highest is None else kind.highest
            return partial(read_integer, lowest=kind.lowest or 0, highest=highest)
        case SizeKind():
            return partial(_read_size, lowest=kind.lowest)
        case PlainKind.BOOLEAN | PlainKind.TIME | PlainKind.DURATION:
            scalars = {PlainKind.BOOLEAN: _read_boolean, PlainKind.TIME: _read_time}
            return scalars.get(kind, _read_duration)
        case ListKind():
            return _list_reader(_reader_of(kind.item))
        case EntriesKind():
            return _entries_reader(kind.key, _reader_of(kind.value))
        case PlainKind.CONFIGS:
            return _entries_reader(TextKind(), _text_reader(TextKind(), joined=True), keeps_null=True)
        case ModelKind():
            return _model_reader(kind.model)
        case PlainKind.AS_WRITTEN:
            return lambda node, _: node
        case _:
            assert_never(kind)


def _wrong_type(node: Node, findings: FileFindings, wanted: str, remedy: str = "") -> Unreadable:
    kinds = {Text: "text", Items: "a list", Fields: "a mapping"}
    colon = COLON_WITHOUT_BLANK.fullmatch(node.text) if isinstance(node, Text) else None
    remedy = f"put a blank after the colon: {colon[1]}: {colon[2]}" if colon else remedy
    return findings.add(Code.WRONG_TYPE, node.span, f"{wanted} is needed here, not {kinds[type(node)]}", remedy)


def _list_reader(read_item: Reader) -> Reader:
    def read(node: Node, findings: FileFindings) -> object:
        if not isinstance(node, Items):
            return _wrong_type(node, findings, "a list")
        return tuple(Value(_item(item, findings, read_item), item.span, item.span) for item in node.items)

    return read


def _item(node: Node, findings: FileFindings, read_item: Reader) -> object:
    if isinstance(node, Text) and node.is_null:
        return findings.add(Code.WRONG_TYPE, node.span, "a value is needed here, not nothing")
    return read_item(node, findings)


def _entries_reader(key_kind: TextKind, read_value: Reader, *, keeps_null: bool = False) -> Reader:
    """Reads a mapping whose keys people choose."""
    legal_key = re.compile(key_kind.pattern) if key_kind.pattern else None
    shared = _SharedEntries()

    def read(node: Node, findings: FileFindings) -> object:
        if not isinstance(node, Fields):
            return _wrong_type(node, findings, "a mapping")
        values = {}
        for entry in node.entries:
            known = shared.get(id(entry))
            if known is not None:
                values[known.name] = known.value
                continue
            key, below = entry
            is_legal = legal_key is None or legal_key.fullmatch(key.text) is not None
            if not is_legal:
                findings.add(
                    Code.TEXT_LIMITS, key.span, f"a key matches {key_kind.pattern}; {_shown(key.text)} does not"
                )
            if isinstance(below, Text) and below.is_null:
                if keeps_null:
                    values[key.text] = Value(None, below.span, key.span)
            elif is_legal:
                values[key.text] = shared.read(entry, read_value, findings)
            else:
                values[key.text] = Value(read_value(below, findings), below.span, key.span)
        return Section(findings.file, node.first, values)

    return read


# ---- scalars ----


def _text_reader(kind: TextKind, *, joined: bool = False) -> Reader:
    """Reads a text; ``joined``: Kafka's own form of a list is one text with commas."""
    longest = kind.longest

    def read(node: Node, findings: FileFindings) -> object:
        if not isinstance(node, Text):
            items = [item.text for item in node.items if isinstance(item, Text)] if isinstance(node, Items) else []
            return _wrong_type(
                node, findings, "text", f"write {','.join(items)} in place of the list" if joined and items else ""
            )
        if longest and len(node.text) > longest:
            return findings.add(
                Code.TEXT_LIMITS, node.span, f"{len(node.text):,} characters; at most {longest:,} are kept"
            )
        return node.text

    return read


def _word_reader(words: Collection[str]) -> Reader:
    def read(node: Node, findings: FileFindings) -> object:
        if not isinstance(node, Text):
            return _wrong_type(node, findings, "one word")
        if node.text in words:
            return node.text
        near = similar_word(node.text.lower(), words)
        remedy = f"did you mean {near}?" if near else ""
        return findings.add(Code.OUT_OF_RANGE, node.span, f"{node.text!r} is not one of {', '.join(words)}", remedy)

    return read


_LARGEST_INTEGER = 2**31 - 1
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_SMALL_NUMBERS: Mapping[str, int] = {str(number): number for number in range(1000)}
"""Numbers that people write most, by their one plain spelling."""


def read_integer(
    node: Node, findings: FileFindings, *, lowest: int, highest: int = _LARGEST_INTEGER
) -> int | Unreadable:
    """Return the whole number of a node; it must be spelled so that every reader of YAML gets the same number."""
    if not isinstance(node, Text):
        return findings.add(Code.WRONG_TYPE, node.span, "a whole number is needed here")
    text = node.text
    if text in _SMALL_NUMBERS and lowest <= _SMALL_NUMBERS[text] <= highest:
        return _SMALL_NUMBERS[text]
    text = text.strip()
    if len(text) > LONGEST_NUMBER:
        return findings.add(
            Code.OUT_OF_RANGE, node.span, f"{len(text):,} characters; a number has at most {LONGEST_NUMBER}"
        )
    if AMBIGUOUS_NUMBER.fullmatch(text):
        number = plain_number(text) or ""
        suggestion = number if WHOLE_NUMBER.fullmatch(number) and _is_within(number, lowest, highest) else None
        remedy = f"write {suggestion} if that is meant" if suggestion else "write plain digits"
        return findings.add(Code.AMBIGUOUS_SCALAR, node.span, f"{text} is read differently by different tools", remedy)
    if not WHOLE_NUMBER.fullmatch(text):
        summary = f"a whole number is needed here, not {_shown(text)}"
        return findings.add(Code.WRONG_TYPE, node.span, summary, "write digits alone, as in 12")
    if not _is_within(text, lowest, highest):
        remedy = f"write a number from {lowest}" + (f" to {highest}" if highest < _LARGEST_INTEGER else " up")
        return findings.add(Code.OUT_OF_RANGE, node.span, f"{_shown(text)} is not in {lowest} … {highest}", remedy)
    return int(text)


def _is_within(digits: str, lowest: int, highest: int) -> bool:
    return len(digits) <= 20 and lowest <= int(digits) <= highest


def _shown(text: str) -> str:
    return repr(text) if len(text) <= 40 else f"{text[:37]!r}…"


_WORDS_OF_YAML_1_1: Mapping[str, str] = {"yes": "true", "on": "true", "no": "false", "off": "false"}


def _read_boolean(node: Node, findings: FileFindings) -> object:
    if not isinstance(node, Text):
        return _wrong_type(node, findings, "true or false")
    if node.text in ("true", "false"):
        return node.text == "true"
    if meant := _WORDS_OF_YAML_1_1.get(node.text.lower()):
        return findings.add(Code.AMBIGUOUS_SCALAR, node.span, f"{node.text} is text to some tools", f"write {meant}")
    return findings.add(Code.WRONG_TYPE, node.span, f"true or false is needed here, not {_shown(node.text)}")


_RFC_3339_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|\+00:00)", re.ASCII)


def _read_time(node: Node, findings: FileFindings) -> object:
    if not isinstance(node, Text):
        return _wrong_type(node, findings, "a time")
    try:
        if _RFC_3339_UTC.fullmatch(node.text):
            return datetime.fromisoformat(node.text).astimezone(UTC)
    except ValueError:
        pass  # a day or an hour that does not exist
    suggestion = _if_fine(utc_time(node.text), node, _read_time)
    remedy = f"write {suggestion}" if suggestion else "write it like 2030-01-31T12:00:00Z"
    return findings.add(Code.NO_TIME, node.span, f"{_shown(node.text)} is no time in UTC", remedy)


def _read_duration(node: Node, findings: FileFindings) -> object:
    if not isinstance(node, Text):
        return _wrong_type(node, findings, "a duration such as 30s")
    try:
        return timedelta(milliseconds=read_duration_ms(node.text.strip()))
    except AmbiguousNumberError as error:
        return findings.add(Code.AMBIGUOUS_SCALAR, node.span, str(error), "write plain digits and a unit, as in 30s")
    except UnknownUnitError as error:
        suggestion = _if_fine(known_unit(node.text, "ms"), node, _read_duration)
        remedy = f"write {suggestion}" if suggestion else likely_unit(node.text, "ms")
        return findings.add(Code.UNKNOWN_UNIT, node.span, f"{_shown(node.text)}: {error}", remedy)
    except (ConfigValueError, OverflowError) as error:
        return findings.add(Code.WRONG_TYPE, node.span, f"{_shown(node.text)}: {error}")


def _read_size(node: Node, findings: FileFindings, *, lowest: int) -> object:
    if not isinstance(node, Text):
        return _wrong_type(node, findings, "a size such as 50MiB")
    try:
        size = read_size(node.text.strip())
    except AmbiguousNumberError as error:
        return findings.add(Code.AMBIGUOUS_SCALAR, node.span, str(error), "write plain digits and a unit, as in 50MiB")
    except UnknownUnitError as error:
        suggestion = _if_fine(known_unit(node.text, "bytes"), node, partial(_read_size, lowest=lowest))
        remedy = f"write {suggestion}" if suggestion else likely_unit(node.text, "bytes")
        return findings.add(Code.UNKNOWN_UNIT, node.span, f"{_shown(node.text)}: {error}", remedy)
    except ConfigValueError as error:
        return findings.add(Code.WRONG_TYPE, node.span, f"{_shown(node.text)}: {error}", "write it like 50MiB")
    if size < lowest:
        return findings.add(
            Code.OUT_OF_RANGE, node.span, f"{_shown(node.text)} is below {lowest}", f"write {lowest} or more"
        )
    return size


def read_assignment(node: Node, file: str) -> tuple[Assignment | None, tuple[Finding, ...]]:
    """Return the assignment, or everything that is wrong with it."""
    reading = _AssignmentReader(file)
    match node:
        case Text():
            rows = reading.text_form(node)
        case Fields():
            rows = reading.fields(node)
        case Items():
            reading.findings.add(
                Code.WRONG_TYPE, node.span, "a mapping of partition to brokers is needed here, not a list"
            )
            rows = {}
    return (None if reading.findings.found else rows), tuple(reading.findings.found)


class _AssignmentReader:
    def __init__(self, file: str) -> None:
        self.findings = FileFindings(file)

    def fields(self, node: Fields) -> dict[int, tuple[int, ...]]:
        rows: dict[int, tuple[int, ...]] = {}
        size: int | None = None
        partitions = [read_integer(key, self.findings, lowest=0) for key, _ in node.entries]
        for partition, (_, value) in zip(partitions, node.entries, strict=True):
            row = self._row(value)
            if row is None:
                continue
            size = len(row) if size is None else size
            self._check_row(row, value.span, size)
            if isinstance(partition, int):
                rows[partition] = row
        are_numbers = not any(isinstance(partition, Unreadable) for partition in partitions)
        if are_numbers and (not partitions or set(partitions) != set(range(len(partitions)))):
            self.findings.add(Code.OUT_OF_RANGE, node.span, "partitions run from 0 without a gap")
        return dict(sorted(rows.items()))

    def _row(self, node: Node) -> tuple[int, ...] | None:
        if not isinstance(node, Items):
            self.findings.add(
                Code.WRONG_TYPE, node.span, "a list of broker ids is needed here", "preferred leader first: [1, 2, 3]"
            )
            return None
        brokers = [read_integer(item, self.findings, lowest=0) for item in node.items]
        read = tuple(broker for broker in brokers if isinstance(broker, int))
        return read if len(read) == len(brokers) else None

    def _check_row(self, row: tuple[int, ...], span: Span, size: int) -> None:
        if not row:
            self.findings.add(Code.OUT_OF_RANGE, span, "a partition needs at least one broker")
        elif min(row) < 0:
            self.findings.add(Code.OUT_OF_RANGE, span, f"broker ids start at 0, unlike {min(row)}")
        elif len(set(row)) < len(row):
            self.findings.add(Code.OUT_OF_RANGE, span, "a broker holds one replica of a partition at most")
        elif len(row) != size:
            self.findings.add(Code.OUT_OF_RANGE, span, f"{len(row)} replicas here, {size} in the first row")

    def text_form(self, node: Text) -> dict[int, tuple[int, ...]]:
        """Return Kafka's own form. Source: TopicCommand#parseReplicaAssignment (3.9)."""
        rows = [row.split(":") for row in node.text.split(",")]
        if not all(WHOLE_NUMBER.fullmatch(broker.strip()) and len(broker) < 12 for row in rows for broker in row):
            self.findings.add(
                Code.OUT_OF_RANGE, node.span, "not broker ids joined by : and rows joined by ,", "as in 1:2:3,2:3:1"
            )
            return {}
        assignment = {partition: tuple(map(int, row)) for partition, row in enumerate(rows)}
        for row in assignment.values():
            self._check_row(row, node.span, len(assignment[0]))
            if self.findings.found:
                break  # all rows have one place
        return assignment
