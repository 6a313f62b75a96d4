"""Compare desired and live topics on Spark: one full outer join, one action; same result as `steps.planning.diff`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from topicops.features.spark.edges.session import arrow_rows, spark_errors
from topicops.model.plans.delta import Delta, DesiredRow, LiveRow, TopicClass, TopicDelta
from topicops.model.runs.facts import OwnedTopics
from topicops.model.specs.desired import Lifecycle

OWNER = ("owner", "domain")
_COUNTED_ONLY = (TopicClass.SAME, TopicClass.RETIRED)
"""Classes whose topics are counted and not listed."""


def spark_diff(desired: DataFrame, live: DataFrame) -> tuple[Delta, list[OwnedTopics]]:
    """How desired and live topics differ, and how many of each owner and domain are in each class, in one action.

    Args:
        desired: With at least the columns of ``DesiredRow`` and ``domain``.
        live: With at least the columns of ``LiveRow``.

    Raises:
        TopicopsError: Spark failed.
    """
    with spark_errors("diff"):
        classes = by_class(compare(desired, live, beside=OWNER), beside=OWNER)
        rows = arrow_rows(classes).to_pylist()
    return _delta(rows), [_owned(row) for row in rows]


def compare(desired: DataFrame, live: DataFrame, *, beside: Sequence[str] = ()) -> DataFrame:
    """One row per desired or live topic; key ``topic``; unordered.

    Columns: ``topic``, ``presence``, ``topic_class``, ``changed`` (names of the fields that differ), and the structs
    ``desired`` and ``live``, null where the topic is not desired or not live.

    Args:
        beside: More columns of ``desired`` to keep; null where the topic is not desired.
    """
    desired = _named(desired, "desired", DesiredRow._fields, *beside)
    live = _named(live, "live", LiveRow._fields)
    topic, rows = F.coalesce("desired_topic", "live_topic").alias("topic"), ("desired", "live", *beside)
    changed = desired.join(live, on=F.col("desired_topic") == F.col("live_topic"), how="full_outer").select(
        topic, _presence().alias("presence"), _changed().alias("changed"), *rows
    )
    return changed.select("topic", "presence", _topic_class().alias("topic_class"), "changed", *rows)


def by_class(compared: DataFrame, *, beside: Sequence[str] = ()) -> DataFrame:
    """One row per class that occurs, and per value of the columns of ``beside``; unordered.

    Columns: ``topic_class``, those of ``beside``, ``topics`` (how many), and ``listed``, the rows of listed classes.
    """
    row = F.struct("topic", "presence", "changed", "desired", "live")
    is_listed = ~F.col("topic_class").isin(*_COUNTED_ONLY)
    return compared.groupBy("topic_class", *beside).agg(
        F.count(F.lit(1)).alias("topics"), F.collect_list(F.when(is_listed, row)).alias("listed")
    )


def _named(frame: DataFrame, side: str, fields: Sequence[str], *beside: str) -> DataFrame:
    """The topic under a name of this side, the row as a struct that is named as the side is, and others."""
    return frame.select(F.col("topic").alias(f"{side}_topic"), F.struct(*fields).alias(side), *beside)


def _presence() -> Column:
    return (
        F.when(F.col("live_topic").isNull(), F.lit("desired"))
        .when(F.col("desired_topic").isNull(), F.lit("live"))
        .otherwise(F.lit("both"))
    )


def _changed() -> Column:
    """Only topics that are present in both can differ in a field."""
    factor = F.col("desired.replication_factor")
    differs: Mapping[str, Column] = {
        "partitions": F.col("desired.partitions") != F.col("live.partitions"),
        "replication_factor": (factor != F.col("live.replication_factor_min"))
        | (factor != F.col("live.replication_factor_max")),
        # Null, and so no difference, unless the spec has a manual assignment.
        "assignment": F.col("desired.assignment_digest") != F.col("live.assignment_digest"),
        "configs": F.col("desired.configs") != F.col("live.configs"),
    }
    compared = (F.col("desired.lifecycle") == Lifecycle.PRESENT.value) & F.col("live_topic").isNotNull()
    return F.array_compact(F.array(*(F.when(compared & column, F.lit(name)) for name, column in differs.items())))


def _topic_class() -> Column:
    """The same table as ``model.plans.delta.class_of``."""
    lifecycle = F.col("desired.lifecycle")
    is_live = F.col("presence") != "desired"
    is_gone = F.when(is_live, F.lit(TopicClass.TOMBSTONED.value)).otherwise(F.lit(TopicClass.RETIRED.value))
    return (
        F.when(lifecycle.isNull(), F.lit(TopicClass.UNMANAGED.value))
        .when(lifecycle == Lifecycle.ABSENT.value, is_gone)
        .when(lifecycle == Lifecycle.PAUSED.value, F.lit(TopicClass.PAUSED.value))
        .when(~is_live, F.lit(TopicClass.MISSING.value))
        .when(F.size("changed") > 0, F.lit(TopicClass.DIFFERENT.value))
        .otherwise(F.lit(TopicClass.SAME.value))
    )


def _delta(classes: Iterable[Mapping[str, Any]]) -> Delta:
    counts = dict.fromkeys(TopicClass, 0)
    topics: list[TopicDelta] = []
    for found in classes:
        topic_class = TopicClass(found["topic_class"])
        counts[topic_class] += found["topics"]
        topics.extend(_topic_delta(topic_class, row) for row in found["listed"])
    return Delta(topics=tuple(sorted(topics, key=lambda delta: delta.topic)), counts=counts)


def _owned(row: Mapping[str, Any]) -> OwnedTopics:
    return OwnedTopics(
        owner=row["owner"], domain=row["domain"], topic_class=TopicClass(row["topic_class"]), topics=row["topics"]
    )


def _topic_delta(topic_class: TopicClass, row: Mapping[str, Any]) -> TopicDelta:
    desired, live = row["desired"], row["live"]
    return TopicDelta(
        topic=row["topic"],
        presence=row["presence"],
        topic_class=topic_class,
        changed=frozenset(row["changed"]),
        desired=DesiredRow(**desired) if desired else None,
        live=LiveRow(**live) if live else None,
    )
