"""Crash recovery: find out from the cluster what the requests of a run that ended too early have done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from topicops.model.cluster.snapshot import TopicTraces
from topicops.model.plans.changes import Change
from topicops.model.plans.plan import GatedChange
from topicops.model.ports import LiveReader
from topicops.model.runs.results import Mutation, Outcome, OutcomeStatus
from topicops.steps.applying.precondition import Comparison, Match, compare
from topicops.steps.applying.read_back import UNCLEAR_S

MAY_STILL_ARRIVE = timedelta(seconds=UNCLEAR_S)
"""How long after its intent a request of a process that died may still take effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredIntent:
    """One intent of an earlier run, closed."""

    outcome: Outcome
    mutation: Mutation | None
    """None where the cluster is as before and stays so: then nothing was changed."""
    sentence: str
    """For the report and the terminal."""


def recover_intents(
    intents: Sequence[GatedChange],
    *,
    intended_at: Mapping[str, datetime],
    now: datetime,
    run: str,
    by: str,
    reader: LiveReader,
) -> tuple[RecoveredIntent, ...]:
    """Close the open intents of ``run``; the run ``by`` reads the topics, and must hold the lease.

    Args:
        intended_at: When the journal noted each intent, by digest.

    Raises ``ClusterError``: then no intent is closed.
    """
    if not intents:
        return ()
    traces = reader.traces([gated.change.topic for gated in intents])
    return tuple(
        _recovered(
            gated,
            traces[gated.change.topic],
            run,
            by,
            may_still_arrive=now - intended_at[gated.digest] < MAY_STILL_ARRIVE,
        )
        for gated in intents
    )


def _recovered(
    gated: GatedChange, traces: TopicTraces, run: str, by: str, *, may_still_arrive: bool
) -> RecoveredIntent:
    change, comparison = gated.change, compare(gated.change, traces)
    found = _found(comparison, may_still_arrive=may_still_arrive)
    status = _status(comparison.match, may_still_arrive=may_still_arrive)
    outcome = Outcome.of(gated, status, f"{found}, as run {by} found", sent=True)
    sentence = f"run {run} ended before it knew what came of {change.action} {change.topic}: {found}"
    mutation = None if status is OutcomeStatus.FAILED else _mutation(change, outcome, traces)
    return RecoveredIntent(outcome=outcome, mutation=mutation, sentence=sentence)


def _status(match: Match, *, may_still_arrive: bool) -> OutcomeStatus:
    if match is Match.AFTER:
        return OutcomeStatus.DONE
    return OutcomeStatus.FAILED if match is Match.BEFORE and not may_still_arrive else OutcomeStatus.UNKNOWN


def _found(comparison: Comparison, *, may_still_arrive: bool) -> str:
    match comparison.match:
        case Match.AFTER:
            return "it is in effect"
        case Match.BEFORE if may_still_arrive:
            return "it is not in effect yet, and may still take effect"
        case Match.BEFORE:
            return "it is not in effect"
        case Match.CHANGED:
            return f"the topic is neither as before nor as planned: {'; '.join(comparison.differences)}"


def _mutation(change: Change, outcome: Outcome, traces: TopicTraces) -> Mutation:
    return Mutation(
        change=change,
        digest=outcome.digest,
        requests=1,
        answer=f"none recorded; {outcome.message}",
        status=outcome.status,
        id_before=change.precondition.identity,
        id_after=traces.lasting_identity,
    )
