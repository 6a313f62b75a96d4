"""What a plan says of replicas that should be elsewhere, where nothing moves them."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from fakes.builders import desired_of, desired_topic, environment, healthy_states, live_topic, location, snapshot
from fakes.changes import plan_of as plan_of_changes
from fakes.changes import reassign_topic
from fixtures.planning import plan_of
from topicops.model.cluster.snapshot import Assignment
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Environment, Policy
from topicops.steps.planning.moves import NO_PLANNER

ROWS: Assignment = {0: (1, 2), 1: (2, 3)}
LIVE = live_topic("a", assignment=ROWS, states=healthy_states(ROWS))
WANTED = desired_topic("a", 2, replication_factor=2)


def draining(*brokers: int) -> Environment:
    found = environment(policy=Policy(drain_unmanaged="allow"))
    cluster = msgspec.structs.replace(found.spec.cluster, draining=brokers)
    places = {"cluster.draining": Location(found.file, 9, 15)}
    return replace(found, spec=msgspec.structs.replace(found.spec, cluster=cluster), locations=places)


@pytest.mark.parametrize(
    ("topic", "rows", "code", "field"),
    [
        pytest.param(replace(WANTED, replication_factor=3), ROWS, "TOP402", "replicationFactor", id="another factor"),
        pytest.param(WANTED, {**ROWS, 1: (2,)}, "TOP423", "replicationFactor", id="mixed factors"),
        pytest.param(replace(WANTED, assignment={0: (1, 2), 1: (3, 2)}), ROWS, "TOP425", "assignment", id="by hand"),
    ],
)
def test_other_replicas_block_a_topic_with_all_its_changes(
    topic: DesiredTopic, rows: Assignment, code: str, field: str
) -> None:
    wanted = replace(topic, configs={"retention.ms": "1"}, locations={field: location("a", 9)})
    found = plan_of(desired_of(wanted), snapshot(live_topic("a", assignment=rows)))
    (blocked,) = found.blocked
    assert (found.changes, blocked.codes, blocked.reassignment) == ((), (code,), None)
    assert (blocked.reasons, blocked.location.line) == (
        ("its file wants other replicas, and nothing here moves them",),
        9,
    )


def test_a_topic_that_only_changes_its_configs_is_not_blocked() -> None:
    wanted = replace(WANTED, assignment=ROWS, configs={"retention.ms": "1"})
    found = plan_of(desired_of(wanted), snapshot(LIVE))
    assert ([change.action for change in found.changes], found.blocked) == (["configure"], ())


def test_a_drain_moves_nothing_and_only_keeps_new_replicas_away() -> None:
    found = plan_of(desired_of(WANTED), snapshot(LIVE, live_topic("other", assignment=ROWS)), draining(3))
    assert (found.changes, found.blocked, found.warnings) == ((), (), ())


def test_no_move_of_another_installation_is_judged_as_asked_for() -> None:
    plan = plan_of_changes(reassign_topic(LIVE, (1, 2, 3), (2, 3, 1)))
    desired, live = desired_of(replace(WANTED, replication_factor=3)), snapshot(LIVE)
    assert NO_PLANNER.judged(plan, plan_of(desired, live), desired, live, environment()) == {}
