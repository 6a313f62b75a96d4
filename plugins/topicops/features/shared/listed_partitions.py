"""Partitions of a live topic as the brokers show them to clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from topicops.model.cluster.health import PartitionHealth, health_of
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.specs.topic_config import min_insync_replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPartition:
    id: int
    replicas: tuple[int, ...]
    """All, with those that are being added."""
    health: PartitionHealth
    """Health by the topic's own ``min_isr``, else the brokers', as Kafka's tool takes it: also above the replicas."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def leader(self) -> int | None:
        """Broker id; None means that there is none, or that its broker is not registered."""
        return None if self.health.is_offline else self.health.leader


def listed_partitions(snapshot: ClusterSnapshot, topic: LiveTopic) -> Iterator[ListedPartition]:
    """Yield each partition, by id; one without a state has neither leader nor ISR."""
    min_isr = min_insync_replicas(topic.overrides, snapshot.broker_defaults)
    for p, replicas in sorted(topic.assignment.items()):
        yield ListedPartition(
            id=p,
            replicas=replicas,
            health=health_of(topic, p, snapshot.brokers, min_isr=min_isr),
            adding=topic.adding.get(p, ()),
            removing=topic.removing.get(p, ()),
        )
