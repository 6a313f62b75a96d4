"""The loop where no ZooKeeper is: three brokers that are controllers too, read and changed through the Admin API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic
from typer.testing import CliRunner

from fixtures.live import new_admin, spec_by_brokers, until
from fixtures.workspace import Workspace
from topicops.edges.kafka.questions.broker_views import BrokerViews
from topicops.edges.kafka.reader import KafkaReader
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.ports import BrokerLogs, BrokerView, LogQuestions
from topicops_local import local as cli
from topicops_local.cluster import LocalCluster

BROKERS = (1, 2, 3)


@pytest.fixture(scope="module")
def cluster(kraft_cluster: LocalCluster) -> LocalCluster:
    return kraft_cluster


@pytest.fixture
def live(cluster: LocalCluster, workspace: Workspace) -> Iterator[Workspace]:
    """The workspace of an empty cluster; whatever is on it after the test is removed."""
    workspace.cluster = spec_by_brokers(cluster)
    yield workspace
    topics = sorted(topics_of(cluster))
    if topics:
        admin = new_admin(cluster.bootstrap_servers)
        for future in admin.delete_topics(topics).values():
            future.result(30)
        until(lambda: not known(cluster, *topics), timeout_s=30)


def known(cluster: LocalCluster, *topics: str) -> dict[int, Mapping[str, frozenset[int]]]:
    """By broker, the partitions of the topics that it has on its disks; without a broker that knows none of them."""
    views = BrokerViews({"bootstrap.servers": cluster.bootstrap_servers})
    heard = {b for b, view in views.views(BROKERS, topics).items() if isinstance(view, BrokerView) and view.topics}
    logs = views.logs({broker: LogQuestions(held=dict.fromkeys(topics, (0, 1))) for broker in heard})
    views.close()
    return {broker: found.held for broker, found in logs.items() if isinstance(found, BrokerLogs)}


def topics_of(cluster: LocalCluster) -> Mapping[str, LiveTopic]:
    with KafkaReader({"bootstrap.servers": cluster.bootstrap_servers}) as reader:
        return reader.snapshot(states=True).topics


def by_hand(cluster: LocalCluster, name: str, **configs: str) -> None:
    """A topic of two partitions on every broker; a broker hears of it a moment after it is made."""
    admin = new_admin(cluster.bootstrap_servers)
    admin.create_topics([NewTopic(name, 2, 3, config=configs)])[name].result(30)
    until(lambda: known(cluster, name) == {broker: {name: frozenset({0, 1})} for broker in BROKERS}, timeout_s=30)


@pytest.mark.parametrize("lease", ["file", pytest.param("none", marks=pytest.mark.soak)])
def test_changes_of_all_kinds_are_applied_and_verified_by_metadata_and_log_directories(
    live: Workspace, cluster: LocalCluster, lease: str
) -> None:
    live.cluster["lease"] = lease
    by_hand(cluster, "growing")
    by_hand(cluster, "drifting", **{"retention.ms": "3600000"})
    by_hand(cluster, "going")
    live.topic("new", partitions=3, configs={"min.insync.replicas": "2"})
    live.topic("growing", partitions=4)
    live.topic("drifting", partitions=2, configs={"retention.ms": "2h"})
    live.tombstone("going")

    planned = live.plan()
    plan = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    applied = live.apply("--approve", plan["fingerprint"])

    assert "Plan: 1 to create, 1 to expand, 1 to configure, 1 to delete" in planned.out, planned.err
    assert applied.status == 0, applied.out + applied.err
    assert "Applied and verified: 4 done." in applied.out
    assert "3 topics healthy, 1 deleted topic gone, by the brokers' metadata and their log directories" in applied.out
    after = topics_of(cluster)
    assert {name: topic.partitions for name, topic in after.items()} == {"new": 3, "growing": 4, "drifting": 2}
    assert after["new"].overrides == {"min.insync.replicas": "2"}
    assert after["drifting"].overrides["retention.ms"] == "7200000"
    again = live.plan("--detailed-exitcode")
    assert (again.status, "No changes." in again.out) == (0, True)
    assert live.run("verify", "--environment", "local").status == 0


def test_a_topic_that_moved_since_the_plan_is_refused(live: Workspace, cluster: LocalCluster) -> None:
    live.topic("wanted", partitions=3)
    live.plan()
    by_hand(cluster, "wanted")

    applied = live.apply()

    assert applied.status == 4, applied.out + applied.err
    assert "partitions: planned 3, live 2" in applied.out


NOWHERE = {"zookeeper": {"hosts": "127.0.0.1:1/kafka"}}


@pytest.mark.parametrize(
    ("command", "zookeeper", "status", "code"),
    [
        pytest.param(["plan", "--environment", "local"], {}, 1, "TOP325", id="plan, without an address of a ZooKeeper"),
        pytest.param(["apply", "plan.json"], {}, 1, "TOP325", id="apply, without an address of a ZooKeeper"),
        pytest.param(["verify", "--environment", "local"], {}, 1, "TOP325", id="verify, without one"),
        pytest.param(["plan", "--environment", "local"], NOWHERE, 8, "TOP801", id="plan, with one that is gone"),
    ],
)
def test_without_the_source_a_command_refuses_with_a_way_out(
    live: Workspace, cluster: LocalCluster, command: list[str], zookeeper: dict[str, object], status: int, code: str
) -> None:
    live.topic("wanted")
    live.plan()
    del live.cluster["source"]
    live.cluster |= zookeeper

    refused = live.run(*command)

    assert refused.status == status, refused.out + refused.err
    assert code in refused.err
    assert "set `source: kafka`" in refused.err
    assert topics_of(cluster) == {}


def test_a_lease_in_zookeeper_is_refused_before_any_connection(live: Workspace) -> None:
    live.cluster["lease"] = "zookeeper"

    refused = live.plan()

    assert refused.status == 1
    assert "TOP325" in refused.err
    assert "lease: home" in refused.err


def test_the_status_names_the_leader_of_the_quorum_and_no_zookeeper(cluster: LocalCluster) -> None:
    with KafkaReader({"bootstrap.servers": cluster.bootstrap_servers}) as reader:
        snapshot, epoch = reader.snapshot(), reader.controller_epoch()

    result = CliRunner().invoke(cli.app, ["status", "--home", str(cluster.home)])
    shown = json.loads(CliRunner().invoke(cli.app, ["status", "--home", str(cluster.home), "--format", "json"]).stdout)

    assert result.exit_code == 0
    assert "ZooKeeper:          none: the brokers are a KRaft quorum" in result.stdout
    assert (shown["registered_brokers"], shown["zookeeper_hosts"]) == ([1, 2, 3], None)
    assert (snapshot.controller_id, snapshot.controller_epoch) == (shown["controller"], epoch)
    assert snapshot.racks == {1: "r1", 2: "r2", 3: "r3"}


def test_a_home_keeps_the_sort_of_cluster_that_it_has(cluster: LocalCluster) -> None:
    result = CliRunner().invoke(cli.app, ["up", "--home", str(cluster.home)])

    assert "running with its own KRaft quorum" in str(result.exception)
