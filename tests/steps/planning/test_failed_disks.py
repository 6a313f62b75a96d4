"""A live broker with a failed log directory: no delete waits for it, and no new replica goes there."""

from collections.abc import Mapping

import pytest

from fakes.builders import desired_of, desired_topic, live_topic, snapshot, tombstone
from fixtures.planning import plan_of
from topicops.model.choices import PLACEMENTS
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LogDirectories
from topicops.model.plans.changes import CreateTopic, ExpandTopic
from topicops.model.plans.plan import ChangeSet
from topicops.model.specs.desired import DesiredTopic

FOUR = {1: "r1", 2: "r2", 3: "r3", 4: "r1"}
WHOLE = LogDirectories(held={})
HALF_DEAD = LogDirectories(held={"a": frozenset({0}), "b": frozenset({0, 1, 2})}, failed=("/data/2",))


Told = LogDirectories | str | None


def of(one: Told, racks: Mapping[int, str | None] = FOUR) -> dict[int, Told]:
    """Broker 2 says this, the others are whole."""
    return {**dict.fromkeys(racks, WHOLE), 2: one}


def planned(topic: DesiredTopic, live: ClusterSnapshot) -> ChangeSet:
    return plan_of(desired_of(topic), live)


def test_a_delete_that_a_failed_disk_would_hold_up_for_ever_is_blocked() -> None:
    live = snapshot(live_topic("a"), racks=FOUR, log_directories=of(HALF_DEAD))
    (blocked,) = planned(tombstone("a"), live).blocked
    assert blocked.codes == ("TOP435",)
    assert "the replica of partitions 1, 2 on broker 2 is on a failed log directory (/data/2)" in blocked.reasons[0]
    assert "replace the disk, or take it out of log.dirs, and restart the broker" in blocked.way_out


@pytest.mark.parametrize(
    ("told", "broker"),
    [
        pytest.param(of("broker 2 gave no answer in time"), 2, id="no answer"),
        pytest.param({1: WHOLE, 3: WHOLE, 4: WHOLE}, 2, id="missing"),
        pytest.param({}, 1, id="no broker answers"),
        pytest.param(None, 1, id="nobody was asked"),
    ],
)
def test_a_plan_says_of_a_delete_that_apply_refuses_it_until_the_disks_are_known(
    told: Mapping[int, Told] | None, broker: int
) -> None:
    live = snapshot(live_topic("a"), racks=FOUR, log_directories=told)
    (change,) = planned(tombstone("a"), live).changes
    assert change.notes[0].startswith(f"whether a log directory of broker {broker} has failed is not known: ")
    assert change.notes[0].endswith("; apply refuses the delete until it is")


@pytest.mark.parametrize("told", [of(HALF_DEAD), of(None)], ids=["all its replicas are elsewhere", "no such question"])
def test_other_deletes_are_planned(told: Mapping[int, Told]) -> None:
    live = snapshot(live_topic("b"), racks=FOUR, log_directories=told)
    assert [change.action for change in planned(tombstone("b"), live).changes] == ["delete"]


@pytest.mark.parametrize("rack_aware", [True, False])
@pytest.mark.parametrize("placement", sorted(PLACEMENTS))
@pytest.mark.parametrize("name", ["a", "n"], ids=["expanded", "created"])
def test_new_replicas_go_to_the_other_brokers(name: str, placement: str, rack_aware: bool) -> None:
    live = snapshot(live_topic("a"), racks=FOUR, log_directories=of(HALF_DEAD))
    topic = desired_topic(name, 9, rack_aware=rack_aware, placement=placement)
    (change,) = planned(topic, live).changes
    assert isinstance(change, CreateTopic | ExpandTopic)
    assert brokers_of(change.assignment) == {1, 3, 4}


def test_where_too_few_other_brokers_are_left_the_topic_is_blocked() -> None:
    three = {1: "r1", 2: "r2", 3: "r3"}
    live = snapshot(racks=three, log_directories=of(HALF_DEAD, three))
    (blocked,) = planned(desired_topic("n"), live).blocked
    assert blocked.codes == ("TOP420",)
    assert "2 are live, beside broker 2, whose log directory /data/2 has failed" in blocked.reasons[0]
    assert "replace the disk" in blocked.way_out


def test_rows_by_hand_that_name_such_a_broker_are_blocked() -> None:
    live = snapshot(live_topic("a", assignment={0: (2,)}), racks=FOUR, log_directories=of(HALF_DEAD))
    rows = {0: (2,), 1: (2,)}
    (blocked,) = planned(desired_topic("a", 2, replication_factor=1, assignment=rows), live).blocked
    assert blocked.codes == ("TOP435",)
    assert "the assignment names broker 2, whose log directory /data/2 has failed" in blocked.reasons[0]


def brokers_of(rows: Assignment) -> set[int]:
    return {broker for row in rows.values() for broker in row}
