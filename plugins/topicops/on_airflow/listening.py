"""What happens when a run of ours ends, whoever or whatever ended it: tell of a failure, and write the run's note.

Airflow calls a listener in the scheduler, and in the API server when a person marks a run. So it needs no DAG file, no
bundle, no worker and no task that worked. It must be quick and must never raise: what takes time is done in a thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.listeners import hookimpl
from sqlalchemy import select
from sqlalchemy.orm import object_session

from topicops.on_airflow.dag_ids import environment_of, kind_of

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from sqlalchemy.orm import Session

log = logging.getLogger(__name__)

TASKS_END_WITHIN_S = 20.0
"""How long the tasks of a run that a person marked may still work: Airflow tells a task at its next heartbeat."""
_NOT_WRITTEN: dict[str, list[Callable[[], bool]]] = {}
"""Functions that write what was told, by DAG.

A scheduler that ends forgets it; then nobody is told that the trouble is over.
"""
MOST_NAMED = 5
LONGEST_NOTE = 900
"""Characters; Airflow takes 1,000."""


@hookimpl
def on_dag_run_running(dag_run: DagRun, msg: str) -> None:  # noqa: ARG001  Airflow's signature
    """Remember what was told of an earlier run, if that could not be written."""
    if dag_run.dag_id in _NOT_WRITTEN:
        threading.Thread(target=remember, args=(dag_run.dag_id,), name="remember what was told", daemon=True).start()


@hookimpl
def on_dag_run_success(dag_run: DagRun, msg: str) -> None:  # noqa: ARG001  Airflow's signature
    """Write the note: what the run came to, in a line; tell when Airflow does not fetch the files any more."""
    if environment_of(dag_run.dag_id):
        _write_note(dag_run, "")
        _look_at_files(dag_run)


@hookimpl
def on_dag_run_failed(dag_run: DagRun, msg: str) -> None:
    """Write the note, and tell the notifiers of the setting, unless the run's report has told them."""
    environment = environment_of(dag_run.dag_id)
    if environment is None:
        return
    reason = _reason(dag_run, msg)
    _write_note(dag_run, reason)
    about = (environment, dag_run.dag_id, dag_run.run_id, reason)
    threading.Thread(target=tell_of_end, args=about, name=f"tell of {dag_run.run_id}", daemon=True).start()
    _look_at_files(dag_run)


def tell_of_end(environment: str, dag_id: str, run_id: str, reason: str) -> None:
    """Tell what the run has sent and what nobody verified, once its tasks have ended."""
    try:
        from topicops.flow.runs.run import open_run
        from topicops.on_airflow.metrics import begin_metrics
        from topicops.on_airflow.tellers import TELLERS

        if "manually" in reason:
            time.sleep(TASKS_END_WITHIN_S)
        begin_metrics()
        run = open_run(environment=environment, topics=Path(), group=dag_id, run_id=run_id)
        told = [teller.tell_setting_of_end(run, reason) for teller in TELLERS]
        if not_written := [remember for remember in told if remember]:
            _NOT_WRITTEN[dag_id] = not_written
    except Exception:  # the scheduler must not end with it
        log.exception("nobody is told of the failed run %s of %s", run_id, dag_id)


def _look_at_files(dag_run: DagRun) -> None:
    """Once for all DAGs of an environment: after a run of its pipeline."""
    if kind_of(dag_run.dag_id) == "pipeline":
        about = (dag_run.dag_id, dag_run.run_id)
        threading.Thread(target=tell_of_files, args=about, name=f"files of {dag_run.run_id}", daemon=True).start()


def tell_of_files(dag_id: str, run_id: str) -> None:
    """Tell when Airflow has not fetched the files for too long, and when it fetches them again."""
    try:
        from topicops.flow.runs.run import open_run
        from topicops.on_airflow.metrics import begin_metrics
        from topicops.on_airflow.pages.airflow_dag import not_fetched_since
        from topicops.on_airflow.pages.airflow_runs import dags_of
        from topicops.on_airflow.tellers import TELLERS

        dag = dags_of((dag_id,)).get(dag_id)
        if dag is None or dag.files_fetched_at is None:  # then nobody knows
            return
        begin_metrics()
        run = open_run(environment=environment_of(dag_id) or "", topics=Path(), group=dag_id, run_id=run_id)
        for teller in TELLERS:
            teller.tell_setting_of_files(run, not_fetched_since(dag))
    except Exception:  # the scheduler must not end with it
        log.exception("whether Airflow fetches the files of %s is not known", dag_id)


def remember(dag_id: str) -> None:
    """Write down what was told while the disk was full, so that the next good run tells that it is over."""
    told = _NOT_WRITTEN.pop(dag_id, [])
    if left := [write for write in told if not write()]:
        _NOT_WRITTEN.setdefault(dag_id, left)


def _reason(dag_run: DagRun, msg: str) -> str:
    """Airflow's sentence; where it has only the word ``task_failure``, which tasks failed."""
    if msg not in ("", "task_failure"):
        return msg
    session = object_session(dag_run)
    try:
        with session.no_autoflush if session else nullcontext():
            names = sorted(_failed_tasks(session, dag_run)) if session else []
    except Exception:  # the scheduler must not end with it
        log.exception("nobody can say which tasks of %s failed", dag_run.run_id)
        names = []
    return f"{', '.join(names[:MOST_NAMED])} failed" if names else "a task failed"


def _failed_tasks(session: Session, dag_run: DagRun) -> set[str]:
    from airflow.models.taskinstance import TaskInstance

    of_run = (TaskInstance.dag_id == dag_run.dag_id, TaskInstance.run_id == dag_run.run_id)
    return set(session.scalars(select(TaskInstance.task_id).where(*of_run, TaskInstance.state == "failed")))


def _write_note(dag_run: DagRun, reason: str) -> None:
    """In the session that Airflow is about to commit; a note that a person or the trigger wrote stays in front."""
    try:
        session = object_session(dag_run)
        if session is None:
            return
        with session.no_autoflush:
            headline = _headline(session, dag_run) or reason
        before = dag_run.note or ""
        if headline and headline not in before:
            dag_run.note = f"{before}\n\n{headline}".strip()[:LONGEST_NOTE]
    except Exception:  # the scheduler must not end with it
        log.exception("run %s of %s has no note", dag_run.run_id, dag_run.dag_id)


def _headline(session: Session, dag_run: DagRun) -> str:
    """Of the run's result, which its last task has handed over for CI; empty: none has."""
    from airflow.models.xcom import XComModel

    from topicops.model.runs.results import RESULT_KEY

    found = session.scalars(
        select(XComModel).where(
            XComModel.dag_id == dag_run.dag_id, XComModel.run_id == dag_run.run_id, XComModel.key == RESULT_KEY
        )
    ).first()
    value = XComModel.deserialize_value(found) if found else None
    return str(value.get("headline") or "") if isinstance(value, dict) else ""
