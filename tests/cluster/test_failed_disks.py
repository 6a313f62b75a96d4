"""Brokers with two log directories, of which one fails: it is named, and nothing is sent that waits for it."""

from __future__ import annotations

import json
import re
import shutil
import time
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import NewTopic

from fixtures.live import cluster_spec, look, new_admin, spec_by_brokers, until
from fixtures.workspace import Ended, Workspace
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.model.cluster.snapshot import LogDirectories
from topicops_local.cluster import LocalCluster

pytestmark = pytest.mark.soak
KINDS = [pytest.param("", id="ZooKeeper"), pytest.param("3.9", id="KRaft 3.9"), pytest.param("4.4", id="KRaft 4.4")]
BROKER = 1


class HalfDead:
    """A cluster with topics, and what a person does there while a disk of broker 1 fails."""

    def __init__(self, cluster: LocalCluster, workspace: Workspace) -> None:
        self.cluster, self.workspace = cluster, workspace
        self.admin = new_admin(cluster.bootstrap_servers)
        self.disk = cluster.folder / f"broker-{BROKER}/spare"

    def make(self, topic: str, *rows: tuple[int, ...]) -> None:
        new = NewTopic(topic, len(rows), replica_assignment=[list(row) for row in rows])
        self.admin.create_topics([new])[topic].result(30)

    def fail_disk(self) -> None:
        """A file in its place: the broker notices when it makes a log there.

        A create is answered before the brokers make the logs; a disk without a log of the topic takes no replica along.
        """
        until(lambda: all(any(self.disk.parent.glob(f"*/orders-{partition}")) for partition in range(4)))
        shutil.move(self.disk, self.disk.with_name("away"))
        self.disk.write_text("")
        self.make("noticed", *[(BROKER,)] * 4)
        until(lambda: self.told().failed == (str(self.disk),))

    def told(self) -> LogDirectories:
        """Return the broker's answer, once it gives one: while a disk fails it may be silent for seconds."""
        deadline = time.monotonic() + 60
        while not isinstance(found := self.answer(), LogDirectories):
            assert time.monotonic() < deadline, found
            time.sleep(0.2)
        return found

    def answer(self) -> LogDirectories | str | None:
        with closing(BrokerQuestions({"bootstrap.servers": self.cluster.bootstrap_servers})) as questions:
            return questions.log_directories({"orders": range(4)}).get(BROKER)

    def run(self, *words: str) -> Ended:
        return self.workspace.run(*words, "--environment", "local")

    def waits_for(self, topic: str, cause: str) -> dict[str, str]:
        """The causes, once this one is among them."""
        deadline = time.monotonic() + 60
        while cause not in (found := self.causes(topic)):
            assert time.monotonic() < deadline, found
            time.sleep(0.2)
        return found

    def causes(self, topic: str) -> dict[str, str]:
        found = self.run("why", topic, "--format", "json")
        return {cause["id"]: cause["message"] + cause["way_out"] for cause in json.loads(found.out)["causes"]}


@pytest.fixture(params=KINDS)
def half_dead(cluster_home: Path, workspace: Workspace, request: pytest.FixtureRequest) -> HalfDead:
    settings = {"log.dirs": "data,spare", "replica.lag.time.max.ms": "3000", "num.partitions": "1"}
    kafka = str(request.param)
    cluster = LocalCluster.up(cluster_home, broker_properties=settings, kraft=bool(kafka), kafka=kafka or None)
    workspace.cluster = {**spec_by_brokers(cluster), "kafkaVersion": kafka} if kafka else cluster_spec(cluster)
    return HalfDead(cluster, workspace)


def test_a_failed_disk_of_a_live_broker(half_dead: HalfDead) -> None:
    live, disk = half_dead.workspace, half_dead.disk
    half_dead.make("orders", *[(1, 2, 3)] * 4)
    half_dead.make("elsewhere", (2, 3), (3, 2))
    live.tombstone("orders")
    early = live.plan()
    fingerprint = re.findall(r"--approve (\w+)", early.out + early.err)[0]

    half_dead.fail_disk()

    # doctor, why
    doctor = half_dead.run("doctor")
    assert f"neither served nor deleted: broker {BROKER}: {disk}" in doctor.out
    held = half_dead.told().held["orders"]
    assert 0 < len(held) < 4
    causes = half_dead.waits_for("orders", "failed-log-directory")
    assert f"its log directory {disk} has failed" in causes["failed-log-directory"]
    assert "catch" not in "".join(causes.values())

    # a plan from before, and a new one
    refused = live.apply("--approve", fingerprint)
    assert "broker 1 is on a failed log directory" in refused.out + refused.err
    assert "TOP435" in refused.out + refused.err
    live.tombstone("elsewhere")
    live.topic("pairs", partitions=6, replicationFactor=2)
    live.topic("triples", partitions=1, replicationFactor=3)
    plan = live.plan()
    found = json.loads((live.folder / "plan.json").read_text())
    blocked = {entry["topic"]: entry["codes"] for entry in found["blocked"]}
    assert blocked == {"orders": ["TOP435"], "triples": ["TOP420"]}, plan.out
    applied = live.apply("--approve", found["fingerprint"])
    assert applied.status == 0, applied.out + applied.err
    pairs = half_dead.admin.describe_topics(TopicCollection(["pairs"]))["pairs"].result(10)
    assert {node.id for partition in pairs.partitions for node in partition.replicas} == {2, 3}
    assert "orders" in new_admin(half_dead.cluster.bootstrap_servers).list_topics(timeout=10).topics


def test_a_delete_that_somebody_else_sent_waits_for_the_disk_and_ends_with_a_new_one(
    cluster_home: Path, workspace: Workspace
) -> None:
    settings = {"log.dirs": "data,spare", "replica.lag.time.max.ms": "3000"}
    cluster = LocalCluster.up(cluster_home, broker_properties=settings)
    workspace.cluster = cluster_spec(cluster)
    half_dead = HalfDead(cluster, workspace)
    half_dead.make("orders", *[(1, 2, 3)] * 4)
    half_dead.fail_disk()
    until(
        lambda: any(BROKER not in state.isr for state in (look(cluster).topics["orders"].states or {}).values()),
        timeout_s=150,
    )

    half_dead.admin.delete_topics(["orders"], operation_timeout=1)["orders"]
    until(lambda: "orders" in look(cluster).deleting)
    causes = half_dead.waits_for("orders", "deletion-waits-for-disk")
    assert "ends within seconds" not in "".join(causes.values())
    checked = workspace.run("verify", "--environment", "local")
    assert f"the log directory {half_dead.disk} of broker 1 has failed" in checked.out

    half_dead.disk.unlink()
    cluster.kill(BROKER)
    cluster.start_broker(BROKER)
    until(lambda: "orders" not in look(cluster).topics)
