"""Deletes on real brokers: of topics that clients use, and of topics without an id."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from fixtures.cluster import running
from fixtures.group_members import consumer
from fixtures.live import cluster_spec, create_topics, look, new_admin, remove_topics, until
from fixtures.workspace import Workspace
from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.clients.settings import Deadline
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.edges.kafka.questions.consumer_groups import ConsumerGroups
from topicops.model.errors import ClusterUnreachableError
from topicops_local.cluster import LocalCluster

DAY_MS = 86_400_000
MANY = 10_000
OLD_PROTOCOL = {"inter.broker.protocol.version": "2.7", "log.message.format.version": "2.7"}
COMPACTS = {"log.cleanup.policy": "compact"}


@pytest.fixture
def live(workspace: Workspace, local_cluster: LocalCluster) -> Iterator[Workspace]:
    workspace.cluster = cluster_spec(local_cluster)
    yield workspace
    clear(local_cluster, "rests.")


@pytest.fixture(scope="module")
def broker_without_ids(fast_folder: Path) -> Iterator[LocalCluster]:
    """One broker that gives topics no ids, and compacts by default."""
    with running(fast_folder / "without-ids", brokers=1, broker_properties={**OLD_PROTOCOL, **COMPACTS}) as cluster:
        yield cluster


@pytest.fixture
def without_ids(workspace: Workspace, broker_without_ids: LocalCluster) -> Workspace:
    workspace.cluster = cluster_spec(broker_without_ids)
    return workspace


def clear(cluster: LocalCluster, prefix: str) -> None:
    remove_topics(cluster, [name for name in look(cluster).topics if name.startswith(prefix)])


def make(cluster: LocalCluster, *names: str) -> None:
    create_topics(cluster.bootstrap_servers, *[NewTopic(name, 1, 1) for name in names])


def write(cluster: LocalCluster, topic: str, *, age_ms: int = 0) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce(topic, b"value", key=b"key", timestamp=int(time.time() * 1000) - age_ms)
    assert producer.flush(30) == 0


def commit(cluster: LocalCluster, group: str, topic: str, offset: int) -> None:
    admin = new_admin(cluster.bootstrap_servers)
    at = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])

    def is_committed() -> bool:
        """The first commit on a cluster may find no coordinator, or wait for one for ever: its topic is made for it."""
        try:
            found = admin.alter_consumer_group_offsets([at], request_timeout=10)[group].result(60)
        except KafkaException:
            return False
        return not found.topic_partitions[0].error

    until(is_committed)


def test_a_topic_that_its_producer_wrote_to_seconds_ago_is_not_deleted_though_nothing_moves_meanwhile(
    live: Workspace, local_cluster: LocalCluster
) -> None:
    make(local_cluster, "rests.busy", "rests.quiet")
    write(local_cluster, "rests.busy", age_ms=15_000)
    write(local_cluster, "rests.quiet", age_ms=2 * DAY_MS)
    live.tombstone("rests.busy")
    live.tombstone("rests.quiet")
    live.policy = {"restsFor": "0s"}
    live.plan()
    live.policy = {"restsFor": "24h"}

    applied = live.approve()
    planned = live.plan()

    assert applied.status == 6, applied.out + applied.err
    assert "its last record is of 20" in applied.out + applied.err
    assert "TOP409" in applied.out + applied.err
    assert [name for name in look(local_cluster).topics if name.startswith("rests.")] == ["rests.busy"]
    assert "topic.rests.busy is blocked" in planned.out
    assert "TOP409: its last record is of 20" in planned.out


def test_a_plan_shows_the_groups_of_a_topic_with_their_state_and_their_lag(
    live: Workspace, local_cluster: LocalCluster
) -> None:
    make(local_cluster, "rests.read")
    for _ in range(3):
        write(local_cluster, "rests.read", age_ms=2 * DAY_MS)
    commit(local_cluster, "rests-billing", "rests.read", 1)
    live.tombstone("rests.read")

    refused = live.plan()
    live.policy = {"deleteActive": "allow"}
    allowed = live.plan()

    assert "TOP410: consumer groups use it: rests-billing (Empty, lag 2)" in refused.out
    assert "traffic: last record of 20" in allowed.out
    assert "end offsets add up to 3; groups: rests-billing (Empty, lag 2)" in allowed.out


class OldBrokers(BrokerConnections):
    """Connections that know no request of Kafka 3.0."""

    def offers(self, broker: int, request: Any, version: int = 0) -> bool:
        return version == 0


def test_groups_are_read_one_by_one_from_brokers_that_take_one_a_request(local_cluster: LocalCluster) -> None:
    make(local_cluster, "rests.old")
    for group in ("rests-a", "rests-b"):
        commit(local_cluster, group, "rests.old", 7)

    found = {}
    for kind in (BrokerConnections, OldBrokers):
        with closing(kind({"bootstrap.servers": local_cluster.bootstrap_servers})) as connections:
            found[kind] = ConsumerGroups(connections, Deadline(20.0)).on(["rests.old"])["rests.old"]
    clear(local_cluster, "rests.")

    assert found[OldBrokers] == found[BrokerConnections]
    assert {group: use.committed for group, use in found[OldBrokers].items()} == {"rests-a": {0: 7}, "rests-b": {0: 7}}


@pytest.mark.soak
def test_no_topic_goes_while_a_group_may_be_hidden_because_its_coordinator_is_away(
    workspace: Workspace, fast_folder: Path
) -> None:
    on_both = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "8"}
    cluster = LocalCluster.up(fast_folder / "hidden-groups", brokers=2, broker_properties=on_both)
    try:
        workspace.cluster = cluster_spec(cluster)
        create_topics(cluster.bootstrap_servers, NewTopic("hidden.read", 1, replica_assignment=[[1]]))
        with consumer(cluster.bootstrap_servers, "hidden", "hidden.read"):
            pass  # now the brokers have the topic of commits
        workspace.policy = {"deleteActive": "allow", "unattended": "destructive"}
        workspace.tombstone("hidden.read")
        workspace.plan()
        cluster.stop_broker(2)
        with closing(BrokerConnections({"bootstrap.servers": cluster.bootstrap_servers})) as connections:
            until(lambda: [*connections.brokers()] == [1])
            with pytest.raises(ClusterUnreachableError, match="of __consumer_offsets has no leader"):
                ConsumerGroups(connections, Deadline(10.0)).on(["hidden.read"])
        workspace.policy = {"deleteActive": "refuse", "unattended": "destructive"}
        applied = workspace.apply()
        planned = workspace.plan()
        assert "hidden.read" in look(cluster).topics, applied.out + applied.err
        assert "groups could not be read" in planned.out
    finally:
        cluster.down(now=True)


@pytest.mark.soak
def test_ten_thousand_groups_are_read_in_seconds(local_cluster: LocalCluster) -> None:
    make(local_cluster, "rests.many")
    commit(local_cluster, "rests-0", "rests.many", 0)
    admin = new_admin(local_cluster.bootstrap_servers)
    for start in range(0, MANY, 500):
        commits = [
            admin.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(f"rests-{n}", [TopicPartition("rests.many", 0, 0)])]
            )[f"rests-{n}"]
            for n in range(start, start + 500)
        ]
        for committed in commits:
            committed.result(60)

    with closing(BrokerQuestions({"bootstrap.servers": local_cluster.bootstrap_servers}, timeout_s=15.0)) as questions:
        started = time.monotonic()
        activity = questions.activity(["rests.many"])["rests.many"]
        seconds = time.monotonic() - started
    clear(local_cluster, "rests.")

    assert len(activity.groups or ()) == MANY
    assert seconds < 6, f"{seconds:.1f} s"


@pytest.mark.soak
def test_a_topic_without_an_id_is_deleted_by_name_only_where_the_policy_allows_it(
    without_ids: Workspace, broker_without_ids: LocalCluster
) -> None:
    make(broker_without_ids, "old.topic")
    without_ids.tombstone("old.topic")
    without_ids.policy = {"deleteByName": "refuse"}
    refused = without_ids.plan()
    without_ids.policy = {"deleteByName": "allow"}
    noted = without_ids.plan()
    without_ids.policy = {"deleteByName": "refuse"}
    stopped = without_ids.approve()
    there = sorted(look(broker_without_ids).topics)
    without_ids.policy = {"deleteByName": "allow"}
    by_brokers = {**without_ids.cluster, "source": "kafka", "lease": "none"}
    without_ids.cluster, by_zookeeper = by_brokers, without_ids.cluster
    unread = without_ids.plan()
    without_ids.cluster = by_zookeeper
    deleted = without_ids.approve()

    assert unread.status == 1
    assert "(TOP809): raise inter.broker.protocol.version to 2.8, or set source: zookeeper" in unread.err
    assert "topic.old.topic is blocked" in refused.out
    assert "TOP429: the topic has no topic id, so Kafka deletes it by name" in refused.out
    assert "risk: destructive, TOP429 deleted by name" in noted.out
    assert "note: the topic has no topic id, so Kafka deletes it by name" in noted.out
    assert (stopped.status, there) == (4, ["old.topic"]), stopped.out + stopped.err
    assert "TOP429" in stopped.out + stopped.err
    assert deleted.status == 0, deleted.out + deleted.err
    assert not look(broker_without_ids).topics


@pytest.mark.soak
def test_the_risk_of_an_expansion_is_the_same_beside_a_change_of_another_topics_configs(
    without_ids: Workspace, broker_without_ids: LocalCluster
) -> None:
    make(broker_without_ids, "grows", "slow")
    without_ids.topic("grows", partitions=2, replicationFactor=1)

    risks = []
    for _ in ("alone", "beside another"):
        without_ids.plan()
        changes = json.loads((without_ids.folder / "plan.json").read_text())["changes"]
        risks += [(change["risk"], change["codes"]) for change in changes if change["topic"] == "grows"]
        without_ids.topic("slow", replicationFactor=1, configs={"retention.ms": "30d"})
    clear(broker_without_ids, "")

    assert risks == [("risky", ["TOP404"])] * 2
