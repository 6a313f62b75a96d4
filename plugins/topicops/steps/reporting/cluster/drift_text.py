"""Drift as text and JSON, for the command and for Airflow's log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NotRequired, TypedDict

from topicops.model.cluster.snapshot import LastSeen
from topicops.model.json_types import FormatVersion
from topicops.model.printable import or_not_set, plural, printable
from topicops.steps.planning.drift import DriftEntry, DriftKind, DriftReport, counted
from topicops.steps.reporting.json_text import json_text

FORMAT_VERSION = "1.1"


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
    compared: NotRequired[int]
    """Since 1.1."""
    drift: Sequence[EntryJson]


def drift_text(report: DriftReport) -> str:
    """The lines of all differences, then the counts."""
    lines = list(drift_lines(report.entries))
    return "\n".join([*lines, *([""] if lines else []), drift_summary(report)])


def drift_lines(entries: Sequence[DriftEntry]) -> Iterator[str]:
    """One line for each difference."""
    for entry in entries:
        place = f" ({printable(str(entry.location))})" if entry.location else ""
        yield f"{printable(entry.topic)}: {_difference(entry)}{place}"


def drift_summary(report: DriftReport) -> str:
    """How many topics there are of each kind; where nothing was compared, that is no good news."""
    numbers = [f"{number} {kind}" for kind, number in counted(report.entries).items() if number]
    if numbers:
        return f"Drift, in topics: {', '.join(numbers)}."
    if report.compared:
        return f"No drift: the cluster agrees with the files of {plural(report.compared, 'topic')}."
    if report.only is None:
        return "Nothing was compared: no file describes a topic of this environment."
    return printable(f"Nothing was compared: no described topic matches {report.only}; a glob is of the whole name.")


def drift_json(report: DriftReport) -> str:
    return json_text(drift_values(report))


def drift_values(report: DriftReport) -> DriftJson:
    """The values of ``drift.json``."""
    entries = [_entry_json(entry) for entry in report.entries]
    return {"format_version": FORMAT_VERSION, "compared": report.compared, "drift": entries}


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
