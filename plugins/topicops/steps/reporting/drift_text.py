"""Drift as text, for the command and for Airflow's log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.model.printable import or_not_set, plural, printable
from topicops.steps.planning.drift import DriftEntry, DriftKind, DriftReport, counted


def drift_lines(entries: Sequence[DriftEntry]) -> Iterator[str]:
    """One line for each difference."""
    for entry in entries:
        place = f" ({entry.file}:{entry.line})" if entry.file else ""
        yield printable(f"{entry.topic}: {_difference(entry)}{place}")


def drift_summary(report: DriftReport) -> str:
    """How many topics there are of each kind; where nothing was compared, that is no good news."""
    numbers = [f"{number} {kind}" for kind, number in counted(report.drift).items() if number]
    if numbers:
        return f"Drift, in topics: {', '.join(numbers)}."
    if report.compared:
        return f"No drift: the cluster agrees with the files of {plural(report.compared, 'topic')}."
    if report.only is None:
        return "Nothing was compared: no file describes a topic of this environment."
    return printable(f"Nothing was compared: no described topic matches {report.only}; a glob is of the whole name.")


def _difference(entry: DriftEntry) -> str:
    name, wanted, live = (entry.field or "").removeprefix("configs."), or_not_set(entry.wanted), or_not_set(entry.live)
    match entry.kind:
        case DriftKind.CHANGED:
            return f"{name}: {wanted} in the files, {live} live"
        case DriftKind.UNLISTED:
            return f"{name}: {live} live, but no file names it"
        case DriftKind.MISSING:
            seen = entry.seen
            outside = f"; deleted outside git (id {seen.identity}, seen at {seen.at})" if seen else ""
            return f"described in a file, but not live{outside}"
        case DriftKind.RETIRED:
            return "live, although a tombstone deletes it"
        case DriftKind.UNMANAGED:
            return "live, but no file describes it"
        case DriftKind.BEING_DELETED:
            return "being deleted: marked for deletion, and not gone yet"
