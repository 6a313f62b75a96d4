"""What a plan asks the brokers once: their defaults, and the activity on topics. Never writes, creates no topic."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stub re-exports without saying so
    AclOperation,
    OffsetSpec,
    ResourceType,
)
from kafka.protocol.admin import DescribeConfigsRequest

from topicops.edges.kafka.clients import BrokerConnections, Confluent, Deadline, wait_all
from topicops.model.errors import ClusterError, UsageError
from topicops.model.plans.plan import TopicActivity
from topicops.model.specs.topic_config import TOPIC_CONFIGS, canonical_overrides

log = logging.getLogger(__name__)

BROKERS_ASKED = 3
"""How many brokers are asked for their settings, one after another until one answers."""
REBALANCE_PAUSE_S = 0.1
REBALANCING = (ConsumerGroupState.PREPARING_REBALANCING, ConsumerGroupState.COMPLETING_REBALANCING)

MS_IN_UNIT = {"minutes": 60_000, "hours": 3_600_000}
"""Units of broker settings whose topic config is in ms."""
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # nor are its methods typed

NO_LIMIT_MS = str((1 << 63) - 1)
TIMESTAMP_LIMITS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
TIMESTAMP_DIFFERENCE = "message.timestamp.difference.max.ms"
MESSAGE_FORMAT = "message.format.version"


class BrokerQuestions:
    """Fills ``ClusterQuestions``.

    Args:
        properties: Librdkafka's properties of the reader.
        timeout_s: The longest time for one question with all its requests.
    """

    def __init__(self, properties: Mapping[str, str], *, timeout_s: float = 2.0) -> None:
        self._properties = properties
        self._confluent = Confluent(properties, patience_s=timeout_s / 4)
        self._timeout_s = timeout_s

    def broker_defaults(self) -> Mapping[str, str] | None:
        """The value of each topic config on a topic without override, canonical; None when no broker answered."""
        deadline = Deadline(self._timeout_s)
        try:
            # Not confluent-kafka, which asks the controller for the list of brokers: the controller may be silent.
            connections = BrokerConnections(self._properties, request_timeout_s=self._timeout_s)
        except UsageError as error:
            log.debug("broker defaults: %s", error)
            return None
        try:
            return _defaults_of_one(connections, deadline)
        except ClusterError as error:
            log.debug("broker defaults: %s", error)
            return None
        finally:
            connections.close()

    def activity(self, topics: Sequence[str]) -> Mapping[str, TopicActivity]:
        """End offsets of each topic, and the groups that consume it; None for what could not be read."""
        if not topics:
            return {}
        deadline = Deadline(self._timeout_s)
        offsets = self._end_offsets(topics, deadline)
        groups = self._groups(topics, deadline)
        return {
            topic: TopicActivity(end_offsets=offsets.get(topic), groups=groups[topic] if groups is not None else None)
            for topic in topics
        }

    def close(self) -> None:
        """Close the connection; safe to call twice."""
        self._confluent.discard()

    def _end_offsets(self, topics: Sequence[str], deadline: Deadline) -> dict[str, dict[int, int]]:
        """End offsets by topic and partition; a topic with an unreadable partition is left out."""
        partitions = self._partitions(topics, deadline)
        wanted = {TopicPartition(t, p): LATEST for t, ids in partitions.items() for p in ids}
        if not wanted:
            return {}
        try:
            futures = self._confluent.client().list_offsets(wanted, request_timeout=deadline.left_s)
        except KafkaException as error:
            self._give_up("end offsets", error)
            return {}
        wait_all(list(futures.values()), deadline.left_s)
        found: dict[str, dict[int, int]] = {}
        for partition, future in futures.items():
            if _succeeded(future):
                found.setdefault(partition.topic, {})[partition.partition] = future.result().offset
        return {
            topic: dict(sorted(ends.items())) for topic, ends in found.items() if len(ends) == len(partitions[topic])
        }

    def _partitions(self, topics: Sequence[str], deadline: Deadline) -> dict[str, list[int]]:
        """Partition ids of the topics that exist."""
        try:
            futures = self._confluent.client().describe_topics(
                TopicCollection(list(topics)), request_timeout=deadline.left_s
            )
        except KafkaException as error:
            self._give_up("partitions", error)
            return {}
        wait_all(list(futures.values()), deadline.left_s)
        return {t: [p.id for p in f.result().partitions] for t, f in futures.items() if _succeeded(f)}

    def _groups(self, topics: Sequence[str], deadline: Deadline) -> dict[str, tuple[str, ...]] | None:
        """Groups with members or commits by topic; None when one group could not be read: it may consume any topic."""
        try:
            groups = self._group_ids(deadline)
            consumed = _merged(self._assigned(groups, deadline), self._committed(groups, deadline))
        except (KafkaException, TimeoutError, PermissionError) as error:
            self._give_up("consumer groups", error)
            return None
        return {topic: tuple(sorted(g for g, names in consumed.items() if topic in names)) for topic in topics}

    def _group_ids(self, deadline: Deadline) -> list[str]:
        """All groups. Raises where a broker is silent: it hides the groups that it coordinates."""
        self._require_right_to_all_groups(deadline)
        result = self._confluent.client().list_consumer_groups(request_timeout=deadline.left_s).result(deadline.left_s)
        if result.errors:
            raise KafkaException(result.errors[0])
        return [group.group_id for group in result.valid]

    def _require_right_to_all_groups(self, deadline: Deadline) -> None:
        """Raise ``PermissionError`` where brokers may leave groups out of their list, which they do without an error.

        Source: kafka.server.KafkaApis#handleListGroupsRequest (3.9): Describe on the cluster gives all groups.
        """
        future = self._confluent.client().describe_cluster(
            include_authorized_operations=True, request_timeout=deadline.left_s
        )
        if AclOperation.DESCRIBE not in (future.result(deadline.left_s).authorized_operations or ()):
            raise PermissionError("the reader lacks Describe on the cluster, and may not see every group")

    def _assigned(self, groups: Sequence[str], deadline: Deadline) -> dict[str, set[str]]:
        """Topics that members of each group read now. A group in the middle of a rebalance is asked again."""
        found: dict[str, set[str]] = {}
        pending = list(groups)
        while pending:
            futures = self._confluent.client().describe_consumer_groups(pending, request_timeout=deadline.left_s)
            wait_all(list(futures.values()), deadline.left_s)
            described = [future.result(0) for future in futures.values()]
            pending = [group.group_id for group in described if group.state in REBALANCING]
            found |= {group.group_id: _topics_of(group) for group in described}
            if pending and deadline.is_over:
                raise TimeoutError(f"group {pending[0]} is still rebalancing")
            time.sleep(REBALANCE_PAUSE_S if pending else 0)
        return found

    def _committed(self, groups: Sequence[str], deadline: Deadline) -> dict[str, set[str]]:
        """Topics on which each group has committed an offset."""
        client = self._confluent.client()
        futures = {
            group: client.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], request_timeout=deadline.left_s
            )[group]
            for group in groups
        }
        wait_all(list(futures.values()), deadline.left_s)
        return {
            group: {p.topic for p in future.result(0).topic_partitions if p.offset >= 0}
            for group, future in futures.items()
        }

    def _give_up(self, question: str, reason: object) -> None:
        log.debug("not read: %s: %s; the client reported: %s", question, reason, self._confluent.recent_errors())
        self._confluent.discard()


def _topics_of(group: Any) -> set[str]:
    return {p.topic for member in group.members if member.assignment for p in member.assignment.topic_partitions}


def _merged(one: Mapping[str, set[str]], other: Mapping[str, set[str]]) -> dict[str, set[str]]:
    return {group: one.get(group, set()) | other.get(group, set()) for group in {**one, **other}}


def _succeeded(future: Future[Any]) -> bool:
    return future.done() and future.exception() is None


def topic_defaults(broker_settings: Mapping[str, str]) -> dict[str, str]:
    """Translate a broker's settings into the configs of a topic without override, canonical.

    Args:
        broker_settings: By the broker's own names; a setting without a value is left out.
    Source: org.apache.kafka.server.config.ServerTopicConfigSynonyms, KafkaConfig#extractLogConfigMap (3.9).
    """
    defaults = {name: _default(name, broker_settings) for name in TOPIC_CONFIGS}
    if _ignores_message_format(broker_settings):
        defaults[MESSAGE_FORMAT] = TOPIC_CONFIGS[MESSAGE_FORMAT].default
    for limit in TIMESTAMP_LIMITS:
        # The older limit is for both, until the newer one is set.
        if defaults[limit] == NO_LIMIT_MS:
            defaults[limit] = defaults[TIMESTAMP_DIFFERENCE]
    return canonical_overrides(defaults)


def _defaults_of_one(connections: BrokerConnections, deadline: Deadline) -> dict[str, str] | None:
    """Defaults of the first broker by id that answers, so that the same brokers give the same plan."""
    brokers = sorted(connections.brokers())[:BROKERS_ASKED]
    for asked, broker in enumerate(brokers):
        timeout_s = deadline.left_s / (len(brokers) - asked)
        reply = connections.ask({broker: _configs_request(broker)}, timeout_s=timeout_s)[broker]
        if not isinstance(reply, str) and reply.results[0].error_code == KafkaError.NO_ERROR:
            settings = reply.results[0].configs
            return topic_defaults({setting.name: setting.value for setting in settings if setting.value is not None})
    return None


def _configs_request(broker: int) -> Any:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=ResourceType.BROKER.value, resource_name=str(broker), configuration_keys=None
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=False, include_documentation=False)


def _default(name: str, broker_settings: Mapping[str, str]) -> str:
    config = TOPIC_CONFIGS[name]
    for synonym in config.broker_synonyms:
        if synonym in broker_settings:
            return _in_ms(broker_settings[synonym], synonym.rpartition(".")[2])
    return config.default


def _ignores_message_format(broker_settings: Mapping[str, str]) -> bool:
    """Since protocol 3.0 brokers ignore the setting and write one format."""
    major, _, _ = broker_settings.get("inter.broker.protocol.version", "3.9").partition(".")
    return major.isdigit() and int(major) >= 3


def _in_ms(text: str, unit: str) -> str:
    """``168`` hours as milliseconds; a negative value gives -1, which is no limit; other units stay as they are."""
    if unit not in MS_IN_UNIT:
        return text
    return str(max(-1, int(text) * MS_IN_UNIT[unit]))
