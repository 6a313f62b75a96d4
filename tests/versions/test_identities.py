"""Brokers of some releases that grant each identity its own part and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from fixtures.changes_by_identity import (
    PARTS,
    assert_each_did_its_part,
    assert_each_right_is_named,
    changes_are_due,
    plan_of_the_reader_alone,
)
from fixtures.guarded_release import GuardedRelease
from fixtures.kafka_releases import GUARDED, Brokers, wanted_brokers
from fixtures.live import until
from fixtures.release_table import Cell
from fixtures.workspace import Workspace
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions

pytestmark = pytest.mark.soak


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
    with changes_are_due(broker, workspace, monkeypatch) as prepared:
        yield prepared


def test_each_identity_does_its_own_part(
    guarded: Workspace, broker: GuardedRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plan_of_the_reader_alone(guarded, broker, monkeypatch)
    applied = guarded.apply()

    assert_each_did_its_part(guarded, broker, planned, applied)


def test_an_identity_that_may_change_nothing_is_told_each_right_that_it_lacks(
    guarded: Workspace, broker: GuardedRelease, cell: Cell
) -> None:
    guarded.cluster = broker.spec(**{**PARTS, "applier": "reader"})
    guarded.plan()
    before = broker.topics

    applied = guarded.apply()

    assert_each_right_is_named(applied)
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
