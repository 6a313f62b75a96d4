"""The part of a plan that ``--only`` asks for."""

from fakes.builders import NOW, desired_of, desired_topic, environment, live_topic, paused_topic, snapshot, tombstone
from fixtures.planning import plan_of
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.plans.plan import ChangeSet, TopicActivity
from topicops.model.plans.plan_file import changes_to_json
from topicops.model.specs.desired import Desired
from topicops.steps.planning.gate import gate
from topicops.steps.planning.only import keep_only

DESIRED = desired_of(
    desired_topic("pay.new"),
    desired_topic("pay.blocked", 1),
    desired_topic("pay.drift"),
    paused_topic("pay.paused"),
    tombstone("pay.old"),
    desired_topic("shop.new"),
    desired_topic("shop.blocked", 1),
    desired_topic("shop.drift"),
    paused_topic("shop.paused"),
    tombstone("shop.old"),
)
LIVE = snapshot(
    live_topic("pay.blocked"),
    live_topic("pay.drift", overrides={"flush.ms": "5"}),
    live_topic("pay.old"),
    live_topic("pay.unmanaged"),
    live_topic("shop.blocked"),
    live_topic("shop.drift", overrides={"flush.ms": "5"}),
    live_topic("shop.old"),
    live_topic("shop.unmanaged"),
)
ACTIVITY = {name: TopicActivity(end_offsets={0: 1}, groups=()) for name in ("pay.old", "shop.old")}


def whole(desired: Desired = DESIRED, live: ClusterSnapshot = LIVE) -> ChangeSet:
    return plan_of(desired, live, activity=ACTIVITY)


def test_only_what_matches_is_left_of_everything() -> None:
    found = keep_only(whole(), LIVE, DESIRED.topics, "pay.*")
    assert [(change.action, change.topic) for change in found.changes] == [("create", "pay.new"), ("delete", "pay.old")]
    assert [entry.topic for entry in found.blocked] == ["pay.blocked"]
    assert [entry.topic for entry in found.drift] == ["pay.drift"]
    assert [entry.topic for entry in found.paused] == ["pay.paused"]
    assert found.unmanaged == ("pay.unmanaged",)
    assert list(found.activity) == ["pay.old"]


def test_the_load_is_that_of_the_part() -> None:
    part = keep_only(whole(), LIVE, DESIRED.topics, "pay.new")
    assert sum(broker.after.replicas - broker.before.replicas for broker in part.load.brokers) == 9
    # In the whole plan as many replicas go as come.
    assert sum(broker.after.replicas - broker.before.replicas for broker in whole().load.brokers) == 0


def test_the_plan_says_how_much_is_left_out() -> None:
    assert keep_only(whole(), LIVE, DESIRED.topics, "pay.*").warnings == (
        "only pay.*: 5 of 10 described topics match; 2 changes and 1 blocked topic of the others are left out",
    )
    assert keep_only(whole(), LIVE, DESIRED.topics, "payment.*").warnings == (
        "only payment.*: 0 of 10 described topics match; 4 changes and 2 blocked topics of the others are left out",
    )


def test_a_change_is_the_same_in_the_part_as_in_the_whole() -> None:
    every = gate(whole(), environment())
    part = gate(keep_only(whole(), LIVE, DESIRED.topics, "pay.*"), environment())
    assert [(gated.change, gated.digest) for gated in part.changes] == [
        (gated.change, gated.digest) for gated in every.changes if gated.change.topic.startswith("pay.")
    ]


def test_asking_for_one_topic_after_the_other_is_no_way_around_the_share_of_deletes() -> None:
    part = keep_only(whole(), LIVE, DESIRED.topics, "pay.old")
    (held,) = gate(part, environment()).changes
    assert (held.gate, held.approvable) == ("held", False)


def test_case_counts_as_it_does_for_kafka() -> None:
    assert keep_only(whole(), LIVE, DESIRED.topics, "PAY.*").changes == ()


def test_nothing_is_read_from_a_clock() -> None:
    once, again = (changes_to_json(keep_only(whole(), LIVE, DESIRED.topics, "pay.*")) for _ in range(2))
    assert once == again
    assert f"{NOW:%Y-%m}" not in once
