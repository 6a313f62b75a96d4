"""Placement ``kafka``: as Kafka 3.9 itself, with a start that follows from the topic's name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement.request import (
    BadPartitionCountError,
    PlacementRequest,
    check_numbers,
    known_racks,
)


def place_like_kafka(request: PlacementRequest) -> Assignment:
    if request.existing:
        return expansion_as_broker(request.racks, request.existing, request.partitions)
    racks = request.racks if request.rack_aware else None
    start, shift = start_and_shift(request.topic, len(request.racks)) if request.racks else (0, 0)
    return assign_replicas(
        sorted(request.racks), request.partitions, request.replication_factor, start=start, shift=shift, racks=racks
    )


def start_and_shift(topic: str, brokers: int) -> tuple[int, int]:
    """Kafka draws both at random; here the name decides: two 8-byte words of its SHA-256, big endian, mod brokers."""
    digest = hashlib.sha256(topic.encode()).digest()
    return int.from_bytes(digest[:8], "big") % brokers, int.from_bytes(digest[8:16], "big") % brokers


def expansion_as_broker(racks: Mapping[int, str | None], existing: Assignment, partitions: int) -> Assignment:
    """Return the rows that a broker would add itself; racks count whenever brokers have them, whatever a spec says.

    Raises:
        BadPartitionCountError: Partition 0 is missing, or ``partitions`` is not above what exists.
        MixedRacksError, TooFewBrokersError: As the broker refuses it.
    Source: kafka.zk.AdminZkClient#createNewPartitionsAssignment (3.9).
    """
    if 0 not in existing:
        raise BadPartitionCountError("partition 0, which an expansion follows, is missing")
    brokers = sorted(racks)
    first = existing[0][0]
    # The position is looked up by id, and used in the rack-alternated list: Kafka does so too.
    start = next((index for index, broker in enumerate(brokers) if broker >= first), 0)
    return assign_replicas(
        brokers,
        partitions - len(existing),
        len(existing[0]),
        start=start,
        shift=start,
        first_partition=len(existing),
        racks=racks,
    )


def assign_replicas(
    brokers: Sequence[int],
    partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
    first_partition: int = 0,
    racks: Mapping[int, str | None] | None = None,
) -> Assignment:
    """Spread replicas over brokers the way Kafka does.

    Args:
        brokers: Live broker ids, in a fixed order; with ``racks`` the rack-alternated order takes its place.
        partitions: How many rows to make, from ``first_partition`` on.
        start: Index of partition 0's preferred leader.
        shift: How far the followers of partition 0 lie behind its leader.
        racks: Rack of each broker; left out, or without a single rack, places without racks.

    Returns:
        One row per partition of distinct broker ids, preferred leader first.

    Raises:
        BadPartitionCountError, TooFewBrokersError, MixedRacksError: As Kafka refuses it, in this order.
    Source: org.apache.kafka.admin.AdminUtils#assignReplicasToBrokers (3.9).
    """
    check_numbers(brokers, partitions, replication_factor)
    rack_of = known_racks(racks) if racks else None
    order = rack_alternated(rack_of) if rack_of else tuple(brokers)
    stride = len(set(rack_of.values())) if rack_of else 1
    rows = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(order) == 0:
            shift += 1
        leader = (partition + start) % len(order)
        rows[partition] = _row(order, replication_factor, leader=leader, shift=shift * stride, racks=rack_of)
    return rows


def _row(
    order: Sequence[int], replication_factor: int, *, leader: int, shift: int, racks: Mapping[int, str] | None
) -> tuple[int, ...]:
    """Choose one partition's brokers: each try one further, skipping a used rack or broker while another is unused."""
    row = [order[leader]]
    tries = 0
    while len(row) < replication_factor:
        broker = order[(leader + 1 + (shift + tries) % (len(order) - 1)) % len(order)]
        tries += 1
        if broker not in row and _rack_is_free(broker, row, racks):
            row.append(broker)
    return tuple(row)


def _rack_is_free(broker: int, row: Sequence[int], racks: Mapping[int, str] | None) -> bool:
    if racks is None:
        return True
    used = {racks[other] for other in row}
    return racks[broker] not in used or len(used) == len(set(racks.values()))


def rack_alternated(racks: Mapping[int, str]) -> tuple[int, ...]:
    """Return all brokers, one from each rack in turn; racks in text order, brokers by id inside a rack.

    Source: org.apache.kafka.admin.AdminUtils#getRackAlternatedBrokerList (3.9).
    """
    columns = [sorted(b for b, rack in racks.items() if rack == name) for name in sorted(set(racks.values()))]
    return tuple(broker for turn in zip_longest(*columns) for broker in turn if broker is not None)
