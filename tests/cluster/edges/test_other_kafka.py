"""The local cluster on other releases of Kafka: started, upgraded one server at a time, and shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from topicops.model.errors import UsageError
from topicops.model.release import KRAFT, NEWEST, NO_ZOOKEEPER, TOPIC_IDS, Release
from topicops_local import local as cli
from topicops_local.cluster import LocalCluster
from topicops_local.jars import pinned_versions, usual_version
from topicops_local.readiness import ask_broker

OLD = pinned_versions()[TOPIC_IDS]
PROTOCOL = {"inter.broker.protocol.version": str(TOPIC_IDS)}


@contextmanager
def stopped_at_the_end(home: Path) -> Iterator[None]:
    try:
        yield
    finally:
        if cluster := LocalCluster.find(home):
            cluster.down(now=True)


@pytest.mark.soak
def test_one_server_after_the_other_moves_to_a_newer_kafka_and_the_status_names_both(cluster_home: Path) -> None:
    with stopped_at_the_end(cluster_home):
        cluster = LocalCluster.up(cluster_home, brokers=2, kafka=str(TOPIC_IDS))
        with pytest.raises(UsageError, match="broker-2 runs; stop it before you change its Kafka"):
            cluster.start_broker(2, kafka=usual_version())
        cluster.stop_broker(2)
        cluster.start_broker(2, kafka=usual_version(), broker_properties=PROTOCOL)

        shown = CliRunner().invoke(cli.app, ["status", "--home", str(cluster_home)]).stdout
        read = CliRunner().invoke(cli.app, ["status", "--home", str(cluster_home), "--format", "json"]).stdout
        with pytest.raises(UsageError, match=f"running with its own Kafka {OLD} and {usual_version()}"):
            LocalCluster.up(cluster_home, brokers=2, kafka=pinned_versions()[KRAFT])
        settings = (cluster_home / "cluster/broker-2/server.properties").read_text()
        answers = [ask_broker(port) for port in cluster.broker_ports.values()]

    assert cluster.versions == {"zookeeper": OLD, "broker-1": OLD, "broker-2": usual_version()}
    assert f"Kafka:              {OLD} (zookeeper, broker-1), {usual_version()} (broker-2)" in shown
    assert json.loads(read)["versions"] == cluster.versions
    assert f"inter.broker.protocol.version={TOPIC_IDS}\n" in settings
    assert [answer and answer.brokers for answer in answers] == [frozenset({1, 2})] * 2


@pytest.mark.soak
def test_the_newest_kafka_runs_as_a_quorum_without_being_told(cluster_home: Path) -> None:
    with stopped_at_the_end(cluster_home):
        cluster = LocalCluster.up(cluster_home, brokers=1, kafka=str(NEWEST))
        status = cluster.status()
        LocalCluster.up(cluster_home, brokers=1)  # no Kafka is named: the cluster is found as it is
        log = (cluster.logs / "broker-1.log").read_text()

    assert (status.kraft, status.registered_brokers, status.controller) == (True, (1,), 1)
    assert set(status.versions.values()) == {pinned_versions()[NEWEST]}
    assert "INFO" in log


def named(release: Release, *, kraft: bool) -> str:
    return f"{release} {'KRaft' if kraft else 'ZooKeeper'}"


EVERY_KIND = [
    pytest.param(release, kraft, id=named(release, kraft=kraft))
    for release in pinned_versions()
    for kraft in (False, True)
    if (release >= KRAFT if kraft else release < NO_ZOOKEEPER)
]


@pytest.mark.soak
@pytest.mark.parametrize(("release", "kraft"), EVERY_KIND)
def test_every_release_starts_and_its_brokers_know_each_other(
    cluster_home: Path, release: Release, kraft: bool
) -> None:
    with stopped_at_the_end(cluster_home):
        cluster = LocalCluster.up(cluster_home, brokers=2, kafka=str(release), kraft=kraft)
        status = cluster.status()

    assert (status.kraft, status.registered_brokers) == (kraft, (1, 2))
    assert set(status.versions.values()) == {pinned_versions()[release]}
