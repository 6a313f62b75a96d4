"""One of our processes on the simulated cluster: its ports, which may fail, and where it may be killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from fakes.controller.znodes import TopicPartition
from fakes.simulation.admin import Mishap, SimulatedBrokersApi
from fakes.simulation.broker import KnownPartition
from fakes.simulation.ports import SimulatedPorts
from topicops.model.cluster.snapshot import (
    Assignment,
    ClusterSnapshot,
    LiveTopic,
    PartitionState,
    TopicsInMemory,
    TopicTraces,
)
from topicops.model.errors import ArtifactError, ClusterUnreachableError, LeaseLostError
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plans.plan import GatedChange
from topicops.model.ports import Answer, AnswerKind, ApplyPorts, Clock, ServerTime, TopicSink
from topicops.model.runs.results import Mutation, Outcome

LEASE_SESSION_S = 10.0
START = datetime(2024, 5, 1, 12, tzinfo=UTC)
NO_ANSWER = "127.0.0.1:2181: ZooKeeper does not answer; is it running?"
MOST_READS = 10
READ_PAUSE_S = 0.1
Described = Mapping[str, LiveTopic]


class ProcessKilled(BaseException):
    """SIGKILL: nothing of the process runs any more."""


@dataclass(slots=True)
class LeaseNode:
    """The ephemeral znode of the lease: whose session has it."""

    holder: str | None = None


@dataclass(slots=True)
class Disk:
    """What survives a process: journal and audit log."""

    intents: dict[str, list[str]] = field(default_factory=dict)
    """Digests without an outcome, by process: each has a journal of its own."""
    audit: list[tuple[str, Mutation]] = field(default_factory=list)
    """With the process that wrote the line."""
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)
    is_full: bool = False

    def close(self, process: str, digests: Sequence[str]) -> None:
        """The journal of this process says from now on what came of these."""
        self.intents[process] = [digest for digest in self.intents.get(process, []) if digest not in digests]


class SimulatedProcess(SimulatedPorts):
    """Fills every port for one run; each call may be the moment at which something happens."""

    def __init__(
        self,
        name: str,
        api: SimulatedBrokersApi,
        disk: Disk,
        lease: LeaseNode,
        *,
        happen: Callable[[SimulatedProcess, str], None] = lambda _process, _call: None,
    ) -> None:
        """``happen`` is called before each call of a port, with the call's name: what happens then."""
        super().__init__(api.cluster)
        self.name = name
        self.api = api
        self.world = api.cluster.world
        self.disk = disk
        self.lease_node = lease
        self._happen = happen
        self.calls = 0
        self.clock_skew_s = 0.0
        """How far this machine's time of day is wrong."""
        self.server_skew_s = 0.0
        """How far that of ZooKeeper, or of the controller, is wrong."""
        self._leased_at = 0.0
        self.violations: list[str] = []
        """What a request must never find: sent without lease, or without an intent."""
        self.sent: list[str] = []
        """Digests of changes for which a request left."""
        self.digests: Mapping[tuple[str, str], str] = {}
        """Of the plan's changes, by action and topic."""
        self.next_mishap = Mishap.NONE
        """Of the next request."""
        self.next_read_fails = False
        self.dies_after_call = False
        self.is_dead = False

    @property
    def ports(self) -> ApplyPorts:
        return ApplyPorts(reader=self, admin=self, lease=self, journal=self, audit=self, questions=self)

    @property
    def clock(self) -> Clock:
        return Clock(
            now=lambda: self.world.now,
            sleep=self.world.pass_time,
            utc=lambda: START + timedelta(seconds=self.world.now + self.clock_skew_s),
        )

    def take_lease(self) -> bool:
        """False: another session has it."""
        if self.lease_node.holder not in (None, self.name):
            return False
        self.lease_node.holder, self._leased_at = self.name, self.world.now
        return True

    def lose_lease(self) -> None:
        if self.lease_node.holder == self.name:
            self.lease_node.holder = None

    # --- what may happen at any call ----------------------------------------------------------------------------

    @contextmanager
    def _call(self, what: str) -> Iterator[None]:
        """Around each call of a port."""
        self.calls += 1
        self._happen(self, what)
        yield
        if self.dies_after_call:
            self.die(f"after it called {what}")

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        with self._call(what):
            self.world.pass_time(self.world.random.uniform(0.0005, 0.005))
            if self.next_read_fails:
                self.next_read_fails = False
                self.world.tell(f"{self.name}: ZooKeeper does not answer")
                raise ClusterUnreachableError(NO_ANSWER)
            yield

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        with self._call(what):
            self.world.pass_time(self.world.random.uniform(0.0005, 0.005))
            yield

    def die(self, when: str) -> None:
        self.world.tell(f"{self.name} is killed {when}")
        self.is_dead = True
        self.world.after(LEASE_SESSION_S, self.lose_lease)
        raise ProcessKilled(when)

    def stand_still(self) -> None:
        """For longer than its session."""
        self.world.tell(f"{self.name} stands still, and its session ends")
        self.lose_lease()
        self.world.pass_time(LEASE_SESSION_S * 2)

    # --- TopicAdmin ---------------------------------------------------------------------------------------------

    def validate(self, changes: Sequence[Change]) -> Sequence[Answer]:
        with self._call("validate"):
            return [Answer(AnswerKind.ACCEPTED)] * len(changes)

    def get_ready(self, change: Change) -> None:
        with self._call("get_ready"):
            self.world.wait_until(lambda: self.cluster.controller is not None, limit_s=20.0)

    def create(self, changes: Sequence[CreateTopic]) -> Sequence[Answer]:
        return self._send(changes)

    def expand(self, changes: Sequence[ExpandTopic]) -> Sequence[Answer]:
        return self._send(changes)

    def configure(self, changes: Sequence[ConfigureTopic]) -> Sequence[Answer]:
        return self._send(changes)

    def delete(self, change: DeleteTopic) -> Answer:
        return self._send([change])[0]

    def _send(self, changes: Sequence[Change]) -> Sequence[Answer]:
        if self.lease_node.holder != self.name:
            self.violations.append(f"I2: {changes[0].action} {changes[0].topic} was sent without the lease")
        for change in changes:
            digest = self.digests[change.action, change.topic]
            if digest not in self.disk.intents.get(self.name, ()):
                self.violations.append(f"I5: {change.action} {change.topic} was sent without a durable intent")
            self.sent.append(digest)
        # What happens from here on, no process can know before its request has left.
        with self._call(f"{changes[0].action} {', '.join(change.topic for change in changes)}"):
            mishap, self.next_mishap = self.next_mishap, Mishap.NONE
            return self.api.send(changes, by=self.name, mishap=mishap)

    # --- Lease, Journal, AuditLog -------------------------------------------------------------------------------

    def confirm(self) -> None:
        with self._call("confirm"):
            if self.lease_node.holder != self.name:
                raise LeaseLostError("the lease of this cluster is no longer ours; run again")

    def zxid(self) -> int | None:
        return self.cluster.znodes.zxid

    def server_time(self) -> ServerTime:
        """As the lease shows it, or the answer of a controller."""
        at = START + timedelta(seconds=self._leased_at + self.server_skew_s)
        return ServerTime(server="ZooKeeper", at=at, asked_at=self._leased_at, answered_at=self._leased_at)

    def intend(self, changes: Sequence[GatedChange]) -> None:
        with self._call("intend"):
            self._need_disk("journal.jsonl: the journal cannot be written: No space left on device")
            journal = self.disk.intents.setdefault(self.name, [])
            journal += [gated.digest for gated in changes if gated.digest not in journal]

    def record(self, outcomes: Sequence[Outcome]) -> None:
        with self._call("record"):
            self._need_disk("journal.jsonl: the journal cannot be written: No space left on device")
            self.disk.outcomes += [(self.name, outcome) for outcome in outcomes]
            self.disk.close(self.name, [outcome.digest for outcome in outcomes])

    def append(self, mutations: Sequence[Mutation]) -> None:
        self.append_for(self.name, mutations)

    def append_for(self, process: str, mutations: Sequence[Mutation]) -> None:
        """Lines of an earlier process, of whose requests this one has found out."""
        with self._call("append"):
            self._need_disk("local.jsonl: the audit log cannot be written: No space left on device")
            self.disk.audit += [(process, mutation) for mutation in mutations]

    def _need_disk(self, message: str) -> None:
        if self.disk.is_full:
            raise ArtifactError(message)


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
