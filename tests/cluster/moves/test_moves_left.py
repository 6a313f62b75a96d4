"""What is left of moves on real brokers whose lease or home is gone, or that an earlier topic left."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, TopicPartition

from fakes.fake_ports import FakeLease
from fixtures.kafka_tool import type_kafka_configs
from fixtures.live import until
from fixtures.moving import NOTHING, RECORD, Moving, accept_slow, by_hand, notes_of, spread, tripled
from topicops.features.moves.carrying.records import asked_to_cancel
from topicops.features.moves.record import MOVES
from topicops.flow.runs.access import PORT_WRAPPERS, PortWrappers
from topicops.model.errors import LeaseLostError

pytestmark = pytest.mark.cluster


@pytest.mark.soak
def test_a_lease_that_is_lost_before_the_request_stops_it_and_the_next_holder_takes_the_lists_out(
    moving: Moving,
) -> None:
    moving.create({"bills": spread(3)}, records=1)
    moving.accept({"bills": tripled(spread(3))})

    with without_the_lease(), pytest.raises(LeaseLostError):
        moving.step()

    assert moving.moving() == {}
    assert len(moving.left().lists) == 2
    moving.workspace.topic("bills", partitions=3, replicationFactor=1)
    moving.until_over()
    assert moving.look().topics["bills"].assignment == spread(3)
    assert [end.status for end in moving.record.ended] == ["dropped"]
    until(lambda: moving.left() == NOTHING, timeout_s=10)


@contextmanager
def without_the_lease() -> Iterator[None]:
    """Let a step begin with the lease, and find that it is lost before the request."""
    lost = PortWrappers(lease=lambda lease: nullcontext(FakeLease(confirmations_left=0)))
    token = PORT_WRAPPERS.set(lost)
    try:
        yield
    finally:
        PORT_WRAPPERS.reset(token)


@pytest.mark.soak
def test_without_the_home_the_moves_end_and_doctor_names_what_is_left_with_commands_that_remove_it(
    moving: Moving,
) -> None:
    accept_slow(moving, records=60)
    MOVES.of(moving.run.home, "local").remove()

    until(lambda: not moving.moving(), timeout_s=120)

    left = moving.left()
    assert (len(left.rates), len(left.lists)) == (6, 2)
    told = leftover_throttle(moving)
    assert told["message"].startswith("replication is throttled, and nothing is moved: bills (leader.")
    first = re.findall(r"kafka-configs\.sh [^;]*(?=;)", told["fix"])
    cluster = moving.cluster
    kafka, zookeeper = (None, "") if moving.kraft else (cluster.versions["broker-1"], cluster.zookeeper_hosts)
    for_topic, for_broker = (
        command.replace("HOST:PORT/CHROOT", zookeeper).replace("HOST:PORT", cluster.bootstrap_servers)
        for command in first
    )
    type_kafka_configs(for_topic, kafka)
    for broker in cluster.broker_ports:
        type_kafka_configs(for_broker.replace("--entity-name 1 ", f"--entity-name {broker} "), kafka)
    assert moving.left() == replace(NOTHING, not_led=moving.left().not_led)


def leftover_throttle(moving: Moving) -> Mapping[str, str]:
    found = json.loads(moving.workspace.run("doctor", "--environment", "local", "--format", "json").out)["findings"]
    [finding] = [each for each in found if each["id"] == "leftover-throttle"]
    return dict(finding)


def test_a_log_of_an_earlier_topic_keeps_a_move_to_its_broker_from_starting_until_it_is_removed(moving: Moving) -> None:
    leave_a_log(moving, "bills", broker=3)
    assert why_not_created(moving, "bills") == ([] if moving.kraft else [["TOP444"]])
    moving.create({"bills": {0: (1,)}}, records=1)
    moving.accept({"bills": {0: (3, 1)}})

    moving.step()

    if moving.kraft:  # its brokers remove such logs when they start
        assert moving.record.notes == ()
    else:
        assert "stop the broker, remove the folder bills-0 from its log directory, and start it again" in notes_of(
            moving
        )
        assert moving.moving() == {}
        moving.cluster.stop_broker(3)
        shutil.rmtree(moving.cluster.folder / "broker-3/data/bills-0")
        moving.cluster.start_broker(3)
    moving.until_over()
    assert moving.look().topics["bills"].assignment == {0: (3, 1)}
    assert first_record(moving, "bills") == RECORD


def test_a_log_that_a_cancelled_move_of_the_same_topic_has_left_harms_no_later_one(moving: Moving) -> None:
    """With ZooKeeper the broker keeps it, because it is down while its move is cancelled; 2.8 to 3.4 leave others."""
    targets = {0: (1, 3)}
    accept_slow(moving, targets=targets)
    moving.cluster.kill(3)
    until(lambda: moving.has_lost(3))
    file = MOVES.of(moving.run.home, "local")
    file.write(asked_to_cancel(moving.record, {"bills"}, datetime.now(UTC)))
    moving.step()
    moving.cluster.start_broker(3)
    moving.until_over()
    assert [end.status for end in moving.record.ended] == ["cancelled"]
    moving.workspace.apply_settings = {"throttle": 20_000_000}
    moving.accept({"bills": targets})

    moving.until_over()

    assert moving.record.ended[-1].status == "done"
    assert moving.look().topics["bills"].assignment[0] == targets[0]
    assert first_record(moving, "bills") == RECORD


def why_not_created(moving: Moving, topic: str) -> list[list[str]]:
    """Return the codes of each topic that is blocked in a plan that would create this one."""
    moving.workspace.topic(topic, partitions=1, replicationFactor=1)
    ended = moving.workspace.plan()
    assert ended.status == 0, ended.out + ended.err
    moving.workspace.path_of(topic).unlink()
    plan = json.loads((moving.workspace.folder / "plan.json").read_text(encoding="utf-8"))
    return [blocked["codes"] for blocked in plan["blocked"]]


def leave_a_log(moving: Moving, topic: str, *, broker: int) -> None:
    """Make and delete a topic of which this broker keeps a log: it is down while the move to it is cancelled."""
    accept_slow(moving, topic=topic, targets={0: (1, broker)})
    moving.cluster.kill(broker)
    until(lambda: moving.has_lost(broker))
    by_hand(moving, {0: None})
    moving.cluster.start_broker(broker)
    moving.until_over()
    moving.remove_all()
    moving.workspace.apply_settings = {"throttle": 20_000_000}


def first_record(moving: Moving, topic: str) -> bytes | None:
    """Return the first record of partition 0, by the broker that leads; None where that has none."""
    consumer = Consumer({"bootstrap.servers": moving.cluster.bootstrap_servers, "group.id": "first", "log_level": 0})
    with closing(consumer):
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = consumer.poll(20)
        return found.value() if found is not None and found.error() is None else None
