"""The Airflow DAGs: one set for each file in ``topics/environments/``, and one DAG for all. Wiring; no spec is read."""

from pathlib import Path

from topicops.on_airflow.dag_file import dags_of

globals().update(dags_of(Path(__file__).absolute().parents[1] / "topics"))
