"""Is one partition well? All that asks it asks ``PartitionHealth``; Spark's expressions are held to it by a test."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

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
    """How many replicas in sync producers with ``acks=all`` need, as ``needed_in_sync`` says."""

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
