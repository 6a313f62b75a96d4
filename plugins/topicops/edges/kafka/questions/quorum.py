"""What controls the brokers: a KRaft quorum, with its leader and epoch, or ZooKeeper. Never writes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from time import monotonic
from typing import Any

from confluent_kafka import KafkaError
from kafka.protocol.admin import DescribeQuorumRequest
from kafka.protocol.metadata import ApiVersionsRequest

from topicops.edges.kafka.clients.broker_connections import BrokerConnections
from topicops.edges.kafka.clients.settings import named
from topicops.model.errors import ClusterError, ClusterUnreachableError
from topicops.model.ports import ServerTime
from topicops.model.specs.spellings import time_of_ms

METADATA_TOPIC = "__cluster_metadata"
"""The log that a quorum keeps; it has one partition."""


@dataclass(frozen=True, slots=True)
class Quorum:
    """The controllers of a KRaft cluster: their leader and its epoch."""

    leader: int
    """-1 while there is none."""
    epoch: int
    """Of the leader; each election raises it."""
    time: ServerTime | None = None
    """By the leader's clock; None: there is no leader, or its release does not tell it (before 3.3)."""


def quorum_of(properties: Mapping[str, str], *, timeout_s: float = 3.0) -> Quorum | None:
    """What ``ask_quorum`` gives, over connections of its own, to the brokers of librdkafka's ``properties``."""
    with closing(BrokerConnections(properties, request_timeout_s=timeout_s)) as connections:
        return ask_quorum(connections)


def ask_quorum(connections: BrokerConnections) -> Quorum | None:
    """The quorum as the brokers describe it; None: ZooKeeper controls them, or a migration to KRaft is not over.

    Raises:
        ClusterUnreachableError: No broker answers.
        ClusterError: The brokers refuse an answer.

    Source: a broker offers DescribeQuorum exactly when it runs with KRaft (DescribeQuorumRequest.json, 3.9).
    """
    questions = {broker: ApiVersionsRequest(version=0) for broker in connections.brokers()}
    answering = _answered(connections.ask(questions, enough=1))
    if not connections.offers(next(iter(answering)), DescribeQuorumRequest):
        return None
    asked_at = monotonic()
    answers = _answered(connections.ask({broker: _request() for broker in answering}, enough=1))
    return _decoded(answers, asked_at, monotonic())


def _request() -> Any:
    partition = DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)
    return DescribeQuorumRequest(
        topics=[DescribeQuorumRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
    )


def _answered(replies: Mapping[int, Any]) -> dict[int, Any]:
    """The replies that are answers. Raises ``ClusterUnreachableError`` when there is none."""
    answers = {broker: reply for broker, reply in replies.items() if not isinstance(reply, str)}
    if not answers:
        raise ClusterUnreachableError("no broker answers: " + "; ".join(sorted(set(map(str, replies.values())))))
    return answers


def _decoded(answers: Mapping[int, Any], asked_at: float, answered_at: float) -> Quorum:
    broker, answer = next(iter(answers.items()))
    if answer.error_code != KafkaError.NO_ERROR:
        raise ClusterError(
            f"broker {broker} does not describe the KRaft quorum: {named(answer.error_code)}; "
            "the reader needs Describe on the cluster"
        )
    partition = answer.topics[0].partitions[0]
    leader_ms = max((_time_ms(v) for v in partition.current_voters if v.replica_id == partition.leader_id), default=-1)
    at = time_of_ms(leader_ms) if leader_ms > 0 else None
    time = (
        None
        if at is None
        else ServerTime(server="the KRaft controller", at=at, asked_at=asked_at, answered_at=answered_at)
    )
    return Quorum(leader=partition.leader_id, epoch=partition.leader_epoch, time=time)


def _time_ms(voter: Any) -> int:
    """When the leader last saw the voter caught up, by its own clock; of the leader itself: now. -1: not told.

    Source: DescribeQuorumResponse.json, org.apache.kafka.raft.LeaderState#describeQuorum (3.9; KIP-836, since 3.3).
    """
    return int(voter.last_caught_up_timestamp)
