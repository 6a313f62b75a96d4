"""A run's tables as frames, and the health of each partition in Spark's expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from topicops.edges.tables.table_folder import TableFolder
from topicops.features.spark.edges.tables import table_frame
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.specs.topic_config import caps_min_isr, min_insync_replicas


@dataclass(frozen=True, slots=True)
class RunTables:
    """The tables of one reading of the cluster, and its head."""

    spark: SparkSession
    folder: TableFolder
    head: ClusterSnapshot
    """Its topics are not looked at."""
    _frames: dict[str, DataFrame] = field(default_factory=dict, init=False)

    def frame(self, name: str) -> DataFrame:
        if name not in self._frames:
            self._frames[name] = table_frame(self.spark, self.folder, name)
        return self._frames[name]

    def without_deleting(self, frame: DataFrame) -> DataFrame:
        going = sorted(self.head.deleting)
        return frame.filter(~F.col("topic").isin(going)) if going else frame

    def assigned_partitions(self) -> DataFrame:
        """The partitions that have replicas; while a reassignment runs, its target counts.

        Beside the table's columns: ``in_place`` (the replicas without those that are being added), ``least`` (the
        topic's ``min.insync.replicas``) and ``is_deleting``.
        """
        none = F.array().cast("array<int>")
        removing, adding = F.coalesce("removing", none), F.coalesce("adding", none)
        in_place = F.filter("replicas", lambda broker: ~F.array_contains(adding, broker))
        target = F.filter("replicas", lambda broker: ~F.array_contains(removing, broker))
        replicas = F.when(F.size(removing) > 0, target).otherwise(F.col("replicas"))
        going = F.col("topic").isin(sorted(self.head.deleting))
        topics = self.frame("topics").select("topic", least_in_sync(self).alias("least"), going.alias("is_deleting"))
        assigned = self.frame("partitions").filter(F.col("replicas").isNotNull())
        return assigned.withColumns({"replicas": replicas, "in_place": in_place}).join(topics, on="topic")

    def rack_of(self, broker: Column) -> Column:
        """The broker's rack; null if it has none or is not registered."""
        return _rack(self.head.racks, broker)

    def is_live(self, broker: Column) -> Column:
        return F.array_contains(_ids(self.head.brokers), broker)


def with_health(tables: RunTables, rows: DataFrame) -> DataFrame:
    """Rows with the columns of ``assigned_partitions`` get all others of ``PartitionRow``.

    As ``model.cluster.health``, to which a test holds it. ``least`` is the topic's ``min.insync.replicas``.
    """
    isr = F.coalesce("isr", F.array().cast("array<int>"))
    racks = tables.head.racks
    leader = F.coalesce("leader", F.lit(-1))
    used = F.size(F.array_distinct(F.transform("replicas", tables.rack_of)))
    return rows.withColumns(
        {
            "leader": leader,
            "leader_is_live": tables.is_live(leader),
            "isr": isr,
            "missing_replicas": F.filter("in_place", lambda broker: ~F.array_contains(isr, broker)),
            "dead_replicas": F.filter("replicas", lambda broker: ~tables.is_live(broker)),
            # As needed_in_sync.
            "min_isr": F.least("least", F.size("replicas")) if caps_min_isr(tables.head.releases) else F.col("least"),
            "racks_used": used,
            "racks_possible": _racks_possible(racks),
        }
    )


def _racks_possible(racks: Mapping[int, str | None]) -> Column:
    """0 where the rack of one broker is not known, or a replica is on a broker that is not registered."""
    everywhere = set(racks.values())
    if None in everywhere or not everywhere:
        return F.lit(0)
    has_rack = F.forall("replicas", lambda broker: F.array_contains(_ids(racks), broker))
    return F.when(has_rack, F.least(F.size("replicas"), F.lit(len(everywhere)))).otherwise(F.lit(0))


def _rack(racks: Mapping[int, str | None], broker: Column) -> Column:
    """The broker's rack; null if it has none or is not registered."""
    known = [(F.lit(id_), F.lit(rack)) for id_, rack in sorted(racks.items()) if rack is not None]
    return (
        F.try_element_at(F.create_map(*(column for pair in known for column in pair)), broker) if known else F.lit(None)
    )


def least_in_sync(tables: RunTables) -> Column:
    """The topic's own value, else the brokers' default."""
    return F.coalesce("min_insync_replicas", F.lit(min_insync_replicas({}, tables.head.broker_defaults)))


def _ids(brokers: Iterable[int]) -> Column:
    return F.lit(sorted(brokers)).cast("array<int>") if brokers else F.array().cast("array<int>")
