"""One of our processes on the simulated cluster: its ports, which may fail, and where it may be killed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from topicops.model.cluster.snapshot import Broker, ClusterSnapshot, TopicTraces
from topicops.model.errors import ArtifactError, ClusterUnreachableError, LeaseLostError
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plans.plan import GatedChange
from topicops.model.ports import Answer, AnswerKind, ApplyPorts, Clock, Lease, TopicSink
from topicops.model.runs.results import Mutation, Outcome
from topicops.testing.simulation.admin import Mishap, SimulatedBrokersApi
from topicops.testing.simulation.cluster import SimulatedCluster

LEASE_SESSION_S = 10.0
START = datetime(2024, 5, 1, 12, tzinfo=UTC)
NO_ANSWER = "127.0.0.1:2181: ZooKeeper does not answer; is it running?"


class ProcessKilled(BaseException):
    """SIGKILL: nothing of the process runs any more."""


@dataclass(slots=True)
class LeaseNode:
    """The ephemeral znode of the lease: whose session has it."""

    holder: str | None = None


@dataclass(slots=True)
class Disk:
    """What survives a process: journal and audit log."""

    intents: dict[str, dict[str, datetime]] = field(default_factory=dict)
    """Digests without an outcome, with the time of each; by process, since each has a journal of its own."""
    audit: list[tuple[str, Mutation]] = field(default_factory=list)
    """With the process that wrote the line."""
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)
    is_full: bool = False

    def close(self, process: str, digests: Sequence[str]) -> None:
        """The journal of this process says from now on what came of these."""
        for digest in digests:
            self.intents.get(process, {}).pop(digest, None)


class SimulatedProcess:
    """Fills ``LiveReader``, ``TopicAdmin``, ``Lease``, ``Journal`` and ``AuditLog`` for one apply."""

    def __init__(
        self,
        name: str,
        api: SimulatedBrokersApi,
        disk: Disk,
        lease: LeaseNode,
        *,
        happen: Callable[[SimulatedProcess, str], None] = lambda _process, _call: None,
        chroot: str = "/kafka",
    ) -> None:
        """``happen`` is called before each call of a port, with the call's name: what happens then."""
        self.name = name
        self.api = api
        self.cluster: SimulatedCluster = api.cluster
        self.world = api.cluster.world
        self.disk = disk
        self.lease_node = lease
        self._happen = happen
        self.chroot = chroot
        self.calls = 0
        self.clock_skew_s = 0.0
        """How far this machine's time of day is wrong."""
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

    @property
    def ports(self) -> ApplyPorts:
        return ApplyPorts(reader=self, admin=self, lease=self, journal=self, audit=self, questions=None)

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
        self.lease_node.holder = self.name
        return True

    def lose_lease(self) -> None:
        if self.lease_node.holder == self.name:
            self.lease_node.holder = None

    # --- what may happen at any call ----------------------------------------------------------------------------

    def _call(self, what: str) -> Callable[[], None]:
        """Before a call; gives what to do after it."""
        self.calls += 1
        self._happen(self, what)

        def after() -> None:
            if self.dies_after_call:
                self.die(f"after it called {what}")

        return after

    def die(self, when: str) -> None:
        self.world.tell(f"{self.name} is killed {when}")
        self.world.after(LEASE_SESSION_S, self.lose_lease)
        raise ProcessKilled(when)

    def stand_still(self) -> None:
        """For longer than its session."""
        self.world.tell(f"{self.name} stands still, and its session ends")
        self.lose_lease()
        self.world.pass_time(LEASE_SESSION_S * 2)

    def _may_fail(self) -> None:
        self.world.pass_time(self.world.random.uniform(0.0005, 0.005))
        if self.next_read_fails:
            self.next_read_fails = False
            self.world.tell(f"{self.name}: ZooKeeper does not answer")
            raise ClusterUnreachableError(NO_ANSWER)

    # --- LiveReader ---------------------------------------------------------------------------------------------

    def cluster_id(self) -> str:
        return "fake-cluster"

    def snapshot(self, *, states: bool = False, into: TopicSink | None = None) -> ClusterSnapshot:
        raise NotImplementedError("apply reads topics by their names")

    def traces(self, topics: Sequence[str], *, states: bool = False) -> Mapping[str, TopicTraces]:  # noqa: ARG002
        after = self._call("traces")
        self._may_fail()
        found = {
            topic: TopicTraces(
                live=self.cluster.live(topic),
                has_config_znode=topic in self.cluster.znodes.configs,
                is_deleting=topic in self.cluster.znodes.markers,
            )
            for topic in topics
        }
        after()
        return found

    def brokers(self) -> Mapping[int, Broker]:
        after = self._call("brokers")
        self._may_fail()
        after()
        return self.cluster.registered()

    def controller_epoch(self) -> int | None:
        return self.cluster.znodes.controller_epoch

    def controller_id(self) -> int | None:
        return self.cluster.znodes.controller

    def require_describable(self, topics: Sequence[str]) -> None:
        """Do nothing: ZooKeeper shows every topic."""

    def catch_up_with(self, lease: Lease) -> None:
        """Do nothing: there is one server."""

    # --- TopicAdmin ---------------------------------------------------------------------------------------------

    def validate(self, changes: Sequence[Change]) -> Sequence[Answer]:
        self._call("validate")()
        return [Answer(AnswerKind.ACCEPTED)] * len(changes)

    def get_ready(self, change: Change) -> None:  # noqa: ARG002 - any change waits for the same
        self._call("get_ready")()
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
            self.violations.append(f"{changes[0].action} {changes[0].topic} was sent without the lease")
        for change in changes:
            digest = self.digests[change.action, change.topic]
            if digest not in self.disk.intents.get(self.name, ()):
                self.violations.append(f"{change.action} {change.topic} was sent without a durable intent")
            self.sent.append(digest)
        # What happens from here on, no process can know before its request has left.
        after = self._call(f"{changes[0].action} {', '.join(change.topic for change in changes)}")
        mishap, self.next_mishap = self.next_mishap, Mishap.NONE
        answers = self.api.send(changes, by=self.name, mishap=mishap)
        after()
        return answers

    # --- Lease, Journal, AuditLog -------------------------------------------------------------------------------

    def confirm(self) -> None:
        after = self._call("confirm")
        if self.lease_node.holder != self.name:
            raise LeaseLostError("the lease of this cluster is no longer ours; run again")
        after()

    def zxid(self) -> int | None:
        return self.cluster.zxid

    def intend(self, changes: Sequence[GatedChange]) -> None:
        after = self._call("intend")
        self._need_disk("journal.jsonl: the journal cannot be written: No space left on device")
        journal = self.disk.intents.setdefault(self.name, {})
        journal |= {gated.digest: self.clock.utc() for gated in changes}
        after()

    def record(self, outcomes: Sequence[Outcome]) -> None:
        after = self._call("record")
        self._need_disk("journal.jsonl: the journal cannot be written: No space left on device")
        self.disk.outcomes += [(self.name, outcome) for outcome in outcomes]
        self.disk.close(self.name, [outcome.digest for outcome in outcomes])
        after()

    def append(self, mutations: Sequence[Mutation]) -> None:
        self.append_for(self.name, mutations)

    def append_for(self, process: str, mutations: Sequence[Mutation]) -> None:
        """Lines of an earlier process, of whose requests this one has found out."""
        after = self._call("append")
        self._need_disk("local.jsonl: the audit log cannot be written: No space left on device")
        self.disk.audit += [(process, mutation) for mutation in mutations]
        after()

    def _need_disk(self, message: str) -> None:
        if self.disk.is_full:
            raise ArtifactError(message)
