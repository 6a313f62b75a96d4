"""The values of one topic as text, each with the file and line that gives it."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.features.explain.explanation import Explained, Explanation
from topicops.model.printable import printable

_WIDEST_VALUE = 60


def explain_text(explanation: Explanation) -> str:
    """Return one line for each value; indented below it, one for each value that it overrode."""
    place = f"{explanation.file}:{explanation.line}"
    head = [f"{explanation.topic} in {explanation.environment}, {explanation.state} ({place})"]
    if any(value.name.startswith("configs.") for value in explanation.values):
        place = explanation.kafka_version_place or "by default"
        head.append(f"  configs by the rules of Kafka {explanation.kafka_version} (cluster.kafkaVersion, {place})")
    rows = [row for value in explanation.values for row in _rows(value)]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    lines = [f"  {name:<{widths[0]}}  {value:<{widths[1]}}  {place}" for name, value, place in rows]
    return "\n".join([*map(printable, head), *map(str.rstrip, lines)])


def _rows(value: Explained) -> Iterator[tuple[str, str, str]]:
    yield printable(value.name), _value(value), printable(value.place)
    for given in value.overrode:
        yield "  instead of", _cut(given.written), printable(given.place)


def _value(value: Explained) -> str:
    """``2592000000 (30d)``; also the written form where it differs from both."""
    if value.value is None:
        return "no override (null)"
    written = "" if value.written in (value.value, value.human) else f"written {_cut(value.written)}"
    remarks = [remark for remark in (value.human, written, value.later) if remark]
    return _cut(value.value) + (f" ({', '.join(remarks)})" if remarks else "")


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _WIDEST_VALUE else f"{shown[: _WIDEST_VALUE - 1]}…"
