"""Moves in a plan: which topics get one, what blocks it, what the gate says, and what a drain leaves where it is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import pytest

from fakes.builders import (
    ENVIRONMENT_FILE,
    THREE_BROKERS,
    desired_of,
    desired_topic,
    environment,
    healthy_states,
    live_topic,
    location,
    partition_state,
    paused_topic,
    snapshot,
    tombstone,
    topic_id,
)
from fixtures.planning import plan_of
from topicops.features.moves.asked.changes import foreign_moves, move_obstacles
from topicops.features.moves.asked.planner import PLANNER
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic, LogDirectories, Tally
from topicops.model.plans.changes import Change, GateWord, MoveReason, ReassignTopic
from topicops.model.plans.plan import Blocked, ChangeSet, GatedChange
from topicops.model.plans.plan_file import changes_from_json, changes_to_json, plan_from_json, plan_to_json
from topicops.model.release import ALTER_REASSIGNMENTS, Release, Releases
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Apply, Environment, Limits, Policy, Risk
from topicops.steps.planning.gate import gate

FOUR = {**THREE_BROKERS, 4: "r1"}
ONES: Assignment = {0: (1,), 1: (2,), 2: (3,)}
MIN_ISR_1 = {"min.insync.replicas": "1"}
RAISED = desired_topic("a", locations={"replicationFactor": location("a", 7)})


def rest(rows: Assignment, name: str = "a", **fields: object) -> LiveTopic:
    """Return a topic at rest."""
    return replace(live_topic(name, assignment=rows, states=healthy_states(rows)), **fields)  # type: ignore[arg-type]


def cluster(
    *topics: LiveTopic, defaults: Mapping[str, str] | None = MIN_ISR_1, racks: Mapping[int, str | None] = THREE_BROKERS
) -> ClusterSnapshot:
    return snapshot(*topics, broker_defaults=defaults, racks=racks)


def place(*, draining: Sequence[int] = (), policy: Policy | None = None, **fields: object) -> Environment:
    found = environment(policy=policy)
    spec = msgspec.structs.replace(found.spec, **fields)
    spec = msgspec.structs.replace(spec, cluster=msgspec.structs.replace(spec.cluster, draining=tuple(draining)))
    places = {"cluster.draining": Location(ENVIRONMENT_FILE, 9, 15)}
    return replace(found, spec=spec, locations={**found.locations, **places})


def planned(*topics: DesiredTopic, live: ClusterSnapshot, where: Environment | None = None) -> ChangeSet:
    return plan_of(desired_of(*topics), live, where, moves=PLANNER)


def move_of(found: ChangeSet) -> ReassignTopic:
    (change,) = found.changes
    assert isinstance(change, ReassignTopic), change
    assert found.blocked == ()
    return change


def blocked_in(found: ChangeSet) -> Blocked:
    (blocked,) = found.blocked
    assert not any(isinstance(change, ReassignTopic) for change in found.changes)
    return blocked


def named(changes: Sequence[Change]) -> list[tuple[str, str]]:
    return [(change.action, change.topic) for change in changes]


# ---- from the topic's file ----


def test_another_factor_is_a_move_that_shows_both_rows_of_each_partition() -> None:
    change = move_of(planned(RAISED, live=cluster(rest(ONES))))
    assert (change.why, change.risk, change.codes) == (MoveReason.FACTOR, Risk.RISKY, ("TOP402",))
    assert change.assignment_before == ONES
    assert {p: (row[0], sorted(row)) for p, row in change.assignment.items()} == {
        p: (p + 1, [1, 2, 3]) for p in range(3)
    }
    assert change.location == location("a", 7)
    assert change.precondition.to_json() == {"identity": topic_id("a")}
    assert change.notes == ()  # the plan says once, of all its moves, how each is taken back


@pytest.mark.parametrize(
    ("rows", "wanted", "risk", "why", "code"),
    [
        pytest.param({0: (1, 2)}, {0: (1, 3)}, Risk.RISKY, MoveReason.ASSIGNMENT, "TOP425", id="another broker"),
        pytest.param({0: (1, 2)}, {0: (2, 1)}, Risk.NOTICE, MoveReason.ASSIGNMENT, "TOP425", id="another order"),
    ],
)
def test_replicas_given_by_hand_are_the_rows_and_only_their_order_is_a_notice(
    rows: Assignment, wanted: Assignment, risk: Risk, why: MoveReason, code: str
) -> None:
    topic = desired_topic("a", 1, replication_factor=2, assignment=wanted)
    change = move_of(planned(topic, live=cluster(rest(rows))))
    assert (change.assignment, change.risk, change.why, change.codes) == (wanted, risk, why, (code,))


def test_a_topic_with_mixed_factors_is_made_even() -> None:
    rows: Assignment = {0: (1, 2, 3), 1: (2, 3)}
    change = move_of(planned(desired_topic("a", 2), live=cluster(rest(rows))))
    assert (change.codes, sorted(change.assignment[1])) == (("TOP423",), [1, 2, 3])
    assert list(change.assignment) == [1]


def test_a_topic_moves_after_its_configs_are_set_and_before_anything_is_deleted() -> None:
    live = cluster(rest(ONES), rest(ONES, "old"), rest(ONES, "b"))
    wanted = [
        replace(RAISED, configs={"retention.ms": "5"}),
        tombstone("old"),
        desired_topic("b", 4, replication_factor=1),
    ]
    assert named(planned(*wanted, live=live).changes) == [
        ("expand", "b"),
        ("configure", "a"),
        ("reassign", "a"),
        ("delete", "old"),
    ]


def test_new_partitions_come_first_and_the_others_move_in_a_later_run() -> None:
    found = planned(desired_topic("a", 4), live=cluster(rest(ONES)))
    assert named(found.changes) == [("expand", "a")]
    assert "move in a later run" in found.changes[0].notes[-1]


def test_with_replicas_by_hand_the_move_comes_first_because_new_rows_must_have_the_old_factor() -> None:
    rows = dict.fromkeys(range(4), (1, 2))
    found = planned(desired_topic("a", 4, replication_factor=2, assignment=rows), live=cluster(rest(ONES)))
    assert named(found.changes) == [("reassign", "a")]
    assert "come in a later run" in found.changes[0].notes[-1]


@pytest.mark.parametrize("factor", [2, 1])
def test_the_load_of_brokers_counts_moves(factor: int) -> None:
    rows: Assignment = {0: (1, 2, 3)} if factor == 1 else {0: (1,)}
    change_set = planned(desired_topic("a", 1, replication_factor=factor), live=cluster(rest(rows)))
    move, loads = move_of(change_set), {load.broker: load for load in change_set.load.brokers}
    for broker, load in loads.items():
        gained = move.added.get(broker, 0) - move.removed.get(broker, 0)
        assert load.after.replicas - load.before.replicas == gained


def test_a_moving_topic_may_be_balanced_by_the_moves_before_it() -> None:
    live = cluster(rest({0: (1,)}), rest({0: (1,)}, "b"), racks={1: "r1", 2: "r2", 3: "r2"})
    topics = (desired_topic(name, 1, replication_factor=2) for name in "ab")
    found = planned(*topics, live=live)
    assert [change.assignment for change in found.changes if isinstance(change, ReassignTopic)] == [
        {0: (1, 2)},
        {0: (1, 3)},
    ]


def test_what_an_earlier_move_gives_up_counts_for_the_next_one() -> None:
    live = cluster(rest({0: (2,)}), rest({0: (1,)}, "b"), rest({0: (2,)}, "x"), racks={1: "r1", 2: "r2", 3: "r2"})
    by_hand = desired_topic("a", 1, replication_factor=1, assignment={0: (3,)})
    _, second = planned(by_hand, desired_topic("b", 1, replication_factor=2), live=live).changes
    assert isinstance(second, ReassignTopic)
    assert second.assignment == {0: (1, 2)}


LOGS = {
    1: LogDirectories(held={"a": frozenset({0, 1})}, log_bytes={"a": 300}),
    2: LogDirectories(held={"a": frozenset({1})}, log_bytes={"a": 100}),
    3: LogDirectories(held={}),
}


@pytest.mark.parametrize(
    ("rows", "factor", "logs", "copied"),
    [
        pytest.param({0: (1,), 1: (2,)}, 3, LOGS, 500, id="the average of each leader"),
        pytest.param({0: (1, 2, 3), 1: (1, 2, 3)}, 2, LOGS, 0, id="fewer replicas copy nothing"),
        pytest.param({0: (1,), 1: (2,)}, 3, {**LOGS, 2: "broker 2 gave no answer"}, None, id="one that does not tell"),
        pytest.param({0: (1,), 1: (3,)}, 3, LOGS, None, id="a log that is not there"),
    ],
)
def test_the_bytes_to_copy_are_those_of_the_present_logs(
    rows: Assignment, factor: int, logs: Mapping[int, LogDirectories | str | None], copied: int | None
) -> None:
    live = replace(cluster(rest(rows)), log_directories=logs)
    assert move_of(planned(desired_topic("a", 2, replication_factor=factor), live=live)).copied_bytes == copied


def test_a_plan_with_a_move_comes_back_from_its_file_as_it_was() -> None:
    live = replace(cluster(rest(ONES, states={0: partition_state([])})), log_directories=LOGS)
    found = planned(RAISED, live=live)
    assert found.move_obstacles
    assert changes_from_json(changes_to_json(found)) == found
    plan = gate(found, environment())
    assert plan_from_json(plan_to_json(plan)) == plan
    (entry,) = json.loads(plan_to_json(plan))["changes"]
    assert (entry["why"], entry["after"]) == ("factor", {"assignment": json.loads(json.dumps(rows_of(found)))})


def rows_of(found: ChangeSet) -> Mapping[str, list[int]]:
    (change,) = found.changes
    assert isinstance(change, ReassignTopic)
    return {str(p): list(row) for p, row in change.assignment.items()}


# ---- what blocks it ----


OLD = Releases(Release(2, 3), Release(3, 9))
CORDONED = {2: LogDirectories(held={}, cordoned=True)}
BY_HAND = desired_topic("a", 1, replication_factor=2, assignment={0: (1, 3)})


@pytest.mark.parametrize(
    ("topic", "live", "where", "codes", "reason", "way_out", "by_tool"),
    [
        pytest.param(
            RAISED,
            cluster(rest(ONES)),
            place(policy=Policy(reassign="refuse")),
            ("TOP402",),
            "policy.reassign refuses moves (policy.reassign, by default)",
            "run the reassignment that the plan carries with Kafka's own tool, then plan again",
            True,
            id="policy",
        ),
        pytest.param(
            RAISED,
            replace(cluster(rest(ONES)), releases=OLD),
            place(),
            ("TOP402",),
            "the brokers run Kafka 2.3: before 2.4 only a write under Kafka's ZooKeeper paths could start a move, and "
            "nothing could cancel it",
            "run the reassignment that the plan carries",
            True,
            id="an old broker",
        ),
        pytest.param(
            RAISED,
            replace(cluster(rest(ONES)), releases=None),
            place(),
            ("TOP402",),
            "the brokers' release is not known: before 2.4",
            "run the reassignment that the plan carries",
            True,
            id="no release known",
        ),
        pytest.param(
            RAISED,
            replace(cluster(rest(ONES)), missing_requests={str(ALTER_REASSIGNMENTS): (2,)}),
            place(),
            ("TOP402",),
            "broker 2 does not offer AlterPartitionReassignments",
            "ask who runs the brokers for it: Kafka's own brokers offer it since 2.4",
            False,
            id="a request not offered",
        ),
        pytest.param(
            RAISED,
            replace(cluster(rest(ONES)), reassigning=frozenset({"a"})),
            place(),
            ("TOP402",),
            "a reassignment of this topic is running",
            "wait until the reassignment that is running has ended",
            False,
            id="a move of others",
        ),
        pytest.param(
            desired_topic("a", 3, replication_factor=4),
            cluster(rest(ONES)),
            place(),
            ("TOP402",),
            "replication factor 4 needs as many brokers; 3 may get replicas",
            "start brokers until 4 are live",
            False,
            id="too few brokers",
        ),
        pytest.param(
            BY_HAND,
            cluster(rest({0: (1, 2)}), racks={1: "r1", 2: "r2"}),
            place(),
            ("TOP425",),
            "the assignment names broker 3, not live",
            "start broker 3",
            False,
            id="a dead target",
        ),
        pytest.param(
            replace(BY_HAND, assignment={0: (1, 2)}),
            replace(cluster(rest({0: (1, 3)})), log_directories=CORDONED),
            place(),
            ("TOP425",),
            "the assignment names broker 2, which is cordoned",
            "name other brokers than broker 2, which is cordoned",
            False,
            id="a cordoned target",
        ),
        pytest.param(
            replace(BY_HAND, assignment={0: (3, 1)}),
            cluster(rest({0: (1, 3)})),
            place(draining=[3]),
            ("TOP425",),
            "the assignment names broker 3, which is in cluster.draining",
            "name other brokers than broker 3",
            False,
            id="a draining target",
        ),
        pytest.param(
            replace(BY_HAND, assignment={0: (1, 2)}),
            replace(cluster(rest({0: (1, 3)})), log_directories={2: LogDirectories(held={}, failed=("/d",))}),
            place(),
            ("TOP425",),
            "",
            "replace the disk, or take it out of log.dirs, and restart the broker",
            False,
            id="a target with a failed disk",
        ),
    ],
)
def test_a_move_that_cannot_begin_is_blocked_with_the_way_to_it(
    topic: DesiredTopic,
    live: ClusterSnapshot,
    where: Environment,
    codes: tuple[str, ...],
    reason: str,
    way_out: str,
    by_tool: bool,
) -> None:
    blocked = blocked_in(planned(topic, live=live, where=where))
    assert blocked.codes == codes
    assert reason in blocked.reasons[0]
    assert blocked.way_out.startswith(way_out)
    assert (blocked.reassignment is not None) is by_tool


def test_a_written_release_counts_where_the_brokers_do_not_tell_theirs_and_the_plan_says_so() -> None:
    live, where = replace(cluster(rest(ONES)), releases=None), place()
    where = replace(where, locations={**where.locations, "cluster.kafkaVersion": Location(ENVIRONMENT_FILE, 5, 3)})
    assert "kafkaVersion of the environment, 3.9, counts" in move_of(planned(RAISED, live=live, where=where)).notes[-1]


# ---- min.insync.replicas ----

NEW, OLDER = Releases(Release(3, 9), Release(3, 9)), Releases(Release(3, 6), Release(3, 6))


@pytest.mark.parametrize(
    ("rows", "isr", "own", "default", "factor", "releases", "reason"),
    [
        pytest.param(
            (1,), [1], "2", "1", 3, NEW, "min.insync.replicas is 2, and of partition 0 only 1 is in", id="1 of 2"
        ),
        pytest.param((1,), [1], None, "2", 3, NEW, "min.insync.replicas is 2", id="by the brokers' default"),
        pytest.param((1,), [1], None, None, 3, NEW, "min.insync.replicas is not known", id="a default not known"),
        pytest.param((1,), [1], "2", "1", 3, None, "min.insync.replicas is 2", id="releases not known"),
        pytest.param((1,), [1], "2", "1", 3, OLDER, None, id="before 3.7 they are refused already"),
        pytest.param((1,), [1], "1", "2", 3, NEW, None, id="the topic's own value wins"),
        pytest.param((1, 2), [1, 2], "2", "1", 3, NEW, None, id="enough in sync"),
        pytest.param((1, 2), [1], "2", "1", 3, NEW, None, id="refused already"),
        pytest.param((1, 2), [1, 2], "3", "1", 3, NEW, "min.insync.replicas is 3", id="2 of 3"),
        pytest.param(
            (1, 2, 3), [1, 2, 3], "2", "1", 1, NEW, "the replication factor is to be 1", id="below it for good"
        ),
        pytest.param((1, 2, 3), [1, 2, 3], "2", "1", 2, NEW, None, id="just as many"),
        pytest.param((1, 2, 3), [1, 2, 3], None, None, 2, NEW, "is not known", id="below one not known"),
    ],
)
def test_a_move_never_stops_producers_that_write_now(
    rows: tuple[int, ...],
    isr: list[int],
    own: str | None,
    default: str | None,
    factor: int,
    releases: Releases | None,
    reason: str | None,
) -> None:
    overrides = {"min.insync.replicas": own} if own else {}
    topic = live_topic("a", assignment={0: rows}, states={0: partition_state(isr)}, overrides=overrides)
    live = replace(cluster(topic, defaults={"min.insync.replicas": default} if default else None), releases=releases)
    where = place()
    where = replace(where, locations={**where.locations, "cluster.kafkaVersion": Location(ENVIRONMENT_FILE, 5, 3)})
    wanted = desired_topic("a", 1, replication_factor=factor, configs={"min.insync.replicas": own} if own else {})
    found = planned(wanted, live=live, where=where)
    if reason is None:
        assert move_of(found).why is MoveReason.FACTOR
    else:
        blocked = blocked_in(found)
        assert blocked.codes == ("TOP415",)
        assert reason in blocked.reasons[0]
        assert blocked.reassignment is None  # Kafka's tool would stop them as well


def test_the_way_out_of_that_works_as_it_is_typed() -> None:
    """Lower it in the file, apply; let the replicas move; raise it again."""
    strict = live_topic(
        "a", assignment={0: (1,)}, states={0: partition_state([1])}, overrides={"min.insync.replicas": "2"}
    )
    blocked = blocked_in(planned(desired_topic("a", 1, configs={"min.insync.replicas": "2"}), live=cluster(strict)))
    assert blocked.way_out.startswith("set min.insync.replicas: 1 in its file and apply that")

    lowered = desired_topic("a", 1, configs=dict(MIN_ISR_1))
    first = planned(lowered, live=cluster(strict))
    assert named(first.changes) == [("configure", "a")]
    assert "move in a later run, once this value of min.insync.replicas is live" in first.changes[0].notes[-1]

    second = planned(lowered, live=cluster(replace(strict, overrides=MIN_ISR_1)))
    rows = move_of(second).assignment

    moved = live_topic("a", assignment=rows, states=healthy_states(rows), overrides=MIN_ISR_1)
    third = planned(desired_topic("a", 1, configs={"min.insync.replicas": "2"}), live=cluster(moved))
    assert named(third.changes) == [("configure", "a")]


def test_raising_both_at_once_says_which_comes_first() -> None:
    topic = rest({0: (1,)})
    blocked = blocked_in(planned(desired_topic("a", 1, configs={"min.insync.replicas": "2"}), live=cluster(topic)))
    assert (set(blocked.codes), "raise replicationFactor alone" in blocked.way_out) == ({"TOP415"}, True)


# ---- accepted moves ----

TO_THREE: Assignment = {p: (p + 1, *({1, 2, 3} - {p + 1})) for p in range(3)}


def accepting(rows: Assignment = TO_THREE, **fields: object) -> ClusterSnapshot:
    return replace(cluster(rest(ONES), **fields), accepted_moves={"a": rows})  # type: ignore[arg-type]


def test_what_a_run_has_accepted_is_taken_for_granted() -> None:
    found = planned(RAISED, live=accepting())
    assert (found.changes, found.blocked) == ((), ())


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        pytest.param(desired_topic("a", 6), "TOP419", id="more partitions"),
        pytest.param(tombstone("a"), "TOP419", id="a delete"),
        pytest.param(desired_topic("a", replication_factor=1), "TOP402", id="the old factor"),
    ],
)
def test_a_topic_with_accepted_moves_waits_for_them_and_the_plan_names_the_command(
    topic: DesiredTopic, code: str
) -> None:
    blocked = blocked_in(planned(topic, live=accepting()))
    assert blocked.codes == (code,)
    assert "topicops moves --environment local --cancel a" in blocked.way_out


def test_other_configs_of_a_topic_with_accepted_moves_may_change() -> None:
    found = planned(desired_topic("a", configs={"retention.ms": "5"}), live=accepting())
    assert named(found.changes) == [("configure", "a")]


def test_a_plan_says_which_accepted_moves_a_paused_file_has() -> None:
    found = planned(paused_topic("a"), live=accepting())
    assert (found.changes, found.blocked) == ((), ())
    assert found.warnings == (
        "the file of a pauses it, and moves of its replicas are accepted: "
        "topicops moves --environment local --cancel a takes them back",
    )


def test_partitions_that_were_not_accepted_are_no_part_of_it() -> None:
    blocked = blocked_in(planned(RAISED, live=accepting({0: (1, 2, 3)})))
    assert blocked.codes == ("TOP423",)


# ---- a drain ----

WIDE: Assignment = {0: (1, 2), 1: (2, 3), 2: (3, 1)}
ALLOWED = Policy(drain_unmanaged="allow")
OFFSETS = "__consumer_offsets"


def test_a_drain_moves_only_what_is_on_the_broker_and_leaves_the_rest() -> None:
    live = cluster(rest(WIDE), rest({0: (1, 2)}, "b"), racks=FOUR)
    topics = desired_topic("a", replication_factor=2), desired_topic("b", 1, replication_factor=2)
    change = move_of(planned(*topics, live=live, where=place(draining=[3])))
    assert (change.topic, change.why, change.codes, change.risk) == ("a", MoveReason.DRAIN, (), Risk.RISKY)
    assert (change.removed, change.assignment_before) == ({3: 2}, {1: (2, 3), 2: (3, 1)})
    assert sum(change.added.values()) == 2
    assert not any(3 in row for row in change.assignment.values())
    assert change.location.file == "topics/shop/a.yaml"


def test_without_leave_topics_that_no_file_describes_stay_and_one_sentence_says_what_keeps_the_broker() -> None:
    live = cluster(rest(WIDE), rest(WIDE, OFFSETS), rest(WIDE, "other"), rest(WIDE, "p"), racks=FOUR)
    found = planned(desired_topic("a", replication_factor=2), paused_topic("p"), live=live, where=place(draining=[3]))
    assert named(found.changes) == [("reassign", "a")]
    unmanaged, paused = found.warnings
    assert unmanaged == (
        f"broker 3 (cluster.draining, {ENVIRONMENT_FILE}:9) is not empty after this plan, because no file describes "
        "these topics, and policy.drainUnmanaged refuses to move them (policy.drainUnmanaged, by default): 2 topics "
        "with 4 partitions there (__consumer_offsets, other)"
    )
    assert paused.endswith("because these topics are paused: 1 topic with 2 partitions there (p)")


def test_with_leave_they_move_too_each_row_at_its_length_and_always_by_an_approval() -> None:
    rows: Assignment = {0: (1, 3), 1: (3,), 2: (3, 2, 1)}
    where = place(draining=[3], policy=Policy(drain_unmanaged="allow", unattended=Risk.DESTRUCTIVE))
    found = planned(live=cluster(rest(rows, OFFSETS), rest(WIDE, "other"), racks=FOUR), where=where)
    assert (named(found.changes), found.warnings) == ([("reassign", OFFSETS), ("reassign", "other")], ())
    change = found.changes[0]
    assert isinstance(change, ReassignTopic)
    assert {p: len(row) for p, row in change.assignment.items()} == {0: 2, 1: 1, 2: 3}
    assert (change.codes, change.location) == (("TOP443",), Location(ENVIRONMENT_FILE, 9, 15))
    assert [(g.gate, g.approvable) for g in gate(found, where).changes] == [(GateWord.HELD, True)] * 2


def test_a_pattern_protects_a_topic_from_all_but_a_drain_that_the_policy_allows() -> None:
    where = place(draining=[3], policy=ALLOWED)
    found = planned(live=cluster(rest(WIDE, OFFSETS), racks=FOUR), where=where)
    drained = replace(found.changes[0], codes=())
    assert isinstance(drained, ReassignTopic)
    balanced = replace(drained, why=MoveReason.BALANCE)
    for change, environment_, is_protected in [
        (drained, where, False),
        (balanced, where, True),
        (drained, place(draining=[3]), True),
    ]:
        (gated,) = gate(replace(found, changes=(change,)), environment_).changes
        assert any("TOP408" in reason for reason in gated.reasons) is is_protected


@pytest.mark.parametrize(
    ("live", "where", "said"),
    [
        pytest.param(
            cluster(rest(WIDE), racks=FOUR),
            place(draining=[3], policy=Policy(reassign="refuse")),
            "policy.reassign",
            id="policy",
        ),
        pytest.param(
            replace(cluster(rest(WIDE), racks=FOUR), releases=OLD), place(draining=[3]), "Kafka 2.3", id="old"
        ),
    ],
)
def test_where_nothing_is_moved_a_drain_only_says_so(live: ClusterSnapshot, where: Environment, said: str) -> None:
    found = planned(desired_topic("a", replication_factor=2), live=live, where=where)
    assert (found.changes, found.blocked) == ((), ())
    assert "broker 3 (cluster.draining, " in found.warnings[0]
    assert found.warnings[0].endswith(": 1 topic with 2 partitions there (a)")
    assert said in found.warnings[0]


@pytest.mark.parametrize(
    ("topic", "live", "code", "reason"),
    [
        pytest.param(
            desired_topic("a", 1),
            cluster(rest({0: (1, 2, 3)})),
            "TOP420",
            "replication factor 3 needs as many",
            id="few",
        ),
        pytest.param(
            desired_topic("a", 1, replication_factor=2, assignment={0: (1, 3)}),
            cluster(rest({0: (1, 3)}), racks=FOUR),
            "TOP438",
            "the assignment names broker 3, which is in cluster.draining",
            id="by hand",
        ),
        pytest.param(
            desired_topic("a", 1, replication_factor=2),
            replace(cluster(rest({0: (1, 3)}), racks=FOUR), reassigning=frozenset({"a"})),
            "TOP419",
            "a reassignment of this topic is running",
            id="a move of others",
        ),
        pytest.param(
            desired_topic("a", 1, replication_factor=1),
            cluster(rest({0: (3,)}), defaults={"min.insync.replicas": "2"}),
            "TOP415",
            "min.insync.replicas is 2",
            id="the only replica",
        ),
    ],
)
def test_a_topic_that_cannot_leave_a_broker_is_blocked_but_other_changes_of_it_are_not(
    topic: DesiredTopic, live: ClusterSnapshot, code: str, reason: str
) -> None:
    where = place(draining=[3])
    blocked = blocked_in(planned(topic, live=live, where=where))
    assert blocked.codes == (code,)
    assert reason in blocked.reasons[0]

    found = planned(replace(topic, configs={"retention.ms": "5"}), live=live, where=where)
    assert (named(found.changes), found.blocked) == ([("configure", "a")], ())
    assert "its replicas stay on broker 3" in found.changes[0].notes[-1]


def test_a_cordoned_broker_keeps_its_replicas() -> None:
    live = replace(cluster(rest({0: (2, 3)}), racks=FOUR), log_directories=CORDONED)
    change = move_of(planned(desired_topic("a", 1, replication_factor=2), live=live, where=place(draining=[3])))
    assert (change.assignment[0][0], change.removed) == (2, {3: 1})


def test_a_broker_that_is_down_for_good_can_be_drained() -> None:
    rows: Assignment = {0: (1, 3)}
    topic = live_topic("a", assignment=rows, states={0: partition_state([1])})
    found = planned(
        desired_topic("a", 1, replication_factor=2),
        live=cluster(topic, racks={1: "r1", 2: "r2"}),
        where=place(draining=[3]),
    )
    assert (move_of(found).assignment, found.move_obstacles) == ({0: (1, 2)}, {})


def test_replicas_may_leave_a_broker_that_is_down_by_hand_or_by_a_command() -> None:
    rows: Assignment = {0: (1, 3), 1: (1, 2)}
    live = cluster(
        live_topic("a", assignment=rows, states={0: partition_state([1]), 1: partition_state([1, 2])}),
        racks={1: "r1", 2: "r2"},
    )
    by_hand = planned(desired_topic("a", 2, assignment={0: (1, 2), 1: (1, 2)}), live=live)
    assert (move_of(by_hand).assignment, by_hand.move_obstacles) == ({0: (1, 2)}, {})
    drain = replace(move_of(by_hand), why=MoveReason.DRAIN)
    assert move_obstacles([drain], live, place()) == {}
    factor = replace(drain, why=MoveReason.FACTOR)
    assert move_obstacles([factor], live, place())["a"][0].startswith("TOP421: broker 3"), "it may come back"
    other = replace(drain, assignment={1: (2, 1)}, assignment_before={1: (1, 2)})
    (reason, _) = move_obstacles([other], live, place())["a"]
    assert reason == "TOP421: broker 3 has replicas of it, now or after the move, and is not live"


def test_a_drain_by_a_command_takes_no_replica_off_another_broker_that_is_down() -> None:
    topic = live_topic("a", assignment={0: (1, 3)}, states={0: partition_state([1])})
    live = cluster(topic, racks={1: "r1", 2: "r2", 4: "r1"})
    hand = planned(desired_topic("a", 1, assignment={0: (2, 4)}), live=live)
    drain = replace(move_of(hand), why=MoveReason.DRAIN)
    assert drain.removed == {1: 1, 3: 1}
    (reason,) = move_obstacles([drain], live, place())["a"]
    assert reason.startswith("TOP421: broker 3")
    assert move_obstacles([drain], live, place(draining=[3])) == {}


def test_a_managed_cluster_drains_nothing() -> None:
    where = place(draining=[3])
    managed = msgspec.structs.replace(where.spec.cluster, kind="managed")
    where = replace(where, spec=msgspec.structs.replace(where.spec, cluster=managed))
    found = planned(desired_topic("a", replication_factor=2), live=cluster(rest(WIDE), racks=FOUR), where=where)
    assert (found.changes, found.blocked, found.warnings) == ((), (), ())


# ---- the gate ----


def gated(found: ChangeSet, where: Environment) -> GatedChange:
    (entry,) = gate(found, where).changes
    return entry


SHORT = live_topic("a", assignment=WIDE, states={**healthy_states(WIDE), 1: partition_state([2])})
BUSY = live_topic("other", assignment={0: (1, 2, 3)}, adding={0: (3,)}, states={0: partition_state([1, 2])})
UP = desired_topic("a", replication_factor=3)


@pytest.mark.parametrize(
    ("live", "where", "reason"),
    [
        pytest.param(cluster(rest(WIDE)), place(), None, id="all is well"),
        pytest.param(
            cluster(SHORT), place(), "partition 1 is under-replicated: [2] of [2, 3] are in sync", id="an ISR"
        ),
        pytest.param(
            cluster(live_topic("a", assignment=WIDE)), place(), "the ISR of its partitions was not read", id="unread"
        ),
        pytest.param(
            cluster(rest({0: (1, 2), 1: (2, 3), 2: (3, 9)}), racks=FOUR),
            place(),
            "TOP421: broker 9 has replicas of it, now or after the move, and is not live",
            id="dead",
        ),
        pytest.param(
            cluster(rest(WIDE), BUSY),
            place(limits=Limits(moves_at_once=1)),
            "TOP419: 1 partition moves by other programs, and 1 may move at once (limits.movesAtOnce, by default)",
            id="moves of others",
        ),
        pytest.param(cluster(rest(WIDE), BUSY), place(limits=Limits(moves_at_once=2)), None, id="few moves of others"),
        pytest.param(
            cluster(rest(WIDE)),
            place(limits=Limits(moved_bytes_per_run=5)),
            "TOP441: a number of bytes not known to copy in this run, 5 allowed (limits.movedBytesPerRun, by default)",
            id="unknown bytes",
        ),
    ],
)
def test_a_move_begins_only_where_the_cluster_and_the_limits_allow_it(
    live: ClusterSnapshot, where: Environment, reason: str | None
) -> None:
    entry = gated(planned(UP, live=live, where=where), where)
    if reason is None:
        assert entry.gate is GateWord.HELD
    else:
        assert entry.gate is GateWord.SKIPPED
        assert any(found.startswith(reason) for found in entry.reasons), entry.reasons


def test_totals_count_the_moves_of_others_as_the_topics_do() -> None:
    ours = live_topic("a", assignment={0: (1, 2), 1: (2, 3)}, adding={0: (2,), 1: (3,)})
    live = replace(cluster(ours, BUSY), accepted_moves={"a": {0: (1, 2)}})
    tally = Tally()
    tally.count([*live.topics.values()])
    assert foreign_moves(live) == foreign_moves(replace(live, totals=tally.totals)) == 2


def test_moves_run_until_the_bytes_of_a_run_are_used_up() -> None:
    found = planned(UP, replace(UP, name="b"), live=cluster(rest(WIDE), rest(WIDE, "b")))
    sized = [replace(change, copied_bytes=60) for change in found.changes if isinstance(change, ReassignTopic)]
    policy = Policy(unattended=Risk.DESTRUCTIVE)
    for most, words in [(120, ["run", "run"]), (119, ["run", "skipped"]), (59, ["skipped", "skipped"])]:
        where = place(limits=Limits(moved_bytes_per_run=most), policy=policy)
        assert [entry.gate for entry in gate(replace(found, changes=tuple(sized)), where).changes] == words


def test_in_production_a_move_that_copies_needs_a_throttle() -> None:
    found = planned(UP, live=cluster(rest(WIDE)))
    where = place()
    production = msgspec.structs.replace(where.spec.cluster, cluster_class="production")
    for throttle, is_skipped in [(None, True), (50 << 20, False)]:
        spec = msgspec.structs.replace(where.spec, cluster=production, apply=Apply(throttle=throttle))
        entry = gated(found, replace(where, spec=spec))
        assert any("TOP442" in reason for reason in entry.reasons) is is_skipped
    (move,) = found.changes
    assert isinstance(move, ReassignTopic)
    order = replace(move, assignment={0: (2, 1)}, assignment_before={0: (1, 2)})
    spec = msgspec.structs.replace(where.spec, cluster=production)
    assert not any("TOP442" in r for r in gated(replace(found, changes=(order,)), replace(where, spec=spec)).reasons)


@pytest.mark.parametrize("why", [MoveReason.BALANCE, MoveReason.RACKS])
def test_a_move_that_no_file_asks_for_is_never_unattended_unless_only_leaders_change(why: MoveReason) -> None:
    (move,) = planned(UP, live=cluster(rest(WIDE))).changes
    assert isinstance(move, ReassignTopic)
    where = place(policy=Policy(unattended=Risk.DESTRUCTIVE))
    found = planned(UP, live=cluster(rest(WIDE)), where=where)
    balanced = replace(move, why=why)
    order = replace(balanced, assignment={0: (2, 1)}, assignment_before={0: (1, 2)})
    entries = [gated(replace(found, changes=(change,)), where) for change in (move, balanced, order)]
    assert [entry.gate for entry in entries] == [GateWord.RUN, GateWord.HELD, GateWord.RUN]
    assert entries[1].reasons == (f"a move for {why.value} always needs an approval",)
