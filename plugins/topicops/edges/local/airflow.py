"""Airflow on this machine, for the demo and the tests: a folder of its own, loopback only, stopped as a whole.

The services are those of ``airflow standalone``. They are started one by one because that command also starts two log
servers which listen on every interface, and because it leaves its services behind when it is ended by a signal.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from topicops.edges.processes import (
    ProcessMark,
    free_port,
    kill,
    last_lines,
    members_of_session,
    spawn,
    stop,
    wait_gone,
)
from topicops.model.errors import TopicopsError

T = TypeVar("T")

USER = "admin"
SERVICES: Mapping[str, tuple[str, ...]] = {
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}
ENDED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
RUN_ENDED = frozenset({"success", "failed"})
POLL_S = 0.5


class AirflowError(TopicopsError):
    """The local Airflow did not start, or refused a request; the text says where its log lies."""


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a run, as the REST API tells it."""

    task_id: str
    state: str | None
    try_number: int
    duration: float | None = None
    """Seconds."""


class _Tasks(msgspec.Struct):
    task_instances: tuple[TaskState, ...]


class _Run(msgspec.Struct):
    dag_run_id: str
    state: str
    note: str | None = None
    end_date: datetime | None = None


class _Runs(msgspec.Struct):
    dag_runs: tuple[_Run, ...]


class _Token(msgspec.Struct):
    access_token: str


class _Component(msgspec.Struct):
    status: str | None = None


class _Problem(msgspec.Struct):
    filename: str | None
    stack_trace: str


class _Problems(msgspec.Struct):
    import_errors: tuple[_Problem, ...]


class _XCom(msgspec.Struct):
    value: object


class _LogError(msgspec.Struct):
    exc_type: str = ""
    exc_value: str = ""


class _LogLine(msgspec.Struct):
    event: str = ""
    error_detail: tuple[_LogError, ...] = ()


class AirflowClient:
    """The few requests of Airflow's public REST API that a demo and a test need."""

    def __init__(self, url: str, username: str, password: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=30.0, trust_env=False)
        self._login = {"username": username, "password": password}

    def healthy(self) -> bool:
        """Whether the API answers and scheduler and DAG processor have been heard of lately."""
        try:
            answer = self._http.get("/api/v2/monitor/health", timeout=5.0)
        except httpx.TransportError:
            return False
        if not answer.is_success:
            return False
        parts = msgspec.json.decode(answer.content, type=dict[str, _Component])
        return all(parts[name].status == "healthy" for name in ("scheduler", "dag_processor", "metadatabase"))

    def sign_in(self) -> str:
        """Gives the token, which a browser's cookie would hold."""
        token = self._send("POST", "/auth/token", _Token, body=self._login).access_token
        self._http.headers["Authorization"] = f"Bearer {token}"
        return token

    def knows(self, dag_id: str) -> bool:
        return self._http.get(f"/api/v2/dags/{dag_id}").is_success

    def import_errors(self) -> Mapping[str, str]:
        """Traceback by DAG file."""
        problems = self._send("GET", "/api/v2/importErrors", _Problems).import_errors
        return {problem.filename or "": problem.stack_trace for problem in problems}

    def trigger(self, dag_id: str, conf: Mapping[str, object]) -> str:
        """Start a run with these params; gives its id."""
        body = {"logical_date": None, "conf": dict(conf)}
        return self._send("POST", f"/api/v2/dags/{dag_id}/dagRuns", _Run, body=body).dag_run_id

    def run_state(self, dag_id: str, run_id: str) -> str:
        return self._send("GET", _run_path(dag_id, run_id), _Run).state

    def run_ended_at(self, dag_id: str, run_id: str) -> datetime | None:
        """None while it has not."""
        return self._send("GET", _run_path(dag_id, run_id), _Run).end_date

    def run_note(self, dag_id: str, run_id: str) -> str:
        return self._send("GET", _run_path(dag_id, run_id), _Run).note or ""

    def runs(self, dag_id: str) -> Mapping[str, str]:
        """State by run id, oldest first."""
        runs = self._send("GET", f"/api/v2/dags/{dag_id}/dagRuns?order_by=id&limit=100", _Runs).dag_runs
        return {run.dag_run_id: run.state for run in runs}

    def tasks(self, dag_id: str, run_id: str) -> Mapping[str, TaskState]:
        tasks = self._send("GET", f"{_run_path(dag_id, run_id)}/taskInstances?limit=100", _Tasks).task_instances
        return {task.task_id: task for task in tasks}

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> object:
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries/{key}?deserialize=true"
        return self._send("GET", path, _XCom).value

    def log(self, dag_id: str, run_id: str, task_id: str, try_number: int = 1) -> str:
        """A task's log, one line an event, without times and levels; of an exception its last line."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{task_id}/logs/{try_number}"
        text = self._answer("GET", path, headers={"Accept": "application/x-ndjson"}).content
        lines = [msgspec.json.decode(line, type=_LogLine) for line in text.splitlines() if line.strip()]
        return "\n".join("\n".join([line.event, *map(_exception, line.error_detail)]) for line in lines)

    def answer(self, dag_id: str, run_id: str, task_id: str, option: str) -> None:
        """Answer an approval: ``Approve`` or ``Reject``. Not within 3 s of the question: Airflow may lose it."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{task_id}/-1/hitlDetails"
        self._answer("PATCH", path, body={"chosen_options": [option], "params_input": {}})

    def clear(self, dag_id: str, run_id: str, task_id: str, *, downstream: bool) -> None:
        """Have a task of a run that has ended run once more, as a person does who clears it."""
        which = {"dag_run_id": run_id, "task_ids": [task_id], "only_failed": False, "dry_run": False}
        which["include_downstream"] = downstream
        self._answer("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", body=which)

    def follow(self, dag_id: str, run_id: str, *, timeout_s: float) -> Iterator[TaskState]:
        """Each task as it ends, until the run has ended.

        Raises:
            AirflowError: The run has not ended in time.
        """
        deadline = time.monotonic() + timeout_s
        told: set[str] = set()
        while time.monotonic() < deadline:
            run_has_ended = self.run_state(dag_id, run_id) in RUN_ENDED
            for task in self.tasks(dag_id, run_id).values():
                if task.state in ENDED and task.task_id not in told:
                    told.add(task.task_id)
                    yield task
            if run_has_ended:
                return
            time.sleep(POLL_S)
        raise AirflowError(f"{dag_id}: run {run_id} has not ended within {timeout_s:.0f} s")

    def wait_for_task(self, dag_id: str, run_id: str, task_id: str, state: str, *, timeout_s: float) -> None:
        """Until a task is in that state. Raises ``AirflowError`` when the time is over, or the run, first."""
        deadline = time.monotonic() + timeout_s
        now: str | None = None
        while time.monotonic() < deadline:
            run_has_ended = self.run_state(dag_id, run_id) in RUN_ENDED
            task = self.tasks(dag_id, run_id).get(task_id)
            now = task.state if task else None
            if now == state:
                return
            if run_has_ended:
                break
            time.sleep(POLL_S)
        raise AirflowError(f"{dag_id}: task {task_id} of run {run_id} is {now}, not {state}")

    def _send(self, method: str, path: str, kind: type[T], *, body: Mapping[str, object] | None = None) -> T:
        return msgspec.json.decode(self._answer(method, path, body=body).content, type=kind)

    def _answer(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        try:
            answer = self._http.request(method, path, json=body, headers=headers)
        except httpx.TransportError as error:
            raise AirflowError(f"Airflow does not answer: {method} {path}: {error}") from error
        if not answer.is_success:
            raise AirflowError(f"Airflow refused {method} {path}: {answer.status_code} {answer.text[:500]}")
        return answer


def _exception(error: _LogError) -> str:
    return f"{error.exc_type}: {error.exc_value}"


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"


@dataclass(slots=True, kw_only=True)
class LocalAirflow:
    """A running Airflow. As a context manager it is stopped at the end, whatever happened."""

    folder: Path
    port: int
    username: str
    password: str
    processes: dict[str, ProcessMark]
    """By service."""
    variables: Mapping[str, str]
    """The environment variables of each."""
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

    def client(self) -> AirflowClient:
        """A client that is signed in."""
        client = AirflowClient(self.url, self.username, self.password)
        client.sign_in()
        return client

    def start_again(self, service: str, *, timeout_s: float = 180.0) -> None:
        """Start a service that has died, on its old port; what it left running ends with the others.

        Raises:
            AirflowError: The whole is not healthy in time.
        """
        self.dead.append(self.processes[service])
        self.processes[service] = _spawn(service, self.folder, self.variables, self.port)
        _wait_healthy(self, timeout_s)

    def stop(self) -> None:
        """End the services, and then whatever they left: running tasks, and the JVMs of those."""
        stop(tuple(self.processes.values()), grace_s=15.0)
        sessions = (*self.processes.values(), *self.dead)
        kill([mark for process in sessions for mark in members_of_session(process.pid)])


def start_airflow(
    folder: Path,
    *,
    dags: Path,
    environment: Mapping[str, str],
    port: int | None = None,
    timeout_s: float = 180.0,
) -> LocalAirflow:
    """Airflow with its metadata and logs under ``folder`` and the DAG files of ``dags``, ready for requests.

    Args:
        environment: Added to the services' environment variables: connections, ``TOPICOPS_HOME`` and the like.
        port: Of the API server; left out: any free one.

    Raises:
        AirflowError: It is not healthy in time; nothing is left running.
    """
    port = port or free_port()
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    password = secrets.token_urlsafe(9)
    own = airflow_variables(folder, dags=dags, port=port, password=password)
    variables = {**foreign_variables(os.environ), **own, **environment}
    _migrate(folder, variables, timeout_s)
    airflow = LocalAirflow(
        folder=folder,
        port=port,
        username=USER,
        password=password,
        processes={name: _spawn(name, folder, variables, port) for name in ("api-server", *SERVICES)},
        variables=variables,
    )
    try:
        _wait_healthy(airflow, timeout_s)
    except BaseException:
        airflow.stop()
        raise
    return airflow


def foreign_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Take the settings of any other Airflow out of these variables; connections may stay."""
    return {name: text for name, text in variables.items() if not name.startswith(("AIRFLOW__", "AIRFLOW_HOME"))}


def airflow_variables(folder: Path, *, dags: Path, port: int, password: str) -> dict[str, str]:
    """Airflow's settings; also writes the file of passwords that one of them names."""
    passwords = folder / "passwords.json"
    passwords.write_text(json.dumps({USER: password}), encoding="utf-8")
    passwords.chmod(0o600)
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
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(folder / "plugins"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle]),
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "SCARF_ANALYTICS": "false",
        "PYSPARK_PYTHON": sys.executable,
    }


def _airflow(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("airflow")), *arguments]


def _migrate(folder: Path, variables: Mapping[str, str], timeout_s: float) -> None:
    """Make the metadata database before the services start, since they would all try."""
    log = folder / "logs" / "migrate.log"
    process = spawn(_airflow("db", "migrate"), log=log, folder=folder, environment=variables)
    if wait_gone([process], timeout_s=timeout_s):
        kill([process])
        raise AirflowError(f"Airflow's database was not ready within {timeout_s:.0f} s; its log is {log}")
    if not (folder / "airflow.db").exists():
        raise AirflowError(f"Airflow's database could not be made; the end of {log}:\n{last_lines(log)}")


def _spawn(service: str, folder: Path, variables: Mapping[str, str], port: int) -> ProcessMark:
    api_server = ("api-server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1")
    command = _airflow(*SERVICES.get(service, api_server))
    return spawn(command, log=folder / "logs" / f"{service}.log", folder=folder, environment=variables)


def _wait_healthy(airflow: LocalAirflow, timeout_s: float) -> None:
    client = AirflowClient(airflow.url, airflow.username, airflow.password)
    deadline = time.monotonic() + timeout_s
    while not client.healthy():
        for name, process in airflow.processes.items():
            if not process.alive:
                log = airflow.log_of(name)
                raise AirflowError(f"Airflow's {name} has ended; the end of {log}:\n{last_lines(log)}")
        if time.monotonic() > deadline:
            raise AirflowError(f"Airflow is not healthy after {timeout_s:.0f} s; its logs are in {airflow.folder}/logs")
        time.sleep(POLL_S)


def wait_for_dags(client: AirflowClient, dag_ids: Sequence[str], *, timeout_s: float = 120.0) -> None:
    """Until all are known. Raises ``AirflowError`` with the import error, if there is one."""
    deadline = time.monotonic() + timeout_s
    while missing := [dag_id for dag_id in dag_ids if not client.knows(dag_id)]:
        if errors := client.import_errors():
            raise AirflowError("\n".join(f"{file}:\n{trace}" for file, trace in errors.items()))
        if time.monotonic() > deadline:
            raise AirflowError(f"Airflow has not found {', '.join(missing)} within {timeout_s:.0f} s")
        time.sleep(POLL_S)
