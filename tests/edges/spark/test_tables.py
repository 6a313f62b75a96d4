"""A run's tables, read by Spark wherever they are."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from fakes.builders import desired_topic
from topicops.edges.tables.table_folder import TableFolder
from topicops.edges.tables.topics import write_desired_topics
from topicops.features.spark.edges.frames import table_frame
from topicops.model.release import USUAL


def test_a_folder_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    tables = TableFolder.at(tmp_path / "a[1]{b,c}*?" / "d\\e%20 f:g#h" / "i=j")
    write_desired_topics(tables, {"orders": desired_topic("orders", 1)}, USUAL)

    frame = table_frame(spark, tables, "desired")

    assert [row.topic for row in frame.select("topic").collect()] == ["orders"]
    assert "i" not in frame.columns
