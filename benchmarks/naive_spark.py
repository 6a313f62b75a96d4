"""The plan's pipeline as people write it first: Spark as it comes, rows from Python, ``from_json``, two actions.

It reads specs and znodes by our own quick readers, so that only what is done with Spark differs. A command of its own:
``python -m benchmarks.naive_spark TOPICS_FOLDER ZOOKEEPER OUT``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

TOPIC_JSON = "partitions map<string, array<int>>"
CONFIG_JSON = "config map<string, string>"
DESIRED = StructType(
    [
        StructField("topic", StringType()),
        StructField("partitions", IntegerType()),
        StructField("replication_factor", IntegerType()),
        StructField("configs", StringType()),
    ]
)


def main(folder: str, zookeeper: str, out: str) -> None:
    desired, live = desired_rows(Path(folder)), live_rows(zookeeper)
    spark: SparkSession = SparkSession.builder.getOrCreate()
    wanted = spark.createDataFrame(desired, DESIRED).withColumn("configs", F.from_json("configs", "map<string,string>"))
    found = (
        spark.createDataFrame(live, "topic string, data string, config string")
        .withColumn("data", F.from_json("data", TOPIC_JSON))
        .withColumn("config", F.from_json("config", CONFIG_JSON))
        .select(
            F.col("topic").alias("live_topic"),
            F.size("data.partitions").alias("live_partitions"),
            F.array_min(F.transform(F.map_values("data.partitions"), F.size)).alias("live_replication_factor"),
            F.col("config.config").alias("live_configs"),
        )
    )
    joined = wanted.join(found, F.col("topic") == F.col("live_topic"), "full_outer")
    entries = (F.array_sort(F.map_entries(name)) for name in ("configs", "live_configs"))
    same_configs = next(entries) == next(entries)
    compared = joined.withColumn(
        "topic_class",
        F.when(F.col("live_topic").isNull(), "missing")
        .when(F.col("topic").isNull(), "unmanaged")
        .when(F.col("partitions") != F.col("live_partitions"), "different")
        .when(F.col("replication_factor") != F.col("live_replication_factor"), "different")
        .when(~same_configs, "different")
        .otherwise("same"),
    )
    counts = {row["topic_class"]: row["count"] for row in compared.groupBy("topic_class").count().collect()}
    differing = [row.asDict(recursive=True) for row in compared.filter("topic_class != 'same'").collect()]
    Path(out).write_text(json.dumps({"counts": counts, "topics": differing}), encoding="utf-8")
    spark.stop()


def desired_rows(folder: Path) -> list[tuple[str, int, int, str]]:
    from topicops.edges.specs.reader import read_tree
    from topicops.flow.runs.run import now
    from topicops.steps.specs.validate import validate

    _, desired = validate(read_tree(folder), environment="bench", now=now()).require()
    return [
        (topic.name, topic.partitions, topic.replication_factor, json.dumps(dict(topic.configs)))
        for topic in desired.topics.values()
    ]


def live_rows(zookeeper: str) -> list[tuple[str, str, str]]:
    from topicops.edges.zookeeper.multi_read import read_batched
    from topicops.edges.zookeeper.session import ZooKeeperSession

    with ZooKeeperSession(zookeeper) as session:
        names = sorted(session.children("/brokers/topics") or ())
        topics = read_batched(session, [f"/brokers/topics/{name}" for name in names])
        configs = read_batched(session, [f"/config/topics/{name}" for name in names])
    return [
        (name, (topic.data or b"").decode(), (config.data or b"").decode())
        for name, topic, config in zip(names, topics, configs, strict=True)
        if topic is not None and config is not None
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
