"""A Spark Connect server on this machine: it stays up, so that each diff and each quality check finds a warm Spark.

All files are in ``<home>/spark``: ``server.json`` (process, port and token), ``address`` (what ``TOPICOPS_SPARK``
needs) and the log. The server listens on the loopback interface alone, and takes requests with its token alone: who may
send it a request may run code as its user. The process outlives the command that started it, is found again by pid and
start time, and starts as Spark's driver does (``edges.spark.driver``).
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from topicops.edges.durable_files import write_atomically
from topicops.edges.file_locks import locked
from topicops.edges.java import mark_used, pyspark_jars
from topicops.edges.processes import ProcessMark, free_port, kill, last_lines, port_is_free, spawn, stop
from topicops.edges.spark.driver import (
    LOOPBACK,
    archive_options,
    archive_path,
    driver_java,
    local_environment,
    local_options,
    write_properties,
)
from topicops.edges.spark.session import local_settings, spark_session
from topicops.edges.spark.settings import DEFAULT, DEFAULT_MEMORY, spark_place
from topicops.model.errors import LocalClusterError, UsageError
from topicops.model.json_errors import JsonError, json_errors
from topicops.model.ports import ConnectionFields

_MODULE = "topicops.features.sandbox.edges.spark_server"
_WARM_UP_LOG = "warm-up.log"
_MAIN_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_STATE, _ADDRESS, _LOG, _LOCK, _SCRATCH = "server.json", "address", "server.log", "lock", "scratch"
_TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - the name, not a token
_START_S = 120.0
_GRACE_S = 10.0
_POLL_S = 0.1


class _State(msgspec.Struct, frozen=True, kw_only=True):
    process: ProcessMark
    port: int
    token: str
    format_version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkServer:
    """A server that was started under a home folder; it may have ended since."""

    folder: Path
    process: ProcessMark
    port: int
    address: str = field(repr=False)
    """``sc://…`` with the token: a secret."""

    @classmethod
    def spawn(cls, home: Path, *, port: int | None = None) -> SparkServer:
        """Start the server unless it runs; it is not ready yet.

        Raises:
            UsageError: It runs on another port, or another process has the port.
            TopicopsError: There is no suitable Java.
        """
        folder = home.absolute() / "spark"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(folder / _LOCK):
            found = cls.find(home)
            if found is None or not found.process.alive:
                return _started(folder, port or _usual_port(found))
        if port not in (None, found.port):
            raise UsageError(f"the Spark server runs on port {found.port}; run `topicops local spark down` first")
        return found

    @classmethod
    def find(cls, home: Path) -> SparkServer | None:
        """The server that was last started under ``home``, running or not; None if there was none."""
        folder = home.absolute() / "spark"
        file = folder / _STATE
        try:
            with json_errors():
                state = msgspec.json.decode(file.read_bytes(), type=_State)
        except FileNotFoundError:
            return None
        except (JsonError, OSError) as error:
            raise LocalClusterError(
                f"{file} cannot be read: {error}; end its Java process and delete the file"
            ) from error
        return _server(folder, state)

    @property
    def answers(self) -> bool:
        """Whether its port is open."""
        try:
            socket.create_connection((LOOPBACK, self.port), timeout=1.0).close()
        except OSError:
            return False
        return self.process.alive

    @property
    def address_file(self) -> Path:
        """Holds the address; only this user can read it."""
        return self.folder / _ADDRESS

    @property
    def log(self) -> Path:
        return self.folder / _LOG

    def wait(self, *, progress: Callable[[str], None]) -> None:
        """Wait until the server answers.

        Raises:
            LocalClusterError: It has ended, or does not answer in time; with the end of its log. It is stopped.
        """
        progress(f"waiting for Spark on port {self.port}")
        deadline = time.monotonic() + _START_S
        while not self.answers:
            if not self.process.alive or time.monotonic() > deadline:
                kill([self.process])
                raise LocalClusterError(
                    f"the Spark server did not start; the end of {self.log}:\n{last_lines(self.log)}"
                )
            time.sleep(_POLL_S)

    def warm_up(self, *, progress: Callable[[str], None]) -> None:
        """Wait as ``wait`` does, then have the server load what runs use."""
        self.wait(progress=progress)
        progress("having Spark load what runs use")
        from topicops.edges.spark.warm_up import warm_up

        with spark_session(self.address) as spark:
            warm_up(spark)

    def warm_up_beside(self) -> ProcessMark:
        """Begin ``warm_up`` in a process of its own: it takes a core for up to a minute."""
        command = (sys.executable, "-m", _MODULE, str(self.folder.parent))
        return spawn(command, log=self.folder / _WARM_UP_LOG, folder=Path.cwd(), environment=os.environ)

    def stop(self) -> bool:
        """Stop the server; False: it did not run."""
        was_alive = self.process.alive
        stop([self.process], grace_s=_GRACE_S)
        for name in (_STATE, _ADDRESS):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / _SCRATCH, ignore_errors=True)
        return was_alive


def _usual_port(earlier: SparkServer | None) -> int:
    return earlier.port if earlier is not None and port_is_free(earlier.port) else free_port()


def _started(folder: Path, port: int) -> SparkServer:
    if not port_is_free(port):
        raise UsageError(f"port {port} is taken by another process; give another one")
    token = secrets.token_urlsafe(24)
    changed = {**local_environment(driver_java(), folder), _TOKEN_VARIABLE: token}
    environment = {name: text for name, text in {**os.environ, **changed}.items() if text is not None}
    (folder / _LOG).unlink(missing_ok=True)
    shutil.rmtree(folder / _SCRATCH, ignore_errors=True)
    (folder / _SCRATCH).mkdir(mode=0o700)
    process = spawn(_command(folder, port), log=folder / _LOG, folder=folder, environment=environment)
    state = _State(process=process, port=port, token=token)
    write_atomically(folder / _STATE, msgspec.json.encode(state) + b"\n", mode=0o600)
    server = _server(folder, state)
    write_atomically(server.address_file, f"{server.address}\n".encode(), mode=0o600)
    return server


def _server(folder: Path, state: _State) -> SparkServer:
    # PySpark sends a token without TLS to a host of this name alone.
    address = f"sc://localhost:{state.port}/;token={state.token}"
    return SparkServer(folder=folder, process=state.process, port=state.port, address=address)


def _command(folder: Path, port: int) -> list[str]:
    place, scratch = spark_place(DEFAULT, _no_connection), folder / _SCRATCH
    archive = archive_path(driver_java())
    flags = archive_options(archive, scratch / "archive.log") if mark_used(archive) else ()
    settings = {
        **local_settings(place, scratch),
        "spark.driver.memory": place.memory or DEFAULT_MEMORY,
        "spark.driver.extraJavaOptions": shlex.join((*local_options(scratch), *flags)),
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
    }
    file = scratch / "settings.conf"
    write_properties(file, settings)
    submit = str(pyspark_jars().parent / "bin" / "spark-submit")
    return [submit, "--properties-file", str(file), "--class", _MAIN_CLASS, "spark-internal"]


def _no_connection(connection_id: str) -> ConnectionFields:
    raise UsageError(f"connection {connection_id!r} is not used here")


def _warm_up(home: Path) -> None:
    if server := SparkServer.find(home):
        server.warm_up(progress=print)


if __name__ == "__main__":
    _warm_up(Path(sys.argv[1]))
