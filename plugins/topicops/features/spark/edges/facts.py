"""Facts of a run on Spark: load by broker and rack, and unhealthy partitions by broker and cause, in one action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from topicops.features.spark.edges.frames import RunTables, with_health
from topicops.features.spark.edges.session import arrow_rows, planned_for, spark_errors
from topicops.features.spark.partition_health import BROKERS_AT_FAULT, HOLDS
from topicops.model.runs.facts import CAUSES, PartitionCounts


def count_partitions(tables: RunTables) -> PartitionCounts:
    """What is counted over all partitions, in one action; the same as ``steps.facts.partition_counts``.

    The snapshot must have partition states. Raises ``TopicopsError`` where Spark failed.
    """
    with spark_errors("facts"), planned_for(tables.spark, tables.head.partitions):
        return _counts(arrow_rows(counted(tables)).to_pylist())


def counted(tables: RunTables) -> DataFrame:
    """One row for each thing that is counted; key ``counted``, ``broker``, ``name``; unordered.

    Columns: ``counted`` (``replicas``, ``preferred``, ``leaders``, ``rack`` or ``unhealthy``), ``broker``, ``name`` (of
    the rack, or the rule), ``partitions``.
    """
    # Many partitions have few lists of replicas: each combination is judged once.
    columns = ("replicas", "in_place", "leader", "isr", "least", "is_deleting")
    alike = tables.assigned_partitions().groupBy(*columns).agg(F.count(F.lit(1)).alias("partitions"))
    unhealthy = F.when(F.col("is_deleting"), F.slice(_unhealthy(), 1, 0)).otherwise(_unhealthy())
    items = with_health(tables, alike).select(F.explode(F.concat(_held(tables), unhealthy)).alias("item"), "partitions")
    return items.groupBy("item.counted", "item.broker", "item.name").agg(F.sum("partitions").alias("partitions"))


def _held(tables: RunTables) -> Column:
    """An item for each broker and rack that holds something of the partition."""
    racks = F.array_compact(F.array_distinct(F.transform("replicas", tables.rack_of)))
    leader = F.filter(F.array("leader"), lambda broker: broker >= 0)
    return F.concat(
        F.transform("replicas", lambda broker: _item("replicas", broker=broker)),
        F.transform(F.slice("replicas", 1, 1), lambda broker: _item("preferred", broker=broker)),
        F.transform(leader, lambda broker: _item("leaders", broker=broker)),
        F.transform(racks, lambda rack: _item("rack", name=rack)),
    )


def _unhealthy() -> Column:
    """An item for each rule that the partition breaks, and each broker that makes it break the rule."""
    return F.flatten(F.array(*map(_items_of, CAUSES)))


def _items_of(rule: str) -> Column:
    """An item for each broker that makes the partition break the rule, or one without a broker; none if it holds."""
    brokers, holds = BROKERS_AT_FAULT[rule], F.coalesce(F.expr(HOLDS[rule]), F.lit(False))
    broken = F.expr(f"IF(size({brokers}) = 0, array(CAST(NULL AS int)), {brokers})")
    at_fault = F.when(holds, F.array().cast("array<int>")).otherwise(broken)
    return F.transform(at_fault, lambda broker: _item("unhealthy", broker=broker, name=F.lit(rule)))


def _item(counted: str, *, broker: Column | None = None, name: Column | None = None) -> Column:
    return F.struct(
        F.lit(counted).alias("counted"),
        (F.lit(None) if broker is None else broker).cast("int").alias("broker"),
        (F.lit(None) if name is None else name).cast("string").alias("name"),
    )


def _counts(rows: Sequence[Mapping[str, Any]]) -> PartitionCounts:
    def by_broker(counted: str) -> dict[int, int]:
        return {row["broker"]: row["partitions"] for row in rows if row["counted"] == counted}

    return PartitionCounts(
        replicas=by_broker("replicas"),
        preferred=by_broker("preferred"),
        leaders=by_broker("leaders"),
        rack_partitions={row["name"]: row["partitions"] for row in rows if row["counted"] == "rack"},
        unhealthy={(row["name"], row["broker"]): row["partitions"] for row in rows if row["counted"] == "unhealthy"},
    )
