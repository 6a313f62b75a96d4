"""Applying a plan, with all that makes it safe, beside a bare script that sends the same requests and nothing else.

Timed are two of a kind, in turn, on one cluster of three brokers with their data in memory, where the system has that:
200 creates of 6 partitions, 100 expansions, 100 config changes and 50 deletes, from the saved plan to the final state.

- apply: the flow's own, with specs, snapshot, lease, dry run, re-reads, journal and audit log.
- the bare script: confluent-kafka, the same batches with the same assignments in the same order, each waited for.

What one turn creates, the next expands and configures, and the one after deletes; the rest is cleared away untimed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stub re-exports without saying so
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side, timed
from benchmarks.verify import local_cluster, wait_until
from fakes.changes import sandbox
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.flow import planning, single_steps
from topicops.flow.runs.outcomes import read_outcomes
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.model.cluster.snapshot import LiveTopic, TopicTraces
from topicops.model.plans.changes import ACTIONS, Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.runs.results import OutcomeStatus
from topicops.steps.applying.apply import batches
from topicops.steps.applying.precondition import Match, compare
from topicops_local.cluster import LocalCluster

HEAP_MB = 512
BROKERS = {"log.segment.delete.delay.ms": "1000"}
"""Otherwise the files of deleted topics go a minute later, in the middle of somebody's turn."""
PARTITIONS, MORE_PARTITIONS, REPLICAS = 6, 9, 3
REQUEST_S = 60.0
LOOK_EVERY_S = 0.01
APPLY, BARE = "apply, safely", "bare script"
BEFORE, AFTER = "3600000", "7200000"
"""``retention.ms`` of a new topic, and after its change."""

_ENVIRONMENT = """\
apiVersion: topicops/v1
kind: Environment
metadata: {{name: bench}}
spec:
  cluster: {{class: sandbox, zookeeper: {{hosts: "{hosts}"}}, kafka: {{bootstrapServers: "{bootstrap}"}}}}
  limits: {{createsPerRun: 100000, deletesPerRun: 1000,
    deletesPercent: 100, shrinkPercent: 100, replicasPerRun: 100000}}
  policy: {{unattended: destructive}}
"""
_TOPIC = """\
apiVersion: topicops/v1
kind: Topic
metadata: {{name: {name}, owner: team-bench, description: One of many.}}
"""
_PRESENT = """\
spec:
  partitions: {partitions}
  replicationFactor: {replicas}
  keyed: false
  configs: {{retention.ms: {retention_ms}}}
"""
ABSENT = """\
lifecycle: {state: absent, reason: The measurement is over.}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """The topics of one turn."""

    new: Sequence[str]
    wider: Sequence[str]
    other: Sequence[str]
    """Whose config changes."""
    gone: Sequence[str]
    same: Sequence[str] = ()
    """What is as it shall be."""


@dataclass
class Bench:
    """The cluster, and what the turns before left on it."""

    cluster: LocalCluster
    reader: ZooKeeperReader
    folder: Path
    topics: int
    """How many a turn creates."""
    turn: int = 0
    young: Sequence[str] = ()
    """What the turn before created."""
    old: Sequence[str] = ()
    """What the one before that had created."""

    def lay(self) -> None:
        """Make the topics that the first turn changes and deletes."""
        for _ in range(2):
            self.turn += 1
            self.old, self.young = self.young, self._names(self.turn)
            _, plan = self._planned(Cohort(new=self.young, wider=(), other=(), gone=()))
            self._send_bare(plan)

    def apply_s(self) -> float:
        return self._turn_s(self._apply)

    def bare_s(self) -> float:
        return self._turn_s(lambda _, plan: self._send_bare(plan))

    def _turn_s(self, send: Callable[[EnvironmentRun, Plan], None]) -> float:
        self.turn += 1
        half = self.topics // 2
        cohort = Cohort(
            new=self._names(self.turn),
            wider=self.young[:half],
            other=self.young[half:],
            gone=self.old[: self.topics // 4],
        )
        run, plan = self._planned(cohort)
        require_changes(plan, cohort)
        seconds = timed(lambda: self._send_and_wait(send, run, plan))()
        self._clear(self.old[self.topics // 4 :])
        self.old, self.young = self.young, cohort.new
        return seconds

    def _send_and_wait(self, send: Callable[[EnvironmentRun, Plan], None], run: EnvironmentRun, plan: Plan) -> None:
        send(run, plan)
        self._wait_for([gated.change for gated in plan.changes])

    def _names(self, turn: int) -> Sequence[str]:
        return tuple(f"bench.turn-{turn}.topic-{number}" for number in range(self.topics))

    # --- apply --------------------------------------------------------------------------------------------------

    def _planned(self, cohort: Cohort) -> tuple[EnvironmentRun, Plan]:
        """A plan that was made, and a run that holds it."""
        folder = self.folder / str(self.turn)
        write_specs(folder / "topics", spec_texts(cohort), self.cluster)
        run = open_run(
            environment="bench",
            topics=folder / "topics",
            group="bench",
            run_id=f"turn-{self.turn}",
            home=self.folder / "home",
        )
        return run, planning.make_plan(run, engine="python").plan

    def _apply(self, run: EnvironmentRun, plan: Plan) -> None:
        single_steps.apply(run)
        outcomes = read_outcomes(run)
        bad = [outcome for outcome in outcomes if outcome.status is not OutcomeStatus.DONE]
        if bad or len(outcomes) != len(plan.changes):
            raise BenchmarkError(f"{len(outcomes)} outcomes of {len(plan.changes)} changes; not done: {bad[:1]}")

    # --- the bare script ----------------------------------------------------------------------------------------

    def _send_bare(self, plan: Plan) -> None:
        client = self._client()
        growing = [gated for gated in plan.changes if not isinstance(gated.change, DeleteTopic)]
        for batch in batches(growing, sandbox()):
            require_done(sent(client, batch))
        for gated in plan.changes:
            if isinstance(gated.change, DeleteTopic):
                require_done(client.delete_topics([gated.change.topic], request_timeout=REQUEST_S))

    def _client(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0})

    # --- the state of things ------------------------------------------------------------------------------------

    def _wait_for(self, changes: Sequence[Change]) -> None:
        """Until ZooKeeper shows each as it shall be, every new partition with a leader and all its replicas."""
        wait_until(lambda: self._are_in_place(changes), look_every_s=LOOK_EVERY_S)

    def _are_in_place(self, changes: Sequence[Change]) -> bool:
        traces = self.reader.traces([change.topic for change in changes], states=True)
        return all(is_in_place(change, traces[change.topic]) for change in changes)

    def _clear(self, names: Sequence[str]) -> None:
        if names:
            client = self._client()  # its requests end with it
            require_done(client.delete_topics(list(names), request_timeout=REQUEST_S))
            wait_until(lambda: all(found.is_gone for found in self.reader.traces(names).values()))


def is_in_place(change: Change, traces: TopicTraces) -> bool:
    if compare(change, traces).match is not Match.AFTER:
        return False
    return traces.live is None or is_led(traces.live)


def is_led(live: LiveTopic) -> bool:
    """Whether each partition has a state, and all its replicas in sync."""
    states = live.states or {}
    return len(states) == live.partitions and all(len(state.isr) == REPLICAS for state in states.values())


def sent(client: AdminClient, batch: Sequence[GatedChange]) -> Mapping[Any, Future[Any]]:
    """One request; all changes of a batch are of one kind."""
    changes = [gated.change for gated in batch]
    match changes[0]:
        case CreateTopic():
            new = [
                NewTopic(c.topic, c.partitions, replica_assignment=rows(c), config=dict(c.configs))
                for c in changes
                if isinstance(c, CreateTopic)
            ]
            return dict(client.create_topics(new, request_timeout=REQUEST_S))
        case ExpandTopic():
            wider = [
                NewPartitions(c.topic, c.partitions, replica_assignment=rows(c))
                for c in changes
                if isinstance(c, ExpandTopic)
            ]
            return dict(client.create_partitions(wider, request_timeout=REQUEST_S))
        case _:
            resources = [resource(c) for c in changes if isinstance(c, ConfigureTopic)]
            return dict(client.incremental_alter_configs(resources, request_timeout=REQUEST_S))


def rows(change: CreateTopic | ExpandTopic) -> list[list[int]]:
    return [list(change.assignment[partition]) for partition in sorted(change.assignment)]


def resource(change: ConfigureTopic) -> ConfigResource:
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in change.configs.items()
    ]
    return ConfigResource(ResourceType.TOPIC, change.topic, incremental_configs=entries)


def require_done(futures: Mapping[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(REQUEST_S)


def require_changes(plan: Plan, cohort: Cohort) -> None:
    """Raises ``BenchmarkError`` unless the plan holds what is to be measured, and nothing else."""
    wanted = {"create": cohort.new, "expand": cohort.wider, "configure": cohort.other, "delete": cohort.gone}
    found = {action: [g.change.topic for g in plan.changes if g.change.action == action] for action in ACTIONS}
    if any(set(wanted.get(action, ())) != set(names) for action, names in found.items()):
        blocked = plan.change_set.blocked[:1]
        raise BenchmarkError(f"not the wanted plan: { {a: len(n) for a, n in found.items()} }, blocked {blocked}")


def present(*, partitions: int, retention_ms: str) -> str:
    return _PRESENT.format(partitions=partitions, replicas=REPLICAS, retention_ms=retention_ms)


def spec_texts(cohort: Cohort) -> dict[str, str]:
    """What is wanted of each topic, by its name."""
    texts = {name: present(partitions=PARTITIONS, retention_ms=BEFORE) for name in (*cohort.new, *cohort.same)}
    texts |= {name: present(partitions=MORE_PARTITIONS, retention_ms=BEFORE) for name in cohort.wider}
    texts |= {name: present(partitions=PARTITIONS, retention_ms=AFTER) for name in cohort.other}
    return texts | dict.fromkeys(cohort.gone, ABSENT)


def write_specs(folder: Path, texts: Mapping[str, str], cluster: LocalCluster) -> None:
    """Nothing but these, and the environment ``bench``."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bench").mkdir(parents=True)
    (folder / "environments").mkdir()
    addresses = {"hosts": cluster.zookeeper_hosts, "bootstrap": cluster.bootstrap_servers}
    (folder / "environments" / "bench.yaml").write_text(_ENVIRONMENT.format(**addresses), encoding="utf-8")
    for name, text in texts.items():
        (folder / "bench" / f"{name}.yaml").write_text(_TOPIC.format(name=name) + text, encoding="utf-8")


AnyBench = TypeVar("AnyBench", bound=Bench)


@contextmanager
def on_brokers(kind: type[AnyBench], topics: int) -> Iterator[AnyBench]:
    """A bench on a cluster of its own; both are gone afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="topicops-bench-") as folder,
        local_cluster(heap_mb=HEAP_MB, broker_properties=BROKERS) as cluster,
        ZooKeeperReader(cluster.zookeeper_hosts) as reader,
    ):
        yield kind(cluster, reader, Path(folder), topics)


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with on_brokers(Bench, topics) as bench:
        bench.lay()
        yield {APPLY: bench.apply_s, BARE: bench.bare_s}


def comparisons(topics: int) -> Sequence[Comparison]:
    return (
        Comparison(
            id=f"apply-to-bare-script-{topics}-creates", numerator=APPLY, denominator=BARE, goal=1.25, better="lower"
        ),
    )


BENCHMARK = Benchmark(name="apply", topics=200, rounds=3, comparisons=comparisons, sides=sides)
