"""Groups that cannot be read at once, with a broker that answers from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest

from topicops.edges.kafka.clients import BrokerConnections, Deadline
from topicops.edges.kafka.consumer_groups import ConsumerGroups, GroupOnTopic
from topicops.model.errors import ClusterError, ClusterUnreachableError

LISTED = SimpleNamespace(group_id="g", protocol_type="consumer", group_state="Stable")
COMMITS = SimpleNamespace(
    group_id="g",
    error_code=0,
    topics=[
        SimpleNamespace(name="t", partitions=[SimpleNamespace(partition_index=0, committed_offset=5)]),
        SimpleNamespace(name="other", partitions=[SimpleNamespace(partition_index=0, committed_offset=1)]),
    ],
)


class Broker:
    """Connections to one broker; its descriptions of the group are used up one by one, the last stays."""

    def __init__(self, *states: str, error_code: int = 0) -> None:
        self._states = list(states)
        self._error_code = error_code

    def brokers(self) -> Mapping[int, str]:
        return {1: "127.0.0.1:9092"}

    def offers(self, broker: int, request: Any, version: int = 0) -> bool:
        return True

    def ask(self, requests: Mapping[int, Any], *, timeout_s: float) -> Mapping[int, Any]:
        return {broker: self._reply(request) for broker, request in requests.items()}

    def _reply(self, request: Any) -> Any:
        if isinstance(request, ListGroupsRequest):
            return SimpleNamespace(error_code=self._error_code, groups=[LISTED])
        if isinstance(request, DescribeGroupsRequest):
            state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
            return SimpleNamespace(groups=[described(state)])
        return SimpleNamespace(groups=[COMMITS])


class Silent(Broker):
    def ask(self, requests: Mapping[int, Any], *, timeout_s: float) -> Mapping[int, Any]:
        return dict.fromkeys(requests, "gave no answer in time")


def described(state: str) -> Any:
    return SimpleNamespace(group_id="g", error_code=0, group_state=state, members=cast("Sequence[Any]", ()))


def groups_of(broker: Broker) -> Mapping[str, GroupOnTopic]:
    return ConsumerGroups(cast("BrokerConnections", broker), Deadline(0.5)).on(["t"])["t"]


def test_a_group_that_rebalances_is_read_again() -> None:
    assert groups_of(Broker("PreparingRebalance", "Stable")) == {"g": GroupOnTopic("Stable", {0: 5})}


@pytest.mark.parametrize(
    ("broker", "error"),
    [
        pytest.param(Broker("CompletingRebalance"), TimeoutError, id="rebalancing for ever"),
        pytest.param(Broker("Dead"), TimeoutError, id="members of a protocol that is not described"),
        pytest.param(
            Broker("Stable", error_code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS),
            TimeoutError,
            id="a loading coordinator",
        ),
        pytest.param(
            Broker("Stable", error_code=KafkaError.CLUSTER_AUTHORIZATION_FAILED), ClusterError, id="a missing right"
        ),
        pytest.param(Silent("Stable"), ClusterUnreachableError, id="a silent broker, which hides its groups"),
    ],
)
def test_a_part_of_the_groups_is_an_error_and_never_an_answer(broker: Broker, error: type[Exception]) -> None:
    with pytest.raises(error):
        groups_of(broker)
