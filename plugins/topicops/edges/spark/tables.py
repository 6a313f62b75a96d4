"""A run's tables as frames."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from topicops.edges.spark.session import arrow_frame, reads_files_here
from topicops.edges.tables.schemas import SCHEMAS
from topicops.edges.tables.table_folder import TableFolder

_AS_PATTERNS = "__globPaths__"
"""An option of Spark's own reader (``DataSource.GLOB_PATHS_KEY``): whether ``[``, ``*`` match other names."""


def table_frame(spark: SparkSession, tables: TableFolder, name: str) -> DataFrame:
    """One table. Its columns are known, so that Spark need not look into the file to plan a query.

    A Spark on other machines cannot read this one's disk: then the rows are sent to it.
    """
    if tables.is_local and not reads_files_here(spark):
        return arrow_frame(spark, tables.read(name))
    frame = spark.read.schema(from_arrow_schema(SCHEMAS[name]))
    return frame.option(_AS_PATTERNS, "false").parquet(tables.uri(name))
