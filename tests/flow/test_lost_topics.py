"""Topics that somebody deleted outside git, from the snapshot that misses them to the apply that creates them again."""

from __future__ import annotations

import re

import pytest

from fixtures.simulated import CLUSTER_ID, Simulated, outcomes_of
from topicops.edges.home.memories import SeenTopics
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.runs.results import OutcomeStatus
from topicops.model.specs.environment import Risk


def created(run: EnvironmentRun) -> dict[str, tuple[Risk, bool]]:
    """The risk of each create, and whether it says that the topic was deleted outside git."""
    return {
        gated.change.topic: (gated.change.risk, any("deleted outside git" in note for note in gated.change.notes))
        for gated in run.read_plan().changes
        if gated.change.action == "create"
    }


@pytest.fixture
def lost(simulated: Simulated) -> Simulated:
    """Two topics were live at the last snapshot; one of them was deleted since then."""
    for name in ("orders", "carts"):
        simulated.workspace.topic(name)
        simulated.cluster.put_topic(name, (1, 2, 3))
    assert created(simulated.planned()) == {}
    simulated.cluster.remove_topic("orders")
    return simulated


def test_a_topic_that_was_deleted_outside_git_comes_back_as_a_create_that_says_so(lost: Simulated) -> None:
    lost.workspace.topic("new")
    run = lost.planned()
    assert created(run) == {"new": (Risk.SAFE, False), "orders": (Risk.NOTICE, True)}
    (note,) = next(gated.change.notes for gated in run.read_plan().changes if gated.change.topic == "orders")
    assert note.startswith("the topic lived at an earlier snapshot (id ")


def test_a_later_plan_still_knows_it_and_equal_inputs_give_equal_bytes(lost: Simulated) -> None:
    plans = [lost.planned(run_id).store.read_text("plan.json") for run_id in ("2", "3")]
    assert plans[0] == plans[1]


def test_apply_judges_it_by_the_same_memory(lost: Simulated) -> None:
    run = lost.planned()
    lost.workspace.policy["unattended"] = "safe"
    lost.apply(run)
    (refused,) = outcomes_of(run)
    assert refused.status is OutcomeStatus.REFUSED
    assert "risk notice, up to safe allowed without an approval" in refused.message
    lost.apply(run, approved=True)
    assert [outcome.status for outcome in outcomes_of(run)] == [OutcomeStatus.DONE]


def test_the_commands_that_apply_and_verify_forget_nothing(lost: Simulated) -> None:
    assert lost.workspace.plan().status == 0
    lost.workspace.policy["unattended"] = "safe"
    refused = lost.workspace.apply()
    assert (refused.status, "1 held" in refused.out) == (3, True), refused.err
    lost.workspace.run("verify", "--environment", "local")
    assert created(lost.planned()) == {"orders": (Risk.NOTICE, True)}


def test_a_plan_that_leaves_its_file_out_because_of_errors_forgets_nothing(lost: Simulated) -> None:
    path = lost.workspace.path_of("orders")
    valid = path.read_text()
    path.write_text(valid.replace("keyed: false", "keyed: perhaps"))
    assert lost.workspace.plan("--only", "carts").status == 0
    path.write_text(valid)
    assert created(lost.planned()) == {"orders": (Risk.NOTICE, True)}


def test_once_it_is_live_again_it_is_forgotten(lost: Simulated) -> None:
    lost.apply(lost.planned())
    assert created(lost.planned()) == {}
    lost.workspace.path_of("orders").unlink()
    lost.cluster.remove_topic("orders")
    lost.planned()
    lost.workspace.topic("orders")
    assert created(lost.planned()) == {"orders": (Risk.SAFE, False)}


def test_a_topic_that_topicops_deleted_comes_back_empty_and_the_plan_says_so(simulated: Simulated) -> None:
    """As after the revert of the commit that retired it: else it looks like any new topic."""
    simulated.workspace.topic("orders")
    simulated.cluster.put_topic("orders", (1, 2, 3))
    simulated.planned()
    simulated.workspace.tombstone("orders")
    deleted = simulated.planned()
    simulated.apply(deleted)
    assert "orders" not in simulated.cluster.snapshot().topics
    simulated.workspace.topic("orders")
    simulated.workspace.topic("other")

    run = simulated.planned()

    assert created(run) == {"orders": (Risk.NOTICE, False), "other": (Risk.SAFE, False)}
    change = next(gated.change for gated in run.read_plan().changes if gated.change.topic == "orders")
    assert change.codes == ("TOP431",)
    [note] = change.notes
    assert re.fullmatch(
        rf"the run {re.escape(deleted.name)} deleted a topic of this name on \d{{4}}-\S+Z: "
        "it comes back empty, without offsets of groups",
        note,
    )
    simulated.apply(run)
    done = {outcome.topic: outcome.status for outcome in outcomes_of(run)}
    assert done["orders"] is OutcomeStatus.DONE, "apply judges it by the same log"


def test_without_a_memory_nothing_changes(lost: Simulated) -> None:
    run = lost.planned()
    SeenTopics(run.home, "local", CLUSTER_ID).path.unlink()
    assert created(lost.planned()) == {"orders": (Risk.SAFE, False)}
