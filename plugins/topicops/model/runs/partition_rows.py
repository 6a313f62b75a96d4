"""A row for each partition of a snapshot, as facts and quality rules judge it; Spark makes the same of the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from topicops.model.cluster.health import health_of
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.specs.topic_config import min_insync_replicas, needed_in_sync


class PartitionRow(NamedTuple):
    """One row per partition; key ``topic``, ``partition``. During a reassignment its target counts as the replicas."""

    topic: str
    partition: int
    leader: int
    """-1: none."""
    leader_is_live: bool
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    missing_replicas: tuple[int, ...]
    """Replicas that are not in sync, without those that a reassignment adds."""
    dead_replicas: tuple[int, ...]
    """Replicas on brokers that are not registered."""
    min_isr: int
    """What the leader enforces: never more than the number of replicas."""
    racks_used: int
    racks_possible: int
    """Over how many racks these replicas could be spread; 0 where a broker's rack is not known."""


def partition_rows(live: ClusterSnapshot) -> list[PartitionRow]:
    """One row per partition, without topics that are being deleted.

    Raises:
        ValueError: The snapshot has no partition states.
    """

    @cache  # many partitions share few sets of replicas
    def spread(replicas: tuple[int, ...]) -> _Spread:
        return _spread(live, replicas)

    staying = (topic for name, topic in live.topics.items() if name not in live.deleting)
    return [row for topic in staying for row in _rows_of_topic(live, topic, spread)]


class _Spread(NamedTuple):
    """What depends on the replicas alone."""

    dead: tuple[int, ...]
    racks_used: int
    racks_possible: int


def _rows_of_topic(
    live: ClusterSnapshot, topic: LiveTopic, spread: Callable[[tuple[int, ...]], _Spread]
) -> Iterator[PartitionRow]:
    if topic.states is None:
        raise ValueError(f"{topic.name}: the snapshot was read without partition states")
    least = min_insync_replicas(topic.overrides, live.broker_defaults)
    for partition, replicas in topic.target_assignment.items():
        health, found = health_of(topic, partition, live.brokers), spread(replicas)
        yield PartitionRow(
            topic=topic.name,
            partition=partition,
            leader=health.leader,
            leader_is_live=not health.is_offline,
            replicas=replicas,
            isr=health.isr,
            missing_replicas=health.missing,
            dead_replicas=found.dead,
            min_isr=needed_in_sync(least, len(replicas), live.releases),
            racks_used=found.racks_used,
            racks_possible=found.racks_possible,
        )


def _spread(live: ClusterSnapshot, replicas: tuple[int, ...]) -> _Spread:
    dead = tuple(broker for broker in replicas if broker not in live.brokers)
    racks = {live.racks.get(broker) for broker in replicas}
    everywhere = set(live.racks.values())
    if None in racks | everywhere:
        return _Spread(dead, len(racks), 0)
    return _Spread(dead, len(racks), min(len(replicas), len(everywhere)))
