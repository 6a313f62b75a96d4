"""The values of one topic, each with the file and line that gives it, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NotRequired, TypedDict

from topicops.model.json_types import FormatVersion
from topicops.model.printable import printable
from topicops.steps.reporting.json_text import json_text
from topicops.steps.specs.explain import Explained, Explanation, Given

FORMAT_VERSION = "1.1"
"""1.1 added ``kafka_version`` and ``later``."""
_WIDEST_VALUE = 60


class GivenJson(TypedDict):
    written: str
    layer: str
    file: str | None
    """None, as line and column: no file gives the value."""
    line: int | None
    column: int | None


class ValueJson(GivenJson):
    name: str
    value: str | None
    human: str | None
    later: NotRequired[str | None]
    """Why brokers of a later release refuse the value."""
    overrode: Sequence[GivenJson]


class ExplanationJson(TypedDict):
    format_version: FormatVersion
    topic: str
    environment: str
    state: str
    file: str
    line: int
    kafka_version: NotRequired[str]
    """The release by whose rules configs are checked."""
    values: Sequence[ValueJson]


def explain_text(explanation: Explanation) -> str:
    """One line for each value; indented below it, one for each value that it overrode."""
    head = f"{explanation.topic} in {explanation.environment}, {explanation.state} ({explanation.location})"
    rows = [row for value in explanation.values for row in _rows(value)]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    lines = [f"  {name:<{widths[0]}}  {value:<{widths[1]}}  {place}" for name, value, place in rows]
    return "\n".join([printable(head), *_rules(explanation), *map(str.rstrip, lines)])


def _rules(explanation: Explanation) -> Iterator[str]:
    """By whose rules configs are checked, where there are any; what a later release refuses stands at the value."""
    if any(value.name.startswith("configs.") for value in explanation.values):
        place = explanation.release_location or "by default"
        yield printable(f"  configs by the rules of Kafka {explanation.release} (cluster.kafkaVersion, {place})")


def explain_json(explanation: Explanation) -> str:
    place = explanation.location
    found: ExplanationJson = {
        "format_version": FORMAT_VERSION,
        "topic": explanation.topic,
        "environment": explanation.environment,
        "state": explanation.state,
        "file": place.file,
        "line": place.line,
        "kafka_version": str(explanation.release),
        "values": [_value_as_json(value) for value in explanation.values],
    }
    return json_text(found)


def _rows(value: Explained) -> Iterator[tuple[str, str, str]]:
    yield printable(value.name), _value(value), _place(value.given)
    for given in value.overrode:
        yield "  instead of", _cut(given.written), _place(given)


def _value(value: Explained) -> str:
    """``2592000000 (30d)``; also the written form where it differs from both."""
    if value.value is None:
        return "no override (null)"
    remarks = [remark for remark in (value.human, _written_differently(value), value.later) if remark]
    return _cut(value.value) + (f" ({', '.join(remarks)})" if remarks else "")


def _written_differently(value: Explained) -> str:
    written = value.given.written
    return "" if written in (value.value, value.human) else f"written {_cut(written)}"


def _place(given: Given) -> str:
    return f"{given.layer}, {printable(str(given.location))}" if given.location else given.layer


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _WIDEST_VALUE else f"{shown[: _WIDEST_VALUE - 1]}…"


def _value_as_json(value: Explained) -> ValueJson:
    return {
        "name": value.name,
        "value": value.value,
        "human": value.human,
        "later": value.later,
        **_given_as_json(value.given),
        "overrode": [_given_as_json(given) for given in value.overrode],
    }


def _given_as_json(given: Given) -> GivenJson:
    place = given.location
    return {
        "written": given.written,
        "layer": given.layer,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }
