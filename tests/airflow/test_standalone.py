"""The DAGs under a running Airflow and a real cluster, answered through its REST API as a person would."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from fixtures.airflow_story import RUN_S, Story, airflow_stories, remove_topics
from fixtures.browser import NO_CHROMIUM, Browser, is_installed
from fixtures.live import until
from fixtures.topic_project import TOMBSTONE, TOPIC
from topicops.on_airflow.names import PLAN_ROUTE, PREFIX, QUALITY_ROUTE
from topicops_local.cluster import LocalCluster

CHANGES = ("create", "expand", "configure", "delete")


@pytest.fixture(scope="module", params=["local", "git"])
def stories(
    request: pytest.FixtureRequest, local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Story, ...]]:
    """One Airflow for all tests of this file, because it takes as long to start as a run; then one more, with git."""
    folder, in_git = tmp_path_factory.mktemp("standalone"), request.param == "git"
    with airflow_stories(folder, local_cluster, ("standalone", "second"), in_git=in_git) as stories:
        yield stories
        remove_topics(stories)


@pytest.fixture
def story(stories: tuple[Story, ...]) -> Story:
    return stories[0]


@pytest.fixture
def second(stories: tuple[Story, ...]) -> Story:
    return stories[1]


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_delete_waits_for_a_person_whose_no_and_yes_are_both_obeyed(story: Story) -> None:
    story.project.write("standalone.orders", TOPIC)
    story.project.write("standalone.clicks", TOPIC)
    state, _ = story.run_pipeline()
    assert state == "success"
    assert story.live_topics() == {"standalone.orders", "standalone.clicks"}
    assert story.client.runs(story.approval) == {}

    story.project.write("standalone.clicks", TOMBSTONE)
    story.project.write("standalone.refunds", TOPIC)
    state, tasks = story.run_pipeline()
    assert state == "success"
    assert tasks["ask"] == "success"
    assert story.live_topics() == {"standalone.orders", "standalone.clicks", "standalone.refunds"}

    state, tasks = story.answer("Reject")
    assert state == "success"
    assert {tasks[name] for name in CHANGES} == {"skipped"}
    assert tasks["report"] == "success"
    assert "standalone.clicks" in story.live_topics()

    state, tasks = story.run_pipeline()
    assert (state, tasks["ask"]) == ("success", "skipped")

    state, tasks = story.ask_again("Approve")
    assert state == "success"
    assert tasks["verify"] == "success"
    assert story.live_topics() == {"standalone.orders", "standalone.refunds"}


def open_tab(story: Story, browser: Browser, route: str, dag_id: str, run_id: str, words: str, picture: str) -> None:
    """Wait until the tab says so, and keep a picture of it; the browser is then inside the tab."""
    browser.open(f"{story.airflow.url}/dags/{dag_id}/runs/{quote(run_id, safe='')}/plugin/{route}")
    browser.frame(f"iframe[src*='{PREFIX.removeprefix('/')}/']")
    browser.wait_for_text(words)
    browser.leave_frame()
    browser.screenshot(Path(os.environ.get("TOPICOPS_SCREENSHOTS", story.airflow.folder)) / f"{picture}.png")
    assert [line for line in browser.console() if PREFIX in line] == []
    browser.frame(f"iframe[src*='{PREFIX.removeprefix('/')}/']")


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not is_installed(), reason=NO_CHROMIUM)
def test_the_tabs_tell_of_the_question_its_answer_and_a_broker_that_is_down(story: Story, tmp_path: Path) -> None:
    for name in {"standalone.orders", "standalone.refunds"} - story.live_topics():  # none, after the test above
        story.project.write(name, TOPIC)
    if not story.client.runs(story.pipeline):
        story.run_pipeline()
    story.project.write("standalone.orders", TOMBSTONE)
    story.run_pipeline()
    healthy, *_, held = story.client.runs(story.pipeline)
    with Browser(tmp_path) as browser:
        browser.resize(1400, 1300)
        browser.sign_in(f"{story.airflow.url}/api/v2/version", story.client.sign_in())
        open_tab(story, browser, PLAN_ROUTE, story.pipeline, healthy, "done", "story-plan-applied")
        open_tab(story, browser, QUALITY_ROUTE, story.pipeline, healthy, "After the changes", "story-quality-healthy")
        asked = list(story.client.runs(story.approval))[-1]
        story.client.wait_for_question(story.approval, asked, "approve", timeout_s=RUN_S)
        open_tab(story, browser, PLAN_ROUTE, story.pipeline, held, "Waits for an answer since", "story-plan-waits")
        story.answer("Reject")
        open_tab(story, browser, PLAN_ROUTE, story.pipeline, held, "rejected by admin", "story-plan-rejected")
        browser.click("a.airflow")
        browser.leave_frame()
        browser.wait_for(lambda: f"/dags/{story.approval}/runs/{asked}" in browser.address, "the run that asked")
        story.cluster.stop_broker(3)
        try:
            story.cluster.wait_unregistered(3)
            story.run_pipeline()
        finally:
            story.cluster.start_broker(3)
        broken = list(story.client.runs(story.pipeline))[-1]
        open_tab(story, browser, QUALITY_ROUTE, story.pipeline, broken, "What fails", "story-quality-broker-down")
        assert "standalone." in browser.text


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_question_outlasts_scheduled_runs_is_replaced_by_a_newer_set_and_one_that_times_out_is_asked_again(
    story: Story, second: Story
) -> None:
    second.create_by_hand("second.clicks", "second.orders")
    second.project.write("second.clicks", TOMBSTONE)
    second.project.set_variables(TOPICOPS_SCHEDULE="* * * * *")
    until(lambda: len(second.client.runs(second.approval)) > 0, timeout_s=RUN_S)
    clicks = second.newest_question()
    assert second.status_of_answer_by("viewer", "Approve", clicks) == 403
    the_other_environment_goes_on(story)
    three_scheduled_runs_have_asked_once(second, clicks)

    second.project.write("second.clicks", TOPIC)
    second.project.write("second.orders", TOMBSTONE)
    second.project.set_variables(TOPICOPS_ANSWER_WITHIN="30s")
    second.run_pipeline()
    orders = list(second.client.runs(second.approval))[-1]
    an_approval_of_the_older_set_sends_nothing_and_names_the_newer(second, clicks)
    no_answer_in_time_sends_nothing_and_fails(second, orders)
    assert second.live_topics() == {"second.clicks", "second.orders"}

    second.project.set_variables()
    second.run_pipeline()
    once_more = second.newest_question()
    assert once_more == f"{orders.removesuffix('.1')}.2"
    state, tasks = second.answer("Approve", once_more)
    assert (state, tasks["verify"]) == ("success", "success")
    assert second.live_topics() == {"second.clicks"}


def three_scheduled_runs_have_asked_once(second: Story, question: str) -> None:
    """Takes the schedule away as soon as the third has begun; a fourth may do so yet."""
    until(lambda: len(runs(second)) >= 3, timeout_s=2 * RUN_S)
    second.project.set_variables()
    until(lambda: not second.is_scheduled() and {*runs(second).values()} <= {"success", "failed"}, timeout_s=RUN_S)
    assert {run_id.partition("__")[0] for run_id in runs(second)} == {"scheduled"}
    assert set(runs(second).values()) == {"success"}
    asked = [second.client.tasks(second.pipeline, run_id)["ask"].state for run_id in runs(second)]
    assert asked == ["success"] + ["skipped"] * (len(asked) - 1)
    assert second.client.runs(second.approval) == {question: "running"}


def an_approval_of_the_older_set_sends_nothing_and_names_the_newer(second: Story, older: str) -> None:
    state, tasks = second.answer("Approve", older)
    assert (state, {tasks[name] for name in CHANGES}) == ("success", {"skipped"})
    said = second.client.xcom(second.approval, older, "report")
    assert isinstance(said, dict)
    assert said["answer"] == "approved"
    assert "which holds delete second.orders" in said["replaced"]


def no_answer_in_time_sends_nothing_and_fails(second: Story, question: str) -> None:
    state, tasks = second.ended(second.approval, question)
    assert (state, tasks["approve"], tasks["delete"]) == ("failed", "failed", "upstream_failed")
    assert "response timeout has passed" in second.client.log(second.approval, question, "approve")


def the_other_environment_goes_on(story: Story) -> None:
    story.project.write("standalone.beside", TOPIC)
    state, _ = story.run_pipeline()
    assert state == "success"
    assert "standalone.beside" in story.live_topics()


def runs(story: Story) -> Mapping[str, str]:
    return story.client.runs(story.pipeline)
