"""Have Spark load what runs use, on tiny tables: only the first diff and the first rules take seconds.

The class-data archive has the classes that this loads, so an edit of this file makes the next archive a new one.
"""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

from topicops.edges.spark.diff import spark_diff
from topicops.edges.spark.facts import count_partitions
from topicops.edges.spark.fleet import fleet_diffs
from topicops.edges.spark.quality_frames import RunTables
from topicops.edges.spark.tables import table_frame
from topicops.edges.tables.desired_topics import write_desired_topics
from topicops.edges.tables.live_topics import LiveTables
from topicops.edges.tables.table_folder import TableFolder
from topicops.model.cluster.snapshot import Broker, ClusterSnapshot, LiveTopic
from topicops.model.release import USUAL
from topicops.model.runs.quality_rows import Afterwards
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.diagnostics import Location

_NAME = "warm-up"
_ROUNDS = 2


def warm_up(spark: SparkSession) -> None:
    """Ask each of a run's questions, the quality rules where Great Expectations is installed, and those of a fleet."""
    with tempfile.TemporaryDirectory(prefix="topicops-warm-up-") as folder:
        tables, head = _tiny_tables(Path(folder, _NAME, "tables"))
        fleet_diffs(spark, {_NAME: tables})
        for _ in range(_ROUNDS):
            spark_diff(table_frame(spark, tables, "desired"), table_frame(spark, tables, "topics"))
            count_partitions(RunTables(spark, tables, head))
            if find_spec("great_expectations"):
                _check_quality(spark, tables, head)


def _tiny_tables(folder: Path) -> tuple[TableFolder, ClusterSnapshot]:
    """One topic that differs from its spec, and whose only partition is offline."""
    wanted = DesiredTopic(name="topic", owner="", location=Location("topic.yaml", 1, 1), partitions=2)
    live = LiveTopic(name="topic", topic_id=None, assignment={0: (1,)}, states={}, overrides={"retention.ms": "1"})
    tables = TableFolder.at(folder)
    write_desired_topics(tables, {"topic": wanted}, USUAL)
    with LiveTables(tables, USUAL) as sink:
        sink.begin()
        sink.take([live])
        topics = sink.finish()
    head = ClusterSnapshot(
        cluster_id="",
        chroot="",
        source="zookeeper",
        controller_id=None,
        controller_epoch=None,
        brokers={2: Broker(id=2, rack="a", endpoints=())},
        topics=topics,
        deleting={},
    )
    return tables, head


def _check_quality(spark: SparkSession, folder: TableFolder, head: ClusterSnapshot) -> None:
    from topicops.edges.spark.quality import check_quality
    from topicops.edges.spark.quality_frames import (
        listed_frames,
        partition_frames,
        spec_frames,
        topic_frames,
    )

    tables = RunTables(spark, folder, head)
    check_quality(spark, "before", {**spec_frames(tables), **listed_frames(tables)}, expected={"listed": 1})
    after = {**partition_frames(tables), **topic_frames(tables, Afterwards(managed=()))}
    check_quality(spark, "after", after, expected={"partition": 1}, earlier=lambda: after)
