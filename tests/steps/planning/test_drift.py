"""Drift of topics that are being deleted; what else differs is tested with the command."""

from __future__ import annotations

from topicops.steps.planning.drift import drift
from topicops.steps.reporting.cluster.drift_text import drift_summary, drift_text, drift_values
from topicops.testing.builders import (
    desired_of,
    desired_topic,
    environment,
    live_topic,
    paused_topic,
    snapshot,
    tombstone,
)


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

    entries = drift(desired, live, environment())

    assert [(entry.topic, entry.kind) for entry in entries] == [
        (name, "being deleted") for name in ("differs", "retired", "same", "unmanaged", "znode-is-gone")
    ]
    assert drift_summary(entries) == "Drift, in topics: 5 being deleted."
    assert drift_text(entries).startswith(
        "differs: being deleted: marked for deletion, and not gone yet (topics/shop/differs.yaml:4)\n"
    )
    found = drift_values(entries)["drift"]
    assert {entry["kind"] for entry in found} == {"being deleted"}


def test_only_the_topics_that_are_asked_for_are_compared() -> None:
    live = snapshot(live_topic("a"), live_topic("b"), deleting={"a": 1, "b": 1})
    entries = drift(desired_of(desired_topic("a"), desired_topic("b")), live, environment(), only="b")
    assert [entry.topic for entry in entries] == ["b"]
