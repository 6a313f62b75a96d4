"""The changes that make a cluster even: which topics may move, and the rows that they get."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from topicops.features.moves.asked.changes import copied_bytes, rated
from topicops.features.moves.asked.resizing import resized
from topicops.features.moves.asked.rows import racks_to_stay
from topicops.features.moves.planned.balance import Balance, balance_bytes, balance_replicas
from topicops.features.moves.planned.leading import lead_evenly
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic
from topicops.model.errors import UsageError
from topicops.model.plans.changes import MoveReason, Precondition, ReassignTopic
from topicops.model.printable import plural
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.environment import Environment, Risk
from topicops.steps.planning.placement.load import live_load

Sizes = Mapping[str, Mapping[int, int]]
"""Bytes of one replica of each partition, by topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What ``rebalance`` is asked for."""

    brokers: tuple[int, ...] = ()
    """Brokers that get replicas; none: all that may."""
    most_bytes: int | None = None
    """The most bytes to copy; None: replicas are counted, not bytes."""
    leaders_only: bool = False
    racks_only: bool = False
    """Only replicas that share a rack, although another is free, move."""

    @property
    def why(self) -> MoveReason:
        return MoveReason.RACKS if self.racks_only else MoveReason.BALANCE


def movable_topics(desired: Desired, live: ClusterSnapshot, environment: Environment) -> frozenset[str]:
    """Return the topics whose replicas may move for balance: their files ask for nothing that says where they are.

    Args:
        live: With accepted moves counted as running ones.
    """
    marked = live.deleting.keys() | live.reassigning
    names = (desired.topics.keys() & live.topics.keys()) - marked
    return frozenset(
        name
        for name in names
        if _may_move(desired.topics[name], live.topics[name]) and environment.protecting_pattern(name) is None
    )


def _may_move(desired: DesiredTopic, topic: LiveTopic) -> bool:
    return (
        desired.lifecycle is Lifecycle.PRESENT
        and desired.assignment is None
        and desired.partitions == topic.partitions
        and topic.replication_factors == {desired.replication_factor}
        and not topic.is_reassigning
        and not topic.unstable
    )


def takers_of(wish: Wish, live: ClusterSnapshot) -> Collection[int]:
    """Return the brokers that get replicas. Raises ``UsageError`` for one that may get none.

    Args:
        live: With ``draining`` and log directories.
    """
    takers = live.whole_racks.keys()
    if unfit := sorted(set(wish.brokers) - takers):
        reason = live.closed.get(unfit[0]) or ("which has a failed disk" if unfit[0] in live.brokers else "not live")
        raise UsageError(f"--brokers: broker {unfit[0]}, {reason}, gets no replicas; {brokers_text(takers)} may")
    if wish.racks_only and (without := sorted(broker for broker, rack in live.racks.items() if rack is None)):
        has = "has" if len(without) == 1 else "have"
        raise UsageError(f"--racks: {brokers_text(without)} {has} no rack; give every broker a broker.rack")
    return wish.brokers or tuple(takers)


def rebalanced(wish: Wish, live: ClusterSnapshot, movable: Collection[str], sizes: Sizes) -> Mapping[str, Assignment]:
    """Return the new rows of all partitions that differ, by topic.

    First replicas move, then rows get another order, so that leaders are even, too.

    Args:
        live: With accepted moves counted as running ones.
        sizes: Of all movable topics, if the wish is about bytes.
    """
    rows = {name: topic.target_assignment for name, topic in sorted(live.topics.items())}
    fixed, takers = rows.keys() - movable, takers_of(wish, live)
    if wish.racks_only:
        return spread_over_racks({name: rows[name] for name in sorted(movable)}, live, takers)
    moved: Mapping[str, Assignment] = {}
    if not wish.leaders_only:
        balance = Balance(rows=rows, racks=live.racks, takers=takers, fixed=fixed)
        most = wish.most_bytes
        moved = (balance_replicas(balance) if most is None else balance_bytes(balance, sizes, most_bytes=most)).rows
    after = {name: {**its, **moved.get(name, {})} for name, its in rows.items()}
    led = lead_evenly(after, live=live.brokers, takers=takers, fixed=fixed)
    return {name: {**moved.get(name, {}), **led.get(name, {})} for name in sorted(moved.keys() | led.keys())}


def spread_over_racks(
    rows: Mapping[str, Assignment], live: ClusterSnapshot, takers: Collection[int]
) -> Mapping[str, Assignment]:
    """Return new rows for the partitions whose replicas share a rack although another is free, by topic.

    As many replicas stay as can, as ``kept_replicas`` says.
    """
    load, found = live_load(live), dict[str, Assignment]()
    racks = {**racks_to_stay(live), **live.whole_racks}
    for name, every in rows.items():
        its = {p: row for p, row in every.items() if racks.keys() >= set(row)}
        wanted = resized(its, None, {b: racks[b] for b in takers}, load=load, staying=racks, is_spread=True) or {}
        if moved := {p: row for p, row in wanted.items() if row != its[p]}:
            found[name] = moved
            load = load.minus({p: its[p] for p in moved}).plus(moved)
    return found


def balance_change(
    topic: LiveTopic, rows: Assignment, desired: DesiredTopic, live: ClusterSnapshot, why: MoveReason
) -> ReassignTopic:
    """Return the change that gives a topic these rows."""
    before = {p: topic.target_assignment[p] for p in sorted(rows)}
    return rated(
        ReassignTopic(
            topic=topic.name,
            owner=desired.owner,
            location=desired.location,
            risk=Risk.RISKY,
            reversible=True,
            precondition=Precondition(identity=topic.identity),
            why=why,
            assignment_before=before,
            assignment={p: rows[p] for p in sorted(rows)},
            copied_bytes=copied_bytes(topic.name, before, rows, live),
        )
    )


MOST_NAMED = 5


def left_out_notes(live: ClusterSnapshot, movable: Collection[str], problems: Mapping[str, str]) -> Iterator[str]:
    """Yield which topics stay as they are, and why.

    Args:
        problems: Why a topic cannot move, by topic that would have.
    """
    if stays := live.topics.keys() - movable:
        yield (
            f"{plural(len(stays), 'topic')} counted, and not moved: no file describes it, or the file asks for "
            "another change, gives the replicas by hand, pauses or deletes it"
        )
    for name in sorted(problems)[:MOST_NAMED]:
        yield f"{name} stays as it is: {problems[name]}"
    if len(problems) > MOST_NAMED:
        yield f"{len(problems) - MOST_NAMED} more topics stay as they are for such reasons"
