"""Why Spark failed, in one sentence: what it says, the deepest cause of that, and what helps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from topicops.features.shared.java import noexec_problem
from topicops.features.spark.edges.driver import defaults_file, has_ended, kept_log, log_size
from topicops.features.spark.settings import CONF_SETTING, MEMORY_SETTING, SETTING, without_secrets
from topicops.model.errors import TopicopsError

ENDED = "Spark's Java process has ended"
FAILURES = (PySparkException, Py4JError, OSError)
"""Errors that PySpark raises when Spark, or the way to it, fails."""
_ENDS_S = 1.0
"""Seconds until a killed Java process ends, after its connections have ended."""
_MOST_CHARACTERS = 500
_MOST_CAUSES = 20
_LAST_BYTES = 1 << 16
_PACKAGE = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z])")
"""Pattern of the package of a Java error."""
_RPC_DETAILS = re.compile(r'details = "(.+)"')
"""Pattern of the details in an error of gRPC, whose text has many lines."""
_LOGGED = re.compile(r"^\S+ (?:ERROR|FATAL) [^:]+: (.+)$", re.MULTILINE)
_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError: ([^\n]+)")
_EXECUTOR_OUT_OF_MEMORY = re.compile(r"executor \d+\): [\w.]*OutOfMemoryError|code 52\b|Container killed")
"""52 is SparkExitCode.OOM. An executor of the driver itself has no number."""
_MASTERS_SILENT = "All masters are unresponsive"
_NO_CAUSE = "Error initializing SparkContext."
_SERVER_SILENT = "failed to connect to all addresses"
"""What gRPC says."""


@contextmanager
def spark_errors(doing: str) -> Iterator[None]:
    """Translate errors of Spark into one sentence that begins with ``doing``, and names the deepest cause."""
    began = log_size()
    try:
        yield
    except FAILURES as error:
        # py4j says by an error of any kind that the connection broke, and asks Java for the text of Java's own errors.
        is_lost = not isinstance(error, PySparkException) and has_ended(wait_s=_ENDS_S)
        log = kept_log()
        reason = _with_log(ENDED if is_lost else reason_of(error), _end_of(log, began))
        where = f"; the driver's log is {log}" if log else ""
        said = f"{doing}: Spark failed: {without_secrets(reason)}{where}; {_what_helps(reason, log)}"
        # Spark's own text may hold a secret: then it must not become the cause, which a log would show.
        raise TopicopsError(said) from (None if is_lost or without_secrets(str(error)) != str(error) else error)


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


def _with_log(reason: str, end: str) -> str:
    """Add the last error of the driver's log, where the reason does not say it: Spark's call names what failed last."""
    if memory := _OUT_OF_MEMORY.findall(end):
        return reason if "OutOfMemoryError" in reason else f"{reason}: OutOfMemoryError: {memory[-1].strip()}"
    logged = [line for line in _LOGGED.findall(end) if line != _NO_CAUSE]
    last = next((line for line in logged if _MASTERS_SILENT in line), logged[-1] if logged else "")
    return reason if last in reason else f"{reason} (its log: {_first_line(last)})"


def _what_helps(reason: str, log: Path | None) -> str:
    if _EXECUTOR_OUT_OF_MEMORY.search(reason):
        return f"give the executors more memory by spark.executor.memory in {CONF_SETTING}"
    if "OutOfMemoryError" in reason and log is None:
        return "start the server with more memory"
    if "OutOfMemoryError" in reason or "DRIVER_MEMORY" in reason:
        return f"give the driver more memory by {MEMORY_SETTING}, for example 4g"
    if _SERVER_SILENT in reason:
        return "the Connect server has ended, or cannot be reached any more: start it, and run again"
    if _MASTERS_SILENT in reason:
        return f"check that its release of Spark is the one of this PySpark, and {SETTING}"
    read = defaults_file()
    return f"check {SETTING}{f' and {read}, which Spark read' if read else ''}, or run again"


def _end_of(log: Path | None, began: int) -> str:
    """Return what the log got since then, of much the end: an error of an earlier step is no cause of this one."""
    if log is None:
        return ""
    with log.open("rb") as file:
        file.seek(max(began, log.stat().st_size - _LAST_BYTES))
        return file.read().decode(errors="replace")


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
