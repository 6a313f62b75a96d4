"""What ``topicops moves`` prints: our moves of an environment by their record, and those of others by the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from topicops.features.moves.telling.progress import MovesProgress, PartitionProgress, TopicProgress, progress_of, speed
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.json_types import FormatVersion
from topicops.model.printable import plural, printable
from topicops.model.runs.moves import EndedMove, MovesRecord, Stage
from topicops.steps.reporting.plan_wording import size_text

State = Literal["waits", "moves", "moves back"]
STATES: Mapping[Stage, State] = {Stage.ACCEPTED: "waits", Stage.ASKED: "moves", Stage.CANCELLING: "moves back"}
SHOWN_ENDED = 10
"""Number of ended moves that the text names."""
SHOWN_PARTITIONS = 50
"""Number of partitions of a topic that the text names."""


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
    """Seconds until its moves end, by the speed so far; None means not known."""
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


def status_of(
    environment: str, record: MovesRecord | None, live: ClusterSnapshot | str | None, now: datetime
) -> MovesStatus:
    """Put together what the record and the cluster say.

    Args:
        live: The cluster of now, or a sentence why it cannot be read; None means that others are not asked for.
    """
    found = progress_of(record, now) if record else MovesProgress()
    return MovesStatus(
        environment=environment,
        text=found.sentence,
        topics=tuple(map(_topic, found.topics)),
        percent=found.percent,
        bytes_per_s=round(found.bytes_per_s),
        left_s=round(found.left.total_seconds()) if found.left is not None else None,
        throttle=found.throttle,
        notes=found.notes,
        stepped_at=found.stepped_at,
        ended=found.ended,
        others=tuple(_others(record, live)) if isinstance(live, ClusterSnapshot) else (),
        others_unread=live if isinstance(live, str) else "",
    )


def _topic(found: TopicProgress) -> TopicStatus:
    return TopicStatus(
        topic=found.topic,
        why=found.why,
        run=found.run,
        text=found.sentence,
        ended=found.ended,
        percent=found.percent,
        bytes_per_s=round(found.bytes_per_s),
        left_s=round(found.left.total_seconds()) if found.left is not None else None,
        partitions=tuple(map(_partition, found.partitions)),
    )


def _partition(found: PartitionProgress) -> PartitionStatus:
    note = found.why_cancelled
    if found.stands_still_since is not None:
        note = f"nothing was copied since {found.stands_still_since:%H:%M} UTC"
    return PartitionStatus(
        partition=found.partition,
        origin=found.origin,
        target=found.target,
        state=STATES[found.stage],
        copied_bytes=found.copied_bytes,
        size_bytes=found.size_bytes,
        bytes_per_s=round(found.bytes_per_s),
        note=note,
    )


def _others(record: MovesRecord | None, live: ClusterSnapshot) -> Iterator[OtherMove]:
    """Yield what Kafka lists and the record does not."""
    ours = {(at.topic, at.partition) for at, _, _ in record.moving()} if record else set()
    of_us = {topic for topic, _ in ours}
    for name, topic in sorted(live.topics.items()):
        for partition in sorted(topic.adding.keys() | topic.removing.keys()):
            adding, removing = topic.adding.get(partition, ()), topic.removing.get(partition, ())
            if (adding or removing) and (name, partition) not in ours:
                yield OtherMove(topic=name, partition=partition, adding=adding, removing=removing)
    for name in sorted(live.reassigning - of_us):
        if name not in live.topics or not live.topics[name].is_reassigning:
            yield OtherMove(topic=name, partition=None, adding=(), removing=())


# ---- the text ----


def status_text(found: MovesStatus) -> str:
    """Return a line about all, a part for each topic of ours, then what waits, what others move, and what has ended."""
    return "\n".join(map(printable, _lines(found)))


def bar(found: MovesStatus, *, width: int = 24) -> str:
    """Return one line for a terminal, which shows how far all moves are."""
    filled = width * (found.percent or 0) // 100
    copied = f", {speed(found.bytes_per_s)}" if found.bytes_per_s else ""
    return f"[{'#' * filled}{'-' * (width - filled)}] {found.text}{copied}"


def _lines(found: MovesStatus) -> Iterator[str]:
    head = [found.text]
    head += [speed(found.bytes_per_s)] if found.bytes_per_s else []
    head += [f"throttle {speed(found.throttle)} for each broker"] if found.throttle is not None else []
    head += [f"last step {found.stepped_at:%Y-%m-%d %H:%M:%S} UTC"] if found.stepped_at and not found.is_idle else []
    yield f"{found.environment}: {'; '.join(head)}"
    for topic in found.topics:
        yield from _topic_lines(topic)
    if found.notes and not found.is_idle:
        yield "Waits, or is still to be done:"
        yield from (f"  {note}" for note in found.notes)
    yield from _other_lines(found)
    if found.ended:
        more = f" (the last {SHOWN_ENDED} of {len(found.ended)})" if len(found.ended) > SHOWN_ENDED else ""
        yield f"Ended{more}:"
        yield from map(_ended_line, found.ended[:SHOWN_ENDED])
    if not found.is_idle:
        yield f"To carry them on until they end: topicops moves --watch --environment {found.environment}"


def _topic_lines(topic: TopicStatus) -> Iterator[str]:
    left = f", {speed(topic.bytes_per_s)}" if topic.bytes_per_s else ""
    yield f"  {topic.topic} ({topic.why}; run {topic.run}): {topic.text}{left}"
    for each in topic.partitions[:SHOWN_PARTITIONS]:
        rows = f"[{_ids(each.origin)}] to [{_ids(each.target)}]"
        copied = ""
        if each.size_bytes and each.state == "moves":
            percent = each.copied_bytes * 100 // each.size_bytes
            copied = f", {percent} % of {size_text(each.size_bytes)}"
            copied += f", {speed(each.bytes_per_s)}" if each.bytes_per_s else ""
        note = f": {each.note}" if each.note else ""
        yield f"    partition {each.partition} {each.state}, {rows}{copied}{note}"
    if more := len(topic.partitions) - SHOWN_PARTITIONS:
        yield from [f"    and {more} more"] if more > 0 else []


def _other_lines(found: MovesStatus) -> Iterator[str]:
    if found.others_unread:
        yield f"Whether others move replicas is not known: {found.others_unread}"
    if found.others:
        yield "Moved by others, which topicops leaves alone:"
    for other in found.others:
        if other.partition is None:
            yield f"  {other.topic}"
            continue
        parts = [f"adds {_ids(other.adding)}"] if other.adding else []
        parts += [f"removes {_ids(other.removing)}"] if other.removing else []
        yield f"  {other.topic}-{other.partition}: {', '.join(parts)}"


def _ended_line(ended: EndedMove) -> str:
    what = f"  {ended.at:%Y-%m-%d %H:%M} UTC  {ended.topic}: {ended.status}, {plural(ended.partitions, 'partition')}"
    return f"{what}: {ended.message}" if ended.message else what


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))
