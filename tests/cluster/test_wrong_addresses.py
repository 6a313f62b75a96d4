"""Brokers whose advertised addresses lead nowhere from here, and ports of another server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.cluster import running
from fixtures.live import cluster_spec, zookeeper
from fixtures.workspace import Workspace
from topicops import cli
from topicops_local.cluster import LocalCluster
from topicops_local.processes import free_port

NAME = "kafka-1.kafka-headless.data.svc:9092"
SENTENCE = f"broker 1 advertises {NAME}, which this host cannot resolve; the bootstrap address works. Name a listener"
FEW_S = 20.0
"""A person waits no longer for an answer that no time can make better."""


@pytest.fixture(scope="module")
def client_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def cluster(fast_folder: Path, client_port: int) -> Iterator[LocalCluster]:
    """One broker with a listener for clients, as behind a port-forward: it advertises a name of another network."""
    port = free_port(frozenset({client_port}))
    listeners = f"PLAINTEXT://127.0.0.1:{port},CLIENT://"
    properties = {
        "listeners": f"{listeners}127.0.0.1:{client_port}",
        "advertised.listeners": f"{listeners}{NAME}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    home = fast_folder / "advertised-cluster"
    with running(home, brokers=1, broker_ports=[port], broker_properties=properties) as cluster:
        yield cluster


@pytest.fixture
def live(cluster: LocalCluster, client_port: int, workspace: Workspace) -> Workspace:
    workspace.cluster = {**cluster_spec(cluster), "kafka": {"bootstrapServers": f"127.0.0.1:{client_port}"}}
    return workspace


@pytest.fixture
def quick() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < FEW_S


def init(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.run(["init", "--name", "prod", "--owner", "me", *words]) == 1
    return capsys.readouterr().err


@pytest.mark.usefixtures("quick")
def test_apply_names_the_address_before_it_takes_the_lease(live: Workspace, cluster: LocalCluster) -> None:
    live.topic("far", replicationFactor=1)
    live.plan()

    ended = live.apply()

    assert (ended.status, SENTENCE in ended.err) == (1, True), ended.err
    with zookeeper(cluster) as client:
        assert not client.exists("/topicops")
        assert not client.exists("/brokers/topics/far")


@pytest.mark.usefixtures("quick")
def test_doctor_names_the_address(live: Workspace) -> None:
    ended = live.run("doctor", "--environment", "local")

    assert (ended.status, SENTENCE in ended.out) == (1, True), ended.out


@pytest.mark.usefixtures("live", "quick")
@pytest.mark.parametrize("with_zookeeper", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_init_names_the_address(
    cluster: LocalCluster, client_port: int, capsys: pytest.CaptureFixture[str], *, with_zookeeper: bool
) -> None:
    more = ["--zookeeper", str(cluster.zookeeper_hosts)] if with_zookeeper else []

    assert SENTENCE in init(capsys, "--bootstrap-servers", f"127.0.0.1:{client_port}", *more)


@pytest.mark.usefixtures("live", "quick")
def test_a_port_of_zookeeper_where_a_broker_was_meant_is_doubted(
    cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"127.0.0.1:{cluster.zookeeper_port}"

    said = init(capsys, "--bootstrap-servers", place)

    assert f"{place}: it takes connections: " in said
    assert "Or is this the port of another server?" in said


@pytest.mark.usefixtures("live", "impatient")
def test_a_port_of_a_broker_where_zookeeper_was_meant_is_doubted(
    cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    place = cluster.bootstrap_servers

    said = init(capsys, "--zookeeper", f"{place}/kafka")

    assert f"{place}: it closes the connection without an answer" in said
    assert "Or is this the port of another server?" in said
