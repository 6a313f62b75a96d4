"""Drift as text and JSON, for the command and for Airflow's log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

from topicops.model.cluster.snapshot import LastSeen
from topicops.model.json_types import FormatVersion
from topicops.model.printable import or_not_set, printable
from topicops.steps.planning.drift import DriftEntry, DriftKind, counted
from topicops.steps.reporting.json_text import json_text

FORMAT_VERSION = "1.0"


class EntryJson(TypedDict):
    topic: str
    kind: DriftKind
    field: str | None
    wanted: str | None
    live: str | None
    seen: LastSeen | None
    file: str | None
    line: int | None


class DriftJson(TypedDict):
    format_version: FormatVersion
    drift: Sequence[EntryJson]


def drift_text(entries: Sequence[DriftEntry]) -> str:
    """The lines of all differences, then the counts."""
    return "\n".join([*drift_lines(entries), *([""] if entries else []), drift_summary(entries)])


def drift_lines(entries: Sequence[DriftEntry]) -> Iterator[str]:
    """One line for each difference."""
    for entry in entries:
        place = f" ({printable(str(entry.location))})" if entry.location else ""
        yield f"{printable(entry.topic)}: {_difference(entry)}{place}"


def drift_summary(entries: Sequence[DriftEntry]) -> str:
    """How many topics there are of each kind."""
    numbers = [f"{number} {kind}" for kind, number in counted(entries).items() if number]
    return f"Drift, in topics: {', '.join(numbers)}." if entries else "No drift: the cluster agrees with the files."


def drift_json(entries: Sequence[DriftEntry]) -> str:
    return json_text(drift_values(entries))


def drift_values(entries: Sequence[DriftEntry]) -> DriftJson:
    """The values of ``drift.json``."""
    return {"format_version": FORMAT_VERSION, "drift": [_entry_json(entry) for entry in entries]}


def _difference(entry: DriftEntry) -> str:
    match entry.kind:
        case DriftKind.CHANGED:
            return f"{_name(entry)}: {_value(entry.wanted)} in the files, {_value(entry.live)} live"
        case DriftKind.UNLISTED:
            return f"{_name(entry)}: {_value(entry.live)} live, but no file names it"
        case DriftKind.MISSING:
            return f"described in a file, but not live{_deleted_outside(entry)}"
        case DriftKind.RETIRED:
            return "live, although a tombstone deletes it"
        case DriftKind.UNMANAGED:
            return "live, but no file describes it"
        case DriftKind.BEING_DELETED:
            return "being deleted: marked for deletion, and not gone yet"


def _deleted_outside(entry: DriftEntry) -> str:
    return printable(f"; deleted outside git (id {entry.seen.identity}, seen at {entry.seen.at})") if entry.seen else ""


def _name(entry: DriftEntry) -> str:
    return printable(entry.field.removeprefix("configs."))


def _value(value: str | None) -> str:
    return printable(or_not_set(value))


def _entry_json(entry: DriftEntry) -> EntryJson:
    return {
        "topic": entry.topic,
        "kind": entry.kind,
        "field": entry.field or None,
        "wanted": entry.wanted,
        "live": entry.live,
        "seen": entry.seen,
        "file": entry.location.file if entry.location else None,
        "line": entry.location.line if entry.location else None,
    }
