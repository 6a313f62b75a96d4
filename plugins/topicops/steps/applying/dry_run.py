"""The brokers' own judgement of changes, asked before the first request."""

from __future__ import annotations

from collections.abc import Sequence

from topicops.model.errors import ClusterError
from topicops.model.plans.plan import GatedChange
from topicops.model.ports import Answer, AnswerKind
from topicops.model.runs.results import OutcomeStatus
from topicops.steps.applying.sending import RETRY_WAITS_S, Sender

MOST_S = 60.0
"""How long a dry run without an answer is asked for again; one that times out takes so long by itself."""


def fail_rejected(batch: Sequence[GatedChange], sender: Sender) -> None:
    """Decide the changes that the brokers' dry run rejects; nothing is sent for them."""
    sender.stop_if_interrupted()
    answers = _final_answers(batch, sender)
    rejected = {g.digest: a for g, a in zip(batch, answers, strict=True) if a.kind is not AnswerKind.ACCEPTED}
    # Another program may be the reason: then the topic has changed, and that is the better answer.
    for gated in sender.recheck([gated for gated in batch if gated.digest in rejected]):
        message = f"the brokers' dry run answered {rejected[gated.digest].error}; nothing was sent"
        sender.ledger.decide(gated, OutcomeStatus.FAILED, message)
    sender.ledger.write()


def _final_answers(batch: Sequence[GatedChange], sender: Sender) -> list[Answer]:
    """Answers to the dry run; it changes nothing, so that an answer which may pass is asked for again."""
    until = sender.clock.now() + MOST_S
    answers = _answers(batch, sender)
    for wait in RETRY_WAITS_S:
        again = [i for i, a in enumerate(answers) if a.kind not in (AnswerKind.ACCEPTED, AnswerKind.FAILED)]
        if not again or sender.clock.now() >= until:
            break
        sender.pause(wait)
        for index, answer in zip(again, _answers([batch[i] for i in again], sender), strict=True):
            answers[index] = answer
    return answers


def _answers(batch: Sequence[GatedChange], sender: Sender) -> list[Answer]:
    try:
        return list(sender.ports.admin.validate([gated.change for gated in batch]))
    except ClusterError as error:
        return [Answer(AnswerKind.UNCLEAR, str(error))] * len(batch)
