"""The rows that the live partitions of a topic get, as its file or a drain asks for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from topicops.features.moves.asked.resizing import resized
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot
from topicops.model.json_types import canonical_json
from topicops.model.plans.changes import MoveReason
from topicops.steps.before_deletes import failed_by_broker
from topicops.steps.planning.blocking import Situation
from topicops.steps.planning.placement.request import Load


def reason_of_file(situation: Situation) -> MoveReason | None:
    """Return why the topic's file wants replicas of live partitions elsewhere; None: they are where it wants them."""
    topic, desired = situation.topic, situation.desired
    if topic is None or situation.moves_out_of_sight:
        return None
    if rows_by_hand(situation):
        return MoveReason.ASSIGNMENT
    is_other = not situation.is_unmanaged and topic.replication_factors != {desired.replication_factor}
    return MoveReason.FACTOR if is_other else None


def rows_by_hand(situation: Situation) -> Assignment:
    """Return the rows that the file gives to live partitions in another way than they are."""
    live = situation.topic.target_assignment if situation.topic else {}
    rows = situation.desired.assignment or {}
    return {p: tuple(rows[p]) for p in sorted(rows) if p in live and tuple(rows[p]) != live[p]}


def sizes_of(situation: Situation) -> Mapping[int, int]:
    """Return how many replicas each live partition is to have."""
    rows = situation.topic.target_assignment if situation.topic else {}
    wanted = situation.desired.replication_factor
    return {p: len(row) if situation.is_unmanaged else wanted for p, row in rows.items()}


def wanted_rows(situation: Situation, load: Load) -> Assignment:
    """Return the new rows of the live partitions that move; none where the brokers cannot hold them."""
    topic, desired = situation.topic, situation.desired
    if topic is None:
        return {}
    if desired.assignment is not None:
        return rows_by_hand(situation)
    racks, takers = racks_of(situation)
    size = None if situation.is_unmanaged else desired.replication_factor
    staying = {broker: rack for broker, rack in racks.items() if broker not in takers}
    wanted = resized(topic.target_assignment, size, {b: racks[b] for b in takers}, load=load, staying=staying)
    return {p: row for p, row in (wanted or {}).items() if row != topic.target_assignment[p]}


def racks_of(situation: Situation) -> tuple[Mapping[int, str | None], Collection[int]]:
    """Return the rack of each broker that may have replicas of the topic, and those brokers that may get new ones."""
    live = situation.live
    racks = {**racks_to_stay(live), **live.whole_racks}
    return (racks if situation.desired.rack_aware else dict.fromkeys(racks)), live.whole_racks.keys()


def racks_to_stay(live: ClusterSnapshot) -> Mapping[int, str | None]:
    """Return the racks of live brokers that may keep replicas: also of cordoned ones, which get no new replicas."""
    out = live.draining | failed_by_broker(live.log_directories or {}).keys()
    return {broker: rack for broker, rack in live.racks.items() if broker not in out}


def reassignment_json(topic: str, rows: Assignment) -> str:
    """Return what ``kafka-reassign-partitions --reassignment-json-file`` reads."""
    partitions = [{"topic": topic, "partition": p, "replicas": list(rows[p])} for p in sorted(rows)]
    return canonical_json({"version": 1, "partitions": partitions})
