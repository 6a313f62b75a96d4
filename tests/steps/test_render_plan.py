"""A plan is read in ten seconds: what happens, what cannot be undone, why something waits."""

from dataclasses import replace

import pytest

from topicops.model.changes import CHANGE_TYPES, GateWord
from topicops.model.diagnostics import Location
from topicops.model.plan import Blocked, Drift, Paused, Plan, TopicActivity
from topicops.steps.render_plan import MARKDOWN_LIMIT, PARTICIPLES, SIGNS, plan_markdown, plan_text, summary_line
from topicops.testing.changes import configure_topic, create_topic, delete_topic, expand_topic, plan_of
from topicops.testing.fake_cluster import FakeCluster

BLOCKED = Blocked(
    topic="shrunk",
    codes=("TOP401",),
    reasons=("3 partitions are fewer than the 6 that are live",),
    way_out="set 6 in the spec",
    location=Location("topics/shop/shrunk.yaml", 7),
)


def a_plan() -> Plan:
    cluster = FakeCluster()
    grown = cluster.put_topic("grown", (1, 2), (2, 1))
    tuned = cluster.put_topic("tuned", (1, 2), configs={"segment.ms": "5000"})
    old = cluster.put_topic("old", (1, 2))
    return plan_of(
        create_topic("new", (1, 2), configs={"cleanup.policy": "compact"}),
        expand_topic(grown, (1, 2)),
        configure_topic(tuned, {"retention.ms": "1000", "segment.ms": None}),
        delete_topic(old, reason="replaced by new"),
        gates={"old": GateWord.HELD, "tuned": GateWord.DROPPED},
        activity={"old": TopicActivity(end_offsets={0: 40, 1: 2}, groups=())},
        blocked=[BLOCKED],
        unmanaged=["x", "y"],
    )


def test_each_change_is_a_sentence_with_its_facts_and_its_place() -> None:
    text = plan_text(a_plan())

    assert "  + topic.new will be created  (topics/shop/new.yaml:4)\n" in text
    assert "      cleanup.policy: compact\n      replicas: 0: 1,2\n" in text
    assert "  ~ topic.grown will be expanded  (topics/shop/grown.yaml:4)\n      risk: risky TOP403\n" in text
    assert "      partitions: 2 -> 3\n      replicas: 2: 1,2\n" in text
    assert "  ~ topic.tuned would be configured, but is dropped" in text
    assert "      retention.ms: (not set) -> 1000 (1s)\n      segment.ms: 5000 (5s) -> (not set)\n" in text
    assert "  - topic.old would be deleted, but is held" in text
    assert "      reason: replaced by new\n" in text
    assert "      traffic: end offsets add up to 42; groups: none\n" in text
    assert "      held: needs an approval\n" in text


def test_replica_lists_are_shown_as_they_are_sent_wrapped_and_at_most_twelve() -> None:
    rows = [((index % 3) + 1, ((index + 1) % 3) + 1, ((index + 2) % 3) + 1) for index in range(14)]
    lines = plan_text(plan_of(create_topic("wide", *rows))).splitlines()

    start = next(index for index, line in enumerate(lines) if "replicas:" in line)
    assert lines[start : start + 3] == [
        "      replicas: 0: 1,2,3  1: 2,3,1  2: 3,1,2  3: 1,2,3  4: 2,3,1  5: 3,1,2  6: 1,2,3",
        "                7: 2,3,1  8: 3,1,2  9: 1,2,3  10: 2,3,1  11: 3,1,2",
        "      … and 2 more partitions, all in the JSON",
    ]


def test_replica_lists_stand_in_the_comment_too() -> None:
    comment = plan_markdown(plan_of(create_topic("new", (1, 2, 3), (2, 3, 1))))

    assert "partitions: 2<br>replication factor: 3<br>replicas: 0: 1,2,3  1: 2,3,1 |" in comment


@pytest.mark.parametrize(
    ("config", "value", "shown"),
    [
        pytest.param("retention.ms", "604800000", "604800000 (7d)", id="days"),
        pytest.param("retention.ms", "5400000", "5400000 (90m)", id="the largest unit without a rest"),
        pytest.param("segment.ms", "1500", "1500", id="no unit without a rest"),
        pytest.param("file.delete.delay.ms", "0", "0", id="nothing"),
        pytest.param("retention.ms", "-1", "-1", id="without end"),
        pytest.param("retention.bytes", "604800000", "604800000", id="not a duration"),
        pytest.param("cleanup.policy", "compact", "compact", id="not a number"),
    ],
)
def test_a_duration_has_a_human_form_beside_it_when_that_is_exact(config: str, value: str, shown: str) -> None:
    live = FakeCluster().put_topic("t", (1, 2))
    text = plan_text(plan_of(configure_topic(live, {config: value})))

    assert f"      {config}: (not set) -> {shown}\n" in text


def test_a_blocked_topic_stands_with_its_reasons_and_its_way_out() -> None:
    text = plan_text(a_plan())

    assert "  ! topic.shrunk is blocked  (topics/shop/shrunk.yaml:7)\n" in text
    assert "      TOP401: 3 partitions are fewer than the 6 that are live\n      way out: set 6 in the spec\n" in text


def test_the_summary_counts_everything() -> None:
    expected = "Plan: 1 to create, 1 to expand, 1 to configure, 1 to delete; 1 blocked, 2 unmanaged, 1 held, 1 dropped."
    assert summary_line(a_plan()) == expected
    assert expected in plan_text(a_plan())


def test_held_changes_come_with_the_way_to_approve_them() -> None:
    plan = a_plan()
    assert f"1 held: to run them too, apply with --approve {plan.fingerprint}\n" in plan_text(plan)


def test_no_approval_is_offered_for_what_none_can_lift() -> None:
    plan = a_plan()
    final = replace(plan, changes=tuple(replace(gated, in_question=False) for gated in plan.changes))
    assert "--approve" not in plan_text(final)
    assert "1 held by a limit that no approval lifts" in plan_text(final)


def test_nothing_to_do_is_said_in_two_words() -> None:
    assert summary_line(plan_of()) == "No changes."
    assert summary_line(plan_of(unmanaged=[f"t{i}" for i in range(40)])) == "No changes. 40 unmanaged."


def test_a_plan_with_only_blocked_topics_is_not_without_changes() -> None:
    assert summary_line(plan_of(blocked=[BLOCKED])).startswith("Plan: 0 to create")


def test_what_is_no_change_is_told_beside() -> None:
    place = Location("topics/shop/t.yaml", 4)
    plan = a_plan()
    change_set = replace(
        plan.change_set,
        drift=(Drift(topic="t", config="segment.ms", value="5", location=place),),
        paused=(Paused(topic="p", reason="migration", until="2030-01-01T00:00:00Z", location=place),),
        warnings=("broker defaults could not be asked",),
    )
    text = plan_text(replace(plan, change_set=change_set))

    assert "drift: t has segment.ms=5, which no spec names\n" in text
    assert "paused: p until 2030-01-01T00:00:00Z: migration\n" in text
    assert "warning: broker defaults could not be asked\n" in text
    assert "unmanaged: x, y\n" in text


def test_in_markdown_what_cannot_be_undone_comes_first() -> None:
    comment = plan_markdown(a_plan())

    places = [
        comment.index(word) for word in ("Look at these first", "| old |", "| grown |", "Other changes", "| new |")
    ]
    assert places == sorted(places)


def test_a_comment_is_never_too_long_and_says_what_is_left_out() -> None:
    plan = plan_of(*[create_topic(f"topic-{i}", (1, 2), configs={"retention.ms": "1"}) for i in range(2000)])

    comment = plan_markdown(plan)

    assert len(comment) <= MARKDOWN_LIMIT
    assert "more lines are left out here" in comment


def test_a_tombstones_words_cannot_draw_in_a_terminal_or_a_comment() -> None:
    old = FakeCluster().put_topic("old", (1, 2))
    plan = plan_of(delete_topic(old, reason="\x1b[2Jgone\n| a | [x](http://y) <b> @all" + "z" * 70_000))

    text, comment = plan_text(plan), plan_markdown(plan)

    assert "\x1b" not in text + comment
    assert "reason: \\x1b[2Jgone\\n| a |" in text
    assert "[x](" not in comment
    assert "@all" not in comment
    assert "<b>" not in comment
    assert len(comment) < 3000


def test_every_action_has_its_sign_and_its_word() -> None:
    assert set(SIGNS) == set(PARTICIPLES) == set(CHANGE_TYPES)
