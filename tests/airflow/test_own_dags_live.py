"""A DAG file of one's own on a real Airflow, by public names alone, and DAGs of data that wait for their topic."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from fixtures.airflow_story import Story
from fixtures.live import look, remove_topics, until
from fixtures.topic_project import TOPIC, Project
from topicops.edges.airflow_client import AirflowClient
from topicops.edges.local.airflow import LocalAirflow, start_airflow, wait_for_dags
from topicops.edges.local.cluster import LocalCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]
logger = logging.getLogger(__name__)

ENVIRONMENT = "own"
ORDERS = "own.orders"
PIPELINE = f"topic_pipeline_{ENVIRONMENT}"
IN_TIME_S = 300.0
OWN_FILE = '''
"""As a platform team writes it."""

import json
from pathlib import Path

from airflow.sdk import DAG, BaseNotifier, task

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

with DAG("orders_data", schedule=[topic_asset("own", "own.orders")]) as orders_data:

    @task
    def load(triggering_asset_events=None):
        for asset, events in triggering_asset_events.items():
            note("loaded", uri=asset.uri, extras=[event.extra for event in events])

    load()

with DAG("any_topic", schedule=[topics_alias("own")]) as any_topic:

    @task
    def look():
        note("any", changed=True)

    look()

with DAG("orders_ready", schedule=None) as orders_ready:

    @task
    def ask():
        hook = KafkaTopicsHook("own", TOPICS)
        note("asked", healthy=hook.is_healthy("own.orders"), problems=hook.problems("own.orders"))

    TopicHealthySensor(
        task_id="wait", environment="own", topics=TOPICS, topic="own.orders", poke_interval=5
    ) >> ask()
'''


@pytest.fixture(scope="module")
def project(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("own") / "project", local_cluster, ENVIRONMENT)
    (project.dags / "topicops_dags.py").unlink()
    (project.dags / "own_dags.py").write_text(OWN_FILE, encoding="utf-8")
    (project.topics.parent / "notes").mkdir()
    return project


@pytest.fixture(scope="module")
def airflow(project: Project, local_cluster: LocalCluster) -> Iterator[LocalAirflow]:
    folder = project.topics.parent / "airflow"
    folder.mkdir()
    with start_airflow(folder, dags=project.dags, environment=project.variables) as airflow:
        yield airflow
    remove_topics(local_cluster, [ORDERS])


def notes(project: Project, file: str) -> list[dict[str, object]]:
    path = project.topics.parent / "notes" / file
    return [*map(json.loads, path.read_text(encoding="utf-8").splitlines())] if path.exists() else []


def newest(client: AirflowClient, dag_id: str) -> str:
    return list(client.runs(dag_id))[-1]


def test_a_dag_of_data_starts_when_the_scheduled_run_of_an_own_dag_file_has_made_its_topic(
    airflow: LocalAirflow, project: Project, local_cluster: LocalCluster
) -> None:
    client = airflow.client()
    story = Story(airflow, client, local_cluster, project)
    with story.signed_in(airflow.username) as http:
        pool = {"name": "kafka", "slots": 1, "description": "One change of Kafka at a time", "include_deferred": False}
        http.post("/api/v2/pools", json=pool).raise_for_status()
        wait_for_dags(client, [PIPELINE, "orders_data", "orders_ready", "any_topic"])
        waiting = client.trigger("orders_ready", {})
        client.wait_for_task("orders_ready", waiting, "wait", "up_for_reschedule", timeout_s=IN_TIME_S)
        until(lambda: "success" in client.runs(PIPELINE).values(), timeout_s=IN_TIME_S)
        assert notes(project, "loaded") == []

        project.write(ORDERS, TOPIC)
        until(lambda: notes(project, "loaded") != [], timeout_s=IN_TIME_S)
        client.follow("orders_ready", waiting, timeout_s=IN_TIME_S)
        until(lambda: notes(project, "any") != [], timeout_s=IN_TIME_S)

        (loaded,) = notes(project, "loaded")
        ((extra,), (applied,)) = loaded["extras"], [n for n in notes(project, "told") if n["kind"] == "applied"]
        until(lambda: {"run": str(extra["run"]).partition("/")[2]} in notes(project, "after"), timeout_s=IN_TIME_S)
        made = str(extra["run"]).partition("/")[2]
        tasks = http.get(f"/api/v2/dags/{PIPELINE}/dagRuns/{made}/taskInstances").raise_for_status().json()
    assert loaded["uri"] == f"topicops://own/{ORDERS}"
    assert extra["actions"] == ["create"]
    assert made.startswith("scheduled__")
    assert (applied["run"], applied["counts"]) == (extra["run"], {"changes": 1})
    assert {task["pool"] for task in tasks["task_instances"] if task["task_id"] != "tell_the_catalogue"} >= {"kafka"}
    assert notes(project, "before") != []
    assert client.run_state("orders_ready", waiting) == "success"
    assert notes(project, "asked") == [{"healthy": True, "problems": []}]
    assert "V02: topic is not there" in client.log("orders_ready", waiting, "wait")
    assert len(look(local_cluster).topics[ORDERS].assignment) == 2
    logger.info("loaded by %s; the notifier was told %s", loaded, applied)
