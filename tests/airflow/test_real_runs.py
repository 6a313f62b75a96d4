"""Whole runs by ``dag.test()`` with the real steps: ZooKeeper, brokers, Spark and Great Expectations.

The environment is ``local`` because `dag.test()` runs only DAGs that Airflow has found in its bundle.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fixtures.topic_project import TOMBSTONE, TOPIC, Project
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.flow import planning
from topicops.flow.runs.run import open_run
from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import Plan
from topicops.model.plans.plan_file import plan_from_json
from topicops.on_airflow import topic_asset
from topicops.on_airflow.dags.environment_dags import drift_dag, pipeline_dag
from topicops.on_airflow.site import Site
from topicops_local.cluster import LocalCluster

pytestmark = pytest.mark.usefixtures("airflow_database", "spark")


@pytest.mark.soak
def test_runs_send_what_may_run_and_what_a_review_approved_by_digest_hold_other_deletes_and_tell_drift(
    local_cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path / "project", local_cluster, "local")
    for name, value in project.variables.items():
        monkeypatch.setenv(name, value)
    where = Site(environment=project.environment, topics=project.topics)
    dag = pipeline_dag(where)
    project.write("dagtest.orders", TOPIC)
    project.write("dagtest.old", TOPIC)
    assert dag.test(run_conf={"mode": "apply"}).state == "success"
    project.write("dagtest.orders", TOMBSTONE)
    project.write("dagtest.old", TOMBSTONE)
    project.write("dagtest.clicks", TOPIC)
    reviewed = {g.change.topic: g.digest for g in plan_of_a_pull_request(project).changes}

    run = dag.test(run_conf={"mode": "apply", "approved": [reviewed["dagtest.old"]]})

    assert run.state == "success"
    folder = next(f for f in (tmp_path / "project/home/runs" / dag.dag_id).iterdir() if "clicks" in read(f))
    gated = {g.change.topic: g.gate for g in plan_from_json((folder / "plan.json").read_text(encoding="utf-8")).changes}
    assert gated == {"dagtest.orders": GateWord.HELD, "dagtest.old": GateWord.RUN, "dagtest.clicks": GateWord.RUN}
    assert "Applied and verified: 2 done; 1 held." in (folder / "report.txt").read_text(encoding="utf-8")
    with ZooKeeperReader(local_cluster.zookeeper_hosts) as reader:
        live = {topic for topic in reader.snapshot().topics if topic.startswith("dagtest.")}
    assert live == {"dagtest.orders", "dagtest.clicks"}
    assert [extra["actions"] for extra in asset_events("dagtest.clicks")] == [["create"]]
    assert [extra["actions"] for extra in asset_events("dagtest.old")] == [["create"]], "a delete has no event"

    held = (tmp_path / "project/home/held/local.json").read_bytes()
    assert drift_dag(where).test(run_conf={"only": "dagtest.*"}).state == "success"
    (found,) = (tmp_path / "project/home/runs" / f"topic_drift_{where.environment}").glob("*/drift.json")
    assert [(e["topic"], e["kind"]) for e in json.loads(found.read_bytes())["drift"]] == [("dagtest.orders", "retired")]
    assert (tmp_path / "project/home/held/local.json").read_bytes() == held


def asset_events(topic: str) -> list[dict[str, object]]:
    """Return what Airflow keeps of each event of this topic's asset, oldest first."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    of_topic = select(AssetEvent).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
    with create_session() as session:
        found = session.scalars(
            of_topic.where(AssetModel.uri == topic_asset("local", topic).uri).order_by(AssetEvent.id)
        )
        return [dict(event.extra) for event in found]


def plan_of_a_pull_request(project: Project) -> Plan:
    """Return what a reviewer sees; made on the command line, whose runs the DAG knows nothing of."""
    run = open_run(environment=project.environment, topics=project.topics, group="cli", run_id="review")
    return planning.make_plan(run, engine="python").plan


def read(folder: Path) -> str:
    return (folder / "plan.json").read_text(encoding="utf-8")
