"""What brokers before 2.3, and the ZooKeeper of their time, do not tell or do not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from confluent_kafka.admin import NewTopic
from kazoo.exceptions import NodeExistsError

from fakes.changes import delete_topic
from fakes.scenarios import MOVES, ClusterUnderTest
from fixtures.cluster import running
from fixtures.live import cluster_spec, create_topics, until, zookeeper
from fixtures.real_scenarios import under_test
from fixtures.workspace import Workspace
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.edges.zookeeper.reader import CONTROLLER, REASSIGNMENT
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.soak]
AUTHORIZER = {
    "authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
RUNS = 20


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One broker of 2.2, which asks its authorizer."""
    with running(tmp_path_factory.mktemp("guarded"), brokers=1, kafka="2.2.2", broker_properties=AUTHORIZER) as cluster:
        yield cluster


def test_groups_are_not_read_where_old_brokers_have_an_authorizer(workspace: Workspace, guarded: LocalCluster) -> None:
    create_topics(guarded.bootstrap_servers, NewTopic("old", 1, 1))
    workspace.cluster = {**cluster_spec(guarded), "kafkaVersion": "2.2"}
    workspace.tombstone("old")
    workspace.policy = {"deleteByName": "allow"}

    with closing(BrokerQuestions({"bootstrap.servers": guarded.bootstrap_servers}, timeout_s=10)) as questions:
        activity = questions.activity(["old"])["old"]
    refused = workspace.plan()
    workspace.policy |= {"deleteActive": "allow"}
    allowed = workspace.plan()

    assert (activity.groups, activity.end_offsets) == (None, {0: 0})
    assert "TOP437: the brokers do not tell, as Kafka's own do since 2.3, whether the reader" in refused.out
    assert "check by hand that no group uses it, then set policy.deleteActive: allow" in refused.out
    assert "1 to delete; 0 blocked" in allowed.out


def test_doctor_looks_at_a_zookeeper_of_3_4_as_often_as_it_is_asked(
    workspace: Workspace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with running(tmp_path_factory.mktemp("zk34"), brokers=1, kafka="1.1.1") as cluster:
        workspace.cluster = {**cluster_spec(cluster), "kafkaVersion": "1.1"}
        ended = [workspace.run("doctor", "--environment", "local") for _ in range(RUNS)]

    assert [end.out + end.err for end in ended if end.status] == []
    assert all("run 1.1" in end.out for end in ended)
    assert not any("broker-versions" in end.out for end in ended)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Brokers of 2.3, the last that keep all moves in one znode."""
    with running(tmp_path_factory.mktemp("three"), kafka="2.3.1") as cluster:
        yield cluster


@pytest.fixture
def moved(three: LocalCluster) -> Iterator[ClusterUnderTest]:
    with under_test(three) as cluster:
        yield cluster


@pytest.mark.parametrize("scenario", MOVES, ids=lambda scenario: scenario.__name__)
def test_old_brokers_move_replicas_as_the_scenarios_say(
    scenario: Callable[[ClusterUnderTest], None], moved: ClusterUnderTest
) -> None:
    scenario(moved)


def test_what_doctor_advises_ends_a_move_whose_topic_was_deleted(
    moved: ClusterUnderTest, three: LocalCluster, workspace: Workspace
) -> None:
    workspace.cluster = {**cluster_spec(three), "kafkaVersion": "2.3"}
    gone, next_one = moved.make("gone"), moved.make("next")
    controller, _, new = moved.brokers

    def is_left() -> bool:
        traces = moved.traces(gone.name)
        return traces.live is None and not traces.has_config_znode and not traces.is_deleting

    moving = moved.moving(gone.name, (controller, new))
    with pytest.raises(AssertionError), moving:  # the move never ends
        moved.admin.delete(delete_topic(gone))
    until(is_left)
    doctor = workspace.run("doctor", "--environment", "local")
    with pytest.raises(NodeExistsError), moved.moving(next_one.name, (controller, new)):
        pass
    with zookeeper(three) as client:
        client.delete(REASSIGNMENT)
        client.delete(CONTROLLER)
    until(lambda: moved.reader.controller_id() is not None)

    assert f"{gone.name} (no such topic)" in doctor.out
    assert "Kafka 2.3 cannot cancel one that cannot end" in doctor.out
    with moved.moving(next_one.name, (controller, new)):
        pass
    assert moved.live(next_one.name).assignment[0] == (controller, new)
