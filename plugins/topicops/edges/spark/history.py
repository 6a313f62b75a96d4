"""Spans of time over the whole history as one query on frames; same result as ``steps.history.spans``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from topicops.edges.history.reading import History
from topicops.edges.history.schemas import SCHEMAS, TIME
from topicops.edges.spark.session import arrow_frame, arrow_rows, reads_files_here, spark_errors
from topicops.edges.spark.tables import parquet_frame
from topicops.model.errors import TopicopsError
from topicops.model.runs.history import LaneRun, RunPoint, Span, SpanQuestion, TableName

Lanes = Mapping[str, Sequence[LaneRun]]
"""The runs of each lane in the order of time: one row a run, which is little beside the rows of the other tables."""
NUMBERED = pa.schema(
    [("lane", pa.string()), ("run", pa.string()), ("recorded_at", TIME), ("number", pa.int32()), ("lasts", pa.bool_())]
)


def spark_spans(
    spark: SparkSession,
    history: History,
    question: SpanQuestion,
    lanes: Lanes,
    *,
    since: datetime | None = None,
    topic: str | None = None,
) -> tuple[Span, ...]:
    """All spans of an environment's history, unordered.

    Args:
        lanes: As they were read before: a run that is added meanwhile must not be known without its rows.
        since: Without the spans that ended before.
        topic: Only rows of this topic.

    Raises:
        TopicopsError: Spark failed, and all files can be read.
    """
    numbered = arrow_frame(spark, _numbered(lanes, since))
    try:
        found = _found(spark, history, question, numbered, topic)
    except TopicopsError:
        if not history.without_damaged():
            raise
        found = _found(spark, history, question, numbered, topic)
    return tuple(_span(row, lanes[row["lane"]]) for row in found)


def sightings(question: SpanQuestion, rows: DataFrame) -> DataFrame:
    """One row per row that the question is about: ``lane``, ``run``, ``row_at``, ``key`` and ``detail``, as text."""
    seen = rows.filter(~F.col("success")) if question.failed_only else rows
    key = F.array(*(F.col(name).cast("string") for name in question.key))
    return seen.select(
        (F.col(question.lane) if question.lane else F.lit("")).alias("lane"),
        "run",
        F.col("recorded_at").alias("row_at"),
        key.alias("key"),
        F.col(question.detail).cast("string").alias("detail"),
    )


def spans(numbered: DataFrame, seen: DataFrame) -> DataFrame:
    """One row per span; key ``lane``, ``key``, ``first``; unordered.

    Args:
        numbered: The runs of each lane, with the columns of ``NUMBERED``.
        seen: As ``sightings`` gives it.

    Returns:
        Columns ``lane``, ``key`` (an array), ``detail``, ``first`` and ``last`` (numbers of runs).
    """
    known = seen.join(F.broadcast(numbered), on=["lane", "run"], how="inner").filter("row_at >= recorded_at")
    # Along a span the number of the run and its rank among the runs that saw the key grow alike.
    in_time = Window.partitionBy("lane", "key").orderBy("number")
    island = (F.col("number") - F.dense_rank().over(in_time)).alias("island")
    # Of two tries of a run the one with the greatest detail counts, as in the plain meaning.
    end = F.max(F.struct("number", "detail", "lasts"))
    whole = known.select("lane", "key", "detail", "number", "lasts", island).groupBy("lane", "key", "island")
    kept = whole.agg(F.min("number").alias("first"), end.alias("end")).filter("end.lasts")
    return kept.select("lane", "key", F.col("end.detail").alias("detail"), "first", F.col("end.number").alias("last"))


def _numbered(lanes: Lanes, since: datetime | None) -> pa.Table:
    rows = [
        (name, run.run, run.recorded_at, number, _lasts(runs, number, since))
        for name, runs in lanes.items()
        for number, run in enumerate(runs)
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(NUMBERED)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, NUMBERED, strict=True)]
    return pa.Table.from_arrays(arrays, schema=NUMBERED)


def _lasts(runs: Sequence[LaneRun], last: int, since: datetime | None) -> bool:
    """Whether what this run saw last had not ended before ``since``."""
    return since is None or last + 1 == len(runs) or runs[last + 1].at >= since


def _found(
    spark: SparkSession, history: History, question: SpanQuestion, numbered: DataFrame, topic: str | None
) -> Sequence[Mapping[str, Any]]:
    with spark_errors("history"):
        rows = _frame(spark, history, question.table)
        seen = sightings(question, rows if topic is None else rows.filter(F.col("topic") == topic))
        found: Sequence[Mapping[str, Any]] = arrow_rows(spans(numbered, seen)).to_pylist()
    return found


def _frame(spark: SparkSession, history: History, table: TableName) -> DataFrame:
    """A table of the history. Spark reads the compacted files; a small file costs it more than its rows do."""
    found = history.table(table, compacted_apart=reads_files_here(spark))
    others = arrow_frame(spark, found.others)
    if not found.files:
        return others
    compacted = parquet_frame(spark, SCHEMAS[table], [f"file://{file}" for file in found.files])
    return compacted.unionByName(others) if found.others.num_rows else compacted


def _span(row: Mapping[str, Any], runs: Sequence[LaneRun]) -> Span:
    first, last = row["first"], row["last"]
    return Span(
        lane=row["lane"],
        key=tuple(row["key"]),
        detail=row["detail"],
        began=_point(runs[first]),
        last=_point(runs[last]),
        ended=_point(runs[last + 1]) if last + 1 < len(runs) else None,
        runs=last - first + 1,
    )


def _point(run: LaneRun) -> RunPoint:
    return RunPoint(run.run, run.at, run.commit)
