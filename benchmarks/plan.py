"""``topicops plan`` from a cold process to its exit, at one size and at a tenth of it; nothing differs in either.

The smaller one is held against the seconds that it may take, most of which are the command's start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side, timed
from benchmarks.lone_zookeeper import (
    OVERRIDES,
    PARTITIONS,
    REPLICATION_FACTOR,
    connected,
    lay_cluster,
    lone_zookeeper,
    topic_names,
)
from topicops.model.plans.plan_file import plan_from_json

COMMAND = (str(Path(sys.executable).with_name("topicops")), "plan", "--engine", "python", "--environment", "bench")
ALLOWED_S = 0.8
"""For 100 topics; other tools take 0.7 s, and 7 ms more for each further one."""
ALLOWANCE = "0.8 s"
IDENTITY = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")

_ENVIRONMENT = """\
apiVersion: topicops/v1
kind: Environment
metadata: {{name: bench}}
spec:
  cluster: {{class: sandbox, zookeeper: {{hosts: "{hosts}"}}, kafka: {{bootstrapServers: "127.0.0.1:1"}}}}
"""
_TOPIC = """\
apiVersion: topicops/v1
kind: Topic
metadata:
  name: {name}
  owner: team-bench
  description: One of many.
spec:
  partitions: {partitions}
  replicationFactor: {replication_factor}
  keyed: false
  configs:
"""


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with tempfile.TemporaryDirectory(prefix="topicops-bench-") as name, lone_zookeeper() as server:
        folders = {size: Path(name) / str(size) for size in (topics, topics // 10)}
        with connected(server) as client:
            for size, folder in folders.items():
                lay_cluster(client, f"/kafka-{size}", size)
                write_checkout(folder, f"{server}/kafka-{size}", size)
                require_nothing_to_do(run_plan(folder, "--format", "json"), size)
        measured = {_side(size): timed(partial(run_plan, folder)) for size, folder in folders.items()}
        yield {**measured, ALLOWANCE: lambda: ALLOWED_S}


def write_checkout(folder: Path, hosts: str, topics: int) -> None:
    """A git checkout whose specs say what ``lay_cluster`` laid; all is committed, as it is where plans are made."""
    specs = folder / "topics" / "bench"
    environments = folder / "topics" / "environments"
    specs.mkdir(parents=True)
    environments.mkdir()
    (environments / "bench.yaml").write_text(_ENVIRONMENT.format(hosts=hosts), encoding="utf-8")
    for name in topic_names(topics):
        (specs / f"{name}.yaml").write_text(_topic(name), encoding="utf-8")
    for arguments in (("init", "-q"), ("add", "topics"), (*IDENTITY, "commit", "-qm", "Describe the topics")):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)


def run_plan(folder: Path, *options: str) -> str:
    """What one cold process prints. Raises ``BenchmarkError`` with its words unless it ends with nothing to change."""
    # A home of its own: a cluster that shrinks between two runs is refused.
    environment = {**os.environ, "TOPICOPS_HOME": str(folder / "home")}
    done = subprocess.run(
        [*COMMAND, *options], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BenchmarkError(f"topicops plan ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def require_nothing_to_do(printed: str, topics: int) -> None:
    """Raises ``BenchmarkError`` unless every topic is in both worlds and none differs."""
    found = plan_from_json(printed).change_set
    if found.cluster.managed_topics != topics or found.changes or found.blocked or found.drift:
        raise BenchmarkError(f"{topics} unchanged topics were laid, and the plan is {printed[:2000]}")


def comparisons(topics: int) -> Sequence[Comparison]:
    """Ten times the topics may cost half as much again: what a process pays once must stay most of it."""
    growth = Comparison(
        id=f"plan-of-{topics}-to-{topics // 10}-topics",
        numerator=_side(topics),
        denominator=_side(topics // 10),
        goal=1.5,
        better="lower",
    )
    start = Comparison(
        id=f"plan-of-{topics // 10}-topics-to-its-allowance",
        numerator=_side(topics // 10),
        denominator=ALLOWANCE,
        goal=1.0,
        better="lower",
    )
    return growth, start


def _side(topics: int) -> str:
    return f"topicops plan, {topics:,} unchanged topics"


def _topic(name: str) -> str:
    head = _TOPIC.format(name=name, partitions=PARTITIONS, replication_factor=REPLICATION_FACTOR)
    return head + "".join(f"    {config}: {value}\n" for config, value in OVERRIDES.items())


BENCHMARK = Benchmark(name="plan", topics=1_000, rounds=7, comparisons=comparisons, sides=sides)
