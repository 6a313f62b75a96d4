"""The record of moves, as it changes: what is accepted, what is to be cancelled, and how partitions leave it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from topicops.features.moves.record import KEPT_ENDED, EndedMove, MovesRecord, OwnLogs, PartitionMove, Stage, TopicMove
from topicops.model.plans.changes import MoveReason, ReassignTopic
from topicops.model.plans.plan import GatedChange

DONE, CANCELLED, DROPPED = "done", "cancelled", "dropped"
"""How a move ends, as ``EndedMove.status``."""
ASKED_FOR = "it was asked for"
"""Why a move is cancelled that a person cancels."""
NO_RACKS: Mapping[int, str | None] = MappingProxyType({})


def accept(
    record: MovesRecord,
    changes: Sequence[GatedChange],
    run: str,
    approvers: Mapping[str, str],
    now: datetime,
    *,
    draining: Collection[int] = (),
    racks: Mapping[int, str | None] = NO_RACKS,
) -> MovesRecord:
    """Return the record with the moves of these changes, which may run from now on.

    A topic whose earlier move has not ended stays as it is: whoever accepts sees that its digest is another one. The
    throttle that a person gave to earlier moves ends with the last of them.

    Args:
        changes: Changes of which those are taken that reassign a topic.
        run: Run that accepts them, ``<group>/<run id>``.
        approvers: Approver of each change that has one, by digest.
        draining: Brokers of ``cluster.draining``.
        racks: Racks of the live brokers.
    """
    if not any(move.partitions for move in record.topics):
        record = replace(record, throttle=None)  # a person asked for it because of moves that have ended
    for gated in changes:
        if isinstance(gated.change, ReassignTopic):
            move = _accepted(gated.change, gated.digest, run, approvers, now)
            drained = sorted(gated.change.removed.keys() & draining) if move.why is MoveReason.DRAIN else ()
            targets = {broker for row in gated.change.assignment.values() for broker in row}
            known = {broker: racks[broker] for broker in sorted(targets & racks.keys())}
            record = _with_accepted(record, replace(move, drained=tuple(drained), racks=known))
    return record


def _accepted(change: ReassignTopic, digest: str, run: str, approvers: Mapping[str, str], now: datetime) -> TopicMove:
    return TopicMove(
        topic=change.topic,
        identity=change.precondition.identity or "",
        why=change.why,
        digest=digest,
        run=run,
        approver=approvers.get(digest, ""),
        accepted_at=now,
        partitions={
            partition: PartitionMove(origin=change.assignment_before[partition], target=target)
            for partition, target in sorted(change.assignment.items())
        },
    )


def _with_accepted(record: MovesRecord, move: TopicMove) -> MovesRecord:
    known = next((found for found in record.topics if found.topic == move.topic), None)
    if known is None:
        return replace(record, topics=(*record.topics, move))
    if known.partitions:
        return record
    if known.identity == move.identity:  # the lists of an earlier topic of this name went with it
        move = replace(move, leader_entries=known.leader_entries, follower_entries=known.follower_entries)
    return with_topic(record, move)


def asked_to_cancel(record: MovesRecord, topics: Collection[str], now: datetime) -> MovesRecord:
    """Return the record with the moves of these topics to be cancelled; those that were not started end at once."""
    for move in record.topics:
        if move.topic in topics:
            record = _to_cancel(record, move, now)
    return record


def _to_cancel(record: MovesRecord, move: TopicMove, now: datetime) -> MovesRecord:
    waiting = [p for p, found in move.partitions.items() if found.stage is Stage.ACCEPTED]
    others = {
        p: replace(found, why_cancelled=found.why_cancelled or ASKED_FOR)
        for p, found in move.partitions.items()
        if p not in waiting
    }
    record = with_topic(record, replace(move, partitions={**move.partitions, **others}))
    return without(record, move.topic, waiting, CANCELLED, ASKED_FOR, now)


def with_topic(record: MovesRecord, move: TopicMove) -> MovesRecord:
    """Return the record with this move in place of the topic's former one; without it if it is over."""
    return with_topics(record, {move.topic: move})


def with_topics(record: MovesRecord, moves: Mapping[str, TopicMove]) -> MovesRecord:
    """Return the record with these moves, by topic, in place of the former ones; without those that are over."""
    if not moves:
        return record
    topics = (moves.get(found.topic, found) for found in record.topics)
    return replace(record, topics=tuple(found for found in topics if not found.is_over))


def with_partitions(record: MovesRecord, topic: str, changed: Mapping[int, PartitionMove]) -> MovesRecord:
    """Return the record with these partitions of a topic as they are now."""
    move = topic_of(record, topic)
    return with_topic(record, replace(move, partitions={**move.partitions, **changed}))


def without(
    record: MovesRecord, topic: str, partitions: Iterable[int], status: str, message: str, now: datetime
) -> MovesRecord:
    """Return the record after the move of these partitions has ended in one way."""
    gone = set(partitions)
    if not gone:
        return record
    move = topic_of(record, topic)
    ended = EndedMove(
        topic=topic, why=move.why, run=move.run, partitions=len(gone), status=status, message=message, at=now
    )
    left = {p: found for p, found in move.partitions.items() if p not in gone}
    record = replace(record, ended=(*record.ended, ended)[-KEPT_ENDED:])
    if status != DONE:
        record = _with_own_logs(record, move, gone)
    return with_topic(record, replace(move, partitions=left))


def _with_own_logs(record: MovesRecord, move: TopicMove, partitions: Collection[int]) -> MovesRecord:
    """Return the record that also knows where the moves of these partitions may leave logs: those that were begun."""
    begun = {
        p: tuple(sorted(found.added))
        for p, found in move.partitions.items()
        if p in partitions and found.asked_at is not None and found.added
    }
    if not begun:
        return record
    found = OwnLogs(topic=move.topic, identity=move.identity, brokers=begun)
    others = []
    for logs in record.own_logs:
        if (logs.topic, logs.identity) == (found.topic, found.identity):
            both = {p: (*logs.brokers.get(p, ()), *begun.get(p, ())) for p in logs.brokers.keys() | begun.keys()}
            found = replace(found, brokers={p: tuple(sorted({*row})) for p, row in sorted(both.items())})
        else:
            others.append(logs)
    return replace(record, own_logs=(*others, found)[-KEPT_ENDED:])


def topic_of(record: MovesRecord, topic: str) -> TopicMove:
    """Return the move of a topic that the record has."""
    return next(move for move in record.topics if move.topic == topic)
