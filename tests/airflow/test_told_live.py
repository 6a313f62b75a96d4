"""Who is told when a broker dies and comes back: whole runs by ``dag.test()`` on a real cluster."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.sdk import BaseNotifier, Context
from confluent_kafka import ElectionType

from fixtures.cluster import running
from fixtures.live import look, new_admin, until
from fixtures.topic_project import TOPIC, Project
from topicops.on_airflow.dags.environment_dags import pipeline_dag
from topicops.on_airflow.site import Options, Site
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900), pytest.mark.usefixtures("airflow_database", "spark")]
logger = logging.getLogger(__name__)
TOLD = "told.live"


class Told(BaseNotifier):
    """Writes the kinds and verdicts that it is told into a file; without the folder of the file it cannot."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file

    def notify(self, context: Context) -> None:
        event = dict(context)["topicops_event"]
        line = json.dumps([event["kind"], event["verdict"]])
        with self.file.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


class ToldLater(Told):
    """Of another class, so that it is another receiver."""


@pytest.fixture(scope="module")
def cluster(fast_folder: Path) -> Iterator[LocalCluster]:
    """One of this module's own, whose ISRs shrink soon, and which gives leaders back only when it is asked."""
    properties = {
        "replica.lag.time.max.ms": "1000",
        "replica.fetch.wait.max.ms": "200",
        "auto.leader.rebalance.enable": "false",
    }
    with running(fast_folder / "told-cluster", broker_properties=properties) as cluster:
        yield cluster


def in_sync(cluster: LocalCluster) -> set[int]:
    """Return how many replicas of each partition are in sync."""
    states = [state for topic in look(cluster).topics.values() for state in (topic.states or {}).values()]
    return {len(state.isr) for state in states}


def test_a_broker_that_dies_is_told_once_to_each_receiver_and_once_more_when_it_is_back(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path / "project", cluster, "local")
    for name, value in project.variables.items():
        monkeypatch.setenv(name, value)
    told, later = tmp_path / "told", tmp_path / "not-there-yet/told"
    options = Options(notifiers=[Told(told), ToldLater(later)])
    dag = pipeline_dag(Site(environment="local", topics=project.topics, options=options))

    def heard_in_a_run(file: Path = told) -> list[str]:
        before = len(events_in(file))
        dag.test(run_conf={"mode": "apply"})
        new = events_in(file)[before:]
        logger.info("%s is told: %s", file.parent.name, new)
        return [kind for kind, _ in new]

    for number in range(4):
        project.write(f"{TOLD}.{number}", TOPIC)
    assert heard_in_a_run() == ["applied"]
    assert heard_in_a_run() == []

    broker = max(set(cluster.broker_ports) - {look(cluster).controller_id})
    cluster.kill(broker)
    until(lambda: in_sync(cluster) == {2})
    assert heard_in_a_run() == ["unhealthy"]
    ((_, verdict),) = [event for event in events_in(told) if event[0] == "unhealthy"]
    assert f"broker {broker}" in verdict
    later.parent.mkdir()
    assert heard_in_a_run() == []
    assert [kind for kind, _ in events_in(later)] == ["unhealthy"]

    cluster.start_broker(broker)
    until(lambda: in_sync(cluster) == {3})
    assert heard_in_a_run() == ["recovered"]
    assert f"Over: broker {broker}, Q12, Q27." in events_in(told)[-1][1]
    admin = new_admin(cluster.bootstrap_servers)
    admin.elect_leaders(ElectionType.PREFERRED).result(30)
    assert heard_in_a_run() == ["recovered"]
    assert heard_in_a_run() == []
    assert [kind for kind, _ in events_in(later)] == ["unhealthy", "recovered", "recovered"]


def events_in(file: Path) -> list[tuple[str, str]]:
    """Kind and verdict of each, oldest first."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [(kind, verdict) for kind, verdict in map(json.loads, lines)]
