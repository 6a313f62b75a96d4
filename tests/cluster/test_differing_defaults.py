"""Brokers with different defaults: a topic without an override lives by those of each broker that leads it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, OffsetSpec, ResourceType

from fixtures.edited_plans import edit_plan
from fixtures.live import cluster_spec, create_topics, new_admin, spec_by_brokers, until
from fixtures.workspace import Workspace
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import GatedChange
from topicops.model.specs.environment import Risk
from topicops_local.cluster import LocalCluster

WEEK_MS, HOUR_MS = 7 * 24 * 3_600_000, 3_600_000
PARTITIONS = (0, 1, 2)
RECORDS = 100
"""In each partition."""
OLD_S = 3 * 24 * 3600
QUICK_CLEANING = {"log.retention.check.interval.ms": "3000", "log.segment.delete.delay.ms": "1000"}
HOURS = {1: "168", 2: "1", 3: "1"}
"""``log.retention.hours`` of each broker."""


@pytest.fixture(params=["local_cluster", pytest.param("kraft_cluster", marks=pytest.mark.soak)])
def cluster(request: pytest.FixtureRequest, topic: str) -> Iterator[LocalCluster]:
    found: LocalCluster = request.getfixturevalue(request.param)
    yield found
    admin = new_admin(found.bootstrap_servers)
    if topic in admin.list_topics(timeout=10).topics:
        admin.delete_topics([topic])[topic].result(30)
        until(lambda: topic not in admin.list_topics(timeout=10).topics)
    until(lambda: len(admin.list_topics(timeout=10).brokers) == 3)  # one was started again


@pytest.fixture
def topic() -> str:
    return f"differing.{uuid.uuid4().hex[:8]}"


def set_on_broker(cluster: LocalCluster, broker: int, name: str, value: str | None) -> None:
    """A dynamic setting of this broker alone; None takes it away."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(name, value, incremental_operation=operation)
    resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
    admin = new_admin(cluster.bootstrap_servers)
    admin.incremental_alter_configs([resource])[resource].result(30)


@contextmanager
def retention_of(cluster: LocalCluster, by_broker: Mapping[int, int]) -> Iterator[None]:
    """``log.retention.ms`` on single brokers, in force when this begins."""
    try:
        for broker, value in by_broker.items():
            set_on_broker(cluster, broker, "log.retention.ms", str(value))
        until(lambda: defaults_of(cluster) == {b: str(by_broker.get(b, WEEK_MS)) for b in (1, 2, 3)})
        yield
    finally:
        for broker in by_broker:
            set_on_broker(cluster, broker, "log.retention.ms", None)
        until(lambda: set(defaults_of(cluster).values()) == {str(WEEK_MS)})


def defaults_of(cluster: LocalCluster, config: str = "retention.ms") -> dict[int, str]:
    questions = BrokerQuestions({"bootstrap.servers": cluster.bootstrap_servers}, timeout_s=10.0)
    found = questions.broker_defaults()
    questions.close()
    return {b: given if isinstance(given, str) else given[config] for b, given in found.items()}


def with_old_records(cluster: LocalCluster, topic: str) -> None:
    """The topic with an override of a week, and records of three days ago."""
    new = NewTopic(topic, len(PARTITIONS), 3, config={"retention.ms": str(WEEK_MS)})
    create_topics(cluster.bootstrap_servers, new)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    written_ms = int((time.time() - OLD_S) * 1000)
    for partition in PARTITIONS:
        for _ in range(RECORDS):
            producer.produce(topic, b"paid", partition=partition, timestamp=written_ms)
    assert producer.flush(60) == 0


def low_watermarks(cluster: LocalCluster, topic: str) -> list[int]:
    asked = {TopicPartition(topic, p): OffsetSpec.earliest() for p in PARTITIONS}  # type: ignore[no-untyped-call]
    admin = new_admin(cluster.bootstrap_servers)
    answers = admin.list_offsets(asked)
    return [answers[TopicPartition(topic, p)].result(30).offset for p in PARTITIONS]


def without_override(cluster: LocalCluster, workspace: Workspace, topic: str) -> Workspace:
    """The workspace whose file of the topic no longer has the override, which ``unlistedConfigs`` removes."""
    workspace.cluster = spec_by_brokers(cluster) if cluster.status().kraft else cluster_spec(cluster)
    workspace.policy |= {"unlistedConfigs": "remove", "unattended": "risky"}
    workspace.topic(topic, partitions=len(PARTITIONS))
    return workspace


def only_change(live: Workspace) -> GatedChange:
    return edit_plan(live.folder / "plan.json", lambda plan: plan).changes[0]


def test_removing_an_override_is_destructive_where_one_broker_keeps_records_for_a_shorter_time(
    cluster: LocalCluster, workspace: Workspace, topic: str
) -> None:
    with_old_records(cluster, topic)
    live = without_override(cluster, workspace, topic)
    with retention_of(cluster, {2: HOUR_MS, 3: HOUR_MS}):
        ended = live.plan()
        found = only_change(live)

        assert (found.change.risk, found.gate) == (Risk.DESTRUCTIVE, GateWord.HELD), ended.out
        shown = "604800000 (7d, default of broker 1), 3600000 (1h, default of brokers 2, 3)"
        assert shown in ended.out
        assert live.apply().status == 3
        found_by_doctor = live.run("doctor", "--environment", "local").out
        assert "log.retention.hours=168 on broker 1, log.retention.ms=3600000 on brokers 2, 3" in found_by_doctor
    assert low_watermarks(cluster, topic) == [0, 0, 0]


def test_a_default_that_changed_on_one_broker_after_the_plan_stops_the_change(
    cluster: LocalCluster, workspace: Workspace, topic: str
) -> None:
    with_old_records(cluster, topic)
    live = without_override(cluster, workspace, topic)
    assert live.plan().status == 0
    assert only_change(live).gate is GateWord.RUN

    with retention_of(cluster, {3: HOUR_MS}):
        ended = live.apply()

    assert ended.status == 4, ended.out + ended.err
    assert "was 604800000 when the plan was made, and is 604800000 on brokers 1, 2, 3600000 on broker 3 now" in (
        ended.out + ended.err
    )


def test_a_broker_that_does_not_answer_may_have_any_default(
    cluster: LocalCluster, workspace: Workspace, topic: str
) -> None:
    with_old_records(cluster, topic)
    live = without_override(cluster, workspace, topic)
    silent = next(broker for broker in HOURS if broker != cluster.status().controller)
    cluster.pause(silent)
    try:
        ended = live.plan()
    finally:
        cluster.resume(silent)
        until(lambda: set(defaults_of(cluster).values()) == {str(WEEK_MS)})
    found = only_change(live)

    assert (found.change.risk, found.gate) == (Risk.DESTRUCTIVE, GateWord.HELD), ended.out
    assert f"(default of broker {silent}, not known)" in ended.out


@pytest.mark.soak
def test_no_record_goes_where_the_files_of_brokers_differ(cluster_home: Path, workspace: Workspace, topic: str) -> None:
    """What the plan holds would cost the records: once a person removes the override, they go within seconds."""
    cluster = LocalCluster.up(cluster_home, broker_properties=QUICK_CLEANING)
    for broker, hours in HOURS.items():
        cluster.stop_broker(broker)
        cluster.start_broker(broker, broker_properties={**QUICK_CLEANING, "log.retention.hours": hours})
    until(lambda: set(defaults_of(cluster).values()) == {str(WEEK_MS), str(HOUR_MS)})
    with_old_records(cluster, topic)
    live = without_override(cluster, workspace, topic)

    live.plan()
    live.apply()
    time.sleep(45)

    assert low_watermarks(cluster, topic) == [0, 0, 0]
    entry = ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = new_admin(cluster.bootstrap_servers)
    admin.incremental_alter_configs([resource])[resource].result(30)
    until(lambda: RECORDS in low_watermarks(cluster, topic))
