"""Starts the moves DAG where something moves, waits or is owed, and no run of it is there."""

from __future__ import annotations

import logging
from contextlib import suppress

from airflow.sdk import Context

from topicops.features.moves.on_airflow import KIND
from topicops.features.moves.telling.known import known_moves
from topicops.flow.runs.run import EnvironmentRun, note, now
from topicops.model.errors import ArtifactError
from topicops.on_airflow.airflow_inside import trigger_run

UNFINISHED = ["queued", "running"]

log = logging.getLogger(__name__)


def start_moves(run: EnvironmentRun, context: Context) -> None:
    """Start a run that carries the moves of the environment on. Raises nothing: the next run tries again."""
    dag_id = f"topic_{KIND}_{run.environment}"
    try:
        if known_moves(run.home, run.environment).is_idle:
            return
        ti = context["ti"]
        if ti.get_dag(dag_id).is_paused:
            _say(run, f"{dag_id} is paused, so only runs of the pipeline carry the moves on: unpause it")
            return
        if ti.get_dr_count(dag_id=dag_id, states=UNFINISHED):
            log.info("%s carries the moves on already", dag_id)
            return
        run_id = f"moves__{now():%Y-%m-%dT%H:%M:%S.%f}"
        trigger_run(dag_id, run_id, said=f"Moves of {ti.dag_id}, run {ti.run_id}")
        log.info("started %s, run %s: it carries the moves on", dag_id, run_id)
    except Exception as error:  # noqa: BLE001  whatever Airflow or the disk says, what was sent counts
        _say(run, f"{dag_id} was not started, so only runs of the pipeline carry the moves on: {error}")


def _say(run: EnvironmentRun, sentence: str) -> None:
    log.warning("%s", sentence)
    with suppress(ArtifactError):
        note(run, [sentence])
