"""A cluster on its way from ZooKeeper to KRaft, with a real controller: ZooKeeper is a copy, the brokers answer."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fixtures.workspace import Workspace
from topicops.edges.java import find_java
from topicops.edges.local import server_files
from topicops.edges.local.cluster import LocalCluster
from topicops.edges.local.jars import kafka_jars
from topicops.edges.processes import ProcessMark, free_port, spawn, stop
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.model.errors import UnsupportedTargetError

CONTROLLER = 3000
HAND_OVER_S = 60.0


@pytest.fixture(scope="module")
def migrating(fast_folder: Path) -> Iterator[LocalCluster]:
    """One broker that is ready to migrate, and a KRaft controller that has taken it over."""
    port, folder = free_port(), fast_folder / "migrating-cluster"
    both = {
        "zookeeper.metadata.migration.enable": "true",
        "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    try:
        cluster = LocalCluster.up(folder, brokers=1, broker_properties=both)
        controller = start_controller(folder / "controller", cluster, port, both)
        try:
            wait_for_hand_over(cluster)
            yield cluster
        finally:
            stop([controller], grace_s=0)
    finally:
        if found := LocalCluster.find(folder):
            found.down(now=True)


def start_controller(folder: Path, cluster: LocalCluster, port: int, properties: Mapping[str, str]) -> ProcessMark:
    folder.mkdir()
    java = find_java()
    class_path, file, log4j = kafka_jars(), folder / "controller.properties", folder / "log4j.properties"
    own = {
        "process.roles": "controller",
        "node.id": str(CONTROLLER),
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "zookeeper.connect": cluster.zookeeper_hosts,
        "log.dirs": str(folder / "data"),
    }
    file.write_text(server_files.properties_text({**properties, **own}), encoding="utf-8")
    log4j.write_text(server_files.LOG4J, encoding="utf-8")
    prepare = server_files.format_command(java, class_path, file, cluster_id=cluster.cluster_id)
    subprocess.run(prepare, check=True, capture_output=True)
    command = server_files.broker_command(java, class_path, file, heap_mb=192, log4j=log4j)
    return spawn(command, log=folder / "controller.log", folder=folder, environment=os.environ)


def wait_for_hand_over(cluster: LocalCluster) -> None:
    deadline = time.monotonic() + HAND_OVER_S
    while time.monotonic() < deadline:
        try:
            with ZooKeeperReader(cluster.zookeeper_hosts) as reader:
                reader.snapshot()
        except UnsupportedTargetError:
            return
        time.sleep(0.2)
    raise AssertionError("the controller has not taken the cluster over")


@pytest.fixture
def live(migrating: LocalCluster, workspace: Workspace) -> Workspace:
    workspace.cluster = {
        "class": "sandbox",
        "id": migrating.cluster_id,
        "zookeeper": {"hosts": migrating.zookeeper_hosts},
        "kafka": {"bootstrapServers": migrating.bootstrap_servers},
    }
    return workspace


def test_zookeeper_as_the_source_is_refused(live: Workspace) -> None:
    live.topic("moved", replicationFactor=1)

    refused = live.plan()

    assert refused.status == 8, refused.out + refused.err
    assert "TOP801" in refused.err
    assert "source: kafka" in refused.err


def test_a_migration_that_has_begun_is_no_finding(live: Workspace) -> None:
    ended = live.run("doctor", "--for-kraft", "--environment", "local")

    assert (ended.status, ended.err) == (0, "")
    assert "the migration has begun: a KRaft controller rules" in ended.out


def test_the_brokers_as_the_source_are_planned_for_applied_to_and_verified(live: Workspace) -> None:
    live.cluster |= {"source": "kafka", "lease": "file"}
    live.topic("moved", replicationFactor=1)

    planned = live.plan()
    applied = live.apply()

    assert "1 to create" in planned.out, planned.err
    assert applied.status == 0, applied.out + applied.err
    assert "Applied and verified: 1 done." in applied.out
