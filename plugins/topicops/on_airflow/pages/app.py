"""The routes of the pages, each behind Airflow's own check: who may read runs of that DAG may read its pages.

Airflow checks nothing that a plugin mounts, so the check is a dependency of the whole app, and of each new route.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Annotated

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from fastapi import Depends, FastAPI, HTTPException, Query, Response
from fastapi.responses import FileResponse, HTMLResponse

from topicops.flow.runs.run import Place
from topicops.on_airflow.airflow_inside import GetUserDep, requires_access_dag
from topicops.on_airflow.names import RunOf, environment_of
from topicops.on_airflow.pages.parts import NOT_OURS, empty, page
from topicops.on_airflow.pages.plan_page import plan_page
from topicops.on_airflow.pages.reading import PlanModel, read_plan, without_persons
from topicops.on_airflow.plugged_at_start import MOVING, TABS, TOPIC_PAGES, Tab
from topicops.steps.reporting.markup import Html

STATIC_FILES: Mapping[str, str] = {"pages.css": "text/css", "pages.js": "text/javascript"}
_STATIC_FOLDER = Path(__file__).parent / "static"
HEADERS: Mapping[str, str] = {
    # Nothing but our own files: no inline script or style, whatever a text on the page may look like.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-cache",
}
Word = Annotated[str, Query(max_length=250)]


def build_app(home: Callable[[], Place]) -> FastAPI:
    """Make the app that the plugin mounts; each request asks ``home`` for the folder of the runs."""
    may_read_runs = Depends(requires_access_dag("GET", DagAccessEntity.RUN))
    app = FastAPI(title="topicops", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[may_read_runs])

    # The DAG is a part of the path: the check reads it from there before it looks anywhere else.
    @app.get("/dags/{dag_id}/plan")
    def plan(dag_id: str, run_id: Word, user: GetUserDep, *, state: Word = "") -> Response:
        run = RunOf(dag_id=dag_id, run_id=run_id)
        model = read_plan(home(), run)
        if run.environment and not may_read(run.approval_dag, user):
            model = without_persons(model)
        return shown(home(), plan_page(model, state, moving=_moving(home(), model)))

    for pages in TOPIC_PAGES:
        pages.add_routes(app, home)
    for tab in TABS:
        _plug_in_tab(app, tab, home)

    @app.get("/static/{name}")
    @app.get("/dags/{dag_id}/static/{name}")
    def static(name: str) -> Response:
        if name not in STATIC_FILES:
            return Response(status_code=404, headers=HEADERS)
        return FileResponse(_STATIC_FOLDER / name, media_type=STATIC_FILES[name], headers=HEADERS)

    return app


def _moving(home: Place, model: PlanModel) -> list[Html | None]:
    """Show what moves because of the run, or of that which asked about its changes; all, of one that carries it on."""
    environment, question = model.run.environment, model.question
    if environment is None:
        return []
    if model.run.carries_moves_on:
        return [moving.moves_of_environment(home, environment) for moving in MOVING]
    asked = {f"{question.dag_id}/{question.run_id}"} if question and question.run_id else set()
    runs = {f"{model.run.dag_id}/{model.run.run_id}", *asked}
    return [moving.moves_of_runs(home, environment, runs) for moving in MOVING]


def _plug_in_tab(app: FastAPI, tab: Tab, home: Callable[[], Place]) -> None:
    @app.get(f"/dags/{{dag_id}}/{tab.name}")
    def plugged(dag_id: str, run_id: Word) -> Response:
        return shown(home(), tab.page(home(), RunOf(dag_id=dag_id, run_id=run_id)))


def shown(home: Place, page: str, status: int = 200) -> Response:
    """Answer with the page, without the place of the folder on the server, which a warning about a file names."""
    return HTMLResponse(page.replace(f"{escape(str(home))}/", ""), status, headers=HEADERS)


def of_environment(home: Place, dag_id: str, page_of: Callable[[Place, str], str]) -> Response:
    """Answer with the page of the environment whose DAG this is; 404 for a DAG that is not ours."""
    environment = environment_of(dag_id)
    if environment is None:
        return shown(home, page("Topics", empty(NOT_OURS)), 404)
    return shown(home, page_of(home, environment))


def may_read(dag_id: str, user: BaseUser) -> bool:
    """Check as each page of that DAG does."""
    try:
        requires_access_dag("GET", DagAccessEntity.RUN, dag_id)(None, user)  # type: ignore[arg-type]  # not looked at
    except HTTPException:
        return False
    return True
