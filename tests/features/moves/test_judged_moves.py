"""What the moves of a plan come to once files, policy and cluster were looked at again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from fakes import builders
from fixtures.planning import plan_of
from topicops.features.moves.asked.planner import PLANNER
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic, LogDirectories
from topicops.model.plans.changes import ACTIONS, GateWord, MoveReason, ReassignTopic
from topicops.model.plans.plan import Plan
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.environment import Environment, Limits, Policy, Risk
from topicops.steps.applying.judged_again import Judged, judge_again
from topicops.steps.planning.gate import gate

OPEN = builders.environment(
    limits=Limits(deletes_per_run=9, deletes_percent=100), policy=Policy(unattended=Risk.DESTRUCTIVE)
)
OTHER = builders.desired_topic("clicks", 6)
LATER = datetime(2100, 1, 1, tzinfo=UTC)


def planned(*topics: DesiredTopic, live: ClusterSnapshot, where: Environment = OPEN) -> Plan:
    return gate(plan_of(builders.desired_of(*topics), live, where, moves=PLANNER), where)


def judged(
    plan: Plan, *topics: DesiredTopic, live: ClusterSnapshot, where: Environment = OPEN, approved: Collection[str] = ()
) -> Judged:
    """By these files, this cluster and this policy."""
    desired = builders.desired_of(*topics)
    anew = plan_of(desired, live, where, moves=PLANNER)
    moves = PLANNER.judged(plan, anew, desired, live, where)
    return judge_again(plan, anew, desired=desired, live=live, environment=where, moves=moves, approved=approved)


def fates(found: Judged) -> dict[str, str]:
    return {outcome.topic: f"{outcome.status}: {outcome.message}" for outcome in found.outcomes(ACTIONS)}


def at_rest(name: str, rows: Assignment) -> LiveTopic:
    return builders.live_topic(name, assignment=rows, states=builders.healthy_states(rows))


FOUR = {1: "r1", 2: "r2", 3: "r3", 4: "r4"}
UP = builders.desired_topic("m", 2, replication_factor=2)
FEW: Assignment = {0: (1,), 1: (2,)}
MIN_ISR = {"min.insync.replicas": "1"}


def cluster(*topics: LiveTopic, racks: Mapping[int, str | None] = FOUR) -> ClusterSnapshot:
    return builders.snapshot(*topics, racks=racks, broker_defaults=MIN_ISR)


def moving(rows: Assignment, **fields: object) -> Plan:
    """Return the plan that raises the factor of ``m``, to these rows."""
    plan = planned(UP, live=cluster(at_rest("m", FEW)))
    (gated,) = plan.changes
    assert isinstance(gated.change, ReassignTopic)
    change = replace(gated.change, assignment=rows, **fields)  # type: ignore[arg-type]
    return gate(replace(plan.change_set, changes=(change,)), OPEN)


@pytest.mark.parametrize(
    ("rows", "topic", "live", "fate"),
    [
        pytest.param(
            {0: (1, 3), 1: (2, 4)}, UP, cluster(at_rest("m", FEW)), None, id="rows that a plan of now has not"
        ),
        pytest.param(
            {0: (1, 3), 1: (2, 4)},
            UP,
            cluster(at_rest("m", {0: (2,), 1: (2,)})),
            "refused: the topic changed since the plan (TOP501): replicas of partition 0: planned [1], live [2]",
            id="another origin",
        ),
        pytest.param(
            {0: (1, 3), 1: (2, 4)},
            UP,
            cluster(replace(at_rest("m", FEW), topic_id="another-id-of-22-chars")),
            "refused: the topic changed since the plan (TOP501): identity",
            id="another topic",
        ),
        pytest.param(
            {0: (1, 3), 1: (2, 4)},
            UP,
            cluster(at_rest("m", FEW), racks={1: "r1", 2: "r2", 3: "r3"}),
            "refused: the plan places replicas of partition 1 on broker 4, not live now (TOP501)",
            id="a dead target",
        ),
        pytest.param(
            {0: (1, 3), 1: (2, 4)},
            UP,
            replace(cluster(at_rest("m", FEW)), log_directories={4: LogDirectories(held={}, cordoned=True)}),
            "refused: the plan places replicas on broker 4, which is cordoned (TOP501)",
            id="a cordoned target",
        ),
        pytest.param(
            {0: (1, 3), 1: (2, 4)},
            UP,
            cluster(at_rest("m", FEW), racks={1: "r1", 2: "r2", 3: "r1", 4: "r4"}),
            "refused: the plan's replicas of partition 0, [1, 3], are on fewer racks than they can be (TOP501)",
            id="fewer racks",
        ),
        pytest.param(
            {0: (1, 3, 4), 1: (2, 4, 1)},
            UP,
            cluster(at_rest("m", FEW)),
            "refused: the plan's replicas of partition 0, [1, 3, 4], are not 2 brokers (TOP501)",
            id="more replicas than the file asks for",
        ),
        pytest.param(
            {0: (1, 3), 1: (2, 4)},
            replace(UP, replication_factor=1),
            cluster(at_rest("m", FEW)),
            "refused: its file asks for something else",
            id="the old factor",
        ),
        pytest.param(
            {0: (1, 3), 1: (2, 4)},
            replace(UP, assignment={0: (1, 3), 1: (2, 3)}),
            cluster(at_rest("m", FEW)),
            "refused: ",
            id="other rows by hand",
        ),
        pytest.param(
            {0: (1, 3), 1: (2, 4)}, UP, cluster(at_rest("m", {0: (1, 3), 1: (2, 4)})), "already so: ", id="done"
        ),
        pytest.param(
            {0: (1, 3), 1: (2, 4)},
            UP,
            replace(cluster(at_rest("m", FEW)), accepted_moves={"m": {0: (1, 3), 1: (2, 4)}}),
            "moving: a run has accepted it already",
            id="accepted",
        ),
        pytest.param(
            {0: (1, 3), 1: (2, 4)},
            UP,
            replace(cluster(at_rest("m", {0: (1, 3), 1: (2,)})), accepted_moves={"m": {1: (2, 4)}}),
            "moving: a run has accepted it already",
            id="half done",
        ),
        pytest.param(
            {0: (1, 3), 1: (2, 4)},
            UP,
            replace(cluster(at_rest("m", FEW)), accepted_moves={"m": {0: (1, 4), 1: (2, 3)}}),
            "refused: ",
            id="accepted with other rows",
        ),
        pytest.param(
            {0: (1, 3), 1: (2, 4)},
            UP,
            cluster(
                builders.live_topic(
                    "m", assignment=FEW, states={**builders.healthy_states(FEW), 0: builders.partition_state([2])}
                )
            ),
            "refused: partition 0 is under-replicated",
            id="an ISR that shrank",
        ),
    ],
)
def test_the_rows_of_a_planned_move_count_while_nothing_speaks_against_them(
    rows: Assignment, topic: DesiredTopic, live: ClusterSnapshot, fate: str | None
) -> None:
    plan = moving(rows)
    found = judged(plan, topic, live=live)
    if fate is None:
        assert fates(found) == {}
        assert [gated.digest for gated in found.without(()).with_gate(GateWord.RUN)] == [plan.changes[0].digest]
    else:
        assert fates(found)["m"].startswith(fate)
        assert found.without(found.outcomes(ACTIONS)).with_gate(GateWord.RUN) == ()


@pytest.mark.parametrize("is_deleted", [False, True], ids=["expanded", "deleted"])
def test_a_topic_whose_moves_a_run_has_accepted_meanwhile_is_neither_expanded_nor_deleted(is_deleted: bool) -> None:
    live = cluster(at_rest("m", FEW), at_rest("clicks", dict.fromkeys(range(6), (1, 2, 3))))
    wanted = builders.desired_topic("m", 4, replication_factor=1)
    if is_deleted:
        wanted = builders.tombstone("m", topic_id=live.topics["m"].topic_id)
    plan = planned(wanted, OTHER, live=live)
    assert [gated.change.topic for gated in plan.changes] == ["m"]

    found = judged(plan, wanted, OTHER, live=replace(live, accepted_moves={"m": {0: (3,)}}))

    assert fates(found)["m"].startswith("refused: ")
    assert "replicas of this topic move, or wait for it, by an approved change" in fates(found)["m"]


EVEN = builders.desired_topic("m", 2, replication_factor=1)
TO_3: Assignment = {0: (3,)}
BALANCE: dict[str, object] = {"assignment_before": {0: (1,)}, "why": MoveReason.BALANCE, "codes": ()}
DRAIN: dict[str, object] = {**BALANCE, "why": MoveReason.DRAIN}
ALLOWED = replace(
    OPEN, spec=msgspec.structs.replace(OPEN.spec, policy=Policy(unattended=Risk.DESTRUCTIVE, drain_unmanaged="allow"))
)
REFUSING = replace(
    OPEN, spec=msgspec.structs.replace(OPEN.spec, policy=Policy(unattended=Risk.DESTRUCTIVE, reassign="refuse"))
)


@pytest.mark.parametrize(
    ("fields", "topic", "live", "where", "fate"),
    [
        pytest.param(BALANCE, EVEN, cluster(at_rest("m", FEW)), OPEN, None, id="balance"),
        pytest.param(DRAIN, EVEN, cluster(at_rest("m", FEW)), OPEN, None, id="drain"),
        pytest.param(
            BALANCE,
            UP,
            cluster(at_rest("m", FEW)),
            OPEN,
            "refused: its file asks for something else",
            id="another factor",
        ),
        pytest.param(
            BALANCE,
            replace(EVEN, assignment=FEW),
            cluster(at_rest("m", FEW)),
            OPEN,
            "refused: its file gives its replicas by hand",
            id="replicas by hand",
        ),
        pytest.param(
            BALANCE,
            replace(builders.paused_topic("m", 2, until=LATER), replication_factor=1),
            cluster(at_rest("m", FEW)),
            OPEN,
            "refused: its file says paused",
            id="a pause",
        ),
        pytest.param(
            DRAIN,
            None,
            cluster(at_rest("m", FEW)),
            OPEN,
            "refused: no file describes the topic, and policy",
            id="no file",
        ),
        pytest.param(DRAIN, None, cluster(at_rest("m", FEW)), ALLOWED, None, id="no file, and allowed"),
        pytest.param(
            BALANCE, EVEN, cluster(at_rest("m", FEW)), REFUSING, "refused: policy.reassign refuses moves", id="policy"
        ),
        pytest.param(
            BALANCE,
            EVEN,
            builders.snapshot(at_rest("m", FEW), racks=FOUR, broker_defaults={"min.insync.replicas": "2"}),
            OPEN,
            "refused: min.insync.replicas is 2",
            id="producers would stop",
        ),
        pytest.param(
            DRAIN,
            None,
            builders.snapshot(at_rest("m", FEW), racks=FOUR, broker_defaults={"min.insync.replicas": "2"}),
            ALLOWED,
            "refused: min.insync.replicas is 2",
            id="producers of a topic without a file would stop",
        ),
        pytest.param(
            BALANCE,
            EVEN,
            cluster(at_rest("m", {0: (2,), 1: (2,)})),
            OPEN,
            "refused: the topic changed since the plan (TOP501): replicas of partition 0",
            id="another origin",
        ),
        pytest.param(BALANCE, EVEN, cluster(at_rest("m", {0: (3,), 1: (2,)})), OPEN, "already so: ", id="done"),
    ],
)
def test_a_move_that_a_command_asked_for_is_judged_by_itself(
    fields: dict[str, object], topic: DesiredTopic | None, live: ClusterSnapshot, where: Environment, fate: str | None
) -> None:
    plan = moving(TO_3, **fields)
    (gated,) = plan.changes
    found = judged(plan, OTHER, *([topic] if topic else []), live=live, where=where, approved=[gated.digest])
    if fate is None:
        assert fates(found) == {}
    else:
        assert fates(found)["m"].startswith(fate)


def test_a_move_keeps_the_risk_of_a_plan_without_files_which_is_the_worst() -> None:
    plan = moving({0: (1, 3), 1: (2, 4)})
    worst = tuple(replace(change, risk=Risk.DESTRUCTIVE) for change in plan.change_set.changes)
    where = builders.environment(policy=Policy(unattended=Risk.RISKY))
    anew, live = replace(plan.change_set, changes=worst), cluster(at_rest("m", FEW))
    desired = builders.desired_of()
    moves = PLANNER.judged(plan, anew, desired, live, where)
    found = judge_again(plan, anew, desired=desired, live=live, environment=where, moves=moves)
    assert fates(found)["m"].startswith("refused: risk destructive, up to risky allowed")


def test_a_topic_without_a_file_moves_only_with_an_approval_whatever_the_plan_says_of_its_risk() -> None:
    plan = moving(TO_3, **DRAIN, risk=Risk.SAFE)
    found = judged(plan, OTHER, live=cluster(at_rest("m", FEW)), where=ALLOWED)
    assert "TOP443" in fates(found)["m"]
