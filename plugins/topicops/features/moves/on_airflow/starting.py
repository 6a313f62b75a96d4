"""Starts the moves DAG where something moves, waits or is owed, and no run of it is there; else makes a step."""

from __future__ import annotations

import logging
from contextlib import suppress

from airflow.sdk import Context

from topicops.features.moves.on_airflow import KIND
from topicops.features.moves.record import read_moves
from topicops.features.moves.telling.known import known_moves
from topicops.features.moves.telling.status import status_of
from topicops.flow.runs.outcomes import read_outcomes
from topicops.flow.runs.run import EnvironmentRun, note, now
from topicops.model.errors import ArtifactError
from topicops.on_airflow.airflow_inside import trigger_run

UNFINISHED = ["queued", "running"]

log = logging.getLogger(__name__)


def start_moves(run: EnvironmentRun, context: Context) -> None:
    """Start a run that carries the moves of the environment on; where none can be, make one step in its place.

    Raises nothing: the next run tries again.
    """
    try:
        if known_moves(run.home, run.environment).is_idle:
            return
        if not _goes_on(run, context) and context["params"].get("mode") != "plan":
            _step(run)
        if context["ti"].task_id == "report":
            _say_what_is_left(run)
    except Exception as error:  # noqa: BLE001  whatever the cluster or the disk says, what was sent counts
        _say(run, f"this run made no step of the moves: {error}")


def _goes_on(run: EnvironmentRun, context: Context) -> bool:
    """Return whether a run of the moves DAG is there or was started; if not, say why."""
    dag_id, ti = f"topic_{KIND}_{run.environment}", context["ti"]
    try:
        if ti.get_dag(dag_id).is_paused:
            _say(run, f"{dag_id} is paused, so only runs of the pipeline carry the moves on: unpause it")
            return False
        if ti.get_dr_count(dag_id=dag_id, states=UNFINISHED):
            log.info("%s carries the moves on already", dag_id)
            return True
        run_id = f"moves__{now():%Y-%m-%dT%H:%M:%S.%f}"
        trigger_run(dag_id, run_id, said=f"Moves of {ti.dag_id}, run {ti.run_id}")
    except Exception as error:  # noqa: BLE001  whatever Airflow says, what was sent counts
        _say(run, f"{dag_id} was not started, so only runs of the pipeline carry the moves on: {error}")
        return False
    log.info("started %s, run %s: it carries the moves on", dag_id, run_id)
    return True


def _step(run: EnvironmentRun) -> None:
    from topicops.features.moves import stepping

    stepping.take_step(run)
    log.info("made one step: %s", status_of(run.environment, read_moves(run.home, run.environment)).text)


def _say_what_is_left(run: EnvironmentRun) -> None:
    """Note what the last step of anybody has said, beside what the outcomes of this run say already."""
    told = [outcome.message for outcome in read_outcomes(run)]
    left = known_moves(run.home, run.environment).notes
    note(run, [f"moves: {said}" for said in left if not any(said.rstrip(".") in message for message in told)])


def _say(run: EnvironmentRun, sentence: str) -> None:
    log.warning("%s", sentence)
    with suppress(ArtifactError):
        note(run, [sentence])
