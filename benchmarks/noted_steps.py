"""The pipeline's DAG, whose steps note when they began and ended; imports no more than our own DAG file does."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, get_current_context

from topicops.on_airflow import environment_dags

T = TypeVar("T")


def noted_pipeline(*, topics: Path, notes: Path) -> DAG:
    """The DAG of the environment ``bench``; each of its steps adds a JSON line to ``notes``."""
    dag = environment_dags("bench", topics).pipeline
    for task in dag.tasks:
        if isinstance(task, PythonOperator):
            task.python_callable = _noted(task.python_callable, notes)
    return dag


def _noted(step: Callable[[], T], notes: Path) -> Callable[[], T]:
    def noted_step() -> T:
        began = time.time()
        try:
            return step()
        finally:
            _append(notes, {"run_id": get_current_context()["run_id"], "began": began, "ended": time.time()})

    return noted_step


def _append(notes: Path, note: dict[str, object]) -> None:
    """One write, so that tasks that run side by side do not mix their lines."""
    handle = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(handle, (json.dumps(note) + "\n").encode())
    os.close(handle)
