"""Real brokers of Kafka 4.4 with cordoned log directories (KIP-1066): no plan gives them the replicas they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from fixtures.kafka_releases import Brokers, ReleasedCluster, spec_of
from fixtures.live import create_topics, new_admin, until
from fixtures.workspace import Workspace
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.edges.kafka.reader import KafkaReader
from topicops.model.cluster.snapshot import LogDirectories
from topicops_local.cluster import LocalCluster

NEWEST_BROKERS = Brokers(kafka="4.4.0", kraft=True)


@pytest.fixture(scope="module")
def cluster(fast_folder: Path) -> Iterator[LocalCluster]:
    with ReleasedCluster.running(NEWEST_BROKERS, fast_folder / "cordoned") as released:
        yield released.cluster


def cordon(cluster: LocalCluster, broker: int, directories: str) -> None:
    entry = ConfigEntry("cordoned.log.dirs", directories, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
    admin = new_admin(cluster.bootstrap_servers)
    admin.incremental_alter_configs([resource])[resource].result(30)
    until(lambda: cordoned(cluster) == ({broker} if directories else set()))


def cordoned(cluster: LocalCluster) -> set[int]:
    questions = BrokerQuestions({"bootstrap.servers": cluster.bootstrap_servers}, timeout_s=10.0)
    found = questions.log_directories({})
    questions.close()
    return {b for b, told in found.items() if isinstance(told, LogDirectories) and told.cordoned}


def rows_of(cluster: LocalCluster, *topics: str) -> dict[str, set[int]]:
    with KafkaReader({"bootstrap.servers": cluster.bootstrap_servers}) as reader:
        live = reader.snapshot().topics
    return {name: {broker for row in live[name].assignment.values() for broker in row} for name in topics}


@pytest.mark.soak
def test_a_cordoned_broker_refuses_replicas_and_a_plan_gives_it_none_until_it_is_open_again(
    cluster: LocalCluster, workspace: Workspace
) -> None:
    workspace.cluster = spec_of(NEWEST_BROKERS, cluster)
    workspace.policy = {"unattended": "destructive"}
    create_topics(cluster.bootstrap_servers, NewTopic("grows", 1, replica_assignment=[[1, 3]]))
    workspace.topic("new", partitions=6, replicationFactor=2)
    workspace.topic("grows", partitions=5, replicationFactor=2)
    open_plan = workspace.plan()
    cordon(cluster, 2, "*")
    admin = new_admin(cluster.bootstrap_servers)
    with pytest.raises(KafkaException, match="INVALID_REPLICA_ASSIGNMENT"):
        admin.create_topics([NewTopic("by-hand", 1, replica_assignment=[[2, 3]])])["by-hand"].result(30)

    stale = workspace.apply()
    planned, applied = workspace.plan(), workspace.apply()
    placed = rows_of(cluster, "new", "grows")
    workspace.topic("three", replicationFactor=3)
    blocked = workspace.plan()
    cordon(cluster, 2, "")
    workspace.cluster["draining"] = [2, 7]
    unknown = workspace.plan()
    workspace.cluster["draining"] = [3]
    workspace.topic("three", partitions=4, replicationFactor=2)
    drained = workspace.plan(), workspace.apply()

    assert open_plan.status == 0, open_plan.err
    assert "the plan places replicas on broker 2, which is cordoned" in stale.out, stale.out + stale.err
    assert (planned.status, applied.status) == (0, 0), planned.err + applied.out + applied.err
    assert placed == {"new": {1, 3}, "grows": {1, 3}}
    assert "2 are live, beside broker 2, which is cordoned" in blocked.out, blocked.out
    assert unknown.status == 1
    assert "the cluster has no broker 7 (TOP438); live are brokers 1, 2, 3: correct the list" in unknown.err
    assert drained[1].status == 0, drained[1].out + drained[1].err
    assert rows_of(cluster, "three") == {"three": {1, 2}}
