"""Groups of every type, with a broker that answers from a table; also of types that no Kafka has yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ListOffsetsRequest,
    OffsetFetchRequest,
)
from kafka.protocol.metadata import MetadataRequest

from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.clients.settings import Deadline
from topicops.edges.kafka.questions.consumer_groups import OFFSETS, ConsumerGroups, GroupOnTopic
from topicops.edges.kafka.questions.group_requests import (
    ConsumerGroupDescribeRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)
from topicops.model.errors import ClusterError, ClusterUnreachableError

NO_OFFSETS: Mapping[str, int] = {}
NO_ERRORS: Mapping[int, int] = {}
NOT_THERE, NOT_ALLOWED = KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED


def listed(of_type: str = "classic", *, protocol: str = "consumer", state: str = "Stable") -> Any:
    return SimpleNamespace(group_id="g", group_type=of_type, protocol_type=protocol, group_state=state)


def described(*members: Any, state: str = "Stable", error_code: int = 0, topology: Any = None) -> Any:
    return SimpleNamespace(group_id="g", error_code=error_code, group_state=state, members=members, topology=topology)


def classic_member(*, subscribed: Collection[str] = (), assigned: Collection[str] = ()) -> Any:
    parts = [ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=[0]) for name in assigned]
    subscription = ConsumerProtocolSubscription(topics=[*subscribed], user_data=None, owned_partitions=[])
    assignment = ConsumerProtocolAssignment(assigned_partitions=parts, user_data=None)
    return SimpleNamespace(
        member_metadata=bytes(subscription.encode(version=1)), member_assignment=bytes(assignment.encode(version=1))
    )


def member(
    *, subscribed: Collection[str] = (), pattern: str | None = None, assigned: str = "x", target: str = "x"
) -> Any:
    """Of a type that the brokers understand."""
    return SimpleNamespace(
        subscribed_topic_names=[*subscribed],
        subscribed_topic_regex=pattern,
        assignment=SimpleNamespace(topic_partitions=[SimpleNamespace(topic_name=assigned)]),
        target_assignment=SimpleNamespace(topic_partitions=[SimpleNamespace(topic_name=target)]),
    )


def topology(**topics: str) -> Any:
    """Of one part, with one topic of a kind."""
    of_kind = {
        "source_topics": [topics.get("source", "x")],
        "repartition_sink_topics": [topics.get("sink", "x")],
        "state_changelog_topics": [SimpleNamespace(name=topics.get("changelog", "x"))],
        "repartition_source_topics": [SimpleNamespace(name=topics.get("repartition", "x"))],
    }
    return SimpleNamespace(subtopologies=[SimpleNamespace(**of_kind)])


class Broker:
    """Connections to one broker with one group (none if it is old); descriptions are used up, but for the last."""

    def __init__(
        self,
        *descriptions: Any,
        group: Any = None,
        offsets: Mapping[str, int] = NO_OFFSETS,
        error_code: int = 0,
        offset_error: int = 0,
        offers: Collection[type] | None = None,
        coordinator: int = 1,
        metadata_errors: Mapping[int, int] = NO_ERRORS,
        is_old: bool = False,
    ) -> None:
        self._descriptions = list(descriptions)
        self._group = group or listed()
        self._offsets = offsets
        self._error_code, self._offset_error = error_code, offset_error
        self._offers, self._coordinator = offers, coordinator
        self._metadata_errors, self._is_old = metadata_errors, is_old
        self.asked: list[type] = []

    def brokers(self) -> Mapping[int, str]:
        return dict.fromkeys({1, *self._metadata_errors}, "127.0.0.1:9092")

    def offers(self, broker: int, request: Any, version: int = 0) -> bool:
        kind = request if isinstance(request, type) else type(request)
        if self._is_old and kind is MetadataRequest:
            return version <= 9
        return self._offers is None or kind in self._offers

    def ask(self, requests: Mapping[int, Any], *, timeout_s: float) -> Mapping[int, Any]:
        return {broker: self._reply(broker, request) for broker, request in requests.items()}

    def _reply(self, broker: int, request: Any) -> Any:
        self.asked.append(type(request))
        match request:
            case ListGroupsRequest():
                return SimpleNamespace(error_code=self._error_code, groups=[] if self._is_old else [self._group])
            case MetadataRequest():
                partition = SimpleNamespace(partition_index=7, leader_id=self._coordinator)
                error_code = self._metadata_errors.get(broker, 0)
                topic = SimpleNamespace(
                    name=OFFSETS, error_code=error_code, partitions=[] if error_code else [partition]
                )
                if self._is_old and error_code:
                    assert request.topics is None, "the broker creates a topic that is named"
                    return SimpleNamespace(topics=[])
                return SimpleNamespace(topics=[topic])
            case ListOffsetsRequest():
                partition = SimpleNamespace(error_code=self._metadata_errors[broker])
                return SimpleNamespace(topics=[SimpleNamespace(partitions=[partition])])
            case OffsetFetchRequest():
                topics = [
                    SimpleNamespace(
                        name=topic, partitions=[SimpleNamespace(partition_index=0, committed_offset=offset)]
                    )
                    for topic, offset in self._offsets.items()
                ]
            case DescribeShareGroupOffsetsRequest():
                topics = [
                    SimpleNamespace(
                        topic_name=topic, partitions=[SimpleNamespace(partition_index=0, start_offset=offset)]
                    )
                    for topic, offset in self._offsets.items()
                ]
            case _:
                answer = self._descriptions.pop(0) if len(self._descriptions) > 1 else self._descriptions[0]
                return SimpleNamespace(groups=[answer] if answer else [])
        return SimpleNamespace(groups=[SimpleNamespace(group_id="g", error_code=self._offset_error, topics=topics)])


class Silent(Broker):
    def ask(self, requests: Mapping[int, Any], *, timeout_s: float) -> Mapping[int, Any]:
        return dict.fromkeys(requests, "gave no answer in time")


def groups_of(broker: Broker) -> Mapping[str, GroupOnTopic]:
    """On the topic ``t``; the group of the broker is ``g``."""
    return ConsumerGroups(cast("BrokerConnections", broker), Deadline(0.5)).on(["t"])["t"]


def test_a_group_that_rebalances_is_read_again() -> None:
    broker = Broker(described(state="PreparingRebalance"), described(), offsets={"t": 5, "other": 1})
    assert groups_of(broker) == {"g": GroupOnTopic("Stable", {0: 5})}


@pytest.mark.parametrize(
    ("broker", "reason"),
    [
        pytest.param(Broker(group=listed("quorum", protocol="future")), "its type is not known", id="a type of later"),
        pytest.param(
            Broker(group=listed("quorum", protocol="consumer", state="Empty")),
            "its type is not known",
            id="a type of later, without members",
        ),
        pytest.param(
            Broker(group=listed(protocol="future")), "its protocol future is not known", id="a protocol of later"
        ),
        pytest.param(
            Broker(group=listed("share", state="Resting")), "its state Resting is not known", id="a state of later"
        ),
        pytest.param(
            Broker(described(state="CompletingRebalance")),
            "its state is CompletingRebalance",
            id="rebalancing for ever",
        ),
        pytest.param(
            Broker(described(state="Dead"), group=listed("")),
            "its state is Dead",
            id="a type that old brokers do not name",
        ),
        pytest.param(
            Broker(described(SimpleNamespace(member_metadata=b"junk", member_assignment=b""))),
            "its members are no consumers",
            id="members that write something else",
        ),
        pytest.param(
            Broker(group=listed("share", protocol="share"), offers={OffsetFetchRequest}),
            "broker 1 does not tell all that it uses",
            id="brokers that describe no such group",
        ),
        pytest.param(
            Broker(described(), group=listed("share"), offers={ShareGroupDescribeRequest}),
            "broker 1 does not tell all that it uses",
            id="brokers that tell no start offsets",
        ),
        pytest.param(Broker(None), "broker 1 does not tell all that it uses", id="an answer without the group"),
        pytest.param(
            Broker(described(error_code=KafkaError.GROUP_AUTHORIZATION_FAILED), group=listed("consumer")),
            "GROUP_AUTHORIZATION_FAILED (30)",
            id="no right to its members",
        ),
        pytest.param(
            Broker(described(), offset_error=KafkaError.GROUP_AUTHORIZATION_FAILED),
            "GROUP_AUTHORIZATION_FAILED (30)",
            id="no right to its commits",
        ),
        pytest.param(
            Broker(described(error_code=KafkaError.GROUP_ID_NOT_FOUND), group=listed("consumer")),
            "broker 1 no longer knows it",
            id="listed, and not there",
        ),
        pytest.param(
            Broker(described(member(pattern=r"\pL+")), group=listed("consumer")),
            r"its pattern \pL+ is not compared with names of topics here",
            id="a pattern that Python reads otherwise",
        ),
        pytest.param(
            Broker(described(member(pattern=r"(a+)+b")), group=listed("consumer")),
            "its pattern (a+)+b is not compared with names of topics here",
            id="a pattern that takes Python for ever",
        ),
        pytest.param(
            Broker(described(member()), group=listed("streams")), "its topology is not known", id="no topology"
        ),
    ],
)
def test_a_group_that_cannot_be_read_counts_as_a_user_of_every_topic(broker: Broker, reason: str) -> None:
    assert groups_of(broker)["g"].unread == reason


MODERN, SHARE, STREAMS = listed("consumer"), listed("share"), listed("streams")


@pytest.mark.parametrize(
    ("broker", "uses"),
    [
        pytest.param(Broker(described(classic_member(assigned=["t"]))), True, id="classic, assigned"),
        pytest.param(Broker(described(classic_member(subscribed=["t"]))), True, id="classic, subscribed alone"),
        pytest.param(Broker(described(classic_member(subscribed=["x"]))), False, id="classic, of another topic"),
        pytest.param(Broker(described(member(subscribed=["t"])), group=MODERN), True, id="consumer, subscribed"),
        pytest.param(Broker(described(member(assigned="t")), group=MODERN), True, id="consumer, assigned"),
        pytest.param(Broker(described(member(target="t")), group=MODERN), True, id="consumer, soon assigned"),
        pytest.param(Broker(described(member(pattern="^(t|u)$")), group=MODERN), True, id="consumer, by a pattern"),
        pytest.param(Broker(described(member(pattern="t.+")), group=MODERN), False, id="consumer, by another pattern"),
        pytest.param(Broker(described(member()), group=MODERN), False, id="consumer, of another topic"),
        pytest.param(Broker(described(member()), group=MODERN, offsets={"t": 3}), True, id="consumer, committed"),
        pytest.param(Broker(described(member(subscribed=["t"])), group=SHARE), True, id="share, subscribed"),
        pytest.param(Broker(described(member(assigned="t")), group=SHARE), True, id="share, assigned"),
        pytest.param(Broker(group=listed("share", state="Empty"), offsets={"t": 3}), True, id="share, begun and empty"),
        pytest.param(Broker(group=listed("share", state="Empty"), offsets={"t": -1}), True, id="share, about to begin"),
        pytest.param(Broker(described(member()), group=SHARE, offsets={"x": 3}), False, id="share, of another topic"),
        pytest.param(Broker(described(member(), topology=topology(source="t")), group=STREAMS), True, id="streams"),
        pytest.param(Broker(described(topology=topology(sink="t")), group=STREAMS), True, id="streams, to partition"),
        pytest.param(Broker(described(topology=topology(repartition="t")), group=STREAMS), True, id="streams, by key"),
        pytest.param(
            Broker(described(state="Empty", topology=topology(changelog="t")), group=listed("streams", state="Empty")),
            True,
            id="streams at rest, its state",
        ),
        pytest.param(
            Broker(described(topology=topology()), group=STREAMS, offsets={"t": 0}), True, id="streams, commit"
        ),
        pytest.param(Broker(described(topology=topology()), group=STREAMS), False, id="streams, of another topic"),
        pytest.param(Broker(group=listed(protocol="connect")), False, id="workers of Kafka Connect"),
        pytest.param(Broker(group=listed(protocol="connect"), offsets={"t": 1}), True, id="workers with commits"),
        pytest.param(Broker(group=listed(protocol="future", state="Empty")), False, id="any protocol without members"),
    ],
)
def test_a_topic_is_used_by_the_groups_that_read_it_or_have_offsets_on_it(broker: Broker, uses: bool) -> None:
    found = groups_of(broker)
    assert found.keys() == ({"g"} if uses else set())
    assert not any(group.unread for group in found.values())


def test_a_share_group_stands_at_its_start_offset() -> None:
    broker = Broker(described(member(subscribed=["t"])), group=SHARE, offsets={"t": 3})
    assert groups_of(broker) == {"g": GroupOnTopic("Stable", {0: 3}, type="share")}


@pytest.mark.parametrize(
    ("group", "asked"),
    [
        pytest.param(listed(), [DescribeGroupsRequest, OffsetFetchRequest], id="classic"),
        pytest.param(MODERN, [ConsumerGroupDescribeRequest, OffsetFetchRequest], id="consumer"),
        pytest.param(SHARE, [ShareGroupDescribeRequest, DescribeShareGroupOffsetsRequest], id="share"),
        pytest.param(STREAMS, [StreamsGroupDescribeRequest, OffsetFetchRequest], id="streams"),
        pytest.param(listed("consumer", state="Empty"), [OffsetFetchRequest], id="without members"),
        pytest.param(listed("quorum"), [], id="unknown"),
    ],
)
def test_a_group_costs_two_requests_at_most(group: Any, asked: list[type]) -> None:
    broker = Broker(described(topology=topology()), group=group)
    groups_of(broker)
    assert broker.asked == [ListGroupsRequest, MetadataRequest, *asked]


@pytest.mark.parametrize(
    ("broker", "error"),
    [
        pytest.param(
            Broker(described(), error_code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS),
            TimeoutError,
            id="a loading coordinator",
        ),
        pytest.param(
            Broker(described(error_code=KafkaError.NOT_COORDINATOR)), TimeoutError, id="a coordinator that moves"
        ),
        pytest.param(
            Broker(described(), error_code=KafkaError.CLUSTER_AUTHORIZATION_FAILED), ClusterError, id="a missing right"
        ),
        pytest.param(Broker(described(), coordinator=-1), ClusterUnreachableError, id="groups without a coordinator"),
        pytest.param(Silent(described()), ClusterUnreachableError, id="a silent broker, which hides its groups"),
        pytest.param(
            Broker(described(), metadata_errors={1: NOT_ALLOWED}), ClusterError, id="coordinators that nobody may see"
        ),
        pytest.param(
            Broker(described(), metadata_errors={1: NOT_THERE, 2: 0}), TimeoutError, id="a broker that has just begun"
        ),
        pytest.param(
            Broker(is_old=True, metadata_errors={1: NOT_ALLOWED}), ClusterError, id="coordinators that are not listed"
        ),
        pytest.param(Broker(is_old=True, coordinator=-1), ClusterUnreachableError, id="an old broker's missing leader"),
    ],
)
def test_a_part_of_the_groups_is_an_error_and_never_an_answer(broker: Broker, error: type[Exception]) -> None:
    with pytest.raises(error):
        groups_of(broker)


@pytest.mark.parametrize("is_old", [False, True])
def test_before_the_first_group_no_broker_knows_a_coordinator_and_none_is_made_by_asking(is_old: bool) -> None:
    assert groups_of(Broker(described(), metadata_errors={1: NOT_THERE, 2: NOT_THERE}, is_old=is_old)) == {}
