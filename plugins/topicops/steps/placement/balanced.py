"""Placement ``balanced``: even for each topic first, the cluster's load decides ties, Kafka's rack rule kept."""

from __future__ import annotations

from collections.abc import Sequence

from topicops.model.snapshot import Assignment
from topicops.steps.placement.request import Load, PlacementRequest, check_numbers


def place_balanced(request: PlacementRequest) -> Assignment:
    """Give each next replica to the live broker that holds least."""
    check_numbers(list(request.racks), len(request.new_partitions), request.replication_factor)
    racks = _racks(request)
    topic = Load.of([request.existing])
    cluster = request.load
    rows: dict[int, tuple[int, ...]] = {}
    for partition in request.new_partitions:
        row = _row(racks, request.replication_factor, topic=topic, cluster=cluster)
        rows[partition] = row
        topic, cluster = topic.plus({partition: row}), cluster.plus({partition: row})
    return rows


def _racks(request: PlacementRequest) -> dict[int, str]:
    """A rack for each live broker; where racks do not count, each broker is a rack of its own."""
    racks = request.known_racks if request.rack_aware else None
    return dict(racks) if racks else {broker: str(broker) for broker in request.racks}


def _row(racks: dict[int, str], replication_factor: int, *, topic: Load, cluster: Load) -> tuple[int, ...]:
    row: list[int] = []
    while len(row) < replication_factor:
        row.append(lightest(candidates(row, racks), topic=topic, cluster=cluster, leads=not row))
    return tuple(row)


def candidates(row: Sequence[int], racks: dict[int, str]) -> list[int]:
    """Brokers that may hold the next replica: unused ones, on an unused rack while there is one."""
    used = {racks[broker] for broker in row if broker in racks}
    free = [broker for broker in racks if broker not in row]
    return [broker for broker in free if racks[broker] not in used] or free


def lightest(brokers: Sequence[int], *, topic: Load, cluster: Load, leads: bool) -> int:
    def weight(broker: int) -> tuple[int, ...]:
        return (
            topic.leaders.get(broker, 0) if leads else 0,
            topic.replicas.get(broker, 0),
            cluster.replicas.get(broker, 0),
            cluster.leaders.get(broker, 0),
            broker,
        )

    return min(brokers, key=weight)
