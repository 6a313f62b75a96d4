"""What three real brokers say of themselves, with one of them paused, and what nobody creates by asking.

What each broker offers, by its own ApiVersions answer, and which release it so shows.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]  # its stub re-exports without saying so
from kafka.protocol.admin import DescribeLogDirsRequest
from kafka.protocol.metadata import MetadataRequest

from fakes.changes import create_topic
from fixtures.live import look, new_admin, until
from fixtures.proxy import BrokerProxies
from topicops.edges.kafka.admin import KafkaAdmin
from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.edges.kafka.questions.broker_views import BrokerViews
from topicops.model.cluster.snapshot import DirectoriesByBroker, LogDirectories
from topicops.model.errors import ClusterUnreachableError
from topicops.model.plans.plan import NO_RECORD, GroupUse, TopicActivity
from topicops.model.ports import BrokerLogs, BrokerView, LogQuestions, PartitionView
from topicops.model.release import USUAL
from topicops_local.cluster import LocalCluster

NOBODY = {"bootstrap.servers": "127.0.0.1:1"}
EVERYONE = (1, 2, 3)


@pytest.fixture
def properties(local_cluster: LocalCluster) -> dict[str, str]:
    return {"bootstrap.servers": local_cluster.bootstrap_servers}


@pytest.fixture
def topic(properties: dict[str, str]) -> Iterator[str]:
    """Yield a topic of two partitions, known to every broker."""
    name = f"k-reader.{uuid.uuid4().hex[:8]}"
    admin, client = KafkaAdmin(properties), new_admin(properties["bootstrap.servers"])
    admin.create([create_topic(name, (1, 2), (2, 3))])
    views = BrokerViews(properties)
    until(lambda: all(_knows(view, name) for view in views.views(EVERYONE, [name]).values()))
    yield name
    views.close()
    admin.close()
    client.delete_topics([name])[name].result(30)


@pytest.fixture
def paused_broker(local_cluster: LocalCluster, properties: dict[str, str]) -> Iterator[int]:
    """Broker 2, which accepts connections and answers nothing; it is back in every view afterwards."""
    local_cluster.pause(2)
    try:
        yield 2
    finally:
        local_cluster.resume(2)
        views = BrokerViews(properties)
        until(lambda: all(_sees(view, EVERYONE) for view in views.views(EVERYONE, []).values()))
        views.close()


def test_each_broker_gives_its_own_view(properties: dict[str, str], topic: str, local_cluster: LocalCluster) -> None:
    views = BrokerViews(properties)

    found = views.views(EVERYONE, [topic])
    views.close()

    partitions = {
        0: PartitionView(leader=1, replicas=(1, 2), isr=(1, 2)),
        1: PartitionView(leader=2, replicas=(2, 3), isr=(2, 3)),
    }
    topic_id = look(local_cluster).topics[topic].topic_id
    assert topic_id is not None
    view = BrokerView(
        topics={topic: partitions},
        brokers=frozenset(EVERYONE),
        cluster_id=local_cluster.cluster_id,
        topic_ids={topic: topic_id},
    )
    assert found == dict.fromkeys(EVERYONE, view)


def test_each_broker_tells_of_its_own_logs_and_of_what_it_leads(properties: dict[str, str], topic: str) -> None:
    everything = LogQuestions(held={topic: (0, 1, 2)}, led={topic: {0: 0, 1: 0}})
    with closing(BrokerViews(properties)) as views:
        logs = views.logs(dict.fromkeys(EVERYONE, everything))

    assert all(isinstance(found, BrokerLogs) for found in logs.values())
    told = {broker: found for broker, found in logs.items() if isinstance(found, BrokerLogs)}
    assert {broker: found.held.get(topic) for broker, found in told.items()} == {1: {0}, 2: {0, 1}, 3: {1}}
    assert {broker: [*found.unread.get(topic, {})] for broker, found in told.items()} == {1: [1], 2: [0], 3: [0, 1]}
    errors = {error for found in told.values() for error in found.unread[topic].values()}
    assert errors == {"NOT_LEADER_FOR_PARTITION (6)"}


def test_a_leader_of_another_epoch_than_asked_for_does_not_tell_where_its_log_ends(
    properties: dict[str, str], topic: str
) -> None:
    with closing(BrokerViews(properties)) as views:
        logs = views.logs({1: LogQuestions(held={topic: (0,)}, led={topic: {0: 7}})})

    assert isinstance(logs[1], BrokerLogs)
    assert logs[1].unread[topic][0].endswith("(75)")


def test_overrides_are_those_of_the_topic_itself_and_of_an_unknown_one_there_are_none(
    properties: dict[str, str], topic: str, local_cluster: LocalCluster
) -> None:
    unknown = f"k-reader.unknown.{uuid.uuid4().hex[:8]}"
    with closing(BrokerViews(properties)) as views:
        views.views(EVERYONE, [topic])
        told = views.overrides([topic, unknown])

    assert told[topic] == look(local_cluster).topics[topic].overrides
    assert told[unknown] == "the brokers do not give its configs: UNKNOWN_TOPIC_OR_PART (3)"


def test_a_paused_broker_tells_of_no_logs_within_its_time(
    properties: dict[str, str], topic: str, paused_broker: int
) -> None:
    with closing(BrokerViews(properties, timeout_s=1.5)) as views:
        logs = views.logs({paused_broker: LogQuestions(held={topic: (0,)})})

    told = logs[paused_broker]
    assert isinstance(told, str)
    assert told.startswith(f"broker {paused_broker} ")


def test_unknown_topics_are_left_out_and_not_created(properties: dict[str, str], topic: str) -> None:
    unknown = f"k-reader.unknown.{uuid.uuid4().hex[:8]}"
    views, questions = BrokerViews(properties), BrokerQuestions(properties, timeout_s=10.0)

    found = views.views(EVERYONE, [topic, unknown])
    activity = questions.activity([unknown])
    questions.broker_defaults()
    found_again = views.views(EVERYONE, [topic, unknown])
    views.close()

    assert all(_knows(view, topic) and not _knows(view, unknown) for view in (*found.values(), *found_again.values()))
    assert activity[unknown].end_offsets is None
    assert unknown not in new_admin(properties["bootstrap.servers"]).list_topics(timeout=10).topics


def test_broker_that_nobody_knows_gives_a_sentence(properties: dict[str, str]) -> None:
    views = BrokerViews(properties)

    found = views.views([1, 9], [])
    views.close()

    assert isinstance(found[1], BrokerView)
    assert found[9] == "broker 9 is not known to the brokers that answer"


def test_paused_broker_gives_a_sentence_and_holds_no_other_up(
    properties: dict[str, str], topic: str, paused_broker: int
) -> None:
    views = BrokerViews(properties, timeout_s=1.5)

    found = views.views(EVERYONE, [topic])
    views.close()

    assert found[paused_broker] == f"broker {paused_broker} gave no answer in time"
    assert [_knows(found[broker], topic) for broker in EVERYONE if broker != paused_broker] == [True, True]


def test_broker_that_was_paused_is_heard_again_over_the_same_connections(
    local_cluster: LocalCluster, properties: dict[str, str], topic: str
) -> None:
    views = BrokerViews(properties, timeout_s=1.5)
    before = views.views(EVERYONE, [topic])
    local_cluster.pause(3)
    try:
        during = views.views(EVERYONE, [topic])
    finally:
        local_cluster.resume(3)
        until(lambda: all(_sees(view, EVERYONE) for view in views.views(EVERYONE, [topic]).values()))
    views.close()

    assert [_knows(view, topic) for view in before.values()] == [True] * 3
    assert [_knows(view, topic) for view in during.values()] == [True, True, False]


def test_a_paused_broker_gives_no_defaults_and_holds_no_other_up(
    properties: dict[str, str], paused_broker: int
) -> None:
    found = BrokerQuestions(properties, timeout_s=3.0).broker_defaults()

    assert found[paused_broker] == "gave no answer in time"
    others = [given for broker, given in found.items() if broker != paused_broker]
    assert [not isinstance(given, str) and given["min.insync.replicas"] for given in others] == ["1", "1"]


def test_an_address_that_leads_to_another_broker_gives_a_sentence_and_no_answer(
    local_cluster: LocalCluster, topic: str
) -> None:
    with BrokerProxies(tuple(local_cluster.broker_ports.values())) as proxies:
        first = proxies.proxies[0]
        proxies.lead(local_cluster.broker_ports[2], to=first)
        properties = {"bootstrap.servers": first.hosts}
        with (
            closing(BrokerViews(properties, timeout_s=10.0)) as views,
            closing(BrokerQuestions(properties, timeout_s=10.0)) as questions,
        ):
            seen, logs = views.views(EVERYONE, [topic]), views.logs({2: LogQuestions(held={topic: (0,)})})
            defaults, directories = questions.broker_defaults(), questions.log_directories({})
            used = questions.activity([topic])[topic].groups

    sentence = f"broker 2 does not answer itself: {first.hosts} leads to broker 1"
    assert [str(answer)[: len(sentence)] for answer in (seen[2], logs[2], directories[2])] == [sentence] * 3
    assert str(defaults[2]).startswith(sentence.removeprefix("broker 2 "))
    assert [isinstance(seen[broker], BrokerView) for broker in (1, 3)] == [True, True]
    assert used is None, "the groups that broker 2 coordinates are not known"


def test_connection_that_kafka_python_cannot_make_gives_sentences(properties: dict[str, str]) -> None:
    found = BrokerViews(properties | {"security.protocol": "ssl", "ssl.ca.location": "/no/secret.pem"}).views([1], [])

    assert "ssl.ca.location" in str(found[1])
    assert "secret" not in str(found[1])


def test_nobody_there_gives_sentences_and_nothing() -> None:
    found = BrokerViews(NOBODY, timeout_s=1.0).views([1], ["t"])
    questions = BrokerQuestions(NOBODY, timeout_s=0.5)

    assert str(found[1]).startswith("broker 1 cannot be asked: no broker answers: ")
    assert questions.broker_defaults() == {}
    assert questions.activity(["t"]) == {"t": TopicActivity(end_offsets=None, groups=None)}


def test_defaults_are_what_a_topic_without_override_gets(properties: dict[str, str], topic: str) -> None:
    """The brokers' own answer for the topic itself is the judge, for every config they know."""
    found = BrokerQuestions(properties, timeout_s=10.0).broker_defaults()

    effective = _effective_configs(properties, topic)
    assert found.keys() == set(EVERYONE)
    for given in found.values():
        assert not isinstance(given, str)
        assert {name: given[name] for name in effective if name in given} == effective


def test_activity_tells_end_offsets_and_who_consumes(properties: dict[str, str], topic: str) -> None:
    producer = Producer(properties)
    producer.produce(topic, b"one", partition=1, timestamp=1_700_000_000_000)
    assert producer.flush(30) == 0
    committed = _commit(properties, topic)

    found = BrokerQuestions(properties, timeout_s=20.0).activity([topic])

    assert found == {
        topic: TopicActivity(
            end_offsets={0: 0, 1: 1},
            groups=(committed,),
            last_record_ms=1_700_000_000_000,
            group_uses={committed: GroupUse(state="Empty", lag=0)},
        )
    }


def test_each_broker_tells_the_bytes_of_its_logs(properties: dict[str, str], topic: str) -> None:
    producer = Producer(properties)
    producer.produce(topic, bytes(5000), partition=1)
    assert producer.flush(30) == 0

    with closing(BrokerQuestions(properties, timeout_s=20.0)) as questions:
        until(lambda: all(size(questions.log_directories({topic: (0, 1)}), b, topic) > 5000 for b in (2, 3)))
        assert size(questions.log_directories({topic: (0, 1)}), 1, topic) == 0


def size(told: DirectoriesByBroker, broker: int, topic: str) -> int:
    found = told[broker]
    assert isinstance(found, LogDirectories)
    return found.log_bytes[topic]


def test_records_without_a_time_are_not_taken_for_records_that_are_gone(properties: dict[str, str], topic: str) -> None:
    """Clients before 0.10 give their records no time. Kafka 4.0 takes no record of theirs any more."""
    old = Producer(properties | {"api.version.request": "false", "broker.version.fallback": "0.9.0"})
    old.produce(topic, b"one", partition=1)
    assert old.flush(30) == 0

    found = BrokerQuestions(properties, timeout_s=20.0).activity([topic])[topic]

    assert (found.end_offsets, found.last_record_ms) == ({0: 0, 1: 1}, NO_RECORD)
    assert (found.emptied, found.kept_ms) == ((1,), None)


def test_member_without_a_commit_counts_as_a_consumer(properties: dict[str, str], topic: str) -> None:
    group = f"k-reader.member.{uuid.uuid4().hex[:8]}"
    consumer = Consumer(properties | {"group.id": group, "enable.auto.commit": False})
    consumer.subscribe([topic])
    until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()))

    found = BrokerQuestions(properties, timeout_s=20.0).activity([topic])
    consumer.close()

    assert found[topic].groups == (group,)
    assert found[topic].group_uses == {group: GroupUse(state="Stable", lag=None)}
    assert found[topic].last_record_ms == NO_RECORD


def _commit(properties: dict[str, str], topic: str) -> str:
    """Commit an offset of partition 1 in a group without members."""
    group = f"k-reader.commit.{uuid.uuid4().hex[:8]}"
    consumer = Consumer(properties | {"group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(topic, 1, 1)], asynchronous=False)
    consumer.close()
    return group


def _knows(view: BrokerView | str, topic: str) -> bool:
    return isinstance(view, BrokerView) and topic in view.topics


def _sees(view: BrokerView | str, brokers: tuple[int, ...]) -> bool:
    return isinstance(view, BrokerView) and view.brokers == frozenset(brokers)


def _effective_configs(properties: dict[str, str], topic: str) -> dict[str, str]:
    client = new_admin(properties["bootstrap.servers"])
    (future,) = client.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return {name: entry.value for name, entry in future.result(30).items()}


LACKING = {1: {35: -1, 1: 12, 2: 6}, 2: {3: 8}}
"""By broker: one without DescribeLogDirs that looks older than the others; one with Metadata up to version 8."""


@pytest.mark.parametrize("first", [1, 2, 3])
def test_each_broker_speaks_for_itself_whichever_of_them_answered_first(
    local_cluster: LocalCluster, first: int
) -> None:
    ports = local_cluster.broker_ports
    brokers = sorted(ports)
    with BrokerProxies([ports[b] for b in brokers], lacking=lambda place: LACKING.get(brokers[place], {})) as proxies:
        properties = {"bootstrap.servers": proxies.proxies[brokers.index(first)].hosts}
        with closing(BrokerConnections(properties)) as connections:
            known = connections.brokers()
            found = {b: connections.offers(b, DescribeLogDirsRequest) for b in brokers}
            ids = {b: connections.offers(b, MetadataRequest, 10) for b in brokers}
            replies = connections.ask({b: DescribeLogDirsRequest(topics=[]) for b in brokers})

    assert known.keys() == {*brokers}
    assert found == {1: False, 2: True, 3: True}
    assert ids == {1: True, 2: False, 3: True}
    assert {broker for broker, reply in replies.items() if isinstance(reply, str)} == {1}


def test_what_a_silent_broker_offers_is_not_known(local_cluster: LocalCluster) -> None:
    properties = {"bootstrap.servers": local_cluster.bootstrap_servers}
    local_cluster.pause(3)
    try:
        with closing(BrokerConnections(properties, request_timeout_s=1.0)) as connections:
            connections.brokers()
            with pytest.raises(ClusterUnreachableError, match="broker 3 gave no answer in time"):
                connections.offers(3, MetadataRequest)
    finally:
        local_cluster.resume(3)


def test_a_silent_broker_delays_the_answer_of_the_others_by_two_seconds_a_question(local_cluster: LocalCluster) -> None:
    properties = {"bootstrap.servers": local_cluster.bootstrap_servers}
    local_cluster.pause(3)
    try:
        with closing(BrokerQuestions(properties, timeout_s=30.0)) as questions:
            started = time.monotonic()
            releases = questions.releases()
            seconds = time.monotonic() - started
    finally:
        local_cluster.resume(3)

    assert releases == (USUAL, USUAL)
    assert seconds < 8, f"{seconds:.1f} s"
