"""What single brokers are asked by kafka-python's requests, and what their answers mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import ConfigSource, ResourceType  # type: ignore[attr-defined]  # its stub re-exports without saying so
from kafka.protocol.admin import DescribeConfigsRequest, DescribeLogDirsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from topicops.edges.kafka.clients.settings import named
from topicops.model.cluster.snapshot import LogDirectories
from topicops.model.ports import Unoffered

NOT_TOLD = (-1, ConfigSource.UNKNOWN_CONFIG.value)
"""Sources of a config as clients read them from brokers before Kafka 1.1, which send none (KIP-226)."""
LATEST_TIME = -1
ANY_EPOCH = -1
NOT_SERVED = -1
"""``offset_lag`` of a log for which the broker has no replica. Source: DescribeLogDirsResponse#INVALID_OFFSET_LAG."""


REFUSALS = frozenset(
    {
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.POLICY_VIOLATION,
    }
)
"""Answers of a broker that will never answer the request otherwise."""


def refusal_of(reply: Any) -> str:
    """Return ``CLUSTER_AUTHORIZATION_FAILED (31)`` where a broker refuses the whole request; else an empty text."""
    whole = getattr(reply, "error_code", None)
    codes = {result.error_code for result in getattr(reply, "results", None) or ()} if whole is None else {whole}
    return named(*codes) if len(codes) == 1 and codes <= REFUSALS else ""


def metadata_request(topics: Sequence[str] | None) -> Any:
    """Return what asks for these topics, or for all of them if ``topics`` is None.

    It creates no topic, but for an internal one that is named to a broker before Kafka 2.8.
    """
    asked = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
    return MetadataRequest(topics=asked, allow_auto_topic_creation=False)


def end_offsets_request(partitions: Mapping[str, Mapping[int, int | None]]) -> Any:
    """Ask for end offsets, by topic and partition with its leader epoch; None: any epoch will do.

    With the epoch, a leader that missed the last election answers with an error.
    """
    of_topic = ListOffsetsRequest.ListOffsetsTopic
    of_partition = of_topic.ListOffsetsPartition
    topics = [
        of_topic(
            name=topic,
            partitions=[
                of_partition(
                    partition_index=p, current_leader_epoch=ANY_EPOCH if epoch is None else epoch, timestamp=LATEST_TIME
                )
                for p, epoch in sorted(epochs.items())
            ],
        )
        for topic, epochs in partitions.items()
    ]
    return ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)


def settings_request(broker: int, names: Collection[str] | None) -> Any:
    """Return what asks a broker for these settings; for all of them if ``names`` is None."""
    return _configs_request(ResourceType.BROKER, [str(broker)], names)


def topic_configs_request(topics: Sequence[str], names: Sequence[str] | None = None) -> Any:
    """Return what asks a broker for these configs of topics; for all of them if ``names`` is None."""
    return _configs_request(ResourceType.TOPIC, topics, names)


def _configs_request(kind: ResourceType, resources: Sequence[str], names: Collection[str] | None) -> Any:
    asked = [
        DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind.value, resource_name=name, configuration_keys=None if names is None else list(names)
        )
        for name in resources
    ]
    return DescribeConfigsRequest(resources=asked, include_synonyms=False, include_documentation=False)


def settings_of(answer: Any) -> dict[str, str | None]:
    """Return values by name in an answer, None for one that is not set; empty where the broker gives none."""
    if isinstance(answer, str) or answer.results[0].error_code != KafkaError.NO_ERROR:
        return {}
    return {setting.name: setting.value for setting in answer.results[0].configs}


def is_override(source: int, *, is_default: bool) -> bool:
    """Return whether a value is set on its topic; brokers before Kafka 1.1 only tell whether it is a default.

    Source: DescribeConfigsResponse.ConfigSource and DescribeConfigsResponse.json (3.9).
    """
    return not is_default if source in NOT_TOLD else bool(source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value)


def directories_request(partitions: Mapping[str, Collection[int]]) -> Any:
    """Ask about these partitions, by topic; the answer names every log directory, also without one."""
    topics = [
        DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=sorted(ids))
        for topic, ids in partitions.items()
    ]
    return DescribeLogDirsRequest(topics=topics)


def directories_of(broker: int, reply: Any) -> LogDirectories | str:
    """Return what the answer shows; a sentence where it shows nothing. A reply that is a sentence names the broker.

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
    log_bytes = Counter[str]()
    for topic in (topic for directory in reply.results if not directory.error_code for topic in directory.topics):
        log_bytes[topic.name] += sum(log.partition_size for log in topic.partitions)
    working = [directory for directory in reply.results if not directory.error_code]
    return LogDirectories(
        held=partitions_of(reply, served=True),
        unused=partitions_of(reply, served=False),
        failed=tuple(failed),
        log_bytes=log_bytes,
        free_bytes=free_bytes_of(working),
        cordoned=bool(working) and all(directory.is_cordoned for directory in working),
    )


def free_bytes_of(directories: Iterable[Any]) -> int | None:
    """Return the free bytes of the directory with the most; None where brokers do not tell (before 3.3, KIP-827)."""
    free = max((directory.usable_bytes for directory in directories), default=-1)
    return None if free < 0 else free


def told_directories(broker: int, reply: Any) -> LogDirectories | str | None:
    """Do as ``directories_of`` for a sentence that does not name the broker; None if it has no such request.

    An ``Unoffered`` is the refusal of a managed cluster.
    """
    if isinstance(reply, Unoffered):
        return reply if reply.startswith("refuses") else None
    return directories_of(broker, f"broker {broker} {reply}" if isinstance(reply, str) else reply)


def partitions_of(reply: Any, *, served: bool) -> dict[str, frozenset[int]]:
    """Return partitions with a log on a disk that works, by topic; without copies that are still being made."""
    found: dict[str, set[int]] = {}
    for topic in (topic for directory in reply.results if not directory.error_code for topic in directory.topics):
        for log in topic.partitions:
            if not log.is_future_key and (log.offset_lag != NOT_SERVED) == served:
                found.setdefault(topic.name, set()).add(log.partition_index)
    return {name: frozenset(ids) for name, ids in found.items()}
