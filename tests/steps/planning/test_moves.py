"""What a plan says of replicas that should be elsewhere, where nothing moves them."""

from __future__ import annotations

import json
from dataclasses import replace

from fakes.builders import desired_of, desired_topic, environment, healthy_states, live_topic, snapshot
from fakes.changes import plan_of as plan_of_changes
from fakes.changes import reassign_topic
from fixtures.planning import plan_of
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Environment, Policy
from topicops.steps.planning.moves import BY_TOOL

ROWS = {0: (1, 2), 1: (2, 3)}
LIVE = live_topic("a", assignment=ROWS, states=healthy_states(ROWS))
WANTED = desired_topic("a", 2, replication_factor=2)


def draining(*brokers: int) -> Environment:
    found = environment(policy=Policy(drain_unmanaged="allow"))
    cluster = found.spec.cluster.model_copy(update={"draining": brokers})
    places = {"cluster.draining": Location(found.file, 9, 15)}
    return replace(found, spec=found.spec.model_copy(update={"cluster": cluster}), locations=places)


def test_another_factor_blocks_the_topic_with_all_its_changes_and_carries_the_input_of_kafkas_tool() -> None:
    wanted = replace(WANTED, replication_factor=3, configs={"retention.ms": "1"})
    found = plan_of(desired_of(wanted), snapshot(LIVE))
    (blocked,) = found.blocked
    assert (found.changes, blocked.codes) == ((), ("TOP402",))
    rows = {each["partition"]: each["replicas"] for each in json.loads(blocked.reassignment or "")["partitions"]}
    assert {p: len(row) for p, row in rows.items()} == {0: 3, 1: 3}


def test_a_drain_moves_nothing_and_only_keeps_new_replicas_away() -> None:
    found = plan_of(desired_of(WANTED), snapshot(LIVE, live_topic("other", assignment=ROWS)), draining(3))
    assert (found.changes, found.blocked, found.warnings) == ((), (), ())


def test_no_move_of_another_installation_is_judged_as_asked_for() -> None:
    plan = plan_of_changes(reassign_topic(LIVE, (1, 2, 3), (2, 3, 1)))
    desired, live = desired_of(replace(WANTED, replication_factor=3)), snapshot(LIVE)
    assert BY_TOOL.judged(plan, plan_of(desired, live), desired, live, environment()) == {}
