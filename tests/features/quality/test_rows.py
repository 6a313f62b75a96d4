from dataclasses import replace

import pytest

from fakes import builders
from fakes.builders import USUAL_RELEASES, alike
from fixtures.quality_rows import rows_after, rows_before
from topicops.features.quality.rows import BrokerTally, spec_rows
from topicops.features.quality.rules import (
    LAYOUTS,
    RULES,
    Afterwards,
    BrokerRow,
    ConfigZnodeRow,
    DeletionRow,
    DifferenceRow,
    InputsRow,
    SpecConfigRow,
    topics_at_least,
)
from topicops.model.cluster.snapshot import STUCK_AFTER_MS, Broker, ClusterSnapshot, LiveTopic, PartitionState
from topicops.model.release import Release, Releases
from topicops.model.runs.facts import CAUSES, PartitionRow, partition_rows
from topicops.model.specs.topic_config import min_insync_replicas


def state(leader: int, *isr: int) -> PartitionState:
    return PartitionState(leader=leader, isr=isr, leader_epoch=1, controller_epoch=1, version=0)


def topic(name: str = "orders", **fields: object) -> LiveTopic:
    given = {"assignment": {0: (1, 2, 3)}, "states": {0: state(1, 1, 2, 3)}} | fields
    return LiveTopic(name=name, topic_id=None, czxid=1, mzxid=1, **given)


def snapshot(
    *topics: LiveTopic, racks: tuple[str | None, ...] = (None, None, None), **fields: object
) -> ClusterSnapshot:
    brokers = {number: Broker(id=number, rack=rack, endpoints=(), epoch=1) for number, rack in enumerate(racks, 1)}
    given = {"controller_id": 1, "controller_epoch": 1, "source": "zookeeper", "deleting": {}} | fields
    return ClusterSnapshot(
        cluster_id="c", chroot="/kafka", brokers=brokers, topics={found.name: found for found in topics}, **given
    )


NOTHING_KNOWN = Afterwards(managed=())


def only_partition(live: ClusterSnapshot) -> PartitionRow:
    [row] = partition_rows(live)
    return row


def test_a_healthy_partition_has_a_live_leader_and_misses_nobody() -> None:
    full = (1, 2, 3)
    assert only_partition(snapshot(topic())) == PartitionRow("orders", 0, 1, True, full, full, (), (), 1, 1, 0)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        pytest.param({0: state(9, 1, 2, 3)}, {"leader": 9, "leader_is_live": False}, id="the leader's broker is gone"),
        pytest.param({0: state(-1, 2)}, {"leader": -1, "leader_is_live": False, "isr": (2,)}, id="no leader"),
        pytest.param({}, {"leader": -1, "leader_is_live": False, "isr": ()}, id="no state yet"),
    ],
)
def test_what_is_wrong_with_a_partition_shows_in_its_row(
    states: dict[int, PartitionState], expected: dict[str, object]
) -> None:
    row = only_partition(snapshot(topic(states=states)))._asdict()
    assert {name: row[name] for name in expected} == expected


def test_during_a_reassignment_its_target_counts_as_the_replicas() -> None:
    moving = topic(assignment={0: (1, 2, 3)}, adding={0: (3,)}, removing={0: (1,)}, states={0: state(2, 1, 2)})
    assert only_partition(snapshot(moving)).replicas == (2, 3)


def test_a_replica_on_a_broker_that_is_not_registered_is_dead() -> None:
    assert only_partition(snapshot(topic(assignment={0: (1, 7, 9)}))).dead_replicas == (7, 9)


@pytest.mark.parametrize(
    ("racks", "replicas", "expected"),
    [
        pytest.param(("a", "b", "c"), (1, 2), (2, 2), id="each on its own"),
        pytest.param(("a", "a", "c"), (1, 2), (1, 2), id="two share one"),
        pytest.param(("a", "a", "c"), (1, 2, 3), (2, 2), id="no more racks than there are"),
        pytest.param(("a", None, "c"), (1, 3), (2, 0), id="one broker does not say"),
        pytest.param(("a", "b", "c"), (1, 9), (2, 0), id="a broker that is gone"),
    ],
)
def test_over_how_many_racks_a_partition_is_and_could_be_spread(
    racks: tuple[str | None, ...], replicas: tuple[int, ...], expected: tuple[int, int]
) -> None:
    row = only_partition(snapshot(topic(assignment={0: replicas}), racks=racks))
    assert (row.racks_used, row.racks_possible) == expected


def test_a_snapshot_without_states_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="orders: the snapshot was read without partition states"):
        rows_after(snapshot(topic(states=None)), NOTHING_KNOWN)


@pytest.mark.parametrize(
    ("overrides", "defaults", "expected"),
    [
        pytest.param({"min.insync.replicas": "3"}, {"min.insync.replicas": "2"}, 3, id="the topic's own"),
        pytest.param({}, {"min.insync.replicas": "2"}, 2, id="the brokers' default"),
        pytest.param({"min.insync.replicas": "+2"}, None, 2, id="as brokers read it"),
        pytest.param({"min.insync.replicas": "two"}, {"min.insync.replicas": "3"}, 3, id="no number"),
        pytest.param({}, None, 1, id="nobody could be asked"),
        pytest.param({}, {}, 1, id="not among the defaults"),
    ],
)
def test_the_least_isr_comes_from_the_topic_then_the_brokers(
    overrides: dict[str, str], defaults: dict[str, str] | None, expected: int
) -> None:
    assert min_insync_replicas(overrides, None if defaults is None else {1: defaults}) == expected


@pytest.mark.parametrize(
    ("releases", "min_isr"),
    [
        pytest.param(USUAL_RELEASES, 1, id="never more than it has replicas"),
        pytest.param(Releases(Release(3, 6), Release(3, 9)), 2, id="before 3.7 as it is set"),
        pytest.param(None, 2, id="as it is set where no broker answers"),
    ],
)
def test_the_least_isr_of_a_partition_is_what_its_brokers_ask_for(releases: Releases | None, min_isr: int) -> None:
    single = topic(assignment={0: (1,)}, states={0: state(1, 1)})
    live = snapshot(single, broker_defaults=alike({"min.insync.replicas": "2"}), releases=releases)
    rows = rows_after(live, NOTHING_KNOWN)
    assert [row.min_isr for row in rows["partition"]] == [min_isr]
    assert [row.min_insync_replicas for row in rows["topic"]] == [2]


@pytest.mark.parametrize(
    ("topic_count", "at_least"),
    [
        pytest.param(100, 90, id="a tenth may go"),
        pytest.param(15, 14, id="of fifteen one may go and not two"),
        pytest.param(0, 0, id="there was no topic before"),
    ],
)
def test_what_must_be_left_of_the_last_good_snapshot(topic_count: int, at_least: int) -> None:
    assert topics_at_least(topic_count, 10) == at_least


def test_a_broker_counts_the_partitions_that_prefer_it_and_those_of_them_that_it_leads() -> None:
    rows = {0: (1, 2), 1: (1, 3), 2: (9, 1)}
    live = snapshot(topic(assignment=rows, states={0: state(1, 1, 2), 1: state(3, 3), 2: state(1, 1)}))
    tally = BrokerTally(live.brokers)
    tally.count(partition_rows(live))
    assert tally.rows() == [
        BrokerRow(1, preferred=2, led=1),
        BrokerRow(2, 0, 0),
        BrokerRow(3, 0, 0),
        BrokerRow(9, preferred=1, led=0),
    ]


def test_a_topic_named_in_the_reassignment_znode_is_being_reassigned_and_a_throttle_list_is_a_throttle() -> None:
    throttled = topic("moving", overrides={"follower.replication.throttled.replicas": "0:2"})
    rows = rows_after(snapshot(throttled, topic("still"), reassigning=frozenset({"moving"})), NOTHING_KNOWN)["topic"]
    assert [(row.topic, row.is_reassigning, row.is_throttled) for row in rows] == [
        ("moving", True, True),
        ("still", False, False),
    ]


def test_a_topic_of_our_record_of_moves_is_moved_by_us() -> None:
    rows = rows_after(snapshot(topic("moving"), topic("still")), Afterwards(managed=(), own_moves={"moving"}))["topic"]
    assert [(row.topic, row.is_own_move) for row in rows] == [("moving", True), ("still", False)]


def test_a_topic_is_told_with_who_it_was_and_whether_we_made_it() -> None:
    known = Afterwards(managed={"orders"}, known_identities={"orders": "czxid:0"}, own_topic_identities={"czxid:1"})
    [row] = rows_after(snapshot(topic()), known)["topic"]
    assert (row.identity, row.known_identity, row.is_own, row.is_managed) == ("czxid:1", "czxid:0", True, True)


def test_a_topic_that_got_an_id_since_the_last_run_is_the_topic_that_it_was() -> None:
    known = Afterwards(managed={"orders"}, known_identities={"orders": "czxid:1", "another": "czxid:7"})
    live = snapshot(*(replace(topic(name), topic_id=f"id-of-{name}") for name in ("orders", "another")))
    rows = {row.topic: row for row in rows_after(live, known)["topic"]}
    assert rows["orders"].identity == rows["orders"].known_identity
    assert rows["another"].identity == "id-of-another"


def test_topics_that_no_file_names_are_unmanaged() -> None:
    rows = rows_after(snapshot(topic(), topic("foreign")), Afterwards(managed={"orders", "yet to come"}))
    assert rows["cluster"][0][:2] == (2, 1)


def test_a_config_znode_without_a_topic_stands_beside_those_with_one() -> None:
    live = snapshot(topic(overrides={"retention.ms": "1"}), topic("plain"), orphan_configs=frozenset({"gone"}))
    assert rows_after(live, NOTHING_KNOWN)["config_znode"] == [
        ConfigZnodeRow("orders", has_topic=True),
        ConfigZnodeRow("gone", has_topic=False),
    ]


def test_of_sides_that_were_not_compared_nothing_is_known() -> None:
    assert "difference" not in rows_after(snapshot(topic()), NOTHING_KNOWN)
    compared = Afterwards(managed=(), differences={"orders": "x"})
    assert rows_after(snapshot(topic()), compared)["difference"] == [DifferenceRow("orders", "x")]


def test_any_marker_of_a_topic_that_this_run_deleted_is_stuck_and_another_only_after_a_while() -> None:
    rows = rows_after(snapshot(deleting={"own": 10, "foreign": 20}), Afterwards(managed=(), deleted={"own"}))
    assert rows["deletion"] == [DeletionRow("own", 10, 0), DeletionRow("foreign", 20, STUCK_AFTER_MS)]


def test_a_topic_that_two_files_describe_counts_both() -> None:
    orders = builders.desired_topic("orders")
    assert [row.described for row in spec_rows([orders, builders.desired_topic("other"), orders])] == [2, 1, 2]


def test_each_config_of_a_spec_is_read_as_a_broker_reads_it_and_one_that_is_to_go_is_not() -> None:
    configs = {"retention.ms": "soon", "cleanup.policy": "compact", "segment.ms": None}
    desired = builders.desired_of(builders.desired_topic("orders", configs=configs))
    rows = rows_before(desired, snapshot(), builders.environment(), topics_last_good=None)
    assert rows["spec_config"] == [
        SpecConfigRow("orders", "retention.ms", "not a whole number"),
        SpecConfigRow("orders", "cleanup.policy", ""),
    ]


def test_without_a_last_good_snapshot_the_one_at_hand_has_not_shrunk() -> None:
    live = snapshot(topic(), racks=("a", None))
    rows = rows_before(builders.desired_of(), live, builders.environment(min_live_brokers=3), topics_last_good=None)[
        "inputs"
    ]
    assert rows == [InputsRow(1, 1, 1, live_brokers=2, min_live_brokers=3, brokers_without_rack=1, has_controller=True)]


@pytest.mark.parametrize(
    ("source", "controller", "expected"),
    [
        pytest.param("zookeeper", None, False, id="none is elected"),
        pytest.param("zookeeper", 9, False, id="it is not registered"),
        pytest.param("kafka", 9, True, id="under KRaft it need not be a broker"),
    ],
)
def test_a_controller_must_be_there(source: str, controller: int | None, expected: bool) -> None:
    live = snapshot(source=source, controller_id=controller)
    [row] = rows_before(builders.desired_of(), live, builders.environment(), topics_last_good=None)["inputs"]
    assert row.has_controller is expected


def test_offline_and_empty_partitions_of_a_listed_topic_are_counted() -> None:
    live = snapshot(topic(assignment={0: (1,), 1: ()}, states={0: state(9, 9)}), topic("unread", states=None))
    rows = rows_before(builders.desired_of(), live, builders.environment(), topics_last_good=None)["listed"]
    assert [(row.empty_partitions, row.offline_partitions) for row in rows] == [(1, 2), (0, 0)]


def test_a_topic_that_is_being_deleted_needs_no_leaders() -> None:
    going = topic("going", assignment={0: (1,)}, states={0: state(-1)})
    live = snapshot(going, deleting={"going": 1})

    [listed] = rows_before(builders.desired_of(), live, builders.environment(), topics_last_good=None)["listed"]

    assert (listed.offline_partitions, live.offline_partitions) == (0, 0)
    assert rows_after(live, NOTHING_KNOWN)["partition"] == []
    assert replace(live, deleting={}).offline_partitions == 1


def test_the_key_of_each_kind_is_among_its_columns() -> None:
    assert [kind for kind, layout in LAYOUTS.items() if not set(layout.key) <= set(layout.row._fields)] == []


def test_each_rule_of_partitions_is_a_cause_of_facts_and_each_cause_such_a_rule() -> None:
    assert set(CAUSES) == {rule.id for rule in RULES if rule.kind == "partition"}
