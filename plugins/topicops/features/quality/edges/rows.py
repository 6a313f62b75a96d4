"""The rows that the rules check, made by Spark from a run's tables; tests compare them with plain Python's.

What is known of the cluster as a whole comes from the snapshot's head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_type_hints

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from topicops.features.quality.rules import LAYOUTS, Afterwards, Pairs, RowKind, SpecRow
from topicops.features.spark.edges.frames import RunTables, least_in_sync, with_health
from topicops.features.spark.edges.session import arrow_frame
from topicops.model.runs.facts import PartitionRow
from topicops.model.specs.topic_config import THROTTLE_LISTS

_TYPES: Mapping[object, pa.DataType] = {
    str: pa.string(),
    str | None: pa.string(),
    bool: pa.bool_(),
    int: pa.int64(),
    tuple[int, ...]: pa.list_(pa.int32()),
    Pairs: pa.map_(pa.string(), pa.string()),
}
Frames = Mapping[RowKind, DataFrame]
TIMES = "times"
"""Column of a frame in which one row may stand for several."""


def spec_frames(tables: RunTables) -> Frames:
    """Return the kinds ``spec`` and ``spec_config``, from the table ``desired``."""
    desired = tables.frame("desired")
    times = F.count(F.lit(1)).over(Window.partitionBy("topic"))
    configs = F.from_json("configs", "map<string,string>")
    return {
        "spec": desired.select(*SpecRow._fields[:-2], configs.alias("configs"), times.alias("described")),
        "spec_config": _config_rows(desired, configs, problem="spec_problem"),
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


def partition_frame(tables: RunTables) -> DataFrame:
    """Return the kind ``partition``: health, from the tables ``partitions`` and ``topics``."""
    staying = tables.assigned_partitions().filter(~F.col("is_deleting"))
    return with_health(tables, staying).select(*PartitionRow._fields)


def alike_frames(tables: RunTables) -> Frames:
    """Return the kinds ``partition`` and ``broker`` for counting: partitions that are alike are one row.

    Such a row has no topic and no partition; ``times`` is how many partitions it stands for.
    """
    staying = tables.alike_partitions().filter(~F.col("is_deleting")).withColumnRenamed("partitions", TIMES)
    partition = with_health(tables, staying)
    first = F.col("replicas")[0]
    counted = (
        staying.filter(F.size("replicas") > 0)
        .groupBy(first.alias("broker"))
        .agg(
            F.sum(TIMES).alias("preferred"),
            F.sum(F.when(F.coalesce("leader", F.lit(-1)) == first, F.col(TIMES)).otherwise(F.lit(0))).alias("led"),
        )
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
            F.col("topic").isin(sorted(known.own_moves)).alias("is_own_move"),
            F.when(F.col("known_identity") == without_id, without_id).otherwise(identity).alias("identity"),
            "known_identity",
            identity.isin(sorted(known.own_topic_identities)).alias("is_own"),
            F.col("overrides").alias("configs"),
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
