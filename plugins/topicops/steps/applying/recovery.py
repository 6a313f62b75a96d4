"""Crash recovery: find out from the cluster what the requests of a run that ended too early have done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topicops.model.cluster.snapshot import TopicTraces
from topicops.model.plans.plan import GatedChange
from topicops.model.ports import LiveReader
from topicops.model.runs.results import Mutation, Outcome, OutcomeStatus
from topicops.steps.applying.precondition import Comparison, Match, compare
from topicops.steps.applying.read_back import UNCLEAR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredIntent:
    """One intent of an earlier run, closed."""

    outcome: Outcome
    mutation: Mutation
    """For the audit log."""
    sentence: str
    """For the report and the terminal."""


def recover_intents(
    intents: Sequence[GatedChange],
    *,
    run: str,
    by: str,
    reader: LiveReader,
) -> tuple[RecoveredIntent, ...]:
    """Close the open intents of ``run``; the run ``by`` reads the topics, and must hold the lease.

    Whether a request that is not in effect may still arrive is not asked of a clock: that of the process that died may
    have been wrong. So it stays unknown.

    Raises ``ClusterError``: then no intent is closed.
    """
    if not intents:
        return ()
    traces = reader.traces([gated.change.topic for gated in intents])
    return tuple(_recovered(gated, traces[gated.change.topic], run, by) for gated in intents)


def _recovered(gated: GatedChange, traces: TopicTraces, run: str, by: str) -> RecoveredIntent:
    change, comparison = gated.change, compare(gated.change, traces)
    found = _found(comparison)
    status = OutcomeStatus.DONE if comparison.match is Match.AFTER else OutcomeStatus.UNKNOWN
    outcome = Outcome.of(gated, status, f"run {by} found: {found}", sent=True)
    sentence = f"run {run} ended before it knew what came of {change.action} {change.topic}: {found}"
    mutation = Mutation(
        change=change,
        digest=outcome.digest,
        requests=1,
        answer=f"none recorded; {outcome.message}",
        status=outcome.status,
        id_before=change.precondition.identity,
        id_after=traces.lasting_identity,
    )
    return RecoveredIntent(outcome=outcome, mutation=mutation, sentence=sentence)


def _found(comparison: Comparison) -> str:
    match comparison.match:
        case Match.AFTER:
            return "it is in effect"
        case Match.BEFORE:
            return (
                "it is not in effect; a request that was on its way when the run ended arrives within "
                f"{UNCLEAR_S:g} s of that, or never"
            )
        case Match.CHANGED:
            return f"the topic is neither as before nor as planned: {'; '.join(comparison.differences)}"
