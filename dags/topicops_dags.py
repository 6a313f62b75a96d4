"""The Airflow DAGs: one set for each file in ``topics/environments/``. Wiring only; no spec is read here."""

from pathlib import Path

from topicops.on_airflow.dags import environment_dags, environments

TOPICS = Path(__file__).resolve().parents[1] / "topics"

for environment in environments(TOPICS):
    for dag in environment_dags(environment, TOPICS):
        globals()[dag.dag_id] = dag
