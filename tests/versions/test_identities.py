"""Brokers of some releases that grant each identity its own part and no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from fixtures.guarded_releases import GuardedRelease
from fixtures.kafka_releases import GUARDED, Brokers, wanted_brokers
from fixtures.live import until
from fixtures.release_table import Cell
from fixtures.workspace import Workspace
from topicops.edges.kafka.broker_questions import BrokerQuestions

pytestmark = pytest.mark.soak
PARTS = {"connection": "reader", "applier": "applier", "deleter": "deleter"}
CHANGING = ("AIRFLOW_CONN_KAFKA_APPLIER", "AIRFLOW_CONN_KAFKA_DELETER")


@pytest.fixture(scope="module", params=wanted_brokers(*GUARDED))
def broker(request: pytest.FixtureRequest, fast_folder: Path) -> Iterator[GuardedRelease]:
    brokers: Brokers = request.param
    with GuardedRelease.running(brokers, fast_folder / f"guarded-{brokers.name}") as guarded:
        yield guarded


@pytest.fixture
def cell(broker: GuardedRelease, record_property: Callable[[str, object], None]) -> Cell:
    return Cell(record_property)


@pytest.fixture
def guarded(broker: GuardedRelease, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A plan for it holds one change of each kind, below the prefix that applier and deleter own."""
    for name, value in broker.variables.items():
        monkeypatch.setenv(name, value)
    workspace.cluster = broker.spec(**PARTS)
    workspace.policy |= {"unattended": "destructive"}
    broker.make("owned.growing", "owned.slow", "owned.going")
    workspace.topic("owned.coming", replicationFactor=1)
    workspace.topic("owned.growing", replicationFactor=1, partitions=2)
    workspace.topic("owned.slow", replicationFactor=1, configs={"retention.ms": "8d"})
    workspace.tombstone("owned.going")
    yield workspace
    broker.clear()


def principals(workspace: Workspace) -> dict[str, str]:
    """Who sent what, by the audit log."""
    lines = (workspace.folder / "home/audit/local.jsonl").read_text(encoding="utf-8").splitlines()
    return {line["action"]: line["principal"] for line in map(json.loads, lines)}


def test_each_identity_does_its_own_part(
    guarded: Workspace, broker: GuardedRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in CHANGING:
        monkeypatch.delenv(name)
    planned = guarded.plan()
    for name in CHANGING:
        monkeypatch.setenv(name, broker.variables[name])

    applied = guarded.apply()

    assert "Plan: 1 to create, 1 to expand, 1 to configure, 1 to delete; 0 blocked" in planned.out, planned.err
    assert applied.status == 0, applied.out + applied.err
    assert "Applied and verified: 4 done." in applied.out
    live = broker.topics
    assert "owned.going" not in live
    assert (live["owned.coming"].partitions, live["owned.growing"].partitions) == (1, 2)
    assert live["owned.slow"].overrides == {"retention.ms": "691200000"}
    assert principals(guarded) == {
        "create": "User:applier",
        "expand": "User:applier",
        "configure": "User:applier",
        "delete": "User:deleter",
    }


def test_an_identity_that_may_change_nothing_is_told_each_right_that_it_lacks(
    guarded: Workspace, broker: GuardedRelease, cell: Cell
) -> None:
    guarded.cluster = broker.spec(**{**PARTS, "applier": "reader"})
    guarded.plan()
    before = broker.topics

    applied = guarded.apply()

    assert applied.status == 1, applied.out + applied.err
    for lacking in ("Create on owned.coming", "Alter on owned.growing", "AlterConfigs on owned.slow"):
        assert f"User:reader lacks {lacking} (TOP804): grant it" in applied.out
    assert broker.topics == before
    cell.refused("TOP804")


def test_groups_that_brokers_may_hide_from_the_reader_count_as_unread(
    guarded: Workspace, broker: GuardedRelease
) -> None:
    committed = ConsumerGroupTopicPartitions("hidden", [TopicPartition("owned.going", 0, 0)])
    # The first commit on a cluster may find no coordinator: its topic is made for it.
    until(lambda: is_committed(broker, committed))

    groups = {}
    for user in ("reader", "deaf"):
        with closing(BrokerQuestions(broker.properties(user), timeout_s=15.0)) as questions:
            groups[user] = questions.activity(["owned.going"])["owned.going"].groups

    assert groups == {"reader": ("hidden",), "deaf": None}


def is_committed(broker: GuardedRelease, committed: ConsumerGroupTopicPartitions) -> bool:
    answer = broker.admin.alter_consumer_group_offsets([committed])[committed.group_id].result(60)
    return not answer.topic_partitions[0].error
