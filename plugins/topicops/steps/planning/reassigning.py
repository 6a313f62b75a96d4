"""Replicas that a file wants elsewhere: what stands against it, and the rows that the partitions would get."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import Assignment, LiveTopic
from topicops.model.codes import Code
from topicops.model.json_types import canonical_json
from topicops.model.plans.changes import MoveReason
from topicops.steps.before_deletes import REPAIR
from topicops.steps.planning.blocking import Finding, Situation, beside_failed, closed_of, with_failed_disk
from topicops.steps.planning.placement.balanced import spread_leaders
from topicops.steps.planning.placement.load import Tally
from topicops.steps.planning.placement.request import Load

NO_RACKS: Mapping[int, str | None] = MappingProxyType({})


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
    takers, keepers = live.whole_racks, live.racks_to_stay
    sizes = sizes_of(situation)
    if by_hand or all(sizes[p] <= len(takers.keys() | keepers.keys() & set(row)) for p, row in rows.items()):
        return None
    needed, beside = max(sizes.values()), beside_failed(situation)
    return Obstacle(
        code=Code.TOO_FEW_BROKERS,
        reason=f"replication factor {needed} needs as many brokers; {len(takers)} may get replicas{beside}",
        way_out=f"start brokers until {needed} are live{beside}",
    )


def sizes_of(situation: Situation) -> Mapping[int, int]:
    """Return how many replicas each live partition is to have."""
    rows = situation.topic.target_assignment if situation.topic else {}
    wanted = situation.desired.replication_factor
    return {p: len(row) if situation.is_unmanaged else wanted for p, row in rows.items()}


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
    racks = {**live.racks_to_stay, **live.whole_racks}
    return (racks if situation.desired.rack_aware else dict.fromkeys(racks)), live.whole_racks.keys()


def reassignment_of(situation: Situation, load: Load) -> str | None:
    """Return the JSON for Kafka's own tool, where it may do what topicops does not; else None."""
    rows = wanted_rows(situation, load) if situation.move and situation.move.by_tool else {}
    return reassignment_json(situation.desired.name, rows) if rows else None


def reassignment_json(topic: str, rows: Assignment) -> str:
    """Return what ``kafka-reassign-partitions --reassignment-json-file`` reads."""
    partitions = [{"topic": topic, "partition": p, "replicas": list(rows[p])} for p in sorted(rows)]
    return canonical_json({"version": 1, "partitions": partitions})


def resized(
    rows: Assignment,
    replication_factor: int | None,
    racks: Mapping[int, str | None],
    *,
    load: Load,
    staying: Mapping[int, str | None] = NO_RACKS,
    is_spread: bool = False,
) -> Assignment | None:
    """Return the rows with this replication factor and the fewest moves: replicas stay wherever they may.

    A row that has the right length, on these brokers, stays as it is. Of every other row as many replicas stay as
    ``kept_replicas`` says. Leaders stay too, unless the topic's leaders become less even.

    Args:
        replication_factor: None: each row keeps its length.
        racks: Rack by broker that may get replicas. Where only some have one, racks do not count.
        load: The cluster's, this topic included.
        staying: Rack by broker that keeps its replicas, and gets no others.
        is_spread: A row changes, too, that has replicas on one rack although another rack is free.

    Returns:
        None: a row has more replicas than there are brokers for it.
    """
    everyone = {**staying, **racks}
    sizes = {p: len(row) if replication_factor is None else replication_factor for p, row in rows.items()}
    if not all(0 <= sizes[p] <= len(racks.keys() | everyone.keys() & set(row)) for p, row in rows.items()):
        return None
    if replication_factor is not None and replication_factor < 1:
        return None
    rack_of = rack_of_each(everyone)
    tally = Tally(rack_of, topic=Load.of([rows]), cluster=load, closed=staying.keys() - racks.keys())
    open_racks, found = {rack_of[broker] for broker in racks}, dict[int, tuple[int, ...]]()
    for partition, row in sorted(rows.items()):
        kept = kept_replicas(row, sizes[partition], rack_of, open_racks)
        if len(row) != sizes[partition] or not everyone.keys() >= set(row) or (is_spread and kept < len(row)):
            stay = [broker for broker in row if broker in rack_of]
            found[partition] = tally.grown(tally.shrunk(stay, kept), sizes[partition])
    return {**rows, **_with_leaders(tally.evened(found, rows), rows)}


def kept_replicas(row: Iterable[int], size: int, rack_of: Mapping[int, str], open_racks: Collection[str]) -> int:
    """Return how many replicas of a row stay if it gets ``size``: one for each rack, and more where racks run out.

    Args:
        rack_of: Rack by broker on which replicas may be.
        open_racks: Racks of those brokers that may get new ones.
    """
    stay = [rack_of[broker] for broker in row if broker in rack_of]
    spread, usable = len(set(stay)), len({*stay, *open_racks})
    return min(size, spread + min(len(stay) - spread, max(0, size - usable)))


def rack_of_each(racks: Mapping[int, str | None]) -> dict[int, str]:
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    return known if len(known) == len(racks) else {broker: str(broker) for broker in racks}


def _with_leaders(changed: Assignment, rows: Assignment) -> Assignment:
    """Return the changed rows, each with a leader. Other topics do not count: they would make more leaders move.

    Rows that lost their leader choose first. The others choose anew only if that makes the topic more even still.
    """
    others = Load.of([{p: row for p, row in rows.items() if p not in changed}])
    kept = {p: rows[p][:1] for p, row in changed.items() if rows[p] and rows[p][0] in row}
    leaders = {p: row[0] for p, row in spread_leaders({**changed, **kept}, topic=others, cluster=others).items()}
    ordered = {p: (leaders[p], *(broker for broker in row if broker != leaders[p])) for p, row in changed.items()}
    return spread_leaders(ordered, topic=others, cluster=others)
