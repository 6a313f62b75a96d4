"""Moves of replicas on real brokers: nothing is lost and nothing is left, whatever others do beside them.

By hand, as a person does with Kafka's own tool, other moves and throttles are set.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest

from fixtures.guarded_broker import GuardedBroker
from fixtures.live import until
from fixtures.load import Load
from fixtures.moving import (
    NOTHING,
    SLOW,
    Moving,
    accept_slow,
    assert_factor_3,
    by_hand,
    notes_of,
    rotated,
    spread,
    tripled,
)
from topicops.edges.kafka.questions.broker_views import BrokerViews
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.features.moves.carrying.ports import LogSizes
from topicops.features.moves.edges.cluster import KafkaMoveCluster
from topicops.features.moves.record import Stage, TopicPartition
from topicops.model.errors import ClusterError
from topicops.model.plans.changes import MoveReason
from topicops.model.release import CAPPED_MIN_ISR
from topicops.model.specs.topic_config import MIN_ISR

pytestmark = pytest.mark.cluster
WINDOW_S = 11
"""Seconds of which the rate of a throttle is the average."""


@pytest.mark.parametrize(
    ("topics", "records"), [pytest.param(4, 10, id="short"), pytest.param(20, 30, id="long", marks=pytest.mark.soak)]
)
def test_factor_1_to_3_under_load_loses_nothing_and_leaves_nothing(moving: Moving, topics: int, records: int) -> None:
    rows = {f"bills{number}": spread(6) for number in range(topics)}
    moving.workspace.apply_settings = {"throttle": 5_000_000}
    moving.create(rows, records=records)
    load = Load(moving.cluster.bootstrap_servers, [(name, p) for name in rows for p in range(6)], 0.01)

    with load.running():
        moving.accept({name: rotated(found) for name, found in rows.items()})
        moving.step()
        meanwhile, still = moving.left(), moving.moving()
        moving.until_over(timeout_s=240)

    throttled = {entry.split()[0] for entry in meanwhile.lists}
    assert still.keys() <= throttled
    assert 0 < sum(map(len, still.values())) <= 50
    assert len(meanwhile.lists) == 2 * len(throttled)
    assert len(meanwhile.rates) == 2 * 3
    assert load.errors == []
    assert load.sent
    assert load.lost() == []
    live = moving.look()
    assert {name: live.topics[name].assignment for name in rows} == {
        name: rotated(found) for name, found in rows.items()
    }
    until(lambda: moving.left() == NOTHING, timeout_s=10)
    assert {end.status for end in moving.record.ended} == {"done"}


def test_the_throttle_holds_the_copies_back_from_the_first_second_on(moving: Moving) -> None:
    moving.create({"bills": {0: (1,)}}, records=300)
    moving.workspace.apply_settings = {"throttle": SLOW}
    moving.accept({"bills": {0: (1, 3)}})

    moving.step()
    time.sleep(3)

    assert "bills" in moving.moving()
    with moving.mover() as mover:
        told = mover.log_sizes([3], ["bills"])[3]
    assert isinstance(told, LogSizes)
    assert told.bytes_of[TopicPartition("bills", 0)] <= WINDOW_S * SLOW


def test_a_throttle_of_somebody_else_keeps_a_move_from_starting_and_stays(moving: Moving) -> None:
    moving.create({"bills": spread(3)}, records=1)
    moving.accept({"bills": tripled(spread(3))})
    with moving.mover() as mover:
        assert mover.set_rate(2, 7_000) == ""
        until(lambda: mover.brokers()[2].follower_rate == 7_000)

        moving.step()

        assert "TOP313" in notes_of(moving)
        assert moving.moving() == {}
        assert mover.brokers()[2].leader_rate == 7_000
        assert mover.set_rate(2, None) == ""
    moving.until_over()
    assert_factor_3(moving)


def test_a_move_that_somebody_else_cancels_is_not_begun_again(moving: Moving) -> None:
    accept_slow(moving)
    moving.step()

    by_hand(moving, dict.fromkeys(moving.moving()["bills"]))
    moving.until_over()

    assert moving.look().topics["bills"].assignment == spread(3)
    assert [end.status for end in moving.record.ended] == ["dropped"]
    assert moving.left().rates == moving.left().lists == ()


@pytest.mark.soak
def test_a_move_of_somebody_else_is_waited_for_and_never_replaced(moving: Moving) -> None:
    moving.create({"bills": spread(3)}, records=200)
    with moving.mover() as mover:
        for broker in moving.cluster.broker_ports:
            mover.set_rate(broker, 1_000)
        mover.add_entries("bills", ["0:1"], ["0:2"])
        until(lambda: mover.brokers()[2].follower_rate == mover.brokers()[1].leader_rate == 1_000)
        by_hand(moving, {0: (1, 2)})
        if "bills" not in moving.moving():
            pytest.skip("it was over before it could be seen")
        moving.accept({"bills": {0: (1, 3)}}, why=MoveReason.BALANCE)

        moving.step()

        assert "somebody else moves it" in notes_of(moving)
        assert moving.record.topics[0].partitions[0].stage is Stage.ACCEPTED


def test_the_right_that_the_mover_lacks_is_named_before_anything_is_written(guarded_broker: GuardedBroker) -> None:
    properties = guarded_broker.properties("reader")
    with (
        ZooKeeperReader(guarded_broker.cluster.zookeeper_hosts) as reader,
        closing(BrokerViews(properties)) as views,
        KafkaMoveCluster(properties, reader, views) as mover,
        pytest.raises(ClusterError, match=r"User:reader lacks Alter on the cluster \(TOP804\): grant it"),
    ):
        mover.require_rights({"owned.bills"})


def test_a_file_that_asks_for_more_replicas_is_planned_applied_and_moved(moving: Moving) -> None:
    moving.create({"bills": spread(3)}, records=1)
    moving.workspace.topic("bills", partitions=3, replicationFactor=3)

    planned = moving.workspace.plan()
    applied = moving.workspace.approve()
    moving.until_over()

    assert planned.status == 0, planned.out + planned.err
    assert applied.status == 0, applied.out + applied.err
    assert re.search("Moving:|bills reassigned", applied.out), applied.out  # a copy of so little may have ended
    assert moving.look().topics["bills"].replication_factors == {3}
    until(lambda: moving.left() == NOTHING, timeout_s=10)
    assert "No changes." in moving.workspace.plan().out


def test_a_minimum_above_the_replicas_blocks_the_move_and_its_way_out_refuses_no_producer(moving: Moving) -> None:
    if moving.release < CAPPED_MIN_ISR:
        pytest.skip(f"before {CAPPED_MIN_ISR} a move refuses no record that was not refused before it")
    moving.create({"bills": spread(3)}, records=10, **{MIN_ISR: "2"})
    load = Load(moving.cluster.bootstrap_servers, [("bills", p) for p in range(3)], 0.01)

    with load.running():
        [blocked] = planned(moving, minimum=2)["blocked"]
        way_out = re.fullmatch(
            rf"set {MIN_ISR}: (\d) in its file and apply that, then let the replicas move, and raise it again when "
            "they are in sync",
            blocked["way_out"],
        )
        assert way_out is not None, blocked
        assert kinds_applied(moving, minimum=int(way_out[1])) == ["configure"]
        assert kinds_applied(moving, minimum=int(way_out[1])) == ["reassign"]
        moving.until_over()
        assert kinds_applied(moving, minimum=2) == ["configure"]

    assert load.errors == []
    assert load.sent
    assert load.lost() == []
    assert moving.look().topics["bills"].replication_factors == {3}
    assert moving.look().topics["bills"].overrides == {MIN_ISR: "2"}


def test_a_topic_that_refuses_producers_because_it_has_too_few_replicas_gets_more(moving: Moving) -> None:
    if moving.release >= CAPPED_MIN_ISR:
        pytest.skip(
            f"since {CAPPED_MIN_ISR} such a topic takes records, and would refuse them while replicas are added"
        )
    moving.create({"bills": spread(3)}, **{MIN_ISR: "2"})

    assert kinds_applied(moving, minimum=2) == ["reassign"]
    moving.until_over()

    assert moving.look().topics["bills"].replication_factors == {3}
    until(lambda: moving.left() == NOTHING, timeout_s=10)


def planned(moving: Moving, *, minimum: int) -> Mapping[str, Any]:
    """Write the file with this minimum, and return the plan."""
    moving.workspace.topic("bills", partitions=3, replicationFactor=3, configs={MIN_ISR: minimum})
    ended = moving.workspace.plan()
    assert ended.status == 0, ended.out + ended.err
    return dict(json.loads((moving.workspace.folder / "plan.json").read_text(encoding="utf-8")))


def kinds_applied(moving: Moving, *, minimum: int) -> list[str]:
    """Plan and apply the file with this minimum; return the kinds of the changes."""
    changes = planned(moving, minimum=minimum)["changes"]
    applied = moving.workspace.approve()
    assert applied.status == 0, applied.out + applied.err
    return [action for change in changes for action in change["actions"]]
