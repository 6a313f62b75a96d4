"""What brokers answer about their log directories: the question, and what an answer means."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kafka.protocol.admin import DescribeLogDirsRequest

from topicops.edges.kafka.clients.settings import named
from topicops.model.cluster.snapshot import LogDirectories
from topicops.model.ports import Unoffered

NOT_SERVED = -1
"""``offset_lag`` of a log for which the broker has no replica. Source: DescribeLogDirsResponse#INVALID_OFFSET_LAG."""


def directories_request(partitions: Mapping[str, Collection[int]]) -> Any:
    """About these partitions, by topic; the answer names every log directory, also without one."""
    topics = [
        DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=sorted(ids))
        for topic, ids in partitions.items()
    ]
    return DescribeLogDirsRequest(topics=topics)


def directories_of(broker: int, reply: Any) -> LogDirectories | str:
    """What the answer shows; a sentence where it shows nothing. A reply that is a sentence names the broker.

    Source: kafka.server.ReplicaManager#describeLogDirs (3.9): KAFKA_STORAGE_ERROR for a directory that is offline.
    """
    if isinstance(reply, str):
        return f"{reply} when asked for its log directories"
    if reply.error_code:
        return f"broker {broker} does not describe its log directories: {named(reply.error_code)}"
    if not reply.results:
        # A broker before 3.0 answers so when a right is missing; it always has a log directory.
        return f"broker {broker} describes no log directory: the reader needs Describe on the cluster"
    failed = sorted(directory.log_dir for directory in reply.results if directory.error_code)
    return LogDirectories(held=partitions_of(reply, served=True), failed=tuple(failed))


def told_directories(broker: int, reply: Any) -> LogDirectories | str | None:
    """As ``directories_of``, where a reply that is a sentence does not name the broker; None: it offers no answer."""
    if isinstance(reply, Unoffered):
        return None
    return directories_of(broker, f"broker {broker} {reply}" if isinstance(reply, str) else reply)


def partitions_of(reply: Any, *, served: bool) -> dict[str, frozenset[int]]:
    """Partitions with a log on a disk that works, by topic; without copies that are still being made."""
    found: dict[str, set[int]] = {}
    for topic in (topic for directory in reply.results if not directory.error_code for topic in directory.topics):
        for log in topic.partitions:
            if not log.is_future_key and (log.offset_lag != NOT_SERVED) == served:
                found.setdefault(topic.name, set()).add(log.partition_index)
    return {name: frozenset(ids) for name, ids in found.items()}
