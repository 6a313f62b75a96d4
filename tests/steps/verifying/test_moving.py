"""Verify does not wait for the end of moves of topicops, says how far they are, and sees all else as before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from fakes.changes import configure_topic, plan_of, reassign_topic
from fakes.fake_ports import FakeClock
from fakes.resting_cluster import RestingCluster
from fixtures.verified import troubles
from topicops.model.plans.changes import Change, ReassignTopic
from topicops.model.ports import Clock
from topicops.model.runs.moves import TopicMoves
from topicops.model.runs.results import Check, Outcome, OutcomeStatus, Verdict
from topicops.model.specs.environment import Verify
from topicops.steps.verifying.verify import verify, verify_cluster


def waits_and_moves(digest: str, *, is_stuck: bool = False) -> Mapping[str, TopicMoves]:
    """Return what is known of topic ``t``: partition 0 moves, and partition 1 waits."""
    moves = TopicMoves(
        identity="id",
        digest=digest,
        partitions={0, 1},
        asked={0},
        sentence="moving 1 of 2 partitions",
        is_stuck=is_stuck,
    )
    return {"t": moves}


@dataclass
class World:
    """A cluster whose topic ``t`` gets three replicas a partition instead of one."""

    cluster: RestingCluster = field(default_factory=RestingCluster)
    clock: FakeClock = field(default_factory=FakeClock)
    moving: Mapping[str, TopicMoves] = field(default_factory=dict)

    def begin(self, *, is_recorded: bool = True, is_stuck: bool = False) -> ReassignTopic:
        """Move partition 0; partition 1 waits."""
        change = reassign_topic(self.cluster.put_topic("t", (1,), (1,)), (1, 2, 3), (1, 2, 3))
        self.cluster.start_reassignment("t", 0, adding=[2, 3], removing=[])
        if is_recorded:
            self.moving = waits_and_moves(plan_of(change).changes[0].digest, is_stuck=is_stuck)
        return change

    def verify(self, *changes: Change, status: OutcomeStatus = OutcomeStatus.MOVING) -> tuple[Check, ...]:
        plan = plan_of(*changes)
        statuses: Mapping[str, OutcomeStatus] = {"reassign": status}
        return verify(
            plan,
            [Outcome.of(g, statuses.get(g.change.action, OutcomeStatus.DONE), sent=True) for g in plan.changes],
            reader=self.cluster,
            metadata=self.cluster,
            deadlines=Verify(),
            clock=Clock(self.clock, self.clock.sleep),
            moving=self.moving,
        )


def test_a_move_that_runs_is_no_problem_and_nothing_waits_for_its_end() -> None:
    world = World()
    checks = world.verify(world.begin())

    assert troubles(checks) == [("V04", Verdict.MOVING, "moving 1 of 2 partitions")]
    assert not any(check.is_problem for check in checks)
    assert {check.id for check in checks} >= {"V14", "V16"}  # the brokers were asked all the same
    assert world.clock.now < 1


def alter(world: World, **fields: object) -> None:
    """Give the state of partition 0, which moves, other fields than the controller would."""
    live = world.cluster.live("t")
    states = dict(live.states or {})
    states[0] = replace(states[0], **fields)  # type: ignore[arg-type]  # of a test's choice
    world.cluster.put_as_is(replace(live, states=states))


def test_a_broker_that_learns_of_a_step_later_is_not_waited_for() -> None:
    world = World()
    change = world.begin()
    world.cluster.freeze_metadata(3)
    alter(world, isr=(1, 2))

    checks = world.verify(change)

    assert {check.id: check.verdict for check in checks if check.message} == dict.fromkeys(
        ("V04", "V14"), Verdict.MOVING
    )
    assert world.clock.now < 1


def test_steps_that_follow_each_other_do_not_keep_verify_busy() -> None:
    world = World()
    change = world.begin()
    for epoch in range(1, 600):
        world.clock.at(epoch / 10, partial(alter, world, leader_epoch=epoch))

    checks = world.verify(change)

    assert not any(check.is_problem for check in checks)
    assert world.clock.now < 1


def test_the_same_move_by_somebody_else_is_waited_for() -> None:
    world = World()
    checks = world.verify(world.begin(is_recorded=False))

    assert {check.id: check.verdict for check in checks if check.is_problem}["V04"] is Verdict.CONVERGING
    assert world.clock.now >= Verify().leaders.total_seconds()


def test_a_stuck_move_is_a_problem_at_once() -> None:
    world = World()
    checks = world.verify(world.begin(is_stuck=True))

    assert [(check.id, check.verdict) for check in checks if check.is_problem] == [("V04", Verdict.DEGRADED)]
    assert world.clock.now < 1


def test_a_replica_of_before_that_falls_out_of_sync_is_a_problem_all_the_same() -> None:
    world = World()
    change = reassign_topic(world.cluster.put_topic("t", (1, 2)), (1, 3))
    world.cluster.start_reassignment("t", 0, adding=[3], removing=[2])
    world.moving = waits_and_moves(plan_of(change).changes[0].digest)
    world.cluster.hold_back(2)

    problems = [(check.id, check.message) for check in world.verify(change) if check.is_problem]

    assert problems == [("V08", "partition 0 lacks broker 2 in its ISR")]


def test_another_change_of_a_topic_that_moves_is_verified_as_ever() -> None:
    world = World()
    move = world.begin()
    configure = configure_topic(world.cluster.live("t"), {"retention.ms": "1000"})
    world.cluster.set_configs("t", {"retention.ms": "2000"})

    problems = [(check.id, check.message) for check in world.verify(configure, move) if check.is_problem]

    assert problems == [("V15", "retention.ms: planned 1000, live 2000")]


@pytest.mark.parametrize(
    ("ends", "problems"),
    [
        pytest.param(True, [], id="as planned"),
        pytest.param(False, ["replicas of partition 0: planned [2, 3], live [1, 2]"], id="not moved"),
    ],
)
def test_a_move_that_is_done_has_the_planned_rows(ends: bool, problems: list[str]) -> None:
    world = World()
    change = reassign_topic(world.cluster.put_topic("t", (1, 2)), (2, 3))
    if ends:
        world.cluster.start_reassignment("t", 0, adding=[3], removing=[1])
        world.cluster.end_reassignment("t")

    checks = world.verify(change, status=OutcomeStatus.DONE)

    assert [check.message for check in checks if check.is_problem] == problems


def test_a_plan_that_is_verified_later_finds_its_move_under_way() -> None:
    """``verify PLAN`` takes every change for done."""
    world = World()

    assert not any(check.is_problem for check in world.verify(world.begin(), status=OutcomeStatus.DONE))


def test_a_check_of_the_whole_cluster_knows_the_moves_of_topicops() -> None:
    world = World()
    world.begin()
    live = world.cluster.snapshot(states=True)

    of_others = verify_cluster(live, world.cluster)
    ours = verify_cluster(live, world.cluster, moving=world.moving)

    assert "V04" in {check.id for check in of_others if check.is_problem}
    assert troubles(ours) == [("V04", Verdict.MOVING, "moving 1 of 2 partitions")]
