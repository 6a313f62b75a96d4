"""A run whose source is the brokers: it sees what each of them was told, and nothing that ZooKeeper alone has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fakes.controller.znodes import TopicPartition
from fakes.simulation.broker import KnownPartition
from fakes.simulation.process import SimulatedProcess
from topicops.model.cluster.snapshot import (
    Assignment,
    ClusterSnapshot,
    LiveTopic,
    PartitionState,
    TopicsInMemory,
    TopicTraces,
)
from topicops.model.errors import ClusterUnreachableError
from topicops.model.ports import TopicSink

MOST_READS = 10
READ_PAUSE_S = 0.1
Described = Mapping[str, LiveTopic]


class BrokerSourcedProcess(SimulatedProcess):
    """Reads as ``edges.kafka.reader`` does: a snapshot from any broker, single topics until all brokers agree."""

    lag_s = 2.0

    def snapshot(self, *, states: bool = False, into: TopicSink | None = None) -> ClusterSnapshot:
        with self._reading("snapshot"):
            sink = into or TopicsInMemory()
            sink.begin()
            sink.take([live for _, live in sorted(self._described(states=states).items())])
            return ClusterSnapshot(
                cluster_id=self.cluster_id(),
                chroot=self.chroot,
                source="kafka",
                controller_id=self.cluster.znodes.controller,
                controller_epoch=None,
                brokers=self.cluster.registered(),
                topics=sink.finish(),
                deleting={},
                broker_defaults=None,
                unknown=frozenset({"deleting", "orphan_configs"}),
            )

    def traces(self, topics: Sequence[str], *, states: bool = False) -> Mapping[str, TopicTraces]:
        with self._reading("traces"):
            found, disputed = self._described(states=states), list(topics)
            for _ in range(MOST_READS):
                disputed = [topic for topic in topics if self._is_disputed(topic, found.get(topic))]
                if not disputed:
                    break
                self.world.pass_time(READ_PAUSE_S)
                found = self._described(states=states)
            lives = {topic: found.get(topic) for topic in topics}
            lives |= {topic: self._unsettled(topic, lives[topic]) for topic in disputed}
            return {
                topic: TopicTraces(live=live, has_config_znode=False, is_deleting=False)
                for topic, live in lives.items()
            }

    def controller_epoch(self) -> int | None:
        return None

    def _described(self, *, states: bool) -> Described:
        """Return the topics that one broker knows."""
        answering = [broker for broker in self.cluster.brokers.values() if broker.answers]
        if not answering:
            raise ClusterUnreachableError("127.0.0.1:9092: no broker answers")
        broker = self.world.random.choice(answering)
        found: dict[str, dict[int, PartitionState]] = {}
        rows: dict[str, dict[int, tuple[int, ...]]] = {}
        ids: dict[str, str | None] = {}
        for tp, known in sorted(broker.metadata.items()):
            state = PartitionState(
                leader=known.view.leader, isr=known.view.isr, leader_epoch=None, controller_epoch=None, version=None
            )
            found.setdefault(tp.topic, {})[tp.partition] = state
            rows.setdefault(tp.topic, {})[tp.partition] = known.view.replicas
            ids[tp.topic] = known.topic_id
        return {
            topic: LiveTopic(
                name=topic,
                topic_id=ids[topic],
                assignment=rows[topic],
                overrides=dict(self.cluster.znodes.configs.get(topic, {})),
                states=found[topic] if states else None,
            )
            for topic in rows
        }

    def _unsettled(self, topic: str, described: LiveTopic | None) -> LiveTopic | None:
        """Return the topic as the broker knows it that was asked, or else as any broker knows it."""
        if described is not None:
            return replace(described, unstable=True)
        answering = (broker.metadata for broker in self.cluster.brokers.values() if broker.answers)
        rows = next((rows for metadata in answering if (rows := _rows(metadata, topic)) is not None), None)
        return None if rows is None else LiveTopic(name=topic, topic_id=None, assignment=rows, unstable=True)

    def _is_disputed(self, topic: str, described: LiveTopic | None) -> bool:
        """Return whether a broker that answers knows other replicas, or knows it at all where another one does not."""
        rows = described.assignment if described else None
        views = (broker.metadata for broker in self.cluster.brokers.values() if broker.answers)
        return any(_rows(metadata, topic) != rows for metadata in views)


def _rows(metadata: Mapping[TopicPartition, KnownPartition], topic: str) -> Assignment | None:
    """None: the broker does not know the topic."""
    return {tp.partition: known.view.replicas for tp, known in metadata.items() if tp.topic == topic} or None
