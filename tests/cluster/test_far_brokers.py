"""Brokers that are far away: each answer takes half a second, and all still works, deletes too."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka.admin import NewTopic

from fixtures.live import cluster_spec, create_topics, remove_topics
from fixtures.proxy import BrokerProxies, Fate
from fixtures.workspace import Workspace
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops_local.cluster import LocalCluster

TOPICS = ("far-old", "far-kept")


@pytest.fixture
def far(local_cluster: LocalCluster, request: pytest.FixtureRequest) -> Iterator[BrokerProxies]:
    def late(_: str) -> Fate:
        time.sleep(request.param)
        return Fate.PASS

    with BrokerProxies([*local_cluster.broker_ports.values()], late) as proxies:
        yield proxies


@pytest.fixture
def live(local_cluster: LocalCluster, far: BrokerProxies, workspace: Workspace) -> Iterator[Workspace]:
    """One topic to delete, and one to configure; ZooKeeper is near."""
    create_topics(local_cluster.bootstrap_servers, *[NewTopic(name, 2, 3) for name in TOPICS])
    workspace.cluster = {**cluster_spec(local_cluster), "kafka": {"bootstrapServers": far.bootstrap_servers}}
    workspace.policy = {"unattended": "destructive"}
    workspace.tombstone("far-old")
    workspace.topic("far-kept", partitions=2, configs={"retention.ms": "8d"})
    yield workspace
    remove_topics(local_cluster, TOPICS)


@pytest.mark.soak
@pytest.mark.parametrize("far", [0.5], indirect=True)
def test_who_uses_a_topic_is_known_also_where_brokers_are_far(live: Workspace, far: BrokerProxies) -> None:
    with closing(BrokerQuestions({"bootstrap.servers": far.bootstrap_servers})) as questions:
        defaults, found = questions.broker_defaults(), questions.activity([TOPICS[0]])[TOPICS[0]]

    assert defaults
    assert (found.groups, found.end_offsets) == ((), {0: 0, 1: 0})


@pytest.mark.soak
@pytest.mark.parametrize("far", [0.25, 0.5], indirect=True)
def test_a_delete_and_a_config_of_brokers_far_away_are_planned_sent_and_verified(live: Workspace) -> None:
    planned = live.plan()
    ended = live.apply()

    assert "7d, broker default" in planned.out
    assert (planned.status, ended.status) == (0, 0), planned.out + ended.out + ended.err
    assert "2 done" in ended.out


@pytest.mark.parametrize("far", [0.5], indirect=True)
def test_questions_that_get_too_little_time_say_how_long_one_answer_takes(
    live: Workspace, far: BrokerProxies, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("topicops.edges.kafka.clients.kafka_python_inside.LONGEST_PATIENCE_S", 1.0)
    with closing(BrokerQuestions({"bootstrap.servers": far.bootstrap_servers})) as questions:
        found = questions.activity([TOPICS[0]])[TOPICS[0]]

    assert found.groups is None
    said = r"within 2 s \(one answer takes 0\.[5-9] s\); TOPICOPS_BROKER_PATIENCE gives them more time"
    assert re.search(said, caplog.text), caplog.text


@pytest.mark.parametrize("far", [0.0], indirect=True)
def test_a_patience_that_is_no_duration_is_named(live: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICOPS_BROKER_PATIENCE", "long")

    ended = live.plan()

    assert (ended.status, "TOPICOPS_BROKER_PATIENCE is 'long'" in ended.err) == (1, True)
