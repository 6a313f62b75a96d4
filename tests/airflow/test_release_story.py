"""The story in the installed Airflow: schedule, question, answer, apply, verify, page; and the seconds of each step.

`make test-airflow-release AIRFLOW=3.2.2` runs it in another release. ``TOPICOPS_STORY_TIMES`` names a file for the
seconds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from fixtures.airflow_story import BEFORE_AN_ANSWER_S, RUN_S, Story, airflow_stories, remove_topics
from fixtures.live import until
from fixtures.stores import s3_variables
from fixtures.topic_project import TOMBSTONE, TOPIC
from topicops_local.airflow_client import LocalAirflowClient
from topicops_local.cluster import LocalCluster
from topicops_local.processes import free_port, spawn, stop

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


class Clock:
    """Notes the seconds of one step after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.monotonic()

    def note(self, step: str) -> None:
        now = time.monotonic()
        self.seconds[step], self._since = round(now - self._since, 1), now


@pytest.fixture
def clock() -> Iterator[Clock]:
    """Leave the seconds in the file of the variable, also of a story that fails."""
    clock = Clock()
    yield clock
    if name := os.environ.get("TOPICOPS_STORY_TIMES"):
        said = {"airflow": version("apache-airflow"), **clock.seconds}
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")


def test_schedule_question_answer_apply_verify_page(local_cluster: LocalCluster, tmp_path: Path, clock: Clock) -> None:
    with airflow_stories(tmp_path, local_cluster, ("release",)) as (story,):
        try:
            clock.note("Airflow starts and reads the DAGs")
            tell(story, clock)
        finally:
            remove_topics([story])


def test_the_home_is_in_a_store_and_a_second_host_shows_the_run_of_the_first(
    local_cluster: LocalCluster, tmp_path: Path, clock: Clock, s3_server: str
) -> None:
    home = {"TOPICOPS_HOME": f"s3://homes/{tmp_path.name}", "XDG_STATE_HOME": str(tmp_path / "host-1")}
    with airflow_stories(tmp_path, local_cluster, ("release",), variables=home | s3_variables(s3_server)) as (story,):
        try:
            clock.note("Airflow starts and reads the DAGs")
            question = tell(story, clock)
            with second_host(story, tmp_path / "host-2") as second:
                shown = page(second, story.approval, question)
        finally:
            remove_topics([story])

    assert "done" in shown
    assert "release.clicks" in shown
    assert not (tmp_path / "home").exists()


@contextmanager
def second_host(story: Story, folder: Path) -> Iterator[Story]:
    """The story as another API server shows it: it shares the database and the store with the first, and no folder."""
    second = replace(story.airflow, port=free_port())
    program = Path(sys.executable).with_name("airflow")
    command = [str(program), "api-server", "--host", "127.0.0.1", "--port", str(second.port), "--workers", "1"]
    folder.mkdir()
    variables = {**story.airflow.variables, "XDG_STATE_HOME": str(folder)}
    process = spawn(command, log=folder / "api-server.log", folder=folder, environment=variables)
    try:
        until(LocalAirflowClient(second.url, second.username, second.password).healthy, timeout_s=120)
        yield replace(story, airflow=second)
    finally:
        stop([process], grace_s=10)


def tell(story: Story, clock: Clock) -> str:
    """Play the story, and return the run of its approval."""
    client = story.client
    story.project.write("release.orders", TOPIC)
    story.project.write("release.clicks", TOPIC)
    story.project.set_variables(TOPICOPS_SCHEDULE="* * * * *")
    until(lambda: len(client.runs(story.pipeline)) > 0, timeout_s=RUN_S)
    story.project.set_variables()
    clock.note("the schedule starts a run")
    (first, *_) = client.runs(story.pipeline)
    state, tasks = story.ended(story.pipeline, first)
    assert (first.partition("__")[0], state, tasks["create"], tasks["verify"]) == (
        "scheduled", "success", "success", "success",
    )  # fmt: skip
    assert story.live_topics() == {"release.orders", "release.clicks"}
    clock.note("the run creates two topics and verifies them")

    until(lambda: not story.is_scheduled() and {*client.runs(story.pipeline).values()} == {"success"}, timeout_s=RUN_S)
    clock.note("the schedule ends")
    story.project.write("release.clicks", TOMBSTONE)
    state, tasks = story.run_pipeline()
    assert (state, tasks["ask"]) == ("success", "success")
    question = story.newest_question()
    clock.note("a run holds the delete and asks")
    assert "release.clicks" in story.live_topics()
    assert "release.clicks" in page(story, story.approval, question)

    time.sleep(BEFORE_AN_ANSWER_S)
    clock.note("a person reads")
    client.answer(story.approval, question, "approve", "Approve")
    client.wait_for_task(story.approval, question, "approve", "success", timeout_s=RUN_S)
    clock.note("the answer is taken")
    state, tasks = story.ended(story.approval, question)
    assert (state, tasks["delete"], tasks["verify"]) == ("success", "success", "success")
    assert story.live_topics() == {"release.orders"}
    clock.note("the delete is sent, verified and reported")
    for task_id, task in client.tasks(story.approval, question).items():
        if task.state == "success":
            clock.seconds[f"  task {task_id}"] = round(task.duration or 0.0, 1)
    clock.note("the times of the tasks")
    shown = page(story, story.approval, question)
    assert "done" in shown
    assert "release.clicks" in shown
    clock.note("the page of the run")
    return question


def page(story: Story, dag_id: str, run_id: str) -> str:
    """Return the Plan tab as the server sends it."""
    with story.signed_in("viewer") as http:
        answer = http.get(f"/topicops/dags/{dag_id}/plan", params={"run_id": run_id})
    assert answer.status_code == 200, answer.text[:500]
    return answer.text
