"""How soon verify notices: from when a probe first sees that all is as it shall be, to the verdict.

The probe is a process of its own, which looks every 50 ms by the very same rules, once, and keeps its connections.
Verify starts at the same moment, right after the last request, with connections still to make, and believes only what
it saw twice. Three brokers with their data in memory, where the system has that.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import quantiles

from confluent_kafka.admin import AdminClient

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side
from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic, plan_of
from topicops.edges.kafka.admin import KafkaAdmin
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.edges.kafka.questions.broker_views import BrokerViews
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plans.plan import Plan
from topicops.model.ports import Answer, AnswerKind, Clock
from topicops.model.runs.results import Check, Outcome, OutcomeStatus
from topicops.model.specs.environment import Verify
from topicops.steps.verifying.checks import findings
from topicops.steps.verifying.observation import Expectation, Observation, log_questions, merged
from topicops.steps.verifying.verify import verify
from topicops_local.cluster import LocalCluster

MEMORY = Path("/dev/shm")
PARTITIONS = 6
TRIALS = 10
PROBE_EVERY_S = 0.05
PATIENCE_S = 60.0
ALLOWED_S = 0.5
LATENESS, ALLOWANCE = "verdict after the probe, p95 of 10", "0.5 s"


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with local_cluster() as cluster, ExitStack() as stack:
        bench = stack.enter_context(closing(Bench(cluster, topics)))
        yield {LATENESS: bench.lateness_s, ALLOWANCE: lambda: ALLOWED_S}


@contextmanager
def local_cluster(*, heap_mb: int = 384, broker_properties: Mapping[str, str] | None = None) -> Iterator[LocalCluster]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None, ignore_cleanup_errors=True) as home:
        try:
            yield LocalCluster.up(Path(home), heap_mb=heap_mb, broker_properties=broker_properties)
        finally:
            if cluster := LocalCluster.find(Path(home)):
                cluster.down(now=True)


@dataclass
class Bench:
    """One cluster, and trials on it: each makes, grows, sets and deletes topics, and clears them away."""

    cluster: LocalCluster
    topics: int
    trial: int = 0
    probe: subprocess.Popen[str] = field(init=False)
    admin: KafkaAdmin = field(init=False)
    reader: ZooKeeperReader = field(init=False)

    def __post_init__(self) -> None:
        command = [sys.executable, "-c", "from benchmarks.verify import probe; probe()", *self._addresses]
        self.probe = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.admin = KafkaAdmin(self._properties)
        self.reader = ZooKeeperReader(self.cluster.zookeeper_hosts).__enter__()

    def close(self) -> None:
        self.probe.communicate(timeout=PATIENCE_S)
        self.reader.__exit__(None, None, None)
        self.admin.close()

    def lateness_s(self) -> float:
        return quantiles([self._lateness_s() for _ in range(TRIALS)], n=20, method="inclusive")[-1]

    def _lateness_s(self) -> float:
        self.trial += 1
        old = self._make_old_topics()
        names = [f"new-{self.trial}-{n}" for n in range(self.topics)]
        quarter = len(old) // 4
        changes: list[Change] = [
            *(create_topic(name, *rows(), configs={"retention.ms": "1000000"}) for name in names),
            *(expand_topic(live, *rows()) for live in old[: 2 * quarter]),
            *(configure_topic(live, {"retention.ms": "2000000"}) for live in old[2 * quarter : 3 * quarter]),
            *(delete_topic(live) for live in old[3 * quarter :]),
        ]
        self._send(changes)
        seen = self._verdict_after_probe_s(changes)
        self._clear([*names, *(live.name for live in old)])
        return seen

    def _verdict_after_probe_s(self, changes: Sequence[Change]) -> float:
        plan = plan_for(changes, self.cluster.cluster_id)
        self._tell([[change.topic, change.action] for change in changes])
        checks = self._verify(plan)
        verified = time.monotonic()
        require_healthy(checks, changes)
        return verified - self._heard()

    def _verify(self, plan: Plan) -> Sequence[Check]:
        """As the flow does it: with connections of its own, and the brokers' defaults."""
        with (
            ZooKeeperReader(self.cluster.zookeeper_hosts) as reader,
            closing(BrokerViews(self._properties)) as metadata,
        ):
            return verify(
                plan,
                done(plan),
                reader=reader,
                metadata=metadata,
                deadlines=Verify(),
                clock=Clock(),
                broker_defaults=BrokerQuestions(self._properties).broker_defaults(),
            )

    def _make_old_topics(self) -> list[LiveTopic]:
        names = [f"old-{self.trial}-{n}" for n in range(self.topics)]
        self._send([create_topic(name, *rows()) for name in names])
        wait_until(lambda: all(map(is_led, self._live(names).values())))
        return [live for live in self._live(names).values() if live is not None]

    def _live(self, names: Sequence[str]) -> dict[str, LiveTopic | None]:
        return {name: traces.live for name, traces in self.reader.traces(names, states=True).items()}

    def _clear(self, names: Sequence[str]) -> None:
        client = AdminClient(dict(self._properties))
        for future in client.delete_topics([name for name, live in self._live(names).items() if live]).values():
            future.result(PATIENCE_S)
        wait_until(lambda: all(live is None for live in self._live(names).values()))

    def _send(self, changes: Sequence[Change]) -> None:
        answers: list[Answer] = [
            *self.admin.create([change for change in changes if isinstance(change, CreateTopic)]),
            *self.admin.expand([change for change in changes if isinstance(change, ExpandTopic)]),
            *self.admin.configure([change for change in changes if isinstance(change, ConfigureTopic)]),
            *(self.admin.delete(change) for change in changes if isinstance(change, DeleteTopic)),
        ]
        if bad := [answer for answer in answers if answer.kind is not AnswerKind.ACCEPTED]:
            raise BenchmarkError(f"not accepted: {bad[0]}")

    def _tell(self, message: object) -> None:
        assert self.probe.stdin is not None
        print(json.dumps(message), file=self.probe.stdin, flush=True)

    def _heard(self) -> float:
        assert self.probe.stdout is not None
        return float(self.probe.stdout.readline())

    @property
    def _properties(self) -> dict[str, str]:
        return {"bootstrap.servers": self.cluster.bootstrap_servers}

    @property
    def _addresses(self) -> tuple[str, str]:
        return self.cluster.zookeeper_hosts, self.cluster.bootstrap_servers


def probe() -> None:
    """Answer each line of topics and actions on stdin with the moment at which all of them were first right."""
    zookeeper, bootstrap = sys.argv[1:]
    with ZooKeeperReader(zookeeper) as reader, closing(BrokerViews({"bootstrap.servers": bootstrap})) as metadata:
        for line in sys.stdin:
            wanted = dict(json.loads(line))
            while not is_right(reader, metadata, wanted):
                time.sleep(PROBE_EVERY_S)
            print(time.monotonic(), flush=True)


def is_right(reader: ZooKeeperReader, metadata: BrokerViews, wanted: Mapping[str, str]) -> bool:
    """Whether one look at both sides finds nothing: the rules of verify, asked at once."""
    epoch, traces, brokers = reader.controller_epoch(), reader.traces(list(wanted), states=True), reader.brokers()
    views = metadata.views(sorted(brokers), list(wanted))
    looks = [
        Observation(
            expected=Expectation(topic=topic, absent=action == "delete", partitions=partitions_after(action)),
            traces=traces[topic],
            brokers=frozenset(brokers),
            controller_epoch=epoch,
            views=views,
        )
        for topic, action in wanted.items()
    ]
    if any(found.verdict != "healthy" for observation in looks for found in findings(observation)):
        return False
    logs = metadata.logs(merged(map(log_questions, looks)))
    return not any(
        found.verdict != "healthy" for observation in looks for found in findings(replace(observation, logs=logs))
    )


def require_healthy(checks: Sequence[Check], changes: Sequence[Change]) -> None:
    """Raise ``BenchmarkError`` unless each changed topic was checked, and every check found it healthy."""
    if sick := [check for check in checks if not check.is_healthy]:
        raise BenchmarkError(f"not healthy: {sick[0]}")
    if unchecked := {change.topic for change in changes} - {check.topic for check in checks}:
        raise BenchmarkError(f"not verified: {', '.join(sorted(unchecked))}")


def partitions_after(action: str) -> int:
    return 2 * PARTITIONS if action == "expand" else PARTITIONS


def rows() -> list[tuple[int, ...]]:
    return [((p % 3) + 1, (p + 1) % 3 + 1, (p + 2) % 3 + 1) for p in range(PARTITIONS)]


def is_led(live: LiveTopic | None) -> bool:
    states = {} if live is None else live.states or {}
    return len(states) == PARTITIONS and all(len(state.isr) == 3 for state in states.values())


def wait_until(holds: Callable[[], bool], *, look_every_s: float = PROBE_EVERY_S) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise BenchmarkError("the cluster does not come to rest")
        time.sleep(look_every_s)


def plan_for(changes: Sequence[Change], cluster_id: str) -> Plan:
    plan = plan_of(*changes)
    target = replace(plan.target, cluster_id=cluster_id)
    return replace(plan, change_set=replace(plan.change_set, target=target))


def done(plan: Plan) -> list[Outcome]:
    return [
        Outcome(topic=g.change.topic, action=g.change.action, digest=g.digest, status=OutcomeStatus.DONE)
        for g in plan.changes
    ]


def comparisons(topics: int) -> Sequence[Comparison]:
    return (
        Comparison(
            id=f"verdict-lateness-p95-to-half-a-second-{2 * topics}-topics",
            numerator=LATENESS,
            denominator=ALLOWANCE,
            goal=1.0,
            better="lower",
        ),
    )


BENCHMARK = Benchmark(name="verify", topics=20, rounds=3, comparisons=comparisons, sides=sides)
