"""A real Airflow that stores asset events slowly, or answers late: a run with very many creates ends well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fixtures.airflow_story import Story
from fixtures.live import remove_topics
from fixtures.topic_project import TOPIC, Project
from topicops_local.airflow import start_airflow, wait_for_dags
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1500)]

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
def slow_story(folder: Path, cluster: LocalCluster, environment: str, **slowness: str) -> Iterator[Story]:
    project = Project(
        folder / "project", cluster, environment, settings="  policy: {approvals: [question, parameter]}\n"
    )
    home = folder / "airflow"
    (home / "config").mkdir(parents=True)
    (home / "config/airflow_local_settings.py").write_text(SLOW_SERVER, encoding="utf-8")
    variables = {**project.variables, "SLOW_INSERT_S": "0", "LATE_ANSWER_S": "0", **slowness}
    with start_airflow(home, dags=project.dags, environment=variables) as airflow:
        story = Story(airflow, airflow.client(), cluster, project)
        wait_for_dags(story.client, [story.pipeline])
        yield story


def known_assets(story: Story) -> set[str]:
    """Return the topics of which Airflow knows the asset; none of them is in a DAG file, so none is active."""
    found: set[str] = set()
    with story.signed_in(story.airflow.username) as http:
        while True:
            wanted = {"offset": len(found), "limit": 50, "only_active": False, "order_by": "id"}
            page = http.get("/api/v2/assets", params=wanted).raise_for_status().json()["assets"]
            found |= {asset["name"].rpartition("/")[2] for asset in page}
            if len(page) < 50:
                return found


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
