"""What the quality rules look at: plain rows, and how they come from the specs and a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from topicops.model.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.spec import DesiredTopic

STUCK_AFTER_MS = 5 * 60 * 1000
"""A deletion marker older than this is stuck: the controller removes it within seconds when all replicas answer."""
_MIN_ISR = "min.insync.replicas"


class SpecRow(NamedTuple):
    """One row per topic that the specs name; key ``topic``; unordered."""

    topic: str
    file: str


class ListedTopicRow(NamedTuple):
    """One row per topic that the cluster listed; key ``topic``; unordered."""

    topic: str
    is_decoded: bool
    is_unstable: bool

    @property
    def is_accounted_for(self) -> bool:
        return self.is_decoded or self.is_unstable


class WorldRow(NamedTuple):
    """The snapshot's size beside that of the last good one; exactly one row."""

    topics: int
    topics_last_good: int
    """The size now, where there is no last good snapshot."""
    topics_at_least: int
    """What ``limits.shrinkPercent`` leaves of the last good size."""


class PartitionRow(NamedTuple):
    """One row per partition; key ``topic``, ``partition``; unordered."""

    topic: str
    partition: int
    leader: int
    """-1: none."""
    leader_is_live: bool
    replicas: int
    """How many; during a reassignment its target counts."""
    isr: int
    """How many members the ISR has."""
    missing_replicas: str
    """Brokers that hold a replica outside the ISR: ``2,3``; empty when the ISR is complete."""
    min_insync_replicas: int
    """As the leader enforces it: never more than there are replicas."""


class DeletionRow(NamedTuple):
    """One row per deletion marker; key ``topic``; unordered."""

    topic: str
    age_ms: int
    stuck_from_ms: int
    """The age from which the marker counts as stuck; 0 for a topic whose deletion this run saw through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityInput:
    """All rows of one suite; rows that belong to the other suite stay empty."""

    specs: tuple[SpecRow, ...] = ()
    listed: tuple[ListedTopicRow, ...] = ()
    world: tuple[WorldRow, ...] = ()
    partitions: tuple[PartitionRow, ...] = ()
    deletions: tuple[DeletionRow, ...] = ()


def rows_before(
    desired: Iterable[DesiredTopic],
    snapshot: ClusterSnapshot,
    *,
    listed: Iterable[str] | None = None,
    topics_last_good: int | None,
    shrink_percent: int,
) -> QualityInput:
    """May the inputs be trusted?

    Args:
        listed: The names that the cluster listed; None: those of the snapshot.
        topics_last_good: Size of the last good snapshot; None: there is none.
    """
    names = snapshot.topics.keys() if listed is None else listed
    return QualityInput(
        specs=tuple(SpecRow(topic.name, topic.location.file) for topic in desired),
        listed=tuple(_listed_row(name, snapshot.topics.get(name)) for name in names),
        world=(world_row(len(snapshot.topics), topics_last_good, shrink_percent=shrink_percent),),
    )


def rows_after(snapshot: ClusterSnapshot, *, deleted: Iterable[str] = ()) -> QualityInput:
    """Is the result healthy? The snapshot must hold partition states; ``deleted`` are topics that this run deleted."""
    own = frozenset(deleted)
    return QualityInput(
        partitions=tuple(
            partition_row(snapshot, topic, partition)
            for topic in snapshot.topics.values()
            for partition in topic.assignment
        ),
        deletions=tuple(
            DeletionRow(name, age_ms, 0 if name in own else STUCK_AFTER_MS)
            for name, age_ms in snapshot.deleting.items()
        ),
    )


def world_row(topics: int, topics_last_good: int | None, *, shrink_percent: int) -> WorldRow:
    last_good = topics if topics_last_good is None else topics_last_good
    # Rounded up: with 10 % of 15 topics one may go, not two.
    return WorldRow(topics, last_good, -(-last_good * (100 - shrink_percent) // 100))


def partition_row(snapshot: ClusterSnapshot, topic: LiveTopic, partition: int) -> PartitionRow:
    if topic.states is None:
        raise ValueError(f"{topic.name}: the snapshot was read without partition states")
    state = topic.states.get(partition)
    replicas = topic.target_assignment[partition]
    isr = state.isr if state else ()
    return PartitionRow(
        topic=topic.name,
        partition=partition,
        leader=state.leader if state else -1,
        leader_is_live=snapshot.has_live_leader(topic, partition),
        replicas=len(replicas),
        isr=len(isr),
        missing_replicas=",".join(str(broker) for broker in replicas if broker not in isr),
        min_insync_replicas=min(min_insync_replicas(topic.overrides, snapshot.broker_defaults), len(replicas)),
    )


def min_insync_replicas(overrides: Mapping[str, str], broker_defaults: Mapping[str, str] | None) -> int:
    """The topic's own value, else the brokers' default, else Kafka's, which is 1.

    Source: kafka.cluster.Partition#effectiveMinIsr (3.9), which also caps it at the number of replicas.
    """
    text = overrides.get(_MIN_ISR) or (broker_defaults or {}).get(_MIN_ISR) or "1"
    return int(text) if text.strip().isdecimal() else 1


def _listed_row(name: str, topic: LiveTopic | None) -> ListedTopicRow:
    return ListedTopicRow(name, is_decoded=topic is not None, is_unstable=topic is not None and topic.unstable)
