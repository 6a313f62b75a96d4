"""A whole plan on Spark, cold and with a warm server, beside the pipeline that people write first and plain Python.

Each side is a cold process from its start to its end, over the same files and the same ZooKeeper; a few topics are
missing. CPU seconds count all processes of a side, the warm server's among them, so that a busy machine
spoils them less than it does seconds. Memory is the sum of the largest process of each program: Python and Java.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side
from benchmarks.lone_zookeeper import connected, lay_cluster, lone_zookeeper
from benchmarks.plan import write_checkout
from benchmarks.process_tree import Usage, run_measured
from fixtures.spark_servers import connect_server
from topicops.features.spark.edges.class_archive import train_archive
from topicops.model.plans.plan_file import plan_from_json

ROOT = Path(__file__).resolve().parents[1]
KINDS = NAIVE, COLD, SERVER, PYTHON = "naive pipeline", "plan, cold", "plan, warm server", "plan, plain Python"
UNITS = SECONDS, CPU, MEMORY = "s", "CPU s", "MiB"
MISSING = 5
"""So many topics of each size have a file alone."""
GOALS: Mapping[str, Mapping[str, Sequence[float]]] = {
    COLD: {SECONDS: (0.30, 0.4, 0.35), CPU: (0.30, 0.4, 0.35), MEMORY: (0.6, 0.6, 0.6)},
    SERVER: {SECONDS: (0.09, 0.2, 0.35), CPU: (0.09, 0.2, 0.35)},
}
"""Of the naive pipeline's figure; for a 500th of the size, a fifth of it, and the size."""

WHY: Mapping[str, Mapping[str, str]] = {
    COLD: {
        SECONDS: "small: Spark's start and first query are most of it; large: one processor reads files and partitions",
        CPU: "at the largest size the files, znodes and tables take more of Python than Spark takes of Java",
        MEMORY: "Spark's classes take 165 MiB of the JVM, and PySpark with pyarrow 155 MiB of Python, at every size",
    },
    SERVER: {
        SECONDS: "small: imports, also of PySpark's client; large: one processor reads files and partitions",
        CPU: "files, znodes and tables take nearly all of it",
    },
}
"""Reasons for a missed goal, from the profile of docs/decisions/0027-where-a-spark-plan-spends-its-time.md."""


@dataclass
class Bench:
    """One checkout and one laid cluster; each kind of plan runs once a round, and gives several figures."""

    folder: Path
    zookeeper: str
    environment: Mapping[str, str]
    server: int
    """The pid of the warm server."""
    found: dict[str, list[Usage]] = field(default_factory=dict)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)

    def figure(self, kind: str, unit: str) -> float:
        """One of a run: the first side of a round that asks has it made."""
        runs, turn = self.found.setdefault(kind, []), self.asked[kind, unit]
        if turn == len(runs):
            runs.append(self.run(kind))
        self.asked[kind, unit] += 1
        usage = runs[turn]
        return {SECONDS: usage.seconds, CPU: usage.cpu_s, MEMORY: usage.peak_of_programs}[unit]

    def run(self, kind: str) -> Usage:
        environment = {**self.environment, "TOPICOPS_HOME": str(self.folder / "home")}
        if kind != SERVER:
            environment.pop("TOPICOPS_SPARK")
        also = [self.server] if kind == SERVER else []
        usage = run_measured(self.command(kind), cwd=self.folder, environment=environment, also=also)
        if kind != NAIVE:
            self.require_creates()
        return usage

    def command(self, kind: str) -> Sequence[str]:
        if kind == NAIVE:
            return (sys.executable, "-m", "benchmarks.naive_spark", "topics", self.zookeeper, "naive.json")
        plan = (str(Path(sys.executable).with_name("topicops")), "plan", "--environment", "bench", "--out", "plan.json")
        return (*plan, "--engine", "python" if kind == PYTHON else "spark")

    def require_creates(self) -> None:
        changes = plan_from_json((self.folder / "plan.json").read_text(encoding="utf-8")).changes
        if [gated.change.action for gated in changes] != ["create"] * MISSING:
            raise BenchmarkError(f"{MISSING} topics are missing, and the plan has {len(changes)} changes")


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with ExitStack() as open_till_end:
        if train_archive() is None:
            raise BenchmarkError("Spark starts without its class archive here")
        folder = Path(open_till_end.enter_context(tempfile.TemporaryDirectory(prefix="topicops-bench-")))
        zookeeper = open_till_end.enter_context(lone_zookeeper())
        server = open_till_end.enter_context(connect_server(folder))
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))),
            "TOPICOPS_SPARK": server.address,
        }
        measured: dict[str, Side] = {}
        for size in _sizes(topics):
            bench = Bench(_laid(folder, zookeeper, size), f"{zookeeper}/kafka-{size}", environment, server.process.pid)
            for kind in KINDS:
                bench.run(kind)  # the server compiles what it runs for the first time
            measured |= {_side(kind, size, unit): _figure(bench, kind, unit) for kind in KINDS for unit in UNITS}
        yield measured


def _laid(folder: Path, zookeeper: str, size: int) -> Path:
    """A checkout of that many topics, and a cluster that lacks some of them."""
    checkout, chroot = folder / str(size), f"/kafka-{size}"
    with connected(zookeeper) as client:
        lay_cluster(client, chroot, size - MISSING)
    write_checkout(checkout, f"{zookeeper}{chroot}", size)
    return checkout


def _figure(bench: Bench, kind: str, unit: str) -> Side:
    return lambda: bench.figure(kind, unit)


def _sizes(topics: int) -> tuple[int, int, int]:
    return max(topics // 500, 2 * MISSING), topics // 5, topics


def _side(kind: str, size: int, unit: str) -> str:
    return f"{kind}, {size} topics, {unit}"


def comparisons(topics: int) -> Sequence[Comparison]:
    return tuple(
        Comparison(
            id=f"{kind.replace(',', '').replace(' ', '-')}-to-naive-{size}-topics-{unit.replace(' ', '-').lower()}",
            numerator=_side(kind, size, unit),
            denominator=_side(NAIVE, size, unit),
            goal=goal,
            better="lower",
            why=WHY[kind][unit],
        )
        for kind, units in GOALS.items()
        for unit, goals in units.items()
        for size, goal in zip(_sizes(topics), goals, strict=True)
    )


BENCHMARK = Benchmark(name="spark", topics=50_000, rounds=3, comparisons=comparisons, sides=sides, unit="s or MiB")
