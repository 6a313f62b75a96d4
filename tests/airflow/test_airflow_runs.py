"""What the pages read of Airflow's own database: newest runs, pauses, the next run, the last fetch of the files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.errors import ParseImportError
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType

from topicops.on_airflow.pages import airflow_state

pytestmark = pytest.mark.usefixtures("airflow_database")
DAG = "topic_pipeline_of-the-pages"
AT = datetime(2026, 1, 1, tzinfo=UTC)


def dag_run(run_id: str, state: DagRunState, hours: int) -> DagRun:
    return DagRun(
        dag_id=DAG, run_id=run_id, run_type=DagRunType.MANUAL, state=state, run_after=AT + timedelta(hours=hours),
        logical_date=None, triggered_by=DagRunTriggeredByType.TEST, start_date=AT + timedelta(hours=hours),
    )  # fmt: skip


@pytest.fixture
def known() -> Iterator[None]:
    with create_session() as session:
        session.merge(DagBundleModel(name="pages"))
        session.flush()
        session.get(DagBundleModel, "pages").last_refreshed = AT  # type: ignore[union-attr]  # just made
        model = DagModel(
            dag_id=DAG, bundle_name="pages", is_paused=True, is_stale=False, fileloc="x", timetable_summary="@hourly",
            max_active_tasks=1, max_consecutive_failed_dag_runs=0, has_task_concurrency_limits=False,
            next_dagrun_create_after=AT,
        )  # fmt: skip
        session.merge(model)
        session.add_all([dag_run("old", DagRunState.SUCCESS, 1), dag_run("new", DagRunState.FAILED, 2)])
    yield
    with create_session() as session:
        session.query(DagRun).filter(DagRun.dag_id == DAG).delete()
        session.query(DagModel).filter(DagModel.dag_id == DAG).delete()


@pytest.mark.usefixtures("known")
def test_the_newest_run_of_a_dag_with_what_keeps_others_away() -> None:
    dag = airflow_state.dags_of([DAG, "not.there"])[DAG]
    assert dag.newest is not None
    assert (dag.newest.run_id, dag.newest.state, dag.newest.goes_on) == ("new", "failed", False)
    assert (dag.is_paused, dag.is_gone, dag.next_run_at, dag.files_fetched_at) == (True, False, AT, AT)
    assert set(airflow_state.dags_of([DAG, "not.there"])) == {DAG}
    assert "of-the-pages" in airflow_state.environments()


@pytest.mark.usefixtures("known")
def test_an_older_run_that_was_cleared_and_goes_on_is_the_newest() -> None:
    with create_session() as session:
        session.query(DagRun).filter(DagRun.run_id == "old", DagRun.dag_id == DAG).update({"state": "running"})
    dag = airflow_state.dags_of([DAG])[DAG]
    assert dag.newest is not None
    assert (dag.newest.run_id, dag.newest.goes_on) == ("old", True)


@pytest.mark.usefixtures("known")
def test_files_that_airflow_cannot_read_are_counted() -> None:
    before = airflow_state.import_errors()
    with create_session() as session:
        session.add(ParseImportError(bundle_name="pages", filename="broken.py", stacktrace="x", timestamp=AT))
    try:
        assert airflow_state.import_errors() == before + 1
    finally:
        with create_session() as session:
            session.query(ParseImportError).filter(ParseImportError.filename == "broken.py").delete()
    assert f"topic_approval_{DAG.removeprefix('topic_pipeline_')}" not in airflow_state.waiting_questions()
