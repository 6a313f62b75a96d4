"""Ordinary accidents of a running Airflow: each is told, and what is shown and told meanwhile and afterwards is so."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest
from kazoo.client import KazooClient

from fixtures.airflow_story import Story, airflow_stories, remove_topics
from fixtures.airflow_watch import TOLD_WITHIN_S, Watch
from fixtures.killable import with_tests_on_path
from fixtures.live import until
from fixtures.small_disk import filled, may_mount, read_only, small_disk
from fixtures.stopped_runs import AIRFLOW_SETTINGS
from fixtures.topic_project import TOMBSTONE, TOPIC
from topicops.features.shared.airflow_client import ENDED
from topicops.model.runs.results import OutcomeStatus
from topicops_local.cluster import LocalCluster
from topicops_local.processes import kill

pytestmark = [pytest.mark.timeout(1800), pytest.mark.soak]


ACCIDENTS, ASKED = "accidents", "asked"
SETTINGS = {
    ACCIDENTS: """\
  policy: {unattended: destructive, deleteActive: allow}
  apply: {topicsPerRequest: 1}
""",
    ASKED: "  policy: {deleteActive: allow}\n",
}
RUN_S = 900.0
"""Three tries with their delays take five minutes and more."""
CREATES = 40
log = logging.getLogger(__name__)
needs_a_disk = pytest.mark.skipif(not may_mount(), reason="only root can mount a disk of its own for the home")


@dataclass
class Place:
    """One environment, its watch, and what was told of each accident."""

    story: Story
    watch: Watch
    home: Path
    table: list[tuple[str, float, str]] = field(default_factory=list)
    """What happened, seconds until it was told, the words."""
    count: int = 0

    def describe(self, how_many: int = 1) -> list[str]:
        """Return files for new topics."""
        environment, first = self.watch.environment, self.count
        self.count += how_many
        names = [f"{environment}.{os.getpid()}-{number}" for number in range(first, self.count)]
        self.watch.topics |= set(names)
        for name in names:
            self._file(name).write_text(TOPIC.format(name=name), encoding="utf-8")
        self.story.project.publish()
        return names

    def _file(self, name: str) -> Path:
        return self.story.project.topics / f"tests/{name}.yaml"

    def trigger(self, **params: object) -> str:
        self.story.wait_for_files()
        return self.story.client.trigger(self.story.pipeline, params)

    def state_after(self, run_id: str) -> str:
        return self.watch.look_until_it_ends(run_id, timeout_s=RUN_S)

    def good_run(self) -> None:
        """After it nothing is left to say, and who was told of a failure knows that it is over."""
        assert self.state_after(self.trigger()) == "success"
        self.watch.look_after_a_good_run()
        troubles = [event for event in self.watch.told() if event["kind"] in ("failed", "recovered", "unhealthy")]
        assert not troubles or troubles[-1]["kind"] == "recovered", troubles[-1]
        assert self.watch.found == []

    def is_told(self, what: str, kind: str, run_id: str, *, since: float, at_least: str) -> None:
        """Within ``TOLD_WITHIN_S`` from now; ``since`` is when the accident was, by the monotonic clock."""
        name = f"{self.watch.pipeline}/{run_id}"

        def words() -> list[str]:
            return [e["verdict"] for e in self.watch.told() if (e["kind"], e["run"]) == (kind, name)]

        until(lambda: bool(words()), timeout_s=TOLD_WITHIN_S)
        self.table.append((what, time.monotonic() - since, words()[-1]))
        log.info("%s | %.0f s | %s", *self.table[-1])
        assert at_least in words()[-1]

    def is_told_of_files(self, what: str, *, since: float) -> None:
        """By the DAG for all environments, which has a run of its own."""
        said = f"{self.watch.environment} has no DAGs any more"

        def words() -> list[str]:
            told = self.watch.told_in.read_text(encoding="utf-8").splitlines()
            return [event["verdict"] for event in map(json.loads, told) if said in event["verdict"]]

        until(lambda: bool(words()), timeout_s=RUN_S)
        self.table.append((what, time.monotonic() - since, words()[-1]))
        log.info("%s | %.0f s | %s", *self.table[-1])

    def in_the_middle_of_create(self) -> str:
        """Return a run that has sent some of its many creates, and not all."""
        self.describe(CREATES)
        run_id = self.trigger()
        name = f"{self.watch.pipeline}/{run_id}"
        until(lambda: sum(line.run == name for line in self.watch.audit()) >= 3, timeout_s=RUN_S)
        return run_id


@pytest.fixture(scope="module")
def places(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Place]]:
    folder = tmp_path_factory.mktemp("accidents")
    home, told = folder / "home", folder / "told.txt"
    home.mkdir()
    variables = {
        **AIRFLOW_SETTINGS,
        "PYTHONPATH": with_tests_on_path()["PYTHONPATH"],
        "TOPICOPS_NOTIFY": "fixtures.writing_notifier:to_file",
        "TOLD_TO": str(told),
        "TOPICOPS_CHECK_QUESTION_EVERY": "20s",
    }
    znodes = KazooClient(local_cluster.zookeeper_hosts, timeout=60)
    with ExitStack() as stack:
        stack.callback(znodes.close)
        stack.callback(znodes.stop)
        znodes.start(timeout=60)
        if may_mount():
            stack.enter_context(small_disk(home, mebibytes=64))
        started = airflow_stories(
            folder, local_cluster, tuple(SETTINGS), in_git=True, settings=SETTINGS, variables=variables
        )
        stories = stack.enter_context(started)
        found = {}
        for story in stories:
            name = story.project.environment
            watch = Watch(
                airflow=story.airflow, client=story.client, cluster=local_cluster, znodes=znodes, environment=name,
                home=home, told_in=told,
            )  # fmt: skip
            found[name] = Place(story, watch, home)
        found[ACCIDENTS].describe(2)
        found[ACCIDENTS].good_run()
        yield found
        remove_topics(stories)


@pytest.fixture
def place(places: dict[str, Place]) -> Iterator[Place]:
    """Each accident is over with the next good run."""
    places[ACCIDENTS].watch.found.clear()
    yield places[ACCIDENTS]
    places[ACCIDENTS].good_run()


# ---- each is told ----


@needs_a_disk
@pytest.mark.parametrize(
    ("what", "accident"), [("disk full", filled), ("home read-only", read_only)], ids=["full", "read-only"]
)
def test_a_home_that_takes_nothing_is_told(place: Place, what: str, accident: Callable[[Path], ExitStack]) -> None:
    place.describe()
    with accident(place.home):
        since, run_id = time.monotonic(), place.trigger()
        assert place.state_after(run_id) == "failed"
        place.is_told(what, "failed", run_id, since=since, at_least="nothing was sent")
        place.watch.look()


def test_a_repository_that_is_gone_is_told(place: Place) -> None:
    story = place.story
    assert story.repository
    place.describe()
    story.wait_for_files()
    bare, away = story.repository.bare, story.repository.bare.with_name("away.git")
    bare.rename(away)
    try:
        since = time.monotonic()
        run_id = story.client.trigger(story.pipeline, {})
        state = place.state_after(run_id)
        kind, words = ("failed", "run") if state == "failed" else ("applied", "Applied and verified")
        place.is_told("repository gone", kind, run_id, since=since, at_least=words)
    finally:
        away.rename(bare)


def test_an_environment_file_that_is_broken_is_told(place: Place) -> None:
    path = place.story.project.topics / f"environments/{ACCIDENTS}.yaml"
    good = path.read_text(encoding="utf-8")
    path.write_text(f"{good}\n  ] not: yaml", encoding="utf-8")
    place.story.project.publish()
    try:
        since, run_id = time.monotonic(), place.trigger()
        assert place.state_after(run_id) == "failed"
        place.is_told("environment file broken", "failed", run_id, since=since, at_least=path.name)
        assert place.story.is_scheduled()
        place.watch.look_after_the_end()
    finally:
        path.write_text(good, encoding="utf-8")
        place.story.project.publish()


def test_an_environment_file_that_is_gone_is_told(place: Place) -> None:
    path = place.story.project.topics / f"environments/{ACCIDENTS}.yaml"
    good = path.read_text(encoding="utf-8")
    path.unlink()
    place.story.project.publish()
    try:
        place.is_told_of_files("environment file gone", since=time.monotonic())
        place.watch.look_after_the_end()
    finally:
        path.write_text(good, encoding="utf-8")
        place.story.project.publish()


def test_a_run_that_is_marked_as_failed_is_told(place: Place) -> None:
    run_id = place.in_the_middle_of_create()
    since = time.monotonic()
    place.watch.mark_as_failed(run_id)
    place.is_told("run marked as failed", "failed", run_id, since=since, at_least="not verified")
    place.watch.look_after_the_end()


def test_a_worker_that_is_killed_again_and_again_is_told(place: Place) -> None:
    place.describe()
    since, run_id = time.monotonic(), place.trigger()
    ends = since + RUN_S
    while place.story.client.run_state(place.watch.pipeline, run_id) not in ENDED and time.monotonic() < ends:
        place.watch.kill_its_tasks(run_id)
        time.sleep(1.0)
    place.is_told("each task process killed", "failed", run_id, since=since, at_least="nothing was sent")
    place.watch.look_after_the_end()


def test_what_a_run_did_while_the_api_server_was_away_is_told(place: Place) -> None:
    run_id = place.in_the_middle_of_create()
    since = time.monotonic()
    kill([place.story.airflow.processes["api-server"]])
    time.sleep(60)
    place.story.airflow.start_again("api-server")
    state = place.state_after(run_id)
    kind = "applied" if state == "success" else "failed"
    place.is_told("API server away for a minute", kind, run_id, since=since, at_least="create")
    place.watch.look_after_the_end()


def test_a_broker_that_is_dead_is_told_in_mode_plan(place: Place) -> None:
    broker = max(place.watch.cluster.broker_ports)
    since = time.monotonic()
    place.watch.kill_broker(broker)
    try:
        place.watch.cluster.wait_unregistered(broker)
        run_id = place.trigger(mode="plan")
        assert place.state_after(run_id) == "success"
        place.is_told("broker dead, mode plan", "unhealthy", run_id, since=since, at_least=f"broker {broker}")
        place.watch.look_after_the_end()
    finally:
        place.watch.start_broker(broker)


# ---- nothing that is shown is false ----


def test_a_broker_that_is_killed_during_create(place: Place) -> None:
    broker = min(place.watch.cluster.broker_ports)
    run_id = place.in_the_middle_of_create()
    place.watch.kill_broker(broker)
    try:
        place.state_after(run_id)
        place.watch.look_after_the_end()
    finally:
        place.watch.start_broker(broker)


def test_a_zookeeper_that_stops_for_forty_seconds_during_create(place: Place) -> None:
    run_id = place.in_the_middle_of_create()
    place.watch.cluster.pause_zookeeper()
    try:
        time.sleep(40)
    finally:
        place.watch.cluster.resume_zookeeper()
    assert place.state_after(run_id) == "success"
    place.watch.look_after_the_end()


def test_a_create_that_is_cleared_afterwards(place: Place) -> None:
    names = place.describe(3)
    run_id = place.trigger()
    assert place.state_after(run_id) == "success"
    place.story.client.clear(place.watch.pipeline, run_id, "create", downstream=True)
    assert place.state_after(run_id) == "success"
    place.watch.look_after_the_end()
    done = [line.topic for line in place.watch.audit() if line.outcome is OutcomeStatus.DONE and line.topic in names]
    assert sorted(done) == sorted(names)


def test_a_topic_file_in_a_wrong_folder(place: Place) -> None:
    wrong = place.story.project.topics / "tests/deeper/orders.yaml"
    wrong.parent.mkdir()
    wrong.write_text(TOPIC.format(name="accidents.orders"), encoding="utf-8")
    place.story.project.publish()
    try:
        run_id = place.trigger()
        assert place.state_after(run_id) == "failed"
        place.watch.look_after_the_end()
        page = place.watch.read(f"/topicops/dags/{place.watch.pipeline}/plan?run_id={quote(run_id, safe='')}")
        assert "topics/tests/deeper/orders.yaml:" in page
    finally:
        wrong.unlink()
        place.story.project.publish()


def test_params_without_sense_are_refused(place: Place) -> None:
    with pytest.raises(Exception, match="mode"):
        place.trigger(mode="perhaps")
    for params, words in (({"Only": "x"}, "only"), ({"only": "nothing.like.it.*"}, "nothing.like.it.*")):
        run_id = place.trigger(**params)
        assert place.state_after(run_id) == "failed"
        assert words in place.story.client.run_note(place.watch.pipeline, run_id)
    place.watch.look_after_the_end()


def test_an_outdated_question_ends_and_only_the_newest_is_answered(places: dict[str, Place]) -> None:
    place = places[ASKED]
    one, two = place.describe(2)
    place.good_run()
    place.story.project.write(one, TOMBSTONE)
    assert place.state_after(place.trigger()) == "success"
    first = place.story.newest_question()
    place.watch.look_after_the_end()
    place.story.project.write(one, TOPIC)
    place.story.project.write(two, TOMBSTONE)
    assert place.state_after(place.trigger()) == "success"
    second = place.story.newest_question()
    assert second != first
    until(lambda: place.story.client.run_state(place.story.approval, first) in ENDED, timeout_s=TOLD_WITHIN_S)
    withdrawn = [event for event in place.watch.told() if event["kind"] == "withdrawn"]
    assert [event["run"] for event in withdrawn] == [f"{place.story.approval}/{first}"]
    place.watch.look_after_the_end()

    state, _ = place.story.answer("Approve", second)
    assert state == "success"
    assert place.story.live_topics() == {one}
    place.watch.look_after_the_end()
    (place.story.project.topics / f"tests/{two}.yaml").unlink()
    place.story.project.publish()
    place.good_run()
