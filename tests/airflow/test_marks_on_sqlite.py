"""Airflow on SQLite may write ``success`` over a mark as failed: a fact that a rule of ``fixtures/truth.py`` rests on.

Databases that lock rows let the scheduler end its look at a run before a mark takes effect; SQLite locks none.
"""

from __future__ import annotations

import pendulum
import pytest
from airflow.api.common.mark_tasks import set_dag_run_state_to_failed
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.serialized_dag import SerializedDagModel
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization, LazyDeserializedDAG, SerializedDAG
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy import select

pytestmark = pytest.mark.usefixtures("airflow_database")
DAG_ID, RUN_ID = "marked_on_sqlite", "looked_at"


@pytest.fixture
def dag() -> SerializedDAG:
    """Two tasks, and a run of which the first one works."""
    with DAG(DAG_ID, schedule=None) as dag:
        EmptyOperator(task_id="first") >> EmptyOperator(task_id="last")
    kept = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    with create_session() as session:
        session.merge(DagBundleModel(name="marked"))
        session.flush()
        SerializedDAG.bulk_write_to_db("marked", None, [LazyDeserializedDAG.from_dag(dag)], session=session)
        session.flush()
        SerializedDagModel.write_dag(LazyDeserializedDAG.from_dag(dag), bundle_name="marked", session=session)
        session.get_one(DagModel, DAG_ID).is_paused = False
    with create_session() as session:
        run = kept.create_dagrun(
            run_id=RUN_ID, run_type=DagRunType.MANUAL, state=DagRunState.RUNNING, run_after=pendulum.now("UTC"),
            logical_date=None, data_interval=None, triggered_by=DagRunTriggeredByType.TEST, session=session,
        )  # fmt: skip
        first = next(task for task in run.task_instances if task.task_id == "first")
        first.set_state(TaskInstanceState.RUNNING, session=session)
    return kept


def state_of_run() -> str:
    with create_session(scoped=False) as session:
        return str(session.query(DagRun.state).filter(DagRun.dag_id == DAG_ID, DagRun.run_id == RUN_ID).scalar())


def test_a_scheduler_that_looks_at_a_run_ends_it_well_over_the_mark_of_a_person(dag: SerializedDAG) -> None:
    with create_session(scoped=False) as of_scheduler:
        # As ``DagRun.get_running_dag_runs_to_examine`` does: with a lock, which SQLite does not have.
        ours = select(DagRun).where(DagRun.dag_id == DAG_ID, DagRun.run_id == RUN_ID)
        looked_at = of_scheduler.scalars(ours.with_for_update(skip_locked=True)).one()
        looked_at.dag = dag
        with create_session(scoped=False) as of_api_server:
            set_dag_run_state_to_failed(dag=dag, run_id=RUN_ID, commit=True, session=of_api_server)
        assert state_of_run() == "failed"
        looked_at.update_state(session=of_scheduler, execute_callbacks=False)
    assert state_of_run() == "success"
