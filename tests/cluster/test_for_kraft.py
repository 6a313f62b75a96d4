"""``topicops doctor --for-kraft`` on a real broker finds what was planted, and nothing once its advice is followed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kazoo.client import KazooClient

from fixtures.cluster import running
from fixtures.live import cluster_spec, create_topics, look, new_admin, until, zookeeper
from fixtures.workspace import Ended, Workspace
from topicops_local.cluster import LocalCluster

NOBODY = 9
"""A broker id that no broker has."""
BAD_SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "broker.id": "-1",
    "controller.quorum.voters": "1@127.0.0.1:1",
    "inter.broker.protocol.version": "3.8",
    "log.message.format.version": "3.0",
    "log.segment.bytes": "1000000",
}
OLD_CONFIGS = {"message.format.version": "2.8", "segment.bytes": "1000"}
PLANTED = {
    "broken-quota": "consumer_byte_rate is fast",
    "controller-ids": "node 1",
    "encrypted-settings": "/config/brokers/1 (ssl.key.password)",
    "generated-ids": "broker 1",
    "gone-overrides": "old (message.format.version)",
    "gone-settings": "broker 1 (log.message.format.version)",
    "missing-state": "homeless-0",
    "missing-topic-id": "old",
    "old-protocol": "broker 1 3.9 (protocol 3.8",
    "orphan-config": "by hand: ghost",
    "pending-deletion": "going",
    "prepared-migration": "/migration",
    "refused-overrides": "old (segment.bytes 1000: ",
    "small-segments": "broker 1",
    "unknown-config": "/config/mine",
    "unregistered-broker": "broker 9",
    "zookeeper-authorizer": "AclAuthorizer reads ZooKeeper",
}
"""What each finding must name."""
MIGRATION = ("kraft_controller_id", "kraft_controller_epoch", "kraft_metadata_offset", "kraft_metadata_epoch")
NOT_BEGUN = {"version": 0, **dict.fromkeys(MIGRATION, -1)}
ENDED = {"version": 0, **dict(zip(MIGRATION, (3000, 5, 109, 5), strict=True))}


@pytest.fixture(scope="module")
def cluster(fast_folder: Path) -> Iterator[LocalCluster]:
    """One broker, with a topic whose overrides later releases refuse."""
    with running(fast_folder / "for-kraft-cluster", brokers=1) as cluster:
        create_topics(cluster.bootstrap_servers, NewTopic("old", 1, 1, config=OLD_CONFIGS))
        yield cluster


@pytest.fixture
def live(cluster: LocalCluster, workspace: Workspace) -> Workspace:
    workspace.cluster = cluster_spec(cluster)
    return workspace


def examined(live: Workspace) -> tuple[Ended, dict[str, Any]]:
    ended = live.run("doctor", "--for-kraft", "--environment", "local", "--format", "json")
    return ended, {finding["id"]: finding for finding in json.loads(ended.out)["findings"]}


def test_what_was_planted_is_found_and_nothing_stands_in_the_way_once_the_advice_is_followed(
    live: Workspace, cluster: LocalCluster
) -> None:
    restart(cluster, BAD_SETTINGS)
    with zookeeper(cluster) as client:
        topic_id = plant(client)
        until(lambda: "homeless" in look(cluster).topics and "going" in look(cluster).deleting)
        ended, found = examined(live)
        follow(client, cluster, topic_id)
    clean = live.run("doctor", "--for-kraft", "--environment", "local")

    assert ended.status == 1, ended.err
    assert found.keys() == PLANTED.keys()
    assert {name: word for name, word in PLANTED.items() if word not in found[name]["message"]} == {}
    assert [name for name, finding in found.items() if not finding["fix"]] == []
    assert json.loads(ended.out)["rules_not_applied"] == []
    assert (clean.status, clean.err) == (0, "")
    assert "Nothing stands in the way of a migration to KRaft; " in clean.out
    assert "migrate with 3.9, then upgrade to 4.0 or later" in clean.out


def test_marks_of_an_earlier_migration_are_left_over(live: Workspace, cluster: LocalCluster) -> None:
    with zookeeper(cluster) as client:
        create(client, "/migration", ENDED)
        ended, found = examined(live)
        client.delete("/migration")

    assert (ended.status, found.keys()) == (1, {"left-over-migration"})
    assert "no-controller" in json.loads(ended.out)["rules_not_applied"]


def test_brokers_that_cannot_be_reached_are_a_finding_and_the_rest_is_examined(live: Workspace) -> None:
    live.cluster |= {"kafka": {"bootstrapServers": "127.0.0.1:1"}}

    ended, found = examined(live)

    assert (ended.status, found.keys()) == (1, {"brokers"})
    assert "old-protocol" in json.loads(ended.out)["rules_not_applied"]


def test_with_the_brokers_as_the_source_it_says_that_it_cannot_read_zookeeper(live: Workspace) -> None:
    live.cluster |= {"source": "kafka", "lease": "file"}

    ended, found = examined(live)

    assert (ended.status, found.keys()) == (1, {"zookeeper"})
    assert "source: zookeeper" in found["zookeeper"]["message"]


def restart(cluster: LocalCluster, settings: Mapping[str, str]) -> None:
    cluster.stop_broker(1)
    cluster.start_broker(1, broker_properties=settings)


def plant(client: KazooClient) -> str:
    """Return what hands and old programs leave behind; gives the id that ``old`` had."""
    create(client, "/brokers/topics/homeless", {"version": 2, "partitions": {"0": [NOBODY]}})
    create(client, "/brokers/topics/going", {"version": 2, "partitions": {"0": [NOBODY]}})
    until(lambda: all(b"topic_id" in client.get(f"/brokers/topics/{name}")[0] for name in ("homeless", "going")))
    client.create("/admin/delete_topics/going")
    create(client, "/config/topics/ghost", {"version": 1, "config": {}})
    create(client, "/config/mine", {})
    create(client, "/config/clients/odd", {"version": 1, "config": {"consumer_byte_rate": "fast"}})
    create(client, "/config/brokers/1", {"version": 1, "config": {"ssl.key.password": "encoded"}})
    create(client, "/migration", NOT_BEGUN)
    held = json.loads(client.get("/brokers/topics/old")[0])
    topic_id = str(held.pop("topic_id"))
    client.set("/brokers/topics/old", json.dumps(held).encode())
    return topic_id


def follow(client: KazooClient, cluster: LocalCluster, topic_id: str) -> None:
    """Do what each fix says."""
    held = json.loads(client.get("/brokers/topics/old")[0])
    client.set("/brokers/topics/old", json.dumps({**held, "topic_id": topic_id}).encode())
    resource = ConfigResource(
        ResourceType.TOPIC,
        "old",
        incremental_configs=[
            ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE) for name in OLD_CONFIGS
        ],
    )
    admin = new_admin(cluster.bootstrap_servers)
    [changed] = admin.incremental_alter_configs([resource]).values()
    changed.result(60)
    cluster.stop_broker(1)
    for path in ("config/topics/ghost", "config/mine", "config/clients/odd", "config/brokers/1", "migration",
                 "admin/delete_topics/going", "brokers/topics/going", "brokers/topics/homeless"):  # fmt: skip
        client.delete(f"/{path}", recursive=True)
    cluster.start_broker(1, broker_properties={})


def create(client: KazooClient, path: str, value: object) -> None:
    client.create(path, json.dumps(value).encode())
