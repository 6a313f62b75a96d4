"""``topicops doctor`` on real brokers: nothing is found on a clean cluster, and exactly what was planted on another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kazoo.client import KazooClient
from kazoo.security import make_acl

from fixtures.cluster import running
from fixtures.live import cluster_spec, create_topics, look, new_admin, tree_of, until, zookeeper
from fixtures.workspace import Ended, Workspace
from topicops_local.cluster import LocalCluster
from topicops_local.state import read_state, write_state

NOBODY = 9
"""A broker id that no broker has."""
BAD_SETTINGS = {
    "auto.create.topics.enable": "true",
    "delete.topic.enable": "false",
    "inter.broker.protocol.version": "3.8",
}
TEN_MINUTES_MS = 600_000
LONG_LIST = ",".join(f"{p}:1" for p in range(120_000))
"""A value of more than 800,000 characters."""


@pytest.fixture(scope="module")
def cluster(fast_folder: Path) -> Iterator[LocalCluster]:
    """A cluster of this module's own, with one healthy topic."""
    with running(fast_folder / "doctor-cluster") as cluster:
        create_topics(cluster.bootstrap_servers, NewTopic("healthy", 3, 3))
        yield cluster


@pytest.fixture
def live(cluster: LocalCluster, workspace: Workspace) -> Workspace:
    workspace.cluster = {**cluster_spec(cluster), "minLiveBrokers": 3}
    return workspace


def delete_topic(cluster: LocalCluster, name: str) -> None:
    # A client of its own: the first may go on asking a broker that was stopped.
    admin = new_admin(cluster.bootstrap_servers)
    admin.delete_topics([name])[name].result(60)


def findings_of(ended: Ended) -> dict[str, Any]:
    return {finding["id"]: finding for finding in json.loads(ended.out)["findings"]}


# Runs first: what comes behind it breaks the cluster.
def test_a_clean_cluster_has_no_finding_and_is_not_written_to(live: Workspace, cluster: LocalCluster) -> None:
    with zookeeper(cluster) as client:
        before = tree_of(client)
        ended = live.run("doctor", "--environment", "local")
        after = tree_of(client)

    assert (ended.status, ended.err) == (0, "")
    assert "Nothing found" in ended.out
    assert "not looked" not in ended.out
    assert "1, 2, 3 run 3.9" in ended.out
    assert "3.8.4 standalone" in ended.out
    assert "ip:127.0.0.1" in ended.out
    assert after == before


@pytest.fixture(scope="module")
def parts(cluster: LocalCluster) -> tuple[int, int, int]:
    """Return the controller, another broker that lives, and a third that is to stop."""
    controller = look(cluster).controller_id
    assert controller is not None
    living, stopping = sorted(set(cluster.broker_ports) - {controller})
    return controller, living, stopping


@pytest.fixture(scope="module")
def faults(cluster: LocalCluster, parts: tuple[int, int, int]) -> Mapping[str, str]:
    """Plant them all; gives what each finding must name."""
    controller, living, stopping = parts
    make_topics(cluster, controller, stopping)
    restart_badly_set(cluster, living)
    cluster.stop_broker(stopping)
    until(lambda: (look(cluster).topics["lonely"].states or {})[0].leader == -1)
    delete_topic(cluster, "dying")
    with zookeeper(cluster) as client:
        plant(client, controller, living)
        until(lambda: look(cluster).topics["moving"].is_reassigning)
    return {
        "auto-create": f"broker {living}",
        "topic-deletion": f"broker {living}",
        "broker-versions": "3.8",
        "mixed-racks": f"broker {living}",
        "clock-skew": f"broker {living} by -60",
        "few-brokers": "requires 3",
        "lease-right": "/kafka/topicops",
        "migration": "/migration",
        "unregistered-broker": f"broker {stopping}",
        "no-leader": "lonely-0",
        "missing-state": "homeless-0",
        "orphan-config": "ghost",
        "missing-config": "gaps",
        "isr-outside-replicas": "strange-0",
        "uneven-replication": "uneven",
        "partition-gaps": "gaps",
        "missing-topic-id": "nameless",
        "leftover-throttle": "throttled",
        "colliding-names": "web.clicks and web_clicks",
        "stuck-deletion": "dying",
        "reassignment": "moving",
        "wide-znode": "/config/topics/wide",
    }


def make_topics(cluster: LocalCluster, controller: int, stopping: int) -> None:
    rows = {"lonely": [stopping], "dying": [controller, stopping]}
    rows |= {name: [controller] for name in ("throttled", "nameless", "strange", "moving", "wide", "web.clicks")}
    configs = {"throttled": {"leader.replication.throttled.replicas": "*"}}
    new = [NewTopic(name, 1, replica_assignment=[row], config=configs.get(name, {})) for name, row in rows.items()]
    create_topics(cluster.bootstrap_servers, *new)


def restart_badly_set(cluster: LocalCluster, broker: int) -> None:
    cluster.stop_broker(broker)
    state = read_state(cluster.folder)
    assert state is not None
    write_state(cluster.folder, replace(state, broker_properties=BAD_SETTINGS))
    cluster.start_broker(broker)


def plant(client: KazooClient, controller: int, living: int) -> None:
    """What hands and tools leave behind; Kafka takes it all, the controller gives new topics their ids."""
    create(client, "/brokers/topics/homeless", {"version": 2, "partitions": {"0": [NOBODY]}})
    uneven = {"0": [controller], "1": [controller, living]}
    create(client, "/brokers/topics/uneven", {"version": 2, "partitions": uneven})
    create(client, "/brokers/topics/gaps", {"version": 2, "partitions": {"0": [controller], "5": [controller]}})
    create(client, "/brokers/topics/web_clicks", {"version": 2, "partitions": {"0": [controller]}})
    create(client, "/config/topics/ghost", {"version": 1, "config": {}})
    create(client, "/migration", migration())
    moving = {"topic": "moving", "partition": 0, "replicas": [controller, NOBODY]}
    create(client, "/admin/reassign_partitions", {"version": 1, "partitions": [moving]})
    client.create("/topicops", b"", acl=[make_acl("world", "anyone", read=True)])
    change(client, "/brokers/topics/strange/partitions/0/state", isr=[controller, NOBODY])
    change(client, "/brokers/topics/nameless", topic_id=None)
    change(client, "/config/topics/wide", config={"follower.replication.throttled.replicas": LONG_LIST})
    registration = f"/brokers/ids/{living}"
    stamp = client.get(registration)[1].mtime - TEN_MINUTES_MS
    change(client, registration, rack=None, timestamp=str(stamp))
    settled_topics(client)


def migration() -> dict[str, int]:
    numbers = ("kraft_controller_id", "kraft_controller_epoch", "kraft_metadata_offset", "kraft_metadata_epoch")
    return {"version": 0, **dict.fromkeys(numbers, -1)}


def create(client: KazooClient, path: str, value: object) -> None:
    client.create(path, json.dumps(value).encode())


def change(client: KazooClient, path: str, **fields: object) -> None:
    """Set fields of a znode; None takes one out."""
    held = json.loads(client.get(path)[0]) | fields
    client.set(path, json.dumps({name: value for name, value in held.items() if value is not None}).encode())


def settled_topics(client: KazooClient) -> None:
    """Until the controller has taken on the topics that were made by hand."""
    led = ("uneven/partitions/1", "gaps/partitions/5", "web_clicks/partitions/0")
    until(lambda: all(client.exists(f"/brokers/topics/{partition}/state") for partition in led))
    until(lambda: b"topic_id" in client.get("/brokers/topics/homeless")[0])


def test_every_planted_fault_is_found_and_no_other(live: Workspace, faults: Mapping[str, str]) -> None:
    ended = live.run("doctor", "--environment", "local", "--format", "json")

    found = findings_of(ended)
    assert ended.status == 1, ended.err
    assert sorted(finding["id"] for finding in json.loads(ended.out)["findings"]) == sorted(faults)
    assert {name: word for name, word in faults.items() if word not in found[name]["message"]} == {}
    assert [name for name, finding in found.items() if not finding["fix"]] == []
    assert json.loads(ended.out)["rules_not_applied"] == []


def test_a_finding_is_one_line_with_its_code_and_fix(live: Workspace, faults: Mapping[str, str]) -> None:
    lines = live.run("doctor", "--environment", "local").out.splitlines()

    told = [line for line in lines if line.startswith(("error", "warning", "notice"))]
    assert len(told) == len(faults)
    assert all("; fix: " in line for line in told)
    [auto_create] = [line for line in told if "[auto-create]" in line]
    assert auto_create.startswith("warning TOP806 ")


def test_brokers_that_cannot_be_reached_are_a_finding_and_the_rest_is_looked_at(
    live: Workspace, faults: Mapping[str, str]
) -> None:
    live.cluster |= {"kafka": {"bootstrapServers": "127.0.0.1:1"}}

    ended = live.run("doctor", "--environment", "local", "--format", "json")

    found = findings_of(ended)
    assert ended.status == 1
    assert found["brokers"]["severity"] == "error"
    assert "no-leader" in found
    assert {"auto-create", "broker-versions"} <= set(json.loads(ended.out)["rules_not_applied"])


ON_CLUSTER = ResourceType.BROKER, "kafka-cluster"
ON_ALL_TOPICS = ResourceType.TOPIC, "*"
AUTHORIZER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.mark.soak
def test_rights_that_the_brokers_do_not_grant_are_told_without_trying(cluster_home: Path, workspace: Workspace) -> None:
    cluster = LocalCluster.up(cluster_home, brokers=1, broker_properties=AUTHORIZER)
    workspace.cluster = cluster_spec(cluster)
    create_topics(cluster.bootstrap_servers, NewTopic("ours", 1, 1), NewTopic("going", 1, 1), NewTopic("theirs", 1, 1))
    workspace.topic("ours", replicationFactor=1)
    workspace.tombstone("going")
    allow(cluster, ON_ALL_TOPICS, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER)
    # Last: it takes away the right to write such rules.
    allow(cluster, ON_CLUSTER, AclOperation.CLUSTER_ACTION, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)

    ended = workspace.run("doctor", "--environment", "local", "--format", "json")

    told = json.loads(ended.out)
    assert ended.status == 0
    assert [(finding["id"], finding["code"]) for finding in told["findings"]] == [
        ("kafka-rights", "TOP804"),
        ("topic-rights", "TOP804"),
    ]
    assert [finding["places"] for finding in told["findings"]] == [
        ["applier (anonymous): CREATE"],
        ["ours: applier lacks ALTER_CONFIGS", "going: deleter lacks DELETE"],
    ]
    granted = "CLUSTER_ACTION, DESCRIBE, DESCRIBE_CONFIGS on the cluster"
    assert told["facts"]["kafka rights"] == f"reader, applier, deleter: {granted}"


def allow(cluster: LocalCluster, where: tuple[ResourceType, str], *operations: AclOperation) -> None:
    """To everybody; what is not named is denied there from then on."""
    admin = new_admin(cluster.bootstrap_servers)
    rules = [
        AclBinding(
            *where, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation, AclPermissionType.ALLOW,
        )
        for operation in operations
    ]  # fmt: skip
    for future in admin.create_acls(rules).values():
        future.result(60)
