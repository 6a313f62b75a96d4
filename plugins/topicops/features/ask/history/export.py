"""The history as tables for other programs: ``topicops audit export``. The docs say what each column means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from topicops.edges.places import Place
from topicops.edges.tables.results import write_rows
from topicops.edges.tables.schemas import schema_of
from topicops.edges.tables.table_folder import TableFolder
from topicops.features.ask.history.file import read_history
from topicops.features.ask.history.lines import HistoryLine, Span, in_order, spans_of
from topicops.model.errors import UsageError

_OF_RUN = "environment text, run text, read_at time, day day, cluster_id text"
SCHEMAS = {
    "runs": schema_of(
        f"{_OF_RUN}, mode text, source text, commit text, topics long, partitions long, brokers long, differing long, "
        "unhealthy long, lasted_s double, changes long, held long, skipped long, blocked long, in_place long, "
        "not_in_place long"
    ),
    "owners": schema_of(
        f"{_OF_RUN}, owner text, domain text, topics long, partitions long, missing long, different long, "
        "tombstoned long, unhealthy long"
    ),
    "outcomes": schema_of(f"{_OF_RUN}, topic text, action text, status text, message text"),
    "troubles": schema_of(
        "environment text, kind text, topic text, partition int, class text, field text, desired text, live text, "
        "owner text, suite text, rule text, severity text, rows_failed long, shown text, began_at time, "
        "began_run text, ended_at time, ended_run text"
    ),
}
"""Schemas by the name of the table."""
_Row = Mapping[str, Any]


def export(home: Place, environments: Sequence[str], to: str) -> tuple[Mapping[str, int], Sequence[str]]:
    """Write the tables; each file is replaced whole.

    Returns the number of rows by table, and a sentence about each line of the history that cannot be read.

    Raises ``UsageError`` where no environment, or one of these, has a history, and ``ArtifactError`` where ``to``
    cannot be written.
    """
    if not environments:
        raise UsageError(f"{home / 'history'}: no run of this TOPICOPS_HOME has left a history")
    folder = TableFolder.at(to if "://" in to else Path(to))
    rows: dict[str, list[_Row]] = {name: [] for name in SCHEMAS}
    left_out: list[str] = []
    for environment in environments:
        lines, problems = read_history(home, environment)
        left_out += problems
        for table, found in _tables_of(environment, lines).items():
            rows[table] += found
    for name, schema in SCHEMAS.items():
        write_rows(folder, name, schema, rows[name])
    return {name: len(found) for name, found in rows.items()}, left_out


def _tables_of(environment: str, lines: Sequence[HistoryLine]) -> Mapping[str, Iterable[_Row]]:
    """Return the rows of each table; of several lines of a run the last one has its numbers."""
    runs = sorted({line.run: line for line in lines}.values(), key=lambda line: line.at)
    known = spans_of(lines)
    return {
        "runs": _runs(runs),
        "owners": (_of_run(run) | asdict(owner) for run in runs for owner in run.owners),
        "outcomes": (_of_run(run) | asdict(outcome) for run in runs for outcome in run.outcomes),
        "troubles": (_trouble(environment, span) for span in in_order([*known.ended, *known.open.values()])),
    }


def _of_run(line: HistoryLine) -> dict[str, Any]:
    same = {name: getattr(line, name) for name in ("environment", "run", "cluster_id")}
    return same | {"read_at": line.at, "day": line.at.astimezone(UTC).date()}


def _runs(runs: Sequence[HistoryLine]) -> Iterator[_Row]:
    """Yield a row for each run, with the time until the next one that knew how many partitions are unhealthy."""
    counted = [run for run in runs if run.unhealthy is not None]
    until = {run.run: after.at - run.at for run, after in pairwise(counted)}
    names = ("mode", "source", "commit", "topics", "partitions", "brokers", "differing", "unhealthy")
    for run in runs:
        numbers = {name: getattr(run, name) for name in (*names, "in_place", "not_in_place")}
        lasted = {"lasted_s": until[run.run].total_seconds() if run.run in until else None}
        yield _of_run(run) | numbers | lasted | (asdict(run.plan) if run.plan else {})


def _trouble(environment: str, span: Span) -> _Row:
    began, ended = span.began, span.ended
    when = {"began_at": began.at, "began_run": began.run}
    if ended:
        when |= {"ended_at": ended.at, "ended_run": ended.run}
    return {"environment": environment, **msgspec.to_builtins(span.what), **when}
