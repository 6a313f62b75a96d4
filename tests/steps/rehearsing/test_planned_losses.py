"""The loss of each rack before and after a plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.builders import NOW, healthy_states, live_topic, partition_state, snapshot
from fakes.changes import create_topic, delete_topic, expand_topic
from fixtures.random_worlds import World
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.plans.delta import desired_row, live_row
from topicops.model.plans.rack_losses import Loss, RackLossTable
from topicops.steps.planning.diff import diff
from topicops.steps.planning.plan import plan
from topicops.steps.rehearsing.each_rack import RackLosses, without_each_rack
from topicops.steps.rehearsing.planned_losses import planned_losses
from topicops.steps.rehearsing.rehearse import after_plan

RACKS = {1: "r1", 2: "r2", 3: "r3"}


def cluster(**racks: str | None) -> ClusterSnapshot:
    named = {int(broker[1:]): rack for broker, rack in racks.items()} or RACKS
    single = live_topic("single", assignment={0: (2,)}, states=healthy_states({0: (2,)}))
    return snapshot(single, racks=named)


def counts(found: RackLosses) -> list[tuple[str, Loss]]:
    return [
        (row.rack, Loss(offline=row.offline, below_min_isr=row.below_min_isr, moved_leaders=row.moved_leaders))
        for row in found.racks
    ]


def test_a_plan_may_make_the_loss_of_one_rack_worse_and_of_another_better() -> None:
    single = cluster().topics["single"]
    found = planned_losses(cluster(), [create_topic("lonely", (3,)), delete_topic(single)])

    offline = {row.rack: (row.before.offline, row.after.offline) for row in found.racks}
    assert offline == {"r1": (0, 0), "r2": (1, 0), "r3": (0, 1)}
    assert [row.brokers for row in found.racks] == [1, 1, 1]


def test_an_expansion_lets_no_follower_of_an_old_partition_catch_up() -> None:
    late = live_topic("late", assignment={0: (2, 3, 1)}, states={0: partition_state((2,))})
    found = planned_losses(snapshot(late, racks=RACKS), [expand_topic(late, (3, 1, 2))])
    assert {row.rack: (row.before.offline, row.after.offline) for row in found.racks} == {
        "r1": (0, 0),
        "r2": (1, 1),
        "r3": (0, 0),
    }


@pytest.mark.parametrize(
    ("live", "only_rack", "rackless"),
    [
        pytest.param(cluster(b1=None, b2=None), None, (1, 2), id="no broker names its rack"),
        pytest.param(cluster(b1="r1", b2="r1"), "r1", (), id="one rack has them all"),
    ],
)
def test_without_two_racks_nothing_is_counted(
    live: ClusterSnapshot, only_rack: str | None, rackless: tuple[int, ...]
) -> None:
    found = planned_losses(live, [])
    assert found == RackLossTable(only_rack=only_rack, brokers_without_rack=rackless, knows_broker_defaults=False)


def test_brokers_without_a_rack_stay_in_each_loss() -> None:
    found = planned_losses(cluster(b1="r1", b2=None), [])
    assert ([row.rack for row in found.racks], found.brokers_without_rack) == (["r1"], (2,))


@pytest.mark.parametrize("seed", range(60))
def test_before_and_after_are_what_rehearse_says_of_each_rack(seed: int) -> None:
    world = World(seed)
    racks = {broker: replace(found, rack=f"r{broker % 3}") for broker, found in world.live.brokers.items()}
    live = replace(world.live, brokers=racks)
    delta = diff(map(desired_row, world.desired.topics.values()), map(live_row, live.topics.values()))
    changes = plan(world.desired, live, delta, world.environment, now=NOW).changes

    found = planned_losses(live, changes)

    if len({broker.rack for broker in racks.values()}) < 2:
        assert found.racks == ()
        return
    assert [(row.rack, row.before) for row in found.racks] == counts(without_each_rack(live, environment="e"))
    assert [(row.rack, row.after) for row in found.racks] == counts(
        without_each_rack(after_plan(live, changes), environment="e")
    )
