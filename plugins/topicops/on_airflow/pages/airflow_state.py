"""What Airflow itself knows of DAGs: their newest runs, the next one, which are paused, and what waits for a person.

Read from Airflow's database, because the pages are a part of its API server.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import and_, func, or_, select

from topicops.flow.runs.run import now
from topicops.on_airflow import airflow_inside as inside

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

GOES_ON = frozenset(("queued", "running"))
FETCHED_WITHIN = timedelta(minutes=20)
"""Time within which Airflow surely fetches a bundle; it does so every five minutes by default."""
PIPELINE = "topic_pipeline_"


@dataclass(frozen=True, slots=True, kw_only=True)
class AirflowRun:
    dag_id: str
    run_id: str
    state: str
    """State: ``queued``, ``running``, ``success`` or ``failed``."""
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def name(self) -> str:
        return f"{self.dag_id}/{self.run_id}"

    @property
    def goes_on(self) -> bool:
        return self.state in GOES_ON


@dataclass(frozen=True, slots=True, kw_only=True)
class AirflowDag:
    dag_id: str
    is_paused: bool = False
    is_gone: bool = False
    """Whether its file makes it no longer, or cannot be read."""
    next_run_at: datetime | None = None
    has_schedule: bool = True
    files_fetched_at: datetime | None = None
    """Time when Airflow last fetched the folder of the DAGs; None means that it is not known."""
    newest: AirflowRun | None = None

    @property
    def not_fetched_since(self) -> datetime | None:
        """Time when Airflow fetched the DAG's files last, if that is too long ago."""
        fetched = self.files_fetched_at
        return fetched if fetched and now() - fetched > FETCHED_WITHIN else None


def dags_of(dag_ids: Collection[str]) -> Mapping[str, AirflowDag]:
    """Give these DAGs by id, without those that Airflow does not know."""
    dag, bundle = inside.DagModel, inside.DagBundleModel
    with inside.create_session() as session:
        newest = {run.dag_id: run for run in sorted(_newest_runs(session, dag_ids), key=lambda run: run.goes_on)}
        rows = session.execute(
            select(
                dag.dag_id, dag.is_paused, dag.is_stale, dag.has_import_errors, dag.next_dagrun_create_after,
                dag.timetable_summary, bundle.last_refreshed,
            ).join(bundle, bundle.name == dag.bundle_name, isouter=True).where(dag.dag_id.in_(dag_ids))
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
    run = inside.DagRun
    newest = select(func.max(run.id)).where(run.dag_id.in_(dag_ids)).group_by(run.dag_id)
    rows = session.execute(
        select(run.dag_id, run.run_id, run.state, run.start_date, run.end_date).where(
            or_(run.id.in_(newest), and_(run.dag_id.in_(dag_ids), run.state.in_(GOES_ON)))
        )
    )
    for dag_id, run_id, state, started_at, ended_at in rows:
        word = str(getattr(state, "value", state))
        yield AirflowRun(dag_id=dag_id, run_id=run_id, state=word, started_at=started_at, ended_at=ended_at)


def waiting_questions() -> Mapping[str, str]:
    """Give the newest run that waits for a person's answer, by the id of its DAG."""
    task, detail = inside.TaskInstance, inside.HITLDetail
    finished = [state.value for state in inside.State.finished]
    with inside.create_session() as session:
        rows = session.execute(
            select(task.dag_id, task.run_id)
            .join(detail, detail.ti_id == task.id)
            .where(detail.responded_at.is_(None), task.state.not_in(finished))
            .order_by(detail.created_at)
        )
        return {str(dag_id): str(run_id) for dag_id, run_id in rows}


def environments() -> tuple[str, ...]:
    """Name those with a pipeline that Airflow knows, also those that never ran."""
    dag_id = inside.DagModel.dag_id
    with inside.create_session() as session:
        found = session.scalars(select(dag_id).where(dag_id.startswith(PIPELINE, autoescape=True)))
        return tuple(sorted(name.removeprefix(PIPELINE) for name in found))


def import_errors() -> int:
    """Count the DAG files that Airflow cannot read."""
    with inside.create_session() as session:
        return session.scalar(select(func.count()).select_from(inside.ParseImportError)) or 0
