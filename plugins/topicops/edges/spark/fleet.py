"""Many environments in one Spark application: a task for each that reads its cluster, and one join for all topics."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from topicops.edges.spark.diff import OWNER, spark_diffs
from topicops.edges.spark.session import arrow_frame, reads_files_here, spark_errors
from topicops.edges.spark.tables import files_frame
from topicops.edges.tables.table_folder import TableFolder
from topicops.model.errors import UsageError
from topicops.model.plans.delta import Delta, DesiredRow, LiveRow
from topicops.model.runs.facts import OwnedTopics

T = TypeVar("T")

READS_SETTING = "TOPICOPS_FLEET_READS"
ENVIRONMENT = "environment"
_FOLDER = r"/([^/]+)/tables/[^/]+$"
"""The folder of an environment's run, which is named as the environment is."""


def reads_on_executors(spark: SparkSession) -> bool:
    """Whether Spark's executors read the clusters: by default only those of this machine can.

    Elsewhere they need topicops, a route to each cluster, the home's disk, and get the passwords of connections.

    Raises:
        UsageError: The setting has another value.
    """
    wanted = os.environ.get(READS_SETTING)
    if wanted not in (None, "", "driver", "executors"):
        raise UsageError(f"{READS_SETTING}={wanted}: write driver or executors")
    return wanted == "executors" if wanted else _is_of_this_machine(spark)


def one_task_each(spark: SparkSession, work: Callable[[T], bytes], items: Sequence[T]) -> list[bytes]:
    """What ``work`` gives for each item, in their order. A task that is lost is repeated: it must bear that.

    Args:
        work: A function of a module that executors can import; like the items, it is sent to each task.

    Raises:
        TopicopsError: Spark failed, or a task failed too often.
    """

    def answers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pydict({"number": [number], "answer": [work(items[number])]})

    if not items:
        return []
    with spark_errors(f"reading the clusters on executors ({READS_SETTING}=driver: here)"):
        rows = spark.range(0, len(items), 1, len(items)).mapInArrow(answers, "number bigint, answer binary").toArrow()
    found = dict(zip(rows["number"].to_pylist(), rows["answer"].to_pylist(), strict=True))
    return [found[number] for number in range(len(items))]


def fleet_diffs(
    spark: SparkSession, tables: Mapping[str, TableFolder]
) -> Mapping[str, tuple[Delta, Sequence[OwnedTopics]]]:
    """The delta, and the classes by owner, of each environment that has a topic; one join for all of them.

    Args:
        tables: By environment; each in a folder ``<environment>/tables``.
    """
    desired = fleet_frame(spark, tables, "desired", (*DesiredRow._fields, *OWNER))
    live = fleet_frame(spark, tables, "topics", LiveRow._fields)
    return spark_diffs(desired, live, by=ENVIRONMENT)


def fleet_frame(spark: SparkSession, tables: Mapping[str, TableFolder], name: str, columns: Sequence[str]) -> DataFrame:
    """These columns of the tables of this name, and ``environment`` beside them.

    Spark reads the files itself if they are on its own disk; else the rows are sent to it.
    """
    if any(folder.is_shared for folder in tables.values()) or not reads_files_here(spark):
        return arrow_frame(spark, pa.concat_tables(_with_name(*each, name, columns) for each in tables.items()))
    environment = F.regexp_extract(F.col("_metadata.file_path"), _FOLDER, 1)
    return files_frame(spark, tables.values(), name).withColumn(ENVIRONMENT, environment)


def _with_name(environment: str, folder: TableFolder, name: str, columns: Sequence[str]) -> pa.Table:
    found = folder.read(name, columns=columns)
    return found.append_column(ENVIRONMENT, pa.repeat(environment, len(found)))


def _is_of_this_machine(spark: SparkSession) -> bool:
    is_connect = type(spark).__module__.startswith("pyspark.sql.connect")
    return not is_connect and str(spark.sparkContext.master).startswith("local")
