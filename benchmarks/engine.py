"""``topicops plan`` by each engine, from a cold process to its exit, at five sizes; nothing differs in any.

From the largest size on, ``--engine auto`` takes Spark (``features.spark.engine.FROM_TOPICS``): there Spark must not be
slower than Python.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side, timed
from benchmarks.lone_zookeeper import connected, lay_cluster, lone_server
from benchmarks.plan import require_nothing_to_do, run_plan, write_checkout

ENGINES = ("python", "spark")
HEAP_MB = 2048
"""Of the ZooKeeper that holds the topics of all sizes."""


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with tempfile.TemporaryDirectory(prefix="topicops-bench-") as name, lone_server(heap_mb=HEAP_MB) as (server, _):
        folders = {size: Path(name) / str(size) for size in sizes(topics)}
        with connected(server) as client:
            for size, folder in folders.items():
                lay_cluster(client, f"/kafka-{size}", size)
                write_checkout(folder, f"{server}/kafka-{size}", size)
                require_equal_bytes(folder, size)
        yield {
            side(engine, size): timed(partial(run_plan, folder, "--engine", engine))
            for size, folder in folders.items()
            for engine in ENGINES
        }


def sizes(topics: int) -> tuple[int, ...]:
    """The largest one, half of it, a twentieth, a two-hundredth and a ten-thousandth."""
    return tuple(topics // part for part in (10_000, 200, 20, 2, 1))


def require_equal_bytes(folder: Path, size: int) -> None:
    """Raises ``BenchmarkError`` unless both engines give the same plan."""
    plans = [run_plan(folder, "--engine", engine, "--format", "json") for engine in ENGINES]
    require_nothing_to_do(plans[0], size)
    if plans[0] != plans[1]:
        raise BenchmarkError(f"{size} topics: the plan by spark has other bytes than the plan by python")


def comparisons(topics: int) -> Sequence[Comparison]:
    return [
        Comparison(
            id=f"python-to-spark-{size}-topics",
            numerator=side("python", size),
            denominator=side("spark", size),
            goal=1.0,
            better="lower" if size < topics else "higher",
        )
        for size in sizes(topics)
    ]


def side(engine: str, size: int) -> str:
    return f"plan --engine {engine}, {size:,} topics"


BENCHMARK = Benchmark(name="engine", topics=100_000, rounds=3, comparisons=comparisons, sides=sides)
