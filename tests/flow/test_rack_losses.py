"""What a plan says beside its changes: the loss of each rack, and that no commit names them."""

from __future__ import annotations

import pytest

from fixtures.simulated import CLUSTER_ID, Simulated
from fixtures.workflow import git
from topicops.flow import planning
from topicops.model.plans.plan import RackLossTable
from topicops.steps.planning.only import Only


def losses_of(shop: Simulated, *, states: bool = True, only: Only | None = None) -> RackLossTable | None:
    run = shop.opened("1")
    planning.make_plan(run, engine="python", states=states, only=only)
    return run.read_plan().change_set.rack_losses


def offline(found: RackLossTable | None) -> list[tuple[str, int, int]]:
    return [(row.rack, row.before.offline, row.after.offline) for row in found.racks] if found else []


@pytest.mark.parametrize(
    ("only", "r2_after"), [pytest.param(None, 0, id="the whole plan"), pytest.param("new", 1, id="what it keeps")]
)
def test_a_plan_counts_each_rack_before_and_after_with_one_read_of_the_cluster(
    simulated: Simulated, only: str | None, r2_after: int
) -> None:
    simulated.cluster.put_topic("single", (2,))
    simulated.workspace.tombstone("single")
    simulated.workspace.topic("new", partitions=1)

    assert offline(losses_of(simulated, only=only)) == [("r1", 0, 0), ("r2", 1, r2_after), ("r3", 0, 0)]
    assert simulated.events.count("snapshot") == 1


def test_the_brokers_are_asked_for_their_minimum_also_where_a_plan_only_creates(simulated: Simulated) -> None:
    simulated.cluster.put_topic("strict", (1, 2), configs={"min.insync.replicas": "2"})
    simulated.workspace.topic("new", partitions=1)

    found = losses_of(simulated)

    assert found is not None
    assert found.knows_broker_defaults is True
    assert [row.before.below_min_isr for row in found.racks] == [1, 1, 0]


def test_a_plan_that_changes_nothing_or_did_not_read_states_knows_of_no_loss(simulated: Simulated) -> None:
    simulated.cluster.put_topic("single", (2,))
    assert losses_of(simulated) is None
    simulated.workspace.topic("new", partitions=1)
    assert losses_of(simulated, states=False) is None


# ---- A plan of class production says when the audit log will name no commit for what it sends ----


NOTE = "the audit log will name no commit for these changes: "


def said(simulated: Simulated, run_id: str) -> list[str]:
    plan = simulated.planned(run_id).read_plan()
    return [warning for warning in plan.change_set.warnings if warning.startswith(NOTE)]


@pytest.fixture
def production(simulated: Simulated) -> Simulated:
    workspace = simulated.workspace
    workspace.cluster = {**workspace.cluster, "class": "production", "id": CLUSTER_ID, "kafkaVersion": "3.9"}
    workspace.topic("a")
    return simulated


def test_changes_of_files_that_are_not_committed_are_noted_until_they_are(production: Simulated) -> None:
    assert len(said(production, "no git")) == 1

    git(production.workspace.folder, "init")
    git(production.workspace.folder, "add", "topics")
    git(production.workspace.folder, "commit", "-m", "A topic")
    assert said(production, "committed") == []

    production.workspace.topic("b")
    assert len(said(production, "edited")) == 1


def test_without_a_change_there_is_no_note(production: Simulated) -> None:
    production.workspace.path_of("a").unlink()
    assert said(production, "nothing to send") == []


def test_a_sandbox_has_no_such_note(simulated: Simulated) -> None:
    simulated.workspace.topic("a")
    assert said(simulated, "sandbox") == []
