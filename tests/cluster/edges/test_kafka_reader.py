"""The reader of brokers against the reader of ZooKeeper, on one live cluster: what both can know is the same."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from confluent_kafka.admin import NewTopic
from kafka.protocol.admin import AlterPartitionReassignmentsRequest

from fixtures.live import create_topics, look, new_admin, until
from fixtures.workspace import Workspace
from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.questions.broker_views import BrokerViews
from topicops.edges.kafka.questions.cluster import quorum_of
from topicops.edges.kafka.reader import ClusterHeader, Description, KafkaReader
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.model.cluster.snapshot import Broker, ClusterSnapshot, LiveTopic, PartitionState, TopicTraces
from topicops.model.errors import ClusterError, ClusterUnreachableError, UsageError
from topicops.model.ports import BrokerView
from topicops.model.specs.topic_config import canonical_overrides
from topicops_local.cluster import LocalCluster

CONVERGENCE_S = 30.0
CONFIGS = {"retention.ms": "3600000", "cleanup.policy": "compact, delete", "min.insync.replicas": "2"}


@pytest.fixture
def properties(local_cluster: LocalCluster) -> dict[str, str]:
    return {"bootstrap.servers": local_cluster.bootstrap_servers}


@pytest.fixture
def topics(local_cluster: LocalCluster, properties: dict[str, str]) -> Iterator[list[str]]:
    """Many of one partition, in more than one request; one of several partitions with overrides; one on broker 2."""
    prefix = f"k-snapshot.{uuid.uuid4().hex[:8]}"
    new = [
        *(NewTopic(f"{prefix}.many-{n:03}", 1, 1) for n in range(20)),
        NewTopic(f"{prefix}.wide", 5, 3, config=CONFIGS),
        NewTopic(f"{prefix}.lone", 1, replica_assignment=[[2]]),
    ]
    until(lambda: len(look(local_cluster).brokers) == 3)  # one that was paused may have lost its session
    create_topics(properties["bootstrap.servers"], *new)
    names = [topic.topic for topic in new]
    yield names
    # A client of its own: one from before a broker stopped may go on asking it.
    admin = new_admin(properties["bootstrap.servers"])
    for future in admin.delete_topics(names).values():
        future.result(60)


def by_zookeeper(cluster: LocalCluster) -> ClusterSnapshot:
    with ZooKeeperReader(cluster.zookeeper_hosts) as reader:
        return reader.snapshot(states=True)


def by_brokers(properties: Mapping[str, str]) -> ClusterSnapshot:
    with KafkaReader(properties) as reader:
        return reader.snapshot(states=True)


def as_brokers_know(found: ClusterSnapshot) -> ClusterSnapshot:
    """Return a snapshot without what only one of the two sources knows."""
    return replace(
        found,
        source="kafka",
        chroot="",
        controller_epoch=None,
        deleting={},
        orphan_configs=frozenset(),
        broker_defaults=None,
        unknown=frozenset(),
        brokers={id_: _broker(broker) for id_, broker in found.brokers.items()},
        topics={name: _topic(topic) for name, topic in found.topics.items() if name not in found.deleting},
    )


def _broker(broker: Broker) -> Broker:
    hosts = tuple(text.rpartition("/")[2] for text in broker.endpoints)
    return replace(broker, epoch=None, protocols=(), endpoints=hosts)


def _topic(topic: LiveTopic) -> LiveTopic:
    states = {p: _state(state) for p, state in (topic.states or {}).items()}
    return replace(topic, czxid=None, mzxid=None, overrides=canonical_overrides(topic.overrides), states=states)


def _state(state: PartitionState) -> PartitionState:
    return replace(state, isr=tuple(sorted(state.isr)), leader_epoch=None, controller_epoch=None, version=None)


def both_settled(cluster: LocalCluster, properties: Mapping[str, str]) -> tuple[ClusterSnapshot, ClusterSnapshot]:
    """ZooKeeper's and the brokers' snapshot once they agree, or as they are in the end: brokers follow by moments."""
    deadline = time.monotonic() + CONVERGENCE_S
    while True:
        pair = as_brokers_know(by_zookeeper(cluster)), as_brokers_know(by_brokers(properties))
        if pair[0] == pair[1] or time.monotonic() > deadline:
            return pair
        time.sleep(0.2)


def test_the_two_readers_give_the_same_snapshot(
    local_cluster: LocalCluster, properties: dict[str, str], topics: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topicops.edges.kafka.reader.TOPICS_PER_REQUEST", 7)

    expected, found = both_settled(local_cluster, properties)

    assert found == expected
    assert set(topics) <= found.topics.keys()
    wide = found.topics[topics[-2]]
    assert wide.overrides == canonical_overrides(CONFIGS)
    assert wide.replication_factors == {3}


def test_the_two_readers_agree_while_a_broker_is_down(
    local_cluster: LocalCluster, properties: dict[str, str], topics: list[str]
) -> None:
    local_cluster.stop_broker(2)
    try:
        expected, found = both_settled(local_cluster, properties)
    finally:
        local_cluster.start_broker(2)

    assert found == expected
    assert sorted(found.brokers) == [1, 3]
    lone = (found.topics[topics[-1]].states or {})[0]
    assert (lone.leader, lone.isr) == (-1, (2,))


def test_the_two_readers_agree_on_a_running_reassignment(
    local_cluster: LocalCluster, properties: dict[str, str], topics: list[str]
) -> None:
    """A broker that is paused and still registered can be given a replica, and does not fetch it."""
    controller = by_zookeeper(local_cluster).controller_id
    paused = next(broker for broker in (1, 3) if broker != controller)
    others = [f"127.0.0.1:{port}" for broker, port in local_cluster.broker_ports.items() if broker != paused]
    awake = {"bootstrap.servers": ",".join(others)}
    local_cluster.pause(paused)
    try:
        _reassign(awake, topics[-1], (paused,))
        expected, found = both_settled(local_cluster, awake)
    finally:
        local_cluster.resume(paused)

    moving = found.topics[topics[-1]]
    assert (moving.adding, moving.removing) == ({0: (paused,)}, {0: (2,)})
    assert moving == expected.topics[topics[-1]]


def test_what_brokers_cannot_tell_is_none_or_named(local_cluster: LocalCluster, properties: dict[str, str]) -> None:
    with KafkaReader(properties) as reader:
        found, epoch = reader.snapshot(), reader.controller_epoch()

    assert (found.source, found.chroot) == ("kafka", "")
    assert (found.controller_epoch, epoch, quorum_of(properties)) == (None, None, None)
    assert found.unknown == {"deleting", "orphan_configs"}
    assert all(topic.czxid is None and topic.states is None for topic in found.topics.values())
    assert [row.value for row in found.default_of("min.insync.replicas")] == ["1"]


def test_a_plan_from_the_brokers_of_a_zookeeper_cluster_says_what_it_cannot_see(
    local_cluster: LocalCluster, topics: list[str], workspace: Workspace
) -> None:
    workspace.cluster = {
        "class": "sandbox",
        "source": "kafka",
        "kafka": {"bootstrapServers": local_cluster.bootstrap_servers},
        "lease": "none",
    }
    workspace.topic(topics[-2], partitions=6)

    planned = workspace.plan("--only", topics[-2])

    assert planned.status == 0, planned.err
    assert "Plan: 1 to create" not in planned.out
    assert "1 to expand" in planned.out
    assert "deletion markers, and configs without a topic, are not known" in planned.out


class Restless(KafkaReader):
    """A reader of a cluster in which something changes at every read."""

    reads = 0
    headers = 0
    is_topic_restless = is_header_restless = False

    def _descriptions(self, names: Sequence[str]) -> dict[str, Description]:
        self.reads += self.is_topic_restless
        found = super()._descriptions(names)
        return {
            n: d._replace(topic_id=f"{d.topic_id}{self.reads if n.endswith('wide') else ''}") for n, d in found.items()
        }

    def _header(self) -> ClusterHeader:
        self.headers += self.is_header_restless
        return super()._header()._replace(controller_id=self.headers)


def test_a_topic_that_changes_at_every_read_is_marked_and_the_others_are_not(
    properties: dict[str, str], topics: list[str]
) -> None:
    reader = Restless(properties)
    reader.is_topic_restless = True

    with reader:
        found = reader.snapshot()

    assert {name for name in topics if found.topics[name].unstable} == {topics[-2]}


def test_a_cluster_that_keeps_changing_gives_no_snapshot(properties: dict[str, str], topics: list[str]) -> None:
    reader = Restless(properties)
    reader.is_header_restless = True

    with reader, pytest.raises(ClusterError, match="changed 5 times while the topics were read"):
        reader.snapshot()


class LateBroker:
    """Broker 2 has not heard of any topic for the first ``late`` reads."""

    def __init__(self, views: BrokerViews, late: int) -> None:
        self.views_of_all, self.late, self.reads = views, late, 0

    def views(self, brokers: Sequence[int], topics: Sequence[str]) -> Mapping[int, BrokerView | str]:
        self.reads += 1
        found = self.views_of_all.views(brokers, topics)
        late = {2: BrokerView(topics={}, brokers=frozenset(brokers))} if self.reads <= self.late else {}
        return {**found, **late}

    def close(self) -> None:
        self.views_of_all.close()


@pytest.mark.parametrize(
    ("late", "reads", "unstable"),
    [
        pytest.param(0, 1, False, id="no broker"),
        pytest.param(2, 3, False, id="one"),
        pytest.param(99, 10, True, id="for ever"),
    ],
)
def test_traces_are_read_until_no_broker_is_late(
    properties: dict[str, str],
    topics: list[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    late: int,
    reads: int,
    unstable: bool,
) -> None:
    all_heard(properties, topics)
    broker = LateBroker(BrokerViews(properties), late)
    with KafkaReader(properties) as reader:
        monkeypatch.setattr(reader, "_views", broker)

        live = reader.traces([topics[-2]])[topics[-2]].live

    assert live is not None
    assert (live.unstable, broker.reads) == (unstable, reads)


def test_a_topic_that_the_asked_broker_does_not_know_and_others_do_is_not_taken_for_absent(
    properties: dict[str, str], topics: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    all_heard(properties, topics)
    with KafkaReader(properties) as reader:
        monkeypatch.setattr(reader, "_describe_topics", lambda _client, _names: {})

        live = reader.traces([topics[-2]])[topics[-2]].live

    assert live is not None
    assert (live.unstable, live.partitions) == (True, 5)


def all_heard(properties: Mapping[str, str], topics: Sequence[str]) -> None:
    """Wait until every broker knows every topic."""
    views = BrokerViews(properties)
    deadline = time.monotonic() + CONVERGENCE_S
    while time.monotonic() < deadline:
        found = views.views((1, 2, 3), topics).values()
        if all(isinstance(view, BrokerView) and view.topics.keys() >= set(topics) for view in found):
            break
    views.close()


def test_traces_have_an_entry_for_each_name_and_make_no_topic(
    local_cluster: LocalCluster, properties: dict[str, str], topics: list[str]
) -> None:
    unknown = f"k-snapshot.unknown.{uuid.uuid4().hex[:8]}"

    with KafkaReader(properties) as reader:
        found = reader.traces([unknown, topics[-2]], states=True)
        again = reader.traces([unknown])

    live = found[topics[-2]].live
    assert live is not None
    assert live.identity == live.topic_id
    assert len(live.states or {}) == 5
    assert found[unknown] == again[unknown] == TopicTraces(live=None, has_config_znode=False, is_deleting=False)
    assert unknown not in by_zookeeper(local_cluster).topics


def test_no_broker_is_an_error_with_the_reason() -> None:
    no_broker = KafkaReader({"bootstrap.servers": "127.0.0.1:1"}, timeout_s=0.5)
    with pytest.raises(ClusterUnreachableError, match=r"127\.0\.0\.1:1: .*Connection refused"), no_broker as reader:
        reader.snapshot()


def test_an_unknown_property_is_an_error_of_usage(properties: dict[str, str]) -> None:
    unusable = KafkaReader(properties | {"no.such.property": "1"})
    with unusable as reader, pytest.raises(UsageError, match=r"no\.such\.property"):
        reader.cluster_id()


def _reassign(properties: Mapping[str, str], topic: str, replicas: tuple[int, ...]) -> None:
    """Ask for other replicas of partition 0, and do not wait for them."""
    connections = BrokerConnections(properties)
    row = AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition(
        partition_index=0, replicas=list(replicas)
    )
    asked = AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=[row])
    controller = connections.controller()
    reply = connections.ask({controller: AlterPartitionReassignmentsRequest(timeout_ms=30_000, topics=[asked])})
    connections.close()
    answer = reply[controller]
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0)
