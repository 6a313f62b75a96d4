"""Data quality on Spark with Great Expectations: may the inputs be trusted, and is the result healthy.

The rows that the rules check are made by Spark from a run's tables; tests compare them with plain Python's. What is
known of the cluster as a whole comes from the snapshot's head. All rows of a suite are in one frame: each kind has
columns of its own, and nulls in those of other kinds. One Spark job counts the rows, and one more the failures of all
rules. For rules that fail, two more jobs name the first rows, and count those that failed before the changes too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple, get_type_hints

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from topicops.features.quality.edges.great_expectations_inside import evaluate, is_true
from topicops.features.quality.rules import LAYOUTS, Afterwards, RowKind, Rule, rules_of
from topicops.features.spark.edges.frames import RunTables, least_in_sync, with_health
from topicops.features.spark.edges.session import are_few, arrow_frame, arrow_rows, planned_for, spark_errors
from topicops.model.errors import TopicopsError
from topicops.model.runs.facts import PartitionRow
from topicops.model.runs.results import FailingRow, QualityResult, QualitySuite
from topicops.model.specs.topic_config import THROTTLE_LISTS

_TYPES: Mapping[object, pa.DataType] = {
    str: pa.string(),
    str | None: pa.string(),
    bool: pa.bool_(),
    int: pa.int64(),
    tuple[int, ...]: pa.list_(pa.int32()),
}
Frames = Mapping[RowKind, DataFrame]


def spec_frames(tables: RunTables) -> Frames:
    """Return the kinds ``spec`` and ``spec_config``, from the table ``desired``."""
    desired = tables.frame("desired")
    times = F.count(F.lit(1)).over(Window.partitionBy("topic"))
    return {
        "spec": desired.select("topic", "file", "owner", times.alias("described")),
        "spec_config": _config_rows(desired, F.from_json("configs", "map<string,string>"), problem="spec_problem"),
    }


def listed_frames(tables: RunTables) -> Frames:
    """Return the kinds ``listed`` and ``live_config``, from the tables ``topics`` and ``partitions``."""
    topics = tables.frame("topics")
    offline = (
        tables.frame("partitions")
        .filter(~F.col("topic").isin(sorted(tables.head.deleting)))
        .filter(F.col("replicas").isNotNull() & ~F.coalesce(tables.is_live(F.col("leader")), F.lit(False)))
        .groupBy("topic")
        .agg(F.count(F.lit(1)).alias("offline"))
    )
    listed = topics.join(offline, on="topic", how="left").select(
        "topic",
        F.col("partitions").alias("listed_partitions"),
        "empty_partitions",
        F.when(F.col("has_states"), F.coalesce("offline", F.lit(0))).otherwise(F.lit(0)).alias("offline_partitions"),
        "is_unstable",
    )
    return {"listed": listed, "live_config": _config_rows(topics, F.col("overrides"), problem="live_problem")}


def partition_frames(tables: RunTables) -> Frames:
    """Return the kinds ``partition`` and ``broker``: health, from the tables ``partitions`` and ``topics``."""
    staying = tables.assigned_partitions().filter(~F.col("is_deleting"))
    partition = with_health(tables, staying).select(*PartitionRow._fields)
    first = F.col("replicas")[0]
    counted = (
        partition.filter(F.size("replicas") > 0)
        .groupBy(first.alias("broker"))
        .agg(F.count(F.lit(1)).alias("preferred"), F.sum((F.col("leader") == first).cast("long")).alias("led"))
    )
    live = rows_frame(tables.spark, "broker", [(broker, 0, 0) for broker in tables.head.brokers])
    broker = live.unionByName(counted).groupBy("broker").agg(F.sum("preferred"), F.sum("led"))
    return {"partition": partition, "broker": broker.toDF("broker", "preferred", "led")}


def topic_frames(tables: RunTables, known: Afterwards) -> Frames:
    """Return the kinds ``topic`` and ``config_znode``, from the table ``topics``."""
    topics, spark = tables.frame("topics"), tables.spark
    without_id = F.concat(F.lit("czxid:"), F.coalesce(F.col("czxid").cast("string"), F.lit("None")))
    identity = F.coalesce("topic_id", without_id)
    managed = _column(spark, topic=list(known.managed)).withColumn("is_managed", F.lit(True))
    before = known.known_identities or {}
    identities = _column(spark, topic=list(before), known_identity=list(before.values()))
    lists = [F.coalesce(F.col("overrides")[name], F.lit("")) != "" for name in sorted(THROTTLE_LISTS)]
    topic = (
        topics.join(managed, on="topic", how="left")
        .join(identities, on="topic", how="left")
        .select(
            "topic",
            F.coalesce("is_managed", F.lit(False)).alias("is_managed"),
            "partitions",
            "lowest_partition",
            "highest_partition",
            F.col("replication_factor_min").alias("fewest_replicas"),
            F.col("replication_factor_max").alias("most_replicas"),
            least_in_sync(tables).alias("min_insync_replicas"),
            (F.col("is_reassigning") | F.col("topic").isin(sorted(tables.head.reassigning))).alias("is_reassigning"),
            (lists[0] | lists[1]).alias("is_throttled"),
            F.when(F.col("known_identity") == without_id, without_id).otherwise(identity).alias("identity"),
            "known_identity",
            identity.isin(sorted(known.own_topic_identities)).alias("is_own"),
        )
    )
    configured = topics.filter(F.size("overrides") > 0).select("topic", F.lit(True).alias("has_topic"))
    orphans = rows_frame(spark, "config_znode", [(name, False) for name in sorted(tables.head.orphan_configs)])
    return {"topic": topic, "config_znode": configured.unionByName(orphans)}


def rows_frame(spark: SparkSession, kind: RowKind, rows: Sequence[tuple[object, ...]]) -> DataFrame:
    """Return a few rows of one kind that Python knows, in the columns of their row type."""
    hints = get_type_hints(LAYOUTS[kind].row)
    columns = zip(*rows, strict=True) if rows else ((),) * len(hints)
    arrays = [pa.array(list(column), type=_TYPES[hint]) for column, hint in zip(columns, hints.values(), strict=True)]
    return arrow_frame(spark, pa.table(arrays, names=list(hints)))


def _config_rows(frame: DataFrame, configs: Column, *, problem: str) -> DataFrame:
    found = frame.select("topic", F.explode(configs).alias("config", "_text"), "config_problems")
    return found.select(
        "topic", "config", F.coalesce(F.col("config_problems")[F.col("config")], F.lit("")).alias(problem)
    )


def _column(spark: SparkSession, **columns: list[str]) -> DataFrame:
    return arrow_frame(spark, pa.table({name: pa.array(values, type=pa.string()) for name, values in columns.items()}))


MOST_EXAMPLES = 20
SO_BEFORE = "so_before"


def check_quality(
    spark: SparkSession,
    suite: QualitySuite,
    frames: Frames,
    *,
    expected: Mapping[RowKind, int],
    earlier: Callable[[], Frames] | None = None,
) -> tuple[QualityResult, ...]:
    """Return a result for each rule of the suite, in the order of ``RULES``. A rule without rows holds.

    Args:
        frames: The rows, by kind; a kind that is left out has none.
        expected: How many rows of a kind Spark must have looked at, where Python knows it.
        earlier: Gives the rows before the changes; called only when a rule fails. None means that they are not known.

    Raises ``TopicopsError`` where Spark or Great Expectations failed.
    """
    rules = rules_of(suite)
    kinds: Frames = {rule.kind: frames.get(rule.kind, rows_frame(spark, rule.kind, ())) for rule in rules}
    known = sum(expected.values())
    with spark_errors(f"quality {suite}"), planned_for(spark, known):
        rows = one_frame(kinds.values())
        if are_few(known):
            rows, kinds = made_now(rows, kinds)
        results = evaluate(rows, rules)
        _check_complete(rules, results, expected)
        failed = [rule for rule, result in zip(rules, results, strict=True) if not result.success]
        if not failed:
            return results
        before = earlier() if earlier else {}
        if are_few(known) and before:
            _, before = made_now(one_frame(before.values()), before)
        named = name_rows(kinds, failed, before)
        both = zip(rules, results, strict=True)
        return tuple(_with_rows(result, named, is_known=rule.kind in before) for rule, result in both)


def one_frame(kinds: Iterable[DataFrame]) -> DataFrame:
    """Return all rows of a suite: each kind fills its own columns and the columns that it shares with other kinds."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), kinds)


def made_now(rows: DataFrame, kinds: Iterable[RowKind]) -> tuple[DataFrame, Frames]:
    """Return the rows as ``one_frame`` gives them, and by kind; Spark makes them now, once for all jobs.

    With few rows, to plan how they are made is most of a job's time.
    """
    made = arrow_frame(rows.sparkSession, arrow_rows(rows))
    return made, {kind: made.filter(F.col(LAYOUTS[kind].own).isNotNull()) for kind in kinds}


class FailingRows(NamedTuple):
    old: int
    """Number of them that failed before the changes too."""
    examples: Sequence[Row]
    """``key``, ``shown``: JSON objects; ``so_before``: whether the row failed before too."""


def name_rows(frames: Frames, rules: Sequence[Rule], earlier: Frames) -> Mapping[str, FailingRows]:
    """Return the failing rows by rule; rows that did not fail in ``earlier`` come first. Two jobs for all rules."""
    failing = {rule: _failing(frames[rule.kind], rule, earlier.get(rule.kind)) for rule in rules}
    examples = reduce(DataFrame.union, [_examples(frame, rule) for rule, frame in failing.items()]).collect()
    failed_before = [
        frame.agg(F.lit(rule.id).alias("rule"), F.count_if(SO_BEFORE).alias("old"))
        for rule, frame in failing.items()
        if rule.kind in earlier
    ]
    counted = reduce(DataFrame.union, failed_before).collect() if failed_before else []
    old = {row["rule"]: row["old"] for row in counted}
    return {
        rule.id: FailingRows(old.get(rule.id) or 0, [row for row in examples if row["rule"] == rule.id])
        for rule in rules
    }


def _failing(frame: DataFrame, rule: Rule, earlier: DataFrame | None) -> DataFrame:
    """Return the rows that fail the rule, and whether a row of the same key failed it earlier: ``so_before``."""
    failing, key = frame.filter(~is_true(rule.holds)), LAYOUTS[rule.kind].key
    if earlier is None:
        return failing.withColumn(SO_BEFORE, F.lit(False))
    before = earlier.filter(~is_true(rule.holds))
    if not key:
        return failing.crossJoin(before.agg((F.count(F.lit(1)) > 0).alias(SO_BEFORE)))
    keys = before.select(*key, F.lit(True).alias(SO_BEFORE))
    return failing.join(keys, on=list(key), how="left").withColumn(SO_BEFORE, F.coalesce(SO_BEFORE, F.lit(False)))


def _examples(failing: DataFrame, rule: Rule) -> DataFrame:
    """Return the first rows in the order of their keys; only of these the shown columns are made."""
    key = LAYOUTS[rule.kind].key
    first = failing.orderBy(SO_BEFORE, *key).limit(MOST_EXAMPLES)
    return first.select(
        F.lit(rule.id).alias("rule"),
        _as_json(key).alias("key"),
        _as_json(rule.shows.split(", ") if rule.shows else ()).alias("shown"),
        SO_BEFORE,
    )


def _as_json(columns: Sequence[str]) -> Column:
    return F.to_json(F.struct(*map(F.expr, columns)), {"ignoreNullFields": "false"}) if columns else F.lit("{}")


def _check_complete(rules: Iterable[Rule], results: Iterable[QualityResult], expected: Mapping[RowKind, int]) -> None:
    """Raise ``TopicopsError`` when Spark did not check every row: the result would be worthless."""
    for rule, result in zip(rules, results, strict=True):
        if result.rows_checked != expected.get(rule.kind, result.rows_checked):
            raise TopicopsError(
                f"quality rule {rule.id}: Spark checked {result.rows_checked} of {expected[rule.kind]} rows"
            )


def _with_rows(result: QualityResult, named: Mapping[str, FailingRows], *, is_known: bool) -> QualityResult:
    if result.success:
        return result
    failing = named[result.rule]
    examples = (
        FailingRow(
            row={**json.loads(row["key"]), **json.loads(row["shown"])},
            was_so_before=row[SO_BEFORE] if is_known else None,
        )
        for row in failing.examples
    )
    return replace(result, rows_failed_before=failing.old if is_known else None, examples=tuple(examples))
