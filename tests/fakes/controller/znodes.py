"""Names of partitions and replicas, and the znodes that the controller reads and writes, as values.

A test or a simulation may stop it at any write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, PartitionState


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
        """Return a move to these replicas; it takes the place of a move that runs already."""
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


@dataclass(slots=True)
class TopicZnode:
    """The data of ``/brokers/topics/<topic>``."""

    assignment: dict[int, ReplicaAssignment]
    topic_id: str | None = None


@dataclass(slots=True)
class Znodes:
    """All of them. Each method of the second half is one write, in ZooKeeper one request."""

    brokers: dict[int, int] = field(default_factory=dict)
    """``/brokers/ids``: the epoch of each registered broker, which a restart raises."""
    topics: dict[str, TopicZnode] = field(default_factory=dict)
    states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """``/config/topics``."""
    markers: dict[str, None] = field(default_factory=dict)
    """``/admin/delete_topics``, in order of creation."""
    moves: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """``/admin/reassign_partitions``: the target of each; empty: there is no such znode."""
    elections: dict[TopicPartition, None] = field(default_factory=dict)
    """``/admin/preferred_replica_election``."""
    controller: int | None = None
    controller_epoch: int = 0

    @classmethod
    def of(cls, snapshot: ClusterSnapshot, topics: Mapping[str, LiveTopic] | None = None) -> Znodes:
        """As they were when the snapshot was read, with the states that it has.

        Args:
            topics: Leave out all other topics.
        """
        found = snapshot.topics if topics is None else topics
        return cls(
            brokers={broker.id: broker.epoch or 0 for broker in snapshot.brokers.values()},
            topics={name: topic_znode(topic) for name, topic in found.items()},
            states={
                TopicPartition(name, p): state
                for name, topic in found.items()
                for p, state in (topic.states or {}).items()
            },
            configs={name: dict(topic.overrides) for name, topic in found.items()},
            markers=dict.fromkeys(name for name in snapshot.deleting if topics is None or name in topics),
            controller=snapshot.controller_id,
            controller_epoch=snapshot.controller_epoch or 0,
        )

    def topic(self, name: str) -> LiveTopic:
        """As a reader would show it."""
        rows = self.topics[name].assignment
        return LiveTopic(
            name=name,
            topic_id=self.topics[name].topic_id,
            assignment={p: row.replicas for p, row in rows.items()},
            adding={p: row.adding for p, row in rows.items() if row.adding},
            removing={p: row.removing for p, row in rows.items() if row.removing},
            overrides=self.configs.get(name, {}),
            states={p: self.states[tp] for p in rows if (tp := TopicPartition(name, p)) in self.states},
        )

    # --- the controller's writes --------------------------------------------------------------------------------

    def elect_controller(self, broker: int) -> int:
        """Write ``/controller`` and raise ``/controller_epoch``, which is one request. Gives the epoch."""
        self.controller, self.controller_epoch = broker, self.controller_epoch + 1
        return self.controller_epoch

    def create_state(self, partition: TopicPartition, state: PartitionState) -> bool:
        """False: there is one already, and it stays."""
        if partition in self.states:
            return False
        self.states[partition] = state
        return True

    def set_state(self, partition: TopicPartition, state: PartitionState) -> None:
        self.states[partition] = state

    def set_topic_id(self, topic: str, topic_id: str) -> None:
        self.topics[topic].topic_id = topic_id

    def set_assignment(self, topic: str, assignment: Mapping[int, ReplicaAssignment]) -> None:
        self.topics[topic].assignment = dict(assignment)

    def remove_topic(self, topic: str) -> None:
        """With everything below: its partitions and their states."""
        self.topics.pop(topic, None)
        for partition in [tp for tp in self.states if tp.topic == topic]:
            del self.states[partition]

    def remove_config(self, topic: str) -> None:
        self.configs.pop(topic, None)

    def remove_marker(self, topic: str) -> None:
        self.markers.pop(topic, None)

    def remove_moves(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            self.moves.pop(partition, None)

    def remove_elections(self) -> None:
        self.elections.clear()


def topic_znode(topic: LiveTopic) -> TopicZnode:
    none: tuple[int, ...] = ()
    return TopicZnode(
        assignment={
            p: ReplicaAssignment(row, topic.adding.get(p, none), topic.removing.get(p, none))
            for p, row in topic.assignment.items()
        },
        topic_id=topic.topic_id,
    )
