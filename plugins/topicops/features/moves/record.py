"""The record of an environment's moves: what runs have accepted, and what topicops owes the cluster for it.

Kafka itself tells which partitions move. The record adds what Kafka does not know: whose a move is, its origin and its
target, and which throttles are ours. It is written before each request that it explains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, NamedTuple

import msgspec

from topicops.edges.home.memories import Memory
from topicops.edges.places import Place
from topicops.model.json_types import FormatVersion
from topicops.model.plans.changes import MoveReason

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
LEADER_LIST, FOLLOWER_LIST = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(partitions: Iterable[TopicPartition]) -> Mapping[str, tuple[int, ...]]:
    """Return the partitions of each topic, sorted."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(partitions):
        found[topic].append(partition)
    return {topic: tuple(ids) for topic, ids in found.items()}


class Stage(StrEnum):
    """How far the move of one partition is."""

    ACCEPTED = "accepted"
    """A run may start it; no request was sent for it."""
    ASKED = "asked"
    """The request that starts it was sent, or may have been."""
    CANCELLING = "cancelling"
    """The request that cancels it was sent, or may have been."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMove:
    """The move of one partition, until it has ended."""

    origin: tuple[int, ...]
    """Replicas before the move."""
    target: tuple[int, ...]
    """Replicas after it, preferred leader first."""
    stage: Stage = Stage.ACCEPTED
    asked_at: Moment | None = None
    """Time of the request that started it; None means that none was sent."""
    seen: bool = False
    """Whether Kafka accepted that request, or listed the partition afterwards: if it is gone then, somebody took it."""
    doubted_at: Moment | None = None
    """Time at which it was first neither listed nor at its target, as it should be; None means no such doubt."""
    copied_bytes: int = 0
    """Bytes on the new replicas when they were last measured, all together."""
    size_bytes: int = 0
    """Bytes that the new replicas will have, all together, when they were last measured; 0 means not known."""
    measured_at: Moment | None = None
    """Time at which both were last measured; None means not since the request, or never."""
    bytes_per_s: float = 0.0
    """Speed of late: a mean in which that of three minutes ago counts for a third."""
    grown_at: Moment | None = None
    """Time at which ``copied_bytes`` last grew; None means not measured yet."""
    gap_bytes: int | None = None
    """Bytes that were left to copy at ``gap_at``; None means not measured yet."""
    gap_at: Moment | None = None
    """Time since which the bytes left to copy have not become fewer."""
    why_cancelled: str = ""

    def __post_init__(self) -> None:
        if not (self.origin and self.target):
            raise ValueError("a move has replicas before and after it")

    @property
    def added(self) -> frozenset[int]:
        return frozenset(self.target) - frozenset(self.origin)

    @property
    def links(self) -> Mapping[tuple[str, int], int]:
        """What a copy needs: sending of one broker and receiving of others, each with how many share its bytes.

        The preferred leader of before counts as the sender.
        """
        if not self.added:
            return {}
        return {("from", self.origin[0]): 1, **{("to", broker): len(self.added) for broker in sorted(self.added)}}

    @property
    def brokers(self) -> frozenset[int]:
        return frozenset(self.target) | frozenset(self.origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMove:
    """The moves of one topic that one approved change asks for, and the throttle entries that are ours."""

    topic: str
    identity: str
    """Identity of the topic; another topic of this name is never touched."""
    why: MoveReason
    digest: str
    """Digest of the change."""
    run: str
    """Run that accepted it, ``<group>/<run id>``."""
    approver: str = ""
    """Approver as the audit log names him; empty: no approval was needed."""
    accepted_at: Moment
    partitions: Mapping[int, PartitionMove]
    """Moves that have not ended, by partition. Empty: only entries are left to take out."""
    drained: tuple[int, ...] = ()
    """Brokers of ``cluster.draining`` that a drain empties; none where the command ``drain`` asks for it."""
    racks: Mapping[int, str | None] = field(default_factory=dict)
    """Racks of the targets' brokers when it was accepted; a broker that was not live then is missing."""
    leader_entries: tuple[str, ...] = ()
    """Our entries ``partition:broker`` of ``LEADER_LIST``."""
    follower_entries: tuple[str, ...] = ()
    """Our entries of ``FOLLOWER_LIST``."""

    @property
    def is_over(self) -> bool:
        """Whether nothing moves any more, and nothing is owed."""
        return not (self.partitions or self.leader_entries or self.follower_entries)

    def each(self) -> Iterator[Moving]:
        """Yield each partition whose move has not ended, by number."""
        return (Moving(TopicPartition(self.topic, p), self, found) for p, found in sorted(self.partitions.items()))


class Moving(NamedTuple):
    """The move of one partition, and that of its topic."""

    at: TopicPartition
    move: TopicMove
    found: PartitionMove


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedRate:
    """The throttle rate that we have set on one broker, for leaders and followers alike."""

    broker: int
    rate: int
    """Bytes a second."""
    was: int | None = None
    """Rate of ours that this one replaces, and that may still be in force; None means none."""
    others: tuple[int, ...] = field(default=(), repr=False)
    """Rates of ours from before that one, which may still be in force, or come into force late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedMove:
    """How the moves of one topic ended, for reports and pages."""

    topic: str
    why: MoveReason
    run: str
    partitions: int
    status: str
    """``done``, ``cancelled`` or ``dropped``."""
    message: str = ""
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLogs:
    """Where moves of ours have begun logs of a topic, and not ended: no log was there, so one that is there is its."""

    topic: str
    identity: str
    """Identity of the topic; a log may be of none of its name that came before."""
    brokers: Mapping[int, tuple[int, ...]]
    """Brokers by partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovesRecord:
    """All moves of one environment that have not ended."""

    format_version: FormatVersion = "1.0"
    cluster_id: str
    topics: tuple[TopicMove, ...] = ()
    """In the order in which they were accepted; a topic is in it once."""
    rates: tuple[OwnedRate, ...] = ()
    """Rates on brokers that are ours, by broker."""
    throttle: int | None = None
    """Bytes a second that a person has asked for until these moves have ended; None means ``apply.throttle``."""
    ended: tuple[EndedMove, ...] = ()
    """The newest ``KEPT_ENDED``, oldest first."""
    own_logs: tuple[OwnLogs, ...] = ()
    """Logs that moves without an end may have left: of the newest ``KEPT_ENDED`` topics, oldest first."""
    notes: tuple[str, ...] = ()
    """What the last step said: obligations, and what waits for what."""
    bytes_per_s: float = 0.0
    """Speed of late of the broker that sends or receives most: such a mean, too."""
    stepped_at: Moment | None = None
    """Time of the last step; None means that there was none."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing of ours moves, waits or is owed."""
        return not self.topics and not self.rates

    def moving(self) -> Iterator[Moving]:
        """Yield each partition that was asked to move, or to move back."""
        return (each for move in self.topics for each in move.each() if each.found.stage is not Stage.ACCEPTED)


KEPT_ENDED = 200
"""Most ended moves that a record keeps, and most topics with own logs."""
MOVES = Memory("moves", MovesRecord)
"""Moves of replicas that have not ended, by environment."""


def read_moves(home: Place, environment: str) -> MovesRecord | None:
    """Give the record; None before the first move. Raises ``ArtifactError`` when damaged."""
    return MOVES.of(home, environment).read()
