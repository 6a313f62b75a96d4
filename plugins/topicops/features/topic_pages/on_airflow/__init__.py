"""The pages of an environment's topics in Airflow, and the first page, which leads to them; light to import."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from topicops.flow.runs.run import Place
from topicops.on_airflow.names import BELOW
from topicops.steps.reporting.markup import Html, tag

if TYPE_CHECKING:
    from fastapi import FastAPI

VIEW = {"name": "Topics", "href": f"{BELOW}topics", "destination": "nav", "url_route": "topicops-topics"}


def add_routes(app: FastAPI, home: Callable[[], Place]) -> None:
    from topicops.features.topic_pages.on_airflow.routes import add_routes

    add_routes(app, home)


def topic_link(name: str, part: str = "") -> Html:
    """Lead to the topic's page, or to the part of it that says ``why`` it is not healthy."""
    return tag("a", name, href=f"topic?{urlencode({'name': name})}{part and f'#{part}'}", cls="topic")
