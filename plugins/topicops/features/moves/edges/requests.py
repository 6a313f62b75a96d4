"""The requests that move replicas and hold them back, for kafka-python, and what their answers mean."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import ConfigSource, ResourceType  # type: ignore[attr-defined]  # its stub re-exports without saying so
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
)

from topicops.edges.kafka.clients.requests import free_bytes_of
from topicops.edges.kafka.clients.settings import named
from topicops.features.moves.carrying.ports import Listed, LogSizes
from topicops.features.moves.record import TopicPartition, by_topic
from topicops.model.release import CAPPED_MIN_ISR, release_of

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
MIN_ISR = "min.insync.replicas"
_BY_PEOPLE = frozenset({ConfigSource.DYNAMIC_BROKER_CONFIG.value, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value})
"""Sources of a rate that somebody has set, on one broker or on all."""
PREFERRED = 0


class Operation(IntEnum):
    """What happens to one config. Source: AlterConfigOp.OpType (3.9)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


Edit = tuple[str, Operation, str | None]
"""Name of a config, what happens to it, and its value or entries."""


def listing_request(timeout_s: float) -> Any:
    """Ask for all partitions of the cluster that move."""
    return ListPartitionReassignmentsRequest(timeout_ms=int(timeout_s * 1000), topics=None)


def listing_of(answer: Any) -> dict[TopicPartition, Listed]:
    return {
        TopicPartition(topic.name, p.partition_index): Listed(
            replicas=tuple(p.replicas), adding=tuple(p.adding_replicas), removing=tuple(p.removing_replicas)
        )
        for topic in answer.topics
        for p in topic.partitions
    }


def alter_request(rows: Mapping[TopicPartition, tuple[int, ...] | None], timeout_s: float) -> Any:
    """Ask for these replicas; None cancels. Nothing to ask for is answered all the same, if the right is there."""
    of_topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    topics = [
        of_topic(name=topic, partitions=[_row(of_topic, p, rows[TopicPartition(topic, p)]) for p in partitions])
        for topic, partitions in by_topic(rows).items()
    ]
    return AlterPartitionReassignmentsRequest(timeout_ms=int(timeout_s * 1000), topics=topics)


def _row(of_topic: Any, partition: int, row: tuple[int, ...] | None) -> Any:
    return of_topic.ReassignablePartition(partition_index=partition, replicas=None if row is None else [*row])


def alter_answers(answer: Any) -> dict[TopicPartition, str]:
    """Return what was refused, empty for what was accepted."""
    return {
        TopicPartition(topic.name, p.partition_index): refused(p.error_code, p.error_message)
        for topic in answer.responses
        for p in topic.partitions
    }


def elect_request(partitions: Collection[TopicPartition], timeout_s: float) -> Any:
    of_topic = ElectLeadersRequest.TopicPartitions
    topics = [of_topic(topic=topic, partitions=[*found]) for topic, found in by_topic(partitions).items()]
    return ElectLeadersRequest(election_type=PREFERRED, topic_partitions=topics, timeout_ms=int(timeout_s * 1000))


def elect_answers(answer: Any) -> dict[TopicPartition, str]:
    """Return what was refused; an election that is not needed is no refusal."""
    return {
        TopicPartition(found.topic, p.partition_id): ""
        if p.error_code == KafkaError.ELECTION_NOT_NEEDED
        else refused(p.error_code, p.error_message)
        for found in answer.replica_election_results
        for p in found.partition_result
    }


def configs_request(kind: ResourceType, edits: Mapping[str, Sequence[Edit]], *, validate_only: bool = False) -> Any:
    """Change configs of topics or brokers, by their names."""
    of_resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    resources = [
        of_resource(
            resource_type=kind.value,
            resource_name=name,
            configs=[
                of_resource.AlterableConfig(name=config, config_operation=int(operation), value=value)
                for config, operation, value in found
            ],
        )
        for name, found in edits.items()
    ]
    return IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)


def configs_answers(answer: Any) -> dict[str, str]:
    """Return what was refused by resource, empty for what was accepted."""
    return {found.resource_name: refused(found.error_code, found.error_message) for found in answer.responses}


def adding(config: str, present: Collection[str], entries: Sequence[str], *, can_begin: bool = True) -> Iterator[Edit]:
    """Yield the edit that adds entries to a list, without those that are there: an entry may not be there twice.

    Args:
        can_begin: Whether brokers add entries to a list that is not set.
    """
    if new := [entry for entry in entries if entry not in present]:
        yield config, Operation.APPEND if can_begin or present else Operation.SET, ",".join(new)


def cleaned(config: str, text: str | None) -> Iterator[Edit]:
    """Yield the edit that takes empty entries out of a list.

    Kafka 2.8 begins a list that is not set with one (``,0:1``), and its brokers cannot read that: nothing is throttled,
    although DescribeConfigs shows the list. Source: kafka.server.TopicConfigHandler#parseThrottledPartitions (2.8.2).
    """
    if text and any(not entry.strip() for entry in text.split(",")):
        yield config, Operation.SET, ",".join(entries_of(text))


def removing(config: str, present: Sequence[str], entries: Collection[str]) -> Iterator[Edit]:
    """Yield the edit that takes entries out of a list; it deletes a list of which nothing is left."""
    ours = [entry for entry in present if entry in entries]
    if ours and len(ours) == len(present):
        yield config, Operation.DELETE, None
    elif ours:
        yield config, Operation.SUBTRACT, ",".join(ours)  # each as often as it is there: brokers take out one each


def entries_of(text: str | None) -> tuple[str, ...]:
    """Return the entries of a throttle list."""
    return tuple(entry.strip() for entry in (text or "").split(",") if entry.strip())


def rates_of(answer: Any) -> tuple[dict[str, int | None], bool]:
    """Return the rates that somebody has set, and whether a broker hides one of them.

    Brokers before 2.5 hide its value: they take a config that they do not define for a secret.
    """
    found: dict[str, int | None] = {}
    for setting in answer.results[0].configs:
        if setting.name in (LEADER_RATE, FOLLOWER_RATE) and setting.config_source in _BY_PEOPLE:
            found[setting.name] = int(setting.value) if setting.value and setting.value.isdecimal() else None
    return found, None in found.values()


def caps_min_isr(offered: Mapping[int, int] | str) -> bool:
    """Return whether a broker caps ``min.insync.replicas``, by the last version of each request that it takes.

    Args:
        offered: By API key; a sentence where the broker does not tell.
    """
    return isinstance(offered, str) or release_of(offered) >= CAPPED_MIN_ISR


def sizes_of(answer: Any) -> LogSizes:
    """Return sizes of the logs that an answer about log directories names; copies inside a broker do not count."""
    sizes: dict[TopicPartition, int] = {}
    working = [directory for directory in answer.results if not directory.error_code]
    for topic in (topic for directory in working for topic in directory.topics):
        for log in (log for log in topic.partitions if not log.is_future_key):
            sizes[TopicPartition(topic.name, log.partition_index)] = log.partition_size
    return LogSizes(bytes_of=sizes, free_bytes=free_bytes_of(working))


def refused(code: int, message: str | None) -> str:
    """Return ``NAME (code): message``; empty where the code is no error."""
    if code == KafkaError.NO_ERROR:
        return ""
    return f"{named(code)}: {message or KafkaError(code).str()}"
