"""What ``topicops import`` wrote and left out, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

from topicops.model.codes import Code
from topicops.model.json_types import FormatVersion
from topicops.model.printable import plural, printable
from topicops.steps.authoring.exceptions_file import WrittenException
from topicops.steps.authoring.import_topics import ImportResult
from topicops.steps.authoring.importable import InexpressibleOverride
from topicops.steps.reporting.json_text import json_text

FORMAT_VERSION = "1.0"


class LeftOutJson(TypedDict):
    topic: str
    code: str | None
    reason: str


class ImportJson(TypedDict):
    format_version: FormatVersion
    imported: Sequence[str]
    files: Sequence[str]
    exceptions: Sequence[WrittenException]
    left_out: Sequence[LeftOutJson]
    unsayable: Sequence[InexpressibleOverride]
    protected: Sequence[str]
    described: Sequence[str]


def import_text(result: ImportResult) -> str:
    """The new files, then everything that a person may not expect with its reason, then the counts."""
    return "\n".join(_lines(result))


def import_json(result: ImportResult) -> str:
    found: ImportJson = {
        "format_version": FORMAT_VERSION,
        "imported": result.topics,
        "files": list(result.files),
        "exceptions": result.exceptions,
        "left_out": [{"topic": e.topic, "code": e.code, "reason": e.reason} for e in result.left_out],
        "unsayable": result.inexpressible,
        "protected": result.protected,
        "described": result.described,
    }
    return json_text(found)


def _lines(result: ImportResult) -> Iterator[str]:
    files = [path for path in result.files if path not in result.profiles]
    yield from _section("Imported", "topic", files)
    yield from _section("New profiles", "profile", result.profiles)
    exceptions = [f"{e.topic}: {e.code}: {e.reason}" for e in result.exceptions]
    yield from _section("Exceptions written", "exception", exceptions)
    left_out = [f"{each.topic}: {_coded(each.code, each.reason)}" for each in result.left_out]
    yield from _section("Left out", "topic", left_out)
    inexpressible = [f"{o.topic}: {_coded(o.code, o.reason)}" for o in result.inexpressible]
    yield from _section("Overrides that no spec may name", "override", inexpressible)
    yield from _section("Protected, skipped", "topic", result.protected)
    yield (
        f"{plural(len(result.topics), 'topic')} imported, {plural(len(result.profiles), 'new profile')}, "
        f"{plural(len(result.exceptions), 'exception')}, {len(result.left_out)} left out, "
        f"{len(result.protected)} protected, {len(result.described)} described before."
    )


def _section(title: str, noun: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"{title} ({plural(len(lines), noun)}):"
        yield from (f"  {printable(line)}" for line in lines)
        yield ""


def _coded(code: Code | None, reason: str) -> str:
    return f"{code}: {reason}" if code else reason
