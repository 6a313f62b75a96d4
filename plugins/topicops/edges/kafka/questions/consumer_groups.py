"""Which groups use topics: those whose members read them, those with committed offsets, and those that cannot be read.

Each broker is asked for the groups that it coordinates, many in one request. Confluent-kafka sends requests of its own
for each group: for 10,000 groups that takes 14 s, and when so many of its requests reach their deadline at once, an
assertion of librdkafka ends the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from confluent_kafka import KafkaError
from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest

from topicops.edges.kafka.clients.broker_connections import BrokerConnections
from topicops.edges.kafka.clients.requests import metadata_request
from topicops.edges.kafka.clients.settings import Deadline, named
from topicops.edges.kafka.questions.group_requests import DescribeShareGroupOffsetsRequest
from topicops.edges.kafka.questions.group_types import SHARE, TYPES, ChangingGroupError, ListedGroup, UnreadGroupError
from topicops.model.errors import ClusterError, ClusterUnreachableError

GROUPS_A_REQUEST = 500
MANY_GROUPS = 8
"""The version of OffsetFetch since which one request may name many groups (Kafka 3.0, KIP-709)."""
PAUSE_S = 0.1
"""Before groups that are in the middle of a change are read again."""
OFFSETS = "__consumer_offsets"
"""The leader of each partition coordinates a part of the groups, of all types."""
COORDINATOR_IS_MOVING = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
NO_SUCH_GROUP = KafkaError.GROUP_ID_NOT_FOUND
"""Of a group that was listed: it has gone since, or has become one of another type."""


@dataclass(slots=True)
class GroupOnTopic:
    """How one group uses one topic."""

    state: str
    """As Kafka names it: ``Stable``, ``Empty``; empty text for a group without members, from brokers before 2.6."""
    committed: dict[int, int] = field(default_factory=dict)
    """Committed offset by partition, or start offset of a share group; empty for a group that only has members."""
    type: str = ""
    """As ``ListedGroup.shown_type``."""
    unread: str = ""
    """Why the group could not be read, so that it counts as a user of every topic; empty text: it was read."""


GroupsByTopic = Mapping[str, Mapping[str, GroupOnTopic]]
"""By topic and group."""


class _NotYetError(Exception):
    """A coordinator is moving: read again."""


@dataclass(slots=True)
class _Found:
    by_topic: dict[str, dict[str, GroupOnTopic]]
    is_changing: bool = False
    """Whether a group that could not be read may be read soon."""

    def add(self, group: ListedGroup, topic: str, state: str) -> GroupOnTopic:
        """The group on one of the topics."""
        return self.by_topic[topic].setdefault(group.name, GroupOnTopic(state, type=group.shown_type))

    @contextmanager
    def reading(self, group: ListedGroup) -> Iterator[None]:
        """If the group cannot be read in here, it uses every topic."""
        try:
            yield
        except UnreadGroupError as error:
            for topic in self.by_topic:
                self.add(group, topic, group.state).unread = str(error)
            self.is_changing |= isinstance(error, ChangingGroupError)


@dataclass(slots=True)
class ConsumerGroups:
    """Reads the groups of a cluster, of all types. Whoever asks must be allowed to see all groups."""

    connections: BrokerConnections
    deadline: Deadline

    def on(self, topics: Collection[str]) -> GroupsByTopic:
        """The groups of each topic; a group that cannot be read is on each of them.

        Raises ``ClusterError`` where a broker could not be read, since any group may use any topic then, and
        ``TimeoutError`` where the coordinator of a group was moving until the deadline.
        """
        found, reason = None, "no time was left to ask"
        while not self.deadline.is_over:
            try:
                found = self._read(topics)
                if not found.is_changing:
                    break
            except _NotYetError as error:
                reason = str(error)
            except ClusterUnreachableError:
                if found is None:
                    raise
            time.sleep(PAUSE_S)
        if found is None:
            raise TimeoutError(reason)
        return found.by_topic

    def _read(self, topics: Collection[str]) -> _Found:
        found = _Found({topic: {} for topic in topics})
        known = []
        for group in self._listed():
            with found.reading(group):
                group.require_known()
                known.append(group)
        for group, answer in self._described(known):
            with found.reading(group):
                used = {*TYPES[group.type].topics_of(_readable(group, answer), topics)}
                for topic in used & found.by_topic.keys():
                    found.add(group, topic, answer.group_state)
        for group, answer in self._offsets(known):
            with found.reading(group):
                for topic, partition, offset in TYPES[group.type].offsets_of(_readable(group, answer)):
                    if topic in found.by_topic:
                        found.add(group, topic, group.state).committed |= {partition: offset} if offset >= 0 else {}
        return found

    def _listed(self) -> list[ListedGroup]:
        replies = self._replies({broker: ListGroupsRequest() for broker in self.connections.brokers()})
        self._require_coordinators(replies.keys())
        for broker, reply in replies.items():
            if reply.error_code in COORDINATOR_IS_MOVING:
                raise _NotYetError(f"the groups of broker {broker}: {named(reply.error_code)}")
            if reply.error_code != KafkaError.NO_ERROR:
                raise ClusterError(f"the groups of broker {broker}: {named(reply.error_code)}")
        return [
            ListedGroup(listed.group_id, broker, listed.group_type, listed.protocol_type, listed.group_state)
            for broker, reply in replies.items()
            for listed in reply.groups
        ]

    def _require_coordinators(self, brokers: Collection[int]) -> None:
        """Raise where a coordinator is missing, whose groups no broker lists, and where that is not known.

        ``ClusterUnreachableError``: a partition has no leader among these brokers; ``ClusterError``: a broker does not
        tell; ``_NotYetError``: some brokers know of no groups at all, and others do.
        """
        replies = self._replies({broker: metadata_request([OFFSETS]) for broker in brokers})
        told = {broker: topic for broker, reply in replies.items() for topic in reply.topics}
        unknowing = {b for b, topic in told.items() if topic.error_code == KafkaError.UNKNOWN_TOPIC_OR_PART}
        for broker in replies.keys() - unknowing:
            error = told[broker].error_code if broker in told else KafkaError.UNKNOWN
            if error != KafkaError.NO_ERROR:
                raise ClusterError(f"broker {broker} does not describe {OFFSETS}: {named(error)}")
            for partition in told[broker].partitions:
                if partition.leader_id not in brokers:
                    which = f"partition {partition.partition_index} of {OFFSETS}"
                    raise ClusterUnreachableError(f"{which} has no leader, and its groups are not known")
        if unknowing and len(unknowing) < len(replies):
            raise _NotYetError(f"broker {min(unknowing)} has not heard of {OFFSETS}")

    def _described(self, groups: Iterable[ListedGroup]) -> Iterator[tuple[ListedGroup, Any]]:
        for name, of_type in TYPES.items():
            described = [group for group in groups if group.type == name and group.is_described]
            yield from self._answers(described, of_type.describe)

    def _offsets(self, groups: Iterable[ListedGroup]) -> Iterator[tuple[ListedGroup, Any]]:
        """The answer about committed offsets, or about start offsets of a share group."""
        shared = [group for group in groups if group.type == SHARE]
        committing = [group for group in groups if group.type != SHARE]
        yield from self._answers(shared, _share_offsets)
        takes_many = {
            b: self.connections.offers(b, OffsetFetchRequest, MANY_GROUPS) for b in {g.broker for g in committing}
        }
        yield from self._answers([g for g in committing if takes_many[g.broker]], _commits_of_many)
        yield from self._answers([g for g in committing if not takes_many[g.broker]], _commits_of_one, size=1)

    def _answers(
        self, groups: Iterable[ListedGroup], request_of: Callable[[list[str]], Any], *, size: int = GROUPS_A_REQUEST
    ) -> Iterator[tuple[ListedGroup, Any]]:
        """The answer about each group, None where there is none; one part of each broker's groups at a time."""
        parts: dict[int, list[list[ListedGroup]]] = {}
        for group in groups:
            of_broker = parts.setdefault(group.broker, [[]])
            if len(of_broker[-1]) == size:
                of_broker.append([])
            of_broker[-1].append(group)
        for at_once in zip_longest(*parts.values()):
            asked = {broker: part for broker, part in zip(parts, at_once, strict=True) if part}
            requests = {broker: request_of([group.name for group in part]) for broker, part in asked.items()}
            replies = self._replies(
                {b: request for b, request in requests.items() if self.connections.offers(b, request)}
            )
            for broker, part in asked.items():
                answers = _by_group(part, replies.get(broker), one=size == 1)
                yield from ((group, answers.get(group.name)) for group in part)

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


def _share_offsets(groups: list[str]) -> Any:
    of_group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    return DescribeShareGroupOffsetsRequest(groups=[of_group(group_id=group, topics=None) for group in groups])


def _by_group(asked: list[ListedGroup], reply: Any, *, one: bool) -> Mapping[str, Any]:
    """The answers in a reply; where only one group can be asked about, the reply is the answer."""
    if reply is None:
        return {}
    return {asked[0].name: reply} if one else {answer.group_id: answer for answer in reply.groups}


def _readable(group: ListedGroup, answer: Any) -> Any:
    """The answer about a group, if it is one.

    Raises ``UnreadGroupError`` where there is none, ``ChangingGroupError`` where the group has gone or has another type
    now, and ``_NotYetError`` where it has another coordinator now.
    """
    if answer is None:
        raise UnreadGroupError(f"broker {group.broker} does not tell all that it uses")
    if answer.error_code in COORDINATOR_IS_MOVING:
        raise _NotYetError(f"group {group.name}: {named(answer.error_code)}")
    if answer.error_code == NO_SUCH_GROUP:
        raise ChangingGroupError(f"broker {group.broker} no longer knows it")
    if answer.error_code != KafkaError.NO_ERROR:
        raise UnreadGroupError(named(answer.error_code))
    return answer
