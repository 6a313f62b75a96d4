"""Reading topics again after an answer that does not say what a request did."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from topicops.model.cluster.snapshot import TopicTraces
from topicops.model.codes import Code
from topicops.model.errors import ClusterError
from topicops.model.plans.plan import GatedChange
from topicops.model.ports import Answer, AnswerKind, Clock, LiveReader
from topicops.model.printable import printable
from topicops.steps.applying.precondition import Comparison, Match, compare

logger = logging.getLogger(__name__)

UNCLEAR_S = 60.0
"""How long an unclear answer is read back before its outcome is unknown; Kafka's own request timeout."""
ELECTION_S = 10.0
"""How long a request to a former controller is read back before it may be sent to the new one."""
READ_BACK_S: Mapping[AnswerKind, float] = {
    AnswerKind.CONTROLLER_MOVED: ELECTION_S,
    AnswerKind.UNCLEAR: UNCLEAR_S,
}
"""How long the effect of a request is waited for, by the answer to it; after a refusal, as long as readings lag."""
EXISTS = "TOPIC_ALREADY_EXISTS"
"""What brokers answer to a second copy of a create."""
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
        pending = [gated for gated in pending if _may_still_change(comparisons.get(gated.digest))]
        if not pending or clock.now() >= deadline or interrupted():
            break
        clock.sleep(wait)
    return comparisons


def may_have_worked(refusal: Answer, comparison: Comparison | None) -> bool:
    """Whether it may be the answer to a second copy of a request that worked, although the change is not in effect.

    The client may repeat a request by itself. What its first copy created, somebody may have deleted or changed since.
    """
    return comparison is None or refusal.name == EXISTS


def no_effect_message(answer: Answer, comparison: Comparison | None, waited_s: float) -> str:
    """The answer, and what reading the topic again has shown, where the change is not in effect."""
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
    """Seconds to wait between two reads, growing, without end."""
    wait = first_s
    while True:
        yield wait
        wait = min(wait * growth, LONGEST_WAIT_S)


def _may_still_change(comparison: Comparison | None) -> bool:
    return comparison is None or comparison.match is Match.BEFORE


def _comparisons(gated_changes: Sequence[GatedChange], reader: LiveReader) -> dict[str, Comparison]:
    if not gated_changes:
        return {}
    try:
        traces = reader.traces([gated.change.topic for gated in gated_changes])
    except ClusterError as error:
        logger.warning("cannot read back topics=%d: %s", len(gated_changes), printable(str(error)))
        return {}
    found = [(gated, traces[gated.change.topic]) for gated in gated_changes]
    return {gated.digest: compare(gated.change, seen) for gated, seen in found if not _is_unsettled(seen)}


def _is_unsettled(traces: TopicTraces) -> bool:
    """Whether the topic kept changing, or brokers did not agree on it: then this reading says nothing."""
    return traces.live is not None and traces.live.unstable
