"""Why Spark failed: the deepest cause, in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from topicops.features.shared.java import noexec_problem

_MOST_CHARACTERS = 500
_PACKAGE = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z])")
"""Of the class of a Java error."""
_RPC_DETAILS = re.compile(r'details = "(.+)"')
"""In the text of an error of gRPC, which takes many lines."""
_MOST_CAUSES = 20


def reason_of(error: Exception) -> str:
    """What Spark says, and the deepest cause of it if that says something else; no traceback."""
    first, *deeper = map(_first_line, _chain(error))
    if problem := noexec_problem(" ".join((first, *deeper))):
        return problem
    if isinstance(error, Py4JJavaError) and deeper:
        return deeper[-1]  # the first only says which call failed
    if not deeper or deeper[-1] in first:
        return first
    return f"{first} (cause: {deeper[-1]})"


def _chain(error: Exception) -> Iterator[str]:
    """The texts of the error and of its causes, in Java or on the Connect server, the deepest last."""
    if isinstance(error, Py4JJavaError):
        yield str(error)
        yield from _java_causes(error.java_exception)
        return
    cause: object = error
    while isinstance(cause, Exception):
        yield str(cause)
        deepest, cause = cause, getattr(cause, "_cause", None)
    yield from _causes_on_server(deepest)


def _java_causes(throwable: JavaObject) -> Iterator[str]:
    """Nothing more once the Java process has ended."""
    for _ in range(_MOST_CAUSES):
        if throwable is None:
            return
        try:
            yield str(throwable.toString())
            throwable = throwable.getCause()
        except (Py4JError, OSError):
            return


def _causes_on_server(error: Exception) -> Iterator[str]:
    """The causes in the stack trace that a Connect server sends."""
    trace = error.getStackTrace() if isinstance(error, PySparkException) and hasattr(error, "getStackTrace") else None
    for line in (trace or "").splitlines():
        if line.startswith("Caused by: "):
            yield line.removeprefix("Caused by: ")


def _first_line(text: str) -> str:
    details = _RPC_DETAILS.search(text)
    line = details[1] if details else (text.strip().splitlines() or ["no reason given"])[0]
    return _PACKAGE.sub("", line)[:_MOST_CHARACTERS]
