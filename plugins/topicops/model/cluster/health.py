"""Is a partition well, and what does a loss of brokers make of its state? A test holds Spark's expressions to it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from topicops.model.cluster.snapshot import LiveTopic, PartitionState

NO_STATE = PartitionState(leader=-1, isr=(), leader_epoch=None, controller_epoch=None, version=None)
"""State of a partition that no broker has led yet: it has neither leader nor ISR."""


@dataclass(frozen=True, slots=True)
class PartitionHealth:
    """One partition by its replicas, its state, and the registered brokers, in the words of Kafka's metrics."""

    replicas: tuple[int, ...]
    """Assigned replicas, preferred leader first. Those that a reassignment adds are not among them, and not missed yet.

    Source: kafka.cluster.OngoingReassignmentState#replicationFactor (2.5 to 3.9).
    """
    leader: int
    """Broker id by the state; -1 means that there is none."""
    isr: tuple[int, ...]
    live: Collection[int]
    """Brokers that are registered."""
    min_isr: int = 1
    """Number of in-sync replicas that producers with ``acks=all`` need, as ``needed_in_sync`` says."""

    @property
    def is_offline(self) -> bool:
        """No leader, or one that is not registered; its state names a dead leader until a new one is elected.

        Source: OfflinePartitionsCount; TopicCommand.PartitionDescription#hasUnavailablePartitions (3.9).
        """
        return self.leader not in self.live

    @property
    def is_under_replicated(self) -> bool:
        """Fewer replicas are in sync than are assigned.

        Source: UnderReplicatedPartitions: kafka.cluster.Partition#isUnderReplicated (3.9).
        """
        return len(self.isr) < len(self.replicas)

    @property
    def is_under_min_isr(self) -> bool:
        """Fewer replicas are in sync than producers with ``acks=all`` need, with or without a leader.

        Source: UnderMinIsrPartitionCount: kafka.cluster.Partition#isUnderMinIsr (3.9).
        """
        return len(self.isr) < self.min_isr

    @property
    def is_at_min_isr(self) -> bool:
        """One replica less, and producers with ``acks=all`` fail. Source: AtMinIsrPartitionCount."""
        return len(self.isr) == self.min_isr

    @property
    def refuses_all_acks(self) -> bool:
        """Producers with ``acks=all`` fail. Source: TopicCommand.PartitionDescription#isUnderMinIsr (3.9)."""
        return self.is_offline or self.is_under_min_isr

    @property
    def missing(self) -> tuple[int, ...]:
        """Assigned replicas that are not in sync."""
        return tuple(broker for broker in self.replicas if broker not in self.isr)

    @property
    def dead_replicas(self) -> tuple[int, ...]:
        """Assigned replicas whose brokers are not registered; the ISR may name them for a while."""
        return tuple(broker for broker in self.replicas if broker not in self.live)

    @property
    def is_led_from_outside_isr(self) -> bool:
        """The state contradicts itself: Kafka elects a leader of the ISR, or makes it the ISR."""
        return self.leader != -1 and self.leader not in self.isr

    @property
    def is_led_by_another(self) -> bool:
        """The leader is not the first replica. Source: PreferredReplicaImbalanceCount."""
        return self.leader != -1 and self.replicas[:1] not in ((), (self.leader,))


def health_of(topic: LiveTopic, partition: int, live: Collection[int], *, min_isr: int = 1) -> PartitionHealth:
    """Give the health of a partition by its assignment and state."""
    state, adding = (topic.states or {}).get(partition, NO_STATE), topic.adding.get(partition, ())
    replicas = topic.assignment.get(partition, ())
    if adding:
        replicas = tuple(broker for broker in replicas if broker not in adding)
    return PartitionHealth(replicas, state.leader, state.isr, live, min_isr)


UNCLEAN_ELECTION = "unclean.leader.election.enable"


class Elected(NamedTuple):
    """A new leader, and the ISR that it begins with."""

    leader: int
    isr: tuple[int, ...]


def elects_unclean(value: str | None, *, default: bool = False) -> bool:
    """Read a value of ``UNCLEAN_ELECTION`` as brokers do; None means the default."""
    return default if value is None else value.strip().lower() == "true"


def offline_election(
    assignment: Sequence[int], isr: Sequence[int], live: Collection[int], *, unclean: bool
) -> Elected | None:
    """Elect the first replica that is live and in the ISR; with ``unclean``, else the first live one.

    Gives None if there is neither: the partition stays without a leader.
    """
    for broker in assignment:
        if broker in live and broker in isr:
            return Elected(broker, tuple(member for member in isr if member in live))
    if unclean:
        for broker in assignment:
            if broker in live:
                return Elected(broker, (broker,))
    return None


def first_state(live_replicas: Sequence[int], controller_epoch: int = 0) -> PartitionState:
    """Give the state of a partition that never had one: the first live replica leads, all of them are in the ISR.

    Source: kafka.controller.ZkPartitionStateMachine#initializeLeaderAndIsrForPartitions (3.9; as in 1.0).
    """
    return PartitionState(
        leader=live_replicas[0], isr=tuple(live_replicas), leader_epoch=0, controller_epoch=controller_epoch, version=0
    )


def with_leader(state: PartitionState, leader: int, isr: tuple[int, ...], controller_epoch: int) -> PartitionState:
    """Write a leader and an ISR. Each write of the controller begins a new leader epoch."""
    return PartitionState(
        leader=leader,
        isr=isr,
        leader_epoch=(state.leader_epoch or 0) + 1,
        controller_epoch=controller_epoch,
        version=(state.version or 0) + 1,
    )


def without_replica(
    state: PartitionState, broker: int, controller_epoch: int, *, keeps_last: bool = True
) -> PartitionState:
    """Take a replica that is offline out of the ISR; a leader that goes leaves the partition without one.

    With ``keeps_last`` the last member stays in the ISR, since only that replica has all records.
    Source: kafka.controller.ZkReplicaStateMachine#doRemoveReplicasFromIsr (3.9; as in 1.1), and for 1.0
    kafka.controller.KafkaController#removeReplicaFromIsr.
    """
    if broker not in state.isr:
        return state
    leader = -1 if broker == state.leader else state.leader
    isr = state.isr if keeps_last and len(state.isr) == 1 else tuple(member for member in state.isr if member != broker)
    return with_leader(state, leader, isr, controller_epoch)


def after_loss(
    state: PartitionState, replicas: Sequence[int], *, live: Collection[int], lost: Collection[int], unclean: bool
) -> PartitionState:
    """Give the state of a partition once some brokers are lost, and only the others are live.

    Where the leader is lost, another is elected; then the lost replicas leave the ISR.

    Args:
        lost: Brokers that were live before; a replica that was dead already has left the ISR.

    Source: kafka.controller.KafkaController#onReplicasBecomeOffline (3.9; as in 1.0).
    """
    if state.leader not in live:
        there = [broker for broker in replicas if broker in live]
        elected = offline_election(replicas, state.isr, there, unclean=unclean)
        if elected is not None:
            state = with_leader(state, elected.leader, elected.isr, 0)
    for broker in sorted(replicas):
        if broker in lost:
            state = without_replica(state, broker, 0)
    return state
