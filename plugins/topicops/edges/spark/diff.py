"""Compare desired and live topics on Spark: one full outer join, one action; same result as `steps.planning.diff`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from topicops.edges.spark.session import arrow_rows, spark_errors
from topicops.model.plans.delta import Delta, DesiredRow, LiveRow, TopicClass, TopicDelta
from topicops.model.runs.facts import OwnedTopics
from topicops.model.specs.desired import Lifecycle

TOPIC = ("topic",)
"""The key of topics of one environment."""
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


def spark_diffs(desired: DataFrame, live: DataFrame, *, by: str) -> dict[str, tuple[Delta, list[OwnedTopics]]]:
    """As ``spark_diff`` for many worlds at once: what it gives for each value of the column ``by`` that occurs.

    Args:
        by: A column that both frames have beside their rows': ``environment`` in a fleet.
    """
    key = (by, *TOPIC)
    with spark_errors("diff"):
        found = _grouped(by_class(compare(desired, live, key, beside=OWNER), key, beside=OWNER), by)
    return {world: (_delta(classes), [_owned(row) for row in classes]) for world, classes in found.items()}


def _grouped(classes: DataFrame, by: str) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    found: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in arrow_rows(classes).to_pylist():
        found[row[by]].append(row)
    return found


def compare(
    desired: DataFrame, live: DataFrame, key: Sequence[str] = TOPIC, *, beside: Sequence[str] = ()
) -> DataFrame:
    """One row per desired or live topic; key ``key``; unordered.

    Columns: those of the key, ``presence``, ``topic_class``, ``changed`` (names of the fields that differ), and the
    structs ``desired`` and ``live``, null where the topic is not desired or not live.

    Args:
        key: The columns of both frames that name a topic, never null; the last one is ``topic``.
        beside: More columns of ``desired`` to keep; null where the topic is not desired.
    """
    d = _keyed(desired, "desired", DesiredRow._fields, key, beside)
    l = _keyed(live, "live", LiveRow._fields, key)  # noqa: E741
    same = [F.col(f"desired_{name}") == F.col(f"live_{name}") for name in key]
    names = [F.coalesce(f"desired_{name}", f"live_{name}").alias(name) for name in key]
    rows = ("desired", "live", *beside)
    changed = d.join(l, on=same, how="full_outer").select(
        *names, _presence().alias("presence"), _changed().alias("changed"), *rows
    )
    return changed.select(*key, "presence", _topic_class().alias("topic_class"), "changed", *rows)


def by_class(compared: DataFrame, key: Sequence[str] = TOPIC, *, beside: Sequence[str] = ()) -> DataFrame:
    """One row per class that occurs: the count, and the rows if they are listed.

    Key: ``topic_class``, after the columns of ``key`` before ``topic``, and the columns of ``beside``; unordered.
    """
    row = F.struct("topic", "presence", "changed", "desired", "live")
    is_listed = ~F.col("topic_class").isin(*_COUNTED_ONLY)
    return compared.groupBy(*key[:-1], "topic_class", *beside).agg(
        F.count(F.lit(1)).alias("topics"), F.collect_list(F.when(is_listed, row)).alias("listed")
    )


def _keyed(
    frame: DataFrame, side: str, fields: Sequence[str], key: Sequence[str], beside: Sequence[str] = ()
) -> DataFrame:
    """The key's columns under names of this side, the row as a struct that is named as the side is, and others."""
    names = (F.col(name).alias(f"{side}_{name}") for name in key)
    return frame.select(*names, F.struct(*fields).alias(side), *beside)


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
    """The same table as ``model.delta.class_of``."""
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
