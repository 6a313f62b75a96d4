"""What can happen to a controller. After a watch fired, it reads the znodes itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topicops.controller.assignments import TopicPartition
from topicops.controller.elections import Election


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """The children of ``/brokers/ids``."""


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """The children of ``/brokers/topics``."""


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """The data of a topic's znode."""

    topic: str


@dataclass(frozen=True, slots=True)
class DeletionsMarked:
    """The children of ``/admin/delete_topics``."""


@dataclass(frozen=True, slots=True)
class MovesWritten:
    """``/admin/reassign_partitions`` was created."""


@dataclass(frozen=True, slots=True)
class MovesAsked:
    """AlterPartitionReassignments, since 2.4."""

    targets: Mapping[TopicPartition, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ElectionsWritten:
    """``/admin/preferred_replica_election`` was created."""


@dataclass(frozen=True, slots=True)
class ElectionsAsked:
    """ElectLeaders, since 2.2."""

    partitions: tuple[TopicPartition, ...]
    election: Election = Election.PREFERRED


@dataclass(frozen=True, slots=True)
class ShutdownAsked:
    """ControlledShutdown: the broker wants to stop, and has its partitions led by others first."""

    broker: int


@dataclass(frozen=True, slots=True)
class IsrAltered:
    """A leader's followers caught up, or fell behind: AlterPartition since 2.7, before that the leader's own write."""

    partition: TopicPartition
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReplicasDeleted:
    """A broker's answer to StopReplica with ``delete``."""

    broker: int
    partitions: tuple[TopicPartition, ...]
    failed: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class LogsFailed:
    """A disk of a broker failed, with these replicas."""

    broker: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class UncleanElectionAllowed:
    """A topic's ``unclean.leader.election.enable`` became true."""

    topic: str


Event = (
    BrokersChanged
    | TopicsChanged
    | PartitionsChanged
    | DeletionsMarked
    | MovesWritten
    | MovesAsked
    | ElectionsWritten
    | ElectionsAsked
    | ShutdownAsked
    | IsrAltered
    | ReplicasDeleted
    | LogsFailed
    | UncleanElectionAllowed
)
