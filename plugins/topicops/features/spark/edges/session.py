"""The Spark session, wherever ``features.spark.settings`` says that Spark runs, and why Spark failed, in one line."""

from __future__ import annotations

import re
import socket
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa
from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from topicops.edges.connections.lookup import from_environment
from topicops.edges.threads import run_in_thread
from topicops.features.shared.java import noexec_problem
from topicops.features.spark.edges.driver import (
    LOOPBACK,
    awaited,
    cluster_driver,
    has_ended,
    kept_log,
    local_driver,
    log4j2_flag,
)
from topicops.features.spark.settings import CONF_SETTING, SETTING, SparkPlace, spark_place, without_secrets
from topicops.model.errors import TopicopsError, UsageError
from topicops.model.ports import ConnectionSource

START_S = 120.0
"""Seconds that Spark may take to start, or to accept an application; a cluster may have a queue."""
CLUSTER_START_S = 300.0
CONNECT_S = 10.0
_HERE = frozenset({LOOPBACK, "localhost", "::1"})

_EVERYWHERE = {"spark.sql.session.timeZone": "UTC"}
_OWN_DRIVER = {
    "spark.app.name": "topicops",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
}
_ON_LOOPBACK = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
_ENDED = "Spark's Java process has ended"
_ENDS_S = 1.0
"""Seconds until a killed Java process ends, after its connections have ended."""
# One row for each topic is little data: few tasks, and no planning between stages.
_SMALL = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}

_FEW_ROWS = 20_000
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

_MOST_CHARACTERS = 500
_PACKAGE = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z])")
"""Pattern of the package of a Java error."""
_RPC_DETAILS = re.compile(r'details = "(.+)"')
"""Pattern of the details in an error of gRPC, whose text has many lines."""
_MOST_CAUSES = 20


@dataclass(slots=True)
class _Application:
    """A Spark of this machine that starts, or runs, for a block of ``spark_application``."""

    place: SparkPlace
    start: Future[SparkContext]
    _session: SparkSession | None = None

    def session(self) -> SparkSession:
        if self._session is None:
            with spark_errors(self.place.named):
                self._session = SparkSession(awaited(self.start, START_S))
        return self._session

    def stop(self) -> None:
        with suppress(PySparkException, Py4JError, OSError, TopicopsError):
            awaited(self.start, START_S).stop()


_applications: list[_Application] = []
"""Application of the current block; pyspark allows one."""


@contextmanager
def spark_session(
    setting: str | None = None, *, connections: ConnectionSource = from_environment
) -> Iterator[SparkSession]:
    """Open a session on ``setting``, which has a form of ``TOPICOPS_SPARK``; None means that variable.

    An active session of this process is reused and left running, that of ``spark_application`` too. A new session is
    stopped at the end; its Java process is kept for the next session, until this process ends.

    Raises ``UsageError`` for a setting, and ``TopicopsError`` where Spark could not be started or reached.
    """
    place = spark_place(setting, connections)
    running = _running()
    if running is not None:
        yield running
        return
    for application in _applications:
        if application.place == place:
            yield application.session()
            return
    session = _open(place)
    try:
        yield session
    finally:
        with suppress(PySparkException, Py4JError, OSError):
            session.stop()


@contextmanager
def spark_application(*, connections: ConnectionSource = from_environment) -> Iterator[None]:
    """Keep one application for all of a block: each ``spark_session`` in it has the same session.

    A Spark of this machine starts beside the block's other work, and the first session waits for it. Elsewhere an
    application takes resources, so it starts when it is needed. Raises ``UsageError`` for a setting.
    """
    place = spark_place(None, connections)
    if place.kind != "local" or _applications or _running() is not None:
        yield
        return
    # In another thread than the main one, PySpark leaves the command's SIGINT handler alone.
    application = _Application(place, run_in_thread(lambda: _context(place)))
    _applications.append(application)
    try:
        yield
    finally:
        _applications.remove(application)
        application.stop()


def _running() -> SparkSession | None:
    """Return the active session of this process. Raises ``TopicopsError`` when its Java process has ended."""
    # A process that was just killed refuses connections a moment before it has ended.
    with suppress(PySparkException, Py4JError, OSError):
        if not has_ended():
            return SparkSession.getActiveSession()
    raise TopicopsError(f"{_ENDED}; start this command or task again")


def reads_files_here(spark: SparkSession) -> bool:
    """Return whether all processes of this Spark run on this machine, so that each reads the files of its disk."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return spark.client.host.strip("[]") in _HERE
    master = str(spark.sparkContext.master)
    if master.startswith("local"):
        return True
    place = spark_place(master, from_environment)
    return bool(place.servers) and all(host in _HERE for host, _ in place.servers)


def are_few(rows: int) -> bool:
    """Return whether planning a query over so many rows takes longer than its work; 0: the number is not known."""
    return 0 < rows <= _FEW_ROWS


@contextmanager
def planned_for(spark: SparkSession, rows: int) -> Iterator[None]:
    """Make Spark interpret a query over few rows: compiling one takes seconds, and reading so few does not."""
    if not are_few(rows):
        yield
        return
    before = {name: spark.conf.get(name, None) for name in _INTERPRETED}
    _set(spark, _INTERPRETED)
    try:
        yield
    finally:
        with suppress(PySparkException, Py4JError, OSError):
            _set(spark, before)


def _set(spark: SparkSession, conf: Mapping[str, str | None]) -> None:
    for name, value in conf.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def arrow_rows(frame: DataFrame) -> pa.Table:
    """Return all rows of the frame.

    ``toArrow`` of Spark Connect first asks for the schema (PySpark 4.3), so that the server plans the query twice.
    """
    to_table = getattr(frame, "_to_table", None)
    return frame.toArrow() if to_table is None else to_table()[0]


def arrow_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return the table as a frame. The schema is given because Spark Connect needs it for an empty table."""
    return spark.createDataFrame(table, schema=from_arrow_schema(table.schema))


@contextmanager
def spark_errors(doing: str) -> Iterator[None]:
    """Translate errors of Spark into one sentence that begins with ``doing``, and names the deepest cause."""
    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        # py4j says a connection that broke by a Py4JError of any kind; only these two come from a Java that answered.
        is_lost = not isinstance(error, PySparkException | Py4JJavaError) and has_ended(wait_s=_ENDS_S)
        reason, log = _ENDED if is_lost else reason_of(error), kept_log()
        where = f"; the driver's log is {log}" if log else ""
        said = f"{doing}: Spark failed: {without_secrets(reason)}{where}; check {SETTING}, or run again"
        # Spark's own text may hold a secret: then it must not become the cause, which a log would show.
        raise TopicopsError(said) from (error if without_secrets(str(error)) == str(error) else None)


def reason_of(error: Exception) -> str:
    """Return what Spark says, and the deepest cause of it if that says something else; no traceback."""
    first, *deeper = map(_first_line, _chain(error))
    if problem := noexec_problem(" ".join((first, *deeper))):
        return problem
    if isinstance(error, Py4JJavaError) and deeper:
        return deeper[-1]  # the first only says which call failed
    if not deeper or deeper[-1] in first:
        return first
    return f"{first} (cause: {deeper[-1]})"


def _chain(error: Exception) -> Iterator[str]:
    """Yield the texts of the error and of its causes, in Java or on the Connect server, the deepest last."""
    if isinstance(error, Py4JJavaError):
        yield str(error)
        yield from _java_causes(error.java_exception)
        return
    cause: object = error
    while isinstance(cause, Exception):
        yield str(cause)
        deepest, cause = cause, getattr(cause, "_cause", None)
    # The stack trace that a Connect server sends.
    trace = getattr(deepest, "getStackTrace", None) if isinstance(deepest, PySparkException) else None
    lines = ((trace and trace()) or "").splitlines()
    yield from (line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: "))


def _java_causes(throwable: JavaObject) -> Iterator[str]:
    """Yield the causes; nothing more once the Java process has ended."""
    for _ in range(_MOST_CAUSES):
        if throwable is None:
            return
        try:
            yield str(throwable.toString())
            throwable = throwable.getCause()
        except (Py4JError, OSError):
            return


def _first_line(text: str) -> str:
    details = _RPC_DETAILS.search(text)
    line = details[1] if details else (text.strip().splitlines() or ["no reason given"])[0]
    return _PACKAGE.sub("", line)[:_MOST_CHARACTERS]


def _open(place: SparkPlace) -> SparkSession:
    with spark_errors(place.named):
        _require_server(place)
        if place.kind == "connect":
            return _connect(place)
        limit_s = START_S if place.kind == "local" else CLUSTER_START_S
        return SparkSession(awaited(run_in_thread(lambda: _context(place)), limit_s))


def _require_server(place: SparkPlace) -> None:
    """Check first that a port is open, because Spark's clients would try again for minutes."""
    if not place.servers:
        return
    with ThreadPoolExecutor(max_workers=len(place.servers)) as pool:
        problems = list(pool.map(_port_problem, place.servers))
    if all(problems):
        said = "; ".join(dict.fromkeys(filter(None, problems)))
        raise TopicopsError(f"{place.named}: no server answers there ({said}); start the server or correct {SETTING}")


def _port_problem(server: tuple[str, int]) -> str | None:
    try:
        socket.create_connection(server, CONNECT_S).close()
    except (OSError, UnicodeError) as error:
        return f"{server[0]}:{server[1]}: {getattr(error, 'strerror', None) or error}"
    return None


def _connect(place: SparkPlace) -> SparkSession:
    """Return a new session of a Connect server, which answers within seconds or is an error."""
    import grpc  # type: ignore[import-untyped]
    from pyspark.errors.exceptions.connect import SparkConnectException
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy

    with closing(DefaultChannelBuilder(place.address).toChannel()) as channel:
        try:
            grpc.channel_ready_future(channel).result(CONNECT_S)  # PySpark itself would wait for it without end
        except grpc.FutureTimeoutError:
            said = f"no Connect server has answered within {CONNECT_S:.0f} s; does it use TLS (use_ssl)?"
            raise PySparkException(said) from None
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
    session: SparkSession = SparkSession.builder.remote(place.address).getOrCreate()
    # Five seconds for a server that goes away; PySpark would try for ten minutes.
    policy = DefaultPolicy(max_retries=5, max_backoff=2000, jitter=0, max_server_retry_delay=5000)
    session.client.set_retry_policies([policy])
    _ = session.version  # the first call: a token that is refused must not look like a setting that is
    try:
        _set(session, {**place.conf, **_EVERYWHERE})
    except SparkConnectException as error:
        session.stop()
        raise UsageError(
            f"{place.named}: the server has refused a setting of {CONF_SETTING} or of the connection: "
            f"{without_secrets(reason_of(error))}; remove the setting, or start the server with it"
        ) from None
    return session


def _context(place: SparkPlace) -> SparkContext:
    """Return a context, with all settings of the place over those with which the driver was started."""
    given = {**place.conf, **_EVERYWHERE, "spark.master": place.address}
    if place.kind == "local":
        driver = local_driver(memory=place.memory)
        places = {"spark.local.dir": str(driver.folder), "spark.sql.warehouse.dir": f"{driver.folder}/warehouse"}
        settings = {**_OWN_DRIVER, **_ON_LOOPBACK, **_SMALL, **places, **given}
    else:  # the cluster's other settings are in its own ``spark-defaults.conf``
        is_here = place.address.startswith("local") or any(host in _HERE for host, _ in place.servers)
        own = {**_OWN_DRIVER, **(_ON_LOOPBACK if is_here else {}), "spark.driver.extraJavaOptions": log4j2_flag()}
        memory = {"spark.driver.memory": place.memory} if place.memory else {}
        settings = {**own, **memory, **given}
        driver = cluster_driver(settings)
    return SparkContext(conf=SparkConf().setAll(list(settings.items())), gateway=driver.gateway)
