"""A managed cluster: real brokers behind a service that places replicas and refuses what services refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import pytest
from confluent_kafka.admin import NewTopic

from fixtures.live import create_topics, new_admin, spec_by_brokers, until
from fixtures.managed_service import EVERYTHING, ManagedService
from fixtures.proxy import BrokerProxies
from fixtures.workspace import Ended, Workspace
from topicops.edges.kafka.reader import KafkaReader
from topicops.model.cluster.snapshot import LiveTopic
from topicops_local.cluster import LocalCluster

REFUSED = "CLUSTER_AUTHORIZATION_FAILED (31)"
ONE_BY_ONE = [pytest.param({name: code}, id=name) for name, code in EVERYTHING.items()]
Behind = Callable[[ManagedService], AbstractContextManager[ManagedService]]


@pytest.fixture
def live(kraft_cluster: LocalCluster, workspace: Workspace) -> Iterator[Workspace]:
    workspace.cluster = {**spec_by_brokers(kraft_cluster), "kind": "managed"}
    workspace.policy = {"unattended": "destructive", "restsFor": "0s"}
    workspace.verify = {"leaders": "15s", "isr": "15s", "metadata": "5s"}
    yield workspace
    if topics := sorted(topics_of(kraft_cluster)):
        admin = new_admin(kraft_cluster.bootstrap_servers)
        for future in admin.delete_topics(topics).values():
            future.result(30)
        until(lambda: not topics_of(kraft_cluster))


@pytest.fixture
def behind(live: Workspace, kraft_cluster: LocalCluster) -> Behind:
    @contextmanager
    def behind(service: ManagedService) -> Iterator[ManagedService]:
        with BrokerProxies(sorted(kraft_cluster.broker_ports.values()), service=service) as proxies:
            live.cluster["kafka"] = {"bootstrapServers": proxies.bootstrap_servers}
            yield service

    return behind


def topics_of(cluster: LocalCluster) -> Mapping[str, LiveTopic]:
    with KafkaReader({"bootstrap.servers": cluster.bootstrap_servers}) as reader:
        found = reader.snapshot(states=True).topics
    return {name: topic for name, topic in found.items() if not name.startswith("__")}


def whole(ended: Ended) -> str:
    return ended.out + ended.err


@pytest.mark.parametrize(
    "refused", [pytest.param({}, id="nothing"), *ONE_BY_ONE, pytest.param(EVERYTHING, id="all together")]
)
def test_the_whole_loop_where_the_brokers_place_replicas_and_refuse_what_is_of_the_whole_cluster(
    live: Workspace, behind: Behind, kraft_cluster: LocalCluster, refused: Mapping[str, int]
) -> None:
    create_topics(kraft_cluster.bootstrap_servers, NewTopic("grows", 1, 3), NewTopic("goes", 1, 3))
    live.topic("new", partitions=4, configs={"min.insync.replicas": "2"})
    live.topic("grows", partitions=3, configs={"retention.ms": "3h"})
    live.tombstone("goes")
    with behind(ManagedService(refused=refused)) as service:
        planned, applied = live.plan(), live.apply()
        verified = live.run("verify", "--environment", "local", "--format", "json")
        again = live.plan("--detailed-exitcode")

    assert "placed by the brokers" in planned.out, whole(planned)
    groups_are_read = "ListGroups" not in refused
    assert applied.status == (0 if groups_are_read else 6), whole(applied)
    found = topics_of(kraft_cluster)
    assert ("goes" in found) is not groups_are_read
    assert {name: (found[name].partitions, found[name].replication_factors) for name in ("new", "grows")} == {
        "new": (4, {3}),
        "grows": (3, {3}),
    }
    assert {*service.asked} == {"CreateTopics by counts", "CreatePartitions by counts"}
    assert verified.status == 0, whole(verified)
    unseen = sorted(refused.keys() - {"DescribeCluster"})  # nothing asks for that one
    assert planned.out.count("not checked: ") == bool(unseen)
    assert all(f"{name}: " in planned.out and REFUSED in planned.out for name in unseen), planned.out
    checks = {c["message"] for c in json.loads(verified.out)["checks"] if c["verdict"] == "not checked"}
    seen_by_verify = {"DescribeConfigs", "DescribeLogDirs", "ListPartitionReassignments"} & {*refused}
    assert {name for name in EVERYTHING for message in checks if f"({name}: {REFUSED}" in message} == seen_by_verify
    assert again.status == (0 if groups_are_read else 2), whole(again)
