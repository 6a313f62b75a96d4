"""What Spark finds in a run's tables, each in one action: how files and cluster differ, and facts.

The same results as `steps.planning.diff` (by one full outer join) and `steps.facts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from topicops.features.spark.edges.frames import RunTables, with_health
from topicops.features.spark.edges.session import arrow_rows
from topicops.features.spark.partition_health import BROKERS_AT_FAULT, HOLDS
from topicops.model.plans.delta import Delta, DesiredRow, LiveRow, TopicClass, TopicDelta
from topicops.model.runs.facts import CAUSES, Owner, PartitionCounts
from topicops.model.specs.desired import Lifecycle
from topicops.steps.facts import Owned, OwnedTopics

OWNER = ("owner", "domain")
_COUNTED_ONLY = (TopicClass.SAME, TopicClass.RETIRED)
"""Classes whose topics are counted and not listed."""
_LISTED = ("topic", "presence", "changed", "desired", "live")
_ROWS_AT_ONCE = 10_000


def spark_diff(desired: DataFrame, live: DataFrame) -> tuple[Delta, OwnedTopics]:
    """Compare desired and live topics, and count the classes by owner, in one action.

    The frames have the columns of ``DesiredRow`` with ``domain``, and of ``LiveRow``.
    """
    batches = arrow_rows(folded(compare(desired, live, beside=OWNER))).to_batches(max_chunksize=_ROWS_AT_ONCE)
    return _read(row for batch in batches for row in batch.to_pylist())


def compare(desired: DataFrame, live: DataFrame, *, beside: Sequence[str] = ()) -> DataFrame:
    """One row per desired or live topic; key ``topic``; unordered.

    Columns: ``topic``, ``presence``, ``topic_class``, ``changed`` (names of the fields that differ), and the structs
    ``desired`` and ``live``, null where the topic is not desired or not live; and of ``desired`` those that ``beside``
    names.
    """
    desired = _named(desired, "desired", DesiredRow._fields, *beside)
    live = _named(live, "live", LiveRow._fields)
    topic, rows = F.coalesce("desired_topic", "live_topic").alias("topic"), ("desired", "live", *beside)
    presence = (
        F.when(F.col("live_topic").isNull(), F.lit("desired"))
        .when(F.col("desired_topic").isNull(), F.lit("live"))
        .otherwise(F.lit("both"))
    )
    changed = desired.join(live, on=F.col("desired_topic") == F.col("live_topic"), how="full_outer").select(
        topic, presence.alias("presence"), _changed().alias("changed"), *rows
    )
    return changed.select("topic", "presence", _topic_class().alias("topic_class"), "changed", *rows)


def folded(compared: DataFrame) -> DataFrame:
    """One row per topic of a listed class, and one per other class, owner and domain; unordered.

    Columns: those of ``compare``, null where topics are only counted, ``topics``, how many they are, and their
    live ``partitions``. So the rows that differ are spread over the tasks, and no task or cell has all of a class.
    """
    is_listed = ~F.col("topic_class").isin(*_COUNTED_ONLY)
    listed = (F.when(is_listed, F.col(name)).alias(name) for name in _LISTED)
    partitions = F.coalesce(F.sum("live.partitions"), F.lit(0)).alias("partitions")
    return compared.groupBy("topic_class", *OWNER, *listed).agg(F.count(F.lit(1)).alias("topics"), partitions)


def _named(frame: DataFrame, side: str, fields: Sequence[str], *beside: str) -> DataFrame:
    """Return the topic under a name of this side, the row as a struct that is named as the side is, and others."""
    return frame.select(F.col("topic").alias(f"{side}_topic"), F.struct(*fields).alias(side), *beside)


def _changed() -> Column:
    """Compare fields only of topics that are present in both."""
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
    """Return the same table as ``model.delta.class_of``."""
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


def _read(folded: Iterable[Mapping[str, Any]]) -> tuple[Delta, OwnedTopics]:
    owned: dict[tuple[Owner, TopicClass], Owned] = {}
    counts = dict.fromkeys(TopicClass, 0)
    topics: list[TopicDelta] = []
    for found in folded:
        topic_class = TopicClass(found["topic_class"])
        of = (found["owner"], found["domain"]), topic_class
        before = owned.get(of, Owned(0, 0))
        owned[of] = Owned(before.topics + found["topics"], before.partitions + found["partitions"])
        counts[topic_class] += found["topics"]
        if found["topic"] is not None:
            delta = TopicDelta(
                topic=found["topic"],
                presence=found["presence"],
                topic_class=topic_class,
                changed=frozenset(found["changed"]),
                desired=DesiredRow(**found["desired"]) if found["desired"] else None,
                live=LiveRow(**found["live"]) if found["live"] else None,
            )
            topics.append(delta)
    return Delta(topics=tuple(sorted(topics, key=lambda delta: delta.topic)), counts=counts), owned


def count_partitions(tables: RunTables, *, by_owner: bool = False) -> PartitionCounts:
    """Return what is counted over all partitions, in one action; the same as ``steps.facts.partition_counts``.

    The snapshot must have partition states; ``by_owner`` needs the table ``desired``.
    """
    return counts_of(arrow_rows(counted(tables, by_owner=by_owner)).to_pylist())


def counted(tables: RunTables, *, by_owner: bool = False) -> DataFrame:
    """One row for each thing that is counted; key all columns but the last; unordered.

    Columns: ``counted`` (``replicas``, ``preferred``, ``leaders``, ``rack``, ``unhealthy``, or ``owner``: unhealthy
    ones of an owner), ``broker``, ``name`` (of the rack, or the rule), ``owner``, ``domain``, ``partitions``.
    """
    who = OWNER if by_owner else ()
    broken = F.when(F.col("is_deleting"), F.slice(_unhealthy(), 1, 0)).otherwise(_unhealthy())
    rows = with_health(tables, tables.alike_partitions(*who)).withColumn("broken", broken)
    of_owner = F.slice(F.array(_item("owner", **{name: F.col(name) for name in who})), 1, F.size("broken"))
    items = rows.select(F.explode(F.concat(_held(tables), "broken", of_owner)).alias("item"), "partitions")
    keys = ("counted", "broker", "name", *OWNER)
    return items.select("item.*", "partitions").groupBy(*keys).agg(F.sum("partitions").alias("partitions"))


def _held(tables: RunTables) -> Column:
    """Return an item for each broker and rack that holds something of the partition."""
    racks = F.array_compact(F.array_distinct(F.transform("replicas", tables.rack_of)))
    leader = F.filter(F.array("leader"), lambda broker: broker >= 0)
    return F.concat(
        F.transform("replicas", lambda broker: _item("replicas", broker=broker)),
        F.transform(F.slice("replicas", 1, 1), lambda broker: _item("preferred", broker=broker)),
        F.transform(leader, lambda broker: _item("leaders", broker=broker)),
        F.transform(racks, lambda rack: _item("rack", name=rack)),
    )


def _unhealthy() -> Column:
    """Return an item for each rule that the partition breaks, and each broker that makes it break the rule."""
    return F.flatten(F.array(*map(_items_of, CAUSES)))


def _items_of(rule: str) -> Column:
    """Make an item for each broker that makes the partition break the rule, or one without broker; none if it holds."""
    brokers, holds = BROKERS_AT_FAULT[rule], F.coalesce(F.expr(HOLDS[rule]), F.lit(False))
    broken = F.expr(f"IF(size({brokers}) = 0, array(CAST(NULL AS int)), {brokers})")
    at_fault = F.when(holds, F.array().cast("array<int>")).otherwise(broken)
    return F.transform(at_fault, lambda broker: _item("unhealthy", broker=broker, name=F.lit(rule)))


def _item(counted: str, *, broker: Column | None = None, **texts: Column) -> Column:
    return F.struct(
        F.lit(counted).alias("counted"),
        (F.lit(None) if broker is None else broker).cast("int").alias("broker"),
        *(texts.get(name, F.lit(None)).cast("string").alias(name) for name in ("name", *OWNER)),
    )


def counts_of(rows: Sequence[Mapping[str, Any]]) -> PartitionCounts:
    """Read the rows of ``counted``."""

    def by_broker(counted: str) -> dict[int, int]:
        return {row["broker"]: row["partitions"] for row in rows if row["counted"] == counted}

    return PartitionCounts(
        replicas=by_broker("replicas"),
        preferred=by_broker("preferred"),
        leaders=by_broker("leaders"),
        rack_partitions={row["name"]: row["partitions"] for row in rows if row["counted"] == "rack"},
        unhealthy={(row["name"], row["broker"]): row["partitions"] for row in rows if row["counted"] == "unhealthy"},
        unhealthy_by_owner={(r["owner"], r["domain"]): r["partitions"] for r in rows if r["counted"] == "owner"},
    )
