"""One broker: whether it runs, what it has on its disks, and what it tells clients."""

from __future__ import annotations

from dataclasses import dataclass, field

from fakes.controller.messages import LeaderAndIsr, StopReplica
from fakes.controller.znodes import TopicPartition
from topicops.model.ports import PartitionView


@dataclass(frozen=True, slots=True)
class KnownPartition:
    """What a broker tells clients of one partition."""

    view: PartitionView
    topic_id: str | None


@dataclass(frozen=True, slots=True)
class MetadataUpdate:
    """UpdateMetadata with all that brokers keep of it; None: forget the partition."""

    live: tuple[int, ...]
    partitions: dict[TopicPartition, KnownPartition | None]


Message = LeaderAndIsr | StopReplica | MetadataUpdate


@dataclass(slots=True)
class SimulatedBroker:
    """It knows what it was told, and its logs."""

    id: int
    rack: str | None
    is_up: bool = True
    is_silent: bool = False
    """It stands still as after SIGSTOP, and does nothing that it is told."""
    is_slow: bool = False
    """Its followers do not catch up."""
    is_behind: bool = False
    """Its metadata stays as it is."""
    metadata: dict[TopicPartition, KnownPartition] = field(default_factory=dict)
    known_brokers: frozenset[int] = frozenset()
    defaults: dict[str, str] = field(default_factory=dict)
    """Of topic configs, where they are not those of the other brokers."""
    logs: set[TopicPartition] = field(default_factory=set)
    """They survive a restart."""
    failed_logs: set[TopicPartition] = field(default_factory=set)
    """Replicas that were in a log directory which failed; the broker has another one for those that come."""
    failed_at: float | None = None
    """When that log directory failed; None: all work."""
    heard_until: float = 0.0
    """Requests of the controller arrive in the order in which they were sent."""
    unread: list[Message] = field(default_factory=list)
    """What arrived while it stood still."""
    updates: list[MetadataUpdate] = field(default_factory=list)
    """What its metadata lacks while it is behind."""

    @property
    def answers(self) -> bool:
        return self.is_up and not self.is_silent

    def stop(self) -> None:
        self.is_up = self.is_silent = False
        self.metadata.clear()
        self.known_brokers = frozenset()
        self.unread.clear()
        self.updates.clear()

    def learn(self, update: MetadataUpdate) -> None:
        if self.is_behind:
            self.updates.append(update)
            return
        self.known_brokers = frozenset(update.live)
        for tp, known in update.partitions.items():
            if known is None:
                self.metadata.pop(tp, None)
            else:
                self.metadata[tp] = known

    def catch_up_with_metadata(self) -> None:
        self.is_behind = False
        waiting, self.updates = self.updates, []
        for update in waiting:
            self.learn(update)

    def knows(self, topic: str) -> bool:
        return any(tp.topic == topic for tp in self.metadata)
