"""Which groups use topics: those whose members read them, those with committed offsets, and those that cannot be read.

Each broker is asked for the groups that it coordinates, many in one request. Confluent-kafka sends requests of its own
for each group: for 10,000 groups that takes 14 s, and when so many of its requests reach their deadline at once, an
assertion of librdkafka ends the process. A type of groups that is not in ``TYPES`` cannot be read, so such a group
counts as a user of every topic.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from confluent_kafka import KafkaError
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import ConsumerProtocolAssignment, ConsumerProtocolSubscription, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest

from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.clients.requests import end_offsets_request, metadata_request
from topicops.edges.kafka.clients.settings import Deadline, named
from topicops.edges.kafka.questions.group_requests import (
    ConsumerGroupDescribeRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)
from topicops.model.errors import ClusterError, ClusterUnreachableError

WITHOUT_MEMBERS = ("Empty", "Dead")
CHANGING = ("PreparingRebalance", "CompletingRebalance", "Dead")
"""States of a described classic group whose members give no topics. ``Dead``: it has gone since it was listed, or
brokers that list no types have another type of that name."""
STATES = (*WITHOUT_MEMBERS, *CHANGING, "Stable", "NotReady", "Assigning", "Reconciling", "")
"""States of groups. Source: org.apache.kafka.common.GroupState (4.4); empty: brokers before 2.6 list none."""
CLASSIC = ("classic", "")
"""Types of classic groups. Empty: brokers before 3.8 list none, and may have consumer groups in a preview."""
SHARE = "share"
STREAMS = "streams"
"""Type of a group that names the topics of its topology, also while it has no members."""
CLASSIC_CONSUMERS = ("consumer", "")
"""Protocol types of classic groups whose members name topics; empty means that the group has only committed offsets."""
NO_READERS = ("connect", "sr")
"""Protocol types of classic groups whose members share work, and read no topic as members: workers of Kafka
Connect, and schema registries. If such a group has committed offsets, these count."""

COMPARED = re.compile(r"(?:(?:[\w.-]|\\[.wd-]|\[[\w.-]+\])[*+?]?|[()|^$])*", re.ASCII)
"""Patterns that mean the same to Python as to the brokers' RE2/J; others are not compared."""
MOST_REPEATS = 3
"""Most repeats in a pattern that is compared: each multiplies Python's time by the length of a topic's name."""


class UnreadGroupError(Exception):
    """A group's use of topics cannot be read; the message is the reason."""


class ChangingGroupError(UnreadGroupError):
    """As above, for now: read again."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group as its broker lists it."""

    name: str
    broker: int
    type: str
    protocol: str
    state: str

    @property
    def shown_type(self) -> str:
        """As Kafka names it: ``consumer``, ``share``, ``streams``; empty text for a classic group."""
        return "" if self.type in CLASSIC else self.type

    @property
    def is_described(self) -> bool:
        """Whether it may use topics on which it has no offsets."""
        if self.type in CLASSIC and self.protocol in NO_READERS:
            return False
        return self.state not in WITHOUT_MEMBERS or self.type == STREAMS

    def require_known(self) -> None:
        """Raise ``UnreadGroupError`` for a type, a protocol or a state that is not known."""
        if self.type not in TYPES:
            raise UnreadGroupError("its type is not known")
        if self.state not in STATES:
            raise UnreadGroupError(f"its state {self.state} is not known")
        if self.type in CLASSIC and self.is_described and self.protocol not in CLASSIC_CONSUMERS:
            raise UnreadGroupError(f"its protocol {self.protocol} is not known")


Offsets = Iterator[tuple[str, int, int]]
"""Offsets by topic and partition; -1 means that the group has not begun the partition."""


@dataclass(frozen=True, slots=True)
class GroupType:
    describe: Callable[[list[str]], Any]
    """The request that describes groups."""
    topics_of: Callable[[Any, Collection[str]], Iterable[str]]
    """Function that gives the topics of a described group, out of those in the second argument."""
    offsets_of: Callable[[Any], Offsets]


def _of_classic(group: Any, _topics: Collection[str]) -> Iterable[str]:
    if group.group_state in CHANGING:
        raise ChangingGroupError(f"its state is {group.group_state}")
    for member in group.members:
        try:
            if member.member_metadata:
                yield from ConsumerProtocolSubscription.decode(member.member_metadata).topics
            if member.member_assignment:
                assignment = ConsumerProtocolAssignment.decode(member.member_assignment)
                yield from (assigned.topic for assigned in assignment.assigned_partitions)
        except Exception as error:  # any error, since its client may have written any bytes
            raise UnreadGroupError("its members are no consumers") from error


def _of_consumer(group: Any, topics: Collection[str]) -> Iterable[str]:
    for member in group.members:
        yield from member.subscribed_topic_names
        yield from (part.topic_name for part in member.assignment.topic_partitions)
        yield from (part.topic_name for part in member.target_assignment.topic_partitions)
    for pattern in {member.subscribed_topic_regex for member in group.members} - {None, ""}:
        yield from _matching(pattern, topics)


def _of_share(group: Any, _topics: Collection[str]) -> Iterable[str]:
    for member in group.members:
        yield from member.subscribed_topic_names
        yield from (part.topic_name for part in member.assignment.topic_partitions)


def _of_streams(group: Any, _topics: Collection[str]) -> Iterable[str]:
    """Return all topics of its topology, which the tasks of its members are parts of."""
    if group.topology is None or group.topology.subtopologies is None:
        if group.members:
            raise UnreadGroupError("its topology is not known")
        return
    for part in group.topology.subtopologies:
        yield from (*part.source_topics, *part.repartition_sink_topics)
        yield from (topic.name for topic in (*part.state_changelog_topics, *part.repartition_source_topics))


def _matching(pattern: str, topics: Collection[str]) -> Iterable[str]:
    repeats = sum(map(pattern.count, "*+?"))
    try:
        compared = re.compile(pattern, re.ASCII) if COMPARED.fullmatch(pattern) and repeats <= MOST_REPEATS else None
    except re.error:
        compared = None
    if compared is None:
        raise UnreadGroupError(f"its pattern {pattern} is not compared with names of topics here")
    return filter(compared.fullmatch, topics)


def _committed(group: Any) -> Offsets:
    for topic in group.topics:
        yield from ((topic.name, p.partition_index, p.committed_offset) for p in topic.partitions)


def _started(group: Any) -> Offsets:
    for topic in group.topics:
        yield from ((topic.topic_name, p.partition_index, p.start_offset) for p in topic.partitions)


def _described_by(request: Any) -> Callable[[list[str]], Any]:
    return lambda groups: request(group_ids=groups, include_authorized_operations=False)


_CLASSIC = GroupType(lambda groups: DescribeGroupsRequest(groups=groups), _of_classic, _committed)
TYPES: Mapping[str, GroupType] = {
    **dict.fromkeys(CLASSIC, _CLASSIC),
    "consumer": GroupType(_described_by(ConsumerGroupDescribeRequest), _of_consumer, _committed),
    SHARE: GroupType(_described_by(ShareGroupDescribeRequest), _of_share, _started),
    STREAMS: GroupType(_described_by(StreamsGroupDescribeRequest), _of_streams, _committed),
}
"""Types by name, as ListGroups gives it. Source: org.apache.kafka.coordinator.group.Group.GroupType (4.4)."""


GROUPS_A_REQUEST = 500
MANY_GROUPS = 8
"""The version of OffsetFetch since which one request may name many groups (Kafka 3.0, KIP-709)."""
PAUSE_S = 0.1
"""Seconds before groups in the middle of a change are read again."""
OFFSETS = "__consumer_offsets"
"""The leader of each partition coordinates a part of the groups, of all types."""
NAMES_CREATE_NOTHING = 10
"""A version of Metadata that brokers have since Kafka 2.8; older ones create this topic when a question names it.

Source: kafka.server.KafkaApis#getTopicMetadata (2.7): ``createInternalTopic``, whatever the request allows.
"""
COORDINATOR_IS_MOVING = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
NO_SUCH_GROUP = KafkaError.GROUP_ID_NOT_FOUND
"""Error for a listed group that is gone since, or has become one of another type."""


@dataclass(slots=True)
class GroupOnTopic:
    state: str
    """State in Kafka's words: ``Stable``, ``Empty``; empty text without members, from brokers before 2.6."""
    committed: dict[int, int] = field(default_factory=dict)
    """Committed offset by partition, or start offset of a share group; empty for a group that only has members."""
    type: str = ""
    """Type, as ``ListedGroup.shown_type``."""
    unread: str = ""
    """Reason why the group could not be read, so that it counts as a user of every topic; empty if it was read."""


GroupsByTopic = Mapping[str, Mapping[str, GroupOnTopic]]
"""Groups by topic and name."""


class _NotYetError(Exception):
    """A coordinator is moving: read again."""


@dataclass(slots=True)
class _Found:
    by_topic: dict[str, dict[str, GroupOnTopic]]
    is_changing: bool = False
    """Whether a group that could not be read may be read soon."""

    def add(self, group: ListedGroup, topic: str, state: str) -> GroupOnTopic:
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
    """Reads the groups of a cluster, of all types. The reader must be allowed to see all groups."""

    connections: BrokerConnections
    deadline: Deadline

    def on(self, topics: Collection[str]) -> GroupsByTopic:
        """Return the groups of each topic; a group that cannot be read is on each of them.

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
        self._require_coordinators(replies.keys(), has_groups=any(reply.groups for reply in replies.values()))
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

    def _require_coordinators(self, brokers: Collection[int], *, has_groups: bool) -> None:
        """Raise where a coordinator is missing, whose groups no broker lists, and where that is not known.

        ``ClusterUnreachableError``: a partition has no leader among these brokers; ``ClusterError``: a broker does not
        tell; ``_NotYetError``: some brokers know of no groups at all, and others do.
        """
        told = self._offsets_topic(brokers, is_there=has_groups)
        unknowing = {b for b, (error, _) in told.items() if error == KafkaError.UNKNOWN_TOPIC_OR_PART}
        for broker in told.keys() - unknowing:
            error, partitions = told[broker]
            if error != KafkaError.NO_ERROR:
                raise ClusterError(f"broker {broker} does not describe {OFFSETS}: {named(error)}")
            for partition in partitions:
                if partition.leader_id not in brokers:
                    which = f"partition {partition.partition_index} of {OFFSETS}"
                    raise ClusterUnreachableError(f"{which} has no leader, and its groups are not known")
        if unknowing and len(unknowing) < len(told):
            raise _NotYetError(f"broker {min(unknowing)} has not heard of {OFFSETS}")

    def _offsets_topic(self, brokers: Collection[int], *, is_there: bool) -> dict[int, tuple[int, Sequence[Any]]]:
        """Return what each broker says of the topic: an error, and partitions. The question creates no topic.

        An old broker is asked for all topics, and lists those that the reader may see. If this one is not listed, a
        question about one of its offsets tells whether it does not exist or may not be seen.
        """
        by_name = {b for b in brokers if is_there or self.connections.offers(b, MetadataRequest, NAMES_CREATE_NOTHING)}
        replies = self._replies({b: metadata_request([OFFSETS] if b in by_name else None) for b in brokers})
        told = {
            b: (t.error_code, t.partitions) for b, reply in replies.items() for t in reply.topics if t.name == OFFSETS
        }
        others = self._replies({b: end_offsets_request({OFFSETS: {0: None}}) for b in brokers if b not in told})
        whys = {b: reply.topics[0].partitions[0].error_code for b, reply in others.items()}
        return told | {b: (why or KafkaError.UNKNOWN, ()) for b, why in whys.items()}

    def _described(self, groups: Iterable[ListedGroup]) -> Iterator[tuple[ListedGroup, Any]]:
        for name, of_type in TYPES.items():
            described = [group for group in groups if group.type == name and group.is_described]
            yield from self._answers(described, of_type.describe)

    def _offsets(self, groups: Iterable[ListedGroup]) -> Iterator[tuple[ListedGroup, Any]]:
        """Yield the answer about committed offsets, or about start offsets of a share group."""
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
        """Yield the answer about each group, None where there is none; one part of each broker's groups at a time."""
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
                reply = replies.get(broker)
                if size == 1:  # where only one group can be asked about, the reply is the answer
                    answers = {part[0].name: reply}
                else:
                    answers = {} if reply is None else {answer.group_id: answer for answer in reply.groups}
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


def _readable(group: ListedGroup, answer: Any) -> Any:
    """Return the answer about a group, if it is one.

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
