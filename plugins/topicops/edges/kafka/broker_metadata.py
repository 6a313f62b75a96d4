"""What the brokers themselves say: each one's own metadata, their defaults, and traffic on topics. Never writes.

No call in here creates a topic: names are asked for with auto-creation off.
"""

from __future__ import annotations

import logging
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any
from uuid import UUID

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
    ConfigSource,
    OffsetSpec,
    ResourceType,
)
from kafka.protocol.admin import DescribeConfigsRequest, DescribeLogDirsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from topicops.edges.kafka.clients import BrokerConnections, Confluent, Deadline, settled
from topicops.model.errors import ClusterError, UsageError
from topicops.model.plans.plan import TopicActivity
from topicops.model.ports import BrokerLogs, BrokerView, LogQuestions, PartitionView
from topicops.model.specs.topic_config import TOPIC_CONFIGS, canonical_overrides

log = logging.getLogger(__name__)

BROKERS_ASKED = 3
"""How many brokers are asked what each of them knows, one after another until one answers."""
TOPICS_A_REQUEST = 200
REBALANCE_PAUSE_S = 0.1
REBALANCING = (ConsumerGroupState.PREPARING_REBALANCING, ConsumerGroupState.COMPLETING_REBALANCING)

MS_IN_UNIT = {"minutes": 60_000, "hours": 3_600_000}
"""Units in which a broker's setting may stand where the topic config is in ms."""
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # nor are its methods typed

NO_LIMIT_MS = str((1 << 63) - 1)
TIMESTAMP_LIMITS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
TIMESTAMP_DIFFERENCE = "message.timestamp.difference.max.ms"
MESSAGE_FORMAT = "message.format.version"


class BrokerViews:
    """Fills ``BrokerMetadata``: each broker is asked over a connection of its own, all at once.

    Args:
        properties: Librdkafka's properties of the reader.
        timeout_s: For one round of questions, whatever the brokers do.
    """

    def __init__(self, properties: Mapping[str, str], *, timeout_s: float = 3.0) -> None:
        self._properties = properties
        self._timeout_s = timeout_s
        self._connections: BrokerConnections | None = None
        self._known: Mapping[int, str] = {}

    def views(self, brokers: Sequence[int], topics: Sequence[str] | None) -> Mapping[int, BrokerView | str]:
        """Each broker's own view; a sentence instead of a view where it gave none within its deadline."""
        replies = self._replies({broker: _metadata_request(topics) for broker in brokers})
        return {broker: _view_or_sentence(broker, reply) for broker, reply in replies.items()}

    def logs(self, questions: Mapping[int, LogQuestions]) -> Mapping[int, BrokerLogs | str]:
        """Each broker's own logs; a sentence where it did not tell."""
        on_disk = self._replies({broker: _directories_request(asked) for broker, asked in questions.items()})
        leaders = {broker: asked for broker, asked in questions.items() if asked.led}
        read = self._replies({broker: _end_offsets_request(asked) for broker, asked in leaders.items()})
        return {broker: _logs_or_sentence(broker, reply, read.get(broker)) for broker, reply in on_disk.items()}

    def overrides(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | str]:
        """What is set on each topic itself; a sentence where no broker told."""
        found: dict[str, Mapping[str, str] | str] = {}
        for start in range(0, len(topics), TOPICS_A_REQUEST):
            found |= self._overrides(topics[start : start + TOPICS_A_REQUEST])
        return found

    def close(self) -> None:
        """Close all connections; safe to call twice."""
        if self._connections is not None:
            self._connections.close()
        self._connections, self._known = None, {}

    def _overrides(self, topics: Sequence[str]) -> dict[str, Mapping[str, str] | str]:
        """As the first of a few brokers tells them: each would tell what ZooKeeper, or its own log of metadata, has."""
        reply: Any = "no broker tells the configs"
        for broker in sorted(self._known)[:BROKERS_ASKED]:
            reply = self._replies({broker: _topic_configs_request(topics)})[broker]
            if not isinstance(reply, str):
                return {result.resource_name: _overrides_or_sentence(result) for result in reply.results}
        return dict.fromkeys(topics, str(reply))

    def _replies(self, requests: Mapping[int, Any]) -> dict[int, Any]:
        """Each broker's answer; a whole sentence where there is none."""
        deadline = Deadline(self._timeout_s)
        try:
            connections = self._connected(requests)
        except (ClusterError, UsageError) as error:
            # Asked after the changes are made: whoever waits for a verdict needs the reason, not an end.
            return {broker: f"broker {broker} cannot be asked: {error}" for broker in requests}
        reachable = {broker: request for broker, request in requests.items() if broker in self._known}
        replies = connections.ask(reachable, timeout_s=deadline.left_s) if reachable else {}
        if any(isinstance(reply, str) for reply in replies.values()):
            self._known = {}  # it may be back elsewhere: look its address up again next time
        unknown = "is not known to the brokers that answer"
        told = {broker: replies.get(broker, unknown) for broker in requests}
        return {b: f"broker {b} {reply}" if isinstance(reply, str) else reply for b, reply in told.items()}

    def _connected(self, brokers: Iterable[int]) -> BrokerConnections:
        """Connections that know the addresses of ``brokers``, as far as any broker knows them."""
        if self._connections is None:
            self._connections = BrokerConnections(self._properties, request_timeout_s=self._timeout_s)
        if not set(brokers) <= set(self._known):
            self._known = self._connections.brokers()
        return self._connections


class BrokerQuestions:
    """Fills ``ClusterQuestions``.

    Args:
        properties: Librdkafka's properties of the reader.
        timeout_s: For one question with all its requests.
    """

    def __init__(self, properties: Mapping[str, str], *, timeout_s: float = 2.0) -> None:
        self._properties = properties
        self._confluent = Confluent(properties, patience_s=timeout_s / 4)
        self._timeout_s = timeout_s

    def broker_defaults(self) -> Mapping[str, str] | None:
        """What each topic config is on a topic without override, canonical; None when no broker answered."""
        deadline = Deadline(self._timeout_s)
        try:
            # Not confluent-kafka, which asks the controller for the list of brokers: that one may be the silent one.
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
        """End offsets of each topic, and who consumes it; None for what could not be read."""
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
        settled(list(futures.values()), deadline.left_s)
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
        settled(list(futures.values()), deadline.left_s)
        return {t: [p.id for p in f.result().partitions] for t, f in futures.items() if _succeeded(f)}

    def _groups(self, topics: Sequence[str], deadline: Deadline) -> dict[str, tuple[str, ...]] | None:
        """Groups with members or commits by topic; None when one group could not be looked into: it may be the one."""
        try:
            groups = self._group_ids(deadline)
            consumed = _merged(self._assigned(groups, deadline), self._committed(groups, deadline))
        except (KafkaException, TimeoutError, PermissionError) as error:
            self._give_up("consumer groups", error)
            return None
        return {topic: tuple(sorted(g for g, names in consumed.items() if topic in names)) for topic in topics}

    def _group_ids(self, deadline: Deadline) -> list[str]:
        """All groups; one silent broker hides those that it coordinates."""
        self._require_sight_of_all_groups(deadline)
        result = self._confluent.client().list_consumer_groups(request_timeout=deadline.left_s).result(deadline.left_s)
        if result.errors:
            raise KafkaException(result.errors[0])
        return [group.group_id for group in result.valid]

    def _require_sight_of_all_groups(self, deadline: Deadline) -> None:
        """Raise ``PermissionError`` where brokers may leave groups out of their list, which they do without a word.

        Source: kafka.server.KafkaApis#handleListGroupsRequest (3.9): all of them for who may describe the cluster.
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
            settled(list(futures.values()), deadline.left_s)
            described = [future.result(0) for future in futures.values()]
            pending = [group.group_id for group in described if group.state in REBALANCING]
            found |= {group.group_id: _topics_of(group) for group in described}
            if pending and deadline.is_over:
                raise TimeoutError(f"group {pending[0]} does not end its rebalance")
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
        settled(list(futures.values()), deadline.left_s)
        return {
            group: {p.topic for p in future.result(0).topic_partitions if p.offset >= 0}
            for group, future in futures.items()
        }

    def _give_up(self, question: str, reason: object) -> None:
        log.debug("not read: %s: %s; last heard: %s", question, reason, self._confluent.last_words())
        self._confluent.discard()


def topic_defaults(broker_settings: Mapping[str, str]) -> dict[str, str]:
    """Translate a broker's settings into what topics without override get, canonical.

    Args:
        broker_settings: By the broker's own names; a setting without a value is left out.
    Source: org.apache.kafka.server.config.ServerTopicConfigSynonyms, KafkaConfig#extractLogConfigMap (3.9).
    """
    defaults = {name: _default(name, broker_settings) for name in TOPIC_CONFIGS}
    if _ignores_message_format(broker_settings):
        defaults[MESSAGE_FORMAT] = TOPIC_CONFIGS[MESSAGE_FORMAT].default
    for limit in TIMESTAMP_LIMITS:
        # The older, common limit holds until the newer one is set.
        if defaults[limit] == NO_LIMIT_MS:
            defaults[limit] = defaults[TIMESTAMP_DIFFERENCE]
    return canonical_overrides(defaults)


def _defaults_of_one(connections: BrokerConnections, deadline: Deadline) -> dict[str, str] | None:
    """Defaults of the first broker by id that tells them, so that the same brokers give the same plan."""
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
    """Since protocol 3.0 brokers write one format, whatever they are told."""
    major, _, _ = broker_settings.get("inter.broker.protocol.version", "3.9").partition(".")
    return major.isdigit() and int(major) >= 3


def _in_ms(text: str, unit: str) -> str:
    """``168`` hours as milliseconds; negative stays -1, which is no limit; other units stay as they are."""
    if unit not in MS_IN_UNIT:
        return text
    return str(max(-1, int(text) * MS_IN_UNIT[unit]))


def _metadata_request(topics: Sequence[str] | None) -> Any:
    named = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
    return MetadataRequest(topics=named, allow_auto_topic_creation=False)


def _view_or_sentence(broker: int, reply: Any) -> BrokerView | str:
    if isinstance(reply, str):
        return reply
    strange = [t for t in reply.topics if t.error_code not in (KafkaError.NO_ERROR, *UNREADY_CODES)]
    if strange:
        error = KafkaError(strange[0].error_code)
        return f"broker {broker} does not describe topic {strange[0].name}: {error.name()} ({error.code()})"
    known = [topic for topic in reply.topics if topic.error_code != KafkaError.UNKNOWN_TOPIC_OR_PART]
    return BrokerView(
        topics={topic.name: {p.partition_index: _partition_view(p) for p in topic.partitions} for topic in known},
        brokers=frozenset(node.node_id for node in reply.brokers),
        cluster_id=reply.cluster_id,
        topic_ids={topic.name: text for topic in known if (text := _topic_id(topic)) is not None},
    )


def _topic_id(topic: Any) -> str | None:
    """As znodes have it; None where the broker gives none."""
    told: UUID | None = topic.topic_id
    return None if told is None or not told.int else urlsafe_b64encode(told.bytes).decode().rstrip("=")


UNREADY_CODES = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE)
"""No such topic, or one without a leader yet: both are views. Any other error is not."""


def _partition_view(partition: Any) -> PartitionView:
    return PartitionView(
        leader=partition.leader_id, replicas=tuple(partition.replica_nodes), isr=tuple(partition.isr_nodes)
    )


def _directories_request(asked: LogQuestions) -> Any:
    topics = [
        DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=sorted(partitions))
        for topic, partitions in asked.held.items()
    ]
    return DescribeLogDirsRequest(topics=topics)


def _end_offsets_request(asked: LogQuestions) -> Any:
    """With the leader epoch, so that a leader which has missed its last election says so."""
    of_topic = ListOffsetsRequest.ListOffsetsTopic
    of_partition = of_topic.ListOffsetsPartition
    topics = [
        of_topic(
            name=topic,
            partitions=[
                of_partition(
                    partition_index=p, current_leader_epoch=ANY_EPOCH if epoch is None else epoch, timestamp=LATEST_TIME
                )
                for p, epoch in sorted(partitions.items())
            ],
        )
        for topic, partitions in asked.led.items()
    ]
    return ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)


def _logs_or_sentence(broker: int, on_disk: Any, read: Any) -> BrokerLogs | str:
    """``read``: the end offsets; None where the broker leads nothing that was asked about."""
    if isinstance(on_disk, str):
        return f"{on_disk} when asked for its log directories"
    if on_disk.error_code:
        error = KafkaError(on_disk.error_code)
        return f"broker {broker} does not tell its log directories: {error.name()} ({error.code()})"
    if not on_disk.results:
        # A broker of before 3.0 answers so where it may not tell; it never runs without any.
        return f"broker {broker} tells of no log directory: the reader needs Describe on the cluster"
    if isinstance(read, str):
        return f"{read} when asked for end offsets"
    held: dict[str, set[int]] = {}
    idle: dict[str, set[int]] = {}
    for topic in (topic for directory in on_disk.results if not directory.error_code for topic in directory.topics):
        for log in (log for log in topic.partitions if not log.is_future_key):
            (idle if log.offset_lag == NOT_SERVED else held).setdefault(topic.name, set()).add(log.partition_index)
    return BrokerLogs(held=_frozen(held), idle=_frozen(idle), unread={} if read is None else _unread(read))


NOT_SERVED = -1
"""``offset_lag`` of a log for which the broker has no replica. Source: DescribeLogDirsResponse#INVALID_OFFSET_LAG."""
LATEST_TIME = -1
ANY_EPOCH = -1


def _unread(reply: Any) -> dict[str, dict[int, str]]:
    found: dict[str, dict[int, str]] = {}
    for topic in reply.topics:
        errors = {p.partition_index: KafkaError(p.error_code) for p in topic.partitions if p.error_code}
        if errors:
            found[topic.name] = {p: f"{error.name()} ({error.code()})" for p, error in errors.items()}
    return found


def _frozen(found: Mapping[str, set[int]]) -> dict[str, frozenset[int]]:
    return {name: frozenset(ids) for name, ids in found.items()}


def _topic_configs_request(topics: Sequence[str]) -> Any:
    resources = [
        DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=ResourceType.TOPIC.value, resource_name=topic, configuration_keys=None
        )
        for topic in topics
    ]
    return DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)


def _overrides_or_sentence(result: Any) -> Mapping[str, str] | str:
    if result.error_code:
        error = KafkaError(result.error_code)
        return f"the brokers do not tell its configs: {error.name()} ({error.code()})"
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {entry.name: entry.value or "" for entry in result.configs if entry.config_source == own}


def _topics_of(group: Any) -> set[str]:
    return {p.topic for member in group.members if member.assignment for p in member.assignment.topic_partitions}


def _merged(one: Mapping[str, set[str]], other: Mapping[str, set[str]]) -> dict[str, set[str]]:
    return {group: one.get(group, set()) | other.get(group, set()) for group in {**one, **other}}


def _succeeded(future: Future[Any]) -> bool:
    return future.done() and future.exception() is None
