"""The plain meaning of spans: what was so in runs that follow each other. Spark computes the same at scale."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise

from topicops.model.runs.history import Key, LaneRun, RunPoint, Sighting, Span

Lanes = Mapping[str, Sequence[LaneRun]]
"""The runs of each lane in the order of time."""


def spans(lanes: Lanes, seen: Iterable[Sighting], *, since: datetime | None = None) -> tuple[Span, ...]:
    """All spans, in the order of ``span_order``.

    What an earlier try of a run saw does not count, nor what a run saw that is in no lane.

    Args:
        since: Without the spans that ended before.
    """
    places = {(name, run.run): (number, run) for name, lane in lanes.items() for number, run in enumerate(lane)}
    found: dict[tuple[str, Key], dict[int, str | None]] = defaultdict(dict)
    for lane, run, recorded_at, key, detail in seen:
        place = places.get((lane, run))
        if place is not None and recorded_at >= place[1].recorded_at:
            details = found[lane, key]
            details[place[0]] = _greater(details.get(place[0]), detail)
    every = (span for (lane, key), details in found.items() for span in _of_key(lanes[lane], lane, key, details))
    return tuple(sorted((span for span in every if lasts(span, since)), key=span_order))


def ordered_lanes(runs: Iterable[LaneRun]) -> Lanes:
    """The newest entry of each run, by lane, in the order in which the runs read the cluster."""
    newest: dict[tuple[str, str], LaneRun] = {}
    for run in runs:
        known = newest.get((run.lane, run.run))
        if known is None or known.recorded_at < run.recorded_at:
            newest[run.lane, run.run] = run
    lanes: dict[str, list[LaneRun]] = defaultdict(list)
    for run in sorted(newest.values(), key=lambda run: (run.at, run.run)):
        lanes[run.lane].append(run)
    return lanes


def lasts(span: Span, since: datetime | None) -> bool:
    """Whether it had not ended before."""
    return since is None or span.ended is None or span.ended.at >= since


def span_order(span: Span) -> tuple[object, ...]:
    """By lane, key and time; a null comes before any text."""
    return span.lane, tuple((text is not None, text or "") for text in span.key), span.began.at, span.began.run


def _of_key(lane: Sequence[LaneRun], name: str, key: Key, details: dict[int, str | None]) -> Iterator[Span]:
    numbers = sorted(details)
    starts = [0, *(at for at, (one, other) in enumerate(pairwise(numbers), start=1) if other != one + 1)]
    for start, end in pairwise([*starts, len(numbers)]):
        first, last = numbers[start], numbers[end - 1]
        yield Span(
            lane=name,
            key=key,
            detail=details[last],
            began=_point(lane[first]),
            last=_point(lane[last]),
            ended=_point(lane[last + 1]) if last + 1 < len(lane) else None,
            runs=end - start,
        )


def _point(run: LaneRun) -> RunPoint:
    return RunPoint(run.run, run.at, run.commit)


def _greater(one: str | None, other: str | None) -> str | None:
    """Of two tries of one run that a crash left together."""
    return max(one, other, key=lambda text: (text is not None, text or ""))
