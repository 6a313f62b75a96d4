"""Brokers before 2.3 replace all overrides of a topic by those that a request names."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from fixtures.cluster import running
from fixtures.live import cluster_spec, look, remove_topics, zookeeper
from fixtures.workspace import Workspace
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.soak]
RELEASES = ("1.0.2", "1.1.1", "2.2.2")
WEEK, DAY = "604800000", "86400000"


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def old(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One broker."""
    with running(tmp_path_factory.mktemp("old"), brokers=1, kafka=release) as cluster:
        yield cluster


@pytest.fixture
def workspace_there(workspace: Workspace, old: LocalCluster, release: str) -> Iterator[Workspace]:
    workspace.cluster = {**cluster_spec(old), "kafkaVersion": release}
    workspace.topic("bills", replicationFactor=1, configs={"retention.ms": WEEK, "segment.bytes": "1000000"})
    assert workspace.plan().status == 0
    created = workspace.apply()
    assert created.status == 0, created.out + created.err
    yield workspace
    remove_topics(old, ["bills"])


def change(workspace: Workspace) -> None:
    """One value, one more and one fewer; ``flush.ms`` was set by hand and is in no file."""
    configs = {"retention.ms": DAY, "segment.ms": "3600000", "segment.bytes": None}
    workspace.topic("bills", replicationFactor=1, configs=configs)


def set_by_hand(cluster: LocalCluster, name: str, value: str) -> None:
    with zookeeper(cluster) as client:
        path = "/config/topics/bills"
        found = json.loads(client.get(path)[0])
        found["config"][name] = value
        client.set(path, json.dumps(found).encode())


def test_what_a_file_does_not_name_stays(workspace_there: Workspace, old: LocalCluster) -> None:
    set_by_hand(old, "flush.ms", "9000")
    change(workspace_there)

    planned = workspace_there.plan()
    applied = workspace_there.approve()

    assert "all overrides of the topic are sent: the request also names the flush.ms of now" in planned.out
    assert applied.status == 0, applied.out + applied.err
    assert look(old).topics["bills"].overrides == {"flush.ms": "9000", "retention.ms": DAY, "segment.ms": "3600000"}
    assert "No changes." in workspace_there.plan().out


def test_an_override_that_came_after_the_plan_is_not_lost(workspace_there: Workspace, old: LocalCluster) -> None:
    change(workspace_there)
    workspace_there.plan()
    set_by_hand(old, "flush.ms", "9000")

    applied = workspace_there.approve()

    assert applied.status != 0
    assert "flush.ms: planned not set, live 9000" in applied.out + applied.err
    assert look(old).topics["bills"].overrides == {"flush.ms": "9000", "retention.ms": WEEK, "segment.bytes": "1000000"}


def test_an_override_that_the_brokers_would_refuse_blocks_the_plan(
    workspace_there: Workspace, old: LocalCluster
) -> None:
    set_by_hand(old, "no.such.config", "1")
    change(workspace_there)

    planned = workspace_there.plan()
    applied = workspace_there.approve()

    assert "would refuse no.such.config=1: Kafka has no topic config no.such.config" in planned.out
    assert applied.status == 3, "nothing may run"
    assert look(old).topics["bills"].overrides["retention.ms"] == WEEK
