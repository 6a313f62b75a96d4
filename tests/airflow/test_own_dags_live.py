"""A DAG file of one's own on a real Airflow, by public names alone, and DAGs of data that wait for their topic."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from fixtures.airflow_story import Story
from fixtures.live import look, remove_topics, until
from fixtures.topic_project import TOMBSTONE, TOPIC, Project
from topicops_local.airflow import start_airflow, wait_for_dags
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]
logger = logging.getLogger(__name__)

ENVIRONMENT = "own"
ORDERS = "own.orders"
PIPELINE = f"topic_pipeline_{ENVIRONMENT}"
IN_TIME_S = 180.0
OWN_FILE = '''
"""As a platform team writes it."""

import json
import os
from pathlib import Path

from airflow.sdk import DAG, Asset, BaseNotifier, task

from topicops.on_airflow import KafkaTopicsHook, TopicHealthySensor, environment_dags, topic_asset, topics_alias

ROOT = Path(__file__).absolute().parents[1]
TOPICS = ROOT / "topics"
NOTES = ROOT / "notes"


def note(file, **values):
    with (NOTES / file).open("a", encoding="utf-8") as notes:
        notes.write(json.dumps(values) + "\\n")


class Noted(BaseNotifier):
    def notify(self, context):
        note("told", **context["topicops_event"])


own = environment_dags(
    "own",
    TOPICS,
    schedule="* * * * *",
    mode="apply",
    pool="kafka",
    default_args={"owner": "platform"},
    tags=["platform"],
    notifiers=[Noted()],
)
with own.pipeline:

    @task
    def no_freeze():
        note("before", asked=True)

    @task(trigger_rule="none_failed")
    def tell_the_catalogue(dag_run=None):
        note("after", run=dag_run.run_id)

    no_freeze() >> own.pipeline.get_task("validate")
    own.pipeline.get_task("report") >> tell_the_catalogue()

globals().update({dag.dag_id: dag for dag in own})

with DAG("orders_data", schedule=[topic_asset("own", "own.orders")], is_paused_upon_creation=False) as orders_data:

    @task
    def load(triggering_asset_events=None):
        for asset, events in triggering_asset_events.items():
            note("loaded", uri=asset.uri, extras=[event.extra for event in events])

    load()

SERVER = json.loads(os.environ["AIRFLOW_CONN_KAFKA_OWN"])["extra"]["bootstrap.servers"].split(",")[0]
with DAG("kafka_data", schedule=[Asset(f"kafka://{SERVER}/own.orders")], is_paused_upon_creation=False) as kafka_data:

    @task
    def read(triggering_asset_events=None):
        for asset, events in triggering_asset_events.items():
            note("read", uri=asset.uri, extras=[event.extra for event in events])

    read()

with DAG("any_topic", schedule=[topics_alias("own")], is_paused_upon_creation=False) as any_topic:

    @task
    def look(triggering_asset_events=None):
        note("any", uris=sorted({event.asset.uri for events in triggering_asset_events.values() for event in events}))

    look()

with DAG("orders_ready", schedule=None, is_paused_upon_creation=False) as orders_ready:

    @task
    def ask():
        hook = KafkaTopicsHook("own", TOPICS)
        note("asked", healthy=hook.is_healthy("own.orders"), problems=hook.problems("own.orders"))

    TopicHealthySensor(
        task_id="wait", environment="own", topics=TOPICS, topic="own.orders", poke_interval=20
    ) >> ask()
'''

REMINDERS = {
    "TOPICOPS_NOTIFY": "chat:notifiers",
    "TOPICOPS_REMIND_AFTER": "15s",
    "TOPICOPS_CHECK_QUESTION_EVERY": "10s",
}
CHAT = '''
"""The notifier of all environments."""

import json
from pathlib import Path

from airflow.sdk import BaseNotifier


class Chat(BaseNotifier):
    def notify(self, context):
        with (Path(__file__).absolute().parents[1] / "notes/chat").open("a", encoding="utf-8") as notes:
            notes.write(json.dumps(context["topicops_event"]) + "\\n")


def notifiers():
    return [Chat()]
'''


@pytest.fixture(scope="module")
def project(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("own") / "project", local_cluster, ENVIRONMENT)
    (project.dags / "topicops_dags.py").unlink()
    (project.dags / "own_dags.py").write_text(OWN_FILE, encoding="utf-8")
    (project.dags / "chat.py").write_text(CHAT, encoding="utf-8")
    (project.topics.parent / "notes").mkdir()
    return project


class Collector(ThreadingHTTPServer):
    """Takes what Airflow sends by OpenTelemetry's protocol, and keeps the names of our metrics."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Collecting)
        self.names: set[bytes] = set()

    @property
    def variables(self) -> dict[str, str]:
        return {
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.server_port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        }


class _Collecting(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.names |= set(re.findall(rb"topicops\.own\.[a-z_]+", body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def collected() -> Iterator[Collector]:
    with Collector() as collector:
        Thread(target=collector.serve_forever, daemon=True).start()
        yield collector
        collector.shutdown()


@pytest.fixture(scope="module")
def story(project: Project, local_cluster: LocalCluster, collected: Collector) -> Iterator[Story]:
    folder = project.topics.parent / "airflow"
    folder.mkdir()
    variables = {**project.variables, **collected.variables, **REMINDERS}
    with start_airflow(folder, dags=project.dags, environment=variables) as airflow:
        story = Story(airflow, airflow.client(), local_cluster, project)
        with story.signed_in(airflow.username) as http:
            pool = {"name": "kafka", "slots": 1, "description": "One at a time", "include_deferred": False}
            http.post("/api/v2/pools", json=pool).raise_for_status()
        wait_for_dags(story.client, [PIPELINE, "orders_data", "kafka_data", "orders_ready", "any_topic"])
        yield story
    remove_topics(local_cluster, [ORDERS])


def notes(project: Project, file: str) -> list[dict[str, Any]]:
    path = project.topics.parent / "notes" / file
    return [*map(json.loads, path.read_text(encoding="utf-8").splitlines())] if path.exists() else []


def test_a_dag_of_data_starts_when_the_scheduled_run_of_an_own_dag_file_has_made_its_topic(
    story: Story, project: Project, local_cluster: LocalCluster, collected: Collector
) -> None:
    client = story.client
    waiting = client.trigger("orders_ready", {})
    client.wait_for_task("orders_ready", waiting, "wait", "up_for_reschedule", timeout_s=IN_TIME_S)
    until(lambda: "success" in client.runs(PIPELINE).values(), timeout_s=IN_TIME_S)
    assert notes(project, "loaded") == []

    project.write(ORDERS, TOPIC)
    until(lambda: notes(project, "loaded") != [], timeout_s=IN_TIME_S)
    state, _ = story.ended("orders_ready", waiting)
    until(lambda: notes(project, "any") != [], timeout_s=IN_TIME_S)
    until(lambda: notes(project, "read") != [], timeout_s=IN_TIME_S)

    (loaded,) = notes(project, "loaded")
    (extra,) = loaded["extras"]
    made = extra["run"].partition("/")[2]
    until(lambda: {"run": made} in notes(project, "after"), timeout_s=IN_TIME_S)
    (applied,) = [note for note in notes(project, "told") if note["kind"] == "applied"]
    with story.signed_in(story.airflow.username) as http:
        tasks = http.get(f"/api/v2/dags/{PIPELINE}/dagRuns/{made}/taskInstances").raise_for_status().json()
    assert loaded["uri"] == f"topicops://own/{ORDERS}"
    (read,) = notes(project, "read")
    assert (read["uri"].partition(":")[0], read["extras"]) == ("kafka", [extra])
    assert notes(project, "any") == [{"uris": [loaded["uri"]]}], "who waits for any topic sees our asset alone"
    assert extra["actions"] == ["create"]
    assert made.startswith("scheduled__")
    assert (applied["run"], applied["counts"]) == (extra["run"], {"changes": 1})
    pools = {task["task_id"]: task["pool"] for task in tasks["task_instances"]}
    assert {pools[ours] for ours in ("validate", "create", "verify", "report")} == {"kafka"}
    assert notes(project, "before") != []
    assert state == "success"
    assert notes(project, "asked") == [{"healthy": True, "problems": []}]
    assert "V02: topic is not there" in client.log("orders_ready", waiting, "wait")
    assert len(look(local_cluster).topics[ORDERS].assignment) == 2
    until(lambda: {b"topicops.own.applied", b"topicops.own.done"} <= collected.names, timeout_s=60)
    logger.info("loaded by %s; the notifier was told %s", loaded, applied)


def test_a_question_that_waits_is_told_of_again_and_ends_when_the_files_do_not_ask_for_it_any_more(
    story: Story, project: Project
) -> None:
    client, approval = story.client, story.approval
    project.write(ORDERS, TOPIC)
    until(lambda: any(note["kind"] == "applied" for note in notes(project, "chat")), timeout_s=IN_TIME_S)
    project.write(ORDERS, TOMBSTONE)
    until(lambda: client.runs(approval) != {}, timeout_s=IN_TIME_S)
    (asking,) = client.runs(approval)

    def of_the_question(receiver: str = "chat") -> list[tuple[str, str]]:
        found = [note for note in notes(project, receiver) if note["run"] == f"{approval}/{asking}"]
        return [(note["kind"], note["verdict"]) for note in found]

    until(lambda: len(of_the_question()) == 2, timeout_s=IN_TIME_S)
    first, again = of_the_question()
    assert first == ("held", f"1 change of own waits for an approval: delete {ORDERS}")
    said = rf"1 change of own still waits for an approval, since \S+ \S+ UTC: delete {re.escape(ORDERS)}"
    assert re.fullmatch(said, again[1])
    assert of_the_question("told") == of_the_question()  # the notifier of the DAG file

    project.write(ORDERS, TOPIC)
    state, tasks = story.ended(approval, asking)
    assert (state, tasks["approve"], tasks["delete"], tasks["report"]) == ("success", "skipped", "skipped", "success")
    kind, verdict = of_the_question()[-1]
    assert kind == "withdrawn"
    assert f"the set was replaced by that of {PIPELINE}/" in verdict
    assert verdict.endswith("which holds nothing")
    result = client.xcom(approval, asking, "report", key="result")
    assert isinstance(result, dict)
    assert result["headline"].startswith("Withdrawn, and nothing was sent: the set was replaced by that of ")
    with story.signed_in("admin") as http:
        required = {"state": ["deferred", "awaiting_input"], "response_received": False}  # as Airflow's page asks
        path = f"/api/v2/dags/{approval}/dagRuns/~/hitlDetails"
        assert http.get(path, params=required).raise_for_status().json()["total_entries"] == 0
    logger.info("the chat was told %s", of_the_question())
