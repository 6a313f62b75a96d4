"""Which topics are to move, and why they cannot, or only later."""

from __future__ import annotations

from collections.abc import Sequence

from topicops.features.moves.asked.in_sync import min_isr_of_file, min_isr_problem
from topicops.features.moves.asked.obstacles import Obstacle, by_tool, not_moved, unready
from topicops.features.moves.asked.rows import reason_of_file, reassignment_json, wanted_rows
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.model.plans.changes import MoveReason
from topicops.model.release import ALTER_REASSIGNMENTS, REASSIGNMENTS, REASSIGNMENTS_IN_TOPICS
from topicops.model.specs.environment import Environment
from topicops.model.specs.topic_config import MIN_ISR
from topicops.steps.planning.blocking import Finding, Situation, WantedMove, min_isr_values, moves_command
from topicops.steps.planning.placement.request import Load

MOVED_ONLY = frozenset({Code.REPLICATION_FACTOR, Code.MIXED_REPLICATION_FACTOR, Code.ASSIGNMENT_DIFFERS})
"""Codes of what only a move can change; they block the topic's other changes too."""


def wanted_move(situation: Situation) -> WantedMove | None:
    """Return why and when replicas of the topic's live partitions move; None: they stay where they are."""
    why = move_reason(situation)
    if why is None:
        return None
    findings = move_findings(situation, obstacle(situation))
    later = _later(situation, why, findings)
    return WantedMove(
        why=why, findings=tuple(finding for finding in findings if not later or finding.code in MOVED_ONLY), later=later
    )


def reassignment_of(situation: Situation, load: Load) -> str | None:
    """Return the JSON for Kafka's own tool, where it may do what topicops does not; else None."""
    found = obstacle(situation) if situation.move else None
    rows = wanted_rows(situation, load) if found and found.by_tool else {}
    return reassignment_json(situation.desired.name, rows) if rows else None


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
    reason = f"its replicas cannot leave {named} (cluster.draining){found.clause}"
    return Finding(found.code, reason, found.next_step)


def _later(situation: Situation, why: MoveReason, findings: Sequence[Finding]) -> str:
    """Return why the replicas stay in this run, although other changes of the topic run; empty: they move now."""
    grows, configs = situation.grows, situation.edits.after
    if not (grows or configs):
        return ""
    if grows and why is not MoveReason.ASSIGNMENT:
        return "the replicas of the present partitions move in a later run: a topic that moves gets no partitions"
    if why is MoveReason.DRAIN and findings:
        return f"its replicas stay on {brokers_text(situation.live.draining)}: {findings[0].reason}"
    if MIN_ISR in configs and not findings:
        present = min_isr_values(situation, situation.edits.before[MIN_ISR])
        if min_isr_problem(situation, present):
            return f"its replicas move in a later run, once this value of {MIN_ISR} is live"
    return ""


def obstacle(situation: Situation) -> Obstacle | None:
    """Return what must be done before the replicas of this topic can move; None: nothing."""
    if situation.is_accepted:
        return _accepted(situation)
    return unready(situation) or refusal_of(situation.live, situation.environment)


def _accepted(situation: Situation) -> Obstacle:
    cancel = moves_command(situation.environment.name, cancel=situation.desired.name)
    return Obstacle(
        code=Code.REASSIGNMENT_RUNS,
        reason="its replicas move already, or wait for it, by an approved change",
        way_out=f"wait until they have moved, or take them back with {cancel}",
    )


def refusal_of(live: ClusterSnapshot, environment: Environment) -> Obstacle | None:
    """Return why no replica of any topic is moved in this environment."""
    if environment.spec.policy.reassign == "refuse":
        reason = f"policy.reassign refuses moves ({environment.place_of('policy.reassign')})"
        return by_tool(Code.REPLICATION_FACTOR, reason)
    for ability in (ALTER_REASSIGNMENTS, REASSIGNMENTS):
        brokers = live.missing_requests.get(str(ability), ())
        if brokers and not _runs_old_brokers(live, environment):
            reason = f"{brokers_text(brokers)} do{'es' if len(brokers) == 1 else ''} not offer {ability}"
            way_out = f"ask who runs the brokers for it: Kafka's own brokers offer it since {ability.since}"
            return Obstacle(code=Code.REQUEST_NOT_OFFERED, reason=reason, way_out=way_out)
    if not _runs_old_brokers(live, environment):
        return None
    shown = f"the brokers run Kafka {live.releases.oldest}" if live.releases else "the brokers' release is not known"
    reason = (
        f"{shown}: before {REASSIGNMENTS_IN_TOPICS} only a write under Kafka's ZooKeeper paths could start a move, and "
        "nothing could cancel it"
    )
    return by_tool(Code.OLD_BROKERS, reason)


def _runs_old_brokers(live: ClusterSnapshot, environment: Environment) -> bool:
    """Return whether a broker may be of a release without the requests for moves; what is not proved counts so."""
    if live.releases is not None:
        return live.releases.oldest < REASSIGNMENTS_IN_TOPICS
    is_written = "cluster.kafkaVersion" in environment.locations or live.source == "kafka"
    return not is_written or environment.spec.cluster.release < REASSIGNMENTS_IN_TOPICS
