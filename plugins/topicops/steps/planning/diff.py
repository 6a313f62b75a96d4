"""diff: how desired and live topics differ. The plain reference for what Spark computes at scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from topicops.model.errors import DiffError
from topicops.model.plans.delta import Delta, DesiredRow, Field, LiveRow, Presence, TopicClass, TopicDelta, class_of
from topicops.model.specs.desired import Lifecycle

UNTOUCHED = frozenset({TopicClass.SAME, TopicClass.RETIRED})
"""Classes that are only counted."""

Row = TypeVar("Row", DesiredRow, LiveRow)


def diff(desired: Iterable[DesiredRow], live: Iterable[LiveRow]) -> Delta:
    """Compare desired and live topics: a full outer join on the topic's name.

    Raises:
        DiffError: One input lists a topic twice.
    """
    desired_rows, live_rows = _by_topic(desired, name="desired"), _by_topic(live, name="live")
    names = desired_rows.keys() | live_rows.keys()
    delta = delta_of(compare(desired_rows.get(name), live_rows.get(name)) for name in names)
    check_conserved(delta, desired_rows.keys(), live_rows.keys())
    return delta


def compare(desired: DesiredRow | None, live: LiveRow | None) -> TopicDelta:
    """One topic's class, and the fields that differ."""
    row = desired or live
    if row is None:
        raise DiffError("a topic that is neither desired nor live was to be compared")
    changed = changed_fields(desired, live) if desired and live else frozenset()
    topic_class = class_of(desired.lifecycle if desired else None, is_live=live is not None, differs=bool(changed))
    return TopicDelta(
        topic=row.topic,
        presence=_presence(desired, live),
        topic_class=topic_class,
        changed=changed,
        desired=desired,
        live=live,
    )


def changed_fields(desired: DesiredRow, live: LiveRow) -> frozenset[Field]:
    """Empty for a topic that is paused or must be absent: it is not compared."""
    if desired.lifecycle != Lifecycle.PRESENT:
        return frozenset()
    live_factors = {live.replication_factor_min, live.replication_factor_max}
    differs: dict[Field, bool] = {
        "partitions": desired.partitions != live.partitions,
        "replication_factor": live_factors != {desired.replication_factor},
        "assignment": desired.assignment_digest not in (None, live.assignment_digest),
        "configs": desired.configs != live.configs,
    }
    return frozenset(name for name, is_different in differs.items() if is_different)


def delta_of(rows: Iterable[TopicDelta]) -> Delta:
    """The delta of one row for each topic, in any order; rows of ``UNTOUCHED`` classes are only counted."""
    every = sorted(rows, key=lambda row: row.topic)
    found = Counter(row.topic_class for row in every)
    return Delta(
        topics=tuple(row for row in every if row.topic_class not in UNTOUCHED),
        counts={topic_class: found[topic_class] for topic_class in TopicClass},
    )


def check_conserved(delta: Delta, desired_topics: Iterable[str], live_topics: Iterable[str]) -> None:
    """Check that every desired or live topic is in exactly one class.

    Raises:
        DiffError: The counts do not add up, or a topic is listed twice, or is unknown.
    """
    known = frozenset(desired_topics) | frozenset(live_topics)
    counted = sum(delta.counts.values())
    if counted != len(known):
        raise DiffError(f"{len(known)} distinct topics were compared and {counted} came back; so there is no plan")
    listed = Counter(row.topic for row in delta.topics)
    if odd := sorted(topic for topic, times in listed.items() if times > 1 or topic not in known):
        raise DiffError(f"the comparison lists topics twice, or unknown ones: {', '.join(odd[:5])}")
    if delta.counts != _recounted(delta):
        raise DiffError("the comparison's rows and its counts disagree; so there is no plan")


def _recounted(delta: Delta) -> Mapping[TopicClass, int]:
    found = Counter(row.topic_class for row in delta.topics)
    return {word: delta.counts.get(word, 0) if word in UNTOUCHED else found[word] for word in TopicClass}


def _presence(desired: DesiredRow | None, live: LiveRow | None) -> Presence:
    if desired and live:
        return "both"
    return "desired" if desired else "live"


def _by_topic(rows: Iterable[Row], *, name: str) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in rows:
        if row.topic in found:
            raise DiffError(f"topic {row.topic} is twice in the {name} topics; so there is no plan")
        found[row.topic] = row
    return found
