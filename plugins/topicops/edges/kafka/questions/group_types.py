"""The types of groups whose use of topics can be read in detail: how each is described, and what it uses.

A type that is not in ``TYPES`` cannot be read, so such a group counts as a user of every topic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from topicops.edges.kafka.questions.group_requests import (
    ConsumerGroupDescribeRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)

WITHOUT_MEMBERS = ("Empty", "Dead")
CHANGING = ("PreparingRebalance", "CompletingRebalance", "Dead")
"""Of a described classic group: its members tell no topics. ``Dead``: it has gone since it was listed, or brokers that
list no types have another type of that name."""
STATES = (*WITHOUT_MEMBERS, *CHANGING, "Stable", "NotReady", "Assigning", "Reconciling", "")
"""Source: org.apache.kafka.common.GroupState (4.4); empty: brokers before 2.6 list no state."""
CLASSIC = ("classic", "")
"""Empty: brokers before 3.8 list no type, and have classic groups, or consumer groups in a preview."""
SHARE = "share"
STREAMS = "streams"
"""Such a group names the topics of its topology, also while it has no members."""
CLASSIC_CONSUMERS = ("consumer", "")
"""Protocol types of classic groups whose members name topics; empty: the group has only committed offsets."""
NO_READERS = ("connect", "sr")
"""Protocol types of classic groups whose members share out work, and read no topic as members: workers of Kafka
Connect, and schema registries. If such a group has committed offsets, these count."""

COMPARED = re.compile(r"(?:(?:[\w.-]|\\[.wd-]|\[[\w.-]+\])[*+?]?|[()|^$])*", re.ASCII)
"""Patterns that mean the same to Python as to the brokers' RE2/J; others are not compared."""
MOST_REPEATS = 3
"""In a pattern that is compared: each more multiplies the time that Python may take by the length of a topic's name."""


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
"""Topic, partition and offset; -1: the group has not begun the partition."""


@dataclass(frozen=True, slots=True)
class GroupType:
    """How groups of one type are read."""

    describe: Callable[[list[str]], Any]
    """The request that describes groups."""
    topics_of: Callable[[Any, Collection[str]], Iterable[str]]
    """Topics that a described group uses; of those in the second argument all."""
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
    """All topics of its topology, which the tasks of its members are parts of."""
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
"""By name, as ListGroups gives it. Source: org.apache.kafka.coordinator.group.Group.GroupType (4.4)."""
