"""A real Airflow that stores asset events slowly, or answers late: a run with very many creates ends well."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fixtures.airflow_story import Story
from fixtures.live import remove_topics
from fixtures.topic_project import TOPIC, Project
from topicops_local.airflow import ANSWERS_WITHIN_S, start_airflow, wait_for_dags
from topicops_local.cluster import LocalCluster
from topicops_local.processes import free_port

pytestmark = [pytest.mark.soak, pytest.mark.timeout(2400)]

RUN_S = 2100.0

SLOW_SERVER = '''
"""Airflow's own hook for a site: this one's database is slow, or its server loads, where assets are made."""

import os
import time

from sqlalchemy import event
from sqlalchemy.orm import Mapper, Session

INSERT_S, ANSWER_S = float(os.environ["SLOW_INSERT_S"]), float(os.environ["LATE_ANSWER_S"])


@event.listens_for(Mapper, "before_insert")
def before_insert(mapper, connection, target):
    if type(target).__name__ == "AssetModel":
        time.sleep(INSERT_S)
    if type(target).__name__ == "AssetEvent":
        target._sa_instance_state.session.info["late"] = True


@event.listens_for(Session, "after_commit")
def after_commit(session):
    if session.info.pop("late", False):
        time.sleep(ANSWER_S)
'''
"""For ``airflow_local_settings.py``."""
IMPATIENT = {"AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "5"}
"""Airflow's default."""


@contextmanager
def late(server: int, late_s: float) -> Iterator[int]:
    """Give the port of a relay that passes each byte of the server's answers on so many seconds late."""
    loop = asyncio.new_event_loop()

    async def meet(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        answers, to_server = await asyncio.open_connection("127.0.0.1", server)

        async def answer() -> None:
            while data := await answers.read(65536):
                loop.call_later(late_s, to_client.write, data)
            loop.call_later(late_s, to_client.close)

        answering = asyncio.create_task(answer())
        while data := await client.read(65536):
            to_server.write(data)
        to_server.close()
        await answering

    relay = loop.run_until_complete(asyncio.start_server(meet, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield relay.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


@contextmanager
def slow_story(
    folder: Path, cluster: LocalCluster, environment: str, *, port: int | None = None, **slowness: str
) -> Iterator[Story]:
    project = Project(
        folder / "project", cluster, environment, settings="  policy: {approvals: [question, parameter]}\n"
    )
    home = folder / "airflow"
    (home / "config").mkdir(parents=True)
    (home / "config/airflow_local_settings.py").write_text(SLOW_SERVER, encoding="utf-8")
    variables = {**project.variables, "SLOW_INSERT_S": "0", "LATE_ANSWER_S": "0", **slowness}
    with start_airflow(home, dags=project.dags, environment=variables, port=port) as airflow:
        story = Story(airflow, airflow.client(), cluster, project, run_s=RUN_S)
        wait_for_dags(story.client, [story.pipeline])
        yield story


def known_assets(story: Story) -> set[str]:
    """Return the topics of which Airflow knows the asset; none of them is in a DAG file, so none is active."""
    names: list[str] = []
    with story.signed_in(story.airflow.username) as http:
        while True:
            wanted = {"offset": len(names), "limit": 50, "only_active": False, "order_by": "id"}
            page = http.get("/api/v2/assets", params=wanted).raise_for_status().json()["assets"]
            names += [asset["name"].rpartition("/")[2] for asset in page]
            if len(page) < 50:
                return set(names)


@pytest.mark.parametrize(
    ("environment", "creates", "slowness"),
    [
        pytest.param(
            "slow", 60, {"SLOW_INSERT_S": "0.44", **IMPATIENT}, id="a new asset takes as long as on a busy machine"
        ),
        pytest.param("late", 500, {"LATE_ANSWER_S": "8", **IMPATIENT}, id="an answer that is 8 s late"),
    ],
)
def test_a_run_with_very_many_creates_ends_well_and_every_topic_has_its_asset(
    local_cluster: LocalCluster, tmp_path: Path, environment: str, creates: int, slowness: dict[str, str]
) -> None:
    topics = [f"{environment}.t-{number:03}" for number in range(creates)]
    with slow_story(tmp_path, local_cluster, environment, **slowness) as story:
        for topic in topics:
            story.project.write(topic, TOPIC)
        try:
            state, tasks = story.run_pipeline()
            assert (state, tasks["verify"], tasks["report"]) == ("success", "success", "success")
            assert tasks["announce"] == "success"
            assert story.live_topics() == set(topics)
            assert known_assets(story) == set(topics)
        finally:
            remove_topics(local_cluster, topics)


@pytest.mark.parametrize(
    ("environment", "creates", "late_s"),
    [pytest.param("some", 30, 2.0, id="30 creates, 2 s"), pytest.param("many", 500, 5.0, id="500 creates, 5 s")],
)
def test_a_run_ends_well_when_every_answer_that_a_task_gets_is_late(
    local_cluster: LocalCluster, tmp_path: Path, environment: str, creates: int, late_s: float
) -> None:
    assert late_s < ANSWERS_WITHIN_S
    topics, port = [f"{environment}.t-{number:03}" for number in range(creates)], free_port()
    with late(port, late_s) as behind:
        address = {"AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{behind}/execution/"}
        with slow_story(tmp_path, local_cluster, environment, port=port, **address) as story:
            for topic in topics:
                story.project.write(topic, TOPIC)
            try:
                state, tasks = story.run_pipeline()
                assert (state, tasks["report"]) == ("success", "success")
                assert story.live_topics() == set(topics)
                assert known_assets(story) == set(topics)
            finally:
                remove_topics(local_cluster, topics)
