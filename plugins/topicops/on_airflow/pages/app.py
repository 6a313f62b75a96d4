"""The routes of the pages, each behind Airflow's own check: who may read runs of that DAG may read its pages.

Airflow checks nothing that a plugin mounts, so the check is a dependency of the whole app, and of each new route.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, FastAPI, Response
from fastapi.responses import FileResponse

from topicops.on_airflow.pages.answers import HEADERS, Word, may_read, of_environment, shown
from topicops.on_airflow.pages.plan_filter import Filter
from topicops.on_airflow.pages.plan_page import plan_page
from topicops.on_airflow.pages.reading import PlanModel, RunOf, read_plan, without_persons
from topicops.on_airflow.pages.tabs import TABS, Tab
from topicops.on_airflow.plugged import PAGES, Page
from topicops.on_airflow.topic_pages import TOPIC_PAGES, framed

STATIC_FILES: Mapping[str, str] = {"pages.css": "text/css", "pages.js": "text/javascript"}
_STATIC_FOLDER = Path(__file__).parent / "static"


def build_app(home: Callable[[], Path]) -> FastAPI:
    """The app that the plugin mounts.

    Args:
        home: Gives the folder of the runs; called at each request.
    """
    may_read_runs = Depends(requires_access_dag("GET", DagAccessEntity.RUN))
    app = FastAPI(title="topicops", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[may_read_runs])

    # The DAG is a part of the path: the check reads it from there before it looks anywhere else.
    @app.get("/dags/{dag_id}/plan")
    def plan(
        dag_id: str,
        run_id: Word,
        user: GetUserDep,
        *,
        action: Word = "",
        state: Word = "",
        risk: Word = "",
        owner: Word = "",
        q: Word = "",
    ) -> Response:
        chosen = Filter(action=action, state=state, risk=risk, owner=owner, q=q)
        return shown(home(), plan_page(_plan_for(user, home(), RunOf(dag_id=dag_id, run_id=run_id)), chosen))

    for pages in TOPIC_PAGES:
        pages.add_routes(app, home)
    for page in PAGES:
        _plug_in(app, page, home)
    for tab in TABS:
        _plug_in_tab(app, tab, home)

    @app.get("/static/{name}")
    @app.get("/dags/{dag_id}/static/{name}")
    def static(name: str) -> Response:
        if name not in STATIC_FILES:
            return Response(status_code=404, headers=HEADERS)
        return FileResponse(_STATIC_FOLDER / name, media_type=STATIC_FILES[name], headers=HEADERS)

    return app


def _plug_in(app: FastAPI, page: Page, home: Callable[[], Path]) -> None:
    """Add the page of a feature."""

    @app.get(f"/dags/{{dag_id}}/{page.name}")
    def plugged(dag_id: str) -> Response:
        return of_environment(home(), dag_id, lambda home, environment: framed(page, home, environment))


def _plug_in_tab(app: FastAPI, tab: Tab, home: Callable[[], Path]) -> None:
    """Add the tab of a feature."""

    @app.get(f"/dags/{{dag_id}}/{tab.name}")
    def plugged(dag_id: str, run_id: Word) -> Response:
        return shown(home(), tab.page(home(), RunOf(dag_id=dag_id, run_id=run_id)))


def _plan_for(user: BaseUser, home: Path, run: RunOf) -> PlanModel:
    """The plan; who answered, and why, is only for readers of the DAG that asked."""
    model = read_plan(home, run)
    may_read_answers = run.environment is None or may_read(run.approval_dag, user)
    return model if may_read_answers else without_persons(model)
