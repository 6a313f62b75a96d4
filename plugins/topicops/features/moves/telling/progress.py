"""How far the moves of an environment are, by its record: for the command ``moves`` and for pages. Reads nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from topicops.model.plans.changes import MoveReason
from topicops.model.printable import plural
from topicops.model.runs.moves import EndedMove, MovesRecord, PartitionMove, Stage, TopicMove
from topicops.steps.reporting.plan_wording import size_text

STALLED_AFTER = timedelta(minutes=10)
"""A move that copied nothing for so long is said to stand still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProgress:
    partition: int
    origin: tuple[int, ...]
    target: tuple[int, ...]
    stage: Stage
    copied_bytes: int
    size_bytes: int
    """Bytes that the new replicas will have; 0 means not measured yet."""
    bytes_per_s: float = 0.0
    """Speed of late; 0 where it does not move."""
    stands_still_since: datetime | None = None
    """Time at which it last copied something, if that was long ago."""
    why_cancelled: str = ""
    links: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """As ``PartitionMove.links``."""

    @property
    def percent(self) -> int | None:
        """Whole percent that are copied; None means not measured yet."""
        return self.copied_bytes * 100 // self.size_bytes if self.size_bytes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProgress:
    topic: str
    why: MoveReason
    run: str
    ended: int
    """Number of partitions whose move has ended as planned."""
    partitions: tuple[PartitionProgress, ...]
    """Partitions whose move has not ended, by number."""
    percent: int | None
    """Whole percent of the bytes of all its partitions, those included that have ended; None means not known."""
    bytes_per_s: float
    left: timedelta | None
    """Time until its moves end, by the speed so far; None means not known."""
    owes_entries: bool = False
    """Whether entries of ours are still in its throttle lists."""

    @property
    def total(self) -> int:
        return self.ended + len(self.partitions)

    @property
    def moving(self) -> int:
        return self._count(Stage.ASKED)

    @property
    def waiting(self) -> int:
        return self._count(Stage.ACCEPTED)

    @property
    def cancelling(self) -> int:
        return self._count(Stage.CANCELLING)

    @property
    def standing_still(self) -> tuple[PartitionProgress, ...]:
        return tuple(found for found in self.partitions if found.stands_still_since)

    @property
    def sentence(self) -> str:
        """Text such as ``moving 4 of 12 partitions, 61 %, about 40 min``."""
        if not self.partitions:
            return "ended; its throttle entries are still to be removed" if self.owes_entries else "ended"
        parts = [*self._states()]
        if self.percent is not None and (self.moving or self.ended):
            parts.append(f"{self.percent} %")
        if self.left is not None:
            parts.append(f"about {spoken(self.left)}")
        if count := len(self.standing_still):
            parts.append(f"{count} {'stands' if count == 1 else 'stand'} still")
        return ", ".join(parts)

    def _states(self) -> Iterator[str]:
        of_all = f"of {plural(self.total, 'partition')}"
        if self.moving:
            yield f"moving {self.moving:,} {of_all}"
        if self.cancelling:
            yield f"cancelling {self.cancelling:,} {of_all}"
        if self.waiting and not self.moving:
            yield f"{self.waiting:,} {of_all} {'waits' if self.waiting == 1 else 'wait'}"

    def _count(self, stage: Stage) -> int:
        return sum(found.stage is stage for found in self.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovesProgress:
    """All moves of an environment that have not ended."""

    topics: tuple[TopicProgress, ...] = ()
    """In the order in which they were accepted."""
    percent: int | None = None
    bytes_per_s: float = 0.0
    left: timedelta | None = None
    throttle: int | None = None
    """Bytes a second and broker that we have set; the smallest, where a change of it is not everywhere yet. None means
    that no rate of ours is set.
    """
    notes: tuple[str, ...] = ()
    """What waits for what, and what is owed, by the last step."""
    ended: tuple[EndedMove, ...] = ()
    """The newest moves that have ended, newest first."""
    stepped_at: datetime | None = None

    @property
    def sentence(self) -> str:
        """Text about all topics together, such as ``moving 8 of 40 partitions of 3 topics, 20 %, about 2 h``."""
        if not self.topics:
            return "throttle rates are still to be removed" if self.throttle is not None else "nothing moves"
        moving = sum(topic.moving for topic in self.topics)
        total = sum(topic.total for topic in self.topics)
        parts = [f"moving {moving:,} of {plural(total, 'partition')} of {plural(len(self.topics), 'topic')}"]
        parts += [f"{self.percent} %"] if self.percent is not None else []
        parts += [f"about {spoken(self.left)}"] if self.left is not None else []
        return ", ".join(parts)

    def topic(self, name: str) -> TopicProgress | None:
        """Return the moves of one topic; None means that nothing of ours moves there."""
        return next((found for found in self.topics if found.topic == name), None)


def progress_of(record: MovesRecord, now: datetime) -> MovesProgress:
    """Say how far the moves of a record are.

    Speeds and forecasts come from what was copied of late, as steps measured it; never from the throttle, which single
    copies do not reach. A partition that was not measured counts as the mean of the others.
    """
    found = {move.topic: _partitions(move, now) for move in record.topics}
    partitions = [partition for its in found.values() for partition in its]
    moves_now = any(partition.stage is Stage.ASKED for partition in partitions)
    forecast = _Forecast.of(partitions, record.bytes_per_s if moves_now else 0.0)
    topics = tuple(_topic(record, move, found[move.topic], forecast) for move in record.topics)
    ended = sum(topic.ended for topic in topics)
    return MovesProgress(
        topics=topics,
        percent=_percent(partitions, ended),
        bytes_per_s=sum(found.bytes_per_s for found in partitions),
        left=forecast.left,
        throttle=min((owned.rate for owned in record.rates), default=None),
        notes=record.notes,
        ended=record.ended[::-1],
        stepped_at=record.stepped_at,
    )


def spoken(time: timedelta) -> str:
    """Return ``1 min``, ``40 min``, ``3 h 20 min``, ``2 days``: as exact as a forecast can be."""
    minutes = max(1, round(time.total_seconds() / 60))
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        hours, rest = divmod(round(minutes / 10) * 10, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return plural(round(minutes / 60 / 24), "day")


def speed(bytes_per_s: float) -> str:
    """Return ``12.3MiB/s``."""
    return f"{size_text(round(bytes_per_s))}/s"


def _partitions(move: TopicMove, now: datetime) -> tuple[PartitionProgress, ...]:
    return tuple(_partition(partition, found, now) for partition, found in sorted(move.partitions.items()))


def _topic(
    record: MovesRecord, move: TopicMove, partitions: tuple[PartitionProgress, ...], forecast: _Forecast
) -> TopicProgress:
    ended = sum(
        past.partitions
        for past in record.ended
        if past.topic == move.topic and past.run == move.run and past.status == "done" and past.at >= move.accepted_at
    )
    return TopicProgress(
        topic=move.topic,
        why=move.why,
        run=move.run,
        ended=ended,
        partitions=partitions,
        percent=_percent(partitions, ended),
        bytes_per_s=sum(found.bytes_per_s for found in partitions),
        left=forecast.left_of(partitions),
        owes_entries=bool(move.leader_entries or move.follower_entries),
    )


def _partition(partition: int, move: PartitionMove, now: datetime) -> PartitionProgress:
    is_copying = move.stage is Stage.ASKED and move.copied_bytes < move.size_bytes
    last_grown = move.grown_at or move.asked_at
    stalled = is_copying and last_grown is not None and now - last_grown >= STALLED_AFTER
    return PartitionProgress(
        partition=partition,
        origin=move.origin,
        target=move.target,
        stage=move.stage,
        copied_bytes=move.copied_bytes,
        size_bytes=move.size_bytes,
        bytes_per_s=move.bytes_per_s if is_copying else 0.0,
        stands_still_since=last_grown if stalled else None,
        why_cancelled=move.why_cancelled,
        links=move.links,
    )


def _percent(partitions: Iterable[PartitionProgress], ended: int) -> int | None:
    found = [partition for partition in partitions if partition.stage is not Stage.CANCELLING]
    mean = _mean_size(found)
    if not mean:
        return None
    copied = sum(partition.copied_bytes for partition in found) + mean * ended
    return int(copied * 100 / (sum(partition.size_bytes or mean for partition in found) + mean * ended))


def _missing(partition: PartitionProgress, mean: float) -> float:
    if partition.stage is Stage.CANCELLING:
        return 0.0
    return max(0.0, (partition.size_bytes or mean) - partition.copied_bytes)


@dataclass(frozen=True, slots=True)
class _Forecast:
    """When moves end. The copies of one link share its throttle, so that those that wait get the speed of the others.

    A sum over all brokers would forget that the last broker works alone.
    """

    missing: Mapping[tuple[str, int], float]
    """Bytes that each link has to carry."""
    mean: float
    speed: float
    """Bytes a second of the busiest link; 0 means not known."""

    @classmethod
    def of(cls, partitions: Sequence[PartitionProgress], speed: float) -> _Forecast:
        mean, missing = _mean_size(partitions), defaultdict[tuple[str, int], float](float)
        for partition in partitions:
            for link, share in partition.links.items():
                missing[link] += _missing(partition, mean) / share
        return cls(missing, mean, speed)

    @property
    def left(self) -> timedelta | None:
        """Time until all have ended."""
        most = max(self.missing.values(), default=0.0)
        return timedelta(seconds=most / self.speed) if self.speed and most else None

    def left_of(self, partitions: Iterable[PartitionProgress]) -> timedelta | None:
        """Time until some have ended: as long as their links are busy, or less for what is nearly copied."""
        seconds = [self._seconds(partition) for partition in partitions] if self.speed else []
        return timedelta(seconds=max(seconds)) if any(seconds) else None

    def _seconds(self, partition: PartitionProgress) -> float:
        missing = _missing(partition, self.mean)
        busy = max((self.missing[link] for link in partition.links), default=0.0) / self.speed if missing else 0.0
        return min(busy, missing / partition.bytes_per_s) if partition.bytes_per_s else busy


def _mean_size(partitions: Iterable[PartitionProgress]) -> float:
    known = [partition.size_bytes for partition in partitions if partition.size_bytes]
    return sum(known) / len(known) if known else 0.0
