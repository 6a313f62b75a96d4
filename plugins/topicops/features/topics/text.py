"""Listed topics as text, in the lines of Kafka's own tool."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.features.topics.listing import Listing, MatchingPartition, MatchingTopic
from topicops.model.printable import plural, printable
from topicops.steps.reporting.facts_wording import why_commands


def topics_text(listing: Listing) -> str:
    """Return Kafka's own lines, tabs included: of the partitions where those were filtered, else of the topics."""
    return "\n".join("\t".join(map(printable, cells)) for topic in listing.topics for cells in _lines(topic))


def topics_summary(listing: Listing) -> str:
    """Say how much of what was read is listed, on one line."""
    topics = f"{len(listing.topics):,} of {plural(listing.topics_read, 'topic')}"
    rows = [len(topic.matching_partitions) for topic in listing.topics if topic.matching_partitions is not None]
    return f"{topics}, {plural(sum(rows), 'partition')}" if rows else topics


def topics_ways(listing: Listing) -> list[str]:
    """Return the command that says why, for each listed topic that is not healthy or still being deleted."""
    return why_commands((topic.name for topic in listing.topics if topic.why), listing.environment)


def _lines(topic: MatchingTopic) -> Iterator[list[str]]:
    if topic.matching_partitions is not None:
        yield from (_cells(topic.name, partition) for partition in topic.matching_partitions)
        return
    yield [
        f"Topic: {topic.name}",
        *([f"TopicId: {topic.topic_id}"] if topic.topic_id else []),
        f"PartitionCount: {topic.partitions}",
        f"ReplicationFactor: {topic.replication_factor}",
        f"Configs: {','.join(f'{name}={value}' for name, value in topic.overrides.items())}",
        *(["MarkedForDeletion: true"] if topic.deleting else []),
    ]


def _cells(topic: str, partition: MatchingPartition) -> list[str]:
    cells = [
        "",
        f"Topic: {topic}",
        f"Partition: {partition.partition}",
        f"Leader: {'none' if partition.leader is None else partition.leader}",
        f"Replicas: {_joined(partition.replicas)}",
        f"Isr: {_joined(partition.isr)}",
    ]
    if partition.adding or partition.removing:
        cells += [f"Adding Replicas: {_joined(partition.adding)}", f"Removing Replicas: {_joined(partition.removing)}"]
    return cells


def _joined(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
