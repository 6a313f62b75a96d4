"""Pages of the topics of an environment. Deleting a feature deletes its lines here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import topicops.features.topic_pages.on_airflow
from topicops.on_airflow.routes import STATIC
from topicops.steps.reporting.markup import Html, document, tag, together

if TYPE_CHECKING:
    from fastapi import FastAPI

    from topicops.on_airflow.plugged import Page


class TopicPages(Protocol):
    """Its functions are described where they are defined."""

    @property
    def VIEW(self) -> Mapping[str, str]:  # noqa: N802  a constant of a module
        """What Airflow shows of them, as a plugin's ``external_views`` have it."""

    def add_routes(self, app: FastAPI, home: Callable[[], Path]) -> None: ...

    def framed(self, page: Page, home: Path, environment: str) -> str: ...

    def topic_link(self, name: str, part: str = "") -> Html: ...


TOPIC_PAGES: tuple[TopicPages, ...] = (
    topicops.features.topic_pages.on_airflow,
)  # fmt: skip
"""For links and frames, the first is used."""


def framed(page: Page, home: Path, environment: str) -> str:
    """Give the whole document of a feature's page."""
    if TOPIC_PAGES:
        return TOPIC_PAGES[0].framed(page, home, environment)
    title = f"{page.title}: {environment}"
    return document(title, tag("header", tag("h1", title)), *page.body(home, environment), static=STATIC).text


def topic_link(name: str, part: str = "") -> Html:
    """Lead to the page of a topic, where there is one."""
    return TOPIC_PAGES[0].topic_link(name, part) if TOPIC_PAGES else together(name)
