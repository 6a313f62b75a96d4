"""The change that moves a topic's replicas: its rows, its risk, and the bytes that it copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LogDirectories
from topicops.model.codes import Code
from topicops.model.errors import DiffError
from topicops.model.plans.changes import MoveReason, Precondition, ReassignTopic
from topicops.model.specs.environment import Risk
from topicops.steps.planning.blocking import Situation
from topicops.steps.planning.placement.request import Load
from topicops.steps.planning.reassigning import codes_of_file, wanted_rows


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
        codes=(Code.UNMANAGED_MOVE,) if situation.is_unmanaged else codes_of_file(situation),
        reversible=True,
        precondition=Precondition(identity=topic.identity),
        notes=tuple(_notes(situation)),
        why=move.why,
        assignment_before=before,
        assignment={p: rows[p] for p in sorted(rows)},
        copied_bytes=copied_bytes(topic.name, before, rows, situation.live),
    )
    return rated(change)


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
