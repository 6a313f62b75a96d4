"""What the loss of a broker costs before, in the middle of, and after the moves of a plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.builders import alike, location, partition_state, snapshot
from fakes.builders import live_topic as topic
from topicops.features.rehearse.moving import MoveLosses, Troubled, without_each_broker
from topicops.features.rehearse.text import moves_text
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import UsageError
from topicops.model.plans.changes import MoveReason, Precondition, ReassignTopic
from topicops.model.release import Release, Releases
from topicops.model.specs.environment import Risk

NONE, OFFLINE, BELOW = (Troubled(offline=a, below_min_isr=b) for a, b in ((0, 0), (1, 0), (0, 1)))


def world(*row: int, min_isr: str = "1", isr: tuple[int, ...] | None = None) -> ClusterSnapshot:
    """One partition on brokers of Kafka 3.9."""
    orders = topic("orders", assignment={0: row}, states={0: partition_state(isr or row)})
    live = snapshot(orders, racks=dict.fromkeys((1, 2, 3, 4)))
    release = Release(3, 9)
    return replace(
        live, releases=Releases(release, release), broker_defaults=alike({"min.insync.replicas": min_isr}, (1, 2, 3, 4))
    )


def move(live: ClusterSnapshot, *target: int) -> ReassignTopic:
    return ReassignTopic(
        topic="orders",
        location=location("orders"),
        risk=Risk.RISKY,
        reversible=True,
        precondition=Precondition(),
        why=MoveReason.FACTOR,
        assignment_before=live.topics["orders"].assignment,
        assignment={0: target},
    )


def losses(live: ClusterSnapshot, *target: int) -> MoveLosses:
    return without_each_broker(live, [move(live, *target)], environment="local")


def stages(found: MoveLosses, broker: int | None) -> tuple[Troubled, Troubled, Troubled]:
    [loss] = [loss for loss in found.losses if loss.broker == broker]
    return loss.before, loss.moving, loss.after


def test_the_only_replica_is_all_there_is_until_the_move_has_ended() -> None:
    found = losses(world(1), 1, 2, 3)

    assert stages(found, 1) == (OFFLINE, OFFLINE, NONE)
    assert stages(found, 2) == (NONE, NONE, NONE)
    assert found.is_safe


def test_a_topic_whose_minimum_grows_with_its_replicas_refuses_records_while_they_are_added() -> None:
    found = losses(world(1, min_isr="2"), 1, 2, 3)

    assert stages(found, None) == (NONE, BELOW, NONE)
    assert not found.is_safe
    assert "while they move (orders-0); 1 of them only then" in moves_text(found)


def test_replicas_that_are_to_leave_still_hold_the_partition_up() -> None:
    found = losses(world(1, 2, min_isr="2"), 3, 4)

    assert stages(found, 1) == (BELOW, BELOW, NONE)
    assert stages(found, 3) == (NONE, NONE, BELOW)


def test_each_line_has_the_three_stages() -> None:
    lines = moves_text(losses(world(1), 1, 2, 3)).splitlines()

    assert "without broker 1: 1 -> 1 -> 0 offline, 0 -> 0 -> 0 below min.insync.replicas" in lines
    assert lines[-1] == "No loss of a broker costs more while replicas move than it does before."


def test_a_plan_without_moves_has_none_to_rehearse() -> None:
    with pytest.raises(UsageError, match="moves no replicas"):
        without_each_broker(world(1), [], environment="local")


def two_partitions() -> ClusterSnapshot:
    """Partition 0 is on broker 1 and partition 1 on broker 2; with more replicas, two must be in sync."""
    orders = topic("orders", assignment={0: (1,), 1: (2,)}, states={p: partition_state((p + 1,)) for p in (0, 1)})
    return replace(world(1, min_isr="2"), topics={"orders": orders})


def test_only_partitions_that_move_are_counted() -> None:
    live = two_partitions()
    found = without_each_broker(live, [replace(move(live), assignment={1: (2, 3)})], environment="local")

    assert (found.topics, found.partitions) == (1, 1)
    assert stages(found, 1)[0] == NONE


def test_partitions_that_only_the_move_harms_are_named_first() -> None:
    live = two_partitions()
    found = without_each_broker(live, [replace(move(live), assignment={0: (3,), 1: (2, 3)})], environment="local")

    [loss] = [loss for loss in found.losses if loss.broker == 1]
    assert (loss.before, loss.worse) == (OFFLINE, 1)
    assert [name.partition for name in loss.examples] == [1, 0]
