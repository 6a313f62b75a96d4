"""How many Java processes of Spark a run of the pipeline starts, in a real Airflow: one, or none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from fixtures.airflow_story import Story, airflow_stories, remove_topics
from fixtures.topic_project import TOPIC
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]
DRIVER = "org.apache.spark.deploy.SparkSubmit"
LAUNCHER = "org.apache.spark.launcher.Main"
"""A JVM of a second that only prints the driver's command line."""
LOOK_EVERY_S = 0.2


@pytest.fixture(scope="module")
def stories(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Story, ...]]:
    """An environment that asks for Spark, and one that is small."""
    settings = {"sparks": "  airflow: {engine: spark}\n"}
    folder = tmp_path_factory.mktemp("one-spark")
    with airflow_stories(folder, local_cluster, ("sparks", "plain"), settings=settings) as stories:
        yield stories
        remove_topics(stories)


def running(home: Path) -> set[int]:
    """Give the pids of the drivers that tasks of this home have started."""
    found = set[int]()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            is_driver = process.name() == "java" and DRIVER in words and LAUNCHER not in words
            if is_driver and process.environ().get("TOPICOPS_HOME") == str(home):
                found.add(process.pid)
    return found


@contextmanager
def drivers(home: Path) -> Iterator[set[int]]:
    """Give those that are seen meanwhile."""
    seen, ended = set[int](), threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_EVERY_S):
            seen.update(running(home))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        ended.set()
        looking.join()


@pytest.mark.parametrize(("environment", "most"), [(0, 1), (1, 0)], ids=["spark", "auto"])
def test_a_run_has_one_spark_or_none_and_leaves_none_behind(
    stories: tuple[Story, ...], environment: int, most: int
) -> None:
    story = stories[environment]
    name = story.project.environment
    for number in range(3):
        story.project.write(f"{name}.topic-{number}", TOPIC)

    home = story.airflow.folder.parent / "home"
    with drivers(home) as seen:
        state, tasks = story.run_pipeline(mode="apply")

    assert (state, tasks["quality_before"], tasks["quality_after"]) == ("success", "success", "success")
    assert len(story.live_topics()) == 3
    assert len(seen) == most
    assert not running(home)
    assert not list(home.glob("runs/*/*/spark"))
