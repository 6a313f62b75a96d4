"""Drift of topics that are being deleted; what else differs is tested with the command."""

from __future__ import annotations

from dataclasses import replace

from fakes.builders import desired_of, desired_topic, environment, live_topic, paused_topic, snapshot, tombstone
from fixtures.planning import plan_of
from topicops.steps.planning.diff import drift, drift_lines, drift_summary


def test_a_topic_that_is_being_deleted_has_its_own_word_and_no_other_difference() -> None:
    names = ("same", "differs", "unmanaged", "retired", "paused", "__protected")
    live = snapshot(*(live_topic(name) for name in names), deleting=dict.fromkeys((*names, "znode-is-gone"), 1000))
    desired = desired_of(
        desired_topic("same"),
        desired_topic("differs", 12),
        desired_topic("znode-is-gone"),
        tombstone("retired"),
        paused_topic("paused"),
    )

    report = drift(desired, live, environment())

    assert [(entry.topic, entry.kind) for entry in report.drift] == [
        (name, "being deleted") for name in ("differs", "retired", "same", "unmanaged", "znode-is-gone")
    ]
    assert drift_summary(report) == "Drift, in topics: 5 being deleted."
    assert next(drift_lines(report.drift)) == (
        "differs: being deleted: marked for deletion, and not gone yet (topics/shop/differs.yaml:4)"
    )


def test_only_the_topics_that_are_asked_for_are_compared() -> None:
    live = snapshot(live_topic("a"), live_topic("b"), deleting={"a": 1, "b": 1})
    entries = drift(desired_of(desired_topic("a"), desired_topic("b")), live, environment(), only="b").drift
    assert [entry.topic for entry in entries] == ["b"]


def test_where_nothing_was_compared_nothing_is_good() -> None:
    live, one = snapshot(live_topic("a")), desired_of(desired_topic("a"))

    agreed = drift(one, live, environment())
    assert drift_summary(agreed) == "No drift: the cluster agrees with the files of 1 topic."
    assert agreed.compared == 1

    missed = drift(one, live, environment(), only="shop")
    said = "Nothing was compared: no described topic matches shop; a glob is of the whole name."
    assert (missed.compared, drift_summary(missed)) == (0, said)
    empty = drift(desired_of(), snapshot(), environment())
    assert drift_summary(empty) == "Nothing was compared: no file describes a topic of this environment."


def test_an_empty_list_of_throttled_replicas_is_no_override() -> None:
    """Kafka's tools leave it behind, no file may name it and no change takes it away."""
    name = "leader.replication.throttled.replicas"
    for text in ("", " "):
        live = snapshot(live_topic("a", overrides={name: text, "retention.ms": "1000"}))
        spec = desired_of(desired_topic("a", configs={"retention.ms": "1000"}))
        assert drift(spec, live, environment()).drift == ()
        planned = plan_of(spec, live)
        assert (planned.changes, planned.drift) == ((), ())
    throttled = snapshot(live_topic("a", overrides={name: "*", "retention.ms": "1000"}))
    assert [entry.field for entry in drift(spec, throttled, environment()).drift] == [f"configs.{name}"]


def test_the_throttle_of_replicas_that_move_is_no_difference_and_one_that_is_left_over_is() -> None:
    name = "leader.replication.throttled.replicas"
    resting = live_topic("a", overrides={name: "0:1", "retention.ms": "1000"})
    spec = desired_of(desired_topic("a", configs={"retention.ms": "2000"}))
    first = resting.assignment[0]
    moving = replace(
        resting, adding={0: (9,)}, removing={0: first[:1]}, assignment={**resting.assignment, 0: (*first, 9)}
    )
    for topic, fields in ((resting, [f"configs.{name}", "configs.retention.ms"]), (moving, ["configs.retention.ms"])):
        assert [entry.field for entry in drift(spec, snapshot(topic), environment()).drift] == fields
