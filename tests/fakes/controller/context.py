"""What the controller keeps in memory, and how its parts read and write what they share.

Source: kafka.controller.PartitionState (3.9; the same in 1.0) and ReplicaState (1.0 to 3.9, each release's own).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fakes.controller.messages import Outbox
from fakes.controller.releases import DEAD_REPLICAS_INELIGIBLE
from fakes.controller.znodes import Replica, ReplicaAssignment, TopicPartition, Znodes
from topicops.model.cluster.health import UNCLEAN_ELECTION, elects_unclean
from topicops.model.cluster.snapshot import PartitionState
from topicops.model.release import USUAL, Release


class PartitionStatus(StrEnum):
    NON_EXISTENT = "NonExistentPartition"
    """Never made, or deleted."""
    NEW = "NewPartition"
    """Made, and never led: it has no state znode."""
    ONLINE = "OnlinePartition"
    """A leader was elected."""
    OFFLINE = "OfflinePartition"
    """Its leader died, and no other was elected yet."""


VALID_PARTITION_BEFORE: Mapping[PartitionStatus, frozenset[PartitionStatus]] = {
    PartitionStatus.NON_EXISTENT: frozenset({PartitionStatus.OFFLINE}),
    PartitionStatus.NEW: frozenset({PartitionStatus.NON_EXISTENT}),
    PartitionStatus.ONLINE: frozenset({PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE}),
    PartitionStatus.OFFLINE: frozenset({PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE}),
}
"""From which states a partition may come into each state."""


def partition_may_become(now: PartitionStatus, then: PartitionStatus) -> bool:
    return now in VALID_PARTITION_BEFORE[then]


class ReplicaStatus(StrEnum):
    NEW = "NewReplica"
    """Made by a new topic, an expansion or a reassignment; it can only follow."""
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    """Its broker died, or it was told to stop."""
    DELETION_STARTED = "ReplicaDeletionStarted"
    """Its broker was told to delete it, and has not answered."""
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    """It could not be deleted: its broker is dead, or has a failed disk."""
    NON_EXISTENT = "NonExistentReplica"


_ALIVE = frozenset({ReplicaStatus.NEW, ReplicaStatus.ONLINE, ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_INELIGIBLE})
VALID_REPLICA_BEFORE: Mapping[ReplicaStatus, frozenset[ReplicaStatus]] = {
    ReplicaStatus.NEW: frozenset({ReplicaStatus.NON_EXISTENT}),
    ReplicaStatus.ONLINE: _ALIVE,
    ReplicaStatus.OFFLINE: _ALIVE,
    ReplicaStatus.DELETION_STARTED: frozenset({ReplicaStatus.OFFLINE}),
    ReplicaStatus.DELETION_SUCCESSFUL: frozenset({ReplicaStatus.DELETION_STARTED}),
    ReplicaStatus.DELETION_INELIGIBLE: frozenset({ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_STARTED}),
    ReplicaStatus.NON_EXISTENT: frozenset({ReplicaStatus.DELETION_SUCCESSFUL}),
}
"""From which states a replica may come into each state, since 2.3."""


def replica_may_become(now: ReplicaStatus, then: ReplicaStatus, release: Release) -> bool:
    """Before 2.3 a replica that is offline cannot become ineligible; what a user sees is the same."""
    if release < DEAD_REPLICAS_INELIGIBLE and (now, then) == (ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_INELIGIBLE):
        return False
    return now in VALID_REPLICA_BEFORE[then]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """The settings of the brokers that decide what the controller does."""

    release: Release = USUAL
    """The brokers' protocol, where that is older than the release that they run."""
    delete_topic_enable: bool = True
    unclean_leader_election_enable: bool = False
    """For topics without a value of their own."""


@dataclass(slots=True, kw_only=True)
class ControllerContext:
    """One controller's memory, from its election to its death.

    Source: kafka.controller.ControllerContext (3.9).
    """

    znodes: Znodes
    settings: ControllerSettings
    outbox: Outbox = field(default_factory=Outbox)
    epoch: int = 0
    live: dict[int, int] = field(default_factory=dict)
    """Registered brokers that it has heard of, with their epochs; those that shut down are among them."""
    shutting_down: set[int] = field(default_factory=set)
    failed_logs: dict[int, set[TopicPartition]] = field(default_factory=dict)
    """Replicas on failed disks, by broker."""
    assignments: dict[str, dict[int, ReplicaAssignment]] = field(default_factory=dict)
    states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    partition_status: dict[TopicPartition, PartitionStatus] = field(default_factory=dict)
    replica_status: dict[Replica, ReplicaStatus] = field(default_factory=dict)
    moving: set[TopicPartition] = field(default_factory=set)
    targets: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """Where partitions move, below ``REASSIGNMENTS_IN_TOPICS``: there the assignment does not tell."""
    deleting: set[str] = field(default_factory=set)
    """Topics that are queued for deletion."""
    deletion_started: set[str] = field(default_factory=set)
    ineligible: dict[str, str] = field(default_factory=dict)
    """Topics whose deletion waits, each with the reason."""

    @property
    def release(self) -> Release:
        return self.settings.release

    def is_online(self, broker: int, tp: TopicPartition, *, or_shutting_down: bool = False) -> bool:
        """Return whether the replica's broker is live, and its log is on no failed disk."""
        if broker not in self.live or (broker in self.shutting_down and not or_shutting_down):
            return False
        return tp not in self.failed_logs.get(broker, ())

    def assignment(self, tp: TopicPartition) -> ReplicaAssignment:
        return self.assignments.get(tp.topic, {}).get(tp.partition) or ReplicaAssignment(())

    def replicas(self, tp: TopicPartition) -> tuple[int, ...]:
        return self.assignment(tp).replicas

    def partitions(self, topics: Iterable[str] | None = None) -> Iterator[TopicPartition]:
        for topic in list(self.assignments) if topics is None else topics:
            for p in self.assignments.get(topic, {}):
                yield TopicPartition(topic, p)

    def replicas_of(self, topic: str) -> list[Replica]:
        rows = self.assignments.get(topic, {})
        return [Replica(topic, p, broker) for p, row in rows.items() for broker in row.replicas]

    def replicas_in(self, topic: str, status: ReplicaStatus) -> list[Replica]:
        return [replica for replica in self.replicas_of(topic) if self.replica_status.get(replica) is status]

    def all_replicas(self) -> Iterator[Replica]:
        for topic in list(self.assignments):
            yield from self.replicas_of(topic)

    def replicas_on(self, brokers: Collection[int]) -> list[Replica]:
        return [replica for replica in self.all_replicas() if replica.broker in brokers]

    def elects_unclean(self, topic: str) -> bool:
        own = self.znodes.configs.get(topic, {}).get(UNCLEAN_ELECTION)
        return elects_unclean(own, default=self.settings.unclean_leader_election_enable)

    def read_state(self, tp: TopicPartition) -> PartitionState | None:
        """Return the state from its znode. None: there is none, or a later controller wrote it."""
        state = self.znodes.states.get(tp)
        if state is None or (state.controller_epoch or 0) > self.epoch:
            return None
        self.states[tp] = state
        return state

    def write_state(self, tp: TopicPartition, state: PartitionState) -> None:
        self.znodes.set_state(tp, state)
        self.states[tp] = state

    def forget_replica(self, replica: Replica) -> None:
        rows = self.assignments.get(replica.topic, {})
        if replica.partition in rows:
            rows[replica.partition] = rows[replica.partition].without(replica.broker)
        self.replica_status.pop(replica, None)

    def forget_topic(self, topic: str) -> None:
        """Forget all but the states of its partitions and replicas, which a deletion has ended before.

        So a topic that somebody removed by hand, and made again, gets no leader until another controller is elected.
        Source: kafka.controller.ControllerContext#removeTopic (3.9).
        """
        self.deleting.discard(topic)
        self.deletion_started.discard(topic)
        self.ineligible.pop(topic, None)
        for p in self.assignments.pop(topic, {}):
            tp = TopicPartition(topic, p)
            self.states.pop(tp, None)
            self.moving.discard(tp)

    def forget_states(self, topic: str) -> None:
        """As after its deletion."""
        self.partition_status = {tp: status for tp, status in self.partition_status.items() if tp.topic != topic}
        self.replica_status = {r: status for r, status in self.replica_status.items() if r.topic != topic}

    def send_leader_and_isr(self, brokers: Iterable[int], tp: TopicPartition) -> None:
        """To these replicas, if they live; and to every broker what clients should know."""
        there = [broker for broker in brokers if broker in self.live]
        self.outbox.leader_and_isr(there, tp, self.states[tp], self.replicas(tp))
        self.send_metadata([tp])

    def send_metadata(self, partitions: Iterable[TopicPartition], *, to: Collection[int] | None = None) -> None:
        """Tell brokers, all by default, of live brokers and of these partitions, but not of those never led."""
        told = {
            tp: None if tp.topic in self.deleting else self.states[tp]
            for tp in partitions
            if tp.topic in self.deleting or tp in self.states
        }
        self.outbox.update_metadata(sorted(self.live if to is None else to), self.live, told)
