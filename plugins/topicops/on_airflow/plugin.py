"""The plugin that Airflow loads: the tabs of a run, Topics in the bar on the left, and the pages behind them."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING

from airflow.plugins_manager import AirflowPlugin

from topicops.on_airflow import listening
from topicops.on_airflow.names import BELOW, PLAN_ROUTE, PREFIX, TAG
from topicops.on_airflow.plugged_at_start import TABS, TOPIC_PAGES

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


async def pages(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve the pages, imported at the first request: every Airflow process imports this module, one serves."""
    app = await asyncio.to_thread(_pages)
    await app(scope, receive, send)


@cache
def _pages() -> ASGIApp:
    from topicops.flow.runs.run import home_folder
    from topicops.on_airflow.pages.app import build_app

    return build_app(home_folder)


def _tab(name: str, page: str, destination: str, url_route: str) -> dict[str, object]:
    """Return a tab of our own DAGs; Airflow inserts the ids, percent-encoded."""
    href = f"{BELOW}dags/{{DAG_ID}}/{page}?run_id={{RUN_ID}}"
    ours = {"dag.tags.name": [TAG]}
    return {"name": name, "href": href, "destination": destination, "url_route": url_route, "applies_to": ours}


class TopicopsPlugin(AirflowPlugin):
    name = "topicops"
    listeners = [listening]  # noqa: RUF012  Airflow gives the type
    fastapi_apps = [{"app": pages, "url_prefix": PREFIX, "name": "topicops"}]  # noqa: RUF012  Airflow gives the type
    # Before 3.4, Airflow shows a tab on the runs of every DAG: so their names say whose they are. Tasks have none,
    # because the tasks that make a plan or evaluate rules have a button instead (`links`).
    external_views = [  # noqa: RUF012
        _tab("Topics: plan", "plan", "dag_run", PLAN_ROUTE),
        *(_tab(f"Topics: {tab.name}", tab.name, "dag_run", tab.route) for tab in TABS),
        *(pages.VIEW for pages in TOPIC_PAGES),
    ]
