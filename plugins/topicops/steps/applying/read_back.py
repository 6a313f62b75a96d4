"""What became of a request whose answer is not clear: in this run by reading again, after a crash by the journal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from topicops.model.cluster.snapshot import TopicTraces
from topicops.model.codes import Code
from topicops.model.errors import ClusterError
from topicops.model.plans.changes import audited_request
from topicops.model.plans.plan import GatedChange
from topicops.model.ports import Answer, AnswerKind, Clock, LiveReader
from topicops.model.printable import printable
from topicops.model.runs.results import Mutation, Outcome, OutcomeStatus
from topicops.steps.applying.precondition import Comparison, Match, compare

logger = logging.getLogger(__name__)

UNCLEAR_S = 60.0
"""Seconds that an unclear answer is read back before its outcome is unknown; Kafka's own request timeout."""
ELECTION_S = 10.0
"""Seconds that a request to a former controller is read back before it may be sent to the new one."""
READ_BACK_S: Mapping[AnswerKind, float] = {AnswerKind.CONTROLLER_MOVED: ELECTION_S, AnswerKind.UNCLEAR: UNCLEAR_S}
"""Seconds that the effect of a request is waited for, by the answer to it; after a refusal, as long as readings lag."""
EXISTS = "TOPIC_ALREADY_EXISTS"
"""Error of brokers that get a create a second time."""
FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 2.0


def read_back(
    gated_changes: Sequence[GatedChange],
    *,
    reader: LiveReader,
    clock: Clock,
    limit_s: float,
    interrupted: Callable[[], bool] = lambda: False,
) -> dict[str, Comparison]:
    """Compare until every topic has changed or ``limit_s`` is over; by digest, without what could not be read.

    An interrupt ends it after one reading.
    """
    deadline = clock.now() + limit_s
    comparisons: dict[str, Comparison] = {}
    pending = list(gated_changes)
    for wait in growing_waits(FIRST_WAIT_S):
        for gated in pending:
            comparisons.pop(gated.digest, None)  # what an earlier reading showed does not count any more
        comparisons |= _comparisons(pending, reader)
        pending = [g for g in pending if (seen := comparisons.get(g.digest)) is None or seen.match is Match.BEFORE]
        if not pending or clock.now() >= deadline or interrupted():
            break
        clock.sleep(wait)
    return comparisons


def may_have_worked(refusal: Answer, comparison: Comparison | None) -> bool:
    """Return whether it may answer a second copy of a request that worked, although the change is not in effect.

    The client may repeat a request by itself. What its first copy created, somebody may have deleted or changed since.
    """
    return comparison is None or refusal.name == EXISTS


def no_effect_message(answer: Answer, comparison: Comparison | None, waited_s: float) -> str:
    """Return the answer, and what reading the topic again has shown, where the change is not in effect."""
    if answer.kind is AnswerKind.FAILED and may_have_worked(answer, comparison):
        there = "; ".join(comparison.differences) or "there is no such topic" if comparison else "it is not at rest"
        copy = f"an earlier copy of the request may have worked ({Code.OUTCOME_UNKNOWN})"
        return f"{answer.error}; read back: {there}; {copy}: verify, then plan again"
    if comparison is not None and comparison.match is Match.CHANGED:
        return f"{answer.error}; read back: {'; '.join(comparison.differences)}; plan again"
    if answer.kind is AnswerKind.FAILED:
        return answer.error
    seen = "the topic cannot be read at rest" if comparison is None else "the topic is still as before"
    return (
        f"{answer.error}; {waited_s:g} s later {seen}, and the request may still take effect ({Code.OUTCOME_UNKNOWN}); "
        "verify, then plan again"
    )


def growing_waits(first_s: float, *, growth: float = 1.5) -> Iterator[float]:
    """Yield seconds to wait between two reads, growing, without end."""
    wait = first_s
    while True:
        yield wait
        wait = min(wait * growth, LONGEST_WAIT_S)


def _comparisons(gated_changes: Sequence[GatedChange], reader: LiveReader) -> dict[str, Comparison]:
    if not gated_changes:
        return {}
    try:
        traces = reader.traces([gated.change.topic for gated in gated_changes])
    except ClusterError as error:
        logger.warning("cannot read back topics=%d: %s", len(gated_changes), printable(str(error)))
        return {}
    found = [(gated, traces[gated.change.topic]) for gated in gated_changes]
    return {
        gated.digest: compare(gated.change, seen)
        for gated, seen in found
        if not (seen.live is not None and seen.live.unstable)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredIntent:
    """One intent of an earlier run, closed."""

    outcome: Outcome
    mutation: Mutation
    """Mutation for the audit log."""
    sentence: str
    """Sentence for the report and the terminal."""


def recover_intents(
    intents: Sequence[GatedChange], *, run: str, by: str, reader: LiveReader, accepted: Collection[str] = ()
) -> tuple[RecoveredIntent, ...]:
    """Close the open intents of ``run``; the run ``by`` reads the topics, and must hold the lease.

    Whether a request that is not in effect may still arrive is not asked of a clock: that of the process that died may
    have been wrong. So it stays unknown.

    Args:
        accepted: Digests of the reassignments that are recorded, so that later steps carry them on.

    Raises ``ClusterError``: then no intent is closed.
    """
    if not intents:
        return ()
    traces = reader.traces([gated.change.topic for gated in intents])
    return tuple(_recovered(gated, traces[gated.change.topic], run, by, accepted) for gated in intents)


def _recovered(
    gated: GatedChange, traces: TopicTraces, run: str, by: str, accepted: Collection[str]
) -> RecoveredIntent:
    change, comparison = gated.change, compare(gated.change, traces)
    found = _found(comparison)
    status = OutcomeStatus.DONE if comparison.match is Match.AFTER else OutcomeStatus.UNKNOWN
    if gated.digest in accepted:
        status, found = OutcomeStatus.MOVING, "its moves are recorded, and later steps carry them on"
    outcome = Outcome.of(gated, status, f"run {by} found: {found}", sent=True)
    sentence = f"run {run} ended before it knew what came of {change.action} {change.topic}: {found}"
    mutation = Mutation(
        action=change.action,
        topic=change.topic,
        digest=outcome.digest,
        request=audited_request(change),
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
