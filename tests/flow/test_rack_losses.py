"""What a plan knows of the loss of each rack: from the snapshot that it is made of, without a second read."""

from __future__ import annotations

from fixtures.simulated import Simulated
from topicops.flow import planning
from topicops.model.plans.plan import RackLossTable
from topicops.steps.planning.only import Only


def losses_of(shop: Simulated, *, states: bool = True, only: Only | None = None) -> RackLossTable | None:
    run = shop.opened("1")
    planning.make_plan(run, run.files, run.home, run.connections, engine="python", states=states, only=only)
    return run.read_plan().change_set.rack_losses


def offline(found: RackLossTable | None) -> list[tuple[str, int, int]]:
    return [(row.rack, row.before.offline, row.after.offline) for row in found.racks] if found else []


def test_a_plan_counts_each_rack_before_and_after_with_one_read_of_the_cluster(simulated: Simulated) -> None:
    simulated.cluster.put_topic("single", (2,))
    simulated.workspace.tombstone("single")
    simulated.workspace.topic("new", partitions=1)

    assert offline(losses_of(simulated)) == [("r1", 0, 0), ("r2", 1, 0), ("r3", 0, 0)]
    assert simulated.events.count("snapshot") == 1


def test_the_brokers_are_asked_for_their_minimum_also_where_a_plan_only_creates(simulated: Simulated) -> None:
    simulated.cluster.put_topic("strict", (1, 2), configs={"min.insync.replicas": "2"})
    simulated.workspace.topic("new", partitions=1)

    found = losses_of(simulated)

    assert found is not None
    assert found.knows_broker_defaults is True
    assert [row.before.below_min_isr for row in found.racks] == [1, 1, 0]


def test_only_the_changes_that_the_plan_keeps_are_played(simulated: Simulated) -> None:
    simulated.cluster.put_topic("single", (2,))
    simulated.workspace.tombstone("single")
    simulated.workspace.topic("new", partitions=1)

    assert offline(losses_of(simulated, only="new")) == [("r1", 0, 0), ("r2", 1, 1), ("r3", 0, 0)]


def test_a_plan_that_changes_nothing_or_did_not_read_states_knows_of_no_loss(simulated: Simulated) -> None:
    simulated.cluster.put_topic("single", (2,))
    assert losses_of(simulated) is None
    simulated.workspace.topic("new", partitions=1)
    assert losses_of(simulated, states=False) is None
