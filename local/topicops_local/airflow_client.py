"""What the demo, the tests and the benchmarks ask of Airflow's REST API beside what topicops does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime

import httpx
import msgspec

from topicops.features.shared.airflow_client import (
    POLL_S,
    RUN_ENDED,
    AirflowClient,
    AirflowError,
    NoSuchInAirflowError,
    run_path,
)


class _Run(msgspec.Struct):
    dag_run_id: str
    state: str
    note: str | None = None
    end_date: datetime | None = None


class _Runs(msgspec.Struct):
    dag_runs: tuple[_Run, ...]


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


class _LogError(msgspec.Struct):
    exc_type: str = ""
    exc_value: str = ""


class _LogLine(msgspec.Struct):
    event: str = ""
    error_detail: tuple[_LogError, ...] = ()


ASKING = ("awaiting_input", "deferred")
"""States of a task that waits for a person; the latter in Airflow 3.2."""


class LocalAirflowClient(AirflowClient):
    """A session with the Airflow of this machine; ``healthy`` needs no ``sign_in``."""

    def healthy(self) -> bool:
        """Whether the API answers, and scheduler and DAG processor have sent a heartbeat lately."""
        try:
            answer = self.http.get("/api/v2/monitor/health")
        except httpx.TransportError:
            return False
        if not answer.is_success:
            return False
        parts = msgspec.json.decode(answer.content, type=dict[str, _Component])
        return all(parts[name].status == "healthy" for name in ("scheduler", "dag_processor", "metadatabase"))

    def has_dag(self, dag_id: str) -> bool:
        try:
            self.request("GET", f"/api/v2/dags/{dag_id}")
        except NoSuchInAirflowError:
            return False
        return True

    def import_errors(self) -> Mapping[str, str]:
        """Traceback by DAG file."""
        problems = self.send("GET", "/api/v2/importErrors", _Problems).import_errors
        return {problem.filename or "": problem.stack_trace for problem in problems}

    def pages_in_the_bar(self, plugin: str) -> Mapping[str, str]:
        """Where a plugin's pages of the left bar are, by name."""
        plugins = self.send("GET", "/api/v2/plugins?limit=100", _Plugins).plugins
        views = [view for found in plugins if found.name == plugin for view in found.external_views]
        return {v.name: f"{self.url}/plugin/{v.url_route}" for v in views if v.destination == "nav" and v.url_route}

    def run_ended_at(self, dag_id: str, run_id: str) -> datetime | None:
        """None while the run has not ended."""
        return self.send("GET", run_path(dag_id, run_id), _Run).end_date

    def run_note(self, dag_id: str, run_id: str) -> str:
        return self.send("GET", run_path(dag_id, run_id), _Run).note or ""

    def runs(self, dag_id: str) -> Mapping[str, str]:
        """State by run id, oldest first."""
        runs = self.send("GET", f"/api/v2/dags/{dag_id}/dagRuns?order_by=id&limit=100", _Runs).dag_runs
        return {run.dag_run_id: run.state for run in runs}

    def log(self, dag_id: str, run_id: str, task_id: str, try_number: int = 1, *, map_index: int = -1) -> str:
        """A task's log: one line for each event, without time and level; an exception is its last line."""
        path = f"{run_path(dag_id, run_id)}/taskInstances/{task_id}/logs/{try_number}?map_index={map_index}"
        text = self.request("GET", path, headers={"Accept": "application/x-ndjson"}).content
        lines = [msgspec.json.decode(line, type=_LogLine) for line in text.splitlines() if line.strip()]
        return "\n".join("\n".join([line.event, *map(_exception, line.error_detail)]) for line in lines)

    def answer(
        self, dag_id: str, run_id: str, task_id: str, option: str, *, filled: Mapping[str, str] | None = None
    ) -> None:
        """Answer an approval: ``Approve`` or ``Reject``. Airflow may lose an answer within 3 s of the question.

        Args:
            filled: Fields of the form beside the buttons; the others keep what they hold.
        """
        path = f"{run_path(dag_id, run_id)}/taskInstances/{task_id}/-1/hitlDetails"
        self.request("PATCH", path, body={"chosen_options": [option], "params_input": dict(filled or {})})

    def clear(self, dag_id: str, run_id: str, task_id: str, *, downstream: bool) -> None:
        """Run a task of an ended run once more, as *Clear* in Airflow's pages does."""
        which = {"dag_run_id": run_id, "task_ids": [task_id], "only_failed": False, "dry_run": False}
        which["include_downstream"] = downstream
        self.request("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", body=which)

    def wait_for_question(self, dag_id: str, run_id: str, task_id: str, *, timeout_s: float) -> None:
        """Wait until a task asks a person. Raises ``AirflowError`` when the time or the run ends first."""
        self.wait_for_task(dag_id, run_id, task_id, *ASKING, timeout_s=timeout_s)

    def wait_for_task(self, dag_id: str, run_id: str, task_id: str, *states: str, timeout_s: float) -> None:
        """Wait until a task is in one of the states. Raises ``AirflowError`` when the time or the run ends first."""
        deadline = time.monotonic() + timeout_s
        now: str | None = None
        while time.monotonic() < deadline:
            run_has_ended = self.run_state(dag_id, run_id) in RUN_ENDED
            task = self.tasks(dag_id, run_id).get(task_id)
            now = task.state if task else None
            if now in states:
                return
            if run_has_ended:
                break
            time.sleep(POLL_S)
        raise AirflowError(f"{dag_id}: task {task_id} of run {run_id} is {now}, not {states[0]}")


def _exception(error: _LogError) -> str:
    return f"{error.exc_type}: {error.exc_value}"
