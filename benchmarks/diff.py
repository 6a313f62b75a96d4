"""The diff on a warm Spark session against the plain Python one, from the same rows to the same delta."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side, timed
from topicops.model.canonical import canonical_json
from topicops.model.plans.delta import DesiredRow, LiveRow
from topicops.steps.planning.diff import diff

SPARK = "Spark, warm"
PYTHON = "plain Python"


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    from topicops.edges.spark.diff import spark_diff
    from topicops.edges.spark.session import spark_session

    desired, live = rows(topics)
    with spark_session("local[*]") as spark:
        if spark_diff(spark, desired, live) != diff(desired, live):
            raise BenchmarkError("the engines disagree")
        yield {SPARK: timed(lambda: spark_diff(spark, desired, live)), PYTHON: timed(lambda: diff(desired, live))}


def rows(topics: int) -> tuple[list[DesiredRow], list[LiveRow]]:
    """Both sides of ``topics`` topics. Of each 1,000: 5 missing, 5 unmanaged, 10 to expand, 10 to configure."""
    names = [f"bench.topic-{number:06}" for number in range(topics)]
    desired = [_desired(name, number % 1000) for number, name in enumerate(names) if not 5 <= number % 1000 < 10]
    live = [_live(name) for number, name in enumerate(names) if number % 1000 >= 5]
    return desired, live


def _desired(name: str, kind: int) -> DesiredRow:
    partitions = 24 if 10 <= kind < 20 else 20
    retention_ms = "86400000" if 20 <= kind < 30 else "604800000"
    return DesiredRow(name, "present", partitions, 3, None, _configs(retention_ms))


def _live(name: str) -> LiveRow:
    return LiveRow(name, 20, 3, 3, "0123456789abcdef", _configs("604800000"))


def _configs(retention_ms: str) -> str:
    return canonical_json({"cleanup.policy": "delete", "retention.ms": retention_ms})


def comparisons(topics: int) -> Sequence[Comparison]:
    """A ratio to know: Spark buys room to grow, not time. The goal notices when a query comes to cost another one."""
    spark_to_python = Comparison(
        id=f"spark-to-python-{topics}-topics", numerator=SPARK, denominator=PYTHON, goal=25, better="lower"
    )
    return (spark_to_python,)


BENCHMARK = Benchmark(name="diff", topics=10_000, rounds=9, comparisons=comparisons, sides=sides)
