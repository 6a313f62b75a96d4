"""What single brokers answer about themselves: metadata, logs and topic configs. Never writes, creates no topic."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError

from topicops.edges.kafka.clients.kafka_python_inside import Reconnecting
from topicops.edges.kafka.clients.requests import (
    directories_of,
    directories_request,
    end_offsets_request,
    is_override,
    metadata_request,
    partitions_of,
    topic_configs_request,
)
from topicops.edges.kafka.clients.settings import named
from topicops.model.errors import ClusterError, UsageError
from topicops.model.ports import BrokerLogs, BrokerView, LogQuestions, PartitionView, Unoffered

BROKERS_ASKED = 3
"""Number of brokers that are asked for topic configs, one after another until one answers."""
TOPICS_A_REQUEST = 200
UNREADY_CODES = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE)
"""The topic is unknown, or has no leader yet: both belong to a view. Any other error does not."""


class BrokerViews:
    """Fills ``BrokerMetadata``: asks each broker over a connection of its own, all at the same time.

    Each round of questions takes at most ``timeout_s``.
    """

    def __init__(self, properties: Mapping[str, str], *, timeout_s: float = 3.0, is_managed: bool = False) -> None:
        self._connections = Reconnecting(properties, request_timeout_s=timeout_s, is_managed=is_managed)
        self._known: Mapping[int, str] = {}

    def views(self, brokers: Sequence[int], topics: Sequence[str] | None) -> Mapping[int, BrokerView | str]:
        """Return each broker's own view; a sentence instead of a view where it gave none within its deadline."""
        replies = self._replies({broker: metadata_request(topics) for broker in brokers})
        return {broker: _view_or_problem(broker, reply) for broker, reply in replies.items()}

    def logs(self, questions: Mapping[int, LogQuestions]) -> Mapping[int, BrokerLogs | str]:
        """Return each broker's own logs; a sentence instead where it gave no complete answer."""
        on_disk = self._replies({broker: directories_request(asked.held) for broker, asked in questions.items()})
        leaders = {broker: asked for broker, asked in questions.items() if asked.led}
        read = self._replies({broker: end_offsets_request(asked.led) for broker, asked in leaders.items()})
        return {broker: _logs_or_problem(broker, reply, read.get(broker)) for broker, reply in on_disk.items()}

    def overrides(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | str]:
        """Return what is set on each topic itself; a sentence instead where no broker answered."""
        found: dict[str, Mapping[str, str] | str] = {}
        for start in range(0, len(topics), TOPICS_A_REQUEST):
            found |= self._overrides(topics[start : start + TOPICS_A_REQUEST])
        return found

    def close(self) -> None:
        self._connections.close()
        self._known = {}

    def _overrides(self, topics: Sequence[str]) -> dict[str, Mapping[str, str] | str]:
        """Ask brokers until one answers: each has the configs from ZooKeeper, or from its own log of metadata."""
        reply: Any = "no broker gives the configs"
        for broker in sorted(self._known)[:BROKERS_ASKED]:
            reply = self._replies({broker: topic_configs_request(topics)})[broker]
            if not isinstance(reply, str):
                return {result.resource_name: _overrides_or_problem(result) for result in reply.results}
        return dict.fromkeys(topics, reply)

    def _replies(self, requests: Mapping[int, Any]) -> dict[int, Any]:
        """Return each broker's answer; a sentence that names the broker where there is none."""
        try:
            connections = self._connections()
            if not requests.keys() <= self._known.keys():
                self._known = connections.brokers()
        except (ClusterError, UsageError) as error:
            # The changes are already made: the report needs the reason, not an exception.
            return {broker: f"broker {broker} cannot be asked: {error}" for broker in requests}
        reachable = {broker: request for broker, request in requests.items() if broker in self._known}
        replies = connections.ask(reachable) if reachable else {}
        if any(isinstance(reply, str) for reply in replies.values()):
            self._known = {}  # the broker may come back with another address
        unknown = "is not known to the brokers that answer"
        found = {broker: replies.get(broker, unknown) for broker in requests}
        return {b: type(r)(f"broker {b} {r}") if isinstance(r, str) else r for b, r in found.items()}


def _view_or_problem(broker: int, reply: Any) -> BrokerView | str:
    if isinstance(reply, str):
        return reply
    failed = [t for t in reply.topics if t.error_code not in (KafkaError.NO_ERROR, *UNREADY_CODES)]
    if failed:
        return f"broker {broker} does not describe topic {failed[0].name}: {named(failed[0].error_code)}"
    known = [topic for topic in reply.topics if topic.error_code != KafkaError.UNKNOWN_TOPIC_OR_PART]
    return BrokerView(
        topics={topic.name: {p.partition_index: _partition_view(p) for p in topic.partitions} for topic in known},
        brokers=frozenset(node.node_id for node in reply.brokers),
        cluster_id=reply.cluster_id,
        # As in znodes; the broker may give none.
        topic_ids={
            topic.name: urlsafe_b64encode(topic.topic_id.bytes).decode().rstrip("=")
            for topic in known
            if topic.topic_id is not None and topic.topic_id.int
        },
    )


def _partition_view(seen: Any) -> PartitionView:
    return PartitionView(leader=seen.leader_id, replicas=tuple(seen.replica_nodes), isr=tuple(seen.isr_nodes))


def _logs_or_problem(broker: int, on_disk: Any, read: Any) -> BrokerLogs | str:
    """Judge ``read``, the reply about end offsets; None if the broker leads none of the partitions."""
    directories = None if isinstance(on_disk, Unoffered) else directories_of(broker, on_disk)
    if isinstance(directories, str):
        return directories
    if isinstance(read, str):
        return f"{read} when asked for end offsets"
    errors = {
        topic.name: {p.partition_index: named(p.error_code) for p in topic.partitions if p.error_code}
        for topic in (() if read is None else read.topics)
    }
    unread = {topic: found for topic, found in errors.items() if found}
    if directories is None:
        return BrokerLogs(held={}, unread=unread, unoffered=on_disk)
    idle = partitions_of(on_disk, served=False)
    return BrokerLogs(held=directories.held, failed=directories.failed, idle=idle, unread=unread)


def _overrides_or_problem(result: Any) -> Mapping[str, str] | str:
    if result.error_code:
        return f"the brokers do not give its configs: {named(result.error_code)}"
    return {
        entry.name: entry.value or ""
        for entry in result.configs
        if is_override(entry.config_source, is_default=entry.is_default)
    }
