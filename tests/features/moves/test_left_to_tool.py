"""Moves that topicops refuses to make: what the plan says, and the JSON with which Kafka's own tool makes them."""

import json

import pytest

from fakes.builders import THREE_BROKERS, desired_of, desired_topic, environment, live_topic, location, snapshot
from fixtures.planning import plan_of
from topicops.features.moves.asked.planner import PLANNER
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.plans.plan import ChangeSet
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.environment import Policy

PLACES = {field: location("a", line) for field, line in {"replicationFactor": 12, "assignment": 13}.items()}
ROW_BY_HAND = {0: (1,), 1: (2,), 2: (3,)}
MOVE = "run the reassignment that the plan carries with Kafka's own tool, then plan again"
ONE_REPLICA = live_topic("a", assignment=ROW_BY_HAND)


def left_to_tool(*topics: DesiredTopic, live: ClusterSnapshot) -> ChangeSet:
    return plan_of(desired_of(*topics), live, environment(policy=Policy(reassign="refuse")), moves=PLANNER)


@pytest.mark.parametrize(
    ("topic", "live", "code", "reason", "way_out", "line"),
    [
        pytest.param(
            desired_topic("a", replication_factor=2, locations=PLACES),
            snapshot(live_topic("a")),
            "TOP402",
            "replication factor 2 wanted, 3 live; only a reassignment can change it",
            f"{MOVE}, or set replicationFactor: 3 in the spec",
            12,
            id="fewer replicas",
        ),
        pytest.param(
            desired_topic("a", locations=PLACES),
            snapshot(ONE_REPLICA),
            "TOP402",
            "replication factor 3 wanted, 1 live; only a reassignment can change it",
            f"{MOVE}, or set replicationFactor: 1 in the spec",
            12,
            id="as many replicas as brokers",
        ),
        pytest.param(
            desired_topic("a", 2, locations=PLACES),
            snapshot(live_topic("a", assignment={0: (1, 2, 3), 1: (2, 3)})),
            "TOP423",
            "partitions have 2 and 3 replicas; the spec wants 3 for each",
            MOVE,
            12,
            id="mixed factors",
        ),
        pytest.param(
            desired_topic("a", replication_factor=1, assignment={**ROW_BY_HAND, 1: (3,)}, locations=PLACES),
            snapshot(ONE_REPLICA),
            "TOP425",
            "partition 1 is on [2], the spec says [3]",
            f"{MOVE}, or write the live assignment into the spec",
            13,
            id="one row by hand",
        ),
        pytest.param(
            desired_topic("a", replication_factor=1, assignment={0: (2,), 1: (3,), 2: (3,)}, locations=PLACES),
            snapshot(ONE_REPLICA),
            "TOP425",
            "partition 0 is on [1], the spec says [2]; 2 partitions differ",
            f"{MOVE}, or write the live assignment into the spec",
            13,
            id="two rows by hand",
        ),
    ],
)
def test_a_block_says_why_how_to_go_on_and_where(
    topic: DesiredTopic, live: ClusterSnapshot, code: str, reason: str, way_out: str, line: int
) -> None:
    found = left_to_tool(topic, live=live)

    (blocked,) = found.blocked
    assert found.changes == ()
    assert blocked.codes == (code,)
    assert blocked.reasons == (f"{reason}; policy.reassign refuses moves (policy.reassign, by default)",)
    assert (blocked.way_out, blocked.location.line) == (way_out, line)


def test_another_factor_blocks_the_topic_with_all_its_changes() -> None:
    wanted = desired_topic("a", configs={"retention.ms": "1"})
    found = left_to_tool(wanted, live=snapshot(ONE_REPLICA))
    (blocked,) = found.blocked
    assert (found.changes, blocked.codes) == ((), ("TOP402",))
    rows = {each["partition"]: each["replicas"] for each in json.loads(blocked.reassignment or "")["partitions"]}
    assert {p: len(row) for p, row in rows.items()} == {0: 3, 1: 3, 2: 3}


def test_another_replication_factor_comes_with_a_reassignment_of_the_fewest_moves() -> None:
    live = snapshot(live_topic("a", assignment={0: (1, 2), 1: (2, 9)}), racks={**THREE_BROKERS, 4: "r1"})
    (blocked,) = left_to_tool(desired_topic("a", 2), live=live).blocked
    assert blocked.reassignment is not None
    rows = {p["partition"]: p["replicas"] for p in json.loads(blocked.reassignment)["partitions"]}
    assert rows == {0: [1, 2, 3], 1: [2, 4, 3]}


@pytest.mark.parametrize(("rack_aware", "replicas"), [(True, "[1,2]"), (False, "[1,4]")])
def test_a_smaller_replication_factor_keeps_leaders_and_gives_up_shared_racks_first_where_the_spec_looks_at_racks(
    rack_aware: bool, replicas: str
) -> None:
    live = snapshot(live_topic("a", 1, assignment={0: (1, 4, 2)}), racks={**THREE_BROKERS, 4: "r1"})
    topic = desired_topic("a", 1, replication_factor=2, rack_aware=rack_aware)
    (blocked,) = left_to_tool(topic, live=live).blocked
    assert blocked.reassignment == f'{{"partitions":[{{"partition":0,"replicas":{replicas},"topic":"a"}}],"version":1}}'


def test_no_reassignment_is_offered_where_brokers_are_missing() -> None:
    (blocked,) = left_to_tool(desired_topic("a", replication_factor=4), live=snapshot(live_topic("a"))).blocked
    assert blocked.reassignment is None
    assert "start brokers until 4 are live" in blocked.way_out


RACKS = {1: "r1", 2: "r2", 3: "r3", 4: "r1"}
BY_HAND = desired_topic("a", 2, replication_factor=2, assignment={0: (2, 1), 1: (2, 9)})
ON_1_2 = live_topic("a", assignment={0: (1, 2), 1: (1, 2)})


@pytest.mark.parametrize(
    ("topic", "live", "way_out", "is_carried"),
    [
        pytest.param(
            desired_topic("a", 2),
            snapshot(ON_1_2, racks=RACKS),
            "run the reassignment that the plan carries with Kafka's own tool, then plan again, "
            "or set replicationFactor: 2 in the spec",
            True,
            id="another replication factor",
        ),
        pytest.param(
            desired_topic("a", 2),
            snapshot(ON_1_2, racks=RACKS, reassigning=frozenset({"a"})),
            "wait until the reassignment that is running has ended, then plan again, "
            "or set replicationFactor: 2 in the spec",
            False,
            id="while one is running",
        ),
        pytest.param(
            desired_topic("a", 2, replication_factor=4),
            snapshot(live_topic("a", assignment={0: (1, 2), 1: (1,)})),
            "start brokers until 4 are live, then plan again",
            False,
            id="mixed factors, and too few brokers",
        ),
        pytest.param(
            BY_HAND,
            snapshot(ON_1_2, racks=RACKS),
            "start broker 9, then plan again, or write the live assignment into the spec",
            False,
            id="by hand, onto a broker that is down",
        ),
        pytest.param(
            BY_HAND,
            snapshot(ON_1_2, racks={**RACKS, 9: "r9"}),
            "run the reassignment that the plan carries with Kafka's own tool, then plan again, "
            "or write the live assignment into the spec",
            True,
            id="by hand",
        ),
    ],
)
def test_a_way_out_by_moving_replicas_is_one_that_kafkas_tool_would_take(
    topic: DesiredTopic, live: ClusterSnapshot, way_out: str, is_carried: bool
) -> None:
    (blocked,) = left_to_tool(topic, live=live).blocked
    assert blocked.way_out == way_out
    assert (blocked.reassignment is not None) is is_carried


def test_an_assignment_by_hand_is_the_reassignment() -> None:
    wanted = {0: (2, 1), 1: (2, 3)}
    topic = desired_topic("a", 2, replication_factor=2, assignment=wanted)
    live = snapshot(live_topic("a", assignment={0: (1, 2), 1: (2, 3)}))
    (blocked,) = left_to_tool(topic, live=live).blocked
    assert blocked.reassignment == '{"partitions":[{"partition":0,"replicas":[2,1],"topic":"a"}],"version":1}'
