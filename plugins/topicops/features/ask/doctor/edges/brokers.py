"""What ``doctor`` asks the brokers: releases, settings, and our rights."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from kafka.protocol.admin import ListGroupsRequest, ListPartitionReassignmentsRequest

from topicops.edges.connections.client_properties import has_readable_password, token_kind
from topicops.edges.connections.lookup import principal_of
from topicops.edges.kafka.clients.confluent import Confluent
from topicops.edges.kafka.clients.diagnosis import reachable_brokers
from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.clients.requests import (
    directories_request,
    refusal_of,
    settings_of,
    settings_request,
    told_directories,
)
from topicops.edges.kafka.clients.settings import Deadline, wait_all
from topicops.edges.kafka.questions.cluster import quorum_request
from topicops.features.ask.doctor.values import BrokerFacts, KafkaFacts, KafkaRole
from topicops.model.cluster.snapshot import LogDirectories
from topicops.model.errors import ClusterUnreachableError
from topicops.model.printable import printable
from topicops.model.release import SETTING_OF_3_4, lacking, release_of
from topicops.model.specs.broker_settings import SETTINGS_OF_TOPICS
from topicops.model.specs.vendors import vendor_at
from topicops.model.waits import waiting_for

log = logging.getLogger(__name__)

TOPICS_A_REQUEST = 200
TIMEOUT_S = 20.0
"""The longest time for all questions together."""
PROBES = (
    ListGroupsRequest,
    lambda: ListPartitionReassignmentsRequest(timeout_ms=int(TIMEOUT_S * 1000), topics=None),
    quorum_request,
)
ASKED = ("DescribeConfigs", "DescribeLogDirs", "ListGroups", "ListPartitionReassignments", "DescribeQuorum")
"""Requests about the whole cluster; the last ones are ``PROBES``."""
SETTINGS = (
    "authorizer.class.name",
    "auto.create.topics.enable",
    "delete.topic.enable",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    SETTING_OF_3_4,
    *SETTINGS_OF_TOPICS,
)
"""Settings that a broker is asked for."""


def kafka_facts(
    roles: Mapping[KafkaRole, Mapping[str, str]], *, topics: Mapping[KafkaRole, Sequence[str]]
) -> KafkaFacts:
    """Ask every broker at the same time as ``reader``, and the cluster once as each role.

    Rights on ``topics``, which a role would have to change, are asked for only where brokers have an authorizer.
    """
    with waiting_for("the brokers' answers", limit_s=TIMEOUT_S):
        deadline = Deadline(TIMEOUT_S)
        brokers = _brokers(roles["reader"])
        described: dict[KafkaRole, Any] = {}
        for role, properties in roles.items():
            same = next((other for other in described if roles[other] == properties), None)
            described[role] = described[same] if same else _described(properties, deadline)
        cluster_id = next((str(found.cluster_id) for found in described.values() if found is not None), None)
        if cluster_id is None:
            raise ClusterUnreachableError("the brokers answer, and none describes the cluster; try again")
        has_authorizer = any(broker.settings.get("authorizer.class.name") for broker in brokers.values())
        asked = topics if has_authorizer else {}
        return KafkaFacts(
            cluster_id=cluster_id,
            brokers=brokers,
            vendor=vendor_at(roles["reader"].get("bootstrap.servers", "")),
            principals={role: _principal(properties) for role, properties in roles.items()},
            readable_passwords=tuple(role for role, properties in roles.items() if has_readable_password(properties)),
            operations={role: _operations(found) for role, found in described.items()},
            topic_operations={role: _topic_operations(roles[role], names, deadline) for role, names in asked.items()},
        )


def _brokers(properties: Mapping[str, str]) -> dict[int, BrokerFacts]:
    with closing(BrokerConnections(properties, request_timeout_s=TIMEOUT_S / 4)) as connections:
        brokers = sorted(reachable_brokers(connections, properties))
        offered = connections.offered(brokers)
        configs = connections.ask({broker: settings_request(broker, SETTINGS) for broker in brokers})
        answering = [broker for broker in brokers if not isinstance(offered[broker], str)]
        disks = connections.ask({broker: directories_request({}) for broker in answering})
        others = [connections.ask({broker: request() for broker in answering}) for request in PROBES]
    directories = {broker: told_directories(broker, reply) for broker, reply in disks.items()}
    answers = dict(zip(ASKED, (configs, disks, *others), strict=True))
    refused = {b: {n: r for n, told in answers.items() if (r := refusal_of(told.get(b)))} for b in brokers}
    found = {broker: _broker(offered[broker], configs[broker], directories.get(broker)) for broker in brokers}
    return {broker: replace(facts, refused=refused[broker]) for broker, facts in found.items()}


def _broker(offered: Mapping[int, int] | str, configs: Any, directories: LogDirectories | str | None) -> BrokerFacts:
    if isinstance(offered, str):
        return BrokerFacts(problem=offered)
    settings, problem = settings_of(configs), ""
    if isinstance(configs, str):
        problem = f"its settings: {configs}"
    elif error := configs.results[0].error_code:
        problem = f"does not give its settings: {KafkaError(error).name()}"
    return BrokerFacts(
        release=release_of(offered, settings),
        missing=lacking(offered),
        settings={name: text for name, text in settings.items() if text is not None},
        hidden=frozenset() if problem else frozenset(s.name for s in configs.results[0].configs if s.is_sensitive),
        problem=problem,
        log_directories=directories,
    )


def _described(properties: Mapping[str, str], deadline: Deadline) -> Any:
    """Describe the cluster as one role; None where the brokers refuse."""
    confluent = Confluent(properties)
    try:
        asked = confluent.client().describe_cluster(include_authorized_operations=True, request_timeout=deadline.left_s)
        return asked.result(deadline.left_s)
    except (KafkaException, TimeoutError) as error:
        log.debug("the cluster is not described: %s; the client reported: %s", error, confluent.recent_errors())
        return None
    finally:
        confluent.discard()


def _operations(described: Any) -> frozenset[str] | None:
    if described is None or described.authorized_operations is None:
        return None
    return frozenset(operation.name for operation in described.authorized_operations)


def _topic_operations(
    properties: Mapping[str, str], topics: Sequence[str], deadline: Deadline
) -> dict[str, frozenset[str]]:
    confluent = Confluent(properties)
    found: dict[str, frozenset[str]] = {}
    try:
        for start in range(0, len(topics), TOPICS_A_REQUEST):
            batch = TopicCollection(list(topics[start : start + TOPICS_A_REQUEST]))
            asked = confluent.client().describe_topics(
                batch, include_authorized_operations=True, request_timeout=deadline.left_s
            )
            wait_all(list(asked.values()), deadline.left_s)
            found |= {topic: rights for topic, future in asked.items() if (rights := _rights(future)) is not None}
    except KafkaException as error:
        log.debug("rights on topics are not known: %s; the client reported: %s", error, confluent.recent_errors())
    finally:
        confluent.discard()
    return found


def _rights(future: Future[Any]) -> frozenset[str] | None:
    """Return the operations allowed on one topic, none where it may not be described; None means not known."""
    if not future.done():
        return None
    error = future.exception()
    if error is None:
        return _operations(future.result())
    is_refused = isinstance(error, KafkaException) and error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    return frozenset() if is_refused else None


def _principal(properties: Mapping[str, str]) -> str:
    """Return the SASL user, ``anonymous``, or how the identity logs in; of a token also who gives it."""
    if kind := token_kind(properties):
        named = principal_of(properties)
        return f"{named}, by token ({kind})" if named.startswith("User:") else named
    user = properties.get("sasl.username")
    if user:
        return f"User:{printable(user)}"
    if properties.get("ssl.certificate.location"):
        return "by its certificate"
    return "by its SASL login" if "sasl" in properties.get("security.protocol", "").lower() else "anonymous"
