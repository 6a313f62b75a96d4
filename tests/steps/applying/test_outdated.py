"""What became of the files between a plan and its changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from topicops.model.plans.changes import ACTIONS, Change
from topicops.model.plans.plan import Plan
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.environment import Limits, Policy, Risk
from topicops.steps.applying.outdated import outdated_topics, refuse_outdated
from topicops.steps.planning.gate import gate
from topicops.testing import builders

ORDERS = builders.desired_topic("orders", keyed=False, configs={"retention.ms": "1"})
LIMITS = Limits(deletes_per_run=9, deletes_percent=100)
OPEN = builders.environment(limits=LIMITS, policy=Policy(unattended=Risk.DESTRUCTIVE))


def plan_of(*changes: Change) -> Plan:
    return gate(builders.change_set(changes), OPEN)


@pytest.mark.parametrize(
    ("now", "rewritten"),
    [
        pytest.param(ORDERS, False, id="as it was"),
        pytest.param(replace(ORDERS, owner="others", description="New words."), False, id="other words"),
        pytest.param(replace(ORDERS, location=builders.location("orders", 40)), False, id="another line"),
        pytest.param(replace(ORDERS, partitions=4), True, id="more partitions"),
        pytest.param(replace(ORDERS, configs={}), True, id="another config"),
        pytest.param(replace(ORDERS, keyed=True), True, id="another risk"),
        pytest.param(builders.paused_topic("orders"), True, id="a pause"),
        pytest.param(builders.tombstone("orders"), True, id="a tombstone"),
        pytest.param(None, True, id="no file"),
    ],
)
def test_only_what_decides_about_changes_makes_a_file_another(now: DesiredTopic | None, *, rewritten: bool) -> None:
    found = outdated_topics(builders.desired_of(ORDERS), builders.desired_of(*([now] if now else [])))
    assert found == ({"orders"} if rewritten else set())


def test_a_change_of_a_rewritten_topic_is_refused_and_no_delete_runs_beside_it() -> None:
    plan = plan_of(builders.create_change("orders"), builders.create_change("clicks"), builders.delete_change("old"))

    narrowed, outcomes = refuse_outdated(plan, {"orders"}, ACTIONS)

    assert [gated.change.topic for gated in narrowed.changes if gated.gate == "run"] == ["clicks"]
    assert [(outcome.topic, outcome.status) for outcome in outcomes] == [("orders", "refused"), ("old", "not sent")]
    assert "TOP501" in outcomes[0].message
    assert "create of orders ended refused" in outcomes[1].message


def test_a_task_tells_of_its_own_kind_alone() -> None:
    plan = plan_of(builders.create_change("orders"), builders.delete_change("old"))
    assert refuse_outdated(plan, {"orders"}, ["expand"]) == (plan, ())
    assert refuse_outdated(plan, {"old"}, ["delete"]) == (plan, ())
