"""Live topics through the filters of Kafka's own ``kafka-topics --describe``, and in its words.

Source: org.apache.kafka.tools.TopicCommand (3.9).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from topicops.model.cluster.broker_defaults import is_known
from topicops.model.cluster.health import PartitionHealth, health_of
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.specs.topic_config import MIN_ISR, min_insync_replicas


class PartitionFilter(StrEnum):
    UNDER_REPLICATED = "under-replicated"
    UNDER_MIN_ISR = "under-min-isr"
    AT_MIN_ISR = "at-min-isr"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to list: all that is asked for must hold at once."""

    partitions: frozenset[PartitionFilter] = frozenset()
    with_overrides: bool = False
    unmanaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPartition:
    """One partition as the brokers tell clients of it."""

    id: int
    replicas: tuple[int, ...]
    """All, with those that are being added."""
    health: PartitionHealth
    """Its ``min_isr`` is the topic's own, else the brokers', as Kafka's tool takes it: also above the replicas."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def leader(self) -> int | None:
        """Broker id; None means that there is none, or that its broker is not registered."""
        return None if self.health.is_offline else self.health.leader


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTopic:
    live: LiveTopic
    is_managed: bool
    is_deleting: bool
    partitions: tuple[ListedPartition, ...] | None
    """Those that pass the filters, by id; None where no filter of partitions was asked for."""

    @property
    def is_unhealthy(self) -> bool:
        """A partition that passes the filters lacks its leader or a replica; False where none were asked for."""
        return any(found.health.is_under_replicated or found.health.refuses_all_acks for found in self.partitions or ())

    @property
    def replication_factor(self) -> int:
        """Of the first partition, as Kafka counts: without the replicas that are being added."""
        live, first = self.live, min(self.live.assignment, default=None)
        if first is None:
            return 0
        return len([broker for broker in live.assignment[first] if broker not in live.adding.get(first, ())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    environment: str
    cluster_id: str
    source: str
    topics: tuple[ListedTopic, ...]
    """By name."""
    topics_read: int
    knows_broker_defaults: bool | None
    """False: a topic without ``min.insync.replicas`` of its own was taken to have Kafka's default, 1. None: not asked,
    since no partition was filtered."""


FILTERS: Mapping[PartitionFilter, Callable[[PartitionHealth], bool]] = {
    PartitionFilter.UNDER_REPLICATED: lambda health: health.is_under_replicated,
    PartitionFilter.UNDER_MIN_ISR: lambda health: health.refuses_all_acks,
    PartitionFilter.AT_MIN_ISR: lambda health: health.is_at_min_isr,
    PartitionFilter.UNAVAILABLE: lambda health: health.is_offline,
}


def list_topics(snapshot: ClusterSnapshot, wanted: Wanted, *, environment: str, managed: Collection[str]) -> Listing:
    """Filter a snapshot, which must hold the states where partitions are filtered.

    A topic that is marked for deletion has no partitions to filter: the brokers have stopped telling of it.
    """
    chosen = (snapshot.topics[name] for name in sorted(snapshot.topics) if not (wanted.unmanaged and name in managed))
    listed = (_listed(snapshot, topic, wanted, is_managed=topic.name in managed) for topic in chosen)
    return Listing(
        environment=environment,
        cluster_id=snapshot.cluster_id,
        source=snapshot.source,
        topics=tuple(topic for topic in listed if _is_wanted(topic, wanted)),
        topics_read=len(snapshot.topics),
        knows_broker_defaults=is_known(snapshot.default_of(MIN_ISR)) if wanted.partitions else None,
    )


def listed_partitions(snapshot: ClusterSnapshot, topic: LiveTopic) -> Iterator[ListedPartition]:
    """Each partition, by id; one without a state has neither leader nor ISR."""
    min_isr = min_insync_replicas(topic.overrides, snapshot.broker_defaults)
    for p, replicas in sorted(topic.assignment.items()):
        yield ListedPartition(
            id=p,
            replicas=replicas,
            health=health_of(topic, p, snapshot.brokers, min_isr=min_isr),
            adding=topic.adding.get(p, ()),
            removing=topic.removing.get(p, ()),
        )


def _listed(snapshot: ClusterSnapshot, topic: LiveTopic, wanted: Wanted, *, is_managed: bool) -> ListedTopic:
    is_deleting = topic.name in snapshot.deleting
    partitions = None
    if wanted.partitions:
        found = () if is_deleting else listed_partitions(snapshot, topic)
        partitions = tuple(row for row in found if all(FILTERS[name](row.health) for name in wanted.partitions))
    return ListedTopic(live=topic, is_managed=is_managed, is_deleting=is_deleting, partitions=partitions)


def _is_wanted(topic: ListedTopic, wanted: Wanted) -> bool:
    if topic.partitions == ():
        return False
    return bool(topic.live.overrides) or not wanted.with_overrides
