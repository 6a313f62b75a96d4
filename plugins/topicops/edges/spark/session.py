"""The Spark session: one setting, ``TOPICOPS_SPARK``, says where Spark runs; the code is the same everywhere."""

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

Place = Literal["local", "cluster", "connect"]
_PLACES: Mapping[Place, re.Pattern[str]] = {
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
# One row a topic is little: few tasks, and no second planning between stages.
_SMALL = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}


@contextmanager
def spark_session(setting: str | None = None) -> Iterator[SparkSession]:
    """A session where ``setting`` says: ``local[*]``, ``spark://``, ``yarn``, ``k8s://`` or ``sc://`` (Spark Connect).

    None takes ``TOPICOPS_SPARK``, else ``local[*]``. A session that this process already runs is lent out and left
    running; a new one is stopped on leaving, while its Java process stays for the next until this process ends.

    Raises:
        UsageError: The setting is none of these forms.
        TopicopsError: No fitting Java, or Spark could not be started or reached.
    """
    where = setting or os.environ.get(SETTING) or DEFAULT
    place = place_of(where)
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    session = _open(where, place)
    try:
        yield session
    finally:
        with suppress(PySparkException, Py4JError, OSError):
            session.stop()


def arrow_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The table as a frame. The schema is spelled out: Spark Connect takes no empty table without one."""
    return spark.createDataFrame(table, schema=from_arrow_schema(table.schema))


@contextmanager
def spark_errors(doing: str) -> Iterator[None]:
    """Turn what Spark raises into one sentence that begins with ``doing``."""
    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise TopicopsError(f"{doing}: Spark failed: {reason[0][:500]}; look at {SETTING}, or run once more") from error


def place_of(setting: str) -> Place:
    """What kind of Spark the setting names. Raises ``UsageError``."""
    for place, pattern in _PLACES.items():
        if pattern.fullmatch(setting):
            return place
    raise UsageError(f"{SETTING}={setting}: write local[*], local[N], spark://…, yarn, k8s://… or sc://…")


def _open(setting: str, place: Place) -> SparkSession:
    with spark_errors(f"{SETTING}={setting}"):
        match place:
            case "local":
                driver = local_driver()
                return _classic(driver, _local_settings(setting, str(driver.folder)))
            case "cluster":
                settings = _cluster_settings(setting)
                return _classic(cluster_driver(tuple(settings.items())), settings)
            case "connect":
                return _connect(setting)
            case _:
                assert_never(place)


def _connect(address: str) -> SparkSession:
    """Look first whether anybody listens: Spark's client would try for many minutes before it says no."""
    parts = urlsplit(address)
    try:
        socket.create_connection((parts.hostname or "", parts.port or _CONNECT_PORT), _CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        raise TopicopsError(
            f"{SETTING}={address}: nobody answers there ({error}); start the server or unset it"
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
    """What is ours to say; the rest stands in the cluster's own ``spark-defaults.conf``."""
    nearby = _ON_LOOPBACK if re.search(r"local-cluster|//(127\.0\.0\.1|localhost)[:/]", master) else {}
    log4j2 = {"spark.driver.extraJavaOptions": log4j2_flag()}
    return {"spark.master": master, **_EVERYWHERE, **_OWN_DRIVER, **nearby, **log4j2}


def _conf(settings: Mapping[str, str]) -> SparkConf:
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


@contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Spark's Python side sets a SIGINT handler of its own; the command's stays."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
