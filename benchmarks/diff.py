"""The diff on a warm Spark session, from the run's tables, against the plain Python one, from rows in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side, timed
from topicops.edges.tables.schemas import SCHEMAS
from topicops.edges.tables.table_folder import TableFolder
from topicops.model.json_types import canonical_json
from topicops.model.plans.delta import Delta, DesiredRow, LiveRow
from topicops.steps.planning.diff import diff

SPARK = "Spark, warm, from tables"
PYTHON = "plain Python, from rows in memory"
LARGE = 50_000


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    from topicops.features.spark.edges.comparison import spark_diff
    from topicops.features.spark.edges.frames import table_frame
    from topicops.features.spark.edges.session import spark_session, spark_step

    desired, live = rows(topics)
    with tempfile.TemporaryDirectory(prefix="topicops-bench-") as folder, spark_session("local[*]") as spark:
        tables = TableFolder.at(Path(folder))
        write_rows(tables, "desired", desired)
        write_rows(tables, "topics", live)

        def by_spark() -> tuple[Delta, object]:
            with spark_step(spark, "bench cli/1 diff", rows=len(desired) + len(live)):
                return spark_diff(table_frame(spark, tables, "desired"), table_frame(spark, tables, "topics"))

        if by_spark()[0] != diff(desired, live):
            raise BenchmarkError("the engines disagree")
        yield {SPARK: timed(by_spark), PYTHON: timed(lambda: diff(desired, live))}


def write_rows(tables: TableFolder, name: str, rows: Sequence[DesiredRow] | Sequence[LiveRow]) -> None:
    """A table with these rows; the columns that a comparison does not read are null."""
    columns = dict(zip(rows[0]._fields, zip(*rows, strict=True), strict=True))
    missing = (None,) * len(rows)
    arrays = [pa.array(columns.get(field.name, missing), type=field.type) for field in SCHEMAS[name]]
    table = tables.new_table(name, SCHEMAS[name])
    table.write(pa.RecordBatch.from_arrays(arrays, schema=SCHEMAS[name]))
    table.keep()


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
    """Plain Python is faster for one cluster; the goal is that Spark comes close as the cluster grows."""
    spark_to_python = Comparison(
        id=f"spark-to-python-{topics}-topics",
        numerator=SPARK,
        denominator=PYTHON,
        goal=2 if topics >= LARGE else 11,
        better="lower",
    )
    return (spark_to_python,)


BENCHMARK = Benchmark(name="diff", topics=LARGE, rounds=9, comparisons=comparisons, sides=sides)
