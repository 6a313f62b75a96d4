"""What a DAG file needs: all DAGs of one folder of topics."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG

from topicops.on_airflow.dags import environment_dags, environments
from topicops.on_airflow.fleet import fleet_dags


def dags_of(topics: Path) -> dict[str, DAG]:
    """The DAGs by id: one set for each file in ``<topics>/environments/``, and one DAG for all. Reads no spec."""
    named = environments(topics)
    dags = [dag for name in named for dag in environment_dags(name, topics)]
    return {dag.dag_id: dag for dag in (*dags, *fleet_dags(named, topics))}
