"""What a step of moves asks of the cluster and sends to it; ``edges/`` implements it, and a simulated cluster does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from topicops.features.moves.record import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One partition that moves, as the controller lists it."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionNow:
    """One partition as it is now."""

    replicas: tuple[int, ...]
    """Replicas, preferred leader first; while it moves, those of target and origin together."""
    isr: tuple[int, ...]
    leader: int
    """Id of the leader; -1 means none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicNow:
    """One topic as it is now."""

    identity: str
    """Identity, as ``LiveTopic.identity``."""
    first_identity: str = ""
    """Identity that it had before it got an id, as it does when the brokers' protocol is raised; empty: not known."""
    partitions: Mapping[int, PartitionNow]
    min_isr: int
    """``min.insync.replicas`` in force: the largest that any broker may use."""
    is_deleting: bool = False
    leader_entries: tuple[str, ...] = ()
    """Entries of ``leader.replication.throttled.replicas``, whosever they are; ``("*",)`` for all."""
    follower_entries: tuple[str, ...] = ()

    def is_same(self, identity: str) -> bool:
        """Return whether this is the topic that once had this identity, and no later one of its name."""
        return bool(identity) and identity in (self.identity, self.first_identity)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNow:
    """One live broker."""

    rack: str | None
    closed: str = ""
    """A clause that says why it gets no new replicas (``which is cordoned``); empty: it may get them."""
    leader_rate: int | None = None
    """``leader.replication.throttled.rate`` set on this broker, bytes a second; None means not set."""
    follower_rate: int | None = None
    unread: str = ""
    """A sentence where its rates cannot be read."""
    caps_min_isr: bool = True
    """Whether ``min.insync.replicas`` counts for no more than the replicas, as since 3.7, or that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSizes:
    """Bytes of logs on one broker."""

    bytes_of: Mapping[TopicPartition, int] = field(default_factory=dict)
    free_bytes: int | None = None
    """Free bytes of the directory with the most; None where brokers do not tell (before 3.3, KIP-827)."""


class MoveCluster(Protocol):
    """The cluster, as one step sees it. Raises ``ClusterError`` where a question or a request has no clear answer.

    Every request says by partition or broker what was refused: an empty text means accepted.
    """

    def listed(self) -> Mapping[TopicPartition, Listed]:
        """Return all partitions of the cluster that move, whosever they are, by the controller of now."""
        ...

    def topics(self, names: Collection[str]) -> Mapping[str, TopicNow]:
        """Return these topics as the source of the environment sees them; a topic that is gone has no entry."""
        ...

    def brokers(self) -> Mapping[int, BrokerNow]:
        """Return the live brokers, each with its rates, as that broker itself tells them."""
        ...

    def agreed_rows(self, partitions: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        """Return those of the partitions that all live brokers see with the same replicas and leader."""
        ...

    def log_sizes(self, brokers: Collection[int], topics: Collection[str]) -> Mapping[int, LogSizes | str]:
        """Return sizes by broker; a sentence for one that does not tell."""
        ...

    def add_entries(self, topic: str, leader: Sequence[str], follower: Sequence[str]) -> str:
        """Add entries to both throttle lists of a topic (APPEND)."""
        ...

    def remove_entries(self, topic: str, leader: Sequence[str], follower: Sequence[str]) -> str:
        """Take entries out (SUBTRACT), and the override itself once nothing is left in it (DELETE)."""
        ...

    def set_rate(self, broker: int, rate: int | None) -> str:
        """Set both rates of one live broker, bytes a second; None removes them."""
        ...

    def alter(self, rows: Mapping[TopicPartition, tuple[int, ...] | None]) -> Mapping[TopicPartition, str]:
        """Start moves to these rows; None cancels. One AlterPartitionReassignments.

        Gives the answer for each partition: a text is a refusal for good. One whose answer is not clear (the controller
        moved, or timed out) has no entry.
        """
        ...

    def elect(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, str]:
        """Let the preferred leaders lead (ElectLeaders); needless elections are no refusal."""
        ...
