"""A broker has a log of an earlier topic of a name: the partition is not created, because that log would be its own."""

from collections.abc import Mapping

import pytest

from fakes.builders import desired_of, desired_topic, live_topic, snapshot
from fixtures.planning import plan_of
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LogDirectories
from topicops.model.plans.plan import ChangeSet

RACKS: Mapping[int, str | None] = {1: "r1", 2: "r2", 3: "r3"}
WITHOUT = LogDirectories(held={})


def planned(live: ClusterSnapshot, partitions: int, assignment: Assignment | None = None) -> ChangeSet:
    return plan_of(desired_of(desired_topic("a", partitions, replication_factor=1, assignment=assignment)), live)


def cluster(*kept: int, live: int = 0) -> ClusterSnapshot:
    """Broker 3 has logs of these partitions of the topic, of which so many partitions are live."""
    topics = [live_topic("a", assignment=dict.fromkeys(range(live), (1,)))] if live else []
    held = {"a": frozenset(range(live)), "b": frozenset({0})}
    told = {
        1: WITHOUT,
        2: "broker 2 gave no answer",
        3: LogDirectories(held=held, unused={"a": frozenset(kept) - held["a"]}),
    }
    return snapshot(*topics, racks=RACKS, log_directories=told)


@pytest.mark.parametrize(
    ("live", "kept", "partition"), [pytest.param(0, (0, 1), 0, id="create"), pytest.param(2, (0, 1, 2), 2, id="expand")]
)
def test_a_partition_of_which_a_broker_has_a_log_is_not_created(
    live: int, kept: tuple[int, ...], partition: int
) -> None:
    found = planned(cluster(*kept, live=live), 3)

    assert not found.changes
    (blocked,) = found.blocked
    assert blocked.codes == ("TOP444",)
    assert f"broker 3 has a log of partition {partition} of an earlier topic of this name" in blocked.reasons[0]
    assert f"remove the folder a-{partition} from its log directory" in blocked.way_out


def test_a_log_in_use_of_a_topic_that_was_not_read_is_a_reason_too() -> None:
    live = snapshot(racks=RACKS, log_directories={3: LogDirectories(held={"a": frozenset({0})})})
    (blocked,) = planned(live, 1).blocked
    assert blocked.codes == ("TOP444",)


@pytest.mark.parametrize(
    ("found", "partitions", "assignment"),
    [
        pytest.param(cluster(3), 3, None, id="of a partition that nobody creates"),
        pytest.param(cluster(0, 1, live=2), 3, None, id="of partitions that are live"),
        pytest.param(cluster(0), 1, {0: (1,)}, id="the file places it on another broker"),
    ],
)
def test_other_logs_are_no_reason(found: ClusterSnapshot, partitions: int, assignment: Assignment | None) -> None:
    change_set = planned(found, partitions, assignment)
    assert (len(change_set.changes), change_set.blocked) == (1, ())
