"""The change that moves a topic's replicas: its rows, risk and bytes, and what keeps it from beginning now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from topicops.features.moves.asked.room import without_room
from topicops.features.moves.asked.rows import rows_by_hand, wanted_rows
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic, LogDirectories
from topicops.model.codes import Code
from topicops.model.errors import DiffError
from topicops.model.plans.changes import Change, MoveReason, Precondition, ReassignTopic
from topicops.model.printable import plural
from topicops.model.specs.environment import Environment, Risk
from topicops.steps.planning.blocking import Situation
from topicops.steps.planning.placement.request import Load


def reassign(situation: Situation, load: Load) -> ReassignTopic:
    """Return the change that moves the topic's replicas."""
    topic, move, desired = situation.topic, situation.move, situation.desired
    rows = wanted_rows(situation, load)
    if topic is None or move is None or not rows:
        raise DiffError(f"{desired.name}: its replicas must move, and no row differs")
    before = {p: topic.target_assignment[p] for p in sorted(rows)}
    field = {MoveReason.FACTOR: "replicationFactor", MoveReason.ASSIGNMENT: "assignment"}.get(move.why, "")
    change = ReassignTopic(
        topic=topic.name,
        owner=desired.owner,
        location=desired.location_of(field),
        risk=Risk.RISKY,
        codes=_codes(situation, topic),
        reversible=True,
        precondition=Precondition(identity=topic.identity),
        notes=tuple(_notes(situation)),
        why=move.why,
        assignment_before=before,
        assignment={p: rows[p] for p in sorted(rows)},
        copied_bytes=copied_bytes(topic.name, before, rows, situation.live),
    )
    return rated(change)


def _codes(situation: Situation, topic: LiveTopic) -> tuple[Code, ...]:
    """Return the codes of what differs."""
    if situation.is_unmanaged:
        return (Code.UNMANAGED_MOVE,)
    factors, wanted = topic.replication_factors, situation.desired.replication_factor
    mixed = Code.MIXED_REPLICATION_FACTOR if len(factors) > 1 else Code.REPLICATION_FACTOR
    found = {mixed: factors != {wanted}, Code.ASSIGNMENT_DIFFERS: bool(rows_by_hand(situation))}
    return tuple(sorted(code for code, holds in found.items() if holds))


def rated(change: ReassignTopic) -> ReassignTopic:
    """Return the change with its risk: another order of the same replicas copies nothing."""
    return replace(change, risk=Risk.NOTICE if change.is_order_only else Risk.RISKY)


def _notes(situation: Situation) -> Iterator[str]:
    if situation.grows:
        yield "its new partitions come in a later run, because a topic that moves gets none"
    if situation.live.releases is None:
        written = situation.environment.spec.cluster.release
        yield f"the brokers did not tell their releases; kafkaVersion of the environment, {written}, counts"


def copied_bytes(topic: str, before: Assignment, after: Assignment, live: ClusterSnapshot) -> int | None:
    """Return the bytes to copy, all new replicas together; None means not known.

    A broker tells the bytes of all its logs of a topic together, so that a replica counts as their average on a live
    broker of its partition, the preferred leader where that answers.
    """
    copied = 0.0
    for partition, row in after.items():
        if added := len({*row} - {*before[partition]}):
            sizes = (_average_log(topic, partition, broker, live) for broker in before[partition])
            size = next((size for size in sizes if size is not None), None)
            if size is None:
                return None
            copied += added * size
    return round(copied)


def _average_log(topic: str, partition: int, broker: int, live: ClusterSnapshot) -> float | None:
    told = (live.log_directories or {}).get(broker)
    if not isinstance(told, LogDirectories) or partition not in told.held.get(topic, ()):
        return None
    return told.log_bytes.get(topic, 0) / len(told.held[topic])


def move_obstacles(
    changes: Iterable[Change], live: ClusterSnapshot, environment: Environment
) -> Mapping[str, tuple[str, ...]]:
    """Return why the moves of a topic cannot begin now, by topic; topics without a reason have no entry.

    Args:
        live: As it was read, with the states of these topics, and the log directories of the brokers.
    """
    moves = [change for change in changes if isinstance(change, ReassignTopic)]
    foreign = list(_foreign(live, environment)) if moves else []
    full = {topic: (reason,) for topic, reason in without_room(moves, live).items()}
    found = {c.topic: (*_topic_obstacles(c, live, environment), *full.get(c.topic, ()), *foreign) for c in moves}
    return {topic: reasons for topic, reasons in found.items() if reasons}


def _foreign(live: ClusterSnapshot, environment: Environment) -> Iterator[str]:
    moving, allowed = foreign_moves(live), environment.spec.limits.moves_at_once
    if moving >= allowed:
        place = environment.place_of("limits.movesAtOnce")
        yield (
            f"{Code.REASSIGNMENT_RUNS}: {plural(moving, 'partition')} move{'s' if moving == 1 else ''} by other "
            f"programs, and {allowed} may move at once ({place})"
        )


def foreign_moves(live: ClusterSnapshot) -> int:
    """Return how many partitions move that no accepted move names; of a snapshot as it was read."""
    ours = live.accepted_moves.keys() & live.topics.keys()
    moving = live.totals.moving if live.totals else sum(len(topic.moving) for topic in live.topics.values())
    return moving - sum(len(live.topics[name].moving & live.accepted_moves[name].keys()) for name in ours)


def _to_leave(change: ReassignTopic, environment: Environment) -> frozenset[int]:
    """Return the brokers that somebody wants the replicas to leave; any other one that is down may come back.

    A drain by a command names no broker: it is the only one that the change takes replicas from.
    """
    removed, draining = frozenset(change.removed), frozenset(environment.spec.cluster.draining)
    is_asked = change.why is MoveReason.ASSIGNMENT or (change.why is MoveReason.DRAIN and len(removed) == 1)
    return draining | removed if is_asked else draining


def _topic_obstacles(change: ReassignTopic, live: ClusterSnapshot, environment: Environment) -> Iterator[str]:
    topic = live.topics.get(change.topic)
    if topic is None:
        return
    after = {**topic.target_assignment, **change.assignment}
    held = {b for row in topic.target_assignment.values() for b in row} - _to_leave(change, environment)
    if dead := (held | {b for row in after.values() for b in row}) - live.brokers.keys():
        have, are = ("have", "are") if len(dead) > 1 else ("has", "is")
        when = "now or after the move"
        yield f"{Code.BROKER_DOWN}: {brokers_text(dead)} {have} replicas of it, {when}, and {are} not live"
    if topic.states is None:
        yield "the ISR of its partitions was not read"
        return
    for p, row in topic.target_assignment.items():
        stay = set(row) & set(after[p])
        in_sync = stay & set(topic.states[p].isr) if p in topic.states else set()
        if len(in_sync) < len(stay):
            yield f"partition {p} is under-replicated: {sorted(in_sync)} of {sorted(stay)} are in sync"
            return
