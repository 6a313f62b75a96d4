"""Have Spark load what runs use, on tiny tables; the class-data archive has the classes that this loads.

So an edit of this file makes the next archive a new one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from topicops.edges.tables.table_folder import TableFolder
from topicops.edges.tables.topics import LiveTables, write_desired_topics
from topicops.features.spark.edges.comparison import count_partitions, spark_diff
from topicops.features.spark.edges.frames import RunTables, table_frame
from topicops.features.spark.edges.session import arrow_frame, arrow_rows
from topicops.model.cluster.snapshot import Broker, ClusterSnapshot, LiveTopic
from topicops.model.release import USUAL
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.diagnostics import Location

_ROUNDS = 2


def warm_up(spark: SparkSession) -> None:
    """Ask each of a run's questions, and one that has the functions of Spark that rules over all rows use."""
    with tempfile.TemporaryDirectory(prefix="topicops-warm-up-") as folder:
        tables, head = _tiny_tables(Path(folder, "tables"))
        for _ in range(_ROUNDS):
            spark_diff(table_frame(spark, tables, "desired"), table_frame(spark, tables, "topics"))
            count_partitions(RunTables(spark, tables, head, "warm-up"))
            _judge_rows(RunTables(spark, tables, head, "warm-up"))


def _tiny_tables(folder: Path) -> tuple[TableFolder, ClusterSnapshot]:
    """Write one topic that differs from its spec, and whose only partition is offline."""
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


def _judge_rows(tables: RunTables) -> None:
    configs = F.explode(F.from_json("configs", "map<string,string>")).alias("config", "text")
    times = F.count(F.lit(1)).over(Window.partitionBy("topic")).alias("times")
    wanted = tables.frame("desired").select("topic", times, configs)
    rows = arrow_frame(tables.spark, arrow_rows(wanted.unionByName(tables.frame("topics"), allowMissingColumns=True)))
    rows.agg(F.count(F.lit(1)), F.sum((F.coalesce("times", F.lit(0)) > 1).cast("long"))).collect()
    first = rows.filter(F.expr("topic <> ''")).orderBy("topic").limit(1)
    first.union(first).select(F.to_json(F.struct("topic", "config"))).collect()
