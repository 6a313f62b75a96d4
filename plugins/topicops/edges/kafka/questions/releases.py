"""Which release each broker runs. Brokers never say it: the requests that they answer tell it. Never writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined]  # its stub re-exports without saying so
from kafka.protocol.admin import DescribeConfigsRequest

from topicops.edges.kafka.clients.broker_connections import BrokerConnections
from topicops.edges.kafka.clients.settings import Deadline
from topicops.model.release import LIKE_3_4, SETTING_OF_3_4, Release, release_of

ANSWER_S = 2.0
"""How long brokers are waited for: those that answer do so at once, and a silent one must not hold up each plan."""


def ask_offered(connections: BrokerConnections, deadline: Deadline) -> dict[int, Mapping[int, int]]:
    """The requests that each broker takes, of those that answer within ``ANSWER_S`` and before the deadline.

    Raises:
        ClusterUnreachableError: No broker gives the list of brokers.
    """
    brokers, patience_s = sorted(connections.brokers()), connections.patience_s(ANSWER_S)
    answers = connections.offered(brokers, timeout_s=min(patience_s, deadline.left_s))
    return {broker: answer for broker, answer in answers.items() if not isinstance(answer, str)}


def ask_releases(
    connections: BrokerConnections, deadline: Deadline, offered: Mapping[int, Mapping[int, int]]
) -> dict[int, Release]:
    """The release of each broker, by the requests that it takes."""
    found = {broker: release_of(requests) for broker, requests in offered.items()}
    unclear = {b: settings_request(b, [SETTING_OF_3_4]) for b, release in found.items() if release == LIKE_3_4}
    if not unclear:
        return found
    settings = connections.ask(unclear, timeout_s=min(connections.patience_s(ANSWER_S), deadline.left_s))
    return found | {b: release_of(offered[b], settings_of(answer)) for b, answer in settings.items()}


def settings_request(broker: int, names: Collection[str] | None) -> Any:
    """What asks a broker for these settings; for all of them if ``names`` is None."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=ResourceType.BROKER.value,
        resource_name=str(broker),
        configuration_keys=None if names is None else list(names),
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=False, include_documentation=False)


def settings_of(answer: Any) -> dict[str, str | None]:
    """Values by name in an answer, None for one that is not set; empty where the broker gives none."""
    if isinstance(answer, str) or answer.results[0].error_code != KafkaError.NO_ERROR:
        return {}
    return {setting.name: setting.value for setting in answer.results[0].configs}
