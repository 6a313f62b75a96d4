"""The Airflow DAGs: one set for each file in ``topics/environments/``, and one DAG for all. Wiring; no spec is read."""

from pathlib import Path

from topicops.on_airflow.dags import environment_dags, environments
from topicops.on_airflow.fleet import fleet_dags

TOPICS = Path(__file__).resolve().parents[1] / "topics"
NAMED = environments(TOPICS)

for environment in NAMED:
    for dag in environment_dags(environment, TOPICS):
        globals()[dag.dag_id] = dag

for dag in fleet_dags(NAMED, TOPICS):
    globals()[dag.dag_id] = dag
