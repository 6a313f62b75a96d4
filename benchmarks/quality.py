"""The rules of ``quality_after`` by Great Expectations against one aggregation written by hand, from the same tables.

A size is a number of topics with 20 partitions each. Both sides make the frames and count each rule's failing rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side, timed
from fakes import builders
from topicops.edges.tables.table_folder import TableFolder
from topicops.edges.tables.topics import LiveTables
from topicops.features.quality.rules import AFTER, Afterwards
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.release import USUAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPECTATIONS = "Great Expectations"
BY_HAND = "one aggregation by hand"
SICK_TOPICS = 100
"""Both sides must find the same in so many."""
PARTITIONS = 20
AT_ONCE = 2_000
"""Topics that are made and written together."""
RACKS = {broker: f"rack-{broker % 3}" for broker in range(1, 31)}


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    from topicops.features.spark.edges.session import spark_session

    with tempfile.TemporaryDirectory(prefix="topicops-bench-") as name, spark_session("local[*]") as spark:
        sick = write_cluster(Path(name) / "sick", SICK_TOPICS, sick=True)
        healthy = write_cluster(Path(name) / "healthy", topics)
        found = by_hand(spark, *sick)
        if not any(found.values()) or counted(spark, *sick) != found:
            raise BenchmarkError("the two sides disagree")
        yield {EXPECTATIONS: timed(lambda: counted(spark, *healthy)), BY_HAND: timed(lambda: by_hand(spark, *healthy))}


def write_cluster(folder: Path, topics: int, *, sick: bool = False) -> tuple[TableFolder, ClusterSnapshot]:
    """The tables of a cluster of 30 brokers on three racks, and its head. In a sick one the first partition of each
    topic lacks a replica."""
    assignment = builders.round_robin(PARTITIONS, over=tuple(RACKS))
    states = builders.healthy_states(assignment)
    if sick:
        states[0] = builders.partition_state(assignment[0][:2])
    tables = TableFolder.at(folder)
    with LiveTables(tables, USUAL) as sink:
        sink.begin()
        for first in range(0, topics, AT_ONCE):
            names = [f"bench.topic-{number:06}" for number in range(first, min(first + AT_ONCE, topics))]
            sink.take([builders.live_topic(name, assignment=assignment, states=states) for name in names])
        return tables, replace(builders.snapshot(racks=RACKS), topics=sink.finish(), totals=sink.totals)


def counted(spark: SparkSession, tables: TableFolder, live: ClusterSnapshot) -> dict[str, int]:
    """As ``quality_after`` does it: how many rows break each rule."""
    from topicops.features.quality.edges.in_spark import frames_to_count, frames_to_name
    from topicops.features.quality.edges.measuring import judge_rows
    from topicops.features.quality.edges.validation import failed_rules
    from topicops.features.spark.edges.frames import RunTables

    rows, known = RunTables(spark, tables, live, "bench quality"), facts_known(live)
    with rows.step("quality_after", rows=live.partitions), tempfile.TemporaryDirectory() as project:
        judged, _ = judge_rows(AFTER, frames_to_count(rows, known), lambda: frames_to_name(rows, known), {})
        failed_rules(Path(project), "bench-after", AFTER, judged.measures, run="bench/1")
    return {measure.rule: measure.rows_failed for measure in judged.measures}


def by_hand(spark: SparkSession, tables: TableFolder, live: ClusterSnapshot) -> dict[str, int]:
    """How many rows break each rule, by rule."""
    from pyspark.sql.functions import lit

    from topicops.features.quality.edges.in_spark import frames_to_name
    from topicops.features.quality.edges.measuring import one_frame
    from topicops.features.spark.edges.frames import RunTables

    counts = (f"count_if(kind = '{r.kind}' AND NOT coalesce({r.holds}, false)) AS {r.id}" for r in AFTER)
    rows = RunTables(spark, tables, live, "bench by hand")
    with rows.step("quality_after", rows=live.partitions):
        frames = (
            frame.withColumn("kind", lit(kind)) for kind, frame in frames_to_name(rows, facts_known(live)).items()
        )
        [found] = one_frame(frames).selectExpr(*counts).collect()
    return dict(found.asDict())


def facts_known(live: ClusterSnapshot) -> Afterwards:
    return Afterwards(managed=live.topics.keys(), differences=dict.fromkeys(live.topics, ""))


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
