"""A cluster with ZooKeeper goes to KRaft and on to the newest Kafka; the same specs plan to nothing all the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fixtures.live import cluster_spec, spec_by_brokers
from fixtures.migration import (
    broker_without_zookeeper,
    controller_settings,
    ready_brokers,
    start_controller,
    start_server,
    wait_for_brokers,
    wait_for_hand_over,
)
from fixtures.summaries import UPGRADE
from fixtures.workspace import Workspace
from topicops.model.release import NEWEST
from topicops_local.cluster import LocalCluster
from topicops_local.jars import pinned_versions, usual_version
from topicops_local.processes import ProcessMark, free_port, stop

TOPICS = {
    "plain": {"partitions": 6},
    "tuned": {"partitions": 3, "configs": {"retention.ms": "7d", "segment.bytes": "64MiB", "compression.type": "zstd"}},
    "compacted": {"partitions": 2, "keyed": True, "configs": {"cleanup.policy": "compact", "min.insync.replicas": 2}},
    "small": {"partitions": 1, "replicationFactor": 2},
}
GRACE_S = 30.0
ELECTION_S = 2.0
"""A controller that starts is elected by then; brokers answer as before while it is away, so none of them tells."""


class Servers:
    """A cluster that leaves ZooKeeper, server by server."""

    def __init__(self, home: Path) -> None:
        self.home, self.port = home, free_port()
        self.running: dict[str, ProcessMark] = {}
        self.cluster = LocalCluster.up(home, broker_properties=ready_brokers(self.port))

    @property
    def controller(self) -> Path:
        return self.home / "controller"

    def migrate(self) -> None:
        """Let a controller take over, and start the brokers again without ZooKeeper; then the controller."""
        self.running["controller"] = start_controller(self.controller, self.cluster, self.port)
        wait_for_hand_over(self.cluster)
        for broker in self.cluster.broker_ports:
            self.cluster.stop_broker(broker)
            self._start_broker(broker, usual_version())
        self._start_controller(usual_version())
        self.cluster.stop_zookeeper()

    def upgrade(self, kafka: str) -> None:
        """The controller first, as Kafka's documentation says, then one broker after the other."""
        self._start_controller(kafka)
        for broker in self.cluster.broker_ports:
            self._start_broker(broker, kafka)

    def end(self) -> None:
        stop(list(self.running.values()), grace_s=0)
        self.cluster.down(now=True)

    def _start_broker(self, broker: int, kafka: str) -> None:
        role = f"broker-{broker}"
        self._stop(role)
        settings = broker_without_zookeeper(self.cluster, broker, self.port)
        self.running[role] = start_server(self.cluster.folder / role, settings, kafka=kafka)
        ports = self.cluster.broker_ports
        wait_for_brokers(ports.values(), ports)

    def _start_controller(self, kafka: str) -> None:
        self._stop("controller")
        settings = controller_settings(self.controller, self.port, zookeeper=None)
        self.running["controller"] = start_server(self.controller, settings, kafka=kafka)
        time.sleep(ELECTION_S)
        wait_for_brokers(self.cluster.broker_ports.values(), self.cluster.broker_ports)

    def _stop(self, role: str) -> None:
        if role in self.running:
            stop([self.running.pop(role)], grace_s=GRACE_S)


@contextmanager
def started(home: Path) -> Iterator[Servers]:
    servers = None
    try:
        servers = Servers(home)
        yield servers
    finally:
        if servers:
            servers.end()
        elif found := LocalCluster.find(home):
            found.down(now=True)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_same_specs_plan_to_nothing_before_and_after_kraft_and_on_the_newest_kafka(
    fast_folder: Path, workspace: Workspace, record_property: Callable[[str, object], None]
) -> None:
    newest = pinned_versions()[NEWEST]
    seconds = {}
    with started(fast_folder / "to-the-newest") as servers:
        cluster = servers.cluster
        workspace.policy = {"unattended": "destructive"}
        workspace.cluster = cluster_spec(cluster) | {"kafkaVersion": usual_version()}
        for name, spec in TOPICS.items():
            workspace.topic(name, **spec)
        created = [workspace.plan(), workspace.apply()]
        before = workspace.plan()

        begun = time.monotonic()
        servers.migrate()
        seconds["ZooKeeper to KRaft"] = time.monotonic() - begun
        workspace.cluster = {**spec_by_brokers(cluster), "kafkaVersion": usual_version()}
        under_kraft = workspace.plan()

        begun = time.monotonic()
        servers.upgrade(newest)
        seconds[f"{usual_version()} to {newest}"] = time.monotonic() - begun
        workspace.cluster["kafkaVersion"] = str(NEWEST)
        on_newest = workspace.plan()
        workspace.topic("tuned", partitions=4, configs={"retention.ms": "8d"})
        workspace.topic("new", partitions=2)
        workspace.tombstone("small")
        changed = [workspace.plan(), workspace.apply()]

    record_property(UPGRADE, ", ".join(f"{step}: {taken:.0f} s" for step, taken in seconds.items()))
    assert [ended.status for ended in created] == [0, 0], [ended.out + ended.err for ended in created]
    assert "No changes." in before.out, before.out + before.err
    assert "No changes." in under_kraft.out, under_kraft.out + under_kraft.err
    assert "No changes." in on_newest.out, on_newest.out + on_newest.err
    assert [ended.status for ended in changed] == [0, 0], [ended.out + ended.err for ended in changed]
    assert "Applied and verified: 4 done." in changed[-1].out
