"""ZooKeeper as the cluster and its clients share it: numbered writes, and a writer that may die before any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fakes.controller.znodes import ReplicaAssignment, TopicPartition, TopicZnode, Znodes, topic_znode
from topicops.model.cluster.snapshot import LiveTopic, PartitionState


class WriterDiedError(Exception):
    """The broker died in the middle of what its controller wrote."""


@dataclass(slots=True)
class SimulatedZooKeeper(Znodes):
    """The znodes, with ZooKeeper's number of each write."""

    zxid: int = 100
    """Of the newest write."""
    created: dict[str, int] = field(default_factory=dict)
    """The czxid of each topic."""
    changed: dict[str, int] = field(default_factory=dict)
    """The mzxid of each topic."""
    writes_left: int | None = None
    """Of the controller, before its broker dies; None: it lives."""

    def next_zxid(self) -> int:
        self.zxid += 1
        return self.zxid

    def live(self, topic: str) -> LiveTopic | None:
        """As a reader shows it."""
        if topic not in self.topics:
            return None
        found = self.topic(topic)
        return LiveTopic(
            name=topic,
            topic_id=found.topic_id,
            czxid=self.created.get(topic),
            mzxid=self.changed.get(topic),
            assignment=found.assignment,
            adding=found.adding,
            removing=found.removing,
            overrides=dict(found.overrides),
            states=found.states,
        )

    # --- writes of brokers and of other hands -------------------------------------------------------------------

    def register(self, broker: int) -> None:
        self.brokers[broker] = self.next_zxid()

    def put_topic(self, topic: str, rows: Mapping[int, Sequence[int]], topic_id: str | None) -> None:
        self.created[topic] = self.changed[topic] = self.next_zxid()
        assignment = {p: ReplicaAssignment(tuple(row)) for p, row in rows.items()}
        self.topics[topic] = TopicZnode(assignment, topic_id)

    def put_as_is(self, live: LiveTopic) -> None:
        """Each znode of the topic, as they are given."""
        self.remove_topic_by_hand(live.name)
        self.created[live.name], self.changed[live.name] = live.czxid or 0, live.mzxid or 0
        self.topics[live.name] = topic_znode(live)
        self.configs[live.name] = dict(live.overrides)
        self.states |= {TopicPartition(live.name, p): state for p, state in (live.states or {}).items()}

    def put_rows(self, topic: str, rows: Mapping[int, Sequence[int]]) -> None:
        self.changed[topic] = self.next_zxid()
        added = {p: ReplicaAssignment(tuple(row)) for p, row in rows.items()}
        self.topics[topic].assignment |= added

    def put_config(self, topic: str, configs: Mapping[str, str]) -> None:
        self.next_zxid()
        self.configs[topic] = dict(configs)

    def put_marker(self, topic: str) -> None:
        self.next_zxid()
        self.markers[topic] = None

    def remove_topic_by_hand(self, topic: str) -> None:
        """With its config and its marker."""
        self.next_zxid()
        Znodes.remove_topic(self, topic)
        self.configs.pop(topic, None)
        self.markers.pop(topic, None)

    # --- the controller's writes --------------------------------------------------------------------------------

    def _write(self) -> int:
        if self.writes_left is not None:
            if self.writes_left == 0:
                raise WriterDiedError
            self.writes_left -= 1
        return self.next_zxid()

    def create_state(self, partition: TopicPartition, state: PartitionState) -> bool:
        self._write()
        return Znodes.create_state(self, partition, state)

    def set_state(self, partition: TopicPartition, state: PartitionState) -> None:
        self._write()
        Znodes.set_state(self, partition, state)

    def set_topic_id(self, topic: str, topic_id: str) -> None:
        self.changed[topic] = self._write()
        Znodes.set_topic_id(self, topic, topic_id)

    def set_assignment(self, topic: str, assignment: Mapping[int, ReplicaAssignment]) -> None:
        self.changed[topic] = self._write()
        Znodes.set_assignment(self, topic, assignment)

    def remove_topic(self, topic: str) -> None:
        self._write()
        Znodes.remove_topic(self, topic)

    def remove_config(self, topic: str) -> None:
        self._write()
        Znodes.remove_config(self, topic)

    def remove_marker(self, topic: str) -> None:
        self._write()
        Znodes.remove_marker(self, topic)
