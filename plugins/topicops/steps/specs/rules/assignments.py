"""Replicas given by hand, and whether the file's own numbers agree with them."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.codes import Code
from topicops.model.specs.diagnostics import Note
from topicops.model.specs.document import Node
from topicops.steps.specs.assignment_text import read_assignment
from topicops.steps.specs.findings import Finding, note_at
from topicops.steps.specs.layers import EnvironmentView, TopicSource


def assignments_are_sound(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.topics:
        found = topic.spec.values.get("assignment")
        if found is None or not isinstance(found.value, Node):
            continue
        assignment, findings = read_assignment(found.value, topic.file)
        yield from findings
        note = note_at(topic.file, found.key, "the assignment")
        if "placement" in topic.spec:
            span = topic.spec.values["placement"].span
            yield Finding(
                Code.OUT_OF_RANGE, topic.file, span, "there is an assignment already", "keep one of the two", note=note
            )
        if assignment:
            yield from _disagreements(topic, "partitions", len(assignment), note)
            yield from _disagreements(topic, "replicationFactor", len(assignment[0]), note)


def _disagreements(topic: TopicSource, name: str, assigned: int, note: Note) -> Iterator[Finding]:
    written = topic.spec.get(name, int)
    if written is not None and written != assigned:
        summary = f"{name} {written}, and the assignment has {assigned}"
        span = topic.spec.values[name].span
        yield Finding(Code.OUT_OF_RANGE, topic.file, span, summary, "leave it out, or correct one", note=note)
