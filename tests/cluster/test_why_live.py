"""Troubles, planted on a real cluster: `why` names each, and what it prints to type cures it.

`make test` plants one that takes a second or two; `make soak` plants all, also on old releases with the tools of those.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import ConfigResource, NewTopic

from fixtures.cluster import running
from fixtures.kafka_tool import FLAGS
from fixtures.live import cluster_spec, look, lose, new_admin, remove_topics, until, zookeeper
from fixtures.workspace import Workspace
from topicops.edges.kafka.questions.broker_views import BrokerViews
from topicops.features.shared.java import find_java
from topicops.model.cluster.health import health_of
from topicops.model.ports import BrokerView
from topicops_local.cluster import LocalCluster
from topicops_local.jars import kafka_jars

pytestmark = pytest.mark.cluster
UNKNOWN = 9
"""A broker that never was."""
OLD = "1.0.2"
ELECTS_BY_TOOL = "2.5.1"
"""A release whose ``kafka-leader-election`` is there, and whose ``kafka-reassign-partitions`` is too old for it."""
MAINS: Mapping[str, Mapping[str, str]] = {
    "": {
        "zookeeper-shell.sh": "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka",
        "kafka-configs.sh": "kafka.admin.ConfigCommand",
        "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
        "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    },
    ELECTS_BY_TOOL: {
        "zookeeper-shell.sh": "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka",
        "kafka-configs.sh": "kafka.admin.ConfigCommand",
        "kafka-leader-election.sh": "kafka.admin.LeaderElectionCommand",
    },
    OLD: {
        "zookeeper-shell.sh": "org.apache.zookeeper.ZooKeeperMain",
        "kafka-configs.sh": "kafka.admin.ConfigCommand",
        "kafka-preferred-replica-election.sh": "kafka.admin.PreferredReplicaLeaderElectionCommand",
        "kafka-reassign-partitions.sh": "kafka.admin.ReassignPartitionsCommand",
    },
}
"""What Kafka's scripts start, by release; the newest one stands for a tool that the page says to take from there."""
RELEASES = [pytest.param("", id="usual"), *(pytest.param(v, id=v) for v in (ELECTS_BY_TOOL, OLD))]


@pytest.fixture(scope="module", params=RELEASES)
def kafka(request: pytest.FixtureRequest) -> str:
    """Return the version of the cluster; empty for the usual one."""
    return str(request.param)


@pytest.fixture(scope="module")
def cluster(fast_folder: Path, kafka: str) -> Iterator[LocalCluster]:
    settings = {
        "zookeeper.session.timeout.ms": "18000",
        "replica.lag.time.max.ms": "3000",
        "auto.leader.rebalance.enable": "false",
    }
    with running(fast_folder / f"why{kafka}", broker_properties=settings, kafka=kafka or None) as cluster:
        yield cluster


@pytest.fixture
def asked(workspace: Workspace, cluster: LocalCluster, kafka: str) -> Iterator[Asked]:
    workspace.cluster = {**cluster_spec(cluster), **({"kafkaVersion": kafka.rpartition(".")[0]} if kafka else {})}
    yield Asked(workspace, cluster, kafka)
    for broker in sorted(set(cluster.broker_ports) - set(look(cluster).brokers)):
        cluster.start_broker(broker)


class Asked:
    """A person at a terminal."""

    def __init__(self, workspace: Workspace, cluster: LocalCluster, kafka: str = "") -> None:
        self.workspace, self.cluster, self.kafka = workspace, cluster, kafka
        self.admin = new_admin(cluster.bootstrap_servers)

    def make(self, topic: str, *rows: tuple[int, ...], **configs: str) -> None:
        """With ``_`` for ``.`` in the names of configs; some brokers may be dead."""
        settings = {name.replace("_", "."): value for name, value in configs.items()}
        new = NewTopic(topic, len(rows), replica_assignment=[list(row) for row in rows], config=settings)

        def is_there() -> bool:
            # A client goes on asking the controller that it knows, for a minute at least after another was elected.
            admin = new_admin(self.cluster.bootstrap_servers)
            with suppress(KafkaException, TimeoutError):
                admin.create_topics([new], operation_timeout=3)[topic].result(30)
            return topic in look(self.cluster).topics

        until(is_there)

    def why(self, topic: str, cause: str) -> dict[str, dict[str, Any]]:
        """Return the causes by id, once ``cause`` is among them and the text has each of them too.

        Right after a trouble was planted another may be there for a moment, as a broker that has not heard of it.
        """
        causes: dict[str, dict[str, Any]] = {}

        def is_told() -> bool:
            nonlocal causes
            causes = self.causes(topic)
            shown = self.workspace.run("why", topic, "--environment", "local")
            text = shown.out + shown.err
            return cause in causes and all(each["message"].split(" since ")[0] in text for each in causes.values())

        until(is_told)
        return causes

    def causes(self, topic: str) -> dict[str, dict[str, Any]]:
        """By id, as they are at this moment."""
        found = self.workspace.run("why", topic, "--environment", "local", "--format", "json")
        assert found.status == 0, found.err
        return {cause["id"]: cause for cause in json.loads(found.out)["causes"]}

    def type(self, commands: list[str]) -> None:
        """As printed; Kafka's scripts are stood for by what they start."""
        for command in commands:
            words = shlex.split(command)
            if words[0].endswith(".sh"):
                release = self.kafka if words[0] in MAINS[self.kafka] else ""
                jars = ":".join(map(str, kafka_jars(release or None)))
                java = [str(find_java()), *FLAGS, "-cp", jars, MAINS[release][words[0]]]
                words = [*java, *(["-server"] if words[0].startswith("zookeeper") else []), *words[1:]]
                ended = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
            else:
                ended = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
            assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"

    def write_record(self, topic: str, *, leader: int) -> None:
        producer = Producer({"bootstrap.servers": f"localhost:{self.cluster.broker_ports[leader]}", "acks": 1})
        producer.produce(topic, b"record", partition=0)
        assert producer.flush(20) == 0

    def records(self, topic: str) -> int:
        """Return how many partition 0 holds."""
        consumer = Consumer({"bootstrap.servers": self.cluster.bootstrap_servers, "group.id": "why"})
        with closing(consumer):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)
        return high - low

    def write(self, path: str, value: Mapping[str, object]) -> None:
        """In one request: the controller reads some znodes only once, when they are created."""
        data = json.dumps(value).encode()
        with zookeeper(self.cluster) as client:
            if client.exists(path):
                client.set(path, data)
            else:
                client.create(path, data)

    def not_controller(self) -> list[int]:
        seen = look(self.cluster)
        return [broker for broker in sorted(seen.brokers, reverse=True) if broker != seen.controller_id]

    def is_whole(self, topic: str) -> bool:
        seen = look(self.cluster)
        live = seen.topics.get(topic)
        if live is None:
            return False
        each = (health_of(live, p, seen.brokers) for p in live.assignment)
        return not any(health.is_offline or set(health.isr) != set(health.replicas) for health in each)

    def moves(self, topic: str) -> bool:
        seen = look(self.cluster)
        return topic in seen.reassigning or seen.topics[topic].is_reassigning

    def wait_until_the_controller_has_read(self, topic: str) -> None:
        """Where topics have ids, it gives one; before, nothing shows it for a topic without live replicas."""
        if self.kafka:
            time.sleep(3)
        else:
            until(lambda: look(self.cluster).topics[topic].topic_id is not None)

    def is_gone(self, topic: str) -> bool:
        seen = look(self.cluster)
        return topic not in seen.topics and topic not in seen.deleting and topic not in seen.orphan_configs

    def retention(self, topic: str) -> str:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        found = self.admin.describe_configs([resource])[resource].result(20)
        return str(found["retention.ms"].value)


@pytest.mark.soak
def test_1_a_deletion_that_waits_for_a_broker_goes_on_when_that_is_back(asked: Asked) -> None:
    broker, other = asked.not_controller()
    asked.make("stuck", (other, broker), (broker, other))
    lose(asked.cluster, broker)
    asked.admin.delete_topics(["stuck"])["stuck"].result(30)

    cause = asked.why("stuck", "deletion-waits-for-broker")["deletion-waits-for-broker"]

    assert f"partitions 0, 1 have a replica on broker {broker}, which is not registered" in cause["message"]
    assert f"it goes on by itself when broker {broker} is back" in cause["way_out"]
    assert "/admin/delete_topics/stuck" in cause["read_from"]
    asked.cluster.start_broker(broker)
    until(lambda: asked.is_gone("stuck"))


@pytest.mark.soak
def test_2_a_deletion_that_waits_for_a_broker_that_never_was_ends_by_hand(asked: Asked) -> None:
    asked.write("/brokers/topics/odd", {"version": 1, "partitions": {"0": [UNKNOWN]}})
    asked.wait_until_the_controller_has_read("odd")
    asked.write("/admin/delete_topics/odd", {})

    cause = asked.why("odd", "deletion-waits-for-broker")["deletion-waits-for-broker"]

    assert f"partition 0 has a replica on broker {UNKNOWN}" in cause["message"]
    assert len(cause["commands"]) == 4
    asked.write("/config/topics/odd", {"version": 1, "config": {}})
    asked.type(cause["commands"])
    until(lambda: asked.is_gone("odd") and look(asked.cluster).controller_id is not None)
    asked.make("odd", (1, 2))
    until(lambda: asked.is_whole("odd"))


@pytest.mark.soak
def test_3_a_partition_that_waits_for_the_last_of_its_isr_is_led_after_an_unclean_election(asked: Asked) -> None:
    broker, other = asked.not_controller()
    asked.make("thin", (broker, other))
    until(lambda: asked.is_whole("thin"))
    lose(asked.cluster, other)
    until(lambda: set((look(asked.cluster).topics["thin"].states or {})[0].isr) == {broker})
    lose(asked.cluster, broker)
    asked.cluster.start_broker(other)
    until(lambda: (look(asked.cluster).topics["thin"].states or {})[0].leader == -1)

    cause = asked.why("thin", "no-leader")["no-leader"]

    assert f"it waits for broker {broker}, last in the ISR; broker {other} is live, but not in sync" in cause["message"]
    assert f"loses every record that broker {other} did not copy" in cause["caution"]
    asked.type(cause["commands"])
    until(lambda: (look(asked.cluster).topics["thin"].states or {})[0].leader == other)


@pytest.mark.soak
def test_4_a_partition_that_never_had_a_leader_is_led_when_one_of_its_brokers_registers(asked: Asked) -> None:
    broker, _ = asked.not_controller()
    lose(asked.cluster, broker)
    asked.make("new", (broker,))

    cause = asked.why("new", "no-state")["no-state"]

    assert (
        cause["message"] == f"partition 0 never had a leader: none of the replicas, on broker {broker}, is registered"
    )
    asked.cluster.start_broker(broker)
    # A broker that has just started learns of the topic a moment after the znodes have its leader.
    until(lambda: asked.is_whole("new") and asked.causes("new") == {})


@pytest.mark.soak
def test_5_a_follower_that_hangs_is_named_and_joins_again(asked: Asked) -> None:
    broker, other = asked.not_controller()
    asked.make("slow", (other, broker), min_insync_replicas="2")
    until(lambda: asked.is_whole("slow"))
    asked.cluster.pause(broker)
    try:
        # A follower that has all records stays in sync without a word, until its session ends.
        asked.write_record("slow", leader=other)
        until(lambda: set((look(asked.cluster).topics["slow"].states or {})[0].isr) == {other})
        causes = asked.why("slow", "below-min-isr")
    finally:
        asked.cluster.resume(broker)

    assert f"broker {broker} is not in the ISR of partition 0 since" in causes["not-in-sync"]["message"]
    assert "it is registered, and gives no answer" in causes["not-in-sync"]["message"]
    assert "producers with acks=all fail on partition 0: 1 of 2" in causes["below-min-isr"]["message"]
    until(lambda: asked.is_whole("slow"))


@pytest.mark.soak
def test_6_a_reassignment_to_a_broker_that_is_not_there_is_taken_back(asked: Asked) -> None:
    broker, other = asked.not_controller()
    asked.make("moving", (other,))
    until(lambda: asked.is_whole("moving"))
    row = {"topic": "moving", "partition": 0, "replicas": [other, UNKNOWN]}
    asked.write("/admin/reassign_partitions", {"version": 1, "partitions": [row]})
    until(lambda: asked.moves("moving"))

    cause = asked.why("moving", "move-waits-for-broker")["move-waits-for-broker"]

    assert f"cannot end: broker {UNKNOWN} is not registered, and until it ends, brokers refuse" in cause["message"]
    asked.type(cause["commands"])
    until(lambda: not asked.moves("moving") and asked.is_whole("moving"))
    until(lambda: asked.causes("moving") == {})
    assert broker != other


@pytest.mark.soak
def test_7_a_config_that_was_written_by_hand_is_in_force_once_the_brokers_are_told(asked: Asked) -> None:
    broker, other = asked.not_controller()
    asked.make("quiet", (other, broker))
    asked.write("/config/topics/quiet", {"version": 1, "config": {"retention.ms": "7200000"}})

    cause = asked.why("quiet", "config-not-in-force")["config-not-in-force"]

    assert "nothing in /config/changes names the topic, so brokers behave as before" in cause["message"]
    asked.type(cause["commands"])
    until(lambda: asked.causes("quiet") == {})
    assert asked.retention("quiet") == "7200000"


@pytest.mark.soak
def test_8_a_value_that_brokers_cannot_read_is_taken_out(asked: Asked) -> None:
    broker, other = asked.not_controller()
    asked.make("spoilt", (other, broker))
    config = {"retention.ms": "soon", "max.message.bytes": "2000000"}
    asked.write("/config/topics/spoilt", {"version": 1, "config": config})

    cause = asked.why("spoilt", "config-invalid")["config-invalid"]

    assert cause["message"].startswith("retention.ms: ")
    asked.type(cause["commands"])
    until(lambda: asked.causes("spoilt") == {})
    assert asked.retention("spoilt") != "soon"
    assert dict(look(asked.cluster).topics["spoilt"].overrides) == {"max.message.bytes": "2000000"}


def test_without_a_controller_a_new_topic_waits(local_cluster: LocalCluster, workspace: Workspace) -> None:
    workspace.cluster = cluster_spec(local_cluster)
    without_a_controller(Asked(workspace, local_cluster))
    remove_topics(local_cluster, ["waiting"])


@pytest.mark.soak
def test_9_without_a_controller_a_new_topic_waits_until_one_is_elected(asked: Asked) -> None:
    without_a_controller(asked)


def without_a_controller(asked: Asked) -> None:
    with zookeeper(asked.cluster) as client:
        old = client.get("/controller")[0]
        while True:  # a broker may be faster
            client.delete("/controller")
            with suppress(Exception):
                client.create("/controller", json.dumps({**json.loads(old), "brokerid": 77}).encode())
                break
    asked.write("/brokers/topics/waiting", {"version": 1, "partitions": {"0": [1, 2]}})

    causes: dict[str, dict[str, Any]] = {}

    def has_no_state() -> bool:
        nonlocal causes
        causes = asked.why("waiting", "no-controller")
        if "no-state" not in causes:  # written by a broker that was the controller for a moment
            with zookeeper(asked.cluster) as client:
                client.delete("/brokers/topics/waiting/partitions", recursive=True)
        return "no-state" in causes

    until(has_no_state)
    assert causes["no-controller"]["message"].endswith("/controller names broker 77, which is not registered")
    assert "no controller has written the first state" in causes["no-state"]["message"]
    asked.type(causes["no-controller"]["commands"])
    until(lambda: asked.is_whole("waiting"))


@pytest.mark.soak
def test_10_a_topic_whose_znode_was_removed_by_hand_is_served_until_its_brokers_restart(asked: Asked) -> None:
    asked.make("ghost", (1, 2, 3))
    until(lambda: asked.is_whole("ghost"))
    with zookeeper(asked.cluster) as client:
        client.delete("/brokers/topics/ghost", recursive=True)
        client.delete("/config/topics/ghost")

    cause = asked.why("ghost", "znode-removed")["znode-removed"]

    assert cause["message"].startswith("brokers 1, 2, 3 still tell clients of it, and /brokers/topics/ghost does not")
    others = asked.not_controller()
    # The controller first: the one of 1.0 gives up on the end of a broker that leads a topic without a znode.
    for broker in sorted({1, 2, 3}, key=lambda each: each in others):
        asked.cluster.stop_broker(broker)
        asked.cluster.start_broker(broker)
    until(lambda: not brokers_with(asked.cluster, "ghost"))
    assert list(asked.why("ghost", "no-topic")) == ["no-topic"]


@pytest.mark.soak
def test_11_a_topic_whose_znode_was_removed_by_hand_is_whole_again_with_its_records(asked: Asked) -> None:
    broker, other = asked.not_controller()
    asked.make("kept", (broker, other))
    until(lambda: asked.is_whole("kept"))
    asked.write_record("kept", leader=broker)
    with zookeeper(asked.cluster) as client:
        client.delete("/brokers/topics/kept", recursive=True)
    until(lambda: "kept" not in look(asked.cluster).topics)

    cause = asked.why("kept", "znode-removed")["znode-removed"]

    asked.type(cause["commands"])
    for each in (1, 2, 3):  # on Kafka 1.0.2 the ISR may be complete only after the last
        asked.cluster.stop_broker(each)
        asked.cluster.start_broker(each)
    until(lambda: asked.is_whole("kept"))
    until(lambda: asked.causes("kept").keys() <= {"not-preferred"})
    assert asked.records("kept") == 1


@pytest.mark.soak
def test_12_a_topic_whose_znode_lost_its_id_is_served_by_the_next_controller(asked: Asked) -> None:
    if asked.kafka:
        pytest.skip("topics have ids since Kafka 2.8")
    broker, other = asked.not_controller()
    asked.make("named", (broker, other))
    until(lambda: asked.is_whole("named"))
    asked.write_record("named", leader=broker)
    with zookeeper(asked.cluster) as client:
        znode = json.loads(client.get("/brokers/topics/named")[0])
        client.set("/brokers/topics/named", json.dumps({**znode, "topic_id": "AAAAAAAAAAAAAAAAAAAA_w"}).encode())

    cause = asked.why("named", "other-topic-id")["other-topic-id"]

    assert f"id {znode['topic_id']}, its znode has AAAAAAAAAAAAAAAAAAAA_w" in cause["message"]
    asked.type(cause["commands"])
    until(lambda: look(asked.cluster).controller_id is not None and asked.causes("named") == {})
    assert look(asked.cluster).topics["named"].topic_id == znode["topic_id"]
    asked.write_record("named", leader=broker)
    assert asked.records("named") == 2


@pytest.mark.soak
def test_13_leaders_that_an_election_moved_are_moved_back(asked: Asked) -> None:
    broker, other = asked.not_controller()
    asked.make("moved", (broker, other), (broker, other))
    until(lambda: asked.is_whole("moved"))
    lose(asked.cluster, broker)
    asked.cluster.start_broker(broker)
    until(lambda: asked.is_whole("moved"))

    cause = asked.why("moved", "not-preferred")["not-preferred"]

    asked.type(cause["commands"])
    until(lambda: {state.leader for state in (look(asked.cluster).topics["moved"].states or {}).values()} == {broker})


def brokers_with(cluster: LocalCluster, topic: str) -> set[int]:
    with closing(BrokerViews({"bootstrap.servers": cluster.bootstrap_servers})) as views:
        found = views.views(sorted(cluster.broker_ports), [topic])
    return {broker for broker, view in found.items() if not isinstance(view, BrokerView) or topic in view.topics}
