"""Deletes on real brokers where this host's clock is wrong, and of topics that retention has emptied."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from fixtures.cluster import running
from fixtures.live import cluster_spec, create_topics, new_admin, spec_by_brokers, until
from fixtures.workspace import Workspace
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.edges.kafka.reader import KafkaReader
from topicops.edges.zookeeper.lease import ZooKeeperLease
from topicops.model.plans.plan import NO_RECORD, TopicActivity
from topicops.model.ports import Clock
from topicops.steps.clocks import ahead_of
from topicops_local.cluster import LocalCluster

CLOCKS = ("topicops.model.ports", "topicops.flow.runs.run", "topicops.cli.apply")
"""The modules that ask for this host's time where a plan is applied."""
OFTEN = {"log.retention.check.interval.ms": "300", "log.initial.task.delay.ms": "300"}
RECORDS = 100
LATER = {"approvalLasts": "10d", "restsFor": "24h"}
ALONE = {"approvals": ["parameter"], "authorApproves": "destructive"}
"""In production one person approves alone only if the file says so."""

Shift = Callable[[timedelta], None]


@pytest.fixture
def shift(monkeypatch: pytest.MonkeyPatch) -> Shift:
    """Sets this host's clock wrong, for our own process alone."""

    def by(ahead: timedelta) -> None:
        class Wrong(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
                return datetime.now(tz) + ahead

        for module in CLOCKS:
            monkeypatch.setattr(f"{module}.datetime", Wrong)

    return by


@pytest.fixture(params=["zookeeper", pytest.param("kraft", marks=pytest.mark.soak)])
def live(workspace: Workspace, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """With the topic ``clocks.busy``, which has a record of now, and its tombstone."""
    cluster: LocalCluster = request.getfixturevalue(
        "local_cluster" if request.param == "zookeeper" else "kraft_cluster"
    )
    workspace.cluster = spec_by_brokers(cluster) if request.param == "kraft" else cluster_spec(cluster)
    make(cluster, "clocks.busy")
    workspace.tombstone("clocks.busy")
    workspace.policy = {"restsFor": "0s"}
    workspace.plan()
    workspace.policy = LATER
    yield workspace
    remove(cluster, "clocks.busy")


def make(cluster: LocalCluster, name: str, *, age: timedelta = timedelta(0), **configs: str) -> None:
    def is_made() -> bool:
        """A topic of this name that was deleted a moment ago may still be on its way out."""
        try:
            create_topics(cluster.bootstrap_servers, NewTopic(name, 1, 1, config=configs))
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return False
        return True

    until(is_made, timeout_s=30)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    written_ms = int((datetime.now(UTC) - age).timestamp() * 1000)
    for number in range(RECORDS):
        producer.produce(name, b"value", key=str(number).encode(), timestamp=written_ms)
    assert producer.flush(30) == 0


def remove(cluster: LocalCluster, name: str) -> None:
    admin = new_admin(cluster.bootstrap_servers)
    if name in admin.list_topics(timeout=30).topics:
        admin.delete_topics([name])[name].result(30)
        until(lambda: name not in admin.list_topics(timeout=30).topics, timeout_s=30)


def test_a_clock_three_days_ahead_lets_no_topic_rest(live: Workspace, shift: Shift) -> None:
    shift(timedelta(days=3))

    applied = live.approve()

    assert applied.status == 4, applied.out + applied.err
    assert " ahead of that of " in applied.out + applied.err
    assert "TOP807" in applied.out + applied.err


def test_a_clock_three_days_behind_is_named_when_a_topic_is_to_be_deleted(live: Workspace, shift: Shift) -> None:
    live.policy = {**LATER, "restsFor": "1s"}
    time.sleep(1.0)
    shift(timedelta(days=-3))

    applied = live.approve()

    assert applied.status == 4, applied.out + applied.err
    assert " behind that of " in applied.out + applied.err
    assert "TOP807" in applied.out + applied.err


def test_an_approval_lasts_no_longer_by_a_clock_that_is_wrong(live: Workspace, shift: Shift) -> None:
    live.policy = {"restsFor": "24h", "approvalLasts": "24h"}
    shift(timedelta(days=3))

    applied = live.approve()

    assert applied.status != 0
    assert "an approval lasts 24 h" in applied.out + applied.err
    assert "TOP807" in applied.out + applied.err


def test_clocks_that_agree_disturb_nothing(live: Workspace) -> None:
    live.policy = {**LATER, "restsFor": "1s"}
    time.sleep(1.2)

    applied = live.approve()

    assert applied.status == 0, applied.out + applied.err
    assert "TOP807" not in applied.out + applied.err


def test_the_lease_and_the_quorum_tell_the_servers_time(
    local_cluster: LocalCluster, kraft_cluster: LocalCluster
) -> None:
    with ZooKeeperLease(local_cluster.zookeeper_hosts, run="r", operation="test") as lease:
        by_lease = lease.server_time()
    with KafkaReader({"bootstrap.servers": kraft_cluster.bootstrap_servers}) as reader:
        by_quorum = reader.server_time()
    with KafkaReader({"bootstrap.servers": local_cluster.bootstrap_servers}) as reader:
        of_brokers = reader.server_time()

    assert by_lease is not None
    assert by_quorum is not None
    for told in (by_lease, by_quorum):
        assert abs(ahead_of(told, Clock())) < timedelta(milliseconds=100)
        assert abs(datetime.now(UTC) - told.at) < timedelta(minutes=1)
    assert of_brokers is None


def test_doctor_and_a_plan_compare_this_host_with_the_quorum(live: Workspace, shift: Shift) -> None:
    if live.cluster.get("source") != "kafka":
        pytest.skip("ZooKeeper tells its time to nobody who only reads")
    live.policy = {}
    shift(timedelta(days=3))

    examined = live.run("doctor", "--environment", "local")
    live.policy = LATER
    planned = live.plan()

    assert "TOP807" in examined.out
    assert "ahead of that of the KRaft controller" in examined.out
    assert "topic.clocks.busy is blocked" in planned.out
    assert "TOP409: its last record is of 20" in planned.out
    assert "TOP807" in planned.out


def test_production_deletes_no_topic_with_records_where_no_server_tells_its_time(
    workspace: Workspace, local_cluster: LocalCluster
) -> None:
    workspace.cluster = {
        "class": "production",
        "id": local_cluster.cluster_id,
        "source": "kafka",
        "kafka": {"bootstrapServers": local_cluster.bootstrap_servers},
        "lease": "none",
    }
    workspace.policy = dict(ALONE)
    make(local_cluster, "clocks.old", age=timedelta(days=2))
    workspace.tombstone("clocks.old")

    planned = workspace.plan()
    refused = workspace.approve()
    workspace.policy = {**ALONE, "restsFor": "0s"}
    applied = workspace.approve()

    assert "no server tells its time" in planned.out
    assert (refused.status, applied.status) == (4, 0), refused.out + applied.out + applied.err
    assert "no server tells its time" in refused.out + refused.err
    assert "policy.restsFor: 0s compares the end offsets alone" in refused.out + refused.err


@pytest.fixture(scope="module")
def hasty(fast_folder: Path) -> Iterator[LocalCluster]:
    """One broker that looks for what retention may take several times a second."""
    with running(fast_folder / "hasty", brokers=1, broker_properties=OFTEN) as cluster:
        yield cluster


def activity(cluster: LocalCluster, topic: str) -> TopicActivity:
    with closing(BrokerQuestions({"bootstrap.servers": cluster.bootstrap_servers}, timeout_s=15)) as questions:
        return questions.activity([topic])[topic]


@pytest.mark.parametrize(
    ("configs", "kept_ms"),
    [
        pytest.param({"retention.ms": "1000"}, 1000, id="by age"),
        pytest.param(
            {"retention.ms": "1000", "cleanup.policy": "compact,delete"},
            1000,
            id="compacted, and by age",
            marks=pytest.mark.soak,
        ),
        pytest.param({"retention.bytes": "0"}, None, id="by size"),
    ],
)
def test_an_emptied_topic_counts_as_in_use_while_its_last_record_may_be_young(
    workspace: Workspace, hasty: LocalCluster, configs: dict[str, str], kept_ms: int | None
) -> None:
    name = f"emptied.{time.time_ns()}"
    workspace.cluster = {**cluster_spec(hasty), "class": "production", "kafkaVersion": "3.9"}
    make(hasty, name, **configs)
    until(lambda: activity(hasty, name).last_record_ms == NO_RECORD, timeout_s=60)
    workspace.tombstone(name)
    workspace.policy = {**ALONE, "restsFor": "0s"}
    workspace.plan()
    workspace.policy = {**ALONE, "restsFor": "24h"}

    applied = workspace.approve()
    planned = workspace.plan()

    found = activity(hasty, name)
    assert (found.end_offsets, found.emptied, found.kept_ms) == ({0: RECORDS}, (0,), kept_ms)
    assert applied.status == 4, applied.out + applied.err
    said = "holds none of its records any more" if kept_ms else "had records, and the brokers tell the time of none"
    assert f"partition 0 {said}" in applied.out + applied.err
    assert f"topic.{name} is blocked" in planned.out
    assert "TOP409" in planned.out


def test_a_topic_emptied_by_a_retention_that_is_long_enough_rests(workspace: Workspace, hasty: LocalCluster) -> None:
    workspace.cluster = cluster_spec(hasty)
    make(hasty, "emptied.long", **{"retention.ms": "3000"})
    until(lambda: activity(hasty, "emptied.long").last_record_ms == NO_RECORD, timeout_s=60)
    workspace.tombstone("emptied.long")
    workspace.policy = {"restsFor": "2s"}
    workspace.plan()

    applied = workspace.approve()

    assert applied.status == 0, applied.out + applied.err


def test_the_time_of_the_last_record_is_known_after_records_were_deleted_by_hand(hasty: LocalCluster) -> None:
    make(hasty, "emptied.by-hand")
    before = activity(hasty, "emptied.by-hand")
    admin, end = new_admin(hasty.bootstrap_servers), TopicPartition("emptied.by-hand", 0, RECORDS)
    admin.delete_records([end])[end].result(30)

    found = activity(hasty, "emptied.by-hand")

    assert (found.last_record_ms, found.emptied) == (before.last_record_ms, ())
