"""Create the class-data archive (CDS) from which Spark's driver starts faster.

``python -m topicops.edges.spark.class_archive`` creates it where none fits: 170 MB in the cache folder, in about a
minute. Decision 0012 has the gain. JDK 19 can do this alone (``-XX:+AutoCreateSharedArchive``): without Java 17 this
module can go.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from topicops.edges.java import created_archive
from topicops.edges.spark.driver import archive_path, driver_java
from topicops.model.cluster.snapshot import Broker, ClusterSnapshot, LiveTopic
from topicops.model.runs.quality_rows import Afterwards
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.diagnostics import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from topicops.edges.tables.table_folder import TableFolder

_MODULE = "topicops.edges.spark.class_archive"
_TRAINING_TIMEOUT_S = 300.0


def train_archive() -> Path | None:
    """The archive for this Java and this Spark, created if it is missing; None when that fails."""
    return created_archive("Spark", lambda: archive_path(driver_java()), _train)


def _train(archive: Path) -> None:
    """Run a process of its own, because the JVM writes the archive when it ends; then rename the complete file."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{archive.stem}-", dir=archive.parent) as folder:
        made = Path(folder) / archive.name
        subprocess.run(
            [sys.executable, "-m", _MODULE, str(made)], check=True, timeout=_TRAINING_TIMEOUT_S, capture_output=True
        )
        made.replace(archive)


def _load_classes(archive: Path) -> None:
    """Load the classes that runs use: a diff, and the quality rules where Great Expectations is installed."""
    from topicops.edges.spark.diff import spark_diff
    from topicops.edges.spark.driver import training_driver
    from topicops.edges.spark.session import spark_session
    from topicops.edges.spark.tables import table_frame

    driver = training_driver(archive)
    with tempfile.TemporaryDirectory() as folder, spark_session("local[*]") as spark:
        tables, head = _tiny_tables(Path(folder))
        for _ in range(2):
            spark_diff(table_frame(spark, tables, "desired"), table_frame(spark, tables, "topics"))
        if find_spec("great_expectations"):
            _load_quality_classes(spark, tables, head)
    driver.end(timeout_s=_TRAINING_TIMEOUT_S)


def _tiny_tables(folder: Path) -> tuple[TableFolder, ClusterSnapshot]:
    """One topic that differs from its spec, and whose only partition is offline."""
    from topicops.edges.tables.desired_topics import write_desired_topics
    from topicops.edges.tables.live_topics import LiveTables
    from topicops.edges.tables.table_folder import TableFolder

    wanted = DesiredTopic(name="topic", owner="", location=Location("topic.yaml", 1, 1), partitions=2)
    live = LiveTopic(name="topic", topic_id=None, assignment={0: (1,)}, states={}, overrides={"retention.ms": "1"})
    tables = TableFolder.at(folder)
    write_desired_topics(tables, {"topic": wanted})
    with LiveTables(tables) as sink:
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


def _load_quality_classes(spark: SparkSession, folder: TableFolder, head: ClusterSnapshot) -> None:
    from topicops.edges.spark.quality import check_quality
    from topicops.edges.spark.quality_frames import (
        RunTables,
        listed_frames,
        partition_frames,
        spec_frames,
        topic_frames,
    )

    tables = RunTables(spark, folder, head)
    check_quality(spark, "before", {**spec_frames(tables), **listed_frames(tables)}, expected={"listed": 1})
    after = {**partition_frames(tables), **topic_frames(tables, Afterwards(managed=()))}
    check_quality(spark, "after", after, expected={"partition": 1}, earlier=lambda: after)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _load_classes(Path(sys.argv[1]))
    else:
        sys.stdout.write(f"Spark's class-data archive: {train_archive() or 'none, see the log'}\n")
