"""Placement ``balanced``: even for each topic first, then by the cluster's load; keeps Kafka's rack rule.

First it chooses the brokers of each partition, then the leader among them, so that both are even.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement.load import Tally
from topicops.steps.planning.placement.request import Load, PlacementRequest, check_numbers, known_racks


def place_balanced(request: PlacementRequest) -> Assignment:
    """Give each replica to the live broker with the fewest, then each leader to the broker that leads the fewest."""
    check_numbers(list(request.racks), len(request.new_partitions), request.replication_factor)
    topic = Load.of([request.existing])
    tally = Tally(_racks(request), topic=topic, cluster=request.load)
    rows = {partition: tally.grown((), request.replication_factor) for partition in request.new_partitions}
    return spread_leaders(rows, topic=topic, cluster=request.load)


def _racks(request: PlacementRequest) -> dict[int, str]:
    """Return a rack for each live broker; where racks do not count, as for single replicas, each broker has its own."""
    known = known_racks(request.racks) if request.rack_aware else None
    racks = known if request.replication_factor > 1 else None
    return dict(racks) if racks else {broker: str(broker) for broker in request.racks}


def spread_leaders(rows: Assignment, *, topic: Load, cluster: Load) -> Assignment:
    """Return the rows in the order that spreads first replicas most evenly; every row keeps its brokers.

    Even for the topic first, then for the cluster. A leader stays if no chain of exchanges makes it more even.

    Args:
        topic: Of the topic's other rows.
        cluster: Without these rows.
    """
    ballot = _Ballot(rows, topic=topic, cluster=cluster)
    while ballot.improve():
        pass
    return {partition: ballot.row(partition) for partition in sorted(rows)}


@dataclass(slots=True)
class _Lead:
    """What one broker leads."""

    of_topic: int
    of_cluster: int
    partitions: set[int] = field(default_factory=set)


class _Ballot:
    """The leader of each partition while leaders may still change."""

    def __init__(self, rows: Assignment, *, topic: Load, cluster: Load) -> None:
        self._rows = rows
        self._leader = {partition: rows[partition][0] for partition in sorted(rows)}
        self._leads = {
            broker: _Lead(topic.leaders.get(broker, 0), cluster.leaders.get(broker, 0))
            for broker in sorted({broker for row in rows.values() for broker in row})
        }
        for partition, broker in self._leader.items():
            self._count(broker, partition, +1)

    def _weight(self, broker: int) -> tuple[int, ...]:
        lead = self._leads[broker]
        return lead.of_topic, lead.of_cluster, broker

    def row(self, partition: int) -> tuple[int, ...]:
        leader = self._leader[partition]
        return (leader, *(broker for broker in self._rows[partition] if broker != leader))

    def _count(self, broker: int, partition: int, step: int) -> None:
        lead = self._leads[broker]
        lead.of_topic += step
        lead.of_cluster += step
        (lead.partitions.add if step > 0 else lead.partitions.discard)(partition)

    def improve(self) -> bool:
        """Take one partition from a broker that leads too many, along a chain of rows. False: no exchange helps."""
        lightest = min(self._leads, key=self._weight, default=None)
        for giver in sorted(self._leads, key=self._weight, reverse=True):
            if lightest is None or not self._is_lighter(lightest, giver):
                return False
            handed = self._reachable(giver)
            taker = min(handed, key=self._weight)
            if self._is_lighter(taker, giver):
                self._hand_over(self._chain(handed, taker))
                return True
        return False

    def _is_lighter(self, taker: int, giver: int) -> bool:
        """Return whether moving one leader from ``giver`` to ``taker`` is more even."""
        to, of = self._leads[taker], self._leads[giver]
        return (to.of_topic, to.of_cluster) < (of.of_topic - 1, of.of_cluster - 1)

    def _reachable(self, giver: int) -> dict[int, int | None]:
        """Return brokers that a chain of exchanges can reach, with the partition of each; None means the giver."""
        handed: dict[int, int | None] = {giver: None}
        queue = deque([giver])
        while queue:
            for partition in sorted(self._leads[queue.popleft()].partitions):
                for broker in self._rows[partition]:
                    if broker not in handed:
                        handed[broker] = partition
                        queue.append(broker)
        return handed

    def _chain(self, handed: Mapping[int, int | None], taker: int) -> Iterable[tuple[int, int]]:
        """Return each partition of the chain and its next leader, from the taker back."""
        chain: list[tuple[int, int]] = []
        broker = taker
        while (partition := handed[broker]) is not None:
            chain.append((partition, broker))
            broker = self._leader[partition]
        return chain

    def _hand_over(self, chain: Iterable[tuple[int, int]]) -> None:
        for partition, broker in chain:
            self._count(self._leader[partition], partition, -1)
            self._leader[partition] = broker
            self._count(broker, partition, +1)
