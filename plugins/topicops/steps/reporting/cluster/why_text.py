"""The answer of ``why`` as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

from topicops.model.json_types import FormatVersion
from topicops.model.printable import printable
from topicops.model.why_facts import Cause
from topicops.steps.reporting.json_text import json_text

FORMAT_VERSION = "1.0"


class WhyJson(TypedDict):
    format_version: FormatVersion
    environment: str
    topic: str
    causes: Sequence[Cause]


def why_text(environment: str, topic: str, causes: Sequence[Cause]) -> str:
    """A part for each cause: what is so, what ends it, what to type, and where it was read."""
    name = printable(f"{topic} in {environment}:")
    if not causes:
        return f"{name} nothing is wrong with it, neither in its metadata nor on its brokers."
    return "\n\n".join([name, *("\n".join(map(printable, _lines(cause))) for cause in causes)])


def why_json(environment: str, topic: str, causes: Sequence[Cause]) -> str:
    value: WhyJson = {
        "format_version": FORMAT_VERSION,
        "environment": environment,
        "topic": topic,
        "causes": causes,
    }
    return json_text(value)


def _lines(cause: Cause) -> Iterator[str]:
    yield f"{cause.kind}: {cause.message}"
    yield f"  way out: {cause.way_out}"
    if cause.last_resort:
        yield f"  last resort: {cause.last_resort}"
    yield from (f"    {command}" for command in cause.commands)
    if cause.caution:
        yield f"  careful: {cause.caution}"
    yield f"  read from: {', '.join(cause.read_from)}"
