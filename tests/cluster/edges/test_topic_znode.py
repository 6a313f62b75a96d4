"""The plan's estimate of a topic's znode against what the broker and the controller write."""

import uuid

from fakes.builders import NOW, desired_topic, environment, round_robin, snapshot
from fakes.changes import create_topic, expand_topic
from fixtures.live import look, new_admin, zookeeper
from topicops.edges.kafka.admin import KafkaAdmin
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.ports import AnswerKind
from topicops.steps.planning.blocking import Situation, estimated_znode_bytes
from topicops_local.cluster import LocalCluster


def test_a_large_assignment_takes_as_many_bytes_as_the_plan_says(local_cluster: LocalCluster) -> None:
    topic = f"znode-size.{uuid.uuid4().hex[:8]}"
    properties = {"bootstrap.servers": local_cluster.bootstrap_servers}
    admin, rows = KafkaAdmin(properties), list(round_robin(112).values())
    try:
        (answer,) = admin.create([create_topic(topic, *rows[:101])])
        assert answer.kind is AnswerKind.ACCEPTED
        created = look(local_cluster).topics[topic]
        assert_close(estimate(topic, None, 101), znode_bytes(local_cluster, topic))
        (answer,) = admin.expand([expand_topic(created, *rows[101:])])
        assert answer.kind is AnswerKind.ACCEPTED
        assert_close(estimate(topic, created, 112), znode_bytes(local_cluster, topic))
    finally:
        client = new_admin(properties["bootstrap.servers"])
        client.delete_topics([topic])[topic].result(30)
        admin.close()


def estimate(topic: str, live: LiveTopic | None, partitions: int) -> int:
    situation = Situation(
        desired=desired_topic(topic, partitions),
        topic=live,
        live=snapshot(),
        environment=environment(),
        now=NOW,
        names_by_folded={},
    )
    return estimated_znode_bytes(situation)


def znode_bytes(cluster: LocalCluster, topic: str) -> int:
    with zookeeper(cluster) as client:
        return len(client.get(f"/brokers/topics/{topic}")[0])


def assert_close(estimated: int, written: int) -> None:
    """Never below, and above by no more than the frame is rounded up."""
    assert written <= estimated <= written + 40
