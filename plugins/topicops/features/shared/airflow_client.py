"""A client of Airflow's public REST API: the few requests that the demo, pull requests and the tests need."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TypeVar
from urllib.parse import quote

import httpx
import msgspec

from topicops.model.errors import TopicopsError

T = TypeVar("T")

ENDED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
RUN_ENDED = frozenset({"success", "failed"})
POLL_S = 0.5


class AirflowError(TopicopsError):
    """Airflow did not start, does not answer, or refused a request."""


class NotNowError(AirflowError):
    """Airflow does not answer, or has a fault of its own: a later try may end well."""


class NoSuchInAirflowError(AirflowError):
    """Airflow does not know the DAG, the run or the task."""


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a run, as the REST API describes it."""

    task_id: str
    state: str | None
    try_number: int
    map_index: int = -1
    """Index of a mapped task; -1 means that the task is there once."""
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


class _Dag(msgspec.Struct):
    bundle_version: str | None = None


class _Token(msgspec.Struct):
    access_token: str


class _Component(msgspec.Struct):
    status: str | None = None


class _Problem(msgspec.Struct):
    filename: str | None
    stack_trace: str


class _Problems(msgspec.Struct):
    import_errors: tuple[_Problem, ...]


class _View(msgspec.Struct):
    name: str
    destination: str = ""
    url_route: str | None = None


class _Plugin(msgspec.Struct):
    name: str | None = None
    external_views: tuple[_View, ...] = ()


class _Plugins(msgspec.Struct):
    plugins: tuple[_Plugin, ...]


class _XCom(msgspec.Struct):
    value: object


class _LogError(msgspec.Struct):
    exc_type: str = ""
    exc_value: str = ""


class _LogLine(msgspec.Struct):
    event: str = ""
    error_detail: tuple[_LogError, ...] = ()


class AirflowClient:
    """A session with one Airflow. ``sign_in`` comes before every request but ``healthy``, unless there is a token.

    Args:
        patience_s: How long a question is asked again while Airflow does not answer it.
    """

    def __init__(
        self,
        url: str,
        username: str = "",
        password: str = "",
        *,
        token: str = "",
        through_proxies: bool = False,
        patience_s: float = 0.0,
    ) -> None:
        self._patience_s = patience_s
        self.url = url.rstrip("/")
        self._http = httpx.Client(base_url=url, timeout=30.0, trust_env=through_proxies)
        self._login = {"username": username, "password": password}
        if token:
            self._http.headers["Authorization"] = f"Bearer {token}"

    def healthy(self) -> bool:
        """Return whether the API answers, and scheduler and DAG processor have sent a heartbeat lately."""
        try:
            answer = self._http.get("/api/v2/monitor/health", timeout=5.0)
        except httpx.TransportError:
            return False
        if not answer.is_success:
            return False
        parts = msgspec.json.decode(answer.content, type=dict[str, _Component])
        return all(parts[name].status == "healthy" for name in ("scheduler", "dag_processor", "metadatabase"))

    def sign_in(self) -> str:
        """Return the token, which a browser keeps in a cookie."""
        token = self._send("POST", "/auth/token", _Token, body=self._login).access_token
        self._http.headers["Authorization"] = f"Bearer {token}"
        return token

    def has_dag(self, dag_id: str) -> bool:
        return self._http.get(f"/api/v2/dags/{dag_id}").is_success

    def bundle_version(self, dag_id: str) -> str | None:
        """Return the commit of which Airflow has parsed the DAG; None means that its bundle knows no versions."""
        return self._send("GET", f"/api/v2/dags/{dag_id}", _Dag).bundle_version

    def import_errors(self) -> Mapping[str, str]:
        """Traceback by DAG file."""
        problems = self._send("GET", "/api/v2/importErrors", _Problems).import_errors
        return {problem.filename or "": problem.stack_trace for problem in problems}

    def run_page(self, dag_id: str, run_id: str) -> str:
        """Return where people look at a run."""
        return f"{self.url}/dags/{dag_id}/runs/{quote(run_id, safe='')}"

    def pages_in_the_bar(self, plugin: str) -> Mapping[str, str]:
        """Return where a plugin's pages of the left bar are, by name."""
        plugins = self._send("GET", "/api/v2/plugins?limit=100", _Plugins).plugins
        views = [view for found in plugins if found.name == plugin for view in found.external_views]
        return {v.name: f"{self.url}/plugin/{v.url_route}" for v in views if v.destination == "nav" and v.url_route}

    def trigger(self, dag_id: str, conf: Mapping[str, object]) -> str:
        """Start a run with these params, and return its id."""
        body = {"logical_date": None, "conf": dict(conf)}
        return self._send("POST", f"/api/v2/dags/{dag_id}/dagRuns", _Run, body=body).dag_run_id

    def run_state(self, dag_id: str, run_id: str) -> str:
        return self._send("GET", _run_path(dag_id, run_id), _Run).state

    def run_ended_at(self, dag_id: str, run_id: str) -> datetime | None:
        """Return None while the run has not ended."""
        return self._send("GET", _run_path(dag_id, run_id), _Run).end_date

    def run_note(self, dag_id: str, run_id: str) -> str:
        return self._send("GET", _run_path(dag_id, run_id), _Run).note or ""

    def runs(self, dag_id: str) -> Mapping[str, str]:
        """State by run id, oldest first."""
        runs = self._send("GET", f"/api/v2/dags/{dag_id}/dagRuns?order_by=id&limit=100", _Runs).dag_runs
        return {run.dag_run_id: run.state for run in runs}

    def tasks(self, dag_id: str, run_id: str) -> Mapping[str, TaskState]:
        """Return the tasks of a run by id; of a mapped task one instance, if possible one that has not ended well."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances?order_by=map_index&limit=100"
        found: dict[str, TaskState] = {}
        for task in self._send("GET", path, _Tasks).task_instances:
            if found.setdefault(task.task_id, task).state == "success":
                found[task.task_id] = task
        return found

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> object:
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries/{key}?deserialize=true"
        return self._send("GET", path, _XCom).value

    def log(self, dag_id: str, run_id: str, task_id: str, try_number: int = 1, *, map_index: int = -1) -> str:
        """Return a task's log: one line for each event, without time and level; an exception is its last line."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{task_id}/logs/{try_number}?map_index={map_index}"
        text = self._answer("GET", path, headers={"Accept": "application/x-ndjson"}).content
        lines = [msgspec.json.decode(line, type=_LogLine) for line in text.splitlines() if line.strip()]
        return "\n".join("\n".join([line.event, *map(_exception, line.error_detail)]) for line in lines)

    def answer(
        self, dag_id: str, run_id: str, task_id: str, option: str, *, filled: Mapping[str, str] | None = None
    ) -> None:
        """Answer an approval: ``Approve`` or ``Reject``. Airflow may lose an answer within 3 s of the question.

        Args:
            filled: Fields of the form beside the buttons; the others keep what they hold.
        """
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{task_id}/-1/hitlDetails"
        self._answer("PATCH", path, body={"chosen_options": [option], "params_input": dict(filled or {})})

    def clear(self, dag_id: str, run_id: str, task_id: str, *, downstream: bool) -> None:
        """Run a task of an ended run once more, as *Clear* in Airflow's pages does."""
        which = {"dag_run_id": run_id, "task_ids": [task_id], "only_failed": False, "dry_run": False}
        which["include_downstream"] = downstream
        self._answer("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", body=which)

    def follow(
        self, dag_id: str, run_id: str, *, timeout_s: float, each_time: Callable[[], None] = lambda: None
    ) -> Iterator[TaskState]:
        """Yield each task when it ends, until the run has ended.

        Args:
            each_time: Called before each look at the run; what it raises ends the wait.

        Raises:
            AirflowError: The run has not ended in time.
        """
        deadline = time.monotonic() + timeout_s
        seen: set[str] = set()
        while time.monotonic() < deadline:
            each_time()
            run_has_ended = self.run_state(dag_id, run_id) in RUN_ENDED
            for task in self.tasks(dag_id, run_id).values():
                if task.state in ENDED and task.task_id not in seen:
                    seen.add(task.task_id)
                    yield task
            if run_has_ended:
                return
            time.sleep(POLL_S)
        raise AirflowError(f"{dag_id}: run {run_id} has not ended within {timeout_s:.0f} s")

    def wait_for_task(self, dag_id: str, run_id: str, task_id: str, state: str, *, timeout_s: float) -> None:
        """Wait until a task is in that state. Raises ``AirflowError`` when the time or the run ends first."""
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
        content = self._answer(method, path, body=body).content
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError as error:
            raise AirflowError(f"{method} {path} is not answered as Airflow does: {error}") from error

    def _answer(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        deadline = time.monotonic() + (self._patience_s if method == "GET" else 0.0)
        while True:
            try:
                return self._answer_once(method, path, body, headers)
            except NotNowError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(POLL_S)

    def _answer_once(
        self, method: str, path: str, body: Mapping[str, object] | None, headers: Mapping[str, str] | None
    ) -> httpx.Response:
        try:
            answer = self._http.request(method, path, json=body, headers=headers)
        except httpx.TransportError as error:
            raise NotNowError(f"Airflow does not answer: {method} {path}: {error}") from error
        if answer.is_success:
            return answer
        refused = f"Airflow refused {method} {path}: {answer.status_code} {answer.text[:500]}"
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise NoSuchInAirflowError(refused)
        raise NotNowError(refused) if answer.is_server_error else AirflowError(refused)


def _exception(error: _LogError) -> str:
    return f"{error.exc_type}: {error.exc_value}"


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"
