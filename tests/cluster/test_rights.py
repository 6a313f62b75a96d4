"""Brokers that grant each identity its own part and no more: the whole loop, and what is said where a right lacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from fixtures.changes_by_identity import (
    PARTS,
    assert_each_did_its_part,
    assert_each_right_is_named,
    changes_are_due,
    plan_of_the_reader_alone,
)
from fixtures.guarded_broker import GuardedBroker
from fixtures.live import look, tree_of, zookeeper
from fixtures.workspace import Workspace
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions


@pytest.fixture
def guarded(
    guarded_broker: GuardedBroker, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workspace]:
    with changes_are_due(guarded_broker, workspace, monkeypatch) as prepared:
        yield prepared


def test_a_plan_takes_the_reader_alone_writes_nothing_and_each_other_does_its_own_part(
    guarded: Workspace, guarded_broker: GuardedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zookeeper(guarded_broker.cluster) as client:
        before = tree_of(client)
        planned = plan_of_the_reader_alone(guarded, guarded_broker, monkeypatch)
        after = tree_of(client)

    applied = guarded.apply()

    assert after == before
    assert_each_did_its_part(guarded, guarded_broker, planned, applied)


def test_an_applier_that_may_not_delete_does_all_else_and_says_what_it_lacks(
    guarded: Workspace, guarded_broker: GuardedBroker
) -> None:
    guarded.cluster = guarded_broker.spec(**{**PARTS, "deleter": "applier"})
    guarded.plan()

    applied = guarded.apply()

    assert applied.status == 6, applied.out + applied.err
    assert "Applied in part: 3 done, 1 failed" in applied.out
    assert (
        "owned.going delete: failed: TOPIC_AUTHORIZATION_FAILED (29): Broker: Topic authorization failed; "
        "User:applier lacks Delete or Describe (a delete needs both) on owned.going (TOP804): grant it, or name a "
        "connection that has it as cluster.kafka.deleter"
    ) in applied.out
    assert look(guarded_broker.cluster).topics.keys() >= {"owned.coming", "owned.going"}

    guarded.cluster = guarded_broker.spec(**PARTS)
    again = guarded.apply()  # the same plan, as the report advises

    assert again.status == 0, again.out + again.err
    assert "1 done, 3 already so" in again.out
    assert "owned.going" not in look(guarded_broker.cluster).topics


def test_an_applier_that_may_change_nothing_sends_nothing_and_says_what_it_lacks(
    guarded: Workspace, guarded_broker: GuardedBroker
) -> None:
    guarded.cluster = guarded_broker.spec(**{**PARTS, "applier": "reader"})
    guarded.plan()
    before = look(guarded_broker.cluster).topics

    applied = guarded.apply()

    assert_each_right_is_named(applied)
    assert "deletes run only when all before succeeded" in applied.out
    assert look(guarded_broker.cluster).topics == before


@pytest.mark.parametrize(
    ("user", "said"),
    [
        pytest.param("stranger", "reassignments: CLUSTER_AUTHORIZATION_FAILED (31)", id="nothing at all"),
        pytest.param("blind", "topic owned.coming: TOPIC_AUTHORIZATION_FAILED (29)", id="no topic"),
    ],
)
def test_a_reader_that_sees_no_topic_is_an_error_and_never_an_empty_cluster(
    guarded: Workspace, guarded_broker: GuardedBroker, user: str, said: str
) -> None:
    guarded.cluster = {**guarded_broker.spec(connection=user), "source": "kafka", "lease": "file"}

    planned = guarded.plan()

    assert (planned.status, planned.out) == (1, "")
    assert f"{said}: Broker: " in planned.err
    assert "the reader needs Describe on the cluster, and Describe and DescribeConfigs on all topics" in planned.err


def test_a_reader_without_rights_beside_zookeeper_plans_with_a_warning_and_its_deletes_are_refused(
    guarded: Workspace, guarded_broker: GuardedBroker
) -> None:
    guarded.cluster = guarded_broker.spec(**{**PARTS, "connection": "stranger"})
    guarded.verify = {"metadata": "1s"}

    planned, applied = guarded.plan(), guarded.apply()

    assert "the reader lacks DescribeConfigs on the cluster (see topicops doctor)" in planned.out, planned.err
    assert "whether a log directory of broker 1 has failed is not known" in planned.out
    assert "traffic: could not be read" in planned.out
    assert applied.status == 6, applied.out + applied.err
    assert "owned.going delete: refused: whether a log directory of broker 1 has failed is not known" in applied.out
    assert "the reader has Describe on the cluster (topicops doctor)" in applied.out
    assert "owned.going" in look(guarded_broker.cluster).topics


def test_groups_that_brokers_may_hide_from_the_reader_count_as_unread(
    guarded: Workspace, guarded_broker: GuardedBroker
) -> None:
    committed = ConsumerGroupTopicPartitions("hidden", [TopicPartition("owned.going", 0, 0)])
    guarded_broker.admin.alter_consumer_group_offsets([committed])["hidden"].result(60)

    groups = {}
    for user in ("reader", "deaf"):
        questions = BrokerQuestions(guarded_broker.properties(user), timeout_s=15.0)
        groups[user] = questions.activity(["owned.going"])["owned.going"].groups
        questions.close()

    assert groups == {"reader": ("hidden",), "deaf": None}
