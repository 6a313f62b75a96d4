"""One script for the brokers of each release: a test is a row of the table in ``docs/reference/kafka-releases.md``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import NewPartitions

from fakes.changes import create_topic
from fixtures.kafka_releases import Brokers, ReleasedCluster, wanted_brokers
from fixtures.live import until
from fixtures.release_table import Cell
from fixtures.workspace import Ended, Workspace
from topicops.edges.kafka.admin import KafkaAdmin
from topicops.model.ports import AnswerKind
from topicops.model.release import CAPPED_MIN_ISR

RUNS_OF_DOCTOR = 5
ROWS = [(1, 2), (2, 3)]
AT_ONCE = {"leaders": "1s", "isr": "1s", "metadata": "1s"}
"""Verify waits no longer: a broker is away."""


@pytest.fixture(scope="module", params=wanted_brokers())
def released(request: pytest.FixtureRequest, fast_folder: Path) -> Iterator[ReleasedCluster]:
    brokers: Brokers = request.param
    with ReleasedCluster.running(brokers, fast_folder / f"release-{brokers.name}") as cluster:
        yield cluster


@pytest.fixture
def cell(request: pytest.FixtureRequest, released: ReleasedCluster, record_property: Callable[..., None]) -> Cell:
    record_property("start_s", round(released.start_s, 1))
    record_property("jars_mb", released.jars_mb)
    return Cell(record_property)


@pytest.fixture
def live(released: ReleasedCluster, cell: Cell, workspace: Workspace) -> Workspace:
    workspace.cluster = released.spec()
    workspace.policy |= {"unattended": "destructive"}
    workspace.verify = {"leaders": "10s", "isr": "10s", "metadata": "10s"}
    return workspace


def plan_in(workspace: Workspace) -> dict[str, list[dict[str, object]]]:
    plan: dict[str, list[dict[str, object]]] = json.loads((workspace.folder / "plan.json").read_text(encoding="utf-8"))
    return plan


def planned(live: Workspace, counted: str) -> None:
    """Make a plan, which has these changes and nothing that is blocked."""
    ended = live.plan()
    assert f"Plan: {counted}; 0 blocked" in ended.out, ended.out + ended.err


def applied(live: Workspace, changes: int) -> None:
    ended = live.apply()
    assert f"Applied and verified: {changes} done." in ended.out, ended.out + ended.err
    assert ended.status == 0


def codes(live: Workspace) -> dict[str, list[str]]:
    """The codes of what the plan blocks, by topic."""
    return {str(blocked["topic"]): blocked["codes"] for blocked in plan_in(live)["blocked"]}  # type: ignore[misc]


def all_said(ended: Ended) -> str:
    return ended.out + ended.err


def test_doctor_tells_the_release_of_the_brokers_each_time(live: Workspace, released: ReleasedCluster) -> None:
    told = [live.run("doctor", "--environment", "local", "--format", "json") for _ in range(RUNS_OF_DOCTOR)]

    assert [ended.status for ended in told] == [0] * RUNS_OF_DOCTOR, all_said(told[0])
    reports = [json.loads(ended.out) for ended in told]
    assert {report["facts"]["brokers"] for report in reports} == {released.releases_by_broker}
    findings = [finding for report in reports for finding in report["findings"]]
    assert [finding for finding in findings if finding["severity"] == "error"] == []
    differing = [finding["message"] for finding in findings if finding["id"] == "broker-versions"]
    assert any("brokers differ in version" in message for message in differing) == bool(released.brokers.newer)
    assert bool(differing) == bool(released.brokers.newer), differing


def test_a_dry_run_of_creates_finds_what_the_brokers_refuse_and_makes_no_topic(
    released: ReleasedCluster, cell: Cell
) -> None:
    good = create_topic("dry.good", *ROWS, configs={"retention.ms": "7200000"})
    bad = create_topic("dry.bad", *ROWS, configs={"retention.ms": "soon"})

    with closing(KafkaAdmin({"bootstrap.servers": released.servers})) as admin:
        answers = admin.validate([good, bad])

    assert answers[0].kind is AnswerKind.ACCEPTED, answers[0].error
    assert answers[1].kind is not AnswerKind.ACCEPTED
    assert "soon" in answers[1].error
    assert not any(name.startswith("dry.") for name in released.topics)


def test_four_topics_are_created_with_their_replicas_and_configs_and_verified(
    live: Workspace, released: ReleasedCluster
) -> None:
    live.topic("new.plain", partitions=3)
    live.topic("new.placed", assignment={0: [1, 2, 3], 1: [2, 3, 1]})
    live.topic("new.set", configs={"retention.ms": "2h", "min.insync.replicas": 2, "cleanup.policy": "delete"})
    live.topic("new.thin", replicationFactor=1, partitions=6, configs={"max.message.bytes": 2000000})

    planned(live, "4 to create, 0 to expand, 0 to configure, 0 to delete")
    applied(live, 4)

    topics = {name: topic for name, topic in released.topics.items() if name.startswith("new.")}
    rows = {str(c["topic"]): c["after"]["assignment"] for c in plan_in(live)["changes"]}  # type: ignore[index]
    assert {name: {str(p): [*row] for p, row in topic.assignment.items()} for name, topic in topics.items()} == rows
    assert {name: dict(topic.overrides) for name, topic in topics.items()} == {
        "new.plain": {},
        "new.placed": {},
        "new.set": {"retention.ms": "7200000", "min.insync.replicas": "2", "cleanup.policy": "delete"},
        "new.thin": {"max.message.bytes": "2000000"},
    }
    again = live.plan("--detailed-exitcode")
    assert (again.status, "No changes." in again.out) == (0, True), all_said(again)


def test_a_topic_gets_more_partitions_and_its_old_ones_stay(live: Workspace, released: ReleasedCluster) -> None:
    released.make("grows", *ROWS, retention_ms="7200000")
    live.topic("grows", partitions=4, replicationFactor=2, configs={"retention.ms": "2h"})

    planned(live, "0 to create, 1 to expand, 0 to configure, 0 to delete")
    applied(live, 1)

    grown = released.topics["grows"]
    assert (grown.partitions, [grown.assignment[p] for p in (0, 1)]) == (4, ROWS)


def test_configs_are_set_changed_and_removed_and_all_others_stay(live: Workspace, released: ReleasedCluster) -> None:
    live.policy |= {"unlistedConfigs": "remove"}
    released.make("turns", *ROWS, retention_ms="7200000", max_message_bytes="2000000", segment_ms="7200000")
    live.topic(
        "turns",
        partitions=2,
        replicationFactor=2,
        configs={"retention.ms": "3h", "segment.ms": "2h", "min.insync.replicas": 2},
    )

    planned(live, "0 to create, 0 to expand, 1 to configure, 0 to delete")
    applied(live, 1)

    assert released.topics["turns"].overrides == {
        "retention.ms": "10800000",
        "segment.ms": "7200000",
        "min.insync.replicas": "2",
    }


def test_an_unused_topic_is_deleted_under_the_usual_policy(live: Workspace, released: ReleasedCluster) -> None:
    released.make("goes", *ROWS, retention_ms="7200000")
    live.tombstone("goes")

    planned(live, "0 to create, 0 to expand, 0 to configure, 1 to delete")
    applied(live, 1)

    assert "goes" not in released.topics


def test_the_delete_of_a_topic_that_was_made_anew_since_the_plan_is_refused(
    live: Workspace, released: ReleasedCluster, cell: Cell
) -> None:
    released.make("remade", *ROWS)
    live.tombstone("remade")
    planned(live, "0 to create, 0 to expand, 0 to configure, 1 to delete")
    released.remove("remade")
    released.make("remade", *ROWS)

    ended = live.apply()

    assert ended.status == 4, all_said(ended)
    assert "identity: planned " in ended.out
    assert "remade" in released.topics
    cell.refused("TOP501")


def test_an_expansion_of_what_was_expanded_by_hand_is_refused_field_by_field(
    live: Workspace, released: ReleasedCluster, cell: Cell
) -> None:
    released.make("grown", *ROWS)
    live.topic("grown", partitions=4, replicationFactor=2)
    planned(live, "0 to create, 1 to expand, 0 to configure, 0 to delete")
    released.admin.create_partitions([NewPartitions("grown", 3)])["grown"].result(60)
    until(lambda: released.topics["grown"].partitions == 3)

    ended = live.apply()

    assert ended.status == 4, all_said(ended)
    assert "partitions: planned 2, live 3" in ended.out
    assert released.topics["grown"].partitions == 3
    cell.refused("TOP501")


def test_imported_topics_have_no_changes(live: Workspace, released: ReleasedCluster) -> None:
    released.make("adopt.plain", *ROWS)
    released.make("adopt.set", *ROWS, retention_ms="604800000", cleanup_policy="compact,delete")

    imported = live.run("import", "--environment", "local", "--owner", "team-tests", "--only", "adopt.*")
    again = live.plan("--only", "adopt.*", "--detailed-exitcode")

    assert imported.status == 0, all_said(imported)
    assert imported.out.splitlines()[-1].startswith("2 topics imported")
    assert (again.status, "No changes." in again.out) == (0, True), all_said(again)


def test_a_topic_is_verified_as_healthy_where_producers_may_write_and_only_there(
    live: Workspace, released: ReleasedCluster, cell: Cell
) -> None:
    released.make("strict", *ROWS, min_insync_replicas="3")

    error = error_of_write(released, "strict")
    verified = live.run("verify", "--environment", "local")
    released.remove("strict")

    if released.release >= CAPPED_MIN_ISR:
        assert (error, verified.status) == (None, 0), all_said(verified)
        cell.ok("healthy, and producers may write")
    else:
        assert (error, verified.status) == (KafkaError.NOT_ENOUGH_REPLICAS, 7), all_said(verified)
        cell.ok("degraded, and producers are refused")


def error_of_write(released: ReleasedCluster, topic: str) -> int | None:
    """The code that one record with ``acks=all`` is answered with; None where it was written."""
    producer = Producer(
        {"bootstrap.servers": released.servers, "acks": "all", "retries": "0", "message.timeout.ms": "20000"}
    )
    errors: list[KafkaError | None] = []
    producer.produce(topic, b"value", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    [error] = errors
    return None if error is None else error.code()


@pytest.mark.soak
def test_a_topic_that_a_consumer_reads_is_not_deleted_until_the_consumer_has_left(
    live: Workspace, released: ReleasedCluster, cell: Cell
) -> None:
    released.make("read", *ROWS)
    live.tombstone("read")
    planned(live, "0 to create, 0 to expand, 0 to configure, 1 to delete")

    with closing(reading(released, "read", group="readers")):
        late = live.apply()
        live.plan()
        blocked = codes(live)

    assert late.status == 4, all_said(late)
    assert "consumer groups use it: readers (" in late.out, all_said(late)
    assert blocked == {"read": ["TOP410"]}
    planned(live, "0 to create, 0 to expand, 0 to configure, 1 to delete")
    applied(live, 1)
    cell.refused("TOP410")


def reading(released: ReleasedCluster, topic: str, *, group: str) -> Consumer:
    """A consumer that has its partitions, and commits nothing."""
    settings = {"bootstrap.servers": released.servers, "group.id": group, "enable.auto.commit": "false"}
    consumer = Consumer({**settings, "log_level": "0"})
    consumer.subscribe([topic])

    def is_assigned() -> bool:
        consumer.poll(0.2)
        return len(consumer.assignment()) == len(ROWS)

    until(is_assigned)
    return consumer


@pytest.mark.soak
def test_a_running_reassignment_blocks_a_plan_and_one_that_began_later_stops_the_delete(
    live: Workspace, released: ReleasedCluster, cell: Cell
) -> None:
    broker = released.not_the_controller()
    first, second = sorted({1, 2, 3} - {broker})
    for name in ("moves.on", "moves.off"):
        released.make(name, (first, second))
    live.topic("moves.on", partitions=2, replicationFactor=2)
    live.tombstone("moves.off")
    planned(live, "0 to create, 1 to expand, 0 to configure, 1 to delete")
    live.verify = AT_ONCE

    with released.holding_up(broker):
        released.begin_moves({"moves.on": (first, broker), "moves.off": (first, broker)})
        late = live.apply()
        live.plan()
    until(lambda: not released.moving and released.topics["moves.off"].assignment == {0: (first, broker)})

    assert late.status == 4, all_said(late)
    assert late.out.count("reassignment: planned none, live running") == 2
    assert {topic: "TOP419" in found for topic, found in codes(live).items()} == {"moves.on": True, "moves.off": True}
    cell.refused("TOP419, TOP501")


@pytest.mark.soak
def test_another_reassignment_can_start_after_that(released: ReleasedCluster, cell: Cell) -> None:
    """A delete that is sent into a reassignment would leave one behind, for good."""
    released.make("next.off", (1, 2))

    released.begin_moves({"next.off": (1, 3)})

    until(lambda: released.topics["next.off"].assignment == {0: (1, 3)} and not released.moving)


def test_the_brokers_alone_are_a_source_where_topics_have_ids(
    live: Workspace, released: ReleasedCluster, cell: Cell
) -> None:
    released.make("alone.going", *ROWS)
    released.make("alone.growing", *ROWS)
    live.cluster = released.by_brokers()
    live.topic("alone.new", partitions=2, configs={"retention.ms": "2h"})
    live.topic("alone.growing", partitions=3, replicationFactor=2, configs={"retention.ms": "3h"})
    live.tombstone("alone.going")

    if released.has_topic_ids:
        planned(live, "1 to create, 1 to expand, 1 to configure, 1 to delete")
        applied(live, 4)
        assert {name for name in released.topics if name.startswith("alone.")} == {"alone.new", "alone.growing"}
        return
    ended = live.plan()
    assert ended.status == 1, all_said(ended)
    assert "TOP809" in ended.err
    assert "no topic id" in ended.err
    assert "source: zookeeper" in ended.err
    cell.refused("TOP809, since topics have no ids")


@pytest.mark.soak
def test_no_change_is_sent_while_a_broker_is_dead_and_verify_is_healthy_once_it_is_back(
    live: Workspace, released: ReleasedCluster, cell: Cell
) -> None:
    live.verify = AT_ONCE
    released.make("stays", (1, 2, 3))
    live.topic("late", assignment={0: [1, 2, 3]})
    planned(live, "1 to create, 0 to expand, 0 to configure, 0 to delete")
    broker = released.not_the_controller()
    released.cluster.kill(broker)
    released.forget(broker)

    late = live.apply()
    degraded = live.run("verify", "--environment", "local")
    released.cluster.start_broker(broker)
    until(lambda: live.run("verify", "--environment", "local").status == 0)

    assert late.status == 4, all_said(late)
    assert f"the assignment names broker {broker}, not live" in late.out
    assert "late" not in released.topics
    assert degraded.status == 7, all_said(degraded)
    assert f"broker {broker}" in degraded.out
    cell.refused("TOP427")
