"""The rules of ``quality_after`` by Great Expectations against one aggregation written by hand, from the same tables.

A size is a number of topics with 20 partitions each. Both sides make the frame and count every rule's failing rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side, timed
from topicops.model.gc_pause import gc_paused
from topicops.model.runs.quality_rows import LAYOUTS, Afterwards, QualityInput, rows_after
from topicops.model.runs.quality_rules import AFTER
from topicops.testing import builders

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

EXPECTATIONS = "Great Expectations"
BY_HAND = "one aggregation by hand"
SICK_TOPICS = 100
"""Both sides must find the same in so many."""
PARTITIONS = 20
RACKS = {broker: f"rack-{broker % 3}" for broker in range(1, 31)}


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    from topicops.edges.spark.quality import kind_tables
    from topicops.edges.spark.session import spark_session

    sick = kind_tables("after", rows(SICK_TOPICS, sick=True))
    with gc_paused():
        healthy = kind_tables("after", rows(topics))
    with spark_session("local[*]") as spark:
        found = by_hand(spark, sick)
        if not any(found.values()) or counted(spark, sick) != found:
            raise BenchmarkError("the two sides disagree")
        yield {
            EXPECTATIONS: timed(lambda: counted(spark, healthy)),
            BY_HAND: timed(lambda: by_hand(spark, healthy)),
        }


def counted(spark: SparkSession, tables: Sequence[pa.Table]) -> dict[str, int]:
    """As ``check_quality`` does it, from Arrow on: how many rows break each rule."""
    from topicops.edges.spark.quality import evaluate, frame_of

    return {result.rule: result.rows_failed for result in evaluate(frame_of(spark, tables), AFTER)}


def rows(topics: int, *, sick: bool = False) -> QualityInput:
    """A cluster of 30 brokers on three racks; in a sick one the first partition of each topic lacks a replica."""
    assignment = builders.round_robin(PARTITIONS, over=tuple(RACKS))
    states = builders.healthy_states(assignment)
    if sick:
        states[0] = builders.partition_state(assignment[0][:2])
    names = [f"bench.topic-{number:06}" for number in range(topics)]
    live = builders.snapshot(
        *(builders.live_topic(name, assignment=assignment, states=states) for name in names), racks=RACKS
    )
    return rows_after(live, Afterwards(managed=live.topics, differences=dict.fromkeys(names, "")))


def by_hand(spark: SparkSession, tables: Sequence[pa.Table]) -> dict[str, int]:
    """How many rows break each rule, by rule."""
    from topicops.edges.spark.quality import frame_of

    counts = (
        f"count_if({LAYOUTS[r.kind].own} IS NOT NULL AND NOT coalesce({r.holds}, false)) AS {r.id}" for r in AFTER
    )
    [found] = frame_of(spark, tables).selectExpr(*counts).collect()
    return dict(found.asDict())


def comparisons(topics: int) -> Sequence[Comparison]:
    partitions = topics * PARTITIONS
    return (
        Comparison(
            id=f"expectations-to-by-hand-{partitions}-partitions",
            numerator=EXPECTATIONS,
            denominator=BY_HAND,
            goal=4,
            better="lower",
        ),
    )


BENCHMARK = Benchmark(name="quality", topics=50_000, rounds=5, comparisons=comparisons, sides=sides)
