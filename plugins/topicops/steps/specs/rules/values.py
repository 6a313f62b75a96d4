"""Values of one topic: its numbers, replicas given by hand, its tombstone or pause."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from topicops.model.codes import Code
from topicops.model.specs.document import Node
from topicops.model.specs.environment import Limits, Policy
from topicops.steps.specs.fields import Section, Value, read_assignment
from topicops.steps.specs.findings import Finding, note_at
from topicops.steps.specs.layers import NUMBERS, EnvironmentView, Setting, TopicSource, assignment_in


def numbers_are_given(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.complete if view.environment is not None else ():
        for name in (name for name in NUMBERS if name not in topic.settings):
            summary = not_given(name)
            remedy = "write it here, in the profile, or in the environment's defaults"
            yield Finding(Code.MISSING_FIELD, topic.source.file, topic.source.spec.first, summary, remedy)


def not_given(name: str) -> str:
    """Return what is wrong where no layer has this field."""
    return f"no layer gives {name}"


def partitions_stay_in_the_limit(view: EnvironmentView) -> Iterator[Finding]:
    limit, place = _limit(view, "limits", "partitionsPerTopic", Limits().partitions_per_topic)
    if limit is None:
        return
    for topic in view.complete:
        setting = topic.settings.get("partitions")
        if setting is not None and (number := setting.number) is not None and number > limit:
            remedy = f"write {limit} or less, or raise limits.partitionsPerTopic; no partition can be taken away later"
            summary = f"{number} partitions, {limit} allowed"
            yield setting.finding(
                Code.MANY_PARTITIONS, summary, remedy, topic=topic.label, against=place, why="the limit"
            )


def replication_is_high_enough(view: EnvironmentView) -> Iterator[Finding]:
    lowest, place = _limit(view, "policy", "minReplicationFactor", Policy().min_replication_factor)
    if lowest is None:
        return
    for topic in view.complete:
        setting = topic.settings.get("replicationFactor")
        if setting is not None and (number := setting.number) is not None and number < lowest:
            summary = f"replication factor {number}, at least {lowest} needed here"
            remedy = "policy.minReplicationFactor is the limit"
            yield setting.finding(Code.FEW_REPLICAS, summary, remedy, topic=topic.label, against=place, why="the limit")


def _limit(view: EnvironmentView, block: str, name: str, default: int) -> tuple[int | None, Setting | None]:
    """Return a limit, None if it is unreadable, and its place in the file, None where that leaves it to the default."""
    section = view.environment_spec.section(block)
    found = section.values.get(name)
    if found is None:
        return default, None
    return section.get(name, int), Setting(found.value, section.file, found.span, found.key)


def assignments_are_sound(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.topics:
        written = topic.spec.values.get("assignment")
        if written is not None and "placement" in topic.spec:
            summary, remedy = "there is an assignment already", "keep one of the two"
            note = note_at(topic.file, written.key, "the assignment")
            yield topic.spec.finding(Code.OUT_OF_RANGE, "placement", summary, remedy, note=note)
        yield from _assignment_problems(topic.spec, written)
        for name in topic.overrides.values:
            override = topic.overrides.section(name)
            yield from _assignment_problems(override, assignment_in(topic, override))


def _assignment_problems(spec: Section, written: Value | None) -> Iterator[Finding]:
    """Judge the numbers in ``spec`` by the assignment that counts there, and an assignment of its own."""
    if written is None or not isinstance(written.value, Node):
        return
    assignment, findings = read_assignment(written.value, spec.file)
    if "assignment" in spec:
        yield from findings
    sizes = zip(NUMBERS, (len(assignment), len(assignment[0])), strict=True) if assignment else ()
    for name, assigned in sizes:
        number = spec.get(name, int)
        if number is not None and number != assigned:
            summary, remedy = f"{name} {number}, and the assignment has {assigned}", "leave it out, or correct one"
            note = note_at(spec.file, written.key, "the assignment")
            yield spec.finding(Code.OUT_OF_RANGE, name, summary, remedy, note=note)


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
        is_clear = not (topic.body.is_unreadable("lifecycle") or lifecycle.is_unreadable("state"))
        if "spec" not in topic.body.values and topic.state != "absent" and is_clear:
            span, remedy = topic.body.first, "only a tombstone has none"
            yield Finding(Code.MISSING_FIELD, topic.file, span, "spec is missing", remedy)


def _missing(topic: TopicSource, lifecycle: Section, state: str) -> Iterator[Finding]:
    needed = ("reason",) if state == "absent" else ("reason", "until")
    missing = [name for name in needed if name not in lifecycle or lifecycle.get(name, str) == ""]
    if missing:
        summary = f"state: {state} needs {' and '.join(missing)}"
        code, added = Code.INCOMPLETE_LIFECYCLE, "".join(f", {name}: …" for name in missing)
        remedy = f"write lifecycle: {{state: {state}{added}}}, so that reviewers see why"
        yield Finding(code, topic.file, lifecycle.first, summary, remedy, topic.label)


def _misplaced(topic: TopicSource, lifecycle: Section, state: str) -> Iterator[Finding]:
    if state == "absent" and "spec" in topic.body:
        code, span, summary = (
            Code.INCOMPLETE_LIFECYCLE,
            topic.body.values["spec"].key,
            "a topic with state: absent has no spec",
        )
        yield Finding(code, topic.file, span, summary, "delete spec, or lifecycle if the topic stays", topic.label)
    for name in (name for name in _FIELDS_OF_THE_OTHER[state] if name in lifecycle):
        span, summary = lifecycle.values[name].key, f"{name} means nothing when {state}"
        yield Finding(Code.UNKNOWN_FIELD, topic.file, span, summary)


def _ending(topic: TopicSource, lifecycle: Section, now: datetime) -> Iterator[Finding]:
    until = lifecycle.get("until", datetime)
    if until is None or until > now + _WARNED_BEFORE:
        return
    summary = f"the pause {'is over' if until <= now else 'ends soon'}"
    remedy = "take the pause out, or give it a later end"
    yield lifecycle.finding(Code.INCOMPLETE_LIFECYCLE, "until", summary, remedy, topic.label, warns=True)
