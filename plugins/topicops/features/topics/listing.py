"""Live topics through the filters of Kafka's own ``kafka-topics --describe``.

Source: org.apache.kafka.tools.TopicCommand (3.9).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from topicops.features.shared.listed_partitions import ListedPartition, listed_partitions
from topicops.flow.runs.access import read_live_topics
from topicops.flow.runs.files import read_needed_specs
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.cluster.broker_defaults import is_known
from topicops.model.cluster.health import PartitionHealth
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.json_types import FormatVersion
from topicops.model.specs.topic_config import MIN_ISR
from topicops.steps.specs.needed import no_topic
from topicops.steps.why_commands import why_command


class PartitionFilter(StrEnum):
    UNDER_REPLICATED = "under-replicated"
    UNDER_MIN_ISR = "under-min-isr"
    AT_MIN_ISR = "at-min-isr"
    UNAVAILABLE = "unavailable"


FILTERS: Mapping[PartitionFilter, Callable[[PartitionHealth], bool]] = {
    PartitionFilter.UNDER_REPLICATED: lambda health: health.is_under_replicated,
    PartitionFilter.UNDER_MIN_ISR: lambda health: health.refuses_all_acks,
    PartitionFilter.AT_MIN_ISR: lambda health: health.is_at_min_isr,
    PartitionFilter.UNAVAILABLE: lambda health: health.is_offline,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to list: all that is asked for must hold at once."""

    partitions: frozenset[PartitionFilter] = frozenset()
    with_overrides: bool = False
    unmanaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingPartition:
    """One partition as the brokers tell clients of it."""

    partition: int
    leader: int | None
    """Broker id; None means that there is none, or that its broker is not registered."""
    replicas: tuple[int, ...]
    """All, with those that are being added."""
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    min_isr: int
    """Number of the topic, else of the brokers, as Kafka's tool takes it: also above the replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingTopic:
    name: str
    topic_id: str | None
    partitions: int
    replication_factor: int
    """Number of replicas of the first partition, as Kafka counts: without those that are being added."""
    overrides: Mapping[str, str]
    managed: bool
    deleting: bool
    matching_partitions: tuple[MatchingPartition, ...] | None
    """Partitions that pass the filters, by id; None means that no filter of partitions was asked for."""
    why: str | None
    """Command that says why; None means that the topic is not being deleted, and that each partition listed is
    healthy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What ``topics`` prints."""

    format_version: FormatVersion = "1.0"
    environment: str
    cluster_id: str
    source: str
    knows_broker_defaults: bool | None
    """False: a topic without ``min.insync.replicas`` of its own was taken to have Kafka's default, 1. None means that
    it was not asked for, since no partition was filtered."""
    topics_read: int
    topics: tuple[MatchingTopic, ...]
    """Topics by name."""


def read_topics(run: EnvironmentRun, wanted: Wanted) -> Listing:
    """Read the live topics that ``wanted`` lets through. Raises ``WrongTargetError`` for another cluster."""
    environment, desired = read_needed_specs(run.files, no_topic, run.progress).require()
    access = run.access(environment)
    live = read_live_topics(access, states=bool(wanted.partitions))
    if wanted.partitions:
        live = access.with_broker_answers(live)
    return list_topics(live, wanted, environment=environment.name, managed=desired.topics.keys() | desired.left_out)


def list_topics(snapshot: ClusterSnapshot, wanted: Wanted, *, environment: str, managed: Collection[str]) -> Listing:
    """Filter a snapshot, which must hold the states where partitions are filtered.

    A topic that is marked for deletion has no partitions to filter: the brokers have stopped telling of it.
    """
    found = []
    for name, topic in sorted(snapshot.topics.items()):
        passing = None
        if wanted.partitions:
            listed = () if name in snapshot.deleting else listed_partitions(snapshot, topic)
            passing = [each for each in listed if all(FILTERS[word](each.health) for word in wanted.partitions)]
        is_left_out = (wanted.unmanaged and name in managed) or (wanted.with_overrides and not topic.overrides)
        if not is_left_out and passing != []:
            found.append(_matching(snapshot, topic, passing, environment, is_managed=name in managed))
    return Listing(
        environment=environment,
        cluster_id=snapshot.cluster_id,
        source=snapshot.source,
        knows_broker_defaults=is_known(snapshot.default_of(MIN_ISR)) if wanted.partitions else None,
        topics_read=len(snapshot.topics),
        topics=tuple(found),
    )


def _matching(
    snapshot: ClusterSnapshot,
    topic: LiveTopic,
    passing: Collection[ListedPartition] | None,
    environment: str,
    *,
    is_managed: bool,
) -> MatchingTopic:
    is_deleting, first = topic.name in snapshot.deleting, min(topic.assignment, default=-1)
    health = [each.health for each in passing or ()]
    is_healthy = not any(each.is_under_replicated or each.refuses_all_acks for each in health)
    return MatchingTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=topic.partitions,
        replication_factor=len(set(topic.assignment.get(first, ())) - set(topic.adding.get(first, ()))),
        overrides=dict(sorted(topic.overrides.items())),
        managed=is_managed,
        deleting=is_deleting,
        matching_partitions=None if passing is None else tuple(map(_partition, passing)),
        why=None if is_healthy and not is_deleting else why_command(topic.name, environment),
    )


def _partition(listed: ListedPartition) -> MatchingPartition:
    return MatchingPartition(
        partition=listed.id,
        leader=listed.leader,
        replicas=listed.replicas,
        isr=tuple(listed.health.isr),
        adding=listed.adding,
        removing=listed.removing,
        min_isr=listed.health.min_isr,
    )
