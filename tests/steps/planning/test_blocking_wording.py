"""What a blocked topic is told: the reason with both values, the way out, and the line of the spec that asks for it."""

from datetime import timedelta

import pytest

from fakes.builders import (
    NOW,
    desired_of,
    desired_topic,
    healthy_states,
    live_topic,
    location,
    partition_state,
    paused_topic,
    round_robin,
    snapshot,
    tombstone,
    topic_id,
)
from fixtures.planning import plan_of
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.specs.desired import DesiredTopic

LINES = {
    "partitions": 11,
    "replicationFactor": 12,
    "assignment": 13,
    "configs.min.insync.replicas": 14,
    "lifecycle.until": 15,
    "lifecycle.notBefore": 16,
    "lifecycle.topicIds": 17,
}
PLACES = {field: location("a", line) for field, line in LINES.items()}
MIXED_RACKS = {1: "r1", 2: None, 3: "r3", 4: None}
ONE_SHORT = {**healthy_states(round_robin(3)), 1: partition_state([2])}
BY_HAND = {0: (1,), 1: (2,), 2: (3,)}
ONE_REPLICA = live_topic("a", assignment=BY_HAND)


@pytest.mark.parametrize(
    ("topic", "live", "code", "reason", "way_out", "line"),
    [
        pytest.param(
            desired_topic("a"),
            snapshot(live_topic("a"), deleting={"a": 5}),
            "TOP418",
            "the topic is marked for deletion but still exists",
            "wait until the deletion has ended, then plan again; topicops why a --environment local says what "
            "holds it up",
            4,
            id="a deletion under way",
        ),
        pytest.param(
            paused_topic("a", 4, until=NOW, locations=PLACES),
            snapshot(live_topic("a")),
            "TOP322",
            "the pause ended at 2024-05-01T12:00:00Z",
            "take lifecycle out of the spec, or give the pause a later end",
            15,
            id="a pause that is over",
        ),
        pytest.param(
            desired_topic("__a"),
            snapshot(),
            "TOP408",
            "the topic is protected by the pattern __*",
            "remove its spec: another system owns this topic",
            4,
            id="protection",
        ),
        pytest.param(
            desired_topic("a", 4),
            snapshot(live_topic("a", unstable=True)),
            "TOP436",
            "the topic kept changing while it was read, so it cannot be compared",
            "plan again when those changes have ended",
            4,
            id="restless",
        ),
        pytest.param(
            desired_topic("a_b"),
            snapshot(live_topic("a.b")),
            "TOP417",
            "the name collides with the live topic a.b: in metrics `.` and `_` are the same",
            "choose another name",
            4,
            id="a name with an underscore",
        ),
        pytest.param(
            desired_topic("a", 2, locations=PLACES),
            snapshot(live_topic("a")),
            "TOP401",
            "2 partitions wanted, 3 live; Kafka cannot remove partitions",
            "set partitions: 3, in the spec or, where it is of other environments too, below spec.overrides.local; "
            "or move the data to a new topic",
            11,
            id="fewer partitions",
        ),
        pytest.param(
            desired_topic("a", 3, replication_factor=1, locations=PLACES),
            snapshot(live_topic("a", assignment={0: (1,), 5: (3,)})),
            "TOP426",
            "partition ids have gaps: 2 partitions, the highest id is 5",
            "move the data to a new topic: Kafka would number new partitions of this hand-made one wrongly",
            11,
            id="ids with a gap",
        ),
        pytest.param(
            desired_topic("a", 2, replication_factor=1, assignment={0: (9,), 1: (8,)}, locations=PLACES),
            snapshot(),
            "TOP427",
            "the assignment names brokers 8, 9, not live",
            "start what is down, or name live brokers",
            13,
            id="a new topic on dead brokers",
        ),
        pytest.param(
            desired_topic("a", 4, replication_factor=1, assignment={**BY_HAND, 3: (9,)}, locations=PLACES),
            snapshot(ONE_REPLICA),
            "TOP427",
            "the assignment names broker 9, not live",
            "start what is down, or name live brokers",
            13,
            id="new rows on a dead broker",
        ),
        pytest.param(
            desired_topic("a", 4),
            snapshot(live_topic("a"), reassigning=frozenset({"a"})),
            "TOP419",
            "a reassignment of this topic is running",
            "wait until it has ended, then plan again; topicops why a --environment local says what it waits for",
            4,
            id="a reassignment",
        ),
        pytest.param(
            desired_topic("a", locations=PLACES),
            snapshot(racks={1: "r1", 2: "r2"}),
            "TOP420",
            "replication factor 3 needs as many live brokers; 2 are live",
            "start the missing brokers, then plan again",
            12,
            id="too few brokers",
        ),
        pytest.param(
            desired_topic("a"),
            snapshot(racks=MIXED_RACKS),
            "TOP434",
            "the others have a rack, but not brokers 2, 4",
            "give every broker a broker.rack, or none",
            4,
            id="racks on some",
        ),
        pytest.param(
            desired_topic("a", 60_000, locations=PLACES),
            snapshot(),
            "TOP428",
            "the topic's znode would have about 949010 bytes, 800000 are safe",
            "ask for fewer partitions",
            11,
            id="a large znode",
        ),
        pytest.param(
            desired_topic("a", configs={"min.insync.replicas": "2"}, locations=PLACES),
            snapshot(live_topic("a", states=ONE_SHORT)),
            "TOP415",
            "min.insync.replicas 2 is above the ISR of partition 1",
            "wait until the ISR is full again, then plan again",
            14,
            id="min ISR",
        ),
        pytest.param(
            tombstone("a", not_before=NOW + timedelta(seconds=1), locations=PLACES),
            snapshot(live_topic("a")),
            "TOP412",
            "the tombstone holds until 2024-05-01T12:00:01Z",
            "plan again after that time",
            16,
            id="too early",
        ),
        pytest.param(
            tombstone("a", topic_id="other", locations=PLACES),
            snapshot(live_topic("a")),
            "TOP411",
            f"the tombstone is for topic id other, the live topic has {topic_id('a')}",
            "the topic was created again; to delete this one too, name its id",
            17,
            id="another topic",
        ),
        pytest.param(
            tombstone("a", topic_id="other", locations=PLACES),
            snapshot(live_topic("a", topic_id=None)),
            "TOP411",
            "the tombstone is for topic id other, the live topic has none",
            "the topic was created again; to delete this one too, name its id",
            17,
            id="another topic, without an id",
        ),
        pytest.param(
            tombstone("a"),
            snapshot(live_topic("a"), racks={1: "r1"}),
            "TOP421",
            "its replicas on brokers 2, 3 cannot be deleted: not live",
            "start what is down, or move the replicas away, then plan again",
            4,
            id="dead replicas",
        ),
    ],
)
def test_a_block_says_why_how_to_go_on_and_where(
    topic: DesiredTopic, live: ClusterSnapshot, code: str, reason: str, way_out: str, line: int
) -> None:
    found = plan_of(desired_of(topic), live)

    (blocked,) = found.blocked
    assert found.changes == ()
    assert (blocked.codes, blocked.reasons) == ((code,), (reason,))
    assert (blocked.way_out, blocked.location.line) == (way_out, line)
