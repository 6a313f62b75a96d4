"""``topicops list`` beside Kafka's own ``kafka-topics --describe``, on a cluster with a stopped broker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import NewTopic

from fixtures.kafka_tool import described_topics
from fixtures.live import cluster_spec, create_topics, look, remove_topics, until, zookeeper
from fixtures.workspace import Workspace
from topicops_local.cluster import LocalCluster

STOPPED = 3
ROWS = {
    "health-fine": [1, 2],
    "health-thin": [1, STOPPED],
    "health-at-min": [1, 2, STOPPED],
    "health-under-min": [2, 1, STOPPED],
    "health-gone": [STOPPED],
    "health-moving": [1],
}
MIN_ISR = {"health-at-min": "2", "health-under-min": "3"}
EXPECTED = {
    "under-replicated": {"health-thin", "health-at-min", "health-under-min"},
    "under-min-isr": {"health-under-min", "health-gone"},
    "at-min-isr": {"health-thin", "health-at-min", "health-gone", "health-moving"},
    "unavailable": {"health-gone"},
}
KAFKAS_OPTION = {"unavailable": "unavailable-partitions"} | {
    name: f"{name}-partitions" for name in ("under-replicated", "under-min-isr", "at-min-isr")
}


@pytest.fixture(scope="module")
def cluster(local_cluster: LocalCluster) -> Iterator[LocalCluster]:
    """With a partition of each filter's kind: made by hand, then one broker stopped, then one replica wished to it."""
    new = [
        NewTopic(name, 1, replica_assignment=[row], config={"min.insync.replicas": MIN_ISR.get(name, "1")})
        for name, row in ROWS.items()
    ]
    create_topics(local_cluster.bootstrap_servers, *new)
    local_cluster.stop_broker(STOPPED)
    try:
        until(lambda: (look(local_cluster).topics["health-gone"].states or {})[0].leader == -1)
        move(local_cluster, "health-moving", [1, STOPPED])
        until(lambda: look(local_cluster).topics["health-moving"].is_reassigning)
        yield local_cluster
    finally:
        local_cluster.start_broker(STOPPED)
        until(lambda: not look(local_cluster).topics["health-moving"].is_reassigning)
        remove_topics(local_cluster, ROWS)


@pytest.fixture
def live(cluster: LocalCluster, workspace: Workspace) -> Workspace:
    workspace.cluster = cluster_spec(cluster)
    return workspace


def move(cluster: LocalCluster, topic: str, replicas: list[int]) -> None:
    """By the znode, which Kafka takes without asking whether the brokers live."""
    wish = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": replicas}]}
    with zookeeper(cluster) as client:
        client.create("/admin/reassign_partitions", json.dumps(wish).encode())


def without_leader_candidates(line: str) -> str:
    """Kafka's tool ends each line with what only KRaft has: eligible leader replicas."""
    return re.sub(r"\tElr: .*", "", line)


@pytest.mark.parametrize("source", ["zookeeper", "kafka"])
@pytest.mark.parametrize("name", EXPECTED)
def test_a_filter_of_partitions_prints_the_lines_of_kafkas_own_tool(
    live: Workspace, cluster: LocalCluster, name: str, source: str
) -> None:
    live.cluster |= {"source": source} | ({"lease": "file"} if source == "kafka" else {})
    ours = live.run("list", "--environment", "local", f"--{name}")

    kafkas = described_topics(cluster, f"--{KAFKAS_OPTION[name]}")
    assert ours.status == 0, ours.err
    assert sorted(ours.out.splitlines()) == [without_leader_candidates(line) for line in kafkas]
    assert EXPECTED[name] <= set(re.findall(r"Topic: (\S+)", ours.out))
    assert not (ROWS.keys() - EXPECTED[name]) & set(re.findall(r"Topic: (\S+)", ours.out))


def test_topics_with_overrides_are_kafkas_without_what_the_brokers_set_for_all(
    live: Workspace, cluster: LocalCluster
) -> None:
    ours = live.run("list", "--environment", "local", "--with-overrides", "--describe")

    # Kafka's tool takes every value that is no built-in default for an override, a broker's own settings among them.
    kafkas = described_topics(cluster, "--topics-with-overrides")
    own = [(head, configs - {"file.delete.delay.ms=1000"}) for head, configs in map(head_and_configs, kafkas)]
    assert sorted(map(head_and_configs, ours.out.splitlines())) == [pair for pair in own if pair[1]]
    assert len(ours.out.splitlines()) >= len(ROWS)


def head_and_configs(line: str) -> tuple[str, frozenset[str]]:
    head, _, configs = line.partition("\tConfigs: ")
    return head, frozenset(configs.split(",")) - {""}


def test_unmanaged_topics_are_those_that_no_file_names(live: Workspace) -> None:
    live.topic("health-fine", replicationFactor=2)

    listed = live.run("list", "--environment", "local", "--unmanaged", "--format", "json")

    topics = {topic["name"]: topic for topic in json.loads(listed.out)["topics"]}
    assert (ROWS.keys() - {"health-fine"}) <= topics.keys()
    assert "health-fine" not in topics
    assert {topic["managed"] for topic in topics.values()} == {False}


def test_filters_narrow_each_other(live: Workspace) -> None:
    listed = live.run("list", "--environment", "local", "--under-replicated", "--under-min-isr", "--format", "json")

    [topic] = json.loads(listed.out)["topics"]
    [row] = topic["matching_partitions"]
    assert (topic["name"], row["leader"], row["isr"], row["min_isr"]) == ("health-under-min", 2, [2, 1], 3)


def test_a_run_that_only_looks_leaves_no_folder(live: Workspace) -> None:
    live.run("list", "--environment", "local", "--unavailable")

    assert not (live.folder / "home" / "runs").exists()
