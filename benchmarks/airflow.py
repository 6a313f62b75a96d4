"""A run through Airflow: how long it takes, how much of that is Airflow's own, and whether a task failed without cause.

Airflow's own services with their SQLite database, a cluster of three brokers with their data in memory, where the
system has that, and the DAG as it is. Each run creates as many topics as it expands, configures and deletes, so that
the cluster stays as large as it is, and ends verified. What a run creates, the next expands, the one after configures,
and the one after that deletes; all of it waits for no approval.

- A run is timed from the request that starts it to the end that Airflow records for it.
- Airflow's own is the part in which none of our steps was at work: the time of the run without the union of the
  intervals from the first line to the last of the functions that its tasks call. So scheduling, starting processes,
  parsing the DAG file in each, and keeping results are Airflow's; imports of our modules and Spark's start are ours.
- A try that failed counts as failed without cause, also when the next one mended it: nothing here gives a cause.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from benchmarks.apply import (
    ABSENT,
    AFTER,
    BEFORE,
    BROKERS,
    HEAP_MB,
    MORE_PARTITIONS,
    PARTITIONS,
    REPLICAS,
    REQUEST_S,
    present,
    require_done,
    write_specs,
)
from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side
from benchmarks.verify import local_cluster
from topicops.features.shared.airflow_client import RUN_ENDED
from topicops.flow.runs.outcomes import read_outcomes
from topicops.flow.runs.run import open_run
from topicops.model.runs.results import OutcomeStatus
from topicops_local.airflow import start_airflow, wait_for_dags
from topicops_local.airflow_client import LocalAirflowClient
from topicops_local.cluster import LocalCluster

ROOT = Path(__file__).resolve().parents[1]
PIPELINE = "topic_pipeline_bench"
RUN, OWN, FAILED, TRIES = "a run", "of it Airflow's own", "failed tries (count)", "tries (count)"
RUN_S = 600.0
LOOK_EVERY_S = 2.0
"""Seldom, since every look is work for Airflow; the end of a run is on record."""
NOTES = "steps.jsonl"
DAG_FILE = f"""\
# Airflow takes a file for one of DAGs when it holds both words.
from pathlib import Path

from benchmarks.noted_steps import noted_pipeline

PROJECT = Path(__file__).resolve().parents[1]

dag = noted_pipeline(topics=PROJECT / "topics", notes=PROJECT / "{NOTES}")
"""
LIFE = (
    present(partitions=PARTITIONS, retention_ms=BEFORE),
    present(partitions=MORE_PARTITIONS, retention_ms=BEFORE),
    present(partitions=MORE_PARTITIONS, retention_ms=AFTER),
    ABSENT,
)
"""What is wanted of a topic in each of the four runs that know it."""


@dataclass
class Bench:
    """One Airflow and one cluster; each turn is a run of the pipeline."""

    cluster: LocalCluster
    client: LocalAirflowClient
    project: Path
    topics: int
    """How many each run creates, and expands, configures and deletes."""
    turn: int = len(LIFE) - 1
    figures: list[Mapping[str, float]] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)

    def lay(self) -> None:
        """Make what the first run expands, configures and deletes."""
        partitions = (MORE_PARTITIONS, MORE_PARTITIONS, PARTITIONS)
        new = [
            NewTopic(name, count, REPLICAS, config={"retention.ms": BEFORE})
            for turn, count in enumerate(partitions)
            for name in self._names(turn)
        ]
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        require_done(admin.create_topics(new, request_timeout=REQUEST_S))

    def figure(self, name: str) -> float:
        """One of a run: the first side of a round that asks has it made."""
        if self.asked[name] == len(self.figures):
            self.figures.append(self._run())
        self.asked[name] += 1
        return self.figures[self.asked[name] - 1][name]

    def _run(self) -> Mapping[str, float]:
        texts = {name: text for age, text in enumerate(LIFE) for name in self._names(self.turn - age)}
        write_specs(self.project / "topics", texts, self.cluster)
        self.turn += 1
        began = time.time()
        run_id = self.client.trigger(PIPELINE, {})
        seconds = self._ended_at(run_id) - began
        self._require_done(run_id, len(texts))
        tries = [task.try_number for task in self.client.tasks(PIPELINE, run_id).values()]
        return {
            RUN: seconds,
            OWN: seconds - covered_s(step_times(self.project, run_id)),
            FAILED: sum(tries) - len(tries),
            TRIES: sum(tries),
        }

    def _names(self, turn: int) -> Sequence[str]:
        return tuple(f"bench.turn-{turn}.topic-{number}" for number in range(self.topics))

    def _ended_at(self, run_id: str) -> float:
        deadline = time.monotonic() + RUN_S
        while self.client.run_state(PIPELINE, run_id) not in RUN_ENDED:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"run {run_id} has not ended within {RUN_S:.0f} s")
            time.sleep(LOOK_EVERY_S)
        ended = self.client.run_ended_at(PIPELINE, run_id)
        if ended is None:
            raise BenchmarkError(f"run {run_id} has ended, and Airflow does not say when")
        return ended.timestamp()

    def _require_done(self, run_id: str, changes: int) -> None:
        run = open_run(
            environment="bench",
            topics=self.project / "topics",
            group=PIPELINE,
            run_id=run_id,
            home=self.project / "home",
        )
        statuses = Counter(outcome.status for outcome in read_outcomes(run))
        state = self.client.run_state(PIPELINE, run_id)
        if state != "success" or statuses != {OutcomeStatus.DONE: changes}:
            raise BenchmarkError(
                f"a run ended {state}, outcomes {dict(statuses)} of {changes}; failed tasks:\n{self._failures(run_id)}"
            )

    def _failures(self, run_id: str) -> str:
        """The end of each failed task's log."""
        failed = [task for task in self.client.tasks(PIPELINE, run_id).values() if task.state == "failed"]
        logs = {task.task_id: self.client.log(PIPELINE, run_id, task.task_id, task.try_number) for task in failed}
        return "\n".join(f"{name}: {line}" for name, log in logs.items() for line in log.splitlines()[-8:])


def step_times(project: Path, run_id: str) -> Iterator[tuple[float, float]]:
    """When each step of a run began and ended, in seconds since the epoch."""
    for line in (project / NOTES).read_text(encoding="utf-8").splitlines():
        note = json.loads(line)
        if note["run_id"] == run_id:
            yield note["began"], note["ended"]


def covered_s(times: Iterable[tuple[float, float]]) -> float:
    """How long at least one was going on."""
    covered, until = 0.0, float("-inf")
    for began, ended in sorted(times):
        covered += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return covered


@contextmanager
def sides(changes: int) -> Iterator[Mapping[str, Side]]:
    if changes % len(LIFE):
        raise BenchmarkError(f"{changes} changes are not the same number of each of the {len(LIFE)} kinds")
    with (
        tempfile.TemporaryDirectory(prefix="topicops-bench-", ignore_cleanup_errors=True) as folder,
        local_cluster(heap_mb=HEAP_MB, broker_properties=BROKERS) as cluster,
        airflow(Path(folder)) as client,
    ):
        bench = Bench(cluster, client, Path(folder), changes // len(LIFE))
        bench.lay()
        yield {name: side_of(bench, name) for name in (RUN, OWN, FAILED, TRIES)}


@contextmanager
def airflow(project: Path) -> Iterator[LocalAirflowClient]:
    (project / "dags").mkdir()
    (project / "airflow").mkdir()
    (project / "dags/topicops_dags.py").write_text(DAG_FILE, encoding="utf-8")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    variables = {"PYTHONPATH": path, "TOPICOPS_HOME": str(project / "home"), "TOPICOPS_MODE": "apply"}
    with start_airflow(project / "airflow", dags=project / "dags", environment=variables) as services:
        client = services.client()
        wait_for_dags(client, [PIPELINE])
        yield client


def side_of(bench: Bench, name: str) -> Side:
    return lambda: bench.figure(name)


def comparisons(changes: int) -> Sequence[Comparison]:
    return (
        Comparison(
            id=f"airflows-own-share-of-a-run-of-{changes}-changes",
            numerator=OWN,
            denominator=RUN,
            goal=0.3,
            better="lower",
        ),
        Comparison(
            id=f"tries-failed-without-cause-in-runs-of-{changes}-changes",
            numerator=FAILED,
            denominator=TRIES,
            goal=0.0,
            better="lower",
            of=sum,
        ),
    )


BENCHMARK = Benchmark(name="airflow", topics=200, rounds=10, comparisons=comparisons, sides=sides)
