"""``topicops doctor`` and ``topicops list`` on a cluster without ZooKeeper."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import NewTopic

from fixtures.kafka_tool import described_topics
from fixtures.live import create_topics, new_admin, spec_by_brokers, until
from fixtures.workspace import Workspace
from topicops_local.cluster import LocalCluster

STOPPED = 3
ROWS = {"thin": [1, STOPPED], "under-min": [2, 1, STOPPED], "gone": [STOPPED]}
NEEDS_ZOOKEEPER = {"feature-znode", "lease-right", "migration", "multi-read", "undecodable-znode"}
KAFKAS_OPTION = {"unavailable": "--unavailable-partitions"} | {
    name: f"--{name}-partitions" for name in ("under-replicated", "under-min-isr", "at-min-isr")
}


@pytest.fixture(scope="module")
def cluster(kraft_cluster: LocalCluster) -> Iterator[LocalCluster]:
    """Three brokers, all of them running, with topics on them, which are gone afterwards."""
    configs = {"under-min": {"min.insync.replicas": "3"}}
    new = [NewTopic(name, 1, replica_assignment=[row], config=configs.get(name, {})) for name, row in ROWS.items()]
    create_topics(kraft_cluster.bootstrap_servers, *new)
    yield kraft_cluster
    kraft_cluster.start_broker(STOPPED)
    admin = new_admin(kraft_cluster.bootstrap_servers)
    for deleted in admin.delete_topics(list(ROWS)).values():
        deleted.result(60)


@pytest.fixture
def live(cluster: LocalCluster, workspace: Workspace) -> Workspace:
    workspace.cluster = spec_by_brokers(cluster)
    return workspace


# Runs first: the next one stops a broker.
def test_a_clean_cluster_has_no_finding_and_what_needs_zookeeper_is_named(live: Workspace) -> None:
    ended = live.run("doctor", "--environment", "local", "--format", "json")

    told = json.loads(ended.out)
    assert (ended.status, told["findings"]) == (0, [])
    assert set(told["rules_not_applied"]) >= NEEDS_ZOOKEEPER
    assert "read through its brokers" in told["facts"]["mode"]


@pytest.fixture(scope="module")
def stopped(cluster: LocalCluster) -> LocalCluster:
    cluster.stop_broker(STOPPED)
    until(lambda: bool(described_topics(cluster, "--unavailable-partitions")))
    return cluster


@pytest.mark.parametrize("name", KAFKAS_OPTION)
def test_filters_print_the_lines_of_kafkas_own_tool(live: Workspace, stopped: LocalCluster, name: str) -> None:
    ours = live.run("list", "--environment", "local", f"--{name}")

    # Kafka's lines end with eligible leader replicas, which 3.9 keeps nowhere by default.
    kafkas = [re.sub(r"\tElr: .*", "", line) for line in described_topics(stopped, KAFKAS_OPTION[name])]
    assert ours.status == 0, ours.err
    assert sorted(ours.out.splitlines()) == kafkas
    assert kafkas


def test_a_stopped_broker_and_what_it_took_along_are_found(live: Workspace, stopped: LocalCluster) -> None:
    ended = live.run("doctor", "--environment", "local", "--format", "json")

    found = {finding["id"]: finding["message"] for finding in json.loads(ended.out)["findings"]}
    assert ended.status == 1
    assert found.keys() == {"unregistered-broker", "no-leader"}
    assert f"broker {STOPPED}" in found["unregistered-broker"]
    assert "gone-0" in found["no-leader"]
