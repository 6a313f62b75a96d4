"""Replicas given by hand, and whether the file's own numbers agree with them."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.document import Node
from topicops.steps.layers import TopicSource, World
from topicops.steps.shape import Finding
from topicops.steps.written_assignment import read_assignment


def assignments_are_sound(world: World) -> Iterator[Finding]:
    for topic in world.topics:
        found = topic.spec.values.get("assignment")
        if found is None or not isinstance(found.value, Node):
            continue
        assignment, troubles = read_assignment(found.value)
        yield from (Finding(code, topic.file, span, text, remedy) for code, span, text, remedy in troubles)
        if "placement" in topic.spec:
            span = topic.spec.values["placement"].span
            yield Finding("TOP205", topic.file, span, "there is an assignment already", "keep one of the two")
        if assignment:
            yield from _disagreements(topic, "partitions", len(assignment))
            yield from _disagreements(topic, "replicationFactor", len(assignment[0]))


def _disagreements(topic: TopicSource, name: str, assigned: int) -> Iterator[Finding]:
    written = topic.spec.get(name, int)
    if written is not None and written != assigned:
        summary = f"{name} {written}, and the assignment has {assigned}"
        yield Finding("TOP205", topic.file, topic.spec.values[name].span, summary, "leave it out, or correct one")
