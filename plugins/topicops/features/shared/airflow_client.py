"""A client of Airflow's public REST API: the few requests that pull requests need."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
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


class _Dag(msgspec.Struct):
    bundle_version: str | None = None


class _Token(msgspec.Struct):
    access_token: str


class _XCom(msgspec.Struct):
    value: object


class AirflowClient:
    """A session with one Airflow. ``sign_in`` comes before every other request, unless there is a token.

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
        self.http = httpx.Client(base_url=url, timeout=30.0, trust_env=through_proxies)
        self._login = {"username": username, "password": password}
        if token:
            self.http.headers["Authorization"] = f"Bearer {token}"

    def sign_in(self) -> str:
        """Return the token, which a browser keeps in a cookie."""
        token = self.send("POST", "/auth/token", _Token, body=self._login).access_token
        self.http.headers["Authorization"] = f"Bearer {token}"
        return token

    def bundle_version(self, dag_id: str) -> str | None:
        """The commit of which Airflow has parsed the DAG; None: its bundle knows no versions."""
        return self.send("GET", f"/api/v2/dags/{dag_id}", _Dag).bundle_version

    def run_page(self, dag_id: str, run_id: str) -> str:
        return f"{self.url}/dags/{dag_id}/runs/{quote(run_id, safe='')}"

    def trigger(self, dag_id: str, conf: Mapping[str, object]) -> str:
        """Start a run with these params, and return its id."""
        body = {"logical_date": None, "conf": dict(conf)}
        return self.send("POST", f"/api/v2/dags/{dag_id}/dagRuns", _Run, body=body).dag_run_id

    def run_state(self, dag_id: str, run_id: str) -> str:
        return self.send("GET", run_path(dag_id, run_id), _Run).state

    def tasks(self, dag_id: str, run_id: str) -> Mapping[str, TaskState]:
        """The tasks of a run by id; of a mapped task one instance, which has not ended well if there is such a one."""
        path = f"{run_path(dag_id, run_id)}/taskInstances?order_by=map_index&limit=100"
        found: dict[str, TaskState] = {}
        for task in self.send("GET", path, _Tasks).task_instances:
            if found.setdefault(task.task_id, task).state == "success":
                found[task.task_id] = task
        return found

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> object:
        path = f"{run_path(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries/{key}?deserialize=true"
        return self.send("GET", path, _XCom).value

    def follow(
        self, dag_id: str, run_id: str, *, timeout_s: float, each_time: Callable[[], None] = lambda: None
    ) -> Iterator[TaskState]:
        """Yield each task when it ends, until the run has ended. Raises ``AirflowError`` if it has not in time.

        Args:
            each_time: Called before each look at the run; what it raises ends the wait.
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

    def send(self, method: str, path: str, kind: type[T], *, body: Mapping[str, object] | None = None) -> T:
        content = self.request(method, path, body=body).content
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError as error:
            raise AirflowError(f"{method} {path} is not answered as Airflow does: {error}") from error

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a request; a question is asked again while Airflow does not answer it. Raises ``AirflowError``."""
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
            answer = self.http.request(method, path, json=body, headers=headers)
        except httpx.TransportError as error:
            raise NotNowError(f"Airflow does not answer: {method} {path}: {error}") from error
        if answer.is_success:
            return answer
        refused = f"Airflow refused {method} {path}: {answer.status_code} {answer.text[:500]}"
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise NoSuchInAirflowError(refused)
        raise NotNowError(refused) if answer.is_server_error else AirflowError(refused)


def run_path(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"
