"""A plan that is outdated in part: topics whose files changed in git after the plan was made."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from topicops.model.plans.changes import Action, DeleteTopic, GateWord
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.runs.results import Outcome, OutcomeStatus
from topicops.model.specs.desired import Desired, DesiredTopic

REASON = "its file asks for something else than when the plan was made (TOP501); plan again"


def outdated_topics(planned: Desired, desired: Desired) -> frozenset[str]:
    """Topics of which the files now ask for something else than when the plan was made."""
    names = planned.topics.keys() | desired.topics.keys()
    return frozenset(name for name in names if _wanted(planned.topics.get(name)) != _wanted(desired.topics.get(name)))


def refuse_outdated(
    plan: Plan, outdated: Collection[str], actions: Collection[Action]
) -> tuple[Plan, tuple[Outcome, ...]]:
    """Give the plan without the changes of these topics, and an outcome for each of ``actions`` that was to run.

    The gate decides on deletes: it checks that the tombstone still exists. But no delete runs beside a refused change.
    """
    to_run = [gated for gated in plan.with_gate(GateWord.RUN) if gated.change.action in actions]
    outdated_changes = [g for g in to_run if g.change.topic in outdated and not isinstance(g.change, DeleteTopic)]
    if not outdated_changes:
        return plan, ()
    first = outdated_changes[0].change
    rule = f"deletes run only when all before succeeded; {first.action} of {first.topic} ended refused"
    deletes = [gated for gated in to_run if isinstance(gated.change, DeleteTopic)]
    outcomes = [Outcome.of(gated, OutcomeStatus.REFUSED, REASON) for gated in outdated_changes]
    outcomes += [Outcome.of(gated, OutcomeStatus.NOT_SENT, rule) for gated in deletes]
    return replace(plan, changes=tuple(_skipped(plan.changes, [*outdated_changes, *deletes]))), tuple(outcomes)


def _wanted(topic: DesiredTopic | None) -> object:
    """The fields that decide about changes of the topic; its file and its owner do not."""
    if topic is None:
        return None
    size = topic.lifecycle, topic.partitions, topic.replication_factor, topic.assignment
    return size, topic.keyed, topic.placement, topic.rack_aware, dict(topic.configs)


def _skipped(changes: Iterable[GatedChange], out: Collection[GatedChange]) -> Iterable[GatedChange]:
    digests = {gated.digest for gated in out}
    for gated in changes:
        yield replace(gated, gate=GateWord.SKIPPED, reasons=(REASON,)) if gated.digest in digests else gated
