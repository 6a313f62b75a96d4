"""How the app answers: with a page, or with a sentence that there is none, and who may see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Annotated

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import HTTPException, Query, Response
from fastapi.responses import HTMLResponse

from topicops.on_airflow.pages.reading import RunOf
from topicops.on_airflow.routes import STATIC
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
Word = Annotated[str, Query(max_length=250)]


def shown(home: Path, page: str, status: int = 200) -> Response:
    """Answer with the page, without the place of the folder on the server, which a warning about a file names."""
    return HTMLResponse(page.replace(f"{escape(str(home))}/", ""), status, headers=HEADERS)


def of_environment(home: Path, dag_id: str, page: Callable[[Path, str], str]) -> Response:
    """Answer with the page of the environment whose DAG this is; 404 for a DAG that is not ours."""
    environment = RunOf(dag_id=dag_id, run_id="").environment
    if environment is None:
        text = "This is no DAG of topicops: there is nothing to show."
        return shown(home, document("Topics", tag("p", text, cls="empty"), static=STATIC).text, 404)
    return shown(home, page(home, environment))


def may_read(dag_id: str, user: BaseUser) -> bool:
    """Check as each page of that DAG does."""
    try:
        requires_access_dag("GET", DagAccessEntity.RUN, dag_id)(None, user)  # type: ignore[arg-type]  # not looked at
    except HTTPException:
        return False
    return True
