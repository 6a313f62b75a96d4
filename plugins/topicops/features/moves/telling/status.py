"""How far the moves of an environment are: ours by their record, those of others by what Kafka lists. Reads nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from topicops.features.moves.record import EndedMove, MovesRecord, PartitionMove, Stage, TopicMove
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.json_types import FormatVersion
from topicops.model.printable import about, plural

State = Literal["waits", "moves", "moves back"]
STATES: Mapping[Stage, State] = {Stage.ACCEPTED: "waits", Stage.ASKED: "moves", Stage.CANCELLING: "moves back"}
STILL_AFTER = timedelta(minutes=10)
"""A move that copied nothing for so long, while steps looked at it, stands still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    partition: int
    origin: tuple[int, ...]
    """Replicas before the move."""
    target: tuple[int, ...]
    """Replicas after it, preferred leader first."""
    state: State
    copied_bytes: int
    size_bytes: int
    """Bytes that the new replicas will have; 0 means not measured yet."""
    bytes_per_s: int
    note: str
    """Sentence about what is wrong with it; empty: nothing."""

    @property
    def percent(self) -> int | None:
        """Whole percent that are copied; None means not measured yet."""
        return self.copied_bytes * 100 // self.size_bytes if self.size_bytes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    topic: str
    why: str
    """Reason of the move: ``factor``, ``assignment``, ``drain``, ``racks`` or ``balance``."""
    run: str
    """Run that accepted it, ``<group>/<run id>``."""
    text: str
    """Text such as ``moving 4 of 12 partitions, 61 %, about 40 min``."""
    ended: int
    """Number of partitions whose move has ended as planned."""
    percent: int | None
    """Whole percent of all bytes that are copied; None means not known."""
    bytes_per_s: int
    left_s: int | None
    """Seconds until its moves end, by the speed of late; None means not known."""
    partitions: tuple[PartitionStatus, ...]
    """Partitions whose move has not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherMove:
    """A partition that somebody else moves."""

    topic: str
    partition: int | None
    """None means that Kafka tells the topic alone, as before 2.4."""
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MovesStatus:
    """All moves of one cluster: ours by the record of the last step, those of others by Kafka's listing of now."""

    format_version: FormatVersion = "1.0"
    environment: str
    text: str
    """Text about all of ours together."""
    topics: tuple[TopicStatus, ...]
    """Topics of ours whose moves have not ended, in the order in which they were accepted."""
    percent: int | None
    bytes_per_s: int
    left_s: int | None
    throttle: int | None
    """Bytes a second and broker that topicops has set; None means that it has set no rate."""
    notes: tuple[str, ...]
    """What waits for what, and what is owed to the cluster, by the last step."""
    stepped_at: datetime | None
    """Time of the last step; None means that there was none."""
    ended: tuple[EndedMove, ...]
    """The newest moves that have ended, newest first."""
    others: tuple[OtherMove, ...] = ()
    others_unread: str = ""
    """Reason why the moves of others are not known; empty: they are."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing of ours moves, waits or is owed."""
        return not self.topics and self.throttle is None


def status_of(environment: str, record: MovesRecord | None) -> MovesStatus:
    """Say how far the moves of a record are; None: there was none yet.

    Speeds and forecasts come from what was copied of late, as steps measured it; never from the throttle, which single
    copies do not reach. A partition that was not measured counts as the mean of the others.
    """
    record = record or MovesRecord(cluster_id="")
    partitions = [found for move in record.topics for found in move.partitions.values()]
    forecast = _Forecast.of(partitions, record.bytes_per_s)
    topics = tuple(_topic(record, move, forecast) for move in record.topics)
    together = _Count(partitions, sum(topic.ended for topic in topics), record.stepped_at, forecast.left_s)
    text = "throttle rates are still to be removed" if record.rates else "nothing moves"
    if topics:
        of_all = f"{plural(together.total, 'partition')} of {plural(len(topics), 'topic')}"
        text = ", ".join([f"moving {together.of(Stage.ASKED):,} of {of_all}", *together.figures()])
    return MovesStatus(
        environment=environment,
        text=text,
        topics=topics,
        percent=together.percent,
        bytes_per_s=round(together.bytes_per_s),
        left_s=together.left_s,
        throttle=min((owned.rate for owned in record.rates), default=None),
        notes=record.notes,
        stepped_at=record.stepped_at,
        ended=record.ended[::-1],
    )


def notes_about(notes: Iterable[str], topic: str) -> Iterator[str]:
    """Yield the notes of a step about one topic, which begin with its name and maybe partitions."""
    begins = (f"{topic}: ", f"{topic} partition ", f"{topic} partitions ")
    return (said for said in notes if said.startswith(begins))


def stands_still(found: PartitionMove, measured_at: datetime | None) -> bool:
    """By the time of the last step, and not of now: without a step nobody has looked."""
    since = found.grown_at or found.asked_at
    return bool(_is_copying(found) and since and measured_at and measured_at - since >= STILL_AFTER)


def _is_copying(found: PartitionMove) -> bool:
    return found.stage is Stage.ASKED and found.copied_bytes < found.size_bytes


def _speed(found: PartitionMove) -> float:
    return found.bytes_per_s if _is_copying(found) else 0.0


def _missing(found: PartitionMove, mean: float) -> float:
    """Return the bytes that are still to be copied; what is cancelled is not awaited."""
    return 0.0 if found.stage is Stage.CANCELLING else max(0.0, (found.size_bytes or mean) - found.copied_bytes)


def _mean_size(partitions: Iterable[PartitionMove]) -> float:
    known = [found.size_bytes for found in partitions if found.size_bytes and found.stage is not Stage.CANCELLING]
    return sum(known) / len(known) if known else 0.0


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
    def of(cls, partitions: Sequence[PartitionMove], speed: float) -> _Forecast:
        mean, missing = _mean_size(partitions), defaultdict[tuple[str, int], float](float)
        for found in partitions:
            for link, share in found.links.items():
                missing[link] += _missing(found, mean) / share
        return cls(missing, mean, speed if any(found.stage is Stage.ASKED for found in partitions) else 0.0)

    @property
    def left_s(self) -> int | None:
        """Seconds until all have ended."""
        most = max(self.missing.values(), default=0.0)
        return round(most / self.speed) if self.speed and most else None

    def left_s_of(self, partitions: Iterable[PartitionMove]) -> int | None:
        """Seconds until some have ended: as long as their links are busy, or less for what is nearly copied."""
        seconds = [self._seconds(found) for found in partitions] if self.speed else []
        return round(max(seconds)) if any(seconds) else None

    def _seconds(self, found: PartitionMove) -> float:
        missing = _missing(found, self.mean)
        busy = max((self.missing[link] for link in found.links), default=0.0) / self.speed if missing else 0.0
        return min(busy, missing / speed) if (speed := _speed(found)) else busy


@dataclass(frozen=True, slots=True)
class _Count:
    """Partitions of one topic or of all, counted together."""

    partitions: Sequence[PartitionMove]
    """Those whose move has not ended."""
    ended: int
    """Number of those whose move has ended as planned."""
    measured_at: datetime | None
    left_s: int | None
    """Seconds until they end; None means not known."""

    @property
    def total(self) -> int:
        return self.ended + len(self.partitions)

    def of(self, stage: Stage) -> int:
        return sum(found.stage is stage for found in self.partitions)

    @property
    def percent(self) -> int | None:
        mean = _mean_size(self.partitions)
        copied = sum(found.copied_bytes for found in self._awaited) + mean * self.ended
        size = sum(found.size_bytes or mean for found in self._awaited) + mean * self.ended
        return int(copied * 100 / size) if size else None

    @property
    def bytes_per_s(self) -> float:
        return sum(map(_speed, self.partitions))

    def figures(self) -> Iterator[str]:
        """Yield ``61 %`` and ``about 40 min``, as far as they are known."""
        if self.percent is not None:
            yield f"{self.percent} %"
        if self.left_s is not None:
            yield f"about {about(self.left_s)}"

    @property
    def _awaited(self) -> Sequence[PartitionMove]:
        """What is cancelled is neither copied nor awaited."""
        return [found for found in self.partitions if found.stage is not Stage.CANCELLING]


def _topic(record: MovesRecord, move: TopicMove, forecast: _Forecast) -> TopicStatus:
    ended = sum(
        past.partitions
        for past in record.ended
        if past.topic == move.topic and past.run == move.run and past.status == "done" and past.at >= move.accepted_at
    )
    partitions = [*move.partitions.values()]
    count = _Count(partitions, ended, record.stepped_at, forecast.left_s_of(partitions))
    owes = "; its throttle entries are still to be removed" if move.leader_entries or move.follower_entries else ""
    return TopicStatus(
        topic=move.topic,
        why=move.why.value,
        run=move.run,
        text=", ".join(_words(count)) if count.partitions else f"ended{owes}",
        ended=ended,
        percent=count.percent,
        bytes_per_s=round(count.bytes_per_s),
        left_s=count.left_s,
        partitions=tuple(_partition(p, found, record.stepped_at) for p, found in sorted(move.partitions.items())),
    )


def _words(count: _Count) -> Iterator[str]:
    of_all = f"of {plural(count.total, 'partition')}"
    moving, waiting, cancelling = (count.of(stage) for stage in (Stage.ASKED, Stage.ACCEPTED, Stage.CANCELLING))
    if moving:
        yield f"moving {moving:,} {of_all}"
    if cancelling:
        yield f"cancelling {cancelling:,} {of_all}"
    if waiting and not moving:
        yield f"{waiting:,} {of_all} {'waits' if waiting == 1 else 'wait'}"
    yield from count.figures()
    if still := sum(stands_still(found, count.measured_at) for found in count.partitions):
        yield f"{still} {'stands' if still == 1 else 'stand'} still"


def _partition(partition: int, found: PartitionMove, measured_at: datetime | None) -> PartitionStatus:
    is_still, since = stands_still(found, measured_at), found.grown_at or found.asked_at
    return PartitionStatus(
        partition=partition,
        origin=found.origin,
        target=found.target,
        state=STATES[found.stage],
        copied_bytes=found.copied_bytes,
        size_bytes=found.size_bytes,
        bytes_per_s=round(_speed(found)),
        note=f"nothing was copied since {since:%H:%M} UTC" if is_still else found.why_cancelled,
    )


def moves_of_others(record: MovesRecord | None, live: ClusterSnapshot) -> Iterator[OtherMove]:
    """Yield what Kafka lists and the record does not."""
    ours = {(at.topic, at.partition) for at, _, _ in record.moving()} if record else set()
    of_us = {topic for topic, _ in ours}
    for name, topic in sorted(live.topics.items()):
        for partition in sorted(topic.moving):
            if (name, partition) not in ours:
                adding, removing = topic.adding.get(partition, ()), topic.removing.get(partition, ())
                yield OtherMove(topic=name, partition=partition, adding=adding, removing=removing)
    for name in sorted(live.reassigning - of_us):
        if name not in live.topics or not live.topics[name].is_reassigning:
            yield OtherMove(topic=name, partition=None, adding=(), removing=())
