"""The DAG ``topic_moves_<environment>``: one sensor, each of whose looks makes one step of the moves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, BaseSensorOperator, Context, PokeReturnValue, get_current_context

from topicops.features.moves.on_airflow import KIND
from topicops.model.errors import UsageError
from topicops.on_airflow.dags.environment_dags import TASK_DOCS, shared
from topicops.on_airflow.for_dag_files import kafka_alias, topics_alias
from topicops.on_airflow.site import Site, duration_of

EVERY = "TOPICOPS_STEP_MOVES_EVERY"
LEAST = timedelta(seconds=15)
"""Least time between two steps: Airflow 3.3 fails some tasks that it starts again sooner."""
WHOLE_MOVES_WITHIN = timedelta(days=60)
STEP_WITHIN = timedelta(minutes=10)
DOC = """
Carries the moves of replicas of `{environment}` on, until none is left and nothing is owed: each minute the task `step`
makes one step of some seconds, and then waits without a worker and without the lease. `{pipeline}` starts it; any other
step, such as that of `topicops moves --step`, goes on with the same moves.
"""
STEP_DOC = "Makes one step of the moves each time, and ends when none is left. The log says how far they are."


def moves_dag(site: Site) -> DAG:
    with DAG(
        schedule=None,
        max_active_runs=1,
        disable_bundle_versioning=True,  # moves take hours: the files of now say whether they are still asked for
        **shared(site, KIND),
        doc_md=DOC.format(environment=site.environment, pipeline=site.pipeline_id),
    ) as dag:
        aliases = [topics_alias(site.environment), kafka_alias(site.environment)]

        def announce_group(first: int, server: str | None = None) -> None:
            from topicops.features.moves.on_airflow.looks import announce

            announce(site, get_current_context(), first, server)

        step = MovesSensor(task_id="step", site=site, poke_interval=step_every(), outlets=aliases, doc_md=STEP_DOC)
        PythonOperator.partial(
            task_id="announce",
            python_callable=announce_group,
            outlets=aliases,
            max_active_tis_per_dagrun=1,
            doc_md=TASK_DOCS["announce"],
        ).expand(op_args=step.output)
    return dag


def step_every() -> timedelta:
    """Read the setting. Raises ``UsageError``."""
    every = duration_of(EVERY, "1m")
    if every < LEAST:
        raise UsageError(f"{EVERY} is less than {LEAST.seconds}s, after which Airflow can start a task again; write 1m")
    return every


class MovesSensor(BaseSensorOperator):
    """Makes a step each time, and is done when nothing is left to do; holds no worker meanwhile."""

    def __init__(self, *, site: Site, **kwargs: Any) -> None:
        super().__init__(mode="reschedule", timeout=WHOLE_MOVES_WITHIN, execution_timeout=STEP_WITHIN, **kwargs)
        self.site = site

    def poke(self, context: Context) -> PokeReturnValue:
        from topicops.features.moves.on_airflow.looks import look

        return look(self.site, context)
