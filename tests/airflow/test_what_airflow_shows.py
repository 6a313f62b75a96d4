"""What Airflow shows and tells is so, whatever is killed: pages, notes and messages beside the cluster and its log."""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fixtures.airflow_watch import Watch
from fixtures.stopped_runs import ENVIRONMENT, PIPELINE, TOPIC, Stage, stage_for_kills
from fixtures.topic_project import TOMBSTONE
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
RUN_S = 600.0
STORIES = range(int(os.environ.get("TOPICOPS_STORIES", "20")))
KILLS = ("task", "scheduler", "api-server", "dag-processor", "broker", "mark")
LATEST_S = 40.0
"""A run of a few changes takes about as long."""
log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("told") / "told.txt"


@pytest.fixture(scope="module")
def stage(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory, told: Path) -> Iterator[Stage]:
    more = {"TOPICOPS_NOTIFY": "fixtures.writing_notifier:to_file", "TOLD_TO": str(told)}
    with stage_for_kills(tmp_path_factory.mktemp("shown"), local_cluster, more) as stage:
        yield stage


@pytest.fixture(scope="module")
def life(stage: Stage, told: Path) -> Iterator[Life]:
    life = Life(stage, told)
    yield life
    life.end()


@dataclass
class Life:
    """One environment that lives on from story to story: its files, its topics, and who watches."""

    stage: Stage
    told: Path
    partitions: dict[str, int] = field(default_factory=dict)
    """Of each topic that the files ask for."""
    count: int = 0

    def __post_init__(self) -> None:
        stage = self.stage
        self.watch = Watch(
            airflow=stage.airflow, client=stage.client, cluster=stage.cluster, znodes=stage.znodes,
            environment=ENVIRONMENT, home=Path(stage.project.variables["TOPICOPS_HOME"]), told_in=self.told,
        )  # fmt: skip
        self.edit(random.Random(0), creates=4)
        self.good_run()
        assert self.watch.found == []

    def edit(self, rng: random.Random, *, creates: int) -> None:
        """Ask for new topics, more partitions, another retention, and that one goes."""
        old = sorted(self.partitions)
        for _ in range(creates):
            self.count += 1
            self._describe(f"shown-{os.getpid()}-{self.count}", rng.randint(1, 3), rng)
        if old:
            grown, tuned, gone = (rng.choice(old) for _ in range(3))
            self._describe(grown, self.partitions[grown] + 1, rng)
            self._describe(tuned, self.partitions[tuned], rng)
            if len(old) > 3:
                self.stage.project.write(gone, TOMBSTONE)
                del self.partitions[gone]

    def _describe(self, topic: str, partitions: int, rng: random.Random) -> None:
        self.partitions[topic] = partitions
        self.watch.topics.add(topic)
        retention_ms = rng.randint(1, 100) * 3_600_000
        self.stage.project.write(topic, TOPIC.format(partitions=partitions, retention_ms=retention_ms))

    def trigger(self, **params: object) -> str:
        return self.stage.client.trigger(PIPELINE, params)

    def good_run(self) -> None:
        """A run of the whole without a fault, after which nothing is left to say."""
        state = self.watch.look_until_it_ends(self.trigger(), timeout_s=RUN_S)
        assert state == "success"
        self.watch.look_after_a_good_run()
        for topic in sorted(self.watch.topics - self.partitions.keys()):
            (self.stage.project.topics / f"tests/{topic}.yaml").unlink(missing_ok=True)

    def strike(self, kind: str, run_id: str, rng: random.Random) -> None:
        """Kill something, and bring back what does not come back by itself."""
        if kind == "task":
            self.watch.kill_its_tasks(run_id)
        elif kind == "broker":
            broker = rng.choice(sorted(self.stage.cluster.broker_ports))
            self.watch.kill_broker(broker)
            self.watch.look_until_it_ends(run_id, timeout_s=RUN_S)
            self.watch.look_after_the_end()
            self.watch.start_broker(broker)
        elif kind == "mark":
            self.watch.mark_as_failed(run_id)
        else:
            self.stage.kill(kind)
            time.sleep(rng.uniform(0, 8))
            self.stage.airflow.start_again(kind)

    def end(self) -> None:
        for topic in self.partitions:
            self.stage.project.write(topic, TOMBSTONE)
        self.watch.look_until_it_ends(self.trigger(), timeout_s=RUN_S)


@pytest.mark.parametrize("seed", STORIES)
def test_after_a_kill_at_a_random_moment_nothing_that_is_shown_is_false(life: Life, seed: int) -> None:
    rng = random.Random(seed)
    before = len(life.watch.found)
    life.edit(rng, creates=rng.randint(1, 4))
    kind, after_s = KILLS[seed % len(KILLS)], rng.uniform(0, LATEST_S)
    log.info("story %d: %s after %.0f s", seed, kind, after_s)
    run_id = life.trigger()
    strikes_at = time.monotonic() + after_s
    while time.monotonic() < strikes_at:
        life.watch.look()
        time.sleep(0.5)
    life.strike(kind, run_id, rng)
    life.watch.look_until_it_ends(run_id, timeout_s=RUN_S)
    life.watch.look_after_the_end()
    life.good_run()
    assert life.watch.found[before:] == []
