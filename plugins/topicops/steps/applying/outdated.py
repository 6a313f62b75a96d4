"""Files that say something else by now than when the plan was made: hours, and a merge, may lie between the two."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from topicops.model.plans.changes import Action, DeleteTopic, GateWord
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.runs.results import Outcome, OutcomeStatus
from topicops.model.specs.desired import Desired, DesiredTopic

REASON = "its file says something else than when it was planned (TOP501); plan again"


def rewritten_topics(planned: Desired, desired: Desired) -> frozenset[str]:
    """Topics of which the files now ask for something else than when the plan was made."""
    names = planned.topics.keys() | desired.topics.keys()
    return frozenset(name for name in names if _asked(planned.topics.get(name)) != _asked(desired.topics.get(name)))


def refuse_rewritten(
    plan: Plan, rewritten: Collection[str], actions: Collection[Action]
) -> tuple[Plan, tuple[Outcome, ...]]:
    """The plan without the changes of these topics, and an outcome for each of ``actions`` that was to run.

    A delete is left to the gate, which looks whether its tombstone still stands; but none runs beside a refusal.
    """
    to_run = [gated for gated in plan.with_gate(GateWord.RUN) if gated.change.action in actions]
    stale = [g for g in to_run if g.change.topic in rewritten and not isinstance(g.change, DeleteTopic)]
    if not stale:
        return plan, ()
    first = stale[0].change
    rule = f"deletes run only when all before succeeded; {first.action} of {first.topic} ended refused"
    deletes = [gated for gated in to_run if isinstance(gated.change, DeleteTopic)]
    outcomes = [_outcome(gated, OutcomeStatus.REFUSED, REASON) for gated in stale]
    outcomes += [_outcome(gated, OutcomeStatus.NOT_SENT, rule) for gated in deletes]
    return replace(plan, changes=tuple(_skipped(plan.changes, [*stale, *deletes]))), tuple(outcomes)


def _asked(topic: DesiredTopic | None) -> object:
    """What of a topic decides about its changes; where it is written, and for whom, does not."""
    if topic is None:
        return None
    shape = topic.lifecycle, topic.partitions, topic.replication_factor, topic.assignment
    return shape, topic.keyed, topic.placement, topic.rack_aware, dict(topic.configs)


def _skipped(changes: Iterable[GatedChange], out: Collection[GatedChange]) -> Iterable[GatedChange]:
    digests = {gated.digest for gated in out}
    for gated in changes:
        yield replace(gated, gate=GateWord.SKIPPED, reasons=(REASON,)) if gated.digest in digests else gated


def _outcome(gated: GatedChange, status: OutcomeStatus, message: str) -> Outcome:
    change = gated.change
    return Outcome(topic=change.topic, action=change.action, digest=gated.digest, status=status, message=message)
