"""Listed topics as text, in the lines of Kafka's own tool, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict

from topicops.model.json_types import FormatVersion
from topicops.model.printable import plural, printable
from topicops.steps.reporting.json_text import json_text
from topicops.steps.topic_listing import ListedPartition, ListedTopic, Listing
from topicops.steps.why_commands import why_command, why_commands

FORMAT_VERSION = "1.1"
"""1.1 added ``why``."""


class PartitionJson(TypedDict):
    partition: int
    leader: int | None
    replicas: Sequence[int]
    isr: Sequence[int]
    adding: Sequence[int]
    removing: Sequence[int]
    min_isr: int


class TopicJson(TypedDict):
    name: str
    topic_id: str | None
    partitions: int
    replication_factor: int
    overrides: Mapping[str, str]
    managed: bool
    deleting: bool
    matching_partitions: Sequence[PartitionJson] | None
    """None: no filter of partitions was asked for."""
    why: NotRequired[str | None]
    """The command that says why; None: it is not being deleted, and no partition is listed that is not healthy.
    Since 1.1."""


class TopicsJson(TypedDict):
    format_version: FormatVersion
    environment: str
    cluster_id: str
    source: str
    knows_broker_defaults: bool | None
    topics: Sequence[TopicJson]


def topics_text(listing: Listing) -> str:
    """Kafka's own lines, tabs included: of the partitions where those were filtered, else of the topics."""
    return "\n".join(line for topic in listing.topics for line in _lines(topic))


def topics_json(listing: Listing) -> str:
    found: TopicsJson = {
        "format_version": FORMAT_VERSION,
        "environment": listing.environment,
        "cluster_id": listing.cluster_id,
        "source": listing.source,
        "knows_broker_defaults": listing.knows_broker_defaults,
        "topics": [_topic_as_json(listing, topic) for topic in listing.topics],
    }
    return json_text(found)


def topics_summary(listing: Listing) -> str:
    """How much of what was read is listed, on one line."""
    topics = f"{len(listing.topics):,} of {plural(listing.topics_read, 'topic')}"
    rows = [len(topic.partitions) for topic in listing.topics if topic.partitions is not None]
    return f"{topics}, {plural(sum(rows), 'partition')}" if rows else topics


def topics_ways(listing: Listing) -> list[str]:
    """The command that says why, for each listed topic that is not healthy or still being deleted."""
    return why_commands((topic.live.name for topic in listing.topics if _asks_why(topic)), listing.environment)


def _asks_why(topic: ListedTopic) -> bool:
    return topic.is_unhealthy or topic.is_deleting


def _lines(topic: ListedTopic) -> Iterator[str]:
    if topic.partitions is None:
        yield _topic_line(topic)
        return
    for partition in topic.partitions:
        yield _partition_line(topic.live.name, partition)


def _topic_line(topic: ListedTopic) -> str:
    live = topic.live
    configs = ",".join(f"{name}={value}" for name, value in sorted(live.overrides.items()))
    cells = [
        f"Topic: {live.name}",
        *([f"TopicId: {live.topic_id}"] if live.topic_id else []),
        f"PartitionCount: {live.partitions}",
        f"ReplicationFactor: {topic.replication_factor}",
        f"Configs: {configs}",
        *(["MarkedForDeletion: true"] if topic.is_deleting else []),
    ]
    return "\t".join(map(printable, cells))


def _partition_line(topic: str, partition: ListedPartition) -> str:
    cells = [
        "",
        f"Topic: {topic}",
        f"Partition: {partition.id}",
        f"Leader: {'none' if partition.leader is None else partition.leader}",
        f"Replicas: {_joined(partition.replicas)}",
        f"Isr: {_joined(partition.health.isr)}",
    ]
    if partition.adding or partition.removing:
        cells += [f"Adding Replicas: {_joined(partition.adding)}", f"Removing Replicas: {_joined(partition.removing)}"]
    return "\t".join(map(printable, cells))


def _joined(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))


def _topic_as_json(listing: Listing, topic: ListedTopic) -> TopicJson:
    live = topic.live
    return {
        "name": live.name,
        "topic_id": live.topic_id,
        "partitions": live.partitions,
        "replication_factor": topic.replication_factor,
        "overrides": dict(sorted(live.overrides.items())),
        "managed": topic.is_managed,
        "deleting": topic.is_deleting,
        "matching_partitions": None
        if topic.partitions is None
        else [_partition_as_json(partition) for partition in topic.partitions],
        "why": why_command(live.name, listing.environment) if _asks_why(topic) else None,
    }


def _partition_as_json(partition: ListedPartition) -> PartitionJson:
    return {
        "partition": partition.id,
        "leader": partition.leader,
        "replicas": partition.replicas,
        "isr": partition.health.isr,
        "adding": partition.adding,
        "removing": partition.removing,
        "min_isr": partition.health.min_isr,
    }
