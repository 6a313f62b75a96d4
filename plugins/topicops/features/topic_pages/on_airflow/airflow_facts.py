"""What the first page shows of Airflow itself: its pipelines, the questions that wait, and the files it cannot read."""

from __future__ import annotations

from collections.abc import Mapping

from airflow.models.dag import DagModel
from airflow.models.errors import ParseImportError
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from airflow.utils.state import State
from sqlalchemy import func, select

_FINISHED = [state.value for state in State.finished]
PIPELINE = "topic_pipeline_"


def waiting_questions() -> Mapping[str, str]:
    """The newest run that waits for a person's answer, by the id of its DAG."""
    with create_session() as session:
        rows = session.execute(
            select(TaskInstance.dag_id, TaskInstance.run_id)
            .join(HITLDetail, HITLDetail.ti_id == TaskInstance.id)
            .where(HITLDetail.responded_at.is_(None), TaskInstance.state.not_in(_FINISHED))
            .order_by(HITLDetail.created_at)
        )
        return {str(dag_id): str(run_id) for dag_id, run_id in rows}


def environments() -> tuple[str, ...]:
    """Those with a pipeline that Airflow knows, also those that never ran."""
    with create_session() as session:
        found = session.scalars(select(DagModel.dag_id).where(DagModel.dag_id.startswith(PIPELINE, autoescape=True)))
        return tuple(sorted(dag_id.removeprefix(PIPELINE) for dag_id in found))


def import_errors() -> int:
    """How many DAG files Airflow cannot read."""
    with create_session() as session:
        return session.scalar(select(func.count()).select_from(ParseImportError)) or 0
