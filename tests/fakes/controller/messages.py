"""What can happen to a controller, and what it sends to brokers, whose answers come back as events.

After a watch fired, it reads the znodes itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from fakes.controller.elections import Election
from fakes.controller.znodes import TopicPartition
from topicops.model.cluster.snapshot import PartitionState


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


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """Lead or follow this partition. The broker makes the log if it has none."""

    broker: int
    partition: TopicPartition
    state: PartitionState
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StopReplica:
    """Stop serving the replica; with ``delete``, remove its log and answer."""

    broker: int
    partition: TopicPartition
    delete: bool


@dataclass(frozen=True, slots=True)
class UpdateMetadata:
    """What the broker tells clients from now on, beside what it knows already."""

    broker: int
    live: tuple[int, ...]
    partitions: Mapping[TopicPartition, PartitionState | None]
    """None: the topic is being deleted (leader -2); the broker forgets the partition."""


BrokerRequest = LeaderAndIsr | StopReplica | UpdateMetadata


class Outbox:
    """Requests in the order in which they are sent."""

    def __init__(self) -> None:
        self._requests: list[BrokerRequest] = []

    def take(self) -> tuple[BrokerRequest, ...]:
        """Return all requests since the last call."""
        taken, self._requests = tuple(self._requests), []
        return taken

    def leader_and_isr(
        self, brokers: Iterable[int], partition: TopicPartition, state: PartitionState, replicas: tuple[int, ...]
    ) -> None:
        self._requests += [LeaderAndIsr(broker, partition, state, replicas) for broker in brokers]

    def stop_replica(self, broker: int, partition: TopicPartition, *, delete: bool) -> None:
        self._requests.append(StopReplica(broker, partition, delete))

    def update_metadata(
        self, brokers: Iterable[int], live: Collection[int], partitions: Mapping[TopicPartition, PartitionState | None]
    ) -> None:
        known = tuple(sorted(live))
        self._requests += [UpdateMetadata(broker, known, dict(partitions)) for broker in brokers]
