"""A run's tables as frames."""

from __future__ import annotations

import atexit
import logging
import shutil
import tempfile
from functools import cache
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, IllegalArgumentException, UnknownException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from topicops.edges.tables.schemas import SCHEMAS
from topicops.edges.tables.table_folder import TableFolder
from topicops.features.spark.edges.failures import reason_of
from topicops.features.spark.edges.session import arrow_frame, reads_files_here
from topicops.features.spark.settings import without_secrets

_AS_PATTERNS = "__globPaths__"
"""An option of Spark's own reader (``DataSource.GLOB_PATHS_KEY``): whether ``[``, ``*`` match other names."""

_SIGNS = frozenset("[]{}*?\\")
"""Of Hadoop's patterns of file names."""
_REFUSALS = (AnalysisException, IllegalArgumentException, UnknownException, Py4JJavaError)
"""Of a Spark that answers."""
_log = logging.getLogger(__name__)


def table_frame(spark: SparkSession, tables: TableFolder, name: str) -> DataFrame:
    """One table. Spark reads the file itself, unless it runs elsewhere and does not find it: then the rows are sent.

    A Spark on this host reads a copy of a table that is in a store, so it needs neither the store's driver nor a key;
    and a copy where a Connect server would take the path for a pattern, since it does not get the option for that.
    """
    is_here = reads_files_here(spark)
    is_pattern = type(spark).__module__.startswith("pyspark.sql.connect") and not _SIGNS.isdisjoint(tables.path)
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
    """The table, read by Spark itself, whatever characters the file's name has.

    Its columns are known, so that Spark need not look into the file to plan a query.
    """
    reader = spark.read.schema(from_arrow_schema(SCHEMAS[name])).option(_AS_PATTERNS, "false")
    frame = reader.parquet(tables.uri(name))
    frame.columns  # noqa: B018 - only now Spark Connect looks for the file
    return frame


@cache
def _copies() -> Path:
    """A folder of this process; it ends with it."""
    folder = Path(tempfile.mkdtemp(prefix="topicops-tables-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
