"""Placement ``balanced``: even for each topic first, the cluster's load decides ties, Kafka's rack rule kept.

First which brokers hold each partition, then which of them leads it: so neither evenness is bought with the other.
"""

from __future__ import annotations

from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement.leaders import spread_leaders
from topicops.steps.planning.placement.request import Load, PlacementRequest, check_numbers
from topicops.steps.planning.placement.tally import Tally


def place_balanced(request: PlacementRequest) -> Assignment:
    """Give each next replica to the live broker that holds least, then each partition to the one that leads least."""
    check_numbers(list(request.racks), len(request.new_partitions), request.replication_factor)
    topic = Load.of([request.existing])
    tally = Tally(_racks(request), topic=topic, cluster=request.load)
    rows = {partition: tally.grown((), request.replication_factor) for partition in request.new_partitions}
    return spread_leaders(rows, topic=topic, cluster=request.load)


def _racks(request: PlacementRequest) -> dict[int, str]:
    """A rack for each live broker; where racks do not count, as for single replicas, each broker is one of its own."""
    known = request.known_racks if request.rack_aware else None
    racks = known if request.replication_factor > 1 else None
    return dict(racks) if racks else {broker: str(broker) for broker in request.racks}
