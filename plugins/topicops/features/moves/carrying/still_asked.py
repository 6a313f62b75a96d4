"""Whether the files of now still ask for a move that was accepted; what has begun is never stopped because of it."""

from __future__ import annotations

from collections.abc import Mapping

from topicops.features.moves.record import TopicMove
from topicops.model.plans.changes import MoveReason
from topicops.model.runs.results import NO_FILE, OTHER_VALUES, PAUSED_NOW
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.environment import EnvironmentSpec

ASKED_BY_A_FILE = (MoveReason.FACTOR, MoveReason.ASSIGNMENT)
"""Reasons that only the topic's own file can give."""


def still_asked(move: TopicMove, desired: Desired, spec: EnvironmentSpec) -> str:
    """Return the reason why nothing asks for the move any more; empty: the files, or a command, still do."""
    if move.why is MoveReason.DRAIN and move.drained and not set(move.drained) & set(spec.cluster.draining):
        drained = ", ".join(map(str, move.drained))
        return f"cluster.draining no longer has {drained}"
    topic = desired.topics.get(move.topic)
    return _by_environment(move, desired, spec) if topic is None else _by_file(move, topic)


def _by_environment(move: TopicMove, desired: Desired, spec: EnvironmentSpec) -> str:
    """Judge the move of a topic that no file describes."""
    if move.why in ASKED_BY_A_FILE:
        return f"{NO_FILE} {desired.environment}"
    if move.why is MoveReason.DRAIN and spec.policy.drain_unmanaged != "allow":
        return "policy.drainUnmanaged no longer allows it"
    return ""


def _by_file(move: TopicMove, topic: DesiredTopic) -> str:
    if topic.lifecycle is Lifecycle.PAUSED:
        return PAUSED_NOW
    if topic.lifecycle is Lifecycle.ABSENT:
        return "its file deletes the topic"
    targets = {p: found.target for p, found in move.partitions.items()}
    if topic.assignment is not None:
        return "" if _has(topic.assignment, targets) else f"{OTHER_VALUES}: other replicas"
    if move.why is MoveReason.ASSIGNMENT:
        return f"{OTHER_VALUES}: its file gives no replicas any more"
    if any(len(target) != topic.replication_factor for target in targets.values()):
        return f"{OTHER_VALUES}: replicationFactor {topic.replication_factor}"
    return ""


def _has(rows: Mapping[int, tuple[int, ...]], targets: Mapping[int, tuple[int, ...]]) -> bool:
    return all(rows.get(partition) == target for partition, target in targets.items())
