"""The losses that a plan shows are those that the model of the controller finds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.builders import NOW, healthy_states
from fixtures.random_worlds import World
from topicops.features.rehearse.losses import RackLosses, without_each_rack
from topicops.features.rehearse.played import after_plan
from topicops.model.plans.delta import desired_row, live_row
from topicops.model.plans.plan import Loss
from topicops.steps.planning.diff import diff
from topicops.steps.planning.plan import plan
from topicops.steps.rack_losses import planned_losses


def counts(found: RackLosses) -> list[tuple[str, Loss]]:
    return [
        (row.rack, Loss(offline=row.offline, below_min_isr=row.below_min_isr, moved_leaders=row.moved_leaders))
        for row in found.racks
    ]


@pytest.mark.parametrize("seed", range(60))
def test_before_and_after_are_what_rehearse_says_of_each_rack(seed: int) -> None:
    world = World(seed)
    racks = {broker: replace(found, rack=f"r{broker % 3}") for broker, found in world.live.brokers.items()}
    topics = {
        name: topic if topic.states else replace(topic, states=healthy_states(topic.assignment))
        for name, topic in world.live.topics.items()
    }
    live = replace(world.live, brokers=racks, topics=topics)
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
