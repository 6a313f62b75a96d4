"""The routes of the pages, behind the check of the app that they are added to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import FastAPI, Query, Response

from topicops.features.topic_pages.file import indexed_environments
from topicops.features.topic_pages.on_airflow.brokers_page import broker_page, brokers_page
from topicops.features.topic_pages.on_airflow.environments_page import environments_page
from topicops.features.topic_pages.on_airflow.reading import Indexed, read_environments, read_indexed
from topicops.features.topic_pages.on_airflow.topic_page import topic_page
from topicops.features.topic_pages.on_airflow.topics_page import ORDERS, topics_page
from topicops.features.topic_pages.values import TopicsWanted
from topicops.flow.runs.run import Place
from topicops.on_airflow.airflow_inside import GetUserDep
from topicops.on_airflow.pages.airflow_state import dags_of, environments, import_errors, waiting_questions
from topicops.on_airflow.pages.app import Word, may_read, of_environment, shown

Number = Annotated[int, Query(ge=0, le=2**31)]


def add_routes(app: FastAPI, home: Callable[[], Place]) -> None:
    """Add the pages to the app. The DAG is a part of each path, as the app's check wants it."""

    def answer(dag_id: str, page: Callable[[Indexed], str]) -> Response:
        return of_environment(home(), dag_id, lambda home, name: page(read_indexed(home, name, dags_of)))

    @app.get("/topics")
    def first(user: GetUserDep) -> Response:
        known = sorted({*indexed_environments(home()), *environments()})
        readable = [name for name in known if may_read(f"topic_pipeline_{name}", user)]
        found = read_environments(home(), readable, dags_of, waiting_questions())
        return shown(home(), environments_page([*found], import_errors()))

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
        return answer(dag_id, lambda indexed: topics_page(indexed, wanted))

    @app.get("/dags/{dag_id}/topic")
    def topic(dag_id: str, name: Word) -> Response:
        return answer(dag_id, lambda indexed: topic_page(indexed, name))

    @app.get("/dags/{dag_id}/brokers")
    def brokers(dag_id: str) -> Response:
        return answer(dag_id, brokers_page)

    @app.get("/dags/{dag_id}/broker")
    def broker(dag_id: str, id: Number) -> Response:  # noqa: A002  its name in the address
        return answer(dag_id, lambda indexed: broker_page(indexed, id))
