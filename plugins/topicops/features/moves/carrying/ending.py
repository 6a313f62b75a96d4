"""How moves end: as planned, cancelled by us where that is safe, or by somebody else.

"Not listed" alone means nothing: a move has ended when the replicas are the target and all of them are in sync, in two
readings and by all live brokers. What looks as if somebody took a move from us is believed only after ``SETTLE``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from topicops.features.moves.carrying.ports import PartitionNow
from topicops.features.moves.carrying.reading import Now, Reading, concerned, read
from topicops.features.moves.carrying.records import ASKED_FOR, CANCELLED, DONE, DROPPED, with_partitions, with_topics
from topicops.features.moves.carrying.sending import Sender, named
from topicops.features.moves.record import (
    MovesRecord,
    Moving,
    PartitionMove,
    Stage,
    TopicMove,
    TopicPartition,
    by_topic,
)
from topicops.model.codes import Code

SETTLE = timedelta(seconds=30)
"""Time in which a request without an answer may still take effect, and brokers may still tell what was before."""
MOST_AT_ONCE = 50
"""Most partitions of one request: a ZooKeeper controller needs 13 to 22 ms for each, and elects nobody meanwhile."""

Verdict = tuple[str, str]
"""Status and message of a move that has ended."""
NOT_OURS = f"it is not ours any more ({Code.STALE_PLAN})"


def harvest(sender: Sender, first: Reading) -> Reading:
    """Take out of the record what has ended; gives the newest reading."""
    _note_what_is_seen(sender, first)
    candidates = dict(_verdicts(sender, first))
    if not candidates:
        return first
    second = read(sender.cluster, concerned(sender.record))
    again = dict(_verdicts(sender, second))
    agreed = sender.cluster.agreed_rows([at for at in candidates if at.topic in second.topics])
    sure = {
        at: verdict
        for at, verdict in candidates.items()
        if again.get(at) == verdict and (at in agreed or verdict[0] == DROPPED)
    }
    _elect(sender, second, [at for at, (status, _) in sure.items() if status == DONE])
    sender.end((at, *verdict) for at, verdict in sure.items())
    return second


def _note_what_is_seen(sender: Sender, reading: Reading) -> None:
    """Keep which moves Kafka lists, and since when one looks as if it were not ours; take back what was never asked."""
    changed = {}
    for move in sender.record.topics:
        partitions = {each.at.partition: _seen(sender, reading, each) for each in move.each()}
        if partitions != move.partitions:
            changed[move.topic] = replace(move, partitions=partitions)
    sender.keep(with_topics(sender.record, changed))


def _seen(sender: Sender, reading: Reading, moving: Moving) -> PartitionMove:
    found = moving.found
    if found.stage is Stage.ACCEPTED and found.asked_at is None:
        return found
    now = reading.of(moving)
    if found.stage is Stage.ACCEPTED:  # was asked for, and seemed not to be; it is ours if it moves, or has moved
        is_ours = now in (Now.MOVES, Now.ENDED, Now.LAGS)
        return replace(found, stage=Stage.ASKED, seen=True, doubted_at=None) if is_ours else found
    if now is Now.MOVES:
        return replace(found, seen=True, doubted_at=None)
    if now in (Now.ENDED, Now.LAGS):
        return replace(found, doubted_at=None)
    if now is Now.BACK and not found.seen and not found.why_cancelled and _is_settled(sender, found.asked_at):
        return replace(found, stage=Stage.ACCEPTED, doubted_at=None)
    doubted_at = min(found.doubted_at or sender.now, sender.now)  # the host of the step before may have another clock
    return replace(found, doubted_at=doubted_at)


def _is_settled(sender: Sender, since: datetime | None) -> bool:
    return since is None or sender.now - since >= SETTLE


def _verdicts(sender: Sender, reading: Reading) -> Iterator[tuple[TopicPartition, Verdict]]:
    for moving in sender.record.moving():
        if verdict := _verdict(sender, reading, moving):
            yield moving.at, verdict


def _verdict(sender: Sender, reading: Reading, moving: Moving) -> Verdict | None:
    """Return how a move has ended by this reading; None means that it goes on, or is in doubt."""
    now, found = reading.of(moving), moving.found
    is_sure = found.doubted_at is not None and sender.now - found.doubted_at >= SETTLE
    match now:
        case Now.MOVES:
            return None
        case Now.ENDED:
            return DONE, "it ended before it was cancelled" if found.why_cancelled else ""
        case Now.LAGS:
            return _lagging(sender, reading, moving)
        case Now.BACK if found.stage is Stage.CANCELLING:
            return CANCELLED, found.why_cancelled + _other_order(reading, moving)
        case Now.BACK if found.why_cancelled and (found.seen or _is_settled(sender, found.asked_at)) and is_sure:
            return CANCELLED, found.why_cancelled + _other_order(reading, moving)
        case Now.BACK:
            return (DROPPED, f"{NOT_OURS}: somebody else cancelled it") if found.seen and is_sure else None
        case Now.OTHER:
            return (DROPPED, f"{NOT_OURS}: somebody else moves it, or has moved it") if is_sure else None
        case Now.GONE:
            return (DROPPED, "its topic was deleted") if is_sure else None
    assert_never(now)


def _other_order(reading: Reading, moving: Moving) -> str:
    """Say so if a cancelled move has left the origin in the order of its target, with another preferred leader."""
    now, origin = reading.partition_of(moving), moving.found.origin
    if now is None or now.replicas == origin:
        return ""
    return f"; its replicas were {list(origin)} and are now {list(now.replicas)}"


def behind(reading: Reading, moving: Moving) -> frozenset[int]:
    """Return the brokers of the target that are not in sync."""
    now = reading.partition_of(moving)
    return frozenset(moving.found.target) - frozenset(now.isr if now else ())


def _lagging(sender: Sender, reading: Reading, moving: Moving) -> Verdict | None:
    late = sorted(behind(reading, moving))
    who = f"broker {late[0]} is" if len(late) == 1 else f"brokers {', '.join(map(str, late))} are"
    if moving.found.why_cancelled:
        return DONE, f"its replicas are where they should be, but {who} not in sync"
    sender.note(f"{named(moving.at.topic, [moving.at.partition])}: has moved, but {who} not in sync yet.")
    return None


def _elect(sender: Sender, reading: Reading, ended: Collection[TopicPartition]) -> None:
    needed = []
    for at in ended:
        now = reading.topics[at.topic].partitions[at.partition]
        if now.leader != now.replicas[0] and now.replicas[0] in set(now.isr) & reading.brokers.keys():
            needed.append(at)
    if needed:
        sender.elect(needed)


def judge_anew(sender: Sender) -> None:
    """Forget why moves that still run are to be cancelled, unless a person asked for it: what was stuck may grow."""
    changed: defaultdict[str, dict[int, PartitionMove]] = defaultdict(dict)
    for at, _, found in sender.record.moving():
        if found.stage is Stage.ASKED and found.why_cancelled not in ("", ASKED_FOR):
            changed[at.topic][at.partition] = replace(found, why_cancelled="")
    record = sender.record
    for topic, partitions in changed.items():
        record = with_partitions(record, topic, partitions)
    sender.keep(record)


def cancel(sender: Sender) -> bool:
    """Cancel what is to be cancelled, as far as that is safe. Says whether a request was sent."""
    wanted = [moving for moving in sender.record.moving() if moving.found.why_cancelled]
    if not wanted:
        return False
    fresh = read(sender.cluster, {moving.at.topic for moving in wanted})
    rows = [moving.at for moving in wanted if _may_cancel(sender, fresh, moving)][:MOST_AT_ONCE]
    if not rows:
        return False
    sender.keep(_cancelling(sender.record, rows))
    for at, answer in sender.cancel(rows).items():
        if answer:
            sender.note(f"{named(at.topic, [at.partition])}: not cancelled: {answer}.")
    return True


def _cancelling(record: MovesRecord, rows: Collection[TopicPartition]) -> MovesRecord:
    for topic, partitions in by_topic(rows).items():
        known: Mapping[int, PartitionMove] = next(m.partitions for m in record.topics if m.topic == topic)
        changed = {p: replace(known[p], stage=Stage.CANCELLING) for p in partitions}
        record = with_partitions(record, topic, changed)
    return record


def _may_cancel(sender: Sender, reading: Reading, moving: Moving) -> bool:
    topic, now, at = reading.topic_of(moving.move), reading.partition_of(moving), moving.at
    if reading.of(moving) is not Now.MOVES or topic is None or now is None or topic.is_deleting:
        return False
    if obstacle := cancel_obstacle(moving.found, now, reading.brokers.keys(), topic.min_isr):
        sender.note(f"{named(at.topic, [at.partition])}: cannot be cancelled: {obstacle}.", first=True)
    return not obstacle


def cancel_obstacle(found: PartitionMove, now: PartitionNow, live: Collection[int], min_isr: int) -> str:
    """Say why a cancel would do harm, and what helps; empty means that it does none.

    A cancel takes all replicas out of the ISR that are not of the origin. ZooKeeper's controller accepts it although no
    replica is left that may lead, and the partition stays without a leader (KAFKA-14424).
    """
    kept = set(found.origin) & set(now.isr) & set(live)
    origin = ", ".join(str(broker) for broker in found.origin)
    if not kept:
        return f"no replica of {origin} is live and in sync, so that it would have no leader; bring one of them back"
    needed = min(min_isr, len(now.isr), len(found.origin))
    if len(kept) < needed:
        return (
            f"only {len(kept)} of the replicas {origin} would stay in sync, and min.insync.replicas is {min_isr}; "
            "bring another one back"
        )
    return ""


def unasked(sender: Sender, reading: Reading, still_asked: Callable[[TopicMove], str]) -> None:
    """Say which moves go on although nothing asks for them any more; a person may take them back."""
    for move in sender.record.topics:
        found = {each.at.partition for each in move.each() if reading.of(each) is Now.MOVES and _is_wanted(each.found)}
        if found and (reason := still_asked(move)):
            way = f"topicops moves --cancel {move.topic} takes it back"
            sender.note(f"{named(move.topic, found)}: goes on, although {reason}: {way}.")


def _is_wanted(found: PartitionMove) -> bool:
    return found.stage is Stage.ASKED and not found.why_cancelled


def without_leader(sender: Sender, reading: Reading) -> None:
    """Say first which moving partitions have no leader, and what brings it back."""
    found: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for moving in sender.record.moving():
        now = reading.partition_of(moving)
        if now is not None and now.leader not in reading.brokers:
            waits_for = sorted(set(now.isr) or set(moving.found.origin))
            found[moving.at.topic, ", ".join(map(str, waits_for))].add(moving.at.partition)
    for (topic, brokers), partitions in found.items():
        sender.note(f"{named(topic, partitions)}: no leader; it comes back with a broker of {brokers}.", first=True)
