"""Airflow on this machine, for the demo and the tests: a folder of its own, loopback only, stopped as a whole.

The services are those of ``airflow standalone``. They are started one by one because that command also starts two log
servers that listen on every interface, and because it leaves its services running when a signal ends it.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from types import TracebackType
from typing import Self

from topicops.edges.durable_files import write_atomically
from topicops.features.shared.airflow_client import POLL_S, AirflowError
from topicops.features.shared.java import default_cache, last_lines
from topicops_local.airflow_client import LocalAirflowClient
from topicops_local.processes import ProcessMark, free_port, kill, members_of_session, spawn, stop, wait_gone
from topicops_local.readiness import HANGS_S

USER = "admin"
SERVICES: Mapping[str, tuple[str, ...]] = {
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}
CONN = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
DATABASE = "airflow.db"
WAIT_FOR_WRITER_S = 120
"""Seconds that a service waits for another one that writes to SQLite; with the default of 5 s a busy scheduler dies."""
_PATIENCE_S = 60.0
"""Seconds for which a question is asked again: a busy API server answers late, or with 503."""
PRELOADED = (
    "great_expectations",
    "pyspark.sql",
    "pyspark.sql.connect.session",
    "pandas",
    "topicops.on_airflow.tasks.preloaded",
)
"""Modules that the executor imports once, for all tasks; ours is the last, because it freezes what is loaded."""
IDLE_S = 0.2
"""Seconds between two looks of an idle scheduler. With Airflow's second, each task of a run waits half of it."""
ANSWERS_WITHIN_S = 60
"""Seconds that a task waits for an answer of the API server, as one may take on a busy machine; Airflow's 5 are few."""


@dataclass(slots=True, kw_only=True)
class LocalAirflow:
    """A running Airflow. As a context manager it is always stopped at the end."""

    folder: Path
    port: int
    username: str
    password: str
    processes: dict[str, ProcessMark]
    """Processes by service."""
    variables: Mapping[str, str]
    """The environment variables of every service."""
    dead: list[ProcessMark] = field(default_factory=list)
    """Services that died and were started again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def log_of(self, service: str) -> Path:
        return self.folder / "logs" / f"{service}.log"

    def client(self) -> LocalAirflowClient:
        """A client that is signed in."""
        client = LocalAirflowClient(self.url, self.username, self.password, patience_s=_PATIENCE_S)
        client.sign_in()
        return client

    def ended(self) -> Mapping[str, Path]:
        """Return the log of each service that runs no more, by its name."""
        return {name: self.log_of(name) for name, process in self.processes.items() if not process.alive}

    def require_alive(self) -> None:
        """Raise ``AirflowError`` when a service has ended: without it runs would wait for ever."""
        for name, log in self.ended().items():
            raise AirflowError(f"Airflow's {name} has ended; the end of {log}:\n{last_lines(log)}")

    def wait_healthy(self, *, timeout_s: float = HANGS_S) -> None:
        """Raise ``AirflowError`` when Airflow is not healthy in time, or a service has ended."""
        client = LocalAirflowClient(self.url, self.username, self.password)
        deadline = time.monotonic() + timeout_s
        while not client.healthy():
            self.require_alive()
            if time.monotonic() > deadline:
                raise AirflowError(
                    f"Airflow is not healthy after {timeout_s:.0f} s; its logs are in {self.folder}/logs"
                )
            time.sleep(POLL_S)

    def start_again(self, service: str, *, timeout_s: float = HANGS_S) -> None:
        """Start a service that has died, on its old port; its other processes are ended by ``stop``.

        Raises:
            AirflowError: Airflow is not healthy in time.
        """
        self.dead.append(self.processes[service])
        self.processes[service] = _spawn(service, self.folder, self.variables, self.port)
        self.wait_healthy(timeout_s=timeout_s)

    def stop(self) -> None:
        """End the services, and then what they started: running tasks, and the JVMs of the tasks."""
        stop(tuple(self.processes.values()), grace_s=15.0)
        sessions = (*self.processes.values(), *self.dead)
        kill([mark for process in sessions for mark in members_of_session(process.pid)])


def start_airflow(
    folder: Path,
    *,
    dags: Path,
    environment: Mapping[str, str],
    database: str | None = None,
    port: int | None = None,
    timeout_s: float = HANGS_S,
) -> LocalAirflow:
    """Start Airflow as ``begin_airflow`` does; it answers requests.

    Raises:
        AirflowError: Airflow is not healthy in time; nothing is left running.
    """
    airflow = begin_airflow(
        folder, dags=dags, environment=environment, database=database, port=port, timeout_s=timeout_s
    )
    try:
        airflow.wait_healthy(timeout_s=timeout_s)
    except BaseException:
        airflow.stop()
        raise
    return airflow


def begin_airflow(
    folder: Path,
    *,
    dags: Path,
    environment: Mapping[str, str],
    database: str | None = None,
    port: int | None = None,
    timeout_s: float = HANGS_S,
) -> LocalAirflow:
    """Start Airflow's services with metadata and logs in ``folder`` and the DAG files of ``dags``; none answers yet.

    Args:
        environment: Added to the services' environment variables: connections, ``TOPICOPS_HOME`` and the like.
        database: SQLAlchemy's address of an empty database; SQLite in ``folder`` when left out.
        port: The port of the API server; a free one when left out.

    Raises:
        AirflowError: The database is not ready in time.
    """
    port = port or free_port()
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    password = secrets.token_urlsafe(9)
    own = airflow_variables(folder, dags=dags, port=port, password=password)
    own[CONN] = database or sqlite_address(folder)
    variables = {**without_airflow_settings(os.environ), **own, **environment}
    _make_database(folder, variables, timeout_s)
    return LocalAirflow(
        folder=folder,
        port=port,
        username=USER,
        password=password,
        processes={name: _spawn(name, folder, variables, port) for name in ("api-server", *SERVICES)},
        variables=variables,
    )


def sqlite_address(folder: Path) -> str:
    """SQLAlchemy's address of the database in ``folder``."""
    return f"sqlite:///{folder.absolute()}/{DATABASE}?timeout={WAIT_FOR_WRITER_S}"


def without_airflow_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without the settings of another Airflow; connections stay."""
    return {name: text for name, text in variables.items() if not name.startswith(("AIRFLOW__", "AIRFLOW_HOME"))}


def airflow_variables(folder: Path, *, dags: Path, port: int, password: str) -> dict[str, str]:
    """Return Airflow's settings. Also writes the file of passwords that one of them names."""
    passwords = folder / "passwords.json"
    write_atomically(passwords, json.dumps({USER: password}).encode(), mode=0o600)
    bundle = {
        "name": "topicops",
        "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": str(dags), "refresh_interval": 10},
    }
    return {
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(32),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__MP_FORKSERVER_PRELOAD": ",".join(PRELOADED),
        "AIRFLOW__CORE__MP_START_METHOD": "forkserver",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(folder / "plugins"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle]),
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": str(IDLE_S),
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": str(ANSWERS_WITHIN_S),
        "SCARF_ANALYTICS": "false",
        "PYSPARK_PYTHON": sys.executable,
    }


def _airflow(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("airflow")), *arguments]


def _make_database(folder: Path, variables: Mapping[str, str], timeout_s: float) -> None:
    """Create the metadata database before the services start, because each of them would try to.

    The first new one of these releases of Airflow is kept in the cache, and copied from then on.
    """
    own, kept = folder / DATABASE, default_cache() / f"airflow-{_releases()}.db"
    is_new = variables[CONN] == sqlite_address(folder) and not own.exists()
    if is_new and kept.exists():
        write_atomically(own, kept.read_bytes())
        return
    _migrate(folder, variables, timeout_s)
    if is_new:
        with closing(sqlite3.connect(own)) as database:
            write_atomically(kept, database.serialize())


def _releases() -> str:
    """Return the digest of what is installed of Airflow: its providers have tables, too."""
    found = {f"{each.name} {each.version}" for each in distributions() if each.name.startswith("apache-airflow")}
    return sha256("\n".join(sorted(found)).encode()).hexdigest()[:16]


def _migrate(folder: Path, variables: Mapping[str, str], timeout_s: float) -> None:
    log = folder / "logs" / "migrate.log"
    process = spawn(_airflow("db", "migrate"), log=log, folder=folder, environment=variables)
    if wait_gone([process], timeout_s=timeout_s):
        kill([process])
        raise AirflowError(f"Airflow's database was not ready within {timeout_s:.0f} s; its log is {log}")
    if variables[CONN] == sqlite_address(folder) and not (folder / DATABASE).exists():
        raise AirflowError(f"Airflow's database could not be created; the end of {log}:\n{last_lines(log)}")


def _spawn(service: str, folder: Path, variables: Mapping[str, str], port: int) -> ProcessMark:
    api_server = ("api-server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1")
    command = _airflow(*SERVICES.get(service, api_server))
    own = dict(variables)
    if service == "api-server" and own[CONN] == sqlite_address(folder):
        # Two requests at once may wait for each other: one for the lock, in the event loop (`action_logging` of Airflow
        # 3.3), the other for the event loop, with the lock. With 5 s, SQLite's default, one of them soon fails.
        own[CONN] = own[CONN].partition("?")[0]
    return spawn(command, log=folder / "logs" / f"{service}.log", folder=folder, environment=own)


def wait_for_dags(
    client: LocalAirflowClient,
    dag_ids: Sequence[str],
    *,
    timeout_s: float = HANGS_S,
    each_time: Callable[[], None] = lambda: None,
) -> None:
    """Wait until Airflow has all these DAGs. Raises ``AirflowError`` with the import error, if there is one.

    Args:
        each_time: Called before each look; what it raises ends the wait.
    """
    deadline = time.monotonic() + timeout_s
    while missing := [dag_id for dag_id in dag_ids if not client.has_dag(dag_id)]:
        each_time()
        if errors := client.import_errors():
            raise AirflowError("\n".join(f"{file}:\n{trace}" for file, trace in errors.items()))
        if time.monotonic() > deadline:
            raise AirflowError(f"Airflow has not found {', '.join(missing)} within {timeout_s:.0f} s")
        time.sleep(POLL_S)
