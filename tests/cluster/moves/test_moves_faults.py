"""What happens to moves on real brokers: a cancel, and servers that die."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fixtures.live import until
from fixtures.moving import NOTHING, SLOW, Moving, accept_slow, notes_of, rotated, spread
from topicops.features.moves.carrying.records import asked_to_cancel
from topicops.features.moves.record import MOVES
from topicops.model.errors import ClusterError

pytestmark = pytest.mark.cluster


def test_a_move_that_a_person_cancels_goes_back_and_leaves_nothing(moving: Moving) -> None:
    accept_slow(moving)
    file = MOVES.of(moving.run.home, "local")

    file.write(asked_to_cancel(moving.record, {"bills"}, datetime.now(UTC)))
    moving.until_over()

    assert moving.look().topics["bills"].assignment == spread(3)
    assert [end.status for end in moving.record.ended] == ["cancelled"]
    strays = moving.left().strays if moving.keeps_copies else ()
    until(lambda: moving.left() == replace(NOTHING, strays=strays), timeout_s=30)


@pytest.mark.soak
def test_a_target_that_dies_is_given_up_and_its_rate_is_removed_when_it_is_back(moving: Moving) -> None:
    """The topic has a name of its own: under ZooKeeper the copies on the dead broker outlive it."""
    moving.workspace.verify = {"moves": "5s"}
    accept_slow(moving, topic="payments", targets={0: (1, 3), 1: (2, 3)})
    moving.cluster.kill(3)
    until(lambda: moving.has_lost(3))

    until(lambda: moving.step() is not None and not any(moving.record.moving()), timeout_s=120)

    assert moving.look().topics["payments"].assignment == spread(3)
    assert [rate.broker for rate in moving.record.rates] == [3]
    assert "Broker 3 is not live; a step after its return" in notes_of(moving)
    moving.cluster.start_broker(3)
    moving.until_over()
    assert moving.left().rates == moving.left().lists == ()


def test_without_a_replica_of_the_origin_in_sync_nothing_is_cancelled(moving: Moving) -> None:
    accept_slow(moving, targets={0: (2, 3)})
    moving.cluster.kill(1)
    until(lambda: moving.has_lost(1))
    MOVES.of(moving.run.home, "local").write(asked_to_cancel(moving.record, {"bills"}, datetime.now(UTC)))

    moving.step()

    assert "no leader; it comes back with a broker of 1" in moving.record.notes[0]
    assert "cannot be cancelled: no replica of 1 is live and in sync" in notes_of(moving)
    moving.cluster.start_broker(1)
    moving.until_over()
    assert moving.look().topics["bills"].assignment == spread(3)
    assert moving.left().rates == moving.left().lists == ()


@pytest.mark.soak
def test_a_controller_that_dies_takes_no_move_with_it(moving: Moving) -> None:
    accept_slow(moving, targets=rotated(spread(3)))
    controller = moving.look().controller_id
    assert controller is not None
    moving.cluster.kill(controller)
    for _ in range(5):
        with suppress(ClusterError):
            moving.step()
        time.sleep(1)

    moving.cluster.start_broker(controller)
    moving.workspace.apply_settings = {"throttle": 50_000_000}
    moving.until_over()

    assert moving.look().topics["bills"].assignment == rotated(spread(3))
    until(lambda: moving.left() == NOTHING, timeout_s=30)


@pytest.mark.soak
def test_a_move_whose_third_replica_is_dead_waits_for_it(moving: Moving) -> None:
    moving.create({"bills": {0: (1, 3)}, "orders": {0: (1, 3)}}, records=200)
    moving.workspace.apply_settings = {"throttle": SLOW}
    moving.accept({"bills": {0: (2, 3)}})
    moving.step()
    moving.cluster.kill(3)
    until(lambda: moving.has_lost(3))
    moving.accept({"orders": {0: (2, 3)}})

    moving.step()

    assert "bills partition 0: waits for broker 3, which is not live." in moving.record.notes
    assert "1 partition waits for broker 3, which is not live." in moving.record.notes
    assert moving.moving().keys() <= {"bills"}
    moving.cluster.start_broker(3)
    moving.workspace.apply_settings = {"throttle": 20_000_000}
    moving.until_over()
    live = moving.look()
    assert live.topics["bills"].assignment == live.topics["orders"].assignment == {0: (2, 3)}
    until(lambda: moving.left() == NOTHING, timeout_s=30)


def test_a_topic_that_is_deleted_while_it_moves_leaves_nothing(moving: Moving) -> None:
    accept_slow(moving)

    moving.delete("bills")
    moving.until_over()

    assert [end.status for end in moving.record.ended] == ["dropped"]
    assert moving.left() == NOTHING
