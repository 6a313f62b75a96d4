"""Names of partitions and replicas, and the replicas of a partition while they are being moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Replica(NamedTuple):
    """One replica. Kafka's ``PartitionAndReplica``."""

    topic: str
    partition: int
    broker: int

    @property
    def of(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """The replicas of one partition, preferred leader first.

    While a reassignment runs, ``replicas`` are those of the target, followed by the others of the origin.
    Source: kafka.controller.ReplicaAssignment (3.9; since 2.4).
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def origin(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding or self.removing)

    def reassign_to(self, target: Sequence[int]) -> ReplicaAssignment:
        """A move to these replicas; it takes the place of a move that runs already."""
        origin = self.origin
        replicas = tuple(dict.fromkeys([*target, *origin]))
        return ReplicaAssignment(
            replicas,
            adding=tuple(broker for broker in replicas if broker not in origin),
            removing=tuple(broker for broker in replicas if broker not in target),
        )

    def without(self, broker: int) -> ReplicaAssignment:
        return ReplicaAssignment(
            tuple(found for found in self.replicas if found != broker),
            tuple(found for found in self.adding if found != broker),
            tuple(found for found in self.removing if found != broker),
        )
