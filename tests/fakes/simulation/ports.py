"""The simulated cluster behind the ports through which steps see a real one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from fakes.controller.znodes import TopicPartition
from fakes.simulation.cluster import SimulatedCluster
from topicops.model.cluster.broker_defaults import BrokerDefaults
from topicops.model.cluster.snapshot import (
    Broker,
    ClusterSnapshot,
    DirectoriesByBroker,
    LiveTopic,
    TopicsInMemory,
    TopicTraces,
)
from topicops.model.plans.plan import NO_RECORD, TopicActivity
from topicops.model.ports import (
    BrokerLogs,
    BrokerView,
    Lease,
    LogQuestions,
    PartitionView,
    ServerTime,
    TopicSink,
    supported,
)
from topicops.model.release import MissingRequests, Releases, missing_requests, of_release

CLUSTER_ID = "fake-cluster"
CHROOT = "/kafka"


class SimulatedPorts:
    """Fills ``LiveReader``, ``BrokerMetadata`` and ``ClusterQuestions``.

    What happens before and after each call is in ``_reading`` and ``_asking``, for those who inherit.
    """

    lag_s = 0.0

    def __init__(self, cluster: SimulatedCluster, *, cluster_id: str = CLUSTER_ID, chroot: str = CHROOT) -> None:
        self.cluster = cluster
        self.chroot = chroot
        self.defaults: dict[str, str] = {"min.insync.replicas": "1"}
        """Of topic configs on every broker that has no other (``SimulatedBroker.defaults``)."""
        self.groups: dict[str, tuple[str, ...]] = {}
        """Active consumer groups by topic."""
        self.last_records: dict[str, int] = {}
        """Time of the newest record, in ms since 1970; a topic without an entry holds none."""
        self._id = cluster_id

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Around each call that reads ZooKeeper."""
        yield

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Around each question to brokers."""
        yield

    # --- LiveReader ---------------------------------------------------------------------------------------------

    def cluster_id(self) -> str:
        return self._id

    def snapshot(self, *, states: bool = False, into: TopicSink | None = None) -> ClusterSnapshot:
        with self._reading("snapshot"):
            znodes = self.cluster.znodes
            sink = into or TopicsInMemory()
            sink.begin()
            sink.take([live for name in sorted(znodes.topics) if (live := self._live(name, states=states))])
            return ClusterSnapshot(
                cluster_id=self._id,
                chroot=self.chroot,
                source="zookeeper",
                controller_id=znodes.controller,
                controller_epoch=znodes.controller_epoch,
                brokers=self.cluster.registered(),
                topics=sink.finish(),
                deleting=dict.fromkeys(sorted(znodes.markers), 1000),
                reassigning=self._in_reassignment(),
                orphan_configs=frozenset(znodes.configs.keys() - znodes.topics.keys()),
                broker_defaults=None,
            )

    def traces(self, topics: Sequence[str], *, states: bool = False) -> Mapping[str, TopicTraces]:
        with self._reading("traces"):
            znodes, moving = self.cluster.znodes, self._in_reassignment()
            return {
                topic: TopicTraces(
                    live=self._live(topic, states=states),
                    has_config_znode=topic in znodes.configs,
                    is_deleting=topic in znodes.markers,
                    is_in_reassignment=topic in moving,
                )
                for topic in topics
            }

    def brokers(self) -> Mapping[int, Broker]:
        with self._reading("brokers"):
            return self.cluster.registered()

    def controller_epoch(self) -> int | None:
        with self._reading("controller_epoch"):
            return self.cluster.znodes.controller_epoch

    def controller_id(self) -> int | None:
        with self._reading("controller_id"):
            return self.cluster.znodes.controller

    def require_describable(self, topics: Sequence[str]) -> None:
        """Do nothing: ZooKeeper shows every topic."""

    def server_time(self) -> ServerTime | None:
        """None: reading shows no clock."""
        return None

    def catch_up_with(self, lease: Lease) -> None:
        """Do nothing: there is one server, and it cannot be behind another."""

    # --- BrokerMetadata -----------------------------------------------------------------------------------------

    def views(self, brokers: Sequence[int], topics: Sequence[str] | None) -> Mapping[int, BrokerView | str]:
        with self._asking("views"):
            return {broker: self._view_of(broker, topics) for broker in brokers}

    def logs(self, questions: Mapping[int, LogQuestions]) -> Mapping[int, BrokerLogs | str]:
        with self._asking("logs"):
            return {broker: self._logs_of(broker, asked) for broker, asked in questions.items()}

    def overrides(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | str]:
        with self._asking("overrides"):
            return {topic: self.cluster.znodes.configs.get(topic, {}) for topic in topics}

    # --- ClusterQuestions ---------------------------------------------------------------------------------------

    def broker_defaults(self) -> BrokerDefaults:
        with self._asking("broker_defaults"):
            return {broker: self._defaults_of(broker) for broker in sorted(self.cluster.registered())}

    def releases(self) -> Releases | None:
        with self._asking("releases"):
            return supported(Releases(self.cluster.release, self.cluster.release))

    def missing_requests(self) -> MissingRequests:
        with self._asking("missing_requests"):
            return missing_requests(dict.fromkeys(self.cluster.brokers, of_release(self.cluster.release)))

    def activity(self, topics: Sequence[str]) -> Mapping[str, TopicActivity]:
        with self._asking("activity"):
            return {topic: self._activity_of(topic) for topic in topics}

    def log_directories(self, topics: Mapping[str, Collection[int]]) -> DirectoriesByBroker:
        with self._asking("log_directories"):
            asked = LogQuestions(held=topics)
            return {broker: self._logs_of(broker, asked) for broker in self.cluster.registered()}

    # ------------------------------------------------------------------------------------------------------------

    def _live(self, topic: str, *, states: bool) -> LiveTopic | None:
        live = self.cluster.live(topic)
        return live if live is None or states else replace(live, states=None)

    def _in_reassignment(self) -> frozenset[str]:
        return frozenset(tp.topic for tp in self.cluster.znodes.moves)

    def _defaults_of(self, broker: int) -> Mapping[str, str] | str:
        found = self.cluster.brokers[broker].defaults
        return {**self.defaults, **found} if self._answers(broker) else "gave no answer in time"

    def _answers(self, broker: int) -> bool:
        return broker in self.cluster.brokers and self.cluster.brokers[broker].answers

    def _view_of(self, broker: int, topics: Sequence[str] | None) -> BrokerView | str:
        if not self._answers(broker):
            return f"broker {broker} gave no answer within 2 s"
        found = self.cluster.brokers[broker]
        views: dict[str, dict[int, PartitionView]] = {}
        ids: dict[str, str] = {}
        for tp, known in found.metadata.items():
            if topics is None or tp.topic in topics:
                views.setdefault(tp.topic, {})[tp.partition] = known.view
                if known.topic_id is not None:
                    ids[tp.topic] = known.topic_id
        return BrokerView(
            topics={name: dict(sorted(views[name].items())) for name in sorted(views)},
            brokers=found.known_brokers,
            cluster_id=self._id,
            topic_ids=ids,
        )

    def _logs_of(self, broker: int, asked: LogQuestions) -> BrokerLogs | str:
        if not self._answers(broker):
            return f"broker {broker} gave no answer within 2 s"
        failed = () if self.cluster.brokers[broker].failed_at is None else (f"/disks/{broker}",)
        held = {name: self._held(broker, name, ids) for name, ids in asked.held.items()}
        return BrokerLogs(held=held, failed=failed)

    def _held(self, broker: int, topic: str, asked: Collection[int]) -> frozenset[int]:
        logs = self.cluster.brokers[broker].logs
        return frozenset(p for p in asked if TopicPartition(topic, p) in logs)

    def _activity_of(self, topic: str) -> TopicActivity:
        offsets = self.cluster.end_offsets.get(topic) if topic in self.cluster.znodes.topics else None
        uses = {name: use for name, group in self.cluster.readers.items() if (use := group.use_of(topic))}
        return TopicActivity(
            end_offsets=dict(offsets) if offsets is not None else None,
            groups=(*self.groups.get(topic, ()), *uses),
            group_uses=uses,
            last_record_ms=self.last_records.get(topic, NO_RECORD),
        )
