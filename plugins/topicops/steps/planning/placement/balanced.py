"""Placement ``balanced``: even for each topic first, then by the cluster's load; keeps Kafka's rack rule.

First it chooses the brokers of each partition, then the leader among them, so that both are even.
"""

from __future__ import annotations

from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement.leaders import spread_leaders
from topicops.steps.planning.placement.request import Load, PlacementRequest, check_numbers
from topicops.steps.planning.placement.tally import Tally


def place_balanced(request: PlacementRequest) -> Assignment:
    """Give each replica to the live broker with the fewest, then each leader to the broker that leads the fewest."""
    check_numbers(list(request.racks), len(request.new_partitions), request.replication_factor)
    topic = Load.of([request.existing])
    tally = Tally(_racks(request), topic=topic, cluster=request.load)
    rows = {partition: tally.grown((), request.replication_factor) for partition in request.new_partitions}
    return spread_leaders(rows, topic=topic, cluster=request.load)


def _racks(request: PlacementRequest) -> dict[int, str]:
    """A rack for each live broker; where racks do not count, as for single replicas, each broker has its own."""
    known = request.known_racks if request.rack_aware else None
    racks = known if request.replication_factor > 1 else None
    return dict(racks) if racks else {broker: str(broker) for broker in request.racks}
