"""The DAG of all environments together: one task, and one Spark application, that only reads."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, get_current_context

from topicops.on_airflow.dags.environment_dags import DEFAULT_ARGS, TAGS
from topicops.on_airflow.dags.params import only_param
from topicops.on_airflow.site import schedule_of

FLEET_ID = "topic_fleet_drift"
FLEET_DOC = """
Shows where the live clusters of all environments differ from the topic files, with one Spark application for all of
them. It only reads: no lease, no question, no change. A difference does not fail the run. An environment that cannot
be read fails it, after all others are done.
"""


def fleet_dags(named: Collection[str], topics: Path) -> tuple[DAG, ...]:
    """Make ``topic_fleet_drift``, where there are several environments."""
    if len(named) < 2:
        return ()

    def look() -> object:
        from topicops.features.fleet.on_airflow import look  # parsing needs none of its imports

        return look.look(topics, get_current_context(), look.look_at_fleet)

    with DAG(
        dag_id=FLEET_ID,
        dag_display_name="all environments: drift",
        schedule=schedule_of("TOPICOPS_FLEET_SCHEDULE", FLEET_ID),
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        default_args=dict(DEFAULT_ARGS),
        params={"only": only_param()},
        tags=list(TAGS),
        doc_md=FLEET_DOC,
    ) as dag:
        PythonOperator(
            task_id="look",
            python_callable=look,
            doc_md="A line for each environment in the log, and the table in XCom fleet. Fails at the end for broken "
            "ones.",
        )
    return (dag,)
