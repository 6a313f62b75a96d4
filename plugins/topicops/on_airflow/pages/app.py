"""The routes of the pages, each behind Airflow's own check: who may read runs of that DAG may read its pages.

Airflow checks nothing that a plugin mounts, so the check is a dependency of the whole app, and of each new route.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import Depends, FastAPI, Query, Response
from fastapi.responses import FileResponse, HTMLResponse

from topicops.on_airflow.pages.plan_filter import Filter
from topicops.on_airflow.pages.plan_page import plan_page
from topicops.on_airflow.pages.quality_page import quality_page
from topicops.on_airflow.pages.reading import RunOf, read_plan, read_quality

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


def build_app(home: Callable[[], Path]) -> FastAPI:
    """The app that the plugin mounts.

    Args:
        home: Gives the folder of the runs; called at each request.
    """
    may_read_runs = Depends(requires_access_dag("GET", DagAccessEntity.RUN))
    app = FastAPI(title="topicops", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[may_read_runs])

    # The DAG is a part of the path: the check reads it from there before it looks anywhere else.
    @app.get("/dags/{dag_id}/quality")
    def quality(dag_id: str, run_id: RunId) -> Response:
        return HTMLResponse(quality_page(read_quality(home(), RunOf(dag_id=dag_id, run_id=run_id))), headers=HEADERS)

    @app.get("/dags/{dag_id}/plan")
    def plan(
        dag_id: str,
        run_id: RunId,
        *,
        action: Word = "",
        state: Word = "",
        risk: Word = "",
        owner: Word = "",
        q: Word = "",
    ) -> Response:
        chosen = Filter(action=action, state=state, risk=risk, owner=owner, q=q)
        return HTMLResponse(plan_page(read_plan(home(), RunOf(dag_id=dag_id, run_id=run_id)), chosen), headers=HEADERS)

    @app.get("/dags/{dag_id}/static/{name}")
    def static(name: str) -> Response:
        if name not in STATIC_FILES:
            return Response(status_code=404, headers=HEADERS)
        return FileResponse(_STATIC_FOLDER / name, media_type=STATIC_FILES[name], headers=HEADERS)

    return app
