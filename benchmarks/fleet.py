"""Plans of many environments in one Spark application, beside as many runs of one environment each.

The environments share one folder of specs; their clusters are chroots of one ZooKeeper, and each plan expands one topic
of fifty. Each side is a cold process from its start to its end. CPU seconds count all its processes. A run of one
environment is measured once a round and counted as often as there are environments: they cost the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side
from benchmarks.lone_zookeeper import PARTITIONS, connected, lay_cluster, lone_zookeeper
from benchmarks.plan import IDENTITY, write_checkout
from benchmarks.process_tree import Usage, run_measured

ENVIRONMENTS = 50
EDITED = 50
"""Every so many files ask for one partition more than the topic has."""
COMMAND = str(Path(sys.executable).with_name("topicops"))
MOST_MIB = 300.0
FLEET = f"plan of {ENVIRONMENTS} environments, CPU s"
SPARK = f"{ENVIRONMENTS} plans on a cold Spark, CPU s"
PYTHON = f"{ENVIRONMENTS} plans with --engine python, CPU s"
DRIVER = "Python driver of all environments, MiB"
ALLOWANCE = f"{MOST_MIB:g} MiB"


@dataclass
class Bench:
    """A checkout for all environments; the fleet runs once a round, and gives two figures."""

    folder: Path
    last: Usage | None = None

    def fleet_cpu_s(self) -> float:
        self.last = self._run("--environment", "all")
        if f"{ENVIRONMENTS} of {ENVIRONMENTS} environments" not in self.last.printed:
            raise BenchmarkError(f"not every environment was planned:\n{self.last.printed[-2000:]}")
        return self.last.cpu_s

    def driver_mib(self) -> float:
        if self.last is None:
            self.fleet_cpu_s()
        return self.last.peak_of("topicops") if self.last else 0.0

    def alone_cpu_s(self, engine: str) -> Callable[[], float]:
        return lambda: ENVIRONMENTS * self._run("--environment", "env-00", "--engine", engine).cpu_s

    def _run(self, *options: str) -> Usage:
        environment = {**os.environ, "TOPICOPS_HOME": str(self.folder / "home")}
        return run_measured([COMMAND, "plan", *options], cwd=self.folder, environment=environment)


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with tempfile.TemporaryDirectory(prefix="topicops-bench-") as name, lone_zookeeper() as server:
        folder = Path(name) / "checkout"
        write_checkout(folder, f"{server}/env-00", topics)
        write_environments(folder)
        with connected(server) as client:
            for environment in environments():
                lay_cluster(client, f"/{environment}", topics)
        bench = Bench(folder)
        yield {
            FLEET: bench.fleet_cpu_s,
            DRIVER: bench.driver_mib,
            SPARK: bench.alone_cpu_s("spark"),
            PYTHON: bench.alone_cpu_s("python"),
            ALLOWANCE: lambda: MOST_MIB,
        }


def environments() -> Sequence[str]:
    return [f"env-{number:02}" for number in range(ENVIRONMENTS)]


def write_environments(folder: Path) -> None:
    """An environment for each cluster in place of the only one, and edited topics; all is committed."""
    only = folder / "topics/environments/bench.yaml"
    text = only.read_text(encoding="utf-8").replace("name: bench", "name: env-00")
    only.unlink()
    for name in environments():
        place = folder / f"topics/environments/{name}.yaml"
        place.write_text(text.replace("env-00", name), encoding="utf-8")
    for file in sorted((folder / "topics/bench").iterdir())[::EDITED]:
        spec = file.read_text(encoding="utf-8")
        file.write_text(spec.replace(f"partitions: {PARTITIONS}", f"partitions: {PARTITIONS + 1}"), encoding="utf-8")
    for arguments in (("add", "--all"), (*IDENTITY, "commit", "-qm", "Describe the environments")):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)


def comparisons(topics: int) -> Sequence[Comparison]:
    size = f"{ENVIRONMENTS}-x-{topics}"
    return (
        Comparison(id=f"fleet-{size}-to-cold-spark", numerator=FLEET, denominator=SPARK, goal=0.15, better="lower"),
        Comparison(id=f"fleet-{size}-to-python", numerator=FLEET, denominator=PYTHON, goal=1.0, better="lower"),
        Comparison(id=f"fleet-{size}-driver-memory", numerator=DRIVER, denominator=ALLOWANCE, goal=1.0, better="lower"),
    )


BENCHMARK = Benchmark(name="fleet", topics=2_000, rounds=3, comparisons=comparisons, sides=sides, unit="")
