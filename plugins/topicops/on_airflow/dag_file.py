"""What a DAG file needs: all DAGs of one folder of topics."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, get_parsing_context

from topicops.on_airflow.dags import environment_dags, environments
from topicops.on_airflow.fleet import FLEET_ID, fleet_dags


def dags_of(topics: Path) -> dict[str, DAG]:
    """The DAGs by id: one set for each file in ``<topics>/environments/``, and one DAG for all.

    In the process of a task these are only the DAGs of its own environment.
    """
    named = environments(topics)
    dag_id = get_parsing_context().dag_id
    wanted = [name for name in named if dag_id is None or dag_id.endswith(f"_{name}")]
    dags = [dag for name in wanted for dag in environment_dags(name, topics)]
    return {dag.dag_id: dag for dag in (*dags, *(fleet_dags(named, topics) if dag_id in (None, FLEET_ID) else ()))}
