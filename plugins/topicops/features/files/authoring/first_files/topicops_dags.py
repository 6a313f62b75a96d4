"""The Airflow DAGs: one set for each file in ``topics/environments/``, and one DAG for all."""

from pathlib import Path

from topicops.on_airflow import dags_of

globals().update(dags_of(Path(__file__).absolute().parents[1] / "topics"))
