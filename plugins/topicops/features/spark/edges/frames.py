"""A run's tables as frames, wherever Spark runs, and the health of each partition in Spark's expressions."""

from __future__ import annotations

import atexit
import logging
import shutil
import tempfile
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, IllegalArgumentException, UnknownException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import from_arrow_schema

from topicops.edges.tables.schemas import SCHEMAS
from topicops.edges.tables.table_folder import TableFolder
from topicops.features.spark.edges.causes import reason_of
from topicops.features.spark.edges.session import arrow_frame, is_connect, reads_files_here, spark_step
from topicops.features.spark.settings import without_secrets
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.specs.topic_config import caps_min_isr, min_insync_replicas

_AS_PATTERNS = "__globPaths__"
"""An option of Spark's own reader (``DataSource.GLOB_PATHS_KEY``): whether ``[``, ``*`` match other names."""

_SIGNS = frozenset("[]{}*?\\")
"""Special characters of Hadoop's patterns of file names."""
_REFUSALS = (AnalysisException, IllegalArgumentException, UnknownException, Py4JJavaError)
"""Errors of a Spark that answers."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunTables:
    """The tables of one reading of the cluster, and its head."""

    spark: SparkSession
    folder: TableFolder
    head: ClusterSnapshot
    """Snapshot without its topics, which are not read."""
    name: str
    """``<environment> <run>``, by which Spark's pages name its jobs."""
    _frames: dict[str, DataFrame] = field(default_factory=dict, init=False)

    def frame(self, name: str) -> DataFrame:
        if name not in self._frames:
            self._frames[name] = table_frame(self.spark, self.folder, name)
        return self._frames[name]

    def assigned_partitions(self) -> DataFrame:
        """Return the partitions that have replicas; while a reassignment runs, its target counts.

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

    def alike_partitions(self, *of_desired: str) -> DataFrame:
        """Return the assigned partitions that are alike as one row, and ``partitions``, how many they are.

        ``of_desired`` are columns of the table ``desired`` in which they must be alike too.

        Many partitions have few lists of replicas: each combination is judged once, by facts and rules alike.
        """
        columns = ("replicas", "in_place", "leader", "isr", "least", "is_deleting", *of_desired)
        rows = self.assigned_partitions()
        if of_desired:
            rows = rows.join(self.frame("desired").select("topic", *of_desired), on="topic", how="left")
        return rows.groupBy(*columns).agg(F.count(F.lit(1)).alias("partitions"))

    def step(self, name: str, *, rows: int) -> AbstractContextManager[None]:
        """Run jobs over these tables as a step: see ``spark_step``."""
        return spark_step(self.spark, f"{self.name} {name}", rows=rows)

    def rack_of(self, broker: Column) -> Column:
        """Return the broker's rack; null if it has none or is not registered."""
        known = [F.lit(text) for pair in sorted(self.head.racks.items()) if pair[1] is not None for text in pair]
        return F.try_element_at(F.create_map(*known), broker) if known else F.lit(None)

    def is_live(self, broker: Column) -> Column:
        ids = F.lit(sorted(self.head.brokers)) if self.head.brokers else F.array()
        return F.array_contains(ids.cast("array<int>"), broker)


def with_health(tables: RunTables, rows: DataFrame) -> DataFrame:
    """Rows with the columns of ``assigned_partitions`` get all others of ``PartitionRow``.

    As ``model.cluster.health``, to which a test holds it. ``least`` is the topic's ``min.insync.replicas``.
    """
    isr = F.coalesce("isr", F.array().cast("array<int>"))
    leader = F.coalesce("leader", F.lit(-1))
    return rows.withColumns(
        {
            "leader": leader,
            "leader_is_live": tables.is_live(leader),
            "isr": isr,
            "missing_replicas": F.filter("in_place", lambda broker: ~F.array_contains(isr, broker)),
            "dead_replicas": F.filter("replicas", lambda broker: ~tables.is_live(broker)),
            # As needed_in_sync.
            "min_isr": F.least("least", F.size("replicas")) if caps_min_isr(tables.head.releases) else F.col("least"),
            "racks_used": F.size(F.array_distinct(F.transform("replicas", tables.rack_of))),
            "racks_possible": _racks_possible(tables),
        }
    )


def _racks_possible(tables: RunTables) -> Column:
    """0 where the rack of one broker is not known, or a replica is on a broker that is not registered."""
    everywhere = set(tables.head.racks.values())
    if None in everywhere or not everywhere:
        return F.lit(0)
    has_rack = F.forall("replicas", tables.is_live)
    return F.when(has_rack, F.least(F.size("replicas"), F.lit(len(everywhere)))).otherwise(F.lit(0))


def least_in_sync(tables: RunTables) -> Column:
    """Return the topic's own value, else the brokers' default."""
    return F.coalesce("min_insync_replicas", F.lit(min_insync_replicas({}, tables.head.broker_defaults)))


def table_frame(spark: SparkSession, tables: TableFolder, name: str) -> DataFrame:
    """Return one table. Spark reads the file itself, unless it runs elsewhere without it: then the rows are sent.

    A Spark on this host reads a copy of a table that is in a store, so it needs neither the store's driver nor a key;
    and a copy where a Connect server would take the path for a pattern, since it does not get the option for that.
    """
    is_here = reads_files_here(spark)
    is_pattern = is_connect(spark) and not _SIGNS.isdisjoint(tables.path)
    if is_here and (is_pattern or not tables.is_local):
        tables = tables.copy(name, Path(tempfile.mkdtemp(dir=_copies())))
    if is_here or tables.is_shared:
        try:
            return _file_frame(spark, tables, name)
        except _REFUSALS as error:
            reason = without_secrets(reason_of(error))
            _log.warning("Spark cannot read %s, so its rows are sent: %s", tables.uri(name), reason)
    return arrow_frame(spark, tables.read(name))


def _file_frame(spark: SparkSession, tables: TableFolder, name: str) -> DataFrame:
    """Return the table, read by Spark itself, whatever characters the file's name has.

    Its columns are known, so that Spark need not look into the file to plan a query.
    """
    reader = spark.read.schema(from_arrow_schema(SCHEMAS[name])).option(_AS_PATTERNS, "false")
    frame = reader.parquet(tables.uri(name))
    frame.columns  # noqa: B018 - only now Spark Connect looks for the file
    return frame


@cache
def _copies() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="topicops-tables-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
