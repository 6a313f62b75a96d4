"""Rows of the history's tables as lanes and sightings; Spark makes the same from the same columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from topicops.model.runs.history import LaneRun, Sighting, SpanQuestion

RUN_COLUMNS = ("run", "recorded_at", "read_at", "commit", "compared", "checked_before", "checked_after")


def sighting_columns(question: SpanQuestion) -> tuple[str, ...]:
    """The columns that ``sightings`` takes, in order."""
    lane = (question.lane,) if question.lane else ()
    success = ("success",) if question.failed_only else ()
    return ("run", "recorded_at", question.detail, *question.key, *lane, *success)


def lane_runs(question: SpanQuestion, runs: Iterable[tuple[Any, ...]]) -> Iterator[LaneRun]:
    """The runs of each lane, from rows of ``RUN_COLUMNS``; of a run that was recorded again only the newest."""
    newest: dict[str, tuple[Any, ...]] = {}
    for values in runs:
        known = newest.get(values[0])
        if known is None or known[1] < values[1]:
            newest[values[0]] = values
    for lane, column in question.lanes.items():
        place = RUN_COLUMNS.index(column)
        for values in newest.values():
            run, recorded_at, read_at, commit = values[:4]
            if values[place]:
                yield LaneRun(lane, run, recorded_at, read_at or recorded_at, commit)


def sightings(question: SpanQuestion, rows: Iterable[tuple[Any, ...]]) -> Iterator[Sighting]:
    """One for each row that the question is about."""
    columns, width = sighting_columns(question), 3 + len(question.key)
    lane = columns.index(question.lane) if question.lane else None
    for row in rows:
        if question.failed_only and row[-1]:
            continue
        run, recorded_at, detail, *key = row[:width]
        yield Sighting(
            lane="" if lane is None else row[lane],
            run=run,
            recorded_at=recorded_at,
            key=tuple(None if value is None else str(value) for value in key),
            detail=None if detail is None else str(detail),
        )
