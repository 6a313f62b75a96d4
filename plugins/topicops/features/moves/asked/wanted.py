"""Which topics are to move, and why they cannot, or only later."""

from __future__ import annotations

from collections.abc import Sequence

from topicops.features.moves.asked.in_sync import min_isr_of_file, min_isr_problem
from topicops.features.moves.asked.obstacles import obstacle, refusal_of
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.codes import Code
from topicops.model.plans.changes import MoveReason
from topicops.model.specs.topic_config import MIN_ISR
from topicops.steps.planning.blocking import Finding, Situation, WantedMove, min_isr_values
from topicops.steps.planning.reassigning import Obstacle, not_moved, reason_of_file, way_to_move, why_not

MOVED_ONLY = frozenset({Code.REPLICATION_FACTOR, Code.MIXED_REPLICATION_FACTOR, Code.ASSIGNMENT_DIFFERS})
"""Codes of what only a move can change; they block the topic's other changes too."""


def wanted_move(situation: Situation) -> WantedMove | None:
    """Return why and when replicas of the topic's live partitions move; None: they stay where they are."""
    why = move_reason(situation)
    if why is None:
        return None
    found = obstacle(situation)
    findings = move_findings(situation, found)
    later = _later(situation, why, findings)
    return WantedMove(
        why=why,
        findings=tuple(finding for finding in findings if not later or finding.code in MOVED_ONLY),
        later=later,
        by_tool=found is not None and found.by_tool,
    )


def move_reason(situation: Situation) -> MoveReason | None:
    """Return why replicas of the topic's live partitions are to move; None: they stay where they are."""
    topic = situation.topic
    if topic is None or situation.moves_out_of_sight:
        return None
    return reason_of_file(situation) or (MoveReason.DRAIN if _is_drained(situation, topic) else None)


def _is_drained(situation: Situation, topic: LiveTopic) -> bool:
    draining = situation.live.draining
    if not draining or situation.is_managed or refusal_of(situation.live, situation.environment):
        return False
    return any(not draining.isdisjoint(row) for row in topic.target_assignment.values())


def move_findings(situation: Situation, found: Obstacle | None) -> tuple[Finding, ...]:
    """Return why replicas that are to move cannot; nothing where they can.

    Args:
        found: What ``obstacle`` gives.
    """
    if found:
        return tuple(not_moved(situation, found)) or (_not_drained(situation, found),)
    problem = min_isr_problem(situation, min_isr_of_file(situation))
    return (problem,) if problem else ()


def _not_drained(situation: Situation, found: Obstacle) -> Finding:
    named = brokers_text(situation.live.draining)
    reason = f"its replicas cannot leave {named} (cluster.draining){why_not(found)}"
    return Finding(found.code, reason, way_to_move(found))


def _later(situation: Situation, why: MoveReason, findings: Sequence[Finding]) -> str:
    """Return why the replicas stay in this run, although other changes of the topic run; empty: they move now."""
    grows, configs = situation.grows, situation.edits.after
    if grows and why is not MoveReason.ASSIGNMENT:
        return "the replicas of the present partitions move in a later run: a topic that moves gets no partitions"
    if not (grows or configs):
        return ""
    if why is MoveReason.DRAIN and findings:
        return f"its replicas stay on {brokers_text(situation.live.draining)}: {findings[0].reason}"
    if MIN_ISR in configs and not findings:
        present = min_isr_values(situation, situation.edits.before[MIN_ISR])
        if min_isr_problem(situation, present):
            return f"its replicas move in a later run, once this value of {MIN_ISR} is live"
    return ""
