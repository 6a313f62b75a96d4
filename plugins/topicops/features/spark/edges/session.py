"""The Spark session, wherever ``features.spark.settings`` says that Spark runs, and the steps that run on it."""

from __future__ import annotations

import getpass
import os
import re
import socket
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING, cast
from urllib.request import ProxyHandler, build_opener

import pyarrow as pa
from pyspark import __version__ as pyspark_version
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from topicops.edges.connections.lookup import from_environment
from topicops.edges.threads import run_in_thread
from topicops.features.spark.edges.causes import ENDED, FAILURES, reason_of, spark_errors
from topicops.features.spark.edges.driver import (
    LOOPBACK,
    SparkDriver,
    awaited,
    cluster_driver,
    has_ended,
    local_driver,
    log4j2_flag,
    without_host_settings,
)
from topicops.features.spark.edges.session_settings import MEANING, require_effective, require_known, settings_for
from topicops.features.spark.settings import CONF_SETTING, SETTING, SparkPlace, spark_place, without_secrets
from topicops.flow.engines import Progress
from topicops.flow.runs.run import no_progress
from topicops.model.errors import TopicopsError, UsageError
from topicops.model.ports import ConnectionSource

if TYPE_CHECKING:
    from pyspark import SparkContext

START_S = 120.0
"""Seconds that Spark may take to start, or to accept an application; a cluster may have a queue."""
CLUSTER_START_S = 300.0
CONNECT_S = 10.0
_HERE = frozenset({LOOPBACK, "localhost", "::1"})

_OWN_DRIVER = {
    "spark.app.name": "topicops",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
}
_ON_LOOPBACK = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.ui.enabled": "false",  # it would listen on every interface
}
_SMALL_PAGES = {"spark.buffer.pageSize": "2m"}
"""Each sort and each join of each task begins with a page; Spark's own size is 16 MB for a heap of 1 GB."""
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""Variables by which gRPC goes through a proxy, in its order."""
_DESCRIPTION = "spark.job.description"
_PAGE_PORT = 8080
_PAGE_S = 2.0
_RELEASE_ON_PAGE = re.compile(rb'class="version"[^>]{0,200}>\s{0,200}([0-9][0-9.]*)')
_MASTER_ON_PAGE = re.compile(rb"spark://[^\s<:]+:([0-9]+)")


@dataclass(slots=True)
class _Application:
    """A Spark of this machine that starts, or runs, for a block of ``spark_application``."""

    place: SparkPlace
    start: Future[SparkContext]
    progress: Progress
    _session: SparkSession | None = None

    def session(self) -> SparkSession:
        if self._session is None:
            with spark_errors(self.place.named):
                self._session = SparkSession(awaited(self.start, START_S, self.progress))
        return self._session

    def stop(self) -> None:
        with suppress(*FAILURES, TopicopsError):
            awaited(self.start, START_S, no_progress).stop()


_applications: list[_Application] = []
"""Application of the current block; pyspark allows one."""


@contextmanager
def spark_session(
    setting: str | None = None, *, connections: ConnectionSource = from_environment, progress: Progress = no_progress
) -> Iterator[SparkSession]:
    """Open a session on ``setting``, which has a form of ``TOPICOPS_SPARK``; None means that variable.

    An active session of this process is reused and left running, that of ``spark_application`` too. A new session is
    stopped at the end; its Java process is kept for the next session, until this process ends. A start that takes long
    says so to ``progress``.

    Raises ``UsageError`` for a setting, and ``TopicopsError`` where Spark could not be started or reached, or fails.
    """
    place = spark_place(setting, connections)
    with spark_errors(place.named):
        running = _running()
        if running is not None:
            yield running
            return
        for application in _applications:
            if application.place == place:
                yield application.session()
                return
        require_effective(place)
        with without_host_settings():
            session = _open(place, progress)
            try:
                yield session
            finally:
                with suppress(*FAILURES):
                    session.stop()


@contextmanager
def spark_application(
    *,
    connections: ConnectionSource = from_environment,
    progress: Progress = no_progress,
    kept: Callable[[], SparkDriver | None] = lambda: None,
) -> Iterator[None]:
    """Keep one application for all of a block: each ``spark_session`` in it has the same session.

    ``kept`` gives a Spark of this machine that another process keeps, where there is one.

    A Spark of this machine starts beside the block's other work, and the first session waits for it. Elsewhere an
    application takes resources, so it starts when it is needed; but whether a server answers is asked now.

    Raises ``UsageError`` for a setting, and ``TopicopsError`` where no server answers.
    """
    place = spark_place(None, connections)
    if _applications or _running() is not None:
        yield
        return
    require_effective(place)
    if place.kind != "local":
        _require_server(place)
        yield
        return
    with without_host_settings():
        # In another thread than the main one, PySpark leaves the command's SIGINT handler alone.
        application = _Application(place, run_in_thread(lambda: _context(place, kept)), progress)
        _applications.append(application)
        try:
            yield
        finally:
            _applications.remove(application)
            application.stop()


def _running() -> SparkSession | None:
    """Return the active session of this process. Raises ``TopicopsError`` when its Java process has ended."""
    # A process that was just killed refuses connections a moment before it has ended.
    with suppress(*FAILURES):
        if not has_ended():
            return SparkSession.getActiveSession()
    raise TopicopsError(f"{ENDED}; start this command or task again")


@contextmanager
def spark_step(spark: SparkSession, name: str, *, rows: int) -> Iterator[None]:
    """Run a block's jobs as one step: planned for so many rows, and under a name that Spark's pages show.

    The name is the jobs' tag too, by which Spark can cancel them. On Spark Connect the server writes the description
    itself, and its page shows the tag. The name is ``<environment> <run> <step>``; 0 rows means that nobody knows.

    Raises ``TopicopsError``, which begins with the name of the step.
    """
    tag = f"topicops {name}".replace(",", " ")  # Spark allows no comma in a tag
    settings = {**MEANING, **settings_for(rows)}
    with spark_errors(name.rpartition(" ")[2]), _named(spark, tag):
        before = _settings(spark, settings)
        try:
            _set(spark, settings)
            yield
        finally:
            with suppress(*FAILURES):
                _set(spark, before)


@contextmanager
def _named(spark: SparkSession, tag: str) -> Iterator[None]:
    if is_connect(spark):
        spark.addTag(tag)
        try:
            yield
        finally:
            with suppress(*FAILURES):
                spark.removeTag(tag)
        return
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.addJobTag(tag)  # that of the session is one that only its own thread can cancel
    context.setJobDescription(tag)
    try:
        yield
    finally:
        with suppress(*FAILURES):
            context.removeJobTag(tag)
            context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]  # None removes it


def is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def reads_files_here(spark: SparkSession) -> bool:
    """Return whether all processes of this Spark run on this machine, so that each reads the files of its disk."""
    if is_connect(spark):
        return spark.client.host.strip("[]") in _HERE
    master = str(spark.sparkContext.master)
    if master.startswith("local"):
        return True
    place = spark_place(master, from_environment)
    return bool(place.servers) and all(host in _HERE for host, _ in place.servers)


def _set(spark: SparkSession, conf: Mapping[str, str | None]) -> None:
    given = {name: value for name, value in conf.items() if value is not None}
    if set_all := getattr(spark.conf, "_set_all", None):  # Spark Connect, where each call is a request
        set_all(given, silent=False)
    else:
        for name, value in given.items():
            spark.conf.set(name, value)
    for name in conf.keys() - given:
        spark.conf.unset(name)


def _settings(spark: SparkSession, names: Collection[str]) -> Mapping[str, str | None]:
    """Return what they are set to; None means that one is not set."""
    if is_connect(spark):
        return dict.fromkeys(names) | {name: text for name, text in spark.conf.getAll.items() if name in names}
    return {name: spark.conf.get(name, None) for name in names}


def arrow_rows(frame: DataFrame) -> pa.Table:
    """Return all rows of the frame.

    ``toArrow`` of Spark Connect first asks for the schema (PySpark 4.3), so that the server plans the query twice.
    """
    to_table = getattr(frame, "_to_table", None)
    return frame.toArrow() if to_table is None else to_table()[0]


def arrow_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return the table as a frame. The schema is given because Spark Connect needs it for an empty table."""
    return spark.createDataFrame(table, schema=from_arrow_schema(table.schema))


def _open(place: SparkPlace, progress: Progress = no_progress) -> SparkSession:
    with spark_errors(place.named):
        _require_server(place)
        if place.kind == "connect":
            return _connect(place)
        limit_s = START_S if place.kind == "local" else CLUSTER_START_S
        return SparkSession(awaited(run_in_thread(lambda: _context(place)), limit_s, progress))


def _require_server(place: SparkPlace) -> None:
    """Check first that a port is open, because Spark's clients would try again for minutes.

    Raises ``TopicopsError`` where none is, or where a master's page tells of another release of Spark.
    """
    if not place.servers:
        return
    with ThreadPoolExecutor(max_workers=len(place.servers)) as pool:
        problems = list(pool.map(_port_problem, place.servers))
        releases = list(pool.map(_release_of_master, place.servers)) if place.kind == "cluster" else []
    if all(problems):
        said = "; ".join(dict.fromkeys(filter(None, problems)))
        raise TopicopsError(f"{place.named}: no server answers there ({said}); start the server or correct {SETTING}")
    for release in filter(None, releases):
        if not is_same_release(release):
            raise TopicopsError(
                f"{place.named}: the master is Spark {release}, and this PySpark {pyspark_version} talks to its own "
                f"release alone; install the master's PySpark, or correct {SETTING}"
            )


def is_same_release(other: str) -> bool:
    """Return whether feature releases are the same: a driver and a master send each other Java objects."""
    return other.split(".")[:2] == pyspark_version.split(".")[:2]


def _release_of_master(server: tuple[str, int]) -> str | None:
    """Return what the page of this standalone master says, at the usual port; None where there is no such page."""
    try:
        with build_opener(ProxyHandler({})).open(f"http://{server[0]}:{_PAGE_PORT}/", timeout=_PAGE_S) as page:
            text = page.read(1 << 16)
    except (OSError, ValueError, HTTPException):  # the page is a help, whatever answers there
        return None
    release, master = _RELEASE_ON_PAGE.search(text), _MASTER_ON_PAGE.search(text)
    return release[1].decode() if release and master and int(master[1]) == server[1] else None


def _port_problem(server: tuple[str, int]) -> str | None:
    try:
        socket.create_connection(server, CONNECT_S).close()
    except (OSError, UnicodeError) as error:
        return f"{server[0]}:{server[1]}: {getattr(error, 'strerror', None) or error}"
    return None


def _connect(place: SparkPlace) -> SparkSession:
    """Return a new session of a Connect server, which answers within seconds or is an error."""
    import grpc  # type: ignore[import-untyped]
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    is_here = all(host in _HERE for host, _ in place.servers)
    channels = DefaultChannelBuilder(place.address, [("grpc.enable_http_proxy", 0)] if is_here else None)
    if channels.userId is None:
        channels.set("user_id", _account())
    with closing(channels.toChannel()) as channel:
        try:
            grpc.channel_ready_future(channel).result(CONNECT_S)  # PySpark itself would wait for it without end
        except grpc.FutureTimeoutError:
            raise PySparkException(_no_connect_server(is_here=is_here)) from None
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # as PySpark does; ``without_host_settings`` takes it away
    session = cast("SparkSession", ConnectSession.builder.channelBuilder(channels).getOrCreate())
    # Five seconds for a server that goes away; PySpark would try for ten minutes.
    policy = DefaultPolicy(max_retries=5, max_backoff=2000, jitter=0)
    policy.max_server_retry_delay = 5000  # PySpark 4.0 has none
    session.client.set_retry_policies([policy])
    try:
        _ready(place, session)
    except BaseException:
        with suppress(*FAILURES):
            session.stop()
        raise
    return session


def _ready(place: SparkPlace, session: SparkSession) -> None:
    """Check the server's release, and set what each session has."""
    from pyspark.errors.exceptions.connect import SparkConnectException

    release = session.version  # the first call: a token that is refused must not look like a setting that is
    if release.split(".")[0] != pyspark_version.split(".")[0]:
        raise TopicopsError(
            f"{place.named}: the server is Spark {release}, and this PySpark is {pyspark_version}; use a server of the "
            f"same release, or correct {SETTING}"
        )
    try:
        if place.conf:
            require_known(place, {row["key"] for row in session.sql("SET -v").select("key").collect()})
        _set(session, {**place.conf, **MEANING})
    except SparkConnectException as error:
        raise UsageError(
            f"{place.named}: the server has refused a setting of {CONF_SETTING} or of the connection: "
            f"{without_secrets(reason_of(error))}; remove the setting, or start the server with it"
        ) from None


def _no_connect_server(*, is_here: bool) -> str:
    said = f"no Connect server has answered within {CONNECT_S:.0f} s"
    proxy = next((name for name in _PROXIES if os.environ.get(name)), None)
    if is_here or proxy is None:
        return f"{said}; does it use TLS (use_ssl)?"
    return f"{said}; {proxy} is set, so the call goes through a proxy: name the host in no_proxy; or does it use TLS?"


def _account() -> str:
    try:
        return os.environ.get("SPARK_USER") or getpass.getuser()
    except (KeyError, OSError):  # a container's uid without a name
        return str(os.getuid())


def _context(place: SparkPlace, kept: Callable[[], SparkDriver | None] = lambda: None) -> SparkContext:
    """Return a context, with all settings of the place over those with which the driver was started."""
    given = {**place.conf, **MEANING, "spark.master": place.address}
    if place.kind == "local":
        driver = local_driver(memory=place.memory, kept=kept)
        places = {"spark.local.dir": str(driver.folder), "spark.sql.warehouse.dir": f"{driver.folder}/warehouse"}
        settings = {**_OWN_DRIVER, **_ON_LOOPBACK, **_SMALL_PAGES, **places, **given}
    else:  # the cluster's other settings are in its own ``spark-defaults.conf``
        is_here = place.address.startswith("local") or any(host in _HERE for host, _ in place.servers)
        own = {**_OWN_DRIVER, **(_ON_LOOPBACK if is_here else {}), "spark.driver.extraJavaOptions": log4j2_flag()}
        memory = {"spark.driver.memory": place.memory} if place.memory else {}
        settings = {**own, **memory, **given}
        driver = cluster_driver(settings)
    if place.conf:
        require_known(place, _known_settings(driver, place.conf))
    from pyspark import SparkConf, SparkContext  # pyspark-client has none

    return SparkContext(conf=SparkConf().setAll(list(settings.items())), gateway=driver.gateway)


def _known_settings(driver: SparkDriver, names: Collection[str]) -> set[str]:
    """Return which of the names this Spark declares; all that it declares, if it lacks one of them."""
    jvm = driver.gateway.jvm
    for declares in ("org.apache.spark.internal.config.package$", "org.apache.spark.sql.internal.SQLConf$"):
        jvm.java.lang.Class.forName(declares)
    declared = jvm.org.apache.spark.internal.config.ConfigEntry
    if all(declared.findEntry(name) is not None for name in names):
        return set(names)
    return {entry.key() for entry in declared.listAllEntries().toArray()}
