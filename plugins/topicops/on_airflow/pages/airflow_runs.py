"""What Airflow itself knows of DAGs: their newest runs, the next one, and which are paused.

Read from Airflow's database, because the pages are a part of its API server.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from sqlalchemy import and_, func, or_, select

from topicops.on_airflow.pages.airflow_dag import GOES_ON, AirflowDag, AirflowRun

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def dags_of(dag_ids: Collection[str]) -> Mapping[str, AirflowDag]:
    """By DAG id; a DAG that Airflow does not know is not in it."""
    with create_session() as session:
        newest = {run.dag_id: run for run in sorted(_newest_runs(session, dag_ids), key=lambda run: run.goes_on)}
        rows = session.execute(
            select(
                DagModel.dag_id, DagModel.is_paused, DagModel.is_stale, DagModel.has_import_errors,
                DagModel.next_dagrun_create_after, DagModel.timetable_summary, DagBundleModel.last_refreshed,
            ).join(DagBundleModel, DagBundleModel.name == DagModel.bundle_name, isouter=True)
            .where(DagModel.dag_id.in_(dag_ids))
        ).all()  # fmt: skip
    return {
        dag_id: AirflowDag(
            dag_id=dag_id,
            is_paused=bool(paused),
            is_gone=bool(stale or broken),
            next_run_at=next_at,
            has_schedule=summary not in (None, "", "None"),
            files_fetched_at=fetched_at,
            newest=newest.get(dag_id),
        )
        for dag_id, paused, stale, broken, next_at, summary, fetched_at in rows
    }


def _newest_runs(session: Session, dag_ids: Collection[str]) -> Iterator[AirflowRun]:
    """Yield the newest run of each DAG, and each that goes on: an older one may have been cleared."""
    newest = select(func.max(DagRun.id)).where(DagRun.dag_id.in_(dag_ids)).group_by(DagRun.dag_id)
    rows = session.execute(
        select(DagRun.dag_id, DagRun.run_id, DagRun.state, DagRun.start_date, DagRun.end_date).where(
            or_(DagRun.id.in_(newest), and_(DagRun.dag_id.in_(dag_ids), DagRun.state.in_(GOES_ON)))
        )
    )
    for dag_id, run_id, state, started_at, ended_at in rows:
        yield AirflowRun(
            dag_id=dag_id, run_id=run_id, state=str(getattr(state, "value", state)), started_at=started_at,
            ended_at=ended_at,
        )  # fmt: skip
