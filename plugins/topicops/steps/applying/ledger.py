"""The outcome of each change, in the audit log and in the journal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from topicops.model.codes import Code
from topicops.model.errors import log_error, sentence
from topicops.model.plans.changes import (
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    ReassignTopic,
    audited_request,
)
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.ports import Answer, ApplyPorts, Begun
from topicops.model.printable import printable
from topicops.model.runs.results import Mutation, Outcome, OutcomeStatus

logger = logging.getLogger(__name__)

NOT_READ = "not read"
"""Placeholder for a topic id that could not be read back."""


@dataclass(slots=True)
class SentChange:
    """The requests that were sent for one change, and the answer."""

    id_before: str | None
    answer: Answer
    """The last one."""
    requests: int = 0
    had_no_effect: bool = False
    """Known of all its requests; False also while the last one has no answer, or is still read back."""


@dataclass(slots=True, kw_only=True)
class Ledger:
    """The outcomes of one apply so far; each change gets one, once."""

    plan: Plan
    ports: ApplyPorts
    progress: Callable[[Sequence[Outcome]], None]
    """Takes what was decided at once."""
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """Outcomes by digest."""
    sent: dict[str, SentChange] = field(default_factory=dict)
    """Sent changes by digest."""
    problem: str = ""
    """Reason why outcomes can no longer be written or shown: they are still counted, nothing more is sent."""
    _unwritten: list[tuple[Change, Outcome]] = field(default_factory=list)
    """Decided, and not in the journal yet."""

    def undecided(self, gated_changes: Iterable[GatedChange]) -> list[GatedChange]:
        return [gated for gated in gated_changes if gated.digest not in self.outcomes]

    def was_sent(self, gated: GatedChange) -> bool:
        """Return whether a request for it left this process, whatever its effect."""
        return gated.digest in self.sent and self.sent[gated.digest].requests > 0

    def decide(self, gated: GatedChange, status: OutcomeStatus, message: str = "") -> None:
        """Note the outcome; ``write`` writes it."""
        outcome = Outcome.of(gated, status, message, sent=self.was_sent(gated))
        self.outcomes[gated.digest] = outcome
        self._unwritten.append((gated.change, outcome))

    def decide_begun(self, gated: GatedChange, begun: Begun) -> None:
        """Note what the mover made of a reassignment; ``write`` writes it."""
        if not begun.sent:
            self.sent.pop(gated.digest, None)
        self.decide(gated, begun.status, begun.message)

    def close(self, to_run: Sequence[GatedChange], reason: str) -> None:
        """Give an outcome to each change that has none yet: it was not sent, or not sent again."""
        for gated in self.undecided(to_run):
            sent = self.sent.get(gated.digest)
            if sent is None:
                self.decide(gated, OutcomeStatus.NOT_SENT, reason)
            elif sent.had_no_effect:
                self.decide(gated, OutcomeStatus.FAILED, f"{sent.answer.error}; not sent again: {reason}")
            else:
                advice = f"the request may still take effect ({Code.OUTCOME_UNKNOWN}): verify, then plan again"
                self.decide(gated, OutcomeStatus.UNKNOWN, f"{sent.answer.error or 'accepted'}; {reason}; {advice}")
        self.write()

    def write(self) -> None:
        """Write what was decided, and only then say it. After an error nothing more is sent; outcomes still count."""
        decided, self._unwritten = self._unwritten, []
        for step in (self._record, self._say):
            try:
                step(decided)
            except Exception as error:  # noqa: BLE001 - whatever it is, the outcomes of this run still count
                self.problem = self.problem or sentence(error)
                log_error(logger, f"outcomes={len(decided)} are not written or not said", error)

    def _record(self, decided: Sequence[tuple[Change, Outcome]]) -> None:
        """Write to the audit log first: if that fails, the intent stays open for a later run.

        The mover has written the lines of reassignments, one for each of its requests.
        """
        sent = [pair for pair in decided if pair[1].sent and not isinstance(pair[0], ReassignTopic)]
        if mutations := self._mutations(sent):
            self.ports.audit.append(mutations)
        if decided:
            self.ports.journal.record([outcome for _, outcome in decided])

    def _say(self, decided: Sequence[tuple[Change, Outcome]]) -> None:
        for change, outcome in decided:
            _log(change, outcome)
        if decided:
            self.progress([outcome for _, outcome in decided])

    def _mutations(self, decided: Sequence[tuple[Change, Outcome]]) -> list[Mutation]:
        after = self._identities_after([change for change, _ in decided])
        return [
            Mutation(
                action=outcome.action,
                topic=outcome.topic,
                digest=outcome.digest,
                request=audited_request(change),
                requests=sent.requests,
                answer=sent.answer.error or "accepted",
                status=outcome.status,
                id_before=sent.id_before,
                id_after=after[outcome.topic],
            )
            for change, outcome in decided
            for sent in (self.sent[outcome.digest],)
        ]

    def _identities_after(self, changes: Sequence[Change]) -> Mapping[str, str | None]:
        """Return ids by topic; the id of a new topic is in no answer and must be read."""
        if not changes:
            return {}
        try:
            traces = self.ports.reader.traces([change.topic for change in changes])
        except Exception as error:  # noqa: BLE001 - whatever it is, the audit log gets its lines
            log_error(logger, f"ids of topics={len(changes)} are not read back", error, level=logging.INFO)
            return {change.topic: NOT_READ for change in changes}
        return {topic: found.lasting_identity for topic, found in traces.items()}


def _log(change: Change, outcome: Outcome) -> None:
    if outcome.status is not OutcomeStatus.DONE:
        message = printable(outcome.message)
        logger.info("%s action=%s topic=%s %s", outcome.status, change.action, change.topic, message)
        return
    match change:
        case CreateTopic():
            logger.info("created topic=%s partitions=%d", change.topic, change.partitions)
        case ExpandTopic():
            logger.info("expanded topic=%s from=%d to=%d", change.topic, change.partitions_before, change.partitions)
        case ConfigureTopic():
            logger.info("configured topic=%s configs=%s", change.topic, ",".join(sorted(change.configs)))
        case ReassignTopic():
            logger.info("reassigned topic=%s partitions=%d", change.topic, len(change.assignment))
        case DeleteTopic():
            logger.info("deleted topic=%s topic_id=%s", change.topic, change.topic_id)
        case _:
            assert_never(change)
