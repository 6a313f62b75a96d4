"""Both suites over a real cluster, as the tasks run them: what they read, what they remember, what they leave."""

from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from fixtures.live import cluster_spec, create_topics, look, new_admin, until
from fixtures.store import s3_store
from fixtures.workspace import Workspace
from topicops.features.quality import judging
from topicops.features.quality.past_runs import quality_history
from topicops.features.spark.engine import SPARK
from topicops.flow import single_steps
from topicops.flow.engines import PYTHON, DiffEngine
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.model.runs.results import QualityReport
from topicops_local.cluster import LocalCluster

NAME = "quality-live"


def make_topic(cluster: LocalCluster) -> None:
    create_topics(cluster.bootstrap_servers, NewTopic(NAME, 3, 3))


def remove_topic(cluster: LocalCluster) -> None:
    admin = new_admin(cluster.bootstrap_servers)
    admin.delete_topics([NAME])[NAME].result(60)
    until(lambda: NAME not in look(cluster).topics and NAME not in look(cluster).deleting)


def opened(workspace: Workspace, run_id: str) -> EnvironmentRun:
    run = open_run(environment="local", topics=Path("topics"), group="topic_pipeline_local", run_id=run_id)
    workspace.write_environment()
    single_steps.validate(run, as_tables=True)
    single_steps.snapshot(run, states=True)
    return run


@pytest.fixture(params=["spark", "python"])
def engine(request: pytest.FixtureRequest) -> DiffEngine:
    if request.param == "python":
        return PYTHON
    request.getfixturevalue("spark")
    return SPARK


@pytest.mark.soak
def test_the_rules_hold_on_a_healthy_cluster_and_find_a_topic_that_was_made_again_by_hand(
    local_cluster: LocalCluster, workspace: Workspace, engine: DiffEngine
) -> None:
    workspace.cluster = cluster_spec(local_cluster)
    workspace.topic(NAME, partitions=3)
    make_topic(local_cluster)
    try:
        first = opened(workspace, "first")
        assert judging.before(first, engine).critical == ()
        assert judging.after(first, engine).critical == ()
        remove_topic(local_cluster)
        make_topic(local_cluster)
        second = opened(workspace, "second")
        assert judging.after(second, engine).critical == ("Q24",)
    finally:
        remove_topic(local_cluster)
    found = second.store.read_value("quality-after.json", QualityReport)
    [drift] = [result for result in found.results if result.rule == "Q24"]
    assert [example.row["topic"] for example in drift.examples] == [NAME]
    assert {result.rule: result.rows_checked for result in found.results}["Q23"] >= 1
    assert [run.after == found for run in quality_history(second.home, "topic_pipeline_local")] == [True, False]


@pytest.mark.soak
def test_the_whole_loop_runs_with_its_tables_on_a_store(
    local_cluster: LocalCluster,
    workspace: Workspace,
    engine: DiffEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workspace.cluster = cluster_spec(local_cluster)
    workspace.topic(NAME, partitions=3)
    try:
        with s3_store(tmp_path) as store:
            monkeypatch.setenv("TOPICOPS_TABLES", store.uri)
            run = opened(workspace, "store")
            assert judging.before(run, engine).critical == ()
            single_steps.diff(run, engine=engine)
            for step in (single_steps.plan, single_steps.gate, single_steps.apply, single_steps.verify):
                step(run)
            assert judging.after(run, engine).critical == ()
            assert len(store.names()) >= 5
        assert look(local_cluster).topics[NAME].partitions == 3
        assert not run.store.path("tables").exists()
    finally:
        remove_topic(local_cluster)
