"""The Spark session: the setting ``TOPICOPS_SPARK`` chooses where Spark runs; the code is the same everywhere."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Literal, assert_never
from urllib.parse import urlsplit

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from topicops.edges.spark.driver import LOOPBACK, SparkDriver, cluster_driver, local_driver, log4j2_flag
from topicops.model.errors import TopicopsError, UsageError

SETTING = "TOPICOPS_SPARK"
DEFAULT = "local[*]"

SparkKind = Literal["local", "cluster", "connect"]
_KINDS: Mapping[SparkKind, re.Pattern[str]] = {
    "local": re.compile(r"local(\[(\d+|\*)(,\d+)?\])?"),
    "cluster": re.compile(r"local-cluster\[\d+,\d+,\d+\]|spark://.+|yarn|k8s://.+"),
    "connect": re.compile(r"sc://.+"),
}
_CONNECT_PORT = 15002
_CONNECT_TIMEOUT_S = 10.0

_EVERYWHERE = {"spark.sql.session.timeZone": "UTC"}
_OWN_DRIVER = {
    "spark.app.name": "topicops",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
}
_ON_LOOPBACK = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
# One row for each topic is little data: few tasks, and no planning between stages.
_SMALL = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}


@contextmanager
def spark_session(setting: str | None = None) -> Iterator[SparkSession]:
    """A session on ``setting``: ``local[*]``, ``spark://``, ``yarn``, ``k8s://`` or ``sc://`` (Spark Connect).

    None means ``TOPICOPS_SPARK``, else ``local[*]``. An active session of this process is reused and left running. A
    new session is stopped at the end; its Java process is kept for the next session, until this process ends.

    Raises:
        UsageError: The setting has none of these forms.
        TopicopsError: There is no suitable Java, or Spark could not be started or reached.
    """
    where = setting or os.environ.get(SETTING) or DEFAULT
    kind = spark_kind(where)
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    session = _open(where, kind)
    try:
        yield session
    finally:
        with suppress(PySparkException, Py4JError, OSError):
            session.stop()


def arrow_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The table as a frame. The schema is given because Spark Connect needs it for an empty table."""
    return spark.createDataFrame(table, schema=from_arrow_schema(table.schema))


@contextmanager
def spark_errors(doing: str) -> Iterator[None]:
    """Translate errors of Spark into one sentence that begins with ``doing``."""
    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise TopicopsError(f"{doing}: Spark failed: {reason[0][:500]}; check {SETTING}, or run again") from error


def spark_kind(setting: str) -> SparkKind:
    """The kind of Spark that the setting names. Raises ``UsageError``."""
    for kind, pattern in _KINDS.items():
        if pattern.fullmatch(setting):
            return kind
    raise UsageError(f"{SETTING}={setting}: write local[*], local[N], spark://…, yarn, k8s://… or sc://…")


def _open(setting: str, kind: SparkKind) -> SparkSession:
    with spark_errors(f"{SETTING}={setting}"):
        match kind:
            case "local":
                driver = local_driver()
                return _classic(driver, _local_settings(setting, str(driver.folder)))
            case "cluster":
                settings = _cluster_settings(setting)
                return _classic(cluster_driver(tuple(settings.items())), settings)
            case "connect":
                return _connect(setting)
            case _:
                assert_never(kind)


def _connect(address: str) -> SparkSession:
    """Check first that the port is open, because Spark's client would retry for many minutes."""
    parts = urlsplit(address)
    try:
        socket.create_connection((parts.hostname or "", parts.port or _CONNECT_PORT), _CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        raise TopicopsError(
            f"{SETTING}={address}: no server answers there ({error}); start the server or unset {SETTING}"
        ) from error
    session: SparkSession = SparkSession.builder.remote(address).getOrCreate()
    for name, value in _EVERYWHERE.items():
        session.conf.set(name, value)
    return session


def _classic(driver: SparkDriver, settings: Mapping[str, str]) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _own_interrupt_handler():
        context = SparkContext(conf=_conf(settings), gateway=driver.gateway)
    return SparkSession(context)


def _local_settings(master: str, folder: str) -> dict[str, str]:
    places = {"spark.local.dir": folder, "spark.sql.warehouse.dir": f"{folder}/warehouse"}
    return {"spark.master": master, **_EVERYWHERE, **_OWN_DRIVER, **_ON_LOOPBACK, **_SMALL, **places}


def _cluster_settings(master: str) -> dict[str, str]:
    """Our settings; the others are in the cluster's own ``spark-defaults.conf``."""
    loopback = _ON_LOOPBACK if re.search(r"local-cluster|//(127\.0\.0\.1|localhost)[:/]", master) else {}
    log4j2 = {"spark.driver.extraJavaOptions": log4j2_flag()}
    return {"spark.master": master, **_EVERYWHERE, **_OWN_DRIVER, **loopback, **log4j2}


def _conf(settings: Mapping[str, str]) -> SparkConf:
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


@contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Keep the command's SIGINT handler, which PySpark replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
