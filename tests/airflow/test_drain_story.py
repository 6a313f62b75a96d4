"""A broker is drained in the installed Airflow: plan, question, answer, the DAG that carries moves on, an empty broker.

``TOPICOPS_DRAIN_PAGES`` names a folder for the pages that are seen meanwhile, of which pictures are made.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from airflow.sdk import Context, PokeReturnValue
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import NewTopic
from kafka import KafkaAdminClient

from fixtures.airflow_story import RUN_S, Story, airflow_stories
from fixtures.cluster import running
from fixtures.live import create_topics, look, until
from fixtures.topic_project import TOPIC, Project
from topicops import cli
from topicops.features.moves.on_airflow import looks, moves_dag
from topicops.features.moves.record import read_moves
from topicops.on_airflow.site import Site
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(2400)]

logger = logging.getLogger(__name__)

MANAGED = tuple(f"drained.orders-{number}" for number in range(4))
BY_HAND = "by-hand.clicks"
OFFSETS = "__consumer_offsets"
MESSAGE = b"x" * 10_000
MESSAGES = 3000
SETTINGS = """\
  apply: {throttle: 512KiB}
  policy: {drainUnmanaged: allow}
"""


@pytest.fixture
def five_brokers(fast_folder: Path) -> Iterator[LocalCluster]:
    with running(fast_folder / "drained", brokers=5, fresh=True) as cluster:
        yield cluster


def test_a_broker_is_drained_by_a_line_in_the_environment_an_answer_and_no_task_that_waits(
    five_brokers: LocalCluster, tmp_path: Path
) -> None:
    cluster, going = five_brokers, max(five_brokers.broker_ports)
    variables = {"TOPICOPS_STEP_MOVES_EVERY": "15s"}
    settings = {"drained": SETTINGS}
    with airflow_stories(tmp_path, cluster, ("drained",), settings=settings, variables=variables) as (story,):
        fill(story.project, cluster)
        before = replicas_on(cluster)
        assert {OFFSETS, BY_HAND, *MANAGED} == {topic for topic, _ in before[going]}

        drain(story.project, going)
        state, tasks = story.run_pipeline()
        assert (state, tasks["ask"], tasks["reassign"]) == ("success", "success", "skipped")
        note(story, "question", story.approval, story.newest_question())
        assert replicas_on(cluster) == before

        state, tasks = story.answer("Approve")
        assert (state, tasks["reassign"]) == ("success", "success")
        moves = f"topic_moves_{story.project.environment}"
        (run_id,) = story.client.runs(moves)
        seen = watch(story, moves, run_id)
        assert story.client.run_state(moves, run_id) == "success"

        after = replicas_on(cluster)
        assert after[going] == set()
        assert sum(map(len, after.values())) == sum(map(len, before.values()))
        assert moved(before, after) == len(before[going])
        assert throttles(cluster) == {}
        assert seen["looks"] > 1
        logger.warning("drained: %s", seen)

        state, tasks = story.run_pipeline()
        assert (state, tasks["reassign"]) == ("success", "skipped")
        assert list(story.client.runs(moves)) == [run_id]


@pytest.mark.usefixtures("airflow_database")
def test_the_dag_alone_ends_what_a_command_has_begun_and_each_look_takes_little(
    five_brokers: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, going = five_brokers, max(five_brokers.broker_ports)
    project = Project(tmp_path / "project", cluster, "local", settings=SETTINGS)  # Airflow has DAGs of this name
    for name, value in {**project.variables, "TOPICOPS_STEP_MOVES_EVERY": "15s"}.items():
        monkeypatch.setenv(name, value)
    fill(project, cluster)
    before = replicas_on(cluster)
    assert {OFFSETS, BY_HAND, *MANAGED} == {topic for topic, _ in before[going]}
    drain(project, going)
    plan = tmp_path / "plan.json"
    assert cli.run(["plan", "--topics", str(project.topics), "--out", str(plan)]) in (0, 2)
    fingerprint = json.loads(plan.read_text(encoding="utf-8"))["fingerprint"]
    assert cli.run(["apply", str(plan), "--topics", str(project.topics), "--approve", fingerprint]) == 0

    costs = measured(monkeypatch)
    run = moves_dag(Site(environment="local", topics=project.topics)).test()
    logger.warning("CPU seconds of each look: %s", costs)

    assert run.state == "success"
    after = replicas_on(cluster)
    assert after[going] == set()
    assert moved(before, after) == len(before[going])
    assert throttles(cluster) == {}
    record = read_moves(tmp_path / "project/home", "local")
    assert record is not None
    assert record.is_idle
    assert {ended.status for ended in record.ended} == {"done"}
    assert max(costs) < 2.0


def measured(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds of this process's processor that each look took, once looks were made."""
    costs: list[float] = []

    def look(site: Site, context: Context) -> PokeReturnValue:
        began = time.process_time()
        try:
            return really(site, context)
        finally:
            costs.append(round(time.process_time() - began, 2))

    really = looks.look
    monkeypatch.setattr(looks, "look", look)
    return costs


def fill(project: Project, cluster: LocalCluster) -> None:
    """Topics as their files say and one without a file, with records, and a group that reads them."""
    servers = cluster.bootstrap_servers
    for name in MANAGED:
        project.write(name, TOPIC)
        create_topics(servers, NewTopic(name, 2, replica_assignment=[[5, 1, 2], [3, 5, 4]]))
    create_topics(servers, NewTopic(OFFSETS, 1, replica_assignment=[[5, 2]], config={"cleanup.policy": "compact"}))
    create_topics(servers, NewTopic(BY_HAND, 3, replica_assignment=[[5, 1], [4, 2], [3, 1]]))
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 50})
    for number in range(MESSAGES):
        for topic in (*MANAGED, BY_HAND):
            producer.produce(topic, MESSAGE, key=str(number))
        producer.poll(0)
    assert producer.flush(120) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "drained", "auto.offset.reset": "earliest"})
    consumer.subscribe([BY_HAND])
    until(lambda: consumer.poll(1.0) is not None, timeout_s=120)
    consumer.commit(asynchronous=False)
    consumer.close()


def drain(project: Project, broker: int) -> None:
    file = project.topics / f"environments/{project.environment}.yaml"
    text = file.read_text(encoding="utf-8")
    changed = text.replace("    class: sandbox\n", f"    class: sandbox\n    draining: [{broker}]\n")
    assert changed != text
    file.write_text(changed, encoding="utf-8")
    project.publish()


def watch(story: Story, moves: str, run_id: str) -> Mapping[str, float]:
    """Wait until the run of the moves DAG has ended; count its looks, and see the pages meanwhile."""
    began, looks = time.monotonic(), 0
    until(lambda: story.client.tasks(moves, run_id).get("step") is not None, timeout_s=RUN_S)
    while story.client.run_state(moves, run_id) in ("queued", "running"):
        assert time.monotonic() - began < RUN_S
        state = story.client.tasks(moves, run_id)["step"].state
        looks += state == "up_for_reschedule"
        note(story, f"moving-{looks:03}", moves, run_id)
        time.sleep(5)
    note(story, "moved", moves, run_id)
    return {"looks": looks, "seconds": round(time.monotonic() - began)}


def note(story: Story, name: str, dag_id: str, run_id: str) -> None:
    """Keep the Topics page and the tab of a run."""
    if not (folder := os.environ.get("TOPICOPS_DRAIN_PAGES")):
        return
    pages = {
        "topics": ("topics", {}),
        "topic": ("topic", {"name": MANAGED[0]}),
        "plan": ("plan", {"run_id": run_id}),
    }  # fmt: skip
    with story.signed_in("viewer") as http:
        for page, (path, params) in pages.items():
            dag = dag_id if page == "plan" else story.pipeline
            text = http.get(f"/topicops/dags/{dag}/{path}", params=params).text
            Path(folder, f"{name}-{page}.html").write_text(text, encoding="utf-8")


def replicas_on(cluster: LocalCluster) -> Mapping[int, set[tuple[str, int]]]:
    """Return the logs on each broker, as it tells them itself."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        answers = admin.describe_log_dirs(brokers=sorted(cluster.broker_ports))
    finally:
        admin.close()
    return {
        answer["broker"]: {
            (topic["name"], partition["partition_index"])
            for directory in answer["log_dirs"]
            for topic in directory["topics"]
            for partition in topic["partitions"]
        }
        for answer in answers
    }


def moved(before: Mapping[int, set[tuple[str, int]]], after: Mapping[int, set[tuple[str, int]]]) -> int:
    return sum(len(after[broker] - before[broker]) for broker in after)


def throttles(cluster: LocalCluster) -> Mapping[str, str]:
    """Return what is left of throttles on topics."""
    topics = look(cluster).topics.values()
    return {
        f"{topic.name} {name}": value
        for topic in topics
        for name, value in topic.overrides.items()
        if "throttled" in name
    }
