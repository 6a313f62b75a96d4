"""The loss of each rack before and after a plan."""

from __future__ import annotations

import pytest

from fakes.builders import healthy_states, live_topic, partition_state, snapshot
from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic
from topicops.model.cluster.health import elects_unclean
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.plans.changes import Change
from topicops.model.plans.plan import RackLossTable
from topicops.steps.rack_losses import planned_losses, topic_after

RACKS = {1: "r1", 2: "r2", 3: "r3"}


def cluster(**racks: str | None) -> ClusterSnapshot:
    named = {int(broker[1:]): rack for broker, rack in racks.items()} or RACKS
    single = live_topic("single", assignment={0: (2,)}, states=healthy_states({0: (2,)}))
    return snapshot(single, racks=named)


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


HALF_DEAD = live_topic("half", assignment={0: (2, 9)}, states={0: partition_state((2,))})


@pytest.mark.parametrize(
    ("topic", "change"),
    [
        pytest.param(HALF_DEAD, delete_topic(HALF_DEAD), id="delete"),
        pytest.param(HALF_DEAD, expand_topic(HALF_DEAD, (2, 9)), id="expand"),
        pytest.param(None, create_topic("new", (2, 9)), id="create"),
    ],
)
def test_a_change_that_needs_a_dead_broker_leaves_its_topic_as_it_is(topic: LiveTopic | None, change: Change) -> None:
    assert topic_after(topic, change, {1, 2, 3}) == topic


def test_a_change_of_configs_removes_what_it_sets_to_none() -> None:
    configured = live_topic("a", assignment={0: (2,)}, overrides={"retention.ms": "1", "cleanup.policy": "delete"})
    change = configure_topic(configured, {"retention.ms": None, "min.insync.replicas": "2"})

    after = topic_after(configured, change, {2})

    assert after is not None
    assert after.overrides == {"cleanup.policy": "delete", "min.insync.replicas": "2"}


@pytest.mark.parametrize(
    ("value", "default", "expected"),
    [(None, False, False), (None, True, True), (" True ", False, True), ("false", True, False), ("soon", True, False)],
)
def test_a_topics_own_value_counts_before_that_of_the_brokers(value: str | None, default: bool, expected: bool) -> None:
    assert elects_unclean(value, default=default) is expected
