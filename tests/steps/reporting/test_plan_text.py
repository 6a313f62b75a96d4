"""A plan is read in ten seconds: what happens, what cannot be undone, why something waits."""

import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from fakes.builders import cluster_state
from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic, plan_of, reassign_topic
from fakes.resting_cluster import RestingCluster
from topicops.model.cluster.broker_defaults import DefaultOnBrokers
from topicops.model.plans.changes import ACTIONS, Change, ExpandTopic, GateWord, MoveReason, ReassignTopic
from topicops.model.plans.plan import (
    Blocked,
    BrokerLoad,
    Drift,
    LoadTable,
    Paused,
    Plan,
    RackLoad,
    Share,
    TopicActivity,
)
from topicops.model.plans.plan_file import plan_from_json, plan_to_json
from topicops.model.printable import printable
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Risk
from topicops.steps.reporting.document import MARKDOWN_LIMIT
from topicops.steps.reporting.plan_document import plan_markdown, plan_text
from topicops.steps.reporting.plan_wording import PARTICIPLES, SIGNS, config_change_text, config_text, summary_line

BLOCKED = Blocked(
    topic="shrunk",
    owner="team-shop",
    codes=("TOP401",),
    reasons=("3 partitions are fewer than the 6 that are live",),
    way_out="set 6 in the spec",
    location=Location("topics/shop/shrunk.yaml", 7),
)


def a_plan() -> Plan:
    cluster = RestingCluster()
    grown = cluster.put_topic("grown", (1, 2), (2, 1))
    tuned = cluster.put_topic("tuned", (1, 2), configs={"segment.ms": "5000"})
    old = cluster.put_topic("old", (1, 2))
    return plan_of(
        create_topic("new", (1, 2), configs={"cleanup.policy": "compact"}),
        expand_topic(grown, (1, 2)),
        configure_topic(tuned, {"retention.ms": "1000", "segment.ms": None}),
        delete_topic(old, reason="replaced by new"),
        gates={"old": GateWord.HELD, "tuned": GateWord.SKIPPED},
        activity={"old": TopicActivity(end_offsets={0: 40, 1: 2}, groups=(), last_record_ms=1_700_000_000_000)},
        blocked=[BLOCKED],
        unmanaged=["x", "y"],
    )


def test_each_change_is_a_sentence_with_its_facts_and_its_place() -> None:
    text = plan_text(a_plan(), verbose=True)

    assert "  + topic.new will be created  (topics/shop/new.yaml:4, team-shop)\n" in text
    assert "      cleanup.policy: compact\n      replicas: 0: 1,2\n" in text
    assert "  ~ topic.grown will be expanded  (topics/shop/grown.yaml:4, team-shop)\n" in text
    assert "      risk: risky, TOP403 expanding a keyed topic\n" in text
    assert "      partitions: 2 -> 3\n      replicas: 2: 1,2\n" in text
    assert "  ~ topic.tuned would be configured, but is skipped" in text
    assert "  - topic.old would be deleted, but is held" in text
    assert "      reason: replaced by new\n" in text
    assert "      traffic: last record of 2023-11-14T22:13:20Z; end offsets add up to 42; groups: none\n" in text
    assert "      cannot be undone: every record of the topic goes\n      held: needs an approval\n" in text


@pytest.mark.parametrize(("count", "entries"), [pytest.param(3, 3, id="few"), pytest.param(41, 1, id="many")])
def test_many_topics_blocked_for_one_reason_are_one_entry_and_the_file_has_all(count: int, entries: int) -> None:
    plan = plan_of(blocked=[BLOCKED, *(replace(BLOCKED, topic=f"t{n:02}", reasons=("down",)) for n in range(count))])

    text, comment = plan_text(plan), plan_markdown(plan)

    assert text.count("TOP401: down") == comment.count("TOP401: down") == entries
    assert text.count("! topic.shrunk is blocked  (topics/shop/shrunk.yaml:7, team-shop)") == 1
    assert plan_text(plan, verbose=True).count("TOP401: down") == count
    assert len(plan_from_json(plan_to_json(plan)).change_set.blocked) == count + 1
    if entries == 1:
        assert "  ! 41 topics are blocked: t00, t01, " in text
        assert "      TOP401: down\n      way out: set 6 in the spec\n" in text
        assert "| 41 topics are blocked: t00, t01, " in comment


MIB = 1 << 20
ENVIRONMENT_FILE = Location("topics/environments/local.yaml", 12, 3)


def moves(*, copied_bytes: int | None = 300 * MIB) -> tuple[ReassignTopic, ...]:
    """Return a topic of one replica that gets three, a drained topic without a file, and another order of replicas."""
    cluster = RestingCluster()
    raised = cluster.put_topic("raised", *[(1,)] * 12)
    offsets = cluster.put_topic("__consumer_offsets", (1, 2), (2, 3))
    turned = cluster.put_topic("turned", (1, 2))
    return (
        reassign_topic(raised, *[(1, 2, 3)] * 12, copied_bytes=copied_bytes),
        reassign_topic(offsets, (1, 2), (2, 1), why=MoveReason.DRAIN, location=ENVIRONMENT_FILE, copied_bytes=20 * MIB),
        reassign_topic(turned, (2, 1), why=MoveReason.BALANCE),
    )


def with_throttle(plan: Plan, throttle: int | None) -> Plan:
    return replace(plan, change_set=replace(plan.change_set, throttle=throttle))


def test_a_reassignment_says_why_what_moves_where_and_how_long_it_takes_at_least() -> None:
    text = plan_text(with_throttle(plan_of(moves()[0]), MIB), verbose=True)

    assert "  ~ topic.raised will be reassigned  (topics/shop/raised.yaml:4, team-shop)\n" in text
    assert (
        "      replicas of 12 partitions move, because its file asks for another replication factor\n"
        "      replication factor: 1 -> 3\n"
        "      replicas added: 12 on broker 2, 12 on broker 3\n"
        "      partition 0: 1 -> 1,2,3\n"
    ) in text
    assert text.count(": 1 -> 1,2,3\n") == 10
    assert "      … and 2 more partitions, all in the plan file\n" in text
    # Broker 1 sends all 300 MiB.
    most = "broker 1 sends most, 300.0MiB, and broker 2 receives most, 150.0MiB"
    assert f"      copies 300.0MiB, in at least 5 min at 1.0MiB/s (apply.throttle); {most}\n" in text
    cancel = "topicops moves --environment local --cancel TOPIC takes a move back until it has ended, and afterwards "
    assert f"cannot be deleted; {cancel}only another move does\n" in text


@pytest.mark.parametrize(
    ("copied_bytes", "throttle", "said"),
    [
        pytest.param(None, MIB, "copies bytes of which the number is not known", id="sizes that are not known"),
        pytest.param(MIB, None, "copies 1.0MiB, without a throttle", id="no throttle"),
        pytest.param(0, MIB, "copies 0B", id="an empty topic"),
    ],
)
def test_a_forecast_says_what_it_does_not_know(copied_bytes: int | None, throttle: int | None, said: str) -> None:
    assert f"      {said}\n" in plan_text(with_throttle(plan_of(moves(copied_bytes=copied_bytes)[0]), throttle))


def test_many_reassignments_say_together_what_they_copy() -> None:
    text = plan_text(with_throttle(plan_of(*moves()), MIB))
    unknown = plan_text(plan_of(*moves(copied_bytes=None)))

    assert "\nthe 2 reassignments copy 320.0MiB, in at least 5 min at 1.0MiB/s (apply.throttle); broker " in text
    assert "\nthe 2 reassignments copy at least 20.0MiB; of raised the number is not known\n" in unknown


def test_another_order_of_replicas_copies_nothing() -> None:
    text = plan_text(plan_of(moves()[2]))

    assert "another preferred leader for 1 partition, because the brokers get equal shares; nothing is copied\n" in text
    assert "copies" not in text
    assert "--cancel" not in text


@pytest.mark.parametrize("verbose", [True, False])
def test_drained_topics_without_a_file_have_a_section_of_their_own(verbose: bool) -> None:
    text, comment = plan_text(plan_of(*moves()), verbose=verbose), plan_markdown(plan_of(*moves()))

    title = "Topics without a file, moved because broker 3 is drained"
    above, below = text.split(f"\n{title}:\n")
    assert "  ~ topic.__consumer_offsets will be reassigned  (topics/environments/local.yaml:12)\n" in below
    assert "__consumer_offsets" not in above
    assert "topic.raised" in above
    first = comment.split(f"#### {title}\n")[0]
    assert "consumer_offsets" not in first
    assert "#### Look at these first" in first


def test_equal_reassignments_are_one_block_whatever_each_copies() -> None:
    cluster = RestingCluster()
    sizes = {"a": MIB, "b": 2 * MIB}
    text = plan_text(
        plan_of(*(reassign_topic(cluster.put_topic(n, (1,)), (1, 2), copied_bytes=sizes[n]) for n in sizes))
    )

    assert "  ~ 2 topics will be reassigned:\n      a, b\n" in text
    assert "      the 2 reassignments copy 3.0MiB, without a throttle\n" in text
    assert "copies" not in text


def test_the_file_keeps_the_throttle_of_a_forecast() -> None:
    plan = with_throttle(plan_of(*moves()), MIB)

    assert plan_from_json(plan_to_json(plan)) == plan


def test_every_replica_list_is_shown_as_it_is_sent_in_columns() -> None:
    rows = [((index % 3) + 1, ((index + 1) % 3) + 1, ((index + 2) % 3) + 1) for index in range(14)]
    lines = plan_text(plan_of(create_topic("wide", *rows)), verbose=True).splitlines()

    start = next(index for index, line in enumerate(lines) if "replicas:" in line)
    assert lines[start : start + 3] == [
        "      replicas: 0: 1,2,3   1: 2,3,1   2: 3,1,2   3: 1,2,3   4: 2,3,1   5: 3,1,2   6: 1,2,3",
        "                7: 2,3,1   8: 3,1,2   9: 1,2,3   10: 2,3,1  11: 3,1,2  12: 1,2,3  13: 2,3,1",
        "",
    ]


def test_beyond_what_anybody_reads_replica_lists_are_counted() -> None:
    plan = plan_of(create_topic("wide", *[(1, 2)] * 300))

    assert "… and 44 more partitions, all in the plan file" in plan_text(plan, verbose=True)
    assert "… and 288 more partitions, all in the plan file" in plan_markdown(plan)


def test_replica_lists_stand_in_the_comment_too() -> None:
    comment = plan_markdown(plan_of(create_topic("new", (1, 2, 3), (2, 3, 1))))

    assert "| partitions: 2<br>replication factor: 3<br>replicas: 0: 1,2,3  1: 2,3,1 |" in comment


@pytest.mark.parametrize(
    ("config", "value", "shown"),
    [
        pytest.param("retention.ms", "604800000", "604800000 (7d)", id="days"),
        pytest.param("retention.ms", "5400000", "5400000 (90m)", id="the largest unit without a rest"),
        pytest.param("segment.ms", "1500", "1500 (1500ms)", id="no unit without a rest"),
        pytest.param("file.delete.delay.ms", "0", "0 (0ms)", id="nothing"),
        pytest.param("retention.ms", "7", "7 (7ms)", id="days that were meant"),
        pytest.param("retention.ms", "-1", "-1 (no limit)", id="without end"),
        pytest.param("delete.retention.ms", "-1", "-1", id="no end that means something"),
        pytest.param("retention.bytes", "1073741824", "1073741824 (1GiB)", id="bytes"),
        pytest.param("retention.bytes", "604800000", "604800000 (604800000B)", id="no shorter in another unit"),
        pytest.param("retention.ms", "9" * 5000, "9" * 5000, id="no number of Kafka's"),
        pytest.param("cleanup.policy", "", '""', id="nothing between the quotes"),
        pytest.param("cleanup.policy", "compact", "compact", id="not a number"),
    ],
)
def test_a_value_has_a_human_form_beside_it_when_that_is_exact(config: str, value: str, shown: str) -> None:
    assert config_text(config, value) == f"{config}: {shown}"
    assert f"      {config}: {shown}\n" in plan_text(plan_of(create_topic("t", (1, 2), configs={config: value})))


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        pytest.param("5000", "9000", "5000 (5s) -> 9000 (9s)", id="two overrides"),
        pytest.param(None, "9000", "604800000 (7d, broker default) -> 9000 (9s, override)", id="a new override"),
        pytest.param("5001", None, "5001 (5001ms, override) -> 604800000 (7d, broker default)", id="an override goes"),
    ],
)
def test_a_broker_default_and_an_override_are_told_apart(before: str | None, after: str | None, shown: str) -> None:
    said = config_change_text("retention.ms", before, after, (DefaultOnBrokers("604800000", ()),))
    assert said == f"retention.ms: {shown}"


def test_each_value_of_brokers_that_differ_names_its_brokers() -> None:
    rows = (DefaultOnBrokers("604800000", (1,)), DefaultOnBrokers("3600000", (2, 3)), DefaultOnBrokers(None, (4,)))
    said = config_change_text("retention.ms", "604800000", None, rows)
    assert said == (
        "retention.ms: 604800000 (7d, override) -> 604800000 (7d, default of broker 1), "
        "3600000 (1h, default of brokers 2, 3), (default of broker 4, not known)"
    )


def test_a_default_that_no_broker_told_is_said_to_be_unknown() -> None:
    said = config_change_text("retention.ms", None, "9000", ())
    assert said == "retention.ms: (broker default, not known) -> 9000 (9s, override)"


def test_a_blocked_topic_stands_with_its_reasons_and_its_way_out() -> None:
    text = plan_text(a_plan())

    assert "  ! topic.shrunk is blocked  (topics/shop/shrunk.yaml:7, team-shop)\n" in text
    assert "      TOP401: 3 partitions are fewer than the 6 that are live\n      way out: set 6 in the spec\n" in text


def test_the_summary_counts_everything() -> None:
    expected = "Plan: 1 to create, 1 to expand, 1 to configure, 1 to delete; 1 blocked, 2 unmanaged, 1 held, 1 skipped."
    assert summary_line(a_plan()) == expected
    assert expected in plan_text(a_plan())


def test_the_summary_counts_reassignments_where_there_are_some() -> None:
    expected = "Plan: 0 to create, 0 to expand, 0 to configure, 3 to reassign, 0 to delete; 0 blocked, 0 unmanaged."
    assert summary_line(plan_of(*moves())) == expected


def test_held_changes_come_with_the_way_to_approve_them() -> None:
    plan = a_plan()
    assert f"1 held: to run them too, apply with --approve {plan.key} (of {plan.fingerprint})\n" in plan_text(plan)


def test_no_approval_is_offered_for_what_none_can_lift() -> None:
    plan = a_plan()
    final = replace(plan, changes=tuple(replace(gated, approvable=False) for gated in plan.changes))
    assert "--approve" not in plan_text(final)
    assert "1 held by a limit that no approval lifts" in plan_text(final)


def test_nothing_to_do_is_said_in_two_words() -> None:
    def of(*, topics: int, unmanaged: int = 0) -> Plan:
        plan = plan_of(unmanaged=[f"t{i}" for i in range(unmanaged)])
        return replace(plan, change_set=replace(plan.change_set, source=replace(plan.change_set.source, topics=topics)))

    assert summary_line(of(topics=1)) == "No changes."
    assert summary_line(of(topics=1, unmanaged=40)) == "No changes. 40 unmanaged."
    nothing = "Nothing was planned: no file describes a topic of this environment. 40 unmanaged."
    assert summary_line(of(topics=0, unmanaged=40)) == nothing


def test_a_plan_with_only_blocked_topics_is_not_without_changes() -> None:
    assert summary_line(plan_of(blocked=[BLOCKED])).startswith("Plan: 0 to create")


def test_what_is_no_change_is_told_beside() -> None:
    place = Location("topics/shop/t.yaml", 4)
    plan = a_plan()
    change_set = replace(
        plan.change_set,
        drift=(Drift(topic="t", owner="team-t", config="segment.ms", value="5", location=place),),
        paused=(Paused(topic="p", reason="migration", until="2030-01-01T00:00:00Z", location=place),),
        warnings=("broker defaults could not be asked",),
    )
    text = plan_text(replace(plan, change_set=change_set))

    assert "drift: t has segment.ms: 5 (5ms), which no spec names; it stays  (topics/shop/t.yaml:4, team-t)\n" in text
    assert "paused: p until 2030-01-01T00:00:00Z: migration  (topics/shop/t.yaml:4)\n" in text
    assert "warning: broker defaults could not be asked\n" in text
    assert "unmanaged: x, y\n" in text


def test_a_cluster_that_lacks_most_of_the_topics_is_told_from_one_that_has_them() -> None:
    new = plan_of(create_topic("a", (1, 2)), create_topic("b", (1, 2)))
    known = replace(new.change_set, cluster=cluster_state(managed_topics=2))
    part = replace(new.change_set, source=replace(new.change_set.source, only="a*"))
    line = (
        "missing: 2 of the 2 described topics are not in this cluster; to keep topics out of local, "
        "write metadata.environments into their files"
    )

    none = replace(new, change_set=replace(new.change_set, cluster=cluster_state(managed_topics=0)))
    assert line in plan_text(none)
    assert line in plan_markdown(none)
    for other in (known, part):
        assert "missing:" not in plan_text(replace(new, change_set=other))


def test_in_markdown_what_cannot_be_undone_comes_first() -> None:
    comment = plan_markdown(a_plan())

    order = ("Look at these first", "** old<br>", "** grown<br>", "Other changes", "** new<br>")
    places = [comment.index(word) for word in order]
    assert places == sorted(places)


def test_a_comment_is_never_too_long_and_says_what_is_left_out() -> None:
    plan = plan_of(*[create_topic(f"topic-{i}", (1, 2), configs={"retention.ms": "1"}) for i in range(2000)])

    comment = plan_markdown(plan)

    assert len(comment) <= MARKDOWN_LIMIT
    left_out = re.search(r"^\*(\d+) changes are left out here; the plan file has all\.\*$", comment, re.MULTILINE)
    assert left_out is not None
    assert int(left_out[1]) + comment.count("**create**") == 2000


def test_a_tombstones_words_cannot_draw_in_a_terminal_or_a_comment() -> None:
    old = RestingCluster().put_topic("old", (1, 2))
    plan = plan_of(delete_topic(old, reason="\x1b[2Jgone\n| a | [x](http://y) <b> @all" + "z" * 70_000))

    text, comment = plan_text(plan), plan_markdown(plan)

    assert "\x1b" not in text + comment
    assert "reason: \\x1b[2Jgone\\n| a |" in text
    assert "[x](" not in comment
    assert "@all" not in comment
    assert "<b>" not in comment
    assert len(comment) < 3000


def test_every_action_has_its_sign_and_its_word() -> None:
    assert set(SIGNS) == set(PARTICIPLES) == set(ACTIONS)


def test_what_cannot_be_undone_is_said_at_the_change_and_at_the_end() -> None:
    text = plan_text(a_plan())

    assert "      cannot be undone: Kafka takes no partition away again\n" in text
    assert "      cannot be undone: every record of the topic goes\n" in text
    assert "\nCannot be undone: expand grown; delete old.\n" in text
    assert "\nCannot be undone: expand grown; delete old.\n" in plan_markdown(a_plan())


def test_a_change_of_configs_says_when_it_cannot_be_undone() -> None:
    live = RestingCluster().put_topic("t", (1, 2))
    change = replace(configure_topic(live, {"retention.ms": "1"}), risk=Risk.DESTRUCTIVE, reversible=False)

    assert "      cannot be undone: records that the new values let go do not come back\n" in plan_text(plan_of(change))


def test_a_plan_that_can_be_undone_does_not_speak_of_it() -> None:
    assert "undone" not in plan_text(plan_of(create_topic("new", (1, 2)))).lower()


def with_load(plan: Plan, load: LoadTable) -> Plan:
    return replace(plan, change_set=replace(plan.change_set, load=load))


def broker_load(broker: int, rack: str | None, replicas: tuple[int, int], leaders: tuple[int, int]) -> BrokerLoad:
    before, after = (Share(replicas=r, leaders=p) for r, p in zip(replicas, leaders, strict=True))
    return BrokerLoad(broker=broker, rack=rack, before=before, after=after)


def test_the_load_of_each_broker_and_rack_is_shown_before_and_after() -> None:
    brokers = (broker_load(1, "a", (10, 12), (5, 5)), broker_load(2, "a", (9, 9), (3, 4)))
    rack = RackLoad(rack="a", brokers=2, before=Share(replicas=19, leaders=8), after=Share(replicas=21, leaders=9))
    other = RackLoad(rack="b", brokers=1, before=Share(replicas=0, leaders=0), after=Share(replicas=0, leaders=0))
    plan = with_load(plan_of(create_topic("new", (1, 2))), LoadTable(brokers=brokers, racks=(rack, other)))

    lines = plan_text(plan, verbose=True).splitlines()
    start = lines.index("  if all of it runs  replicas       leaders")
    assert lines[start - 1] == "Load of brokers and racks:"
    assert lines[start + 1 : start + 5] == [
        "  broker 1, rack a   10 -> 12 (+2)  5",
        "  broker 2, rack a   9              3 -> 4 (+1)",
        "  rack a, 2 brokers  19 -> 21 (+2)  8 -> 9 (+1)",
        "  rack b, 1 broker   0              0",
    ]
    assert "| broker 1, rack a | 10 -> 12 (+2) | 5 |" in plan_markdown(plan)


def test_racks_of_one_broker_each_are_not_said_twice() -> None:
    brokers = (broker_load(1, "a", (1, 2), (1, 1)), broker_load(2, None, (1, 1), (0, 0)))
    rack = RackLoad(rack="a", brokers=1, before=Share(replicas=1, leaders=1), after=Share(replicas=2, leaders=1))
    table = LoadTable(brokers=brokers, racks=(rack,))
    text = plan_text(with_load(plan_of(create_topic("new", (1, 2))), table), verbose=True)

    assert "broker 1, rack a   1 -> 2 (+1)" in text
    assert "broker 2           1" in text
    assert "rack a, 1" not in text


def test_owners_are_plain_words_and_never_a_mention() -> None:
    owned = replace(create_topic("new", (1, 2)), owner="@org/payments")
    comment = plan_markdown(plan_of(owned))

    assert "@&#8203;org/payments" in comment
    assert "@org" not in comment


def test_a_reassignment_comes_as_a_block_to_copy() -> None:
    text = '{"partitions":[],"version":1}'
    plan = plan_of(blocked=[replace(BLOCKED, reassignment=text)])
    comment = plan_markdown(plan)

    assert f"\nshrunk:\n\n```json\n{text}\n```\n" in comment
    assert f"reassignment tool:\n    shrunk: {text}\n" in plan_text(plan)
    long = plan_text(plan_of(blocked=[replace(BLOCKED, reassignment="{" * 5000)]))
    assert "    shrunk: in the plan file, as JSON\n" in long


@pytest.mark.parametrize("text", ["```", "`````", "~~~", "    ", "\n```\n# t"])
def test_nothing_that_a_reassignment_holds_ends_its_block(text: str) -> None:
    comment = plan_markdown(plan_of(blocked=[replace(BLOCKED, reassignment=text)]))

    blocks = [token for token in MarkdownIt("gfm-like").parse(comment) if token.type == "fence"]
    assert [(block.info, block.content) for block in blocks] == [("json", f"{printable(text)}\n")]


# ---- a comment holds 60,000 characters ----


def risky(name: str, notes: int = 0) -> ExpandTopic:
    live = RestingCluster().put_topic(name, (1, 2))
    return replace(expand_topic(live, (1, 2)), notes=("x" * 290,) * notes)


@pytest.mark.parametrize(
    ("changes", "notes", "table"),
    [
        pytest.param(50, 1, "| change | what | risk | gate |", id="with all their facts"),
        pytest.param(50, 9, "| change | owner | risk | gate |", id="in brief"),
        pytest.param(1000, 1, "| change | topics |", id="by name alone"),
    ],
)
def test_risky_changes_are_never_cut_but_told_in_fewer_words(changes: int, notes: int, table: str) -> None:
    names = [f"payments.orders-{index:04}" for index in range(changes)]
    others = [create_topic(f"t{index}", (1, 2)) for index in range(500)]
    plan = plan_of(*others, *[risky(name, notes) for name in names], blocked=[BLOCKED])

    comment = plan_markdown(plan)

    first = comment[comment.index("#### Look at these first") : comment.index("#### Blocked")]
    assert table in first
    assert [name for name in names if name not in first] == []
    assert len(comment) <= MARKDOWN_LIMIT
    assert "left out here" not in first


def test_where_not_even_the_names_fit_the_table_counts_them_all() -> None:
    names = [f"{'x' * 200}-{index:04}" for index in range(600)]
    old = [RestingCluster().put_topic(f"old-{index}", (1, 2)) for index in range(3)]
    plan = plan_of(*map(risky, names), *map(delete_topic, old))

    comment = plan_markdown(plan)

    assert "| **expand** risky: 600 |" in comment
    assert "| **delete** destructive: 3 | old-0, old-1, old-2 |" in comment
    more = re.search(r" and (\d+) more, which only the plan file names", comment)
    assert more is not None
    assert sum(name in comment for name in names) + int(more[1]) == 600
    assert len(comment) <= MARKDOWN_LIMIT


def test_every_section_that_is_cut_keeps_its_heading_and_says_so() -> None:
    blocked = [replace(BLOCKED, topic=f"b{index}", reassignment='{"a":1}' * 50) for index in range(900)]
    comment = plan_markdown(plan_of(*[create_topic(f"t{i}", (1, 2)) for i in range(900)], blocked=blocked))

    assert [line for line in comment.splitlines() if line.startswith("####")] == [
        "#### Blocked",
        "#### Other changes",
        "#### Also",
        "#### For Kafka's reassignment tool",
    ]
    assert "*900 reassignments are left out here; the plan file has all.*" in comment
    assert len(comment) <= MARKDOWN_LIMIT


def mixed(count: int) -> Plan:
    """Every fifth change is a delete or an expansion of a keyed topic; no two others are equal."""
    cluster, changes = RestingCluster(), list[Change]()
    for number in range(count):
        live = cluster.put_topic(f"shop.topic-{number:03}", (1, 2, 3))
        match number % 10:
            case 0:
                changes.append(delete_topic(live, reason="no longer used"))
            case 5:
                changes.append(expand_topic(live, (1, 2, 3)))
            case 1 | 2 | 3:
                changes.append(create_topic(f"shop.new-{number:03}", (1, 2, 3), configs={"retention.ms": f"{number}"}))
            case _:
                changes.append(configure_topic(live, {"retention.ms": f"{number + 604800000}"}))
    return plan_of(*changes)


def creates(count: int) -> Plan:
    return plan_of(
        *(create_topic(f"shop.topic-{n:03}", (1, 2, 3), configs={"retention.ms": "7"}) for n in range(count))
    )


@pytest.mark.parametrize(
    ("plan", "most"),
    [
        pytest.param(mixed(1), 14, id="1"),
        pytest.param(mixed(10), 40, id="10"),
        pytest.param(mixed(40), 60, id="40"),
        pytest.param(creates(60), 40, id="60 equal creates"),
        pytest.param(mixed(114), 60, id="114"),
    ],
)
def test_a_plan_has_few_lines_and_names_each_topic(plan: Plan, most: int) -> None:
    text = plan_text(plan)
    lines = text.splitlines()
    assert len(lines) <= most, text
    assert lines[0].startswith("Plan: ")
    assert lines[0] in lines[-3:]
    assert max(len(line) for line in lines if line.startswith(" ")) <= 240
    names = set(re.findall(r"shop\.[a-z]+-\d+", text))
    assert names == {gated.change.topic for gated in plan.changes}
    whole = plan_text(plan, verbose=True)
    assert all(gated.change.address in whole for gated in plan.changes)


def test_what_is_destructive_comes_first_and_equal_changes_are_one_block() -> None:
    text = plan_text(plan_of(*(gated.change for gated in (*creates(3).changes, *mixed(1).changes))))
    assert text.index("topic.shop.topic-000 will be deleted") < text.index("+ 3 topics will be created:\n")
    block = "      shop.topic-000, shop.topic-001, shop.topic-002\n      partitions: 1\n      replication factor: 3\n"
    assert block in text
    assert "-v shows it" not in text


def test_changes_with_a_line_each_say_what_they_do_and_that_there_is_more() -> None:
    plan = mixed(40)
    lines = plan_text(plan).splitlines()
    deleted = next(line for line in lines if "delete shop.topic-000" in line)
    assert re.fullmatch(
        r"  - delete \S+ partitions: 1; topic id: \S+; reason: no longer used  \[destructive\]", deleted
    )
    assert any(line.startswith("  ~ expand shop.topic-005: partitions: 1 -> 2  [risky, TOP403") for line in lines)
    assert "  + create shop.new-001: partitions: 1; replication factor: 3; retention.ms: 1 (1ms)" in lines
    assert "Not all of each change is shown; -v shows it." in lines
    held = plan_text(replace(plan, changes=tuple(replace(g, gate=GateWord.HELD, reasons=("r",)) for g in plan.changes)))
    assert held.count("  (held)\n") == 40
