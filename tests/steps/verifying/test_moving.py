"""Verify does not wait for the end of moves of topicops, says how far they are, and sees all else as before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from fakes.changes import configure_topic, plan_of, reassign_topic
from fakes.fake_ports import FakeClock
from fakes.resting_cluster import RestingCluster
from fixtures.verified import troubles
from topicops.model.plans.changes import Change, MoveReason, ReassignTopic
from topicops.model.ports import Clock
from topicops.model.runs.moves import MovesRecord, PartitionMove, Stage, TopicMove
from topicops.model.runs.results import Check, Outcome, OutcomeStatus, Verdict
from topicops.model.specs.environment import Verify
from topicops.steps.verifying.moving import STUCK_AFTER, moving_topics
from topicops.steps.verifying.verify import verify, verify_cluster

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
AN_HOUR_AGO = NOW - timedelta(hours=1)
MIB = 1 << 20


def partition(stage: Stage = Stage.ASKED, **fields: object) -> PartitionMove:
    """Return a move from broker 1 to brokers 1, 2 and 3, asked an hour ago if it was."""
    asked_at = None if stage is Stage.ACCEPTED else AN_HOUR_AGO
    found: dict[str, object] = {"origin": (1,), "target": (1, 2, 3), "stage": stage, "asked_at": asked_at, **fields}
    return PartitionMove(**found)  # type: ignore[arg-type]  # of a test's choice


def record(*partitions: PartitionMove, entries: tuple[str, ...] = (), digest: str = "d" * 64) -> MovesRecord:
    move = TopicMove(
        topic="t",
        identity="id",
        why=MoveReason.FACTOR,
        digest=digest,
        run="cli/1",
        accepted_at=AN_HOUR_AGO,
        partitions=dict(enumerate(partitions)),
        leader_entries=entries,
    )
    return MovesRecord(cluster_id="fake-cluster", topics=(move,), stepped_at=NOW)


WAITING = partition(Stage.ACCEPTED)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        pytest.param(record(WAITING, WAITING), "2 partitions will move", id="none was asked to"),
        pytest.param(record(partition(), WAITING), "moving 1 of 2 partitions", id="not measured yet"),
        pytest.param(
            record(partition(copied_bytes=60 * MIB, size_bytes=100 * MIB, grown_at=NOW)),
            "moving 1 of 1 partition, 60 %, about 40 min",
            id="by the speed so far",
        ),
        pytest.param(
            record(partition(copied_bytes=60 * MIB, size_bytes=100 * MIB, grown_at=NOW), WAITING),
            "moving 1 of 2 partitions, 30 %, about 2 h 20 min",
            id="one that waits counts as large as the others",
        ),
        pytest.param(
            record(partition(Stage.CANCELLING, copied_bytes=60 * MIB, size_bytes=100 * MIB)),
            "moving 1 of 1 partition",
            id="on its way back",
        ),
        pytest.param(
            record(partition(size_bytes=100 * MIB)),
            "moving 1 of 1 partition, 0 %; 1 partition copied nothing for 10 min",
            id="stuck from the start",
        ),
        pytest.param(
            record(entries=("0:1",)), "its replicas have moved; its throttle is still to be removed", id="only owed"
        ),
    ],
)
def test_the_sentence_says_how_far_the_moves_are(found: MovesRecord, sentence: str) -> None:
    assert moving_topics(found)["t"].sentence == sentence


@pytest.mark.parametrize(
    ("move", "is_stuck"),
    [
        pytest.param(partition(size_bytes=9, grown_at=NOW - STUCK_AFTER), True, id="ten minutes"),
        pytest.param(partition(size_bytes=9, grown_at=NOW - STUCK_AFTER + timedelta(seconds=1)), False, id="fewer"),
        pytest.param(partition(size_bytes=9), True, id="never grown since it was asked"),
        pytest.param(partition(size_bytes=9, copied_bytes=9, grown_at=AN_HOUR_AGO), False, id="all is copied"),
        pytest.param(partition(Stage.ACCEPTED, size_bytes=9, grown_at=AN_HOUR_AGO), False, id="it waits"),
        pytest.param(partition(), False, id="never measured"),
    ],
)
def test_a_move_is_stuck_when_steps_saw_it_copy_nothing(move: PartitionMove, is_stuck: bool) -> None:
    assert moving_topics(record(move))["t"].is_stuck is is_stuck


def test_without_a_record_nothing_of_ours_moves() -> None:
    assert moving_topics(None) == {}


# --- verify ---------------------------------------------------------------------------------------------------------


@dataclass
class World:
    """A cluster whose topic ``t`` gets three replicas a partition instead of one."""

    cluster: RestingCluster = field(default_factory=RestingCluster)
    clock: FakeClock = field(default_factory=FakeClock)
    record: MovesRecord | None = None

    def begin(self, *, is_recorded: bool = True, **fields: object) -> ReassignTopic:
        """Move partition 0; partition 1 waits."""
        change = reassign_topic(self.cluster.put_topic("t", (1,), (1,)), (1, 2, 3), (1, 2, 3))
        self.cluster.start_reassignment("t", 0, adding=[2, 3], removing=[])
        if is_recorded:
            digest = plan_of(change).changes[0].digest
            self.record = record(partition(**fields), WAITING, digest=digest)
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
            moving=moving_topics(self.record),
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
    checks = world.verify(world.begin(size_bytes=9))

    assert [(check.id, check.verdict) for check in checks if check.is_problem] == [("V04", Verdict.DEGRADED)]
    assert world.clock.now < 1


def test_a_replica_of_before_that_falls_out_of_sync_is_a_problem_all_the_same() -> None:
    world = World()
    change = reassign_topic(world.cluster.put_topic("t", (1, 2)), (1, 3))
    world.cluster.start_reassignment("t", 0, adding=[3], removing=[2])
    digest = plan_of(change).changes[0].digest
    world.record = record(partition(origin=(1, 2), target=(1, 3)), digest=digest)
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
    ours = verify_cluster(live, world.cluster, moving=moving_topics(world.record))

    assert "V04" in {check.id for check in of_others if check.is_problem}
    assert troubles(ours) == [("V04", Verdict.MOVING, "moving 1 of 2 partitions")]
