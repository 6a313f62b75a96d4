"""Topics whose replicas move because a plan of topicops asked for it: what verify must know of them, by the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from topicops.model.printable import about, plural
from topicops.model.runs.moves import MovesRecord, PartitionMove, Stage, TopicMove
from topicops.steps.verifying.observation import Moving

STUCK_AFTER = timedelta(minutes=10)
"""A partition that copied nothing for so long, while steps looked at it, is stuck."""


def moving_topics(record: MovesRecord | None) -> Mapping[str, Moving]:
    """Return the moves that have not ended, or still owe something, by topic."""
    return {move.topic: _moving(move, record.stepped_at) for move in record.topics} if record else {}


def _moving(move: TopicMove, measured_at: datetime | None) -> Moving:
    stuck = sum(_is_stuck(found, measured_at) for found in move.partitions.values())
    said = _sentence(move, measured_at)
    return Moving(
        digest=move.digest,
        partitions=move.partitions.keys(),
        sentence=f"{said}; {plural(stuck, 'partition')} copied nothing for {about(STUCK_AFTER.seconds)}"
        if stuck
        else said,
        is_stuck=stuck > 0,
    )


def _is_stuck(found: PartitionMove, measured_at: datetime | None) -> bool:
    """By the time of the last step, and not of now: without a step nobody has looked."""
    since = found.grown_at or found.asked_at
    is_copying = found.stage is Stage.ASKED and found.copied_bytes < found.size_bytes
    return is_copying and since is not None and measured_at is not None and measured_at - since >= STUCK_AFTER


def _sentence(move: TopicMove, measured_at: datetime | None) -> str:
    """Return ``moving 4 of 12 partitions, 61 %, about 40 min``: of those that have not ended."""
    partitions = [*move.partitions.values()]
    if not partitions:
        return "its replicas have moved; its throttle is still to be removed"
    moving = sum(found.stage is not Stage.ACCEPTED for found in partitions)
    if not moving:
        return f"{plural(len(partitions), 'partition')} will move"
    parts = [f"moving {moving} of {plural(len(partitions), 'partition')}", *_forecast(partitions, measured_at)]
    return ", ".join(parts)


def _forecast(partitions: Iterable[PartitionMove], measured_at: datetime | None) -> Iterable[str]:
    """Yield the share that is copied, and the time until the end by the speed so far; nothing before a measurement.

    A partition that was not measured counts as the mean of the others.
    """
    found = [each for each in partitions if each.stage is not Stage.CANCELLING]
    sizes = [each.size_bytes for each in found if each.size_bytes]
    if not sizes:
        return
    size = sum(sizes) + (len(found) - len(sizes)) * sum(sizes) / len(sizes)
    copied = sum(each.copied_bytes for each in found)
    yield f"{copied * 100 // round(size)} %"
    if speed := sum(_speed(each, measured_at) for each in found):
        yield f"about {about((size - copied) / speed)}"


def _speed(found: PartitionMove, measured_at: datetime | None) -> float:
    if found.asked_at is None or measured_at is None or found.copied_bytes >= found.size_bytes:
        return 0.0
    return found.copied_bytes / max(1.0, (measured_at - found.asked_at).total_seconds())
