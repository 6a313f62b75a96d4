"""A session on a Spark Connect server, which answers within seconds or is an error."""

from __future__ import annotations

import warnings

import grpc  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy

_RETRIES = DefaultPolicy(max_retries=5, max_backoff=2000, jitter=0, max_server_retry_delay=5000)
"""Five seconds for a server that goes away; PySpark would try for ten minutes."""


class NoAnswerError(PySparkException):
    """A port is open, and no Connect server answers there, or it takes no part in TLS."""


def connected_session(address: str, *, timeout_s: float) -> SparkSession:
    """A new session of the server at ``sc://…``.

    Raises:
        PySparkException: The address cannot be used, or the server does not answer in time, or refuses the token.
    """
    _require_answer(address, timeout_s)
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
    session: SparkSession = SparkSession.builder.remote(address).getOrCreate()
    session.client.set_retry_policies([_RETRIES])
    _ = session.version  # the first call: a token that is refused must not look like a setting that is
    return session


def _require_answer(address: str, timeout_s: float) -> None:
    """Wait for the first answer: PySpark itself would wait for it without end."""
    channel = DefaultChannelBuilder(address).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout_s)
    except grpc.FutureTimeoutError:
        raise NoAnswerError(
            f"no Connect server has answered within {timeout_s:.0f} s; does it use TLS (use_ssl)?"
        ) from None
    finally:
        channel.close()
