"""What stands against a move of a topic's replicas, and what a person reads of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from topicops.features.moves.asked.rows import racks_to_stay, reason_of_file, rows_by_hand, sizes_of
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.codes import Code
from topicops.steps.before_deletes import REPAIR
from topicops.steps.planning.blocking import Finding, Situation, beside_failed, closed_of, with_failed_disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why topicops does not move the replicas of a topic."""

    code: Code
    """Code where no value of the file asks for the move."""
    way_out: str
    reason: str = ""
    """A clause; empty where the way out says it."""
    by_tool: bool = False
    """Whether Kafka's own tool may do it."""

    @property
    def clause(self) -> str:
        """Return the reason as the end of a sentence."""
        return f"; {self.reason}" if self.reason else ""

    @property
    def next_step(self) -> str:
        """Return what a person does to move the replicas."""
        return f"{self.way_out}, then plan again"


def by_tool(code: Code, reason: str = "") -> Obstacle:
    """Return the obstacle of a topic whose replicas Kafka's own tool may move, with the JSON of the plan."""
    way_out = "run the reassignment that the plan carries with Kafka's own tool"
    return Obstacle(code=code, reason=reason, way_out=way_out, by_tool=True)


def unready(situation: Situation) -> Obstacle | None:
    """Return what must be done before anybody can move replicas of this topic; None: nothing."""
    if situation.is_reassigning:
        return Obstacle(
            code=Code.REASSIGNMENT_RUNS,
            reason="a reassignment of this topic is running",
            way_out="wait until the reassignment that is running has ended",
        )
    if situation.is_managed:
        return Obstacle(code=Code.NO_PLACEMENT, way_out="ask who runs the cluster to move the replicas")
    return _unfit(situation)


def _unfit(situation: Situation) -> Obstacle | None:
    """Return what keeps the topic's replicas from the brokers that they are to be on."""
    topic, live = situation.topic, situation.live
    rows = topic.target_assignment if topic else {}
    by_hand = situation.desired.assignment or {}
    added = {b for p, row in by_hand.items() if p in rows for b in row if b not in rows[p]}
    if failed := with_failed_disk(situation, added):
        return Obstacle(code=Code.FAILED_LOG_DIRECTORY, way_out=f"{REPAIR}: {failed}")
    drained = {b for row in by_hand.values() for b in row} & live.draining
    if closed := closed_of(situation, added | drained):
        return Obstacle(
            code=Code.NO_PLACEMENT, reason=f"the assignment names {closed}", way_out=f"name other brokers than {closed}"
        )
    if dead := (added | drained) - live.brokers.keys():
        return Obstacle(
            code=Code.ASSIGNED_BROKER_DOWN,
            reason=f"the assignment names {brokers_text(dead)}, not live",
            way_out=f"start {brokers_text(dead)}",
        )
    takers, keepers = live.whole_racks, racks_to_stay(live)
    sizes = sizes_of(situation)
    if by_hand or all(sizes[p] <= len(takers.keys() | keepers.keys() & set(row)) for p, row in rows.items()):
        return None
    needed, beside = max(sizes.values()), beside_failed(situation)
    return Obstacle(
        code=Code.TOO_FEW_BROKERS,
        reason=f"replication factor {needed} needs as many brokers; {len(takers)} may get replicas{beside}",
        way_out=f"start brokers until {needed} are live{beside}",
    )


def not_moved(situation: Situation, found: Obstacle) -> Iterator[Finding]:
    """Yield a finding for each value of the file that only a move would change."""
    topic = situation.topic
    if topic is None or reason_of_file(situation) is None:
        return
    if topic.replication_factors != {situation.desired.replication_factor}:
        yield _other_factor(situation, topic, found)
    if rows_by_hand(situation):
        yield _other_rows(situation, topic, found)


def _other_factor(situation: Situation, topic: LiveTopic, found: Obstacle) -> Finding:
    wanted, present = situation.desired.replication_factor, sorted(topic.replication_factors) or [0]
    if len(present) > 1:
        reason = f"partitions have {' and '.join(map(str, present))} replicas; the spec wants {wanted} for each"
        return Finding(Code.MIXED_REPLICATION_FACTOR, f"{reason}{found.clause}", found.next_step, "replicationFactor")
    state = "accepted" if situation.is_accepted else "live"
    reason = f"replication factor {wanted} wanted, {present[0]} {state}; only a reassignment can change it"
    way_out = f"{found.next_step}, or set replicationFactor: {present[0]} in the spec"
    return Finding(Code.REPLICATION_FACTOR, f"{reason}{found.clause}", way_out, "replicationFactor")


def _other_rows(situation: Situation, topic: LiveTopic, found: Obstacle) -> Finding:
    moved = rows_by_hand(situation)
    first, row = next(iter(moved.items()))
    more = f"; {len(moved)} partitions differ" if len(moved) > 1 else ""
    reason = f"partition {first} is on {list(topic.target_assignment[first])}, the spec says {list(row)}{more}"
    way_out = f"{found.next_step}, or write the live assignment into the spec"
    return Finding(Code.ASSIGNMENT_DIFFERS, f"{reason}{found.clause}", way_out, "assignment")
