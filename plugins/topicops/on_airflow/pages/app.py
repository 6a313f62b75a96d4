"""The routes of the pages, each behind Airflow's own check: who may read runs of that DAG may read its pages.

Airflow checks nothing that a plugin mounts, so the check is a dependency of the whole app, and of each new route.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from pathlib import Path
from typing import Annotated

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, FastAPI, HTTPException, Query, Response
from fastapi.responses import FileResponse, HTMLResponse

from topicops.flow.topic_index import indexed_environments
from topicops.model.runs.topic_index import TopicsWanted
from topicops.on_airflow.pages import airflow_runs as airflow
from topicops.on_airflow.pages.brokers_page import brokers_page
from topicops.on_airflow.pages.environments_page import environments_page
from topicops.on_airflow.pages.frame import STATIC
from topicops.on_airflow.pages.plan_filter import Filter
from topicops.on_airflow.pages.plan_page import plan_page
from topicops.on_airflow.pages.reading import PlanModel, RunOf, read_plan, without_persons
from topicops.on_airflow.pages.tabs import TABS, Tab
from topicops.on_airflow.pages.topic_page import topic_page
from topicops.on_airflow.pages.topics_frame import plugged_page
from topicops.on_airflow.pages.topics_page import ORDERS, topics_page
from topicops.on_airflow.pages.topics_reading import (
    read_brokers,
    read_environments,
    read_topic,
    read_topics,
)
from topicops.plugged import PAGES, Page
from topicops.steps.reporting.markup import document, tag

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
STATIC_FILES: Mapping[str, str] = {"pages.css": "text/css", "pages.js": "text/javascript"}
_STATIC_FOLDER = Path(__file__).parent / "static"

RunId = Annotated[str, Query(max_length=250)]
Word = Annotated[str, Query(max_length=250)]
Number = Annotated[int, Query(ge=0, le=2**31)]


def build_app(home: Callable[[], Path]) -> FastAPI:
    """The app that the plugin mounts.

    Args:
        home: Gives the folder of the runs; called at each request.
    """
    may_read_runs = Depends(requires_access_dag("GET", DagAccessEntity.RUN))
    app = FastAPI(title="topicops", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[may_read_runs])

    shown, of_environment = partial(_shown, home), partial(_of_environment, home)

    # The DAG is a part of the path: the check reads it from there before it looks anywhere else.
    @app.get("/dags/{dag_id}/plan")
    def plan(
        dag_id: str,
        run_id: RunId,
        user: GetUserDep,
        *,
        action: Word = "",
        state: Word = "",
        risk: Word = "",
        owner: Word = "",
        q: Word = "",
    ) -> Response:
        chosen = Filter(action=action, state=state, risk=risk, owner=owner, q=q)
        return shown(plan_page(_plan_for(user, home(), RunOf(dag_id=dag_id, run_id=run_id)), chosen))

    @app.get("/topics")
    def environments_of(user: GetUserDep) -> Response:
        known = {*indexed_environments(home()), *airflow.environments()}
        may_read = [name for name in sorted(known) if _may_read(f"topic_pipeline_{name}", user)]
        found = read_environments(home(), may_read, airflow.dags_of, airflow.waiting_questions())
        return shown(environments_page(found, airflow.import_errors()))

    @app.get("/dags/{dag_id}/topics")
    def topics(
        dag_id: str,
        *,
        q: Word = "",
        owner: Word = "",
        state: Word = "",
        broker: Number | None = None,
        order: Word = "",
        first: Number = 0,
    ) -> Response:
        known_order = next((known for known in ORDERS if known == order), ORDERS[0])
        wanted = TopicsWanted(q=q, owner=owner, state=state, broker=broker, order=known_order, first=first)
        return of_environment(dag_id, lambda name: topics_page(read_topics(home(), name, wanted, airflow.dags_of)))

    @app.get("/dags/{dag_id}/topic")
    def topic(dag_id: str, name: Word) -> Response:
        return of_environment(
            dag_id, lambda environment: topic_page(read_topic(home(), environment, name, airflow.dags_of))
        )

    @app.get("/dags/{dag_id}/brokers")
    def brokers(dag_id: str) -> Response:
        return of_environment(dag_id, lambda name: brokers_page(read_brokers(home(), name, airflow.dags_of)))

    @app.get("/dags/{dag_id}/broker")
    def broker(dag_id: str, id: Number) -> Response:  # noqa: A002  its name in the address
        return of_environment(dag_id, lambda name: brokers_page(read_brokers(home(), name, airflow.dags_of, chosen=id)))

    @app.get("/dags/{dag_id}/rack")
    def rack(dag_id: str, name: Word) -> Response:
        return of_environment(
            dag_id, lambda environment: brokers_page(read_brokers(home(), environment, airflow.dags_of, rack=name))
        )

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
        return _of_environment(home, dag_id, lambda name: plugged_page(page, home(), name, airflow.dags_of))


def _plug_in_tab(app: FastAPI, tab: Tab, home: Callable[[], Path]) -> None:
    """Add the tab of a feature."""

    @app.get(f"/dags/{{dag_id}}/{tab.name}")
    def plugged(dag_id: str, run_id: RunId) -> Response:
        return _shown(home, tab.page(home(), RunOf(dag_id=dag_id, run_id=run_id)))


def _shown(home: Callable[[], Path], page: str, status: int = 200) -> Response:
    """The page, without the place of the folder on the server, which a warning about a file names."""
    return HTMLResponse(page.replace(f"{escape(str(home()))}/", ""), status, headers=HEADERS)


def _of_environment(home: Callable[[], Path], dag_id: str, page: Callable[[str], str]) -> Response:
    """The page of the environment whose DAG this is; 404 for a DAG that is not ours."""
    environment = RunOf(dag_id=dag_id, run_id="").environment
    if environment is None:
        text = "This is no DAG of topicops: there is nothing to show."
        return _shown(home, document("Topics", tag("p", text, cls="empty"), static=STATIC).text, 404)
    return _shown(home, page(environment))


def _plan_for(user: BaseUser, home: Path, run: RunOf) -> PlanModel:
    """The plan; who answered, and why, is only for readers of the DAG that asked."""
    model = read_plan(home, run)
    may_read_answers = run.environment is None or _may_read(run.approval_dag, user)
    return model if may_read_answers else without_persons(model)


def _may_read(dag_id: str, user: BaseUser) -> bool:
    """As the check of each page of that environment."""
    try:
        requires_access_dag("GET", DagAccessEntity.RUN, dag_id)(None, user)  # type: ignore[arg-type]  # not looked at
    except HTTPException:
        return False
    return True
