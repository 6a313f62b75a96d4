"""What holds of every plan, whatever the cluster and the specs are. A failure names the seed of its world."""

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import NOW, TARGET, desired_like, desired_of, environment
from fakes.resting_cluster import RestingCluster
from fixtures.planning import plan_of
from fixtures.random_worlds import World
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic
from topicops.model.codes import CODES
from topicops.model.plans.changes import (
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    GateWord,
    digest_of,
)
from topicops.model.plans.delta import Delta, TopicClass, desired_row, live_row
from topicops.model.plans.plan import ChangeSet
from topicops.model.plans.plan_file import plan_from_json, plan_to_json
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.environment import Policy, Risk
from topicops.model.specs.topic_config import THROTTLE_LISTS, canonical_overrides
from topicops.steps.applying.precondition import Match, compare
from topicops.steps.planning.diff import diff
from topicops.steps.planning.gate import gate
from topicops.steps.planning.only import keep_only
from topicops.steps.planning.plan import plan

K = TypeVar("K")
V = TypeVar("V")


def of(world: World) -> ChangeSet:
    return plan_of(world.desired, world.live, world.environment)


def delta_of(world: World) -> Delta:
    return diff(map(desired_row, world.desired.topics.values()), map(live_row, world.live.topics.values()))


# --- nothing to do ----------------------------------------------------------------------------------------------------


def a_cluster_planned_against_itself_has_nothing_to_do(world: World) -> None:
    whole = replace(world, is_whole=True)
    found = plan_of(desired_of(*map(desired_like, whole.live.topics.values())), whole.live, whole.environment)
    assert (found.changes, found.blocked, found.drift, found.unmanaged) == ((), (), (), ())


def what_was_planned_and_done_leaves_only_what_was_blocked(world: World) -> None:
    """Each change may be sent before, and is so already after; that ties the plan to what apply compares."""
    whole = replace(world, is_whole=True)
    cluster = cluster_like(whole)
    before = plan_of(whole.desired, cluster.snapshot(states=True), whole.environment)
    assert matches(before.changes, cluster) <= {Match.BEFORE}
    for change in before.changes:
        perform(change, cluster)
    assert matches(before.changes, cluster) <= {Match.AFTER}
    after = plan_of(whole.desired, cluster.snapshot(states=True), whole.environment)
    # Where the topic that a name collided with was deleted, the name is free by now.
    freed = {change.topic for change in after.changes}
    assert freed <= {entry.topic for entry in before.blocked if "TOP417" in entry.codes}
    assert freed | {entry.topic for entry in after.blocked} == {entry.topic for entry in before.blocked}
    assert (after.drift, after.paused) == (before.drift, before.paused)


def cluster_like(world: World) -> RestingCluster:
    cluster = RestingCluster(racks=world.live.racks)
    for topic in world.live.topics.values():
        cluster.put_topic(topic.name, *(topic.assignment[p] for p in sorted(topic.assignment)), configs=topic.overrides)
    return cluster


def matches(changes: Sequence[Change], cluster: RestingCluster) -> set[Match]:
    traces = cluster.traces([change.topic for change in changes])
    return {compare(change, traces[change.topic]).match for change in changes}


def perform(change: Change, cluster: RestingCluster) -> None:
    match change:
        case CreateTopic():
            cluster.create([change])
        case ExpandTopic():
            cluster.expand([change])
        case ConfigureTopic():
            cluster.set_configs(change.topic, change.configs)
        case DeleteTopic():
            cluster.delete(change)


# --- the same bytes, the same digests ---------------------------------------------------------------------------------


def no_order_of_the_inputs_changes_a_byte(world: World) -> None:
    dice = random.Random(world.seed)
    desired, live = turned_desired(world.desired, dice), turned_live(world.live, dice)
    rows = mixed(map(desired_row, desired.topics.values()), dice), mixed(map(live_row, live.topics.values()), dice)
    other = gate(plan(desired, live, diff(*rows), world.environment, now=NOW), world.environment)
    first = gate(of(world), world.environment)
    assert plan_to_json(other) == plan_to_json(first)
    assert other.fingerprint == first.fingerprint


def mixed(values: Iterable[V], dice: random.Random) -> list[V]:
    listed = list(values)
    dice.shuffle(listed)
    return listed


def turned(mapping: Mapping[K, V], dice: random.Random) -> dict[K, V]:
    return dict(mixed(mapping.items(), dice))


def turned_desired(desired: Desired, dice: random.Random) -> Desired:
    topics = {name: turned_spec(topic, dice) for name, topic in turned(desired.topics, dice).items()}
    return replace(desired, topics=topics)


def turned_spec(topic: DesiredTopic, dice: random.Random) -> DesiredTopic:
    rows = turned(topic.assignment, dice) if topic.assignment else None
    return replace(topic, configs=turned(topic.configs, dice), locations=turned(topic.locations, dice), assignment=rows)


def turned_live(live: ClusterSnapshot, dice: random.Random) -> ClusterSnapshot:
    return replace(
        live,
        brokers=turned(live.brokers, dice),
        topics={name: turned_topic(topic, dice) for name, topic in turned(live.topics, dice).items()},
        deleting=turned(live.deleting, dice),
        broker_defaults=turned(live.broker_defaults, dice) if live.broker_defaults else live.broker_defaults,
    )


def turned_topic(topic: LiveTopic, dice: random.Random) -> LiveTopic:
    return replace(
        topic,
        assignment=turned(topic.assignment, dice),
        overrides=turned(topic.overrides, dice),
        states=turned(topic.states, dice) if topic.states else topic.states,
    )


def a_digest_does_not_change_when_other_topics_join(world: World) -> None:
    together = of(world).changes
    for name, topic in world.desired.topics.items():
        alone = plan_of(desired_of(topic), world.live, world.environment).changes
        assert digests(alone) == digests(change for change in together if change.topic == name)


def digests(changes: Iterable[Change]) -> list[str]:
    return [digest_of(change, TARGET) for change in changes]


def a_fingerprint_is_that_of_the_changes_and_nothing_else(world: World) -> None:
    first = gate(of(world), world.environment)
    told = replace(world.live, controller_id=None, orphan_configs=frozenset())
    same = plan_of(world.desired, told, world.environment)
    assert gate(same, environment()).fingerprint == first.fingerprint
    fewer = replace(same, changes=same.changes[1:])
    assert (gate(fewer, environment()).fingerprint == first.fingerprint) == (not same.changes)


def a_plan_comes_back_from_its_file_as_it_was(world: World) -> None:
    plan_before = gate(of(world), world.environment)
    text = plan_to_json(plan_before)
    assert plan_from_json(text) == plan_before
    document = json.loads(text)
    may_run = any(gated.gate is GateWord.RUN or gated.approvable for gated in plan_before.changes)
    assert (document["applyable"], document["complete"], document["errored"]) == (may_run, True, False)


# --- nothing is lost --------------------------------------------------------------------------------------------------


def every_difference_ends_as_a_change_a_block_a_pause_or_drift(world: World) -> None:
    found = of(world)
    changed, blocked = {change.topic for change in found.changes}, {entry.topic for entry in found.blocked}
    drifted, paused = {entry.topic for entry in found.drift}, {entry.topic for entry in found.paused}
    assert not changed & blocked
    assert changed | blocked | drifted | paused <= world.desired.topics.keys()
    rows = {row.topic: row for row in delta_of(world).topics}
    assert list(found.unmanaged) == [row.topic for row in rows.values() if row.topic_class is TopicClass.UNMANAGED]
    for name in rows.keys() - set(found.unmanaged) - paused - blocked:
        topic, live = world.desired.topics[name], world.live.topics.get(name)
        if topic.lifecycle is Lifecycle.PAUSED:
            assert is_met(topic, live), "an expired pause is blocked where there is something to do"
        else:
            assert name in changed | drifted
    for name in world.live.deleting.keys() & world.desired.topics.keys():
        assert name in blocked | paused


def is_met(topic: DesiredTopic, live: LiveTopic | None) -> bool:
    return live is not None and live.partitions == topic.partitions


def every_field_that_differs_is_planned_or_told(world: World) -> None:
    found = of(world)
    changes = {(change.topic, change.action): change for change in found.changes}
    blocked, told = {entry.topic for entry in found.blocked}, {(entry.topic, entry.config) for entry in found.drift}
    for topic, live in both_sides(world):
        if topic.name in blocked:
            continue
        assert ((topic.name, "expand") in changes) == (topic.partitions != live.partitions)
        configure = changes.get((topic.name, "configure"))
        planned = configure.configs if isinstance(configure, ConfigureTopic) else {}
        overrides = canonical_overrides(live.overrides)
        for name in topic.configs.keys() | overrides.keys():
            is_of_a_move = live.is_reassigning and name in THROTTLE_LISTS
            differs = topic.configs.get(name) != overrides.get(name) and not is_of_a_move
            assert (name in planned or (topic.name, name) in told) == differs
            assert not (name in planned and name in THROTTLE_LISTS)


def both_sides(world: World) -> list[tuple[DesiredTopic, LiveTopic]]:
    present = [topic for topic in world.desired.topics.values() if topic.lifecycle is Lifecycle.PRESENT]
    return [(topic, world.live.topics[topic.name]) for topic in present if topic.name in world.live.topics]


def a_block_says_why_and_how_to_go_on(world: World) -> None:
    for entry in of(world).blocked:
        assert entry.way_out
        assert len(entry.reasons) == len(entry.codes) > 0
        assert all(entry.reasons)
        assert list(entry.codes) == sorted(entry.codes)
        assert set(entry.codes) <= CODES.keys()
        assert entry.location.file


# --- what is never done -----------------------------------------------------------------------------------------------


def no_partition_is_taken_away_moved_or_replaced(world: World) -> None:
    changes = of(world).changes
    created, deleted = ({c.topic for c in changes if c.action == action} for action in ("create", "delete"))
    assert not created & (deleted | world.live.topics.keys())
    for change in changes:
        match change:
            case CreateTopic():
                check_rows(change.assignment, range(change.partitions), change.replication_factor, world.live)
            case ExpandTopic():
                live = world.live.topics[change.topic]
                assert change.partitions > change.partitions_before == live.partitions
                added = range(live.partitions, change.partitions)
                check_rows(change.assignment, added, len(live.target_assignment[0]), world.live)
            case ConfigureTopic():
                assert change.configs_before.keys() == change.configs.keys()
                assert all(change.configs[name] != value for name, value in change.configs_before.items())
            case DeleteTopic():
                assert world.desired.topics[change.topic].lifecycle is Lifecycle.ABSENT


def check_rows(rows: Assignment, partitions: range, replication_factor: int, live: ClusterSnapshot) -> None:
    """Every new partition has its row, of as many different live brokers as it shall have."""
    assert sorted(rows) == list(partitions)
    for row in rows.values():
        assert len(row) == len(set(row)) == replication_factor
        assert set(row) <= live.brokers.keys()


def only_a_tombstone_deletes(world: World) -> None:
    kept = {name: topic for name, topic in world.desired.topics.items() if topic.lifecycle is not Lifecycle.ABSENT}
    found = plan_of(replace(world.desired, topics=kept), world.live, world.environment)
    assert not any(isinstance(change, DeleteTopic) for change in found.changes)


def deletes_over_a_limit_are_held_always(world: World) -> None:
    """Also with every approval, and also topic by topic."""
    whole = of(world)
    deletes = [change.topic for change in whole.changes if isinstance(change, DeleteTopic)]
    limits = world.environment.spec.limits
    share = max(1, -(-whole.cluster.managed_topics * limits.deletes_percent // 100))
    parts = [whole, *(keep_only(whole, world.live, world.desired.topics, name) for name in deletes)]
    if len(deletes) > share:
        assert not any(running_deletes(part, world, approved=True) for part in parts)
    if len(deletes) > limits.deletes_per_run:
        assert not running_deletes(whole, world, approved=False)


def running_deletes(change_set: ChangeSet, world: World, *, approved: bool) -> list[str]:
    spec = msgspec.structs.replace(world.environment.spec, policy=Policy(unattended=Risk.DESTRUCTIVE))
    names = frozenset(digests(change_set.changes)) if approved else frozenset()
    found = gate(change_set, replace(world.environment, spec=spec), approved=names)
    return [gated.change.topic for gated in found.with_gate(GateWord.RUN) if gated.change.action == "delete"]


def nothing_above_what_may_run_unattended_runs_unasked(world: World) -> None:
    found = gate(of(world), world.environment)
    highest = world.environment.spec.policy.unattended.rank
    assert all(gated.change.risk.rank <= highest for gated in found.with_gate(GateWord.RUN))
    assert all(bool(gated.reasons) == (gated.gate is not GateWord.RUN) for gated in found.changes)


PROPERTIES = [
    a_cluster_planned_against_itself_has_nothing_to_do,
    what_was_planned_and_done_leaves_only_what_was_blocked,
    no_order_of_the_inputs_changes_a_byte,
    a_digest_does_not_change_when_other_topics_join,
    a_fingerprint_is_that_of_the_changes_and_nothing_else,
    a_plan_comes_back_from_its_file_as_it_was,
    every_difference_ends_as_a_change_a_block_a_pause_or_drift,
    every_field_that_differs_is_planned_or_told,
    a_block_says_why_and_how_to_go_on,
    no_partition_is_taken_away_moved_or_replaced,
    only_a_tombstone_deletes,
    deletes_over_a_limit_are_held_always,
    nothing_above_what_may_run_unattended_runs_unasked,
]
Property = Callable[[World], None]


@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__)
@given(seed=st.integers(0, 2**32))
def test_of_random_worlds(holds: Property, seed: int) -> None:
    holds(World(seed))


@pytest.mark.soak
@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__)
def test_of_thousands_of_worlds(holds: Property) -> None:
    for seed in range(2_000):
        holds(World(seed))


@pytest.mark.soak
def test_thousands_of_worlds_hold_every_kind_of_change_and_every_block_but_that_of_size() -> None:
    found = [of(World(seed)) for seed in range(1_000)]
    assert {change.action for one in found for change in one.changes} == {"create", "expand", "configure", "delete"}
    numbers = (306, 314, 322, 401, 402, 408, 411, 412, 415, 417, 418, 419, 420, 421, 423, 425, 426, 427, 434, 436)
    blocking = {f"TOP{number}" for number in numbers}
    assert {code for one in found for entry in one.blocked for code in entry.codes} == blocking
