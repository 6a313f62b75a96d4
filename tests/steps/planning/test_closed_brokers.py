"""Brokers that get no new replicas: cordoned ones (KIP-1066), and those of ``cluster.draining``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest

from fakes.builders import desired_of, desired_topic, environment, live_topic, snapshot
from fixtures.planning import plan_of
from topicops.model.choices import PLACEMENTS
from topicops.model.cluster.snapshot import ClusterSnapshot, LogDirectories
from topicops.model.errors import UsageError
from topicops.model.plans.changes import CreateTopic, ExpandTopic
from topicops.model.specs.environment import Environment
from topicops.steps.before_deletes import cordons_not_known

FOUR = {1: "r1", 2: "r2", 3: "r3", 4: "r1"}
WHOLE, CORDONED = LogDirectories(held={}), LogDirectories(held={}, cordoned=True)


def cordoning(*brokers: int, racks: Mapping[int, str | None] = FOUR) -> ClusterSnapshot:
    told = {broker: CORDONED if broker in brokers else WHOLE for broker in racks}
    return snapshot(live_topic("a"), racks=racks, log_directories=told)


def with_cluster(**fields: object) -> Environment:
    found = environment()
    cluster = msgspec.structs.replace(found.spec.cluster, **fields)
    return replace(found, spec=msgspec.structs.replace(found.spec, cluster=cluster))


@pytest.mark.parametrize("placement", sorted(PLACEMENTS))
@pytest.mark.parametrize("name", ["a", "n"], ids=["expanded", "created"])
@pytest.mark.parametrize(
    ("live", "where"),
    [
        pytest.param(cordoning(2), with_cluster(), id="cordoned"),
        pytest.param(cordoning(), with_cluster(draining=(2,)), id="draining"),
    ],
)
def test_new_replicas_go_to_the_other_brokers(
    live: ClusterSnapshot, where: Environment, name: str, placement: str
) -> None:
    (change,) = plan_of(desired_of(desired_topic(name, 9, placement=placement)), live, where).changes

    assert isinstance(change, CreateTopic | ExpandTopic)
    assert {broker for row in change.assignment.values() for broker in row} == {1, 3, 4}


def test_where_too_few_other_brokers_are_left_the_topic_is_blocked_with_the_reason_for_each() -> None:
    (blocked,) = plan_of(desired_of(desired_topic("n")), cordoning(2), with_cluster(draining=(3,))).blocked

    assert blocked.codes == ("TOP420",)
    assert (
        "2 are live, beside broker 2, which is cordoned, broker 3, which is in cluster.draining" in blocked.reasons[0]
    )
    assert blocked.way_out.startswith("let brokers have replicas again")


@pytest.mark.parametrize(
    ("live", "where", "reason"),
    [
        pytest.param(cordoning(2), with_cluster(), "the assignment names broker 2, which is cordoned", id="cordoned"),
        pytest.param(
            cordoning(),
            with_cluster(kind="managed"),
            "the assignment names brokers, and the brokers of a managed cluster place replicas themselves",
            id="managed",
        ),
    ],
)
def test_rows_by_hand_that_name_a_broker_which_gets_no_replicas_are_blocked(
    live: ClusterSnapshot, where: Environment, reason: str
) -> None:
    topic = desired_topic("n", 1, replication_factor=1, assignment={0: (2,)})
    (blocked,) = plan_of(desired_of(topic), live, where).blocked

    assert (blocked.codes, blocked.reasons) == (("TOP438",), (reason,))


def test_an_id_in_draining_that_the_cluster_does_not_have_is_an_error() -> None:
    with pytest.raises(
        UsageError, match=r"cluster\.draining.*the cluster has no broker 9 \(TOP438\); live are brokers 1"
    ):
        plan_of(desired_of(), cordoning(), with_cluster(draining=(2, 9)))


def test_a_broker_in_draining_that_is_down_and_still_has_replicas_is_none() -> None:
    live = snapshot(live_topic("a", assignment={0: (5, 1, 2)}), racks=FOUR)

    assert plan_of(desired_of(), live, with_cluster(draining=(5,))).changes == ()


def test_brokers_that_may_be_cordoned_are_named() -> None:
    (said,) = cordons_not_known({1: WHOLE, 2: "broker 2 gave no answer in time", 3: None}, [1, 2, 3])

    assert said.startswith("whether brokers 2, 3 may get replicas is not known")
    assert [*cordons_not_known({1: WHOLE}, [1])] == []


@pytest.mark.parametrize(("name", "replicas"), [("a", 6 * 3), ("n", 9 * 3)], ids=["expanded", "created"])
def test_in_a_managed_cluster_the_brokers_place_and_the_replicas_still_count(name: str, replicas: int) -> None:
    from topicops.steps.planning.gate import gate

    where = with_cluster(kind="managed")
    planned = plan_of(desired_of(desired_topic(name, 9)), cordoning(1, 2, 3, 4), where)
    (change,) = planned.changes
    limited = msgspec.structs.replace(where.spec.limits, replicas_per_run=replicas - 1)
    (entry,) = gate(planned, replace(where, spec=msgspec.structs.replace(where.spec, limits=limited))).changes

    assert isinstance(change, CreateTopic | ExpandTopic)
    assert (change.assignment, change.precondition.assignment_digest) == ({}, None)
    assert any(f"{replicas} new replicas in this run, {replicas - 1} allowed" in reason for reason in entry.reasons)
