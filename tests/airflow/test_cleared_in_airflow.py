"""Runs that are cleared in a running Airflow, on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from fixtures.live import look
from fixtures.topic_project import TOPIC, Project
from topicops_local.airflow import start_airflow, wait_for_dags
from topicops_local.airflow_client import LocalAirflowClient
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

PIPELINE = "topic_pipeline_cleared"
RUN_S = 480.0


@dataclass(frozen=True)
class Stage:
    client: LocalAirflowClient
    project: Project

    def run(self) -> str:
        run_id = self.client.trigger(PIPELINE, {})
        assert self.end(run_id) == "success"
        return run_id

    def end(self, run_id: str) -> str:
        for _ in self.client.follow(PIPELINE, run_id, timeout_s=RUN_S):
            pass
        return self.client.run_state(PIPELINE, run_id)


@pytest.fixture(scope="module")
def stage(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("cleared")
    project = Project(folder / "project", local_cluster, "cleared")
    (folder / "airflow").mkdir()
    with start_airflow(folder / "airflow", dags=project.dags, environment=project.variables) as airflow:
        client = airflow.client()
        wait_for_dags(client, [PIPELINE])
        yield Stage(client, project)


def test_a_cleared_run_runs_again_while_it_is_the_newest_and_sends_nothing_once_it_is_not(
    stage: Stage, local_cluster: LocalCluster
) -> None:
    stage.project.write("cleared.orders", TOPIC)
    older = stage.run()
    stage.project.write("cleared.clicks", TOPIC)
    newest = stage.run()
    before = identities(local_cluster)

    stage.client.clear(PIPELINE, older, "validate", downstream=True)
    stage.client.clear(PIPELINE, newest, "create", downstream=False)
    ends = stage.end(older), stage.end(newest)

    assert ends == ("failed", "success")
    assert f"{newest} has planned since" in stage.client.log(PIPELINE, older, "validate", 2)
    assert stage.client.tasks(PIPELINE, older)["create"].state == "upstream_failed"
    assert "create cleared.clicks: already so" in stage.client.log(PIPELINE, newest, "create", 2)
    assert identities(local_cluster) == before
    assert before.keys() == {"cleared.orders", "cleared.clicks"}


def identities(cluster: LocalCluster) -> dict[str, str]:
    return {name: topic.identity for name, topic in look(cluster).topics.items() if name.startswith("cleared.")}
