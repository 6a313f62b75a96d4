"""A cluster on its way from ZooKeeper to KRaft, with a real controller: ZooKeeper is a copy, the brokers answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.cluster import running
from fixtures.migration import ready_brokers, start_controller, wait_for_hand_over
from fixtures.workspace import Workspace
from topicops_local.cluster import LocalCluster
from topicops_local.processes import free_port, stop


@pytest.fixture(scope="module")
def migrating(fast_folder: Path) -> Iterator[LocalCluster]:
    """One broker that is ready to migrate, and a KRaft controller that has taken it over."""
    port, folder = free_port(), fast_folder / "migrating-cluster"
    with running(folder, brokers=1, broker_properties=ready_brokers(port)) as cluster:
        controller = start_controller(folder / "controller", cluster, port)
        try:
            wait_for_hand_over(cluster)
            yield cluster
        finally:
            stop([controller], grace_s=0)


@pytest.fixture
def live(migrating: LocalCluster, workspace: Workspace) -> Workspace:
    workspace.cluster = {
        "class": "sandbox",
        "id": migrating.cluster_id,
        "zookeeper": {"hosts": migrating.zookeeper_hosts},
        "kafka": {"bootstrapServers": migrating.bootstrap_servers},
    }
    return workspace


@pytest.mark.soak
def test_zookeeper_as_the_source_is_refused(live: Workspace) -> None:
    live.topic("moved", replicationFactor=1)

    refused = live.plan()

    assert refused.status == 8, refused.out + refused.err
    assert "TOP801" in refused.err
    assert "source: kafka" in refused.err


def test_the_brokers_as_the_source_are_planned_for_applied_to_and_verified(live: Workspace) -> None:
    live.cluster |= {"source": "kafka", "lease": "file"}
    live.topic("moved", replicationFactor=1)

    planned = live.plan()
    applied = live.apply()

    assert "1 to create" in planned.out, planned.err
    assert applied.status == 0, applied.out + applied.err
    assert "Applied and verified: 1 done." in applied.out
