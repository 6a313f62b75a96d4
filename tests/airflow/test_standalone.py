"""The DAGs under a running Airflow and a real cluster, answered through its REST API as a person would."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from fixtures.browser import NO_CHROMIUM, Browser, is_installed
from fixtures.topic_project import TOMBSTONE, TOPIC, Project
from topicops.edges.local_airflow import AirflowClient, LocalAirflow, start_airflow, wait_for_dags
from topicops.edges.local_cluster import LocalCluster
from topicops.edges.zookeeper_reader import ZooKeeperReader
from topicops.on_airflow.plugin import PLAN_ROUTE, PREFIX, QUALITY_ROUTE

REPOSITORY = Path(__file__).resolve().parents[2]
PIPELINE, APPROVAL = "topic_pipeline_standalone", "topic_approval_standalone"
logger = logging.getLogger(__name__)

RUN_S = 480.0
# Airflow 3.3 fails a task that is answered before its scheduler has seen it park, which a busy machine delays.
BEFORE_AN_ANSWER_S = 10.0


class Story:
    """One Airflow, one cluster, and what happens between them."""

    def __init__(self, airflow: LocalAirflow, client: AirflowClient, cluster: LocalCluster, project: Project) -> None:
        self.airflow = airflow
        self.client = client
        self.cluster = cluster
        self.project = project

    def live_topics(self) -> set[str]:
        with ZooKeeperReader(self.cluster.zookeeper_hosts) as reader:
            return {name for name in reader.snapshot().topics if name.startswith("standalone.")}

    def run_pipeline(self, **params: object) -> tuple[str, Mapping[str, str | None]]:
        run_id = self.client.trigger(PIPELINE, params)
        return self._ended(PIPELINE, run_id)

    def ask_again(self, option: str) -> tuple[str, Mapping[str, str | None]]:
        """Start the approval of all that is held by hand, as a person does who has changed his mind."""
        self.client.trigger(APPROVAL, {})
        return self.answer(option)

    def answer(self, option: str) -> tuple[str, Mapping[str, str | None]]:
        """Wait for the newest question, answer it as late as a person would, and see how its run ends."""
        run_id = list(self.client.runs(APPROVAL))[-1]
        self.client.wait_for_task(APPROVAL, run_id, "approve", "awaiting_input", timeout_s=RUN_S)
        time.sleep(BEFORE_AN_ANSWER_S)
        self.client.answer(APPROVAL, run_id, "approve", option)
        return self._ended(APPROVAL, run_id)

    def open_tab(self, browser: Browser, route: str, dag_id: str, run_id: str, words: str, picture: str) -> None:
        """Wait until the tab says so, and keep a picture of it; the browser is then inside the tab."""
        browser.open(f"{self.airflow.url}/dags/{dag_id}/runs/{quote(run_id, safe='')}/plugin/{route}")
        browser.frame(f"iframe[src^='{PREFIX}/']")
        browser.wait_for_text(words)
        browser.leave_frame()
        browser.screenshot(Path(os.environ.get("TOPICOPS_SCREENSHOTS", self.airflow.folder)) / f"{picture}.png")
        assert [line for line in browser.console() if PREFIX in line] == []
        browser.frame(f"iframe[src^='{PREFIX}/']")

    def _ended(self, dag_id: str, run_id: str) -> tuple[str, Mapping[str, str | None]]:
        states = {task.task_id: task.state for task in self.client.follow(dag_id, run_id, timeout_s=RUN_S)}
        state = self.client.run_state(dag_id, run_id)
        for name in [name for name, task in states.items() if task == "failed"]:
            logger.warning("%s: %s failed\n%s", dag_id, name, self.client.log(dag_id, run_id, name))
        return state, states


@pytest.fixture(scope="module")
def story(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("standalone")
    project = Project(folder / "project", local_cluster, "standalone")
    (folder / "airflow").mkdir()
    with start_airflow(folder / "airflow", dags=project.dags, environment=project.variables) as airflow:
        client = airflow.client()
        wait_for_dags(client, [PIPELINE, APPROVAL])
        yield Story(airflow, client, local_cluster, project)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_delete_waits_for_a_person_whose_no_and_yes_are_both_obeyed(story: Story) -> None:
    story.project.write("standalone.orders", TOPIC)
    story.project.write("standalone.clicks", TOPIC)
    state, _ = story.run_pipeline()
    assert state == "success"
    assert story.live_topics() == {"standalone.orders", "standalone.clicks"}
    assert story.client.runs(APPROVAL) == {}

    story.project.write("standalone.clicks", TOMBSTONE)
    story.project.write("standalone.refunds", TOPIC)
    state, tasks = story.run_pipeline()
    assert state == "success"
    assert tasks["ask"] == "success"
    assert story.live_topics() == {"standalone.orders", "standalone.clicks", "standalone.refunds"}

    state, tasks = story.answer("Reject")
    assert state == "success"
    assert {name: tasks[name] for name in ("create", "expand", "configure", "delete")} == dict.fromkeys(
        ("create", "expand", "configure", "delete"), "skipped"
    )
    assert tasks["report"] == "success"
    assert "standalone.clicks" in story.live_topics()

    state, tasks = story.run_pipeline()
    assert (state, tasks["ask"]) == ("success", "skipped")

    state, tasks = story.ask_again("Approve")
    assert state == "success"
    assert tasks["verify"] == "success"
    assert story.live_topics() == {"standalone.orders", "standalone.refunds"}


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not is_installed(), reason=NO_CHROMIUM)
def test_the_tabs_tell_of_the_question_its_answer_and_a_broker_that_is_down(story: Story, tmp_path: Path) -> None:
    for name in {"standalone.orders", "standalone.refunds"} - story.live_topics():  # none, after the test above
        story.project.write(name, TOPIC)
    if not story.client.runs(PIPELINE):
        story.run_pipeline()
    story.project.write("standalone.orders", TOMBSTONE)
    story.run_pipeline()
    healthy, *_, held = story.client.runs(PIPELINE)
    with Browser(tmp_path) as browser:
        browser.resize(1400, 1300)
        browser.sign_in(f"{story.airflow.url}/api/v2/version", story.client.sign_in())
        story.open_tab(browser, PLAN_ROUTE, PIPELINE, healthy, "done", "story-plan-applied")
        story.open_tab(browser, QUALITY_ROUTE, PIPELINE, healthy, "After the changes", "story-quality-healthy")
        asked = list(story.client.runs(APPROVAL))[-1]
        story.client.wait_for_task(APPROVAL, asked, "approve", "awaiting_input", timeout_s=RUN_S)
        story.open_tab(browser, PLAN_ROUTE, PIPELINE, held, "Waits for an answer since", "story-plan-waits")
        story.answer("Reject")
        story.open_tab(browser, PLAN_ROUTE, PIPELINE, held, "Rejected by admin", "story-plan-rejected")
        browser.click("a.airflow")
        browser.leave_frame()
        browser.wait_for(lambda: f"/dags/{APPROVAL}/runs/{asked}" in browser.address, "the run that asked")
        story.cluster.stop_broker(3)
        try:
            story.cluster.wait_unregistered(3)
            story.run_pipeline()
        finally:
            story.cluster.start_broker(3)
        broken = list(story.client.runs(PIPELINE))[-1]
        story.open_tab(browser, QUALITY_ROUTE, PIPELINE, broken, "What fails", "story-quality-broker-down")
        assert "standalone." in browser.text
