"""Tombstones and pauses: complete, and not over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from topicops.model.codes import Code
from topicops.steps.specs.fields import Section
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import EnvironmentView, TopicSource

_WARNED_BEFORE = timedelta(days=7)
_FIELDS_OF_THE_OTHER = {"absent": ("until",), "paused": ("notBefore", "topicIds")}


def lifecycles_are_complete(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.topics:
        lifecycle = topic.lifecycle
        if topic.state is not None:
            yield from _missing(topic, lifecycle, topic.state)
            yield from _misplaced(topic, lifecycle, topic.state)
        if topic.state == "paused":
            yield from _ending(topic, lifecycle, view.now)
        if "spec" not in topic.body.values and topic.state != "absent" and not _is_unclear(topic):
            yield Finding(
                Code.MISSING_FIELD, topic.file, topic.body.first, "spec is missing", "only a tombstone has none"
            )


def _is_unclear(topic: TopicSource) -> bool:
    return topic.body.is_unreadable("lifecycle") or topic.body.section("lifecycle").is_unreadable("state")


def _missing(topic: TopicSource, lifecycle: Section, state: str) -> Iterator[Finding]:
    needed = ("reason",) if state == "absent" else ("reason", "until")
    missing = [name for name in needed if name not in lifecycle or lifecycle.get(name, str) == ""]
    if missing:
        what = "a tombstone" if state == "absent" else "a pause"
        summary = f"{what} needs {' and '.join(missing)}"
        yield Finding(
            Code.INCOMPLETE_LIFECYCLE, topic.file, lifecycle.first, summary, "reviewers must see why", topic.label
        )


def _misplaced(topic: TopicSource, lifecycle: Section, state: str) -> Iterator[Finding]:
    if state == "absent" and "spec" in topic.body:
        span = topic.body.values["spec"].key
        yield Finding(
            Code.INCOMPLETE_LIFECYCLE, topic.file, span, "a tombstone has no spec", "delete the block", topic.label
        )
    for name in _FIELDS_OF_THE_OTHER[state]:
        if name in lifecycle:
            yield Finding(
                Code.UNKNOWN_FIELD, topic.file, lifecycle.values[name].key, f"{name} means nothing when {state}"
            )


def _ending(topic: TopicSource, lifecycle: Section, now: datetime) -> Iterator[Finding]:
    until = lifecycle.get("until", datetime)
    if until is None or until > now + _WARNED_BEFORE:
        return
    summary = f"the pause {'is over' if until <= now else 'ends soon'}"
    remedy = "take the pause out, or give it a later end"
    yield Finding(
        Code.INCOMPLETE_LIFECYCLE, topic.file, lifecycle.values["until"].span, summary, remedy, topic.label, warns=True
    )
