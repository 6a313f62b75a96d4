"""Brokers that leave requests out of their ApiVersions answer, as some services do: proxies before real brokers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import pytest
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from fixtures.live import cluster_spec, create_topics, look, new_admin, remove_topics, spec_by_brokers
from fixtures.proxy import BrokerProxies, Fate
from fixtures.workspace import Workspace
from topicops_local.cluster import LocalCluster

pytestmark = pytest.mark.filterwarnings("ignore:alter_configs has been deprecated")  # what such brokers have

METADATA, CREATE_TOPICS, DELETE_TOPICS, ALTER_CONFIGS, DESCRIBE_LOG_DIRS, CREATE_PARTITIONS, INCREMENTAL = (
    3, 19, 20, 33, 35, 37, 44,
)  # fmt: skip
"""Source: org.apache.kafka.common.protocol.ApiKeys."""
REASSIGNMENTS = 46
NONE = -1
Lacking = Mapping[int, int]
Behind = Callable[..., AbstractContextManager[None]]


@pytest.fixture
def live(workspace: Workspace, local_cluster: LocalCluster) -> Iterator[Workspace]:
    workspace.cluster = cluster_spec(local_cluster)
    workspace.policy = {"unattended": "destructive", "restsFor": "0s"}
    workspace.verify = {"leaders": "10s", "isr": "10s", "metadata": "3s"}
    yield workspace
    remove_topics(local_cluster, [name for name in look(local_cluster).topics if name.startswith("lean.")])


@pytest.fixture
def behind(live: Workspace, local_cluster: LocalCluster) -> Behind:
    """Return the workspace's brokers, while some of them offer less."""

    @contextmanager
    def behind(lacking: Lacking, *, brokers: tuple[int, ...] = (1, 2, 3), swallow: str = "") -> Iterator[None]:
        ports = sorted(local_cluster.broker_ports.items())
        with BrokerProxies(
            [port for _, port in ports],
            lambda name: Fate.SWALLOW if name == swallow else Fate.PASS,
            lacking=lambda place: lacking if ports[place][0] in brokers else {},
        ) as proxies:
            live.cluster["kafka"] = {"bootstrapServers": proxies.bootstrap_servers}
            yield
            live.cluster["kafka"] = {"bootstrapServers": local_cluster.bootstrap_servers}

    return behind


def make(cluster: LocalCluster, name: str, **configs: str) -> None:
    create_topics(cluster.bootstrap_servers, NewTopic(name, 1, 3, config=configs))


def findings(live: Workspace) -> dict[str, str]:
    """Return the messages of doctor about requests, by severity."""
    ended = live.run("doctor", "--environment", "local", "--format", "json")
    found = json.loads(ended.out)["findings"]
    return {finding["severity"]: finding["message"] for finding in found if finding["id"] == "missing-request"}


@pytest.mark.parametrize(
    ("brokers", "named"),
    [
        pytest.param((1, 2, 3), "broker 1, broker 2, broker 3", id="all of them"),
        pytest.param((2,), "broker 2", id="one of them"),
    ],
)
def test_without_log_directories_all_else_is_verified_and_the_rest_is_said_not_to_be_checked(
    live: Workspace, behind: Behind, brokers: tuple[int, ...], named: str
) -> None:
    live.topic("lean.new")
    with behind({DESCRIBE_LOG_DIRS: NONE}, brokers=brokers):
        found = findings(live)
        planned, applied = live.plan(), live.apply()
        verified = live.run("verify", "--environment", "local", "--format", "json")

    offers = ", ".join(f"broker {broker} offers no DescribeLogDirs" for broker in brokers)
    assert found == {"warning": f"{named} without DescribeLogDirs: {LOGS_UNSEEN}"}
    assert "1 to create" in planned.out
    assert applied.status == 0, applied.out + applied.err
    assert "Applied, verified in part: 1 done; not everything checked on 1 topic." in applied.out
    assert f"not checked: log directories ({offers}): 1 topic" in applied.out
    report = json.loads(verified.out)
    [check] = [check for check in report["checks"] if check["topic"] == "lean.new"]
    assert (verified.status, check["id"], check["verdict"]) == (0, "V16", "not checked")
    assert report["verdicts"]["not checked"] >= 1
    assert report["headline"].startswith("The cluster is healthy, as far as it could be checked")


LOGS_UNSEEN = "verify cannot see the logs on their disks, and says that it did not check them"


@pytest.mark.soak
def test_a_broker_that_offers_log_directories_and_gives_none_is_not_healthy(live: Workspace, behind: Behind) -> None:
    live.topic("lean.silent")
    with behind({}, swallow="DescribeLogDirs"):
        live.plan()
        applied = live.apply()

    assert applied.status == 7, applied.out + applied.err
    assert "when asked for its log directories (TOP613)" in applied.out, applied.out
    assert "not checked" not in applied.out


def test_without_incremental_alter_configs_all_overrides_are_sent_and_none_is_lost(
    live: Workspace, behind: Behind, local_cluster: LocalCluster
) -> None:
    make(local_cluster, "lean.set", **{"retention.ms": "7200000", "max.message.bytes": "2000000"})
    live.topic("lean.set", configs={"retention.ms": "3h"})
    with behind({INCREMENTAL: NONE}):
        planned, applied = live.plan(), live.apply()

    assert applied.status == 0, applied.out + applied.err
    assert "brokers 1, 2, 3 offer no IncrementalAlterConfigs, so all overrides of the topic are sent" in planned.out
    assert look(local_cluster).topics["lean.set"].overrides == {
        "retention.ms": "10800000",
        "max.message.bytes": "2000000",
    }


def test_an_override_that_is_set_after_the_plan_is_not_replaced(
    live: Workspace, behind: Behind, local_cluster: LocalCluster
) -> None:
    make(local_cluster, "lean.moved", **{"retention.ms": "7200000"})
    live.topic("lean.moved", configs={"retention.ms": "3h"})
    with behind({INCREMENTAL: NONE}, brokers=(2,)):
        live.plan()
        by_hand = ConfigResource(
            ResourceType.TOPIC, "lean.moved", set_config={"retention.ms": "7200000", "segment.ms": "7200000"}
        )
        admin = new_admin(local_cluster.bootstrap_servers)
        admin.alter_configs([by_hand])[by_hand].result(60)
        applied = live.apply()

    assert applied.status == 4, applied.out + applied.err
    assert "segment.ms: planned not set, live 7200000" in applied.out
    assert look(local_cluster).topics["lean.moved"].overrides["segment.ms"] == "7200000"


@pytest.mark.parametrize(
    ("lacking", "reason"),
    [
        pytest.param({CREATE_TOPICS: NONE}, "no CreateTopics: no topic can be created", id="creates"),
        pytest.param({CREATE_PARTITIONS: NONE}, "no CreatePartitions: no topic can get more partitions", id="expands"),
        pytest.param(
            {INCREMENTAL: NONE, ALTER_CONFIGS: NONE}, "no AlterConfigs: no config can be changed", id="configs"
        ),
        pytest.param({DELETE_TOPICS: NONE}, "no DeleteTopics: no topic can be deleted", id="deletes"),
        pytest.param(
            {DELETE_TOPICS: 5}, "no DeleteTopics of version 6 or later: no topic that has a topic id", id="ids"
        ),
    ],
)
def test_what_the_brokers_do_not_offer_is_blocked_in_the_plan_by_its_name(
    live: Workspace, behind: Behind, local_cluster: LocalCluster, lacking: Lacking, reason: str
) -> None:
    for name in ("lean.grows", "lean.config", "lean.goes"):
        make(local_cluster, name)
    live.topic("lean.new")
    live.topic("lean.grows", partitions=2)
    live.topic("lean.config", configs={"retention.ms": "3h"})
    live.tombstone("lean.goes")
    with behind(lacking):
        planned = live.plan()

    assert planned.status == 0, planned.out + planned.err
    assert "1 blocked" in planned.out
    assert f"TOP811: brokers 1, 2, 3 offer {reason}" in planned.out


@pytest.mark.parametrize(
    ("lacking", "reason", "finding"),
    [
        pytest.param(
            {METADATA: 8},
            "(TOP809): Metadata on brokers 1, 2, 3 goes only up to version 8, and topic ids come with version 10",
            "Metadata of version 10 or later: they give no topic ids",
            id="no topic ids",
        ),
        pytest.param(
            {REASSIGNMENTS: NONE},
            "offers no ListPartitionReassignments: it is not known which replicas move, so source: kafka",
            "ListPartitionReassignments: it is not known which replicas move",
            id="no reassignments",
        ),
    ],
)
def test_brokers_that_cannot_be_the_source_are_told_so_without_advice_that_nobody_can_follow(
    workspace: Workspace, kraft_cluster: LocalCluster, lacking: Lacking, reason: str, finding: str
) -> None:
    create_topics(kraft_cluster.bootstrap_servers, NewTopic("lean.old", 1, 3))
    workspace.topic("lean.old", partitions=2)
    ports = sorted(kraft_cluster.broker_ports.values())
    try:
        with BrokerProxies(ports, lacking=lambda _: lacking) as proxies:
            kafka = {"bootstrapServers": proxies.bootstrap_servers}
            workspace.cluster = {**spec_by_brokers(kraft_cluster), "kafka": kafka}
            planned, found = workspace.plan(), findings(workspace)
    finally:
        admin = new_admin(kraft_cluster.bootstrap_servers)
        admin.delete_topics(["lean.old"])["lean.old"].result(60)

    assert planned.status == 1
    assert reason in planned.err
    assert "inter.broker.protocol.version" not in planned.err
    assert finding in found["warning"]
