"""Three brokers move from one Kafka to the next, one broker at a time, while topics are planned and applied."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from fixtures.cluster import running
from fixtures.live import cluster_spec, look
from fixtures.summaries import UPGRADE
from fixtures.workspace import Workspace
from topicops.cli.output import new_run_id
from topicops.flow import planning, whole_runs
from topicops.flow.reporting import run_report
from topicops.flow.runs.run import open_run
from topicops.model.errors import ExitStatus, TopicopsError
from topicops.model.runs.results import IN_PLACE
from topicops_local.cluster import LocalCluster

TOPICS = 8
"""As many are there at most."""
PAUSE_S = 0.2


@dataclass(frozen=True, order=True)
class Word:
    """One thing that a run did not do, and why."""

    kind: str
    """``blocked``, ``refused``, ``not healthy``, ``error`` and so on."""
    text: str


@dataclass
class EndlessLoop:
    """Creates, expands, configures and deletes topics by their specs until the block of ``running`` ends."""

    live: Workspace
    seed: int
    words: list[Word] = field(default_factory=list)
    statuses: list[ExitStatus] = field(default_factory=list)
    done: int = 0
    """Changes that were carried out."""
    _failure: BaseException | None = None

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._topics: dict[str, tuple[int, int]] = {}
        self._deleted: set[str] = set()
        self._number = 0
        self._ended = threading.Event()

    @property
    def wanted(self) -> dict[str, tuple[int, str]]:
        """Partitions and ``retention.ms`` by topic."""
        return {name: (partitions, str(hours * 3_600_000)) for name, (partitions, hours) in self._topics.items()}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the loop in a thread during the block. Raises what ended it, unless the block raises."""
        self._ended.clear()
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join(300)
        assert not thread.is_alive(), "the last run does not end"
        if self._failure is not None:
            raise self._failure

    def settle(self, *, timeout_s: float = 180.0) -> None:
        """Apply until nothing is left to do and the last plan is empty."""
        deadline = time.monotonic() + timeout_s
        while not self.turn():
            assert time.monotonic() < deadline, f"not settled: {self.words[-5:]}"
            time.sleep(1)

    def turn(self) -> bool:
        """Plan and apply once; whether the plan was empty and nothing was blocked."""
        run = open_run(
            environment="local",
            topics=self.live.folder / "topics",
            group="cli",
            run_id=new_run_id(),
            home=self.live.folder / "home",
        )
        try:
            planned = planning.make_plan(run, engine="python")
            plan = planned.plan
            for blocked in plan.change_set.blocked:
                self._note("blocked", f"{', '.join(blocked.codes)}: {' '.join(blocked.reasons)}")
            if not plan.changes:
                return not plan.change_set.blocked
            for gated in plan.changes:
                if gated.reasons:
                    self._note(gated.gate.value, " ".join(gated.reasons))
            self.statuses.append(whole_runs.apply_own_plan(run, planned).status)
        except TopicopsError as error:
            self._note("error", f"{type(error).__name__}: {error}")
            return False
        found = run_report(run)
        for outcome in found.outcomes:
            if outcome.status in IN_PLACE:
                self.done += 1
                self._deleted |= {outcome.topic} if outcome.action == "delete" else set()
            else:
                self._note(outcome.status.value, f"{outcome.action} {outcome.topic}: {outcome.message}")
        for check in found.checks:
            if not check.is_healthy:
                self._note("not healthy", f"{check.verdict}: {check.id} {check.message} ({check.code})")
        return False

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self._change_specs()
                self.turn()
                self._ended.wait(PAUSE_S)
        except BaseException as error:  # noqa: BLE001 - `running` raises it
            self._failure = error

    def _change_specs(self) -> None:
        """One topic more, one larger, one with another retention, one less; tombstones of deleted ones go."""
        for name in self._deleted:
            self.live.path_of(name).unlink()
        self._deleted.clear()
        if len(self._topics) < TOPICS:
            self._number += 1
            self._write(f"loop-{self._number:03}", partitions=self._chance.randint(1, 3), hours=1)
        name = self._any()
        partitions, hours = self._topics[name]
        self._write(name, partitions=min(partitions + 1, 6), hours=hours)
        name = self._any()
        self._write(name, partitions=self._topics[name][0], hours=self._chance.randint(1, 99))
        if len(self._topics) > TOPICS // 2:
            name = self._any()
            del self._topics[name]
            self.live.tombstone(name)

    def _any(self) -> str:
        return self._chance.choice(sorted(self._topics))

    def _write(self, name: str, *, partitions: int, hours: int) -> None:
        self._topics[name] = partitions, hours
        self.live.topic(name, partitions=partitions, configs={"retention.ms": f"{hours}h"})

    def _note(self, kind: str, text: str) -> None:
        self.words.append(Word(kind, text))


RELEASES = ("2.5.1", "2.8.2", "3.9.2")
PROTOCOL = "inter.broker.protocol.version"
SIDE_BY_SIDE_S = 5.0
"""How long topics are applied to a broker that came back, before the next one stops."""
KNOWN = re.compile(r"TOP\d{3}|deletes run only when all before succeeded")
"""A code, or a sentence that sends the reader to another refusal of the same run."""
NAMES = re.compile(r"loop-\d+|127\.0\.0\.1:\d+|\b\d+\b")


@pytest.fixture
def cluster(fast_folder: Path) -> Iterator[LocalCluster]:
    with running(fast_folder / "rolled-cluster", kafka=RELEASES[0]) as cluster:
        yield cluster


def release(version: str) -> str:
    return version.rpartition(".")[0]


def roll(cluster: LocalCluster, kafka: str, protocol: str) -> None:
    """Restart each broker with that Kafka and protocol, one after the other."""
    for broker in cluster.broker_ports:
        cluster.stop_broker(broker)
        cluster.start_broker(broker, kafka=kafka, broker_properties={PROTOCOL: protocol})
        time.sleep(SIDE_BY_SIDE_S)


def live_topics(cluster: LocalCluster) -> dict[str, tuple[int, str | None]]:
    topics = look(cluster).topics.values()
    return {topic.name: (topic.partitions, topic.overrides.get("retention.ms")) for topic in topics}


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_nothing_is_lost_in_a_rolled_upgrade_and_each_refusal_is_a_clear_word(
    cluster: LocalCluster, workspace: Workspace, record_property: Callable[[str, object], None]
) -> None:
    workspace.cluster = cluster_spec(cluster) | {"kafkaVersion": release(RELEASES[0])}
    workspace.policy, workspace.limits = {"unattended": "destructive"}, {"expansionFactor": 10}
    workspace.write_environment()
    loop = EndlessLoop(workspace, seed=7)
    ends = []
    for before, after in pairwise(RELEASES):
        started = time.monotonic()
        with loop.running():
            cluster.stop_zookeeper()
            cluster.start_zookeeper(kafka=after)
            roll(cluster, after, release(before))
            roll(cluster, after, release(after))
        loop.settle()
        assert live_topics(cluster) == loop.wanted
        ends.append((after, round(time.monotonic() - started), loop.done, len(loop.wanted)))

    unclear = [word for word in loop.words if not KNOWN.search(word.text)]
    seen = Counter((word.kind, NAMES.sub("_", word.text)[:200]) for word in loop.words)
    for kafka, seconds, done, topics in ends:
        record_property(UPGRADE, f"to {kafka}: {seconds} s, {done} changes so far, {topics} topics")
    for (kind, text), count in sorted(seen.items()):
        record_property(UPGRADE, f"{count} {kind}: {text}")
    assert set(cluster.versions.values()) == {RELEASES[-1]}
    assert loop.done > 50
    assert unclear == []
    other = [word for word in loop.words if "TOP606" in word.text or " V03: " in word.text]
    assert not other, "a topic that got its id is still the same topic"
