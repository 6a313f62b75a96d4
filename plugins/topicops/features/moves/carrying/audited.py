"""The line of the audit log for each request of a step, and for each end of a move."""

from __future__ import annotations

from collections.abc import Mapping

from topicops.features.moves.carrying.values import Sent
from topicops.features.moves.record import TopicMove
from topicops.model.runs.results import Mutation, OutcomeStatus

STATUSES: Mapping[str, OutcomeStatus] = {
    "accepted": OutcomeStatus.DONE,
    "done": OutcomeStatus.DONE,
    "cancelled": OutcomeStatus.DONE,
    "dropped": OutcomeStatus.REFUSED,
    "no clear answer": OutcomeStatus.UNKNOWN,
}
"""Statuses by the beginning of the answer; any other answer is a refusal of the brokers."""


def audited(sent: Sent, moves: Mapping[str, TopicMove]) -> Mutation:
    """Say what was sent and answered, and whose move it is for; the rates of a broker are for all moves there."""
    move = moves.get(sent.topic)
    identity = move.identity if move else None
    status = STATUSES.get(sent.answer.partition(":")[0], OutcomeStatus.FAILED)
    if sent.what == "start" and status is OutcomeStatus.DONE:
        status = OutcomeStatus.MOVING
    return Mutation(
        action="reassign",
        topic=sent.topic,
        digest=move.digest if move else "",
        request=_request(sent, move),
        requests=0 if sent.what == "end" else 1,
        answer=sent.answer,
        status=status,
        id_before=identity,
        id_after=identity,
    )


def _request(sent: Sent, move: TopicMove | None) -> dict[str, object]:
    found: dict[str, object] = {"what": sent.what}
    if move:
        found["accepted_by"] = move.run
    if sent.partitions:
        found["partitions"] = list(sent.partitions)
    if sent.broker is not None:
        found["broker"] = sent.broker
    return found | {"before": _values(sent, sent.before), "after": _values(sent, sent.after)}


def _values(sent: Sent, values: Mapping[str, object]) -> dict[str, object]:
    """Return the values; rows by partition as a plan has them."""
    return {"assignment": dict(values)} if sent.what in ("start", "cancel") else dict(values)
