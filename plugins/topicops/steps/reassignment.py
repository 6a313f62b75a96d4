"""The way out where only replicas must move: a file for Kafka's own reassignment tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topicops.model.canonical import canonical_json
from topicops.model.snapshot import Assignment
from topicops.steps.placement.balanced import candidates, lightest
from topicops.steps.placement.request import Load


def reassignment_json(topic: str, rows: Assignment) -> str:
    """What ``kafka-reassign-partitions --reassignment-json-file`` reads."""
    partitions = [{"topic": topic, "partition": p, "replicas": list(rows[p])} for p in sorted(rows)]
    return canonical_json({"version": 1, "partitions": partitions})


def resized(
    rows: Assignment, replication_factor: int, racks: Mapping[int, str | None], *, load: Load
) -> Assignment | None:
    """The rows with another replication factor, with the fewest moves: replicas on live brokers stay where they may.

    Returns:
        None where there are fewer live brokers than replicas.

    """
    if replication_factor > len(racks):
        return None
    rack_of = _rack_of(racks)
    kept = {p: [b for b in row if b in racks] for p, row in rows.items()}
    topic = Load.of([{p: tuple(row) for p, row in kept.items()}])
    found: dict[int, tuple[int, ...]] = {}
    for partition in sorted(kept):
        shrunk = _shrunk(kept[partition], replication_factor, rack_of, topic=topic)
        row = _grown(shrunk, replication_factor, rack_of, topic=topic, cluster=load)
        added = {partition: tuple(b for b in row if b not in kept[partition])}
        topic, load = topic.plus(added), load.plus(added)
        found[partition] = tuple(row)
    return found


def _rack_of(racks: Mapping[int, str | None]) -> dict[int, str]:
    """Where some brokers have no rack, racks do not count, and each broker is one of its own."""
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    return known if len(known) == len(racks) else {broker: str(broker) for broker in racks}


def _shrunk(row: Sequence[int], size: int, rack_of: dict[int, str], *, topic: Load) -> list[int]:
    """Drop followers: those that share a rack first, then those on the brokers that hold most of this topic."""
    kept = list(row)
    while len(kept) > size:
        racks = [rack_of[broker] for broker in kept]
        position = max(
            range(1, len(kept)),
            key=lambda i: (racks.count(racks[i]) > 1, topic.replicas.get(kept[i], 0), i),
        )
        del kept[position]
    return kept


def _grown(row: Sequence[int], size: int, rack_of: dict[int, str], *, topic: Load, cluster: Load) -> list[int]:
    grown = list(row)
    while len(grown) < size:
        grown.append(lightest(candidates(grown, rack_of), topic=topic, cluster=cluster, leads=not grown))
    return grown
