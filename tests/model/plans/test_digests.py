"""What an approval names: anything that it is about gives another digest, or another fingerprint."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes import builders
from topicops.model.cluster.broker_defaults import DefaultOnBrokers
from topicops.model.plans.changes import Change, Precondition, digest_of
from topicops.model.plans.plan import ChangeSet, Plan, TopicActivity
from topicops.steps.planning.gate import gate

TARGET = builders.TARGET
CREATE, EXPAND = builders.create_change("orders"), builders.expand_change("clicks")
MOVED = replace(CREATE, assignment={p: tuple(reversed(row)) for p, row in CREATE.assignment.items()})
CONFIGURE, DELETE = builders.configure_change("views"), builders.delete_change("old")
SET = replace(
    builders.change_set((CREATE, EXPAND, CONFIGURE, DELETE)),
    activity={"old": TopicActivity(end_offsets={0: 5}, groups=())},
)


@pytest.mark.parametrize(
    ("change", "other"),
    [
        pytest.param(CREATE, replace(CREATE, topic="payments"), id="the topic"),
        pytest.param(CREATE, replace(CREATE, partitions=4), id="the partitions"),
        pytest.param(CREATE, replace(CREATE, replication_factor=2), id="the replication factor"),
        pytest.param(CREATE, replace(CREATE, configs={"retention.ms": "1"}), id="a config"),
        pytest.param(EXPAND, replace(EXPAND, partitions_before=2), id="the partitions before"),
        pytest.param(CONFIGURE, replace(CONFIGURE, configs_before={}), id="the values before"),
        pytest.param(DELETE, replace(DELETE, topic_id="another-id"), id="the topic id"),
        pytest.param(DELETE, replace(DELETE, precondition=Precondition()), id="the precondition"),
    ],
)
def test_another_change_has_another_digest(change: Change, other: Change) -> None:
    assert digest_of(change, TARGET) != digest_of(other, TARGET)


@pytest.mark.parametrize("field", ["environment", "cluster_id", "chroot"])
def test_the_same_change_elsewhere_has_another_digest(field: str) -> None:
    assert digest_of(CREATE, TARGET) != digest_of(CREATE, replace(TARGET, **{field: "another"}))


def test_a_change_and_its_placement_anew_have_the_same_digest() -> None:
    assert digest_of(CREATE, TARGET) == digest_of(MOVED, TARGET)


def with_change(change: Change, other: Change) -> ChangeSet:
    return replace(SET, changes=tuple(other if each is change else each for each in SET.changes))


DIFFERING = {"compression.type": (DefaultOnBrokers("gzip", (2,)),)}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(with_change(CREATE, MOVED), id="where replicas go"),
        pytest.param(
            with_change(CONFIGURE, replace(CONFIGURE, broker_defaults={"compression.type": "gzip"})),
            id="the brokers' defaults",
        ),
        pytest.param(
            with_change(CONFIGURE, replace(CONFIGURE, differing_defaults=DIFFERING)), id="a broker's defaults"
        ),
        pytest.param(with_change(DELETE, replace(DELETE, topic_id="another-id")), id="a change"),
        pytest.param(replace(SET, changes=SET.changes[1:]), id="one change less"),
        pytest.param(replace(SET, activity={}), id="the traffic on a topic that goes"),
        pytest.param(replace(SET, source=replace(SET.source, commit="c" * 40)), id="the commit"),
        pytest.param(replace(SET, target=replace(TARGET, cluster_id="another")), id="the cluster"),
    ],
)
def test_another_plan_has_another_fingerprint(other: ChangeSet) -> None:
    assert sealed(SET).fingerprint != sealed(other).fingerprint


def test_the_order_of_the_changes_leaves_the_fingerprint_as_it_is() -> None:
    assert sealed(SET).fingerprint == sealed(replace(SET, changes=tuple(reversed(SET.changes)))).fingerprint


def sealed(found: ChangeSet) -> Plan:
    return gate(found, builders.environment())
