"""Deletes: one topic a request, in waves, and only after all else succeeded."""

from __future__ import annotations

from collections.abc import Sequence

from topicops.model.cluster.snapshot import TopicTraces
from topicops.model.plans.changes import Change
from topicops.model.plans.plan import GatedChange
from topicops.model.runs.results import IN_PLACE
from topicops.model.waits import waiting_for
from topicops.steps.applying.ledger import Ledger
from topicops.steps.applying.read_back import growing_waits
from topicops.steps.applying.sending import Sender, StopError

FIRST_WAIT_S = 0.04
"""The deletes of a few small topics are over within a few of these."""
MOST_DELETES_AT_ONCE = 8
"""A delete makes each broker walk all its fetches and checkpoints; some share the walk, more would gain nothing."""


def run_deletes(deletes: Sequence[GatedChange], sender: Sender, *, limit_s: float) -> None:
    """Delete in waves; each begins only when nothing is left of the topics of the wave before.

    The first wave is one topic, which shows that this cluster gets rid of topics at all; each further one is twice as
    large as the one before.

    Args:
        limit_s: How long the topics of one wave may take to go.
    """
    at_once = 1
    while deletes:
        wave, deletes = deletes[:at_once], deletes[at_once:]
        _stop_after_failure(sender.ledger)
        if len(wave) > 1:
            sender.ask_before_deletes(wave)  # in one question, and not one for each
        for gated in wave:
            sender.send_until_decided([gated])
        going = [gated.change for gated in wave if sender.ledger.outcomes[gated.digest].status in IN_PLACE]
        with waiting_for("the end of the deletions that were sent", limit_s=limit_s):
            _wait_until_gone(going, sender, limit_s)
        at_once = min(2 * at_once, MOST_DELETES_AT_ONCE) if going else at_once


def _stop_after_failure(ledger: Ledger) -> None:
    for outcome in ledger.outcomes.values():
        if outcome.action != "delete" and outcome.status not in IN_PLACE:
            failure = f"{outcome.action} of {outcome.topic} ended {outcome.status}"
            raise StopError(f"deletes run only when all before succeeded; {failure}")


def _wait_until_gone(changes: Sequence[Change], sender: Sender, limit_s: float) -> None:
    clock, left = sender.clock, list(changes)
    deadline = clock.now() + limit_s
    for wait in growing_waits(FIRST_WAIT_S, growth=1.1):
        traces = sender.ports.reader.traces([change.topic for change in left]) if left else {}
        left = [change for change in left if not _is_gone(change, traces[change.topic])]
        if not left:
            return
        if clock.now() >= deadline:
            names = ", ".join(change.topic for change in left)
            raise StopError(f"the delete of {names} has not ended after {limit_s:g} s")
        sender.stop_if_interrupted()
        clock.sleep(wait)


def _is_gone(change: Change, traces: TopicTraces) -> bool:
    if traces.is_gone:
        return True
    identity = change.precondition.identity
    # Auto-creation may have brought the name back at once: then the old topic is gone all the same.
    live = traces.live
    return live is not None and identity is not None and live.identity_after(identity) != identity
