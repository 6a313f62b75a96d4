"""What the brokers are: which release each runs, and what controls them, a KRaft quorum or ZooKeeper. Never writes.

Brokers never say their release: the requests that they answer show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from time import monotonic
from typing import Any

from confluent_kafka import KafkaError
from kafka.protocol.admin import DescribeQuorumRequest
from kafka.protocol.metadata import ApiVersionsRequest

from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.clients.requests import settings_of, settings_request
from topicops.edges.kafka.clients.settings import Deadline, named
from topicops.model.errors import ClusterError, ClusterUnreachableError
from topicops.model.ports import ServerTime
from topicops.model.release import LIKE_3_4, SETTING_OF_3_4, Release, release_of
from topicops.model.specs.spellings import time_of_ms

METADATA_TOPIC = "__cluster_metadata"
"""The log that a quorum keeps; it has one partition."""
ANSWER_S = 2.0
"""Seconds that brokers are waited for: working ones answer at once, and a silent one must not delay each plan."""


@dataclass(frozen=True, slots=True)
class Quorum:
    leader: int
    """-1 while there is none."""
    epoch: int
    """Epoch of the leader; each election raises it."""
    time: ServerTime | None = None
    """Time by the leader's clock; None means that there is no leader, or a release before 3.3, which sends no time."""


def quorum_of(properties: Mapping[str, str]) -> Quorum | None:
    """Return what ``ask_quorum`` gives, over connections of its own, to the brokers of librdkafka's ``properties``."""
    with closing(BrokerConnections(properties, request_timeout_s=3.0)) as connections:
        return ask_quorum(connections)


def ask_quorum(connections: BrokerConnections) -> Quorum | None:
    """Return the quorum as the brokers describe it; None means: ZooKeeper controls them, or a migration to KRaft is not
    over.

    Raises ``ClusterUnreachableError`` where no broker answers, ``ClusterError`` where they refuse. Source: a broker
    offers DescribeQuorum exactly when it runs with KRaft (DescribeQuorumRequest.json, 3.9).
    """
    answering = _answered(connections, lambda: ApiVersionsRequest(version=0), connections.brokers())
    if not connections.offers(next(iter(answering)), DescribeQuorumRequest):
        return None
    asked_at = monotonic()
    answers = _answered(connections, quorum_request, answering)
    return _decoded(answers, asked_at, monotonic())


def quorum_request() -> Any:
    topic = DescribeQuorumRequest.TopicData
    partitions = [topic.PartitionData(partition_index=0)]
    return DescribeQuorumRequest(topics=[topic(topic_name=METADATA_TOPIC, partitions=partitions)])


def _answered(connections: BrokerConnections, request: Callable[[], Any], brokers: Iterable[int]) -> dict[int, Any]:
    """Return the answers until the first has come. Raises ``ClusterUnreachableError`` when there is none."""
    replies = connections.ask({broker: request() for broker in brokers}, enough=1)
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
    # Of the leader itself: now, by its own clock; -1: not told (before 3.3). Source: DescribeQuorumResponse.json
    times = (v.last_caught_up_timestamp for v in partition.current_voters if v.replica_id == partition.leader_id)
    leader_ms = max(times, default=-1)
    at, time = time_of_ms(leader_ms) if leader_ms > 0 else None, None
    if at is not None:
        time = ServerTime(server="the KRaft controller", at=at, asked_at=asked_at, answered_at=answered_at)
    return Quorum(leader=partition.leader_id, epoch=partition.leader_epoch, time=time)


def ask_offered(connections: BrokerConnections, deadline: Deadline) -> dict[int, Mapping[int, int]]:
    """Return the requests that each broker takes, of those that answer within ``ANSWER_S`` and before the deadline.

    Raises ``ClusterUnreachableError`` where no broker gives the list of brokers.
    """
    brokers, patience_s = sorted(connections.brokers()), connections.patience_s(ANSWER_S)
    answers = connections.offered(brokers, timeout_s=min(patience_s, deadline.left_s))
    return {broker: answer for broker, answer in answers.items() if not isinstance(answer, str)}


def ask_releases(
    connections: BrokerConnections, deadline: Deadline, offered: Mapping[int, Mapping[int, int]]
) -> dict[int, Release]:
    """Return the release of each broker, by the requests that it takes."""
    found = {broker: release_of(requests) for broker, requests in offered.items()}
    unclear = {b: settings_request(b, [SETTING_OF_3_4]) for b, release in found.items() if release == LIKE_3_4}
    if not unclear:
        return found
    settings = connections.ask(unclear, timeout_s=min(connections.patience_s(ANSWER_S), deadline.left_s))
    return found | {b: release_of(offered[b], settings_of(answer)) for b, answer in settings.items()}
