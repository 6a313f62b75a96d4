import pytest

from topicops.model.diagnostics import Location
from topicops.model.quality_rows import (
    STUCK_AFTER_MS,
    DeletionRow,
    ListedTopicRow,
    PartitionRow,
    SpecRow,
    min_insync_replicas,
    rows_after,
    rows_before,
    world_row,
)
from topicops.model.snapshot import Broker, ClusterSnapshot, LiveTopic, PartitionState
from topicops.model.spec import DesiredTopic


def state(leader: int, *isr: int) -> PartitionState:
    return PartitionState(leader=leader, isr=isr, leader_epoch=1, controller_epoch=1, version=0)


def topic(name: str = "orders", **fields: object) -> LiveTopic:
    given = {"assignment": {0: (1, 2, 3)}, "states": {0: state(1, 1, 2, 3)}} | fields
    return LiveTopic(name=name, topic_id=None, czxid=1, mzxid=1, **given)


def snapshot(*topics: LiveTopic, **fields: object) -> ClusterSnapshot:
    return ClusterSnapshot(
        cluster_id="c",
        chroot="/kafka",
        source="zookeeper",
        controller_id=1,
        controller_epoch=1,
        brokers={broker: Broker(id=broker, rack=None, endpoints=(), epoch=1) for broker in (1, 2, 3)},
        topics={found.name: found for found in topics},
        **({"deleting": {}} | fields),
    )


def only_partition(live: ClusterSnapshot) -> PartitionRow:
    [row] = rows_after(live).partitions
    return row


def test_a_healthy_partition_has_a_live_leader_and_misses_nobody() -> None:
    assert only_partition(snapshot(topic())) == PartitionRow("orders", 0, 1, True, 3, 3, "", 1)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        pytest.param({0: state(9, 1, 2, 3)}, {"leader": 9, "leader_is_live": False}, id="the leader's broker is gone"),
        pytest.param(
            {0: state(-1, 2)}, {"leader": -1, "leader_is_live": False, "missing_replicas": "1,3"}, id="no leader"
        ),
        pytest.param(
            {0: state(2, 2, 3)}, {"leader_is_live": True, "isr": 2, "missing_replicas": "1"}, id="one is behind"
        ),
        pytest.param(
            {}, {"leader": -1, "leader_is_live": False, "isr": 0, "missing_replicas": "1,2,3"}, id="no state yet"
        ),
    ],
)
def test_what_is_wrong_with_a_partition_shows_in_its_row(
    states: dict[int, PartitionState], expected: dict[str, object]
) -> None:
    row = only_partition(snapshot(topic(states=states)))._asdict()
    assert {name: row[name] for name in expected} == expected


def test_during_a_reassignment_its_target_counts_as_the_replicas() -> None:
    moving = topic(assignment={0: (1, 2, 3)}, adding={0: (3,)}, removing={0: (1,)}, states={0: state(2, 1, 2)})
    row = only_partition(snapshot(moving))
    assert (row.replicas, row.missing_replicas) == (2, "3")


def test_a_snapshot_without_states_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="orders: the snapshot was read without partition states"):
        rows_after(snapshot(topic(states=None)))


@pytest.mark.parametrize(
    ("overrides", "defaults", "expected"),
    [
        pytest.param({"min.insync.replicas": "3"}, {"min.insync.replicas": "2"}, 3, id="the topic's own"),
        pytest.param({}, {"min.insync.replicas": "2"}, 2, id="the brokers' default"),
        pytest.param({}, None, 1, id="nobody could be asked"),
        pytest.param({}, {}, 1, id="not among the defaults"),
    ],
)
def test_the_least_isr_comes_from_the_topic_then_the_brokers(
    overrides: dict[str, str], defaults: dict[str, str] | None, expected: int
) -> None:
    assert min_insync_replicas(overrides, defaults) == expected


def test_the_least_isr_is_never_more_than_there_are_replicas() -> None:
    single = topic(assignment={0: (1,)}, states={0: state(1, 1)})
    assert only_partition(snapshot(single, broker_defaults={"min.insync.replicas": "2"})).min_insync_replicas == 1


@pytest.mark.parametrize(
    ("topics", "last_good", "at_least"),
    [
        pytest.param(90, 100, 90, id="a tenth may go"),
        pytest.param(14, 15, 14, id="of fifteen one may go and not two"),
        pytest.param(0, None, 0, id="no last good snapshot"),
        pytest.param(3, 0, 0, id="there was no topic before"),
    ],
)
def test_what_must_be_left_of_the_last_good_snapshot(topics: int, last_good: int | None, at_least: int) -> None:
    assert world_row(topics, last_good, shrink_percent=10).topics_at_least == at_least


def test_the_rows_before_say_what_is_described_and_what_was_listed() -> None:
    desired = DesiredTopic(name="orders", owner="shop", location=Location("topics/shop/orders.yaml", 4, 9))
    live = snapshot(topic("orders"), topic("restless", unstable=True))
    rows = rows_before([desired], live, listed=["orders", "restless", "lost"], topics_last_good=3, shrink_percent=0)
    assert rows.specs == (SpecRow("orders", "topics/shop/orders.yaml"),)
    assert rows.listed == (
        ListedTopicRow("orders", is_decoded=True, is_unstable=False),
        ListedTopicRow("restless", is_decoded=True, is_unstable=True),
        ListedTopicRow("lost", is_decoded=False, is_unstable=False),
    )
    assert [row.is_accounted_for for row in rows.listed] == [True, True, False]
    assert rows.world == (world_row(2, 3, shrink_percent=0),)


def test_any_marker_of_a_topic_that_this_run_deleted_is_stuck_and_another_only_after_a_while() -> None:
    rows = rows_after(snapshot(deleting={"own": 10, "foreign": 20}), deleted=["own"])
    assert rows.deletions == (DeletionRow("own", 10, 0), DeletionRow("foreign", 20, STUCK_AFTER_MS))
