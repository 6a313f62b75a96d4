import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from fakes.builders import (
    NOW,
    USUAL_RELEASES,
    desired_of,
    desired_topic,
    environment,
    healthy_states,
    live_topic,
    location,
    paused_topic,
    round_robin,
    snapshot,
    tombstone,
    topic_id,
)
from fixtures.planning import plan_of
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic
from topicops.model.errors import DiffError
from topicops.model.plans.changes import ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plans.delta import desired_row, live_row
from topicops.model.plans.plan import ActivityOfHiddenGroups, ChangeSet, GroupUse, TopicActivity
from topicops.model.release import (
    ALL_OVERRIDES,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_BY_ID,
    DELETE_TOPICS,
    LIST_GROUPS,
    SINGLE_OVERRIDES,
    Ability,
    Release,
    Releases,
    missing_requests,
)
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Environment, Policy, Risk
from topicops.steps.planning.blocking import CREATE_RULES, Situation, estimated_znode_bytes, findings_of
from topicops.steps.planning.diff import diff
from topicops.steps.planning.plan import plan, situations_of, topics_whose_isr_counts

MIXED_RACKS = {1: "r1", 2: None, 3: "r3"}


def planned(*topics: DesiredTopic, live: ClusterSnapshot, where: Environment | None = None) -> ChangeSet:
    return plan_of(desired_of(*topics), live, where)


def codes_of(change_set: ChangeSet) -> dict[str, tuple[str, ...]]:
    return {blocked.topic: blocked.codes for blocked in change_set.blocked}


def test_changes_come_in_the_order_in_which_they_run() -> None:
    live = snapshot(live_topic("b"), live_topic("a"), live_topic("gone"), live_topic("old"))
    found = planned(
        tombstone("old"),
        tombstone("gone"),
        desired_topic("b", 6, configs={"retention.ms": "5"}),
        desired_topic("a", 4),
        desired_topic("z"),
        desired_topic("new"),
        live=live,
    )
    assert [(change.action, change.topic) for change in found.changes] == [
        ("create", "new"),
        ("create", "z"),
        ("expand", "a"),
        ("expand", "b"),
        ("configure", "b"),
        ("delete", "gone"),
        ("delete", "old"),
    ]


def test_a_create_carries_its_assignment_and_wants_the_name_to_be_free() -> None:
    topic = desired_topic("orders", 2, replication_factor=2, configs={"retention.ms": "5", "segment.ms": None})
    (change,) = planned(topic, live=snapshot()).changes
    assert isinstance(change, CreateTopic)
    assert change.assignment == {0: (1, 2), 1: (3, 2)}
    assert change.configs == {"retention.ms": "5"}
    assert change.precondition.to_json() == {"absent": True}
    assert (change.risk, change.codes, change.location) == (Risk.SAFE, (), topic.location)


@pytest.mark.parametrize(
    ("on_broker_1", "wanted", "assignments"),
    [
        pytest.param("", {"a": 1, "b": 1, "c": 1}, [{0: (1,)}, {0: (2,)}, {0: (3,)}], id="creates"),
        pytest.param("ab", {"a": 2, "b": 2}, [{1: (2,)}, {1: (3,)}], id="expansions"),
        pytest.param("a", {"a": 2, "new": 1}, [{0: (2,)}, {1: (3,)}], id="a create before an expansion"),
    ],
)
def test_each_placement_counts_the_changes_planned_before_it(
    on_broker_1: str, wanted: dict[str, int], assignments: list[Assignment]
) -> None:
    live = snapshot(*(live_topic(name, assignment={0: (1,)}) for name in on_broker_1))
    topics = (desired_topic(name, partitions, replication_factor=1) for name, partitions in wanted.items())
    changes = planned(*topics, live=live).changes
    assert [change.assignment for change in changes if isinstance(change, CreateTopic | ExpandTopic)] == assignments


def test_an_expansion_shows_the_new_rows_only_and_wants_the_topic_unmoved() -> None:
    topic = desired_topic("orders", 5, locations={"partitions": location("orders", 7)})
    (change,) = planned(topic, live=snapshot(live_topic("orders"))).changes
    assert isinstance(change, ExpandTopic)
    assert (change.partitions_before, change.partitions, list(change.assignment)) == (3, 5, [3, 4])
    assert set(change.precondition.to_json()) == {"identity", "partitions", "assignment_digest"}
    assert change.location == location("orders", 7)
    assert not change.reversible


@pytest.mark.parametrize(
    ("keyed", "overrides", "risk", "codes"),
    [
        pytest.param(False, {}, Risk.NOTICE, (), id="neither keyed nor compacted"),
        pytest.param(True, {}, Risk.RISKY, ("TOP403",), id="keyed"),
        pytest.param(False, {"cleanup.policy": "delete , compact"}, Risk.RISKY, ("TOP404",), id="compacted"),
        pytest.param(True, {"cleanup.policy": "compact"}, Risk.RISKY, ("TOP403", "TOP404"), id="both"),
    ],
)
def test_growing_a_keyed_or_compacted_topic_is_risky(
    keyed: bool, overrides: dict[str, str], risk: Risk, codes: tuple[str, ...]
) -> None:
    live = snapshot(live_topic("orders", overrides=overrides), broker_defaults={"cleanup.policy": "delete"})
    (change,) = planned(desired_topic("orders", 6, keyed=keyed), live=live).changes
    assert (change.risk, change.codes, len(change.notes)) == (risk, codes, len(codes))


def test_growing_a_topic_that_may_be_compacted_is_risky_while_no_broker_gives_the_default() -> None:
    live = snapshot(live_topic("orders"), live_topic("known", overrides={"cleanup.policy": "delete"}))
    wanted = [desired_topic(name, 6, keyed=False) for name in ("known", "orders")]
    known, orders = planned(*wanted, live=live).changes
    assert (known.risk, known.notes) == (Risk.NOTICE, ())
    assert (orders.risk, orders.codes) == (Risk.RISKY, ("TOP404",))
    assert "no broker gave its default of cleanup.policy, so the topic counts as compacted" in orders.notes


def test_a_broker_default_of_compaction_counts_where_it_is_known() -> None:
    live = snapshot(live_topic("orders"), broker_defaults={"cleanup.policy": "compact"})
    (change,) = planned(desired_topic("orders", 6), live=live).changes
    assert change.codes == ("TOP404",)


def test_a_configure_touches_only_what_differs_in_meaning() -> None:
    overrides = {"retention.ms": " 007 ", "preallocate": "TRUE", "segment.ms": "9"}
    wanted = {"retention.ms": "7", "preallocate": "false", "segment.ms": None, "flush.ms": None}
    locations = {"configs.preallocate": location("orders", 9)}
    live = snapshot(live_topic("orders", overrides=overrides))
    (change,) = planned(desired_topic("orders", configs=wanted, locations=locations), live=live).changes
    assert isinstance(change, ConfigureTopic)
    assert change.configs_before == {"preallocate": "true", "segment.ms": "9"}
    assert change.configs == {"preallocate": "false", "segment.ms": None}
    assert change.precondition.overrides == change.configs_before
    assert change.location == location("orders", 9)
    assert any("no broker gave its default of segment.ms" in note for note in change.notes)


def test_a_delete_names_the_topic_by_its_id() -> None:
    found = planned(tombstone("orders"), live=snapshot(live_topic("orders")))
    (change,) = found.changes
    assert isinstance(change, DeleteTopic)
    assert (change.topic_id, change.partitions, change.risk) == (topic_id("orders"), 3, Risk.DESTRUCTIVE)
    assert change.precondition.to_json() == {"identity": topic_id("orders"), "partitions": 3}


def test_without_topic_ids_the_czxid_stands_in() -> None:
    (change,) = planned(tombstone("orders"), live=snapshot(live_topic("orders", topic_id=None))).changes
    assert change.precondition.identity == "czxid:100"


def test_a_removed_file_deletes_nothing() -> None:
    found = planned(live=snapshot(live_topic("orders"), live_topic("__consumer_offsets")))
    assert (found.changes, found.unmanaged) == ((), ("__consumer_offsets", "orders"))


MIN_ISR_2 = {"min.insync.replicas": "2"}


@pytest.mark.parametrize(
    ("topic", "live", "codes"),
    [
        pytest.param(
            desired_topic("a", 2, replication_factor=4),
            snapshot(live_topic("a")),
            ["TOP401", "TOP402"],
            id="fewer partitions and more replicas",
        ),
        pytest.param(
            desired_topic("a", 2, replication_factor=2),
            snapshot(live_topic("a", assignment={0: (1, 2), 1: (2,)})),
            ["TOP423"],
            id="mixed replication factors",
        ),
        pytest.param(
            desired_topic("a", 2, replication_factor=1, assignment={0: (1,), 1: (2,)}),
            snapshot(live_topic("a", assignment={0: (1,), 1: (3,)})),
            ["TOP425"],
            id="another assignment",
        ),
        pytest.param(
            desired_topic("a", 2, replication_factor=1, assignment={0: (1,), 1: (9,)}),
            snapshot(live_topic("a", assignment={0: (1,)})),
            ["TOP427"],
            id="a dead broker in the spec's assignment",
        ),
        pytest.param(
            desired_topic("a", 2, replication_factor=1),
            snapshot(live_topic("a", assignment={0: (2, 1)}, adding={0: (2,)}, removing={0: (1,)})),
            ["TOP419"],
            id="growing during a reassignment",
        ),
        pytest.param(
            desired_topic("a", 4), snapshot(live_topic("a"), racks={1: "r1", 2: "r2"}), ["TOP420"], id="too few brokers"
        ),
        pytest.param(desired_topic("a"), snapshot(racks={1: None, 2: None}), ["TOP420"], id="too few for a create"),
        pytest.param(
            desired_topic("a", 4, rack_aware=False),
            snapshot(live_topic("a"), racks=MIXED_RACKS),
            ["TOP434"],
            id="growing with racks on some brokers",
        ),
        pytest.param(desired_topic("a"), snapshot(racks=MIXED_RACKS), ["TOP434"], id="creating with racks on some"),
        pytest.param(desired_topic("a.b"), snapshot(live_topic("a_b")), ["TOP417"], id="a collision"),
        pytest.param(desired_topic("a"), snapshot(deleting={"a": 5}), ["TOP418"], id="the name is being deleted"),
        pytest.param(tombstone("a"), snapshot(deleting={"a": 5}), ["TOP418"], id="to go, and going"),
        pytest.param(
            desired_topic("a", configs=MIN_ISR_2),
            snapshot(live_topic("a", states={})),
            ["TOP415"],
            id="min ISR above partitions without a state",
        ),
        pytest.param(
            tombstone("a", not_before=NOW + timedelta(days=1), topic_id="other"),
            snapshot(live_topic("a")),
            ["TOP411", "TOP412"],
            id="a tombstone that is early and for another topic",
        ),
        pytest.param(
            tombstone("a"), snapshot(live_topic("a"), racks={1: None, 2: None}), ["TOP421"], id="a replica's broker"
        ),
        pytest.param(
            tombstone("a"), snapshot(live_topic("a"), reassigning=frozenset({"a"})), ["TOP419"], id="in motion"
        ),
        pytest.param(
            paused_topic("a", 2, until=NOW),
            snapshot(live_topic("a")),
            ["TOP322", "TOP401"],
            id="a pause that is over, and what else holds",
        ),
    ],
)
def test_what_no_change_can_mend_is_blocked_with_every_reason(
    topic: DesiredTopic, live: ClusterSnapshot, codes: list[str]
) -> None:
    topics = (topic, desired_topic("z", 1, replication_factor=1, rack_aware=False))
    found = planned(*topics, live=live)
    (blocked,) = found.blocked
    assert list(blocked.codes) == codes
    assert len(blocked.reasons) == len(codes)
    assert blocked.way_out
    assert [change.topic for change in found.changes] == ["z"]


@pytest.mark.parametrize(
    ("topic", "live"),
    [
        pytest.param(desired_topic("a"), snapshot(live_topic("a", unstable=True)), id="unstable"),
        pytest.param(desired_topic("a"), snapshot(live_topic("a"), racks={1: "r1"}), id="brokers down"),
        pytest.param(desired_topic("a"), snapshot(live_topic("a"), racks=MIXED_RACKS), id="mixed racks"),
        pytest.param(desired_topic("a"), snapshot(live_topic("a"), reassigning=frozenset({"a"})), id="in motion"),
        pytest.param(paused_topic("a", until=NOW), snapshot(live_topic("a")), id="a pause that is over"),
        pytest.param(tombstone("a"), snapshot(orphan_configs=frozenset({"a"})), id="gone already"),
        pytest.param(tombstone("a", not_before=NOW + timedelta(days=1)), snapshot(), id="gone already, and early"),
    ],
)
def test_a_topic_without_difference_is_never_blocked(topic: DesiredTopic, live: ClusterSnapshot) -> None:
    found = planned(topic, live=live)
    assert (found.changes, found.blocked) == ((), ())


@pytest.mark.parametrize(
    ("topic", "live", "action"),
    [
        pytest.param(
            desired_topic("a", rack_aware=False, replication_factor=2),
            snapshot(racks=MIXED_RACKS),
            "create",
            id="racks",
        ),
        pytest.param(
            tombstone("a", not_before=NOW, topic_id=topic_id("a")), snapshot(live_topic("a")), "delete", id="due"
        ),
        pytest.param(
            desired_topic("a", configs={"retention.ms": "5"}),
            snapshot(live_topic("a"), racks=MIXED_RACKS, reassigning=frozenset({"a"})),
            "configure",
            id="a config in a cluster that could not place anything",
        ),
        pytest.param(
            desired_topic("a", configs=MIN_ISR_2),
            snapshot(live_topic("a", states=healthy_states(round_robin(3)))),
            "configure",
            id="min ISR within every ISR",
        ),
        pytest.param(
            desired_topic("a", configs={"min.insync.replicas": "1"}),
            snapshot(live_topic("a", overrides=MIN_ISR_2, states={})),
            "configure",
            id="min ISR down",
        ),
        pytest.param(
            desired_topic("a", 2, replication_factor=1, assignment={0: (9,), 1: (2,)}),
            snapshot(live_topic("a", assignment={0: (9,)})),
            "expand",
            id="a dead broker in a row that is live",
        ),
    ],
)
def test_what_stands_in_nobodys_way_is_planned(topic: DesiredTopic, live: ClusterSnapshot, action: str) -> None:
    found = planned(topic, live=live)
    assert codes_of(found) == {}
    assert [change.action for change in found.changes] == [action]


def test_a_blocked_topic_points_at_the_line_that_asks_for_it() -> None:
    topic = desired_topic("a", 2, locations={"partitions": Location("topics/profiles/durable.yaml", 5, 3)})
    (blocked,) = planned(topic, live=snapshot(live_topic("a"))).blocked
    assert str(blocked.location) == "topics/profiles/durable.yaml:5"
    assert "set partitions: 3, in the spec or" in blocked.way_out


def test_brokers_that_replace_all_overrides_are_sent_all_of_them() -> None:
    old = Releases(Release(2, 2), Release(2, 2))
    live = snapshot(live_topic("a", overrides={"retention.ms": "5", "segment.ms": "7"}), releases=old)

    (change,) = planned(desired_topic("a", configs={"retention.ms": "9"}), live=live).changes

    assert isinstance(change, ConfigureTopic)
    assert change.precondition.overrides == {"retention.ms": "5", "segment.ms": "7"}
    assert change.all_configs == {"retention.ms": "9", "segment.ms": "7"}
    assert change.notes[-1].startswith("brokers 1, 2, 3 offer no IncrementalAlterConfigs, so all overrides")
    assert "the request also names the segment.ms of now" in change.notes[-1]


@pytest.mark.parametrize(
    ("lacking", "blocked"),
    [
        pytest.param((CREATE_TOPICS,), {"new": "no CreateTopics"}, id="creates"),
        pytest.param((CREATE_PARTITIONS,), {"grows": "no CreatePartitions"}, id="expands"),
        pytest.param((SINGLE_OVERRIDES,), {}, id="configs, another way"),
        pytest.param((ALL_OVERRIDES,), {}, id="configs, the usual way"),
        pytest.param((SINGLE_OVERRIDES, ALL_OVERRIDES), {"set": "no AlterConfigs"}, id="configs"),
        pytest.param((DELETE_TOPICS,), {"gone": "no DeleteTopics"}, id="deletes"),
        pytest.param((DELETE_BY_ID,), {"gone": "no DeleteTopics of version 6 or later"}, id="deletes by id"),
        pytest.param((LIST_GROUPS,), {"gone": "no ListGroups"}, id="deletes, because groups are not known"),
    ],
)
def test_what_a_broker_does_not_offer_blocks_what_needs_it_and_nothing_else(
    lacking: tuple[Ability, ...], blocked: dict[str, str]
) -> None:
    live = snapshot(*map(live_topic, ("grows", "set", "gone")), missing_requests=missing_requests({2: lacking}))
    wanted = [
        desired_topic("new"),
        desired_topic("grows", partitions=6),
        desired_topic("set", configs={"segment.ms": "9"}),
    ]

    found = planned(*wanted, tombstone("gone"), live=live)

    assert {each.topic: each.codes for each in found.blocked} == dict.fromkeys(blocked, ("TOP811",))
    assert [reason in each.reasons[0] for each in found.blocked for reason in blocked.values()] == [True] * len(blocked)
    assert all(each.reasons[0].startswith("broker 2 offers no ") for each in found.blocked)


@pytest.mark.parametrize(
    ("configs", "release", "said"),
    [
        ({"segment.bytes": "1000"}, Release(4, 1), ("TOP306", "Kafka 4.1 takes 1048576 or more")),
        ({"segment.bytes": "1000"}, Release(4, 0), None),
        ({"segment.bytes": None}, Release(4, 1), None),
    ],
)
@pytest.mark.parametrize("is_live", [False, True])
def test_a_value_that_only_older_brokers_took_is_blocked(
    configs: dict[str, str | None], release: Release, said: tuple[str, str] | None, is_live: bool
) -> None:
    """The files were judged by ``cluster.kafkaVersion``, which names another release."""
    there = [live_topic("a", overrides={"segment.bytes": "999"})] if is_live else []
    live = snapshot(*there, releases=Releases(release, release))

    blocked = planned(desired_topic("a", configs=configs), live=live).blocked

    assert [code for each in blocked for code in each.codes] == ([said[0]] if said else [])
    assert all(said is not None and said[1] in each.reasons[0] for each in blocked)


def test_replicas_of_both_sides_of_a_move_are_no_difference() -> None:
    both_sides = live_topic("a", assignment={0: (1, 2, 3), 1: (2, 3), 2: (3, 1)})
    live = snapshot(both_sides, reassigning=frozenset({"a"}), releases=Releases(Release(2, 3), Release(2, 3)))

    assert codes_of(planned(desired_topic("a", replication_factor=2), live=live)) == {"a": ("TOP419",)}


@pytest.mark.parametrize(
    ("configs", "code", "why"),
    [
        ({"compression.zstd.level": "5"}, "TOP314", "compression.zstd.level comes with Kafka 3.8"),
        ({"compression.type": "zstd"}, "TOP306", "one of uncompressed, snappy, lz4, gzip, producer"),
        ({"retention.ms": "-2"}, None, ""),
    ],
)
def test_what_the_brokers_would_refuse_is_blocked_in_the_plan(
    configs: dict[str, str], code: str | None, why: str
) -> None:
    old = Releases(Release(2, 0), Release(2, 1))
    created = planned(desired_topic("a", configs=configs), live=snapshot(releases=old))
    configured = planned(desired_topic("a", configs=configs), live=snapshot(live_topic("a"), releases=old))
    modern = planned(desired_topic("a", configs=configs), live=snapshot(live_topic("a")))

    for found in (created, configured):
        assert codes_of(found) == ({"a": (code,)} if code else {})
        assert all("the brokers run Kafka 2.0 and 2.1 and would refuse" in b.reasons[0] for b in found.blocked)
        assert all(why in blocked.reasons[0] for blocked in found.blocked)
    assert len(modern.changes) == (code is not None)


def test_throttles_of_a_reassignment_are_never_replaced() -> None:
    old, new = (Releases(release, release) for release in (Release(2, 2), Release(2, 4)))
    wanted = desired_topic("a", configs={"retention.ms": "9"})
    live = snapshot(live_topic("a"), reassigning=frozenset({"a"}))

    assert codes_of(planned(wanted, live=replace(live, releases=old))) == {"a": ("TOP419",)}
    assert codes_of(planned(wanted, live=replace(live, releases=new))) == {}
    lean = replace(live, releases=new, missing_requests=missing_requests({1: [SINGLE_OVERRIDES]}))
    assert codes_of(planned(wanted, live=lean)) == {"a": ("TOP419",)}
    assert codes_of(planned(desired_topic("a"), live=lean)) == {}


def test_overrides_that_no_spec_names_are_reported_or_removed_as_the_policy_says() -> None:
    live = snapshot(live_topic("a", overrides={"flush.ms": "5", "follower.replication.throttled.replicas": "*"}))
    reported = planned(desired_topic("a"), live=live)
    assert reported.changes == ()
    assert [(drift.config, drift.value) for drift in reported.drift] == [
        ("flush.ms", "5"),
        ("follower.replication.throttled.replicas", "*"),
    ]
    removed = planned(desired_topic("a"), live=live, where=environment(policy=Policy(unlisted_configs="remove")))
    (change,) = removed.changes
    assert isinstance(change, ConfigureTopic)
    assert change.configs == {"flush.ms": None}
    assert [drift.config for drift in removed.drift] == ["follower.replication.throttled.replicas"]


def test_a_config_outside_the_allow_list_is_not_removed() -> None:
    policy = Policy(unlisted_configs="remove", alterable_configs=("segment.ms",))
    live = snapshot(live_topic("a", overrides={"flush.ms": "5"}))
    found = planned(desired_topic("a"), live=live, where=environment(policy=policy))
    assert found.changes == ()
    assert [drift.config for drift in found.drift] == ["flush.ms"]


def test_a_paused_topic_is_listed_and_left_alone() -> None:
    found = planned(
        paused_topic("a", 99, until=NOW + timedelta(days=1)), live=snapshot(live_topic("a"), deleting={"a": 1})
    )
    assert (found.changes, found.blocked) == ((), ())
    assert [(entry.topic, entry.until) for entry in found.paused] == [("a", "2024-05-02T12:00:00Z")]


def znode_text(rows: Assignment) -> str:
    """As Kafka writes it: keys in this order, no blanks.

    Source: kafka.zk.TopicZNode#encode and kafka.utils.Json#encodeAsBytes (3.9).
    """
    znode = {
        "removing_replicas": {},
        "partitions": rows,
        "topic_id": topic_id("a"),
        "adding_replicas": {},
        "version": 3,
    }
    return json.dumps(znode, separators=(",", ":"))


@pytest.mark.parametrize("brokers", [(1, 2, 3), (101, 102, 103), (8, 9, 10), (1000000001, 1000000002, 2147483647)])
def test_the_estimate_of_a_znode_is_not_below_its_size(brokers: tuple[int, ...]) -> None:
    wrong = []
    for partitions in (11, 700, 12_345):
        rows = round_robin(partitions, 3, over=brokers)
        size = len(znode_text(rows))
        for existing in (0, 1, 9, 10, 650):
            kept = range(min(existing, partitions - 1))
            topic = live_topic("a", assignment={p: rows[p] for p in kept}) if kept else None
            estimated = estimated_znode_bytes(growing_to(partitions, topic, brokers))
            if not size <= estimated <= size * 1.3 + 20:
                wrong.append((partitions, existing, size, estimated))
    assert wrong == []


def growing_to(partitions: int, topic: LiveTopic | None = None, brokers: Sequence[int] = (1, 2, 3)) -> Situation:
    return Situation(
        desired=desired_topic("a", partitions),
        topic=topic,
        live=snapshot(racks=dict.fromkeys(brokers)),
        environment=environment(),
        now=NOW,
        names_by_folded={},
    )


def test_the_estimate_of_a_znode_takes_no_longer_for_a_mistyped_number() -> None:
    found = planned(desired_topic("a", 2_000_000_000), live=snapshot())
    assert codes_of(found) == {"a": ("TOP428",)}


@pytest.mark.parametrize(("partitions", "codes"), [(50_686, []), (50_687, ["TOP428"])])
def test_the_limit_of_a_znode_is_800_kb(partitions: int, codes: list[str]) -> None:
    assert [finding.code for finding in findings_of(growing_to(partitions), CREATE_RULES)] == codes


def test_creating_over_a_leftover_config_znode_is_said() -> None:
    (change,) = planned(desired_topic("a"), live=snapshot(orphan_configs=frozenset({"a"}))).changes
    assert "config znode of an earlier topic" in change.notes[0]


def test_only_topics_whose_min_isr_may_rise_need_their_states() -> None:
    desired = desired_of(
        desired_topic("up", configs={"min.insync.replicas": "3"}),
        desired_topic("down", configs={"min.insync.replicas": "1"}),
        desired_topic("unknown", configs=MIN_ISR_2),
        desired_topic("new", configs=MIN_ISR_2),
        desired_topic("grows", 6),
    )
    live = snapshot(
        live_topic("up", overrides=MIN_ISR_2),
        live_topic("down", overrides=MIN_ISR_2),
        live_topic("unknown"),
        live_topic("grows"),
    )
    delta = diff(map(desired_row, desired.topics.values()), map(live_row, live.topics.values()))
    situations = situations_of(desired, live, delta, environment(), now=NOW)
    assert topics_whose_isr_counts(situations) == ("unknown", "up")


def test_facts_for_the_gate_count_live_and_managed_topics() -> None:
    live = snapshot(live_topic("a"), live_topic("b"), controller_id=None)
    facts = planned(desired_topic("a"), desired_topic("new"), live=live).cluster
    assert (facts.live_topics, facts.managed_topics, facts.live_brokers) == (2, 1, 3)
    assert not facts.has_controller


A_DAY = Policy(rests_for=timedelta(days=1))
BUSY = TopicActivity(end_offsets={0: 5}, groups=(), last_record_ms=int(NOW.timestamp() * 1000) - 15_000)


def deleted_with(
    activity: TopicActivity, policy: Policy, live: LiveTopic | None = None, releases: Releases = USUAL_RELEASES
) -> ChangeSet:
    """The plan for the tombstone of ``a``."""
    there = snapshot(live or live_topic("a"), releases=releases)
    return plan_of(desired_of(tombstone("a")), there, environment(policy=policy), activity={"a": activity})


@pytest.mark.parametrize(
    ("activity", "policy", "codes"),
    [
        pytest.param(BUSY, A_DAY, ("TOP409",), id="a record of 15 s ago"),
        pytest.param(BUSY, Policy(), (), id="a record of 15 s ago, where only end offsets count"),
        pytest.param(replace(BUSY, groups=("g",)), A_DAY, ("TOP409", "TOP410"), id="a group too"),
        pytest.param(
            replace(BUSY, groups=("g",)), msgspec.structs.replace(A_DAY, delete_active="allow"), (), id="allowed"
        ),
        pytest.param(
            replace(
                BUSY,
                groups=("g",),
                group_uses={"g": GroupUse(state="Stable", lag=None, type="quorum", unread="its type is not known")},
            ),
            Policy(),
            ("TOP410",),
            id="a group that cannot be read",
        ),
        pytest.param(TopicActivity(end_offsets=None, groups=None), A_DAY, (), id="not known yet: apply asks again"),
    ],
)
def test_the_delete_of_a_topic_in_use_is_blocked(
    activity: TopicActivity, policy: Policy, codes: tuple[str, ...]
) -> None:
    found = deleted_with(activity, policy)
    assert [blocked.codes for blocked in found.blocked] == ([codes] if codes else [])
    assert len(found.changes) == (not codes)


OLD, GROUPS_UNREAD = Releases(Release(2, 2), Release(2, 2)), replace(BUSY, groups=None, last_record_ms=0)
HIDDEN = ActivityOfHiddenGroups(end_offsets={0: 5}, groups=None, last_record_ms=0)


@pytest.mark.parametrize(
    ("activity", "policy", "releases", "reason"),
    [
        pytest.param(
            HIDDEN, Policy(), OLD, "the brokers do not tell, as Kafka's own do since 2.3, whether the", id="groups"
        ),
        pytest.param(HIDDEN, Policy(delete_active="allow"), OLD, None, id="allowed"),
        pytest.param(GROUPS_UNREAD, Policy(), OLD, None, id="not read: apply asks again"),
        pytest.param(
            replace(BUSY, last_record_ms=None), A_DAY, OLD, "it is not known when its last record", id="records"
        ),
        pytest.param(replace(BUSY, last_record_ms=None), Policy(), OLD, None, id="only end offsets count"),
    ],
)
def test_what_old_brokers_do_not_tell_of_a_topic_blocks_its_delete_in_the_plan(
    activity: TopicActivity, policy: Policy, releases: Releases, reason: str | None
) -> None:
    found = deleted_with(activity, policy, releases=releases)

    assert [blocked.reasons[0].startswith(reason or "none") for blocked in found.blocked] == ([True] if reason else [])


def test_a_delete_by_name_is_blocked_or_says_so() -> None:
    at_rest, without_id = TopicActivity(end_offsets={0: 5}, groups=()), live_topic("a", topic_id=None)
    (blocked,) = deleted_with(at_rest, Policy(delete_by_name="refuse"), without_id).blocked
    (change,) = deleted_with(at_rest, Policy(delete_by_name="allow"), without_id).changes
    (by_id,) = deleted_with(at_rest, Policy(delete_by_name="refuse")).changes
    assert blocked.codes == ("TOP429",)
    assert "policy.deleteByName, by default, refuses that" in blocked.reasons[0]
    assert (change.codes, by_id.codes, by_id.notes) == (("TOP429",), (), ())
    assert "Kafka deletes it by name" in change.notes[0]


def test_activity_is_kept_of_topics_to_delete_only() -> None:
    desired, live = desired_of(tombstone("a"), desired_topic("b")), snapshot(live_topic("a"), live_topic("b"))
    delta = diff(map(desired_row, desired.topics.values()), map(live_row, live.topics.values()))
    activity = {name: TopicActivity(end_offsets={1: 6, 0: 5}, groups=("y", "x")) for name in "ab"}
    where = environment(policy=Policy(delete_active="allow"))
    found = plan(desired, live, delta, where, now=NOW, activity=activity, warnings=["no broker answered"])
    assert list(found.activity) == ["a"]
    assert found.activity["a"].groups == ("x", "y")
    assert list((found.activity["a"].end_offsets or {}).items()) == [(0, 5), (1, 6)]
    assert found.warnings == ("no broker answered",)


def test_a_delta_of_other_inputs_is_refused() -> None:
    other = diff([desired_row(desired_topic("strange"))], [])
    with pytest.raises(DiffError, match="strange, which no spec describes"):
        plan(desired_of(), snapshot(), other, environment(), now=NOW)
