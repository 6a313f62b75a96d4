"""Drift as lines and as JSON, for the command and for Airflow's log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.model.printable import printable
from topicops.steps.planning.drift import DriftEntry, DriftKind, counted

FORMAT_VERSION = "1.0"


def drift_lines(entries: Sequence[DriftEntry]) -> Iterator[str]:
    """One for each difference."""
    for entry in entries:
        place = f" ({printable(str(entry.location))})" if entry.location else ""
        yield f"{printable(entry.topic)}: {_difference(entry)}{place}"


def drift_summary(entries: Sequence[DriftEntry]) -> str:
    """How many topics there are of each kind."""
    numbers = [f"{number} {kind}" for kind, number in counted(entries).items() if number]
    return f"Drift, in topics: {', '.join(numbers)}." if entries else "No drift: the cluster is as the files say."


def drift_json(entries: Sequence[DriftEntry]) -> dict[str, object]:
    return {"format_version": FORMAT_VERSION, "drift": [_entry_json(entry) for entry in entries]}


def _difference(entry: DriftEntry) -> str:
    match entry.kind:
        case DriftKind.CHANGED:
            return f"{_name(entry)}: {_shown(entry.wanted)} in the files, {_shown(entry.live)} live"
        case DriftKind.UNLISTED:
            return f"{_name(entry)}: {_shown(entry.live)} live, and no file names it"
        case DriftKind.MISSING:
            return "not live, and described"
        case DriftKind.RETIRED:
            return "live, and its tombstone says absent"
        case DriftKind.UNMANAGED:
            return "live, and no file describes it"


def _name(entry: DriftEntry) -> str:
    return printable(entry.field.removeprefix("configs."))


def _shown(value: str | None) -> str:
    return "not set" if value is None else printable(value)


def _entry_json(entry: DriftEntry) -> dict[str, object]:
    return {
        "topic": entry.topic,
        "kind": entry.kind.value,
        "field": entry.field or None,
        "wanted": entry.wanted,
        "live": entry.live,
        "file": entry.location.file if entry.location else None,
        "line": entry.location.line if entry.location else None,
    }
