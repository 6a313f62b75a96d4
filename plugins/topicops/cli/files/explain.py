"""``topicops explain``: each value of a topic, with the file and line that it came from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from topicops.cli.cluster.plan import EnvironmentOption, TopicsOption
from topicops.cli.output import print_result
from topicops.model.printable import printable

if TYPE_CHECKING:
    from topicops.steps.specs.explain import Explained, Explanation, Given

FORMAT_VERSION = "1.0"
_WIDEST_VALUE = 60


def explain_command(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    environment: EnvironmentOption,
    topics: TopicsOption = Path("topics"),
    output: Annotated[Literal["text", "json"], typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """Show where each value of a topic comes from, and what it overrode. Opens no connection."""
    from topicops.edges.specs.reader import read_tree
    from topicops.steps.specs.explain import explain
    from topicops.steps.specs.validate import validate

    tree, now = read_tree(topics), datetime.now(UTC)
    validate(tree, environment=environment, now=now).require()
    explanation = explain(tree, topic, environment, now=now)
    print_result(as_json(explanation) if output == "json" else as_text(explanation))


def as_text(explanation: Explanation) -> str:
    """A line for each value and, indented below it, for each value that it overrode."""
    head = f"{explanation.topic} in {explanation.environment}, {explanation.state} ({explanation.location})"
    rows = [row for value in explanation.values for row in _rows(value)]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    lines = [f"  {name:<{widths[0]}}  {value:<{widths[1]}}  {place}" for name, value, place in rows]
    return "\n".join([printable(head), *map(str.rstrip, lines)])


def _rows(value: Explained) -> Iterator[tuple[str, str, str]]:
    yield printable(value.name), _shown(value), _place(value.given)
    for given in value.overrode:
        yield "  instead of", _cut(given.written), _place(given)


def _shown(value: Explained) -> str:
    """``2592000000 (30d)``; the written form beside it where that is another."""
    if value.value is None:
        return "no override (null)"
    words = [word for word in (value.human, _written_differently(value)) if word]
    return _cut(value.value) + (f" ({', '.join(words)})" if words else "")


def _written_differently(value: Explained) -> str:
    written = value.given.written
    return "" if written in (value.value, value.human) else f"written {_cut(written)}"


def _place(given: Given) -> str:
    return f"{given.layer}, {printable(str(given.location))}" if given.location else given.layer


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _WIDEST_VALUE else f"{shown[: _WIDEST_VALUE - 1]}…"


def as_json(explanation: Explanation) -> str:
    """One JSON object, ASCII only."""
    place = explanation.location
    return json.dumps(
        {
            "format_version": FORMAT_VERSION,
            "topic": explanation.topic,
            "environment": explanation.environment,
            "state": explanation.state,
            "file": place.file,
            "line": place.line,
            "values": [_value_as_json(value) for value in explanation.values],
        },
        indent=2,
    )


def _value_as_json(value: Explained) -> dict[str, object]:
    return {
        "name": value.name,
        "value": value.value,
        "human": value.human,
        **_given_as_json(value.given),
        "overrode": [_given_as_json(given) for given in value.overrode],
    }


def _given_as_json(given: Given) -> dict[str, object]:
    """A value that no file says has neither file nor line."""
    place = given.location
    return {
        "written": given.written,
        "layer": given.layer,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }
