"""What a plan asks the brokers once: their defaults, and the activity on topics. Never writes, creates no topic."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, OffsetSpec  # type: ignore[attr-defined]  # its stub re-exports without saying so

from topicops.edges.kafka.clients.confluent import Confluent
from topicops.edges.kafka.clients.kafka_python_inside import (
    FIRST_ANSWER_S,
    TRIPS_A_QUESTION,
    BrokerConnections,
    Reconnecting,
)
from topicops.edges.kafka.clients.requests import (
    directories_request,
    settings_of,
    settings_request,
    told_directories,
    topic_configs_request,
)
from topicops.edges.kafka.clients.settings import Deadline, named, wait_all
from topicops.edges.kafka.questions.cluster import ANSWER_S, ask_offered, ask_releases
from topicops.edges.kafka.questions.consumer_groups import ConsumerGroups, GroupOnTopic, GroupsByTopic
from topicops.model.cluster.broker_defaults import BrokerDefaults
from topicops.model.cluster.snapshot import DirectoriesByBroker
from topicops.model.errors import ClusterError, ClusterUnreachableError, UsageError
from topicops.model.plans.plan import NO_RECORD, ActivityOfHiddenGroups, GroupUse, TopicActivity
from topicops.model.ports import BROKER_PATIENCE, supported
from topicops.model.release import MissingRequests, Releases, lacking, missing_requests
from topicops.model.specs.broker_settings import SETTINGS_OF_TOPICS, topic_defaults
from topicops.model.waits import waiting_for

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

TOO_LATE = "the brokers did not answer all questions within %.2g s (one answer takes %.1g s); %s gives them more time"
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # nor are its methods typed
EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
"""Position where the log begins, in remote storage too."""
NEWEST: OffsetSpec = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
"""The record with the newest timestamp; brokers before 3.0 do not know this question (KIP-734)."""
Offsets = Mapping[str, Mapping[int, Any]]
"""Confluent-kafka's ``ListOffsetsResultInfo`` by topic and partition."""

SILENT_S = 30.0
"""Seconds without questions after none of the brokers answered: each question would wait for all of them."""
RETENTION = ["cleanup.policy", "retention.ms", "retention.bytes"]
NO_TIME_LIMIT = "-1"
AUTHORIZER = "authorizer.class.name"


class HiddenGroupsError(Exception):
    """The brokers have an authorizer, and do not say whether the reader sees every group."""


class BrokerQuestions:
    """Fills ``ClusterQuestions``, as the reader; each question has ``timeout_s``, and longer where brokers are far."""

    def __init__(self, properties: Mapping[str, str], *, timeout_s: float = 2.0, is_managed: bool = False) -> None:
        self._confluent = Confluent(properties, patience_s=timeout_s / 4)
        # Not confluent-kafka, which asks the controller for the list of brokers: the controller may be silent.
        self._connections = Reconnecting(properties, request_timeout_s=timeout_s, is_managed=is_managed)
        self._timeout_s = timeout_s
        self._offered: Mapping[int, Mapping[int, int]] = {}
        """The requests of the brokers that answered, asked for once."""
        self._answer_s = 0.0
        """Seconds that one answer takes."""
        self.unread_groups = ""
        """Reason why the groups could not be read when they were asked for last."""
        self._silent_until = 0.0
        """Monotonic time until which no broker is asked, because none has answered."""

    def broker_defaults(self) -> BrokerDefaults:
        """Return what each broker uses for a config that a topic does not set; empty where no broker answers."""

        def ask(connections: BrokerConnections, _: Deadline) -> BrokerDefaults:
            asked = {broker: settings_request(broker, SETTINGS_OF_TOPICS) for broker in connections.brokers()}
            return {broker: _defaults(reply) for broker, reply in connections.ask(asked).items()}

        return self._asked("broker defaults", ask) or {}

    def releases(self) -> Releases | None:
        """Return releases of the brokers that answer in time, or None. Raises ``OldBrokersError`` below ``OLDEST``."""
        offered = self._requests()
        by_broker = self._asked("releases", lambda found, deadline: ask_releases(found, deadline, offered))
        found = Releases.of((by_broker or {}).values())
        return found and supported(found)

    def missing_requests(self) -> MissingRequests:
        """Return what brokers do not offer, as far as they answer in time."""
        return missing_requests({broker: lacking(offered) for broker, offered in self._requests().items()})

    def activity(self, topics: Sequence[str]) -> Mapping[str, TopicActivity]:
        """End offsets and last record of each topic, and the groups that use it; None for what could not be read."""
        if not topics:
            return {}
        try:
            deadline = self._deadline()
            # Librdkafka gives each broker as long as it needs.
            self._confluent.patience_s = max(self._timeout_s / 4, 4 * self._answer_s)
        except (ClusterError, UsageError):
            deadline = Deadline(self._timeout_s)
        with waiting_for("the brokers' answers about who uses topics", limit_s=deadline.timeout_s):
            return self._activity(topics, deadline)

    def _activity(self, topics: Sequence[str], deadline: Deadline) -> Mapping[str, TopicActivity]:
        names = TopicCollection(list(topics))
        told = self._told("partitions", deadline, lambda client, s: client.describe_topics(names, request_timeout=s))
        partitions = {topic: [p.id for p in found.partitions] for topic, found in told.items()}
        ends = self._offsets(partitions, LATEST, deadline)
        newest = self._offsets(partitions, NEWEST, deadline)
        emptied = {topic: _without_time(ends.get(topic, {}), answers) for topic, answers in newest.items()}
        starts = self._offsets({topic: partitions[topic] for topic, ids in emptied.items() if ids}, EARLIEST, deadline)
        empty = [t for t in starts if all(starts[t][p].offset == ends[t][p].offset for p in emptied[t])]
        kept = self._kept_ms(empty, deadline)
        kind, groups = TopicActivity, None
        try:
            groups = self._groups(topics, deadline)
        except HiddenGroupsError as error:
            log.debug("not read: consumer groups: %s", error)
            kind = ActivityOfHiddenGroups
        if deadline.is_over:
            log.warning(TOO_LATE, deadline.timeout_s, self._answer_s, BROKER_PATIENCE)
        return {
            topic: replace(
                _activity(kind, ends.get(topic), newest.get(topic), None if groups is None else groups[topic]),
                emptied=emptied.get(topic, ()),
                kept_ms=kept.get(topic),
            )
            for topic in topics
        }

    def log_directories(self, topics: Mapping[str, Collection[int]]) -> DirectoriesByBroker:
        """Return the log directories of each broker that the brokers know, and its logs of these partitions."""

        def ask(connections: BrokerConnections, deadline: Deadline) -> DirectoriesByBroker:
            asked = {broker: directories_request(topics) for broker in sorted(connections.brokers())}
            patience_s = min(connections.patience_s(ANSWER_S), deadline.left_s)
            replies = connections.ask(asked, timeout_s=patience_s)
            return {broker: told_directories(broker, reply) for broker, reply in replies.items()}

        return self._asked("log directories", ask) or {}

    def close(self) -> None:
        self._confluent.discard()
        self._connections.close()

    def _requests(self) -> Mapping[int, Mapping[int, int]]:
        self._offered = self._offered or self._asked("requests", ask_offered) or {}
        return self._offered

    def _asked(self, question: str, ask: Callable[[BrokerConnections, Deadline], Answer | None]) -> Answer | None:
        """Return the answer over the connections to all brokers; None where it cannot be had."""
        try:
            with waiting_for(f"the brokers' {question}", limit_s=FIRST_ANSWER_S):
                deadline = self._deadline()
            with waiting_for(f"the brokers' {question}", limit_s=deadline.timeout_s):
                return ask(self._connections(), deadline)
        except (ClusterError, UsageError) as error:
            log.debug("%s: %s", question, error)
            return None

    def _deadline(self) -> Deadline:
        """Start the deadline of one question. Raises ``ClusterError`` or ``UsageError`` if no broker can be asked."""
        connections = self._connections()
        if time.monotonic() < self._silent_until:
            raise ClusterUnreachableError("no broker has answered the question before")
        try:
            self._answer_s = connections.answer_s()
        except ClusterUnreachableError:
            self._silent_until = time.monotonic() + SILENT_S
            raise
        return Deadline(connections.patience_s(self._timeout_s, round_trips=TRIPS_A_QUESTION))

    def _offsets(self, partitions: Mapping[str, Sequence[int]], spec: OffsetSpec, deadline: Deadline) -> Offsets:
        """Return the answers to ``spec``; a topic with an unreadable partition is left out."""
        wanted = {TopicPartition(t, p): spec for t, ids in partitions.items() for p in ids}
        found: dict[str, dict[int, Any]] = {}
        if wanted:
            told = self._told("offsets", deadline, lambda client, s: client.list_offsets(wanted, request_timeout=s))
            for partition, answer in told.items():
                found.setdefault(partition.topic, {})[partition.partition] = answer
        return {t: dict(sorted(answers.items())) for t, answers in found.items() if len(answers) == len(partitions[t])}

    def _told(
        self, question: str, deadline: Deadline, ask: Callable[[AdminClient, float], Mapping[Any, Future[Any]]]
    ) -> dict[Any, Any]:
        """Return the answers of librdkafka that came."""
        try:
            futures = ask(self._confluent.client(), deadline.left_s)
        except KafkaException as error:
            self._give_up(question, error)
            return {}
        wait_all(list(futures.values()), deadline.left_s)
        return {key: f.result() for key, f in futures.items() if f.done() and f.exception() is None}

    def _kept_ms(self, topics: Sequence[str], deadline: Deadline) -> dict[str, int]:
        """Return how long brokers keep these topics' records at least; without topics if a broker does not say.

        Each broker is asked: a topic without an override has the default of the broker that leads it.
        """
        if not topics:
            return {}
        try:
            connections = self._connections()
            asked = {broker: topic_configs_request(topics, RETENTION) for broker in connections.brokers()}
            answers = connections.ask(asked, timeout_s=deadline.left_s).values()
        except (ClusterError, UsageError) as error:
            self._give_up("retention", error)
            return {}
        by_broker = [{} if isinstance(answer, str) else _kept_by_topic(answer) for answer in answers]
        return {topic: min(kept[topic] for kept in by_broker) for topic in topics if all(topic in k for k in by_broker)}

    def _groups(self, topics: Sequence[str], deadline: Deadline) -> GroupsByTopic | None:
        """Return groups with members or commits, or that could not be read; None when not every group is known."""
        try:
            self._require_right_to_all_groups(deadline)
            return ConsumerGroups(self._connections(), deadline).on(topics)
        except (KafkaException, TimeoutError, PermissionError, ClusterError, UsageError) as error:
            self.unread_groups = str(error)
            self._give_up("consumer groups", error)
            return None

    def _require_right_to_all_groups(self, deadline: Deadline) -> None:
        """Raise where brokers may leave groups out of their list, which they do without an error.

        ``PermissionError`` without the right, ``HiddenGroupsError`` where they do not tell, ``ClusterUnreachableError``
        where one does not answer. Source: kafka.server.KafkaApis#handleListGroupsRequest (3.9): Describe on the cluster
        gives all.
        """
        future = self._confluent.client().describe_cluster(
            include_authorized_operations=True, request_timeout=deadline.left_s
        )
        operations = future.result(deadline.left_s).authorized_operations
        if operations is None:
            self._require_no_authorizer(deadline)
        elif AclOperation.DESCRIBE not in operations:
            raise PermissionError("the reader lacks Describe on the cluster, and may not see every group")

    def _require_no_authorizer(self, deadline: Deadline) -> None:
        """Require it of each broker: without one, all see every group. Before ``OWN_RIGHTS`` no rights are sent."""
        connections = self._connections()
        asked = {broker: settings_request(broker, [AUTHORIZER]) for broker in connections.brokers()}
        for broker, answer in connections.ask(asked, timeout_s=deadline.left_s).items():
            if isinstance(answer, str):
                raise ClusterUnreachableError(f"broker {broker} {answer}")
            if settings_of(answer).get(AUTHORIZER) != "":
                raise HiddenGroupsError(f"broker {broker} has an authorizer, or does not tell its settings")

    def _give_up(self, question: str, reason: object) -> None:
        log.debug("not read: %s: %s; the client reported: %s", question, reason, self._confluent.recent_errors())
        self._confluent.discard()


def _activity(
    kind: type[TopicActivity],
    ends: Mapping[int, Any] | None,
    newest: Mapping[int, Any] | None,
    groups: Mapping[str, GroupOnTopic] | None,
) -> TopicActivity:
    end_offsets = None if ends is None else {partition: answer.offset for partition, answer in ends.items()}
    if newest is None and ends and not any(answer.offset for answer in ends.values()):
        newest = {}  # brokers before NEWEST_RECORDS do not tell it; but no record was ever written
    return kind(
        end_offsets=end_offsets,
        groups=None if groups is None else tuple(sorted(groups)),
        last_record_ms=None if newest is None else max((a.timestamp for a in newest.values()), default=NO_RECORD),
        group_uses={name: _use(group, end_offsets or {}) for name, group in sorted((groups or {}).items())},
    )


def _without_time(ends: Mapping[int, Any], newest: Mapping[int, Any]) -> tuple[int, ...]:
    """Return partitions that had records, and of which the broker gives no newest time.

    Their records are gone; or they are in remote storage alone, where the broker does not look for the newest time; or
    they have no time, as those of clients before 0.10. Only the first start where they end.

    A partition that holds any record holds its last one: retention takes the oldest segments first, and compaction
    leaves the newest segment alone.

    Source: org.apache.kafka.storage.internals.log.LogCleanerManager#cleanableOffsets, and
    kafka.log.UnifiedLog#fetchOffsetByTimestamp, which takes the newest time from local segments (3.9).
    """
    return tuple(p for p, answer in newest.items() if answer.timestamp == NO_RECORD and p in ends and ends[p].offset)


def _kept_by_topic(answer: Any) -> dict[str, int]:
    """Return the topics whose records only their age can have removed.

    By size, retention empties a partition only at ``retention.bytes=0``; compaction never does.
    """
    found = {}
    for result in (result for result in answer.results if not result.error_code):
        values = {setting.name: setting.value or "" for setting in result.configs}
        if values.keys() >= set(RETENTION):
            policies, kept_ms, kept_bytes = (values[name] for name in RETENTION)
            if "delete" in policies and kept_bytes != "0" and kept_ms != NO_TIME_LIMIT:
                found[result.resource_name] = int(kept_ms)
    return found


def _use(group: GroupOnTopic, ends: Mapping[int, int]) -> GroupUse:
    behind = [max(0, ends[p] - offset) for p, offset in group.committed.items() if p in ends]
    return GroupUse(state=group.state, lag=sum(behind) if behind else None, type=group.type, unread=group.unread)


def _defaults(reply: Any) -> Mapping[str, str] | str:
    if isinstance(reply, str):
        return reply
    if error := reply.results[0].error_code:
        return f"does not give its settings: {named(error)}"
    settings = {name: value for name, value in settings_of(reply).items() if value is not None}
    return topic_defaults(settings) if settings else "gives none of the settings that topics follow"
