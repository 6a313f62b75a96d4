"""Which consumer groups use topics: those whose members read them, and those with committed offsets.

Each broker is asked for the groups that it coordinates, many in one request. Confluent-kafka sends requests of its own
for each group: for 10,000 groups that takes 14 s, and when so many of its requests reach their deadline at once, an
assertion of librdkafka ends the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from confluent_kafka import KafkaError
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import ConsumerProtocolAssignment, OffsetFetchRequest

from topicops.edges.kafka.clients import BrokerConnections, Deadline, named
from topicops.model.errors import ClusterError, ClusterUnreachableError

GROUPS_A_REQUEST = 500
MANY_GROUPS = 8
"""The version of OffsetFetch since which one request may name many groups (Kafka 3.0, KIP-709)."""
PAUSE_S = 0.1
"""Before groups that are in the middle of a change are read again."""
CONSUMER_PROTOCOLS = ("consumer", "")
"""Protocol types of groups that read topics; empty: the group has only committed offsets."""
WITHOUT_MEMBERS = ("Empty", "Dead")
UNREADY = ("PreparingRebalance", "CompletingRebalance", "Dead")
"""Members have no assignment. ``Dead`` of a group that was listed with members: it has gone since, or it is of the
protocol of KIP-848, which this request does not describe."""
COORDINATOR_IS_MOVING = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


@dataclass(slots=True)
class GroupOnTopic:
    """How one group uses one topic."""

    state: str
    """As Kafka names it: ``Stable``, ``Empty``; empty text for a group without members, from brokers before 2.6."""
    committed: dict[int, int] = field(default_factory=dict)
    """Committed offset by partition; empty for a group that only has members."""


GroupsByTopic = Mapping[str, Mapping[str, GroupOnTopic]]
"""By topic and group."""


class _NotYetError(Exception):
    """A group is changing, or its coordinator is moving: read again."""


@dataclass(slots=True)
class ConsumerGroups:
    """Reads the groups of a cluster. Whoever asks must be allowed to see all groups."""

    connections: BrokerConnections
    deadline: Deadline

    def on(self, topics: Collection[str]) -> GroupsByTopic:
        """The groups of each topic.

        Raises:
            ClusterError: A broker or a group could not be read: any group may use any topic.
            TimeoutError: The members of a group could not be read until the deadline.
        """
        while True:
            try:
                return self._read(frozenset(topics))
            except _NotYetError as error:
                time.sleep(PAUSE_S)
                if self.deadline.is_over:
                    raise TimeoutError(str(error)) from error

    def _read(self, topics: frozenset[str]) -> GroupsByTopic:
        found: dict[str, dict[str, GroupOnTopic]] = {topic: {} for topic in topics}
        states = self._states()
        for group, state, read in self._assigned(states):
            for topic in read & topics:
                found[topic][group] = GroupOnTopic(state)
        for group, topic, partition, offset in self._committed(states):
            if topic in topics and offset >= 0:
                of_topic = found[topic].setdefault(group, GroupOnTopic(_state_of(states, group)))
                of_topic.committed[partition] = offset
        return found

    def _states(self) -> dict[int, dict[str, str]]:
        """The state of each group, by the broker that coordinates it."""
        replies = self._replies({broker: ListGroupsRequest() for broker in self.connections.brokers()})
        found = {}
        for broker, reply in replies.items():
            _check(reply.error_code, f"the groups of broker {broker}")
            listed = [group for group in reply.groups if group.protocol_type in CONSUMER_PROTOCOLS]
            found[broker] = {group.group_id: group.group_state for group in listed}
        return found

    def _assigned(self, states: Mapping[int, Mapping[str, str]]) -> Iterator[tuple[str, str, set[str]]]:
        """Each group with members, its state, and the topics that they read now."""
        with_members = {b: [g for g, state in of.items() if state not in WITHOUT_MEMBERS] for b, of in states.items()}
        for _, reply in self._in_parts(with_members, GROUPS_A_REQUEST, lambda part: DescribeGroupsRequest(groups=part)):
            for group in reply.groups:
                _check(group.error_code, f"group {group.group_id}")
                if group.group_state in UNREADY:
                    raise _NotYetError(f"the members of group {group.group_id} cannot be read: {group.group_state}")
                yield group.group_id, group.group_state, _topics_of(group.members)

    def _committed(self, states: Mapping[int, Mapping[str, str]]) -> Iterator[tuple[str, str, int, int]]:
        """Group, topic, partition and offset of each commit."""
        many = all(self.connections.offers(broker, OffsetFetchRequest, MANY_GROUPS) for broker in states)
        parts = self._in_parts(
            {broker: list(of_broker) for broker, of_broker in states.items()},
            GROUPS_A_REQUEST if many else 1,
            _commits_of_many if many else _commits_of_one,
        )
        for part, reply in parts:
            for group, answer in zip(part, reply.groups if many else [reply], strict=True):
                name = answer.group_id if many else group
                _check(answer.error_code, f"the commits of group {name}")
                for topic in answer.topics:
                    yield from ((name, topic.name, p.partition_index, p.committed_offset) for p in topic.partitions)

    def _in_parts(
        self, groups: Mapping[int, Sequence[str]], size: int, request_of: Callable[[list[str]], Any]
    ) -> Iterator[tuple[list[str], Any]]:
        """The groups in parts, and the answer to each; one part of each broker at a time."""
        parts = [
            [list(of_broker[at : at + size]) for at in range(0, len(of_broker), size)] for of_broker in groups.values()
        ]
        for at_once in zip_longest(*parts):
            asked = {broker: part for broker, part in zip(groups, at_once, strict=True) if part}
            replies = self._replies({broker: request_of(part) for broker, part in asked.items()})
            yield from ((part, replies[broker]) for broker, part in asked.items())

    def _replies(self, requests: Mapping[int, Any]) -> dict[int, Any]:
        if self.deadline.is_over:
            raise ClusterUnreachableError("the brokers did not give all groups in time")
        replies = self.connections.ask(requests, timeout_s=self.deadline.left_s)
        for broker, reply in replies.items():
            if isinstance(reply, str):
                raise ClusterUnreachableError(f"broker {broker} {reply}")
        return replies


def _commits_of_many(groups: list[str]) -> Any:
    named_groups = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
    return OffsetFetchRequest(groups=named_groups, min_version=MANY_GROUPS, max_version=MANY_GROUPS)


def _commits_of_one(groups: list[str]) -> Any:
    return OffsetFetchRequest(group_id=groups[0], topics=None, min_version=2, max_version=MANY_GROUPS - 1)


def _topics_of(members: Iterable[Any]) -> set[str]:
    assignments = [ConsumerProtocolAssignment.decode(m.member_assignment) for m in members if m.member_assignment]
    return {assigned.topic for assignment in assignments for assigned in assignment.assigned_partitions}


def _state_of(states: Mapping[int, Mapping[str, str]], group: str) -> str:
    return next(of_broker[group] for of_broker in states.values() if group in of_broker)


def _check(error_code: int, what: str) -> None:
    """Raise where the answer is an error."""
    if error_code in COORDINATOR_IS_MOVING:
        raise _NotYetError(f"{what}: {named(error_code)}")
    if error_code != KafkaError.NO_ERROR:
        raise ClusterError(f"{what}: {named(error_code)}")
