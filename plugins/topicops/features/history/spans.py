"""Read the lines on, from the first: which troubles are open after them, and when each began and ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from topicops.features.history.lines import Key, Moves, Trouble


@dataclass(frozen=True, slots=True)
class RunPoint:
    """A run at which a trouble began or ended."""

    run: str
    at: datetime
    """Time at which the run read the cluster, UTC."""
    commit: str | None


@dataclass(frozen=True, slots=True)
class Span:
    """The time in which a trouble lasted."""

    what: Trouble
    began: RunPoint
    """First run that saw it."""
    ended: RunPoint | None = None
    """First run that looked for it and did not see it; None means that it lasts."""


@dataclass(slots=True)
class Spans:
    """What lines add up to."""

    open: dict[tuple[type, Key], Span] = field(default_factory=dict)
    ended: list[Span] = field(default_factory=list)
    newest: RunPoint | None = None
    """Last run that looked for troubles."""


def spans_of(lines: Iterable[Moves]) -> Spans:
    found = Spans()
    for line in lines:
        point = RunPoint(line.run, line.at, line.commit)
        for trouble in line.closed:
            if span := found.open.pop(identity(trouble), None):
                found.ended.append(replace(span, ended=point))
        for trouble in line.opened:
            found.open.setdefault(identity(trouble), Span(trouble, point))
        if line.has_looked and not is_older(point.at, found.newest):
            found.newest = point
    return found


def identity(trouble: Trouble) -> tuple[type, Key]:
    return type(trouble), trouble.key


def is_older(at: datetime, newest: RunPoint | None) -> bool:
    return newest is not None and at < newest.at


def in_order(spans: Iterable[Span]) -> Sequence[Span]:
    """By trouble, then by time; None comes before any text."""

    def order(span: Span) -> tuple[object, ...]:
        kind, key = identity(span.what)
        return kind.__name__, tuple((value is not None, value or "") for value in key), span.began.at

    return sorted(spans, key=order)
