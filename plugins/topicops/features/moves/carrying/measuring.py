"""How far the copies are by the sizes of logs: what stands still, what fills a disk, which throttle is too low."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import exp

from topicops.features.moves.carrying.ending import behind
from topicops.features.moves.carrying.ports import LogSizes
from topicops.features.moves.carrying.reading import Now, Reading
from topicops.features.moves.carrying.records import with_partitions
from topicops.features.moves.carrying.sending import Sender, named
from topicops.features.moves.carrying.values import MoveSettings
from topicops.features.moves.record import Moving, PartitionMove, TopicPartition

SPEED_OF_LATE = timedelta(minutes=3)
"""Time after which a speed counts for a third: longer than the 11 s of which Kafka's throttle is the average."""
GAP_GROWS = timedelta(minutes=5)
"""Time after which a throttle is too low if the bytes left to copy have not become fewer."""

Sizes = Mapping[int, LogSizes | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One partition that is being copied, and the bytes that each new replica still needs."""

    at: TopicPartition
    found: PartitionMove
    left: Mapping[int, int]


def measure(sender: Sender, reading: Reading, settings: MoveSettings, throttle: int | None) -> Mapping[int, int]:
    """Keep how far the copies are, mark what is to be cancelled, and give the bytes that each broker still needs."""
    copied = [each for each in sender.record.moving() if reading.of(each) in (Now.MOVES, Now.LAGS)]
    if not copied:
        sender.keep(replace(sender.record, bytes_per_s=_busiest(sender, ())))
        return {}
    brokers = {broker for each in copied for broker in (*each.found.added, *_leader(reading, each))}
    sizes = sender.cluster.log_sizes(brokers & reading.brokers.keys(), {each.at.topic for each in copied})
    _note_unknown(sender, sizes)
    copies, newest, record = [], list[tuple[PartitionMove, float]](), sender.record
    for each in copied:
        measured, left = _measured(sender.now, reading, each, sizes)
        newest.append((measured, _newest(each.found, measured)))
        found = _stuck(sender, reading, each._replace(found=measured), settings.stuck_after)
        record = with_partitions(record, each.at.topic, {each.at.partition: found})
        copies.append(Copy(at=each.at, found=found, left=left))
    for copy in _that_fill_a_disk(copies, sizes):
        sender.note(
            f"{named(copy.at.topic, [copy.at.partition])}: is to be cancelled: {copy.found.why_cancelled}.", first=True
        )
        record = with_partitions(record, copy.at.topic, {copy.at.partition: copy.found})
    sender.keep(replace(record, bytes_per_s=_busiest(sender, newest)))
    _note_low_throttle(sender, copies, throttle)
    left_by_broker = Counter[int]()
    for copy in copies:
        left_by_broker.update(copy.left)
    return left_by_broker


def _leader(reading: Reading, moving: Moving) -> tuple[int, ...]:
    now = reading.partition_of(moving)
    return (now.leader,) if now else ()


def _note_unknown(sender: Sender, sizes: Sizes) -> None:
    for broker, told in sorted(sizes.items()):
        if isinstance(told, str):
            sender.note(f"Broker {broker}: how much is copied is not known: {told}.")


def _measured(now: datetime, reading: Reading, moving: Moving, sizes: Sizes) -> tuple[PartitionMove, Mapping[int, int]]:
    """Return the move with its bytes of now, and what each new replica still needs; as it was if that is not known."""
    at, found = moving.at, moving.found
    size = next((_bytes(sizes, leader, at) for leader in _leader(reading, moving)), None)
    copied = {broker: _bytes(sizes, broker, at) for broker in sorted(found.added & reading.brokers.keys())}
    if size is None or None in copied.values():
        return replace(found, gap_at=None, gap_bytes=None), {}
    done = {broker: min(known or 0, size) for broker, known in copied.items()}
    left = {broker: size - known for broker, known in done.items()}
    total, gap = sum(done.values()), sum(left.values())
    is_first = found.grown_at is None
    has_grown = is_first or (total > found.copied_bytes and not _waits_for_the_dead(reading, moving))
    falls = found.gap_bytes is None or gap < found.gap_bytes or gap == 0
    measured = replace(found, copied_bytes=total, measured_at=now)
    measured = replace(
        measured,
        size_bytes=size * len(found.added),
        bytes_per_s=_mean(found.bytes_per_s, _newest(found, measured), now, found.measured_at),
        grown_at=now if has_grown else found.grown_at,
        gap_bytes=gap if falls else found.gap_bytes,
        gap_at=now if falls else found.gap_at,
    )
    return measured, left


def _newest(before: PartitionMove, measured: PartitionMove) -> float:
    """Return the bytes a second that a partition copied since it was measured before, or asked to move."""
    since = before.measured_at or before.asked_at
    if since is None or measured.measured_at is None or measured.measured_at <= since:
        return 0.0
    return max(0, measured.copied_bytes - before.copied_bytes) / (measured.measured_at - since).total_seconds()


def _mean(before: float, newest: float, now: datetime, since: datetime | None) -> float:
    """Return the speed of late, by that of before and the newest one; ``since``: None, if there was none before."""
    if since is None:
        return newest
    if now <= since:  # the host of the step before had another clock
        return before
    return newest + (before - newest) * exp(-(now - since) / SPEED_OF_LATE)


def _busiest(sender: Sender, newest: Iterable[tuple[PartitionMove, float]]) -> float:
    """Return the speed of late of the broker that sends or receives most, with the copies that have just ended."""
    record, speeds = sender.record, defaultdict[tuple[str, int], float](float)
    seconds = (sender.now - record.stepped_at).total_seconds() if record.stepped_at else 0.0
    ended = ((found, (found.size_bytes - found.copied_bytes) / seconds) for found in sender.copied if seconds > 0)
    for found, speed in (*newest, *ended):
        for link, share in found.links.items():
            speeds[link] += speed / share
    if not speeds:
        return record.bytes_per_s
    since = record.stepped_at if record.bytes_per_s else None
    return _mean(record.bytes_per_s, max(speeds.values()), sender.now, since)


def _bytes(sizes: Sizes, broker: int, at: TopicPartition) -> int | None:
    """Return the bytes of a log; 0 if the broker has none, None if they are not known."""
    told = sizes.get(broker, "")
    return None if isinstance(told, str) else told.bytes_of.get(at, 0)


def _waits_for_the_dead(reading: Reading, moving: Moving) -> bool:
    late = behind(reading, moving)
    return bool(late) and not late & reading.brokers.keys()


def _stuck(sender: Sender, reading: Reading, moving: Moving, after: timedelta) -> PartitionMove:
    """Return the move, to be cancelled if nothing was copied for too long; an unknown size is no sign of that."""
    at, found = moving.at, moving.found
    dead = sorted(behind(reading, moving) - reading.brokers.keys())
    if dead:
        sender.note(
            f"{named(at.topic, [at.partition])}: waits for broker {', '.join(map(str, dead))}, which is not live."
        )
    since = found.grown_at or (found.asked_at if dead else None)
    if found.why_cancelled or since is None or sender.now - since < after or (found.gap_at is None and not dead):
        return found
    minutes = int((sender.now - since).total_seconds() // 60)
    why = f"nothing was copied for {minutes} min" + (f", because broker {dead[0]} is not live" if dead else "")
    return replace(found, why_cancelled=why)


def _that_fill_a_disk(copies: list[Copy], sizes: Sizes) -> Iterator[Copy]:
    """Yield the largest copy on each disk that has no room for all that come, to be cancelled."""
    for broker, told in sorted(sizes.items()):
        here = [copy for copy in copies if copy.left.get(broker)]
        if isinstance(told, str) or told.free_bytes is None or any(copy.found.why_cancelled for copy in here):
            continue
        if here and sum(copy.left[broker] for copy in here) > told.free_bytes:
            largest = max(here, key=lambda copy: (copy.left[broker], copy.at))
            why = f"the disk of broker {broker} has no room for it any more"
            yield replace(largest, found=replace(largest.found, why_cancelled=why))


def _note_low_throttle(sender: Sender, copies: list[Copy], throttle: int | None) -> None:
    """Say which rate would end the copies whose bytes left to copy grew for five minutes."""
    grows: defaultdict[int, float] = defaultdict(float)
    slow: defaultdict[str, set[int]] = defaultdict(set)
    for copy in copies:
        found = copy.found
        if found.gap_at is None or found.gap_bytes is None or found.grown_at is None or not copy.left:
            continue
        if sender.now - found.gap_at < GAP_GROWS or sender.now - found.grown_at >= GAP_GROWS:
            continue
        slow[copy.at.topic].add(copy.at.partition)
        seconds = (sender.now - found.gap_at).total_seconds()
        for broker in copy.left:
            grows[broker] += max(0.0, (sum(copy.left.values()) - found.gap_bytes) / len(copy.left) / seconds)
    if throttle is None or not slow:
        return
    rate = int(throttle + max(grows.values())) + 1
    for topic, partitions in slow.items():
        sender.note(
            f"{named(topic, partitions)}: producers write as fast as the throttle of {throttle:,} bytes a second lets "
            f"replicas copy: the move ends only with more than {rate:,} bytes a second."
        )
