"""Work at the end of a run of ours, whatever ended it: report a failure, and write the run's note.

Airflow calls a listener in the scheduler, and in the API server when a person marks a run. So it needs no DAG file, no
bundle, no worker and no task that worked. It must be quick and must never raise: what takes time is done in a thread.
Every process of Airflow imports this module, so the steps are imported when a run ends.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.listeners import hookimpl
from sqlalchemy import select
from sqlalchemy.orm import object_session

from topicops.on_airflow import airflow_inside as inside
from topicops.on_airflow.names import environment_of, kind_of
from topicops.on_airflow.plugged_at_start import TELLERS

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from topicops.flow.runs.run import EnvironmentRun
    from topicops.on_airflow.airflow_inside import DagRun

log = logging.getLogger(__name__)

TASKS_END_WITHIN_S = 20.0
"""Seconds that the tasks of a run may still work after a person marked it: they learn it at their next heartbeat."""
_NOT_WRITTEN: dict[str, list[Callable[[], bool]]] = {}
"""Functions that write which events were sent, by DAG.

A scheduler that ends forgets them; then no event says that the trouble is over.
"""
MOST_NAMED = 5
LONGEST_NOTE = 900
"""Most characters of a note; Airflow allows 1,000."""


@hookimpl
def on_dag_run_running(dag_run: DagRun, msg: str) -> None:  # noqa: ARG001  Airflow's signature
    """Remember what was told of an earlier run, if that could not be written."""
    if dag_run.dag_id in _NOT_WRITTEN:
        _in_a_thread(remember, dag_run.dag_id)


@hookimpl
def on_dag_run_success(dag_run: DagRun, msg: str) -> None:  # noqa: ARG001  Airflow's signature
    """Write the note: what the run came to, in a line; tell when Airflow does not fetch the files any more."""
    if environment_of(dag_run.dag_id):
        _write_note(dag_run, "")
        _look_at_files(dag_run)


@hookimpl
def on_dag_run_failed(dag_run: DagRun, msg: str) -> None:
    """Write the note, and tell the notifiers of the setting, unless the run's report has told them."""
    if environment_of(dag_run.dag_id) is None:
        return
    reason = _reason(dag_run, msg)
    _write_note(dag_run, reason)
    _in_a_thread(tell_of_end, dag_run.dag_id, dag_run.run_id, reason)
    _look_at_files(dag_run)


def _in_a_thread(function: Callable[..., None], *about: str) -> None:
    name = f"{function.__name__} {' '.join(about)}"
    home = os.environ.get("TOPICOPS_HOME", "")
    if "://" in home and not home.startswith("file:"):
        # The scheduler may fork the processes of tasks, and these could not use the store after it has.
        log.warning("left out, because TOPICOPS_HOME is an object store: %s", name)
        return
    threading.Thread(target=function, args=about, name=name, daemon=True).start()


def _look_at_files(dag_run: DagRun) -> None:
    """Do it once for all DAGs of an environment: after a run of its pipeline."""
    if kind_of(dag_run.dag_id) == "pipeline":
        _in_a_thread(tell_of_files, dag_run.dag_id, dag_run.run_id)


def _run(dag_id: str, run_id: str) -> EnvironmentRun:
    """Open the run's folder, and begin the metrics that telling needs."""
    from topicops.flow.runs.run import open_run

    inside.begin_metrics()
    return open_run(environment=environment_of(dag_id) or "", topics=Path(), group=dag_id, run_id=run_id)


def tell_of_end(dag_id: str, run_id: str, reason: str) -> None:
    """Tell what the run has sent and what nobody verified, once its tasks have ended."""
    try:
        if "manually" in reason:
            time.sleep(TASKS_END_WITHIN_S)
        run = _run(dag_id, run_id)
        told = [teller.tell_setting_of_end(run, reason) for teller in TELLERS]
        if not_written := [remember for remember in told if remember]:
            _NOT_WRITTEN[dag_id] = not_written
    except Exception:  # the scheduler must not end with it
        log.exception("nobody is told of the failed run %s of %s", run_id, dag_id)


def tell_of_files(dag_id: str, run_id: str) -> None:
    """Tell when Airflow has not fetched the files for too long, and when it fetches them again."""
    try:
        from topicops.on_airflow.pages.airflow_state import dags_of

        dag = dags_of((dag_id,)).get(dag_id)
        if dag is None or dag.files_fetched_at is None:  # then nobody knows
            return
        run = _run(dag_id, run_id)
        for teller in TELLERS:
            teller.tell_setting_of_files(run, dag.not_fetched_since)
    except Exception:  # the scheduler must not end with it
        log.exception("whether Airflow fetches the files of %s is not known", dag_id)


def remember(dag_id: str) -> None:
    """Write down what was told while the disk was full, so that the next good run tells that it is over."""
    told = _NOT_WRITTEN.pop(dag_id, [])
    if left := [write for write in told if not write()]:
        _NOT_WRITTEN.setdefault(dag_id, left)


def _reason(dag_run: DagRun, msg: str) -> str:
    """Give Airflow's sentence; where it has only the word ``task_failure``, which tasks failed."""
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
    task = inside.TaskInstance
    of_run = (task.dag_id == dag_run.dag_id, task.run_id == dag_run.run_id)
    return set(session.scalars(select(task.task_id).where(*of_run, task.state == "failed")))


def _write_note(dag_run: DagRun, reason: str) -> None:
    """Write in the session that Airflow is about to commit; a note of a person or the trigger stays in front."""
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
    """Return the headline of the result that the last task left for CI; empty if there is none."""
    from topicops.model.runs.results import RESULT_KEY

    xcom = inside.XComModel
    found = session.scalars(
        select(xcom).where(xcom.dag_id == dag_run.dag_id, xcom.run_id == dag_run.run_id, xcom.key == RESULT_KEY)
    ).first()
    value = xcom.deserialize_value(found) if found else None
    return str(value.get("headline") or "") if isinstance(value, dict) else ""
