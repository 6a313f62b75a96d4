"""Moves through the flow: what a plan asks the cluster and the home for, and what earlier runs have accepted."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from fixtures.simulated import CLUSTER_ID, Simulated, outcomes_of
from topicops.features.moves.offered import MOVES_BY_KAFKA
from topicops.model.cluster.snapshot import Assignment
from topicops.model.errors import ArtifactError
from topicops.model.plans.changes import ReassignTopic
from topicops.model.plans.plan import ChangeSet
from topicops.model.runs.moves import KnownMoves, TopicMoves
from topicops.model.runs.results import OutcomeStatus


@pytest.fixture(autouse=True)
def planner(simulated: Simulated) -> None:
    simulated.moves = MOVES_BY_KAFKA


@pytest.fixture
def raised(simulated: Simulated) -> Simulated:
    """A topic with one replica, whose file asks for two."""
    simulated.cluster.put_topic("shop", (1,), (2,), configs={"min.insync.replicas": "1"})
    simulated.workspace.topic("shop", partitions=2, replicationFactor=2, configs={"min.insync.replicas": 1})
    return simulated


def changes(simulated: Simulated, run_id: str = "1") -> ChangeSet:
    return simulated.planned(run_id).read_plan().change_set


def accept(simulated: Simulated, targets: Mapping[int, tuple[int, ...]], **fields: str) -> None:
    """Have these rows known as those of a run that has accepted them."""
    identity = fields.get("identity", simulated.cluster.snapshot().topics["shop"].identity)
    shop = TopicMoves(identity=identity, digest="0" * 64, partitions=targets.keys(), targets=targets, sentence="waits")
    known = KnownMoves(cluster_id=fields.get("cluster_id", CLUSTER_ID), topics={"shop": shop})
    simulated.tell_moves = lambda *_: known


def test_a_move_is_planned_with_its_bytes_and_the_states_of_its_partitions(raised: Simulated) -> None:
    found = changes(raised)
    (move,) = found.changes
    assert isinstance(move, ReassignTopic)
    assert (move.copied_bytes, found.move_obstacles) == (0, {})
    assert {p: len(row) for p, row in move.assignment.items()} == {0: 2, 1: 2}


def test_what_a_run_has_accepted_is_not_planned_again_nor_taken_for_another_topic(raised: Simulated) -> None:
    accept(raised, {0: (1, 2), 1: (2, 3)})
    assert changes(raised, "2").changes == ()
    accept(raised, {0: (1, 2), 1: (2, 3)}, identity="another topic of that name")
    assert len(changes(raised, "3").changes) == 1
    accept(raised, {0: (1, 2), 1: (2, 3)}, cluster_id="another cluster")
    assert len(changes(raised, "4").changes) == 1


def test_a_record_of_moves_that_cannot_be_read_stops_the_plan_with_its_path(raised: Simulated) -> None:
    def unreadable(*where: object) -> KnownMoves:
        raise ArtifactError(f"moves/{where[1]}.json: cannot be read")

    raised.tell_moves = unreadable
    with pytest.raises(ArtifactError, match=r"moves/local\.json"):
        changes(raised, "2")


def test_apply_takes_rows_that_a_run_has_accepted_for_moving(raised: Simulated) -> None:
    run = raised.planned()
    (move,) = run.read_plan().change_set.changes
    assert isinstance(move, ReassignTopic)
    accept(raised, move.assignment)
    raised.apply(run, approved=True)
    assert [outcome.status for outcome in outcomes_of(run)] == [OutcomeStatus.MOVING]


WIDE: Assignment = {0: (1, 3), 1: (2, 3)}


@pytest.mark.parametrize(("policy", "moved"), [("refuse", ["shop"]), ("allow", ["other", "shop"])])
def test_a_drain_reaches_topics_that_differ_in_nothing(simulated: Simulated, policy: str, moved: list[str]) -> None:
    for name in ("shop", "other"):
        simulated.cluster.put_topic(name, *WIDE.values(), configs={"min.insync.replicas": "1"})
    simulated.cluster.put_topic("away", (1, 2), configs={"min.insync.replicas": "1"})
    simulated.workspace.topic("shop", partitions=2, replicationFactor=2, configs={"min.insync.replicas": 1})
    simulated.workspace.cluster["draining"] = [3]
    simulated.workspace.policy["drainUnmanaged"] = policy
    found = changes(simulated)
    assert [change.topic for change in found.changes] == moved
    assert all(isinstance(change, ReassignTopic) and change.removed == {3: 2} for change in found.changes)
    assert any("broker 3 (cluster.draining" in warning for warning in found.warnings) is (policy == "refuse")


@pytest.mark.parametrize(
    ("environments", "path"),
    [
        pytest.param(("local",), "found", id="one environment"),
        pytest.param(("local", "second"), "found/local.json", id="two"),
    ],
)
def test_each_command_that_plans_plans_moves(raised: Simulated, environments: tuple[str, ...], path: str) -> None:
    raised.workspace.write_environment()
    first = raised.workspace.folder / "topics/environments/local.yaml"
    text = first.read_text(encoding="utf-8")
    first.with_name("second.yaml").write_text(text.replace("name: local", "name: second"), encoding="utf-8")
    named = (word for name in environments for word in ("--environment", name))
    ended = raised.workspace.run("plan", *named, "--out", "found")
    assert ended.status == 0, ended.err
    plan = json.loads((raised.workspace.folder / path).read_text(encoding="utf-8"))
    assert [(change["topic"], *change["actions"]) for change in plan["changes"]] == [("shop", "reassign")]
