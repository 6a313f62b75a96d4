"""The protocol of one request: wait for a controller, read the topics, note the intent, confirm the lease, send.

Nothing waits between the confirmation and the request. After the answer it finds out what the request did.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import TypeVar, assert_never

from topicops.model.cluster.snapshot import Broker, DirectoriesByBroker, TopicTraces
from topicops.model.codes import Code
from topicops.model.errors import ClusterError
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic, ReassignTopic
from topicops.model.plans.plan import GatedChange
from topicops.model.ports import Answer, AnswerKind, ApplyPorts, Clock, ClusterQuestions, TopicAdmin
from topicops.model.runs.results import OutcomeStatus
from topicops.model.waits import waiting_for
from topicops.steps.applying.ledger import Ledger, SentChange
from topicops.steps.applying.precondition import ANSWER_IS_NEW_S, Comparison, Match, TopicsInUse, compare
from topicops.steps.applying.read_back import LONGEST_WAIT_S, READ_BACK_S, may_have_worked, no_effect_message, read_back
from topicops.steps.before_deletes import ASK_AGAIN, delete_doubts, delete_obstacles
from topicops.steps.rack_losses import brokers_needed


@dataclass(slots=True, kw_only=True)
class Disks:
    """The brokers' last answers about their log directories, and about logs of topics to delete."""

    questions: ClusterQuestions | None
    """Questions to the brokers; None means that they cannot be asked, so nothing is known."""
    clock: Clock
    _told: DirectoriesByBroker = field(default_factory=dict)
    _topics: frozenset[str] = frozenset()
    """Topics that the brokers were asked about."""
    _asked_at: float = -inf
    """Time of the question, by ``clock``."""

    def refresh(self, gated_changes: Sequence[GatedChange]) -> None:
        """Ask again before deletes, if the answer is old or about other topics."""
        topics = {
            g.change.topic: range(g.change.partitions) for g in gated_changes if isinstance(g.change, DeleteTopic)
        }
        is_new = self.clock.now() - self._asked_at <= ANSWER_IS_NEW_S and topics.keys() <= self._topics
        if self.questions is None or not topics or is_new:
            return
        self._told, self._topics = self.questions.log_directories(topics), frozenset(topics)
        self._asked_at = self.clock.now()

    def reason(self, change: DeleteTopic, traces: TopicTraces, brokers: Collection[int]) -> str | None:
        """Return why its deletion might never end, and what to do; None if all live brokers can delete its replicas."""
        rows = traces.live.assignment if traces.live else {}
        doubts = ((doubt, ASK_AGAIN) for doubt in delete_doubts(rows, self._told, brokers))
        obstacle = next(chain(delete_obstacles(change.topic, rows, self._told), doubts), None)
        return f"{obstacle[0]} ({Code.FAILED_LOG_DIRECTORY}); {obstacle[1]}, then plan again" if obstacle else None


RETRY_WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Waits before a request that surely did nothing is sent again: time for an election or for a quota to fill up."""
QUOTA_PATIENCE_S = 900.0
"""Seconds for which a quota may delay one request in all, besides the waits above."""

NO_ANSWER = Answer(AnswerKind.UNCLEAR, "no answer")
"""Answer to a request whose real answer is not known yet."""

_C = TypeVar("_C", CreateTopic, ExpandTopic, ConfigureTopic, DeleteTopic)


class StopError(Exception):
    """Nothing more may be sent; the text says why."""


@dataclass(slots=True, kw_only=True)
class Sender:
    """Sends changes through the ports of one apply, and enters their outcomes in the ledger."""

    ports: ApplyPorts
    clock: Clock
    interrupted: Callable[[], bool]
    ledger: Ledger
    in_use: TopicsInUse
    disks: Disks
    _identities: dict[str, str | None] = field(default_factory=dict)
    """Identity of each topic as last read, by digest; None means absent."""
    _resume_at: float = 0.0
    """Time when the brokers' quota lets the next request through, by ``clock``."""

    def send_until_decided(self, batch: Sequence[GatedChange]) -> None:
        """Send the batch as one request, and again what must wait: as long as a quota asks, and a few times more."""
        waits, quota_left_s = iter(RETRY_WAITS_S), QUOTA_PATIENCE_S
        while batch := self._send_once(batch):
            if self.ledger.sent[batch[0].digest].answer.kind is AnswerKind.SEND_ALONE:
                for gated in batch:
                    self.send_until_decided([gated])
                return
            quota_s = max(self.ledger.sent[gated.digest].answer.wait_s for gated in batch)
            wait = quota_s or next(waits, None)
            quota_left_s -= quota_s
            if wait is None or quota_left_s < 0:
                self._give_up(batch)
                return
            self.pause(wait)

    def recheck(self, gated_changes: Sequence[GatedChange]) -> list[GatedChange]:
        """Read each topic again; give the changes that may be sent, decide the others."""
        if not gated_changes:
            return []
        traces = self.ports.reader.traces([gated.change.topic for gated in gated_changes])
        brokers = self.ports.reader.brokers()
        return [gated for gated in gated_changes if self._may_be_sent(gated, traces[gated.change.topic], brokers)]

    def ask_before_deletes(self, gated_changes: Sequence[GatedChange]) -> None:
        """Ask the brokers again what decides about deletes, where their answer is old."""
        self.in_use.refresh(gated_changes)
        self.disks.refresh(gated_changes)

    def confirm_lease(self) -> None:
        """Raise ``StopError`` or ``LeaseLostError`` unless requests may be sent now."""
        self.stop_if_needed()
        self.ports.lease.confirm()

    def pause(self, seconds: float) -> None:
        """Sleep, in steps that an interrupt ends."""
        end = self.clock.now() + seconds
        with waiting_for("the time to send again", limit_s=seconds):
            while (left := end - self.clock.now()) > 0:
                self.stop_if_interrupted()
                self.clock.sleep(min(left, LONGEST_WAIT_S))

    def stop_if_interrupted(self) -> None:
        if self.interrupted():
            raise StopError("interrupted before it was sent; run again to go on")

    def stop_if_needed(self) -> None:
        """Raise ``StopError`` after an interrupt, or where an outcome could not be written."""
        self.stop_if_interrupted()
        if self.ledger.problem:
            raise StopError(self.ledger.problem)

    def _send_once(self, batch: Sequence[GatedChange]) -> list[GatedChange]:
        """Send those of the batch that still may be sent; give those that have to wait, the others are decided."""
        self.pause(self._resume_at - self.clock.now())
        self.stop_if_needed()
        # All waits come before the topics are read and the lease is confirmed: a new topic may have the name after one.
        self.ports.admin.get_ready(batch[0].change)
        self.ask_before_deletes(batch)
        ready = self.recheck(batch)
        self.ledger.write()
        if not ready:
            return []
        self.ports.journal.intend(ready)
        # Last of all: a process that was paused on the way here must not send.
        self.ports.lease.confirm()
        self._decide_by_answers(list(zip(ready, self._answers(ready), strict=True)))
        waiting = self.ledger.undecided(ready)
        for gated in waiting:
            self.ledger.sent[gated.digest].had_no_effect = True
        return waiting

    def _may_be_sent(self, gated: GatedChange, traces: TopicTraces, brokers: Mapping[int, Broker]) -> bool:
        comparison = compare(gated.change, traces)
        self._identities[gated.digest] = traces.live.identity if traces.live else None
        if comparison.match is Match.AFTER:
            status = OutcomeStatus.DONE if self.ledger.was_sent(gated) else OutcomeStatus.ALREADY_SO
            self.ledger.decide(gated, status)
            return False
        if reason := self._reason_against(gated.change, comparison, traces, brokers):
            self.ledger.decide(gated, OutcomeStatus.REFUSED, reason)
            return False
        return True

    def _reason_against(
        self, change: Change, comparison: Comparison, traces: TopicTraces, brokers: Mapping[int, Broker]
    ) -> str | None:
        if comparison.match is Match.CHANGED:
            return comparison.refusal
        # Kafka would take the change all the same.
        if dead := sorted(brokers_needed(traces.live, change) - brokers.keys()):
            return _dead_brokers_message(change, dead)
        if not isinstance(change, DeleteTopic):
            return None
        return self.disks.reason(change, traces, brokers) or self.in_use.reason(change)

    def _answers(self, ready: Sequence[GatedChange]) -> Sequence[Answer]:
        """Send one request of one kind. An error on the way is an unclear answer: the request may have left."""
        self.note_handed_over(ready)
        try:
            return _sent_by_kind([gated.change for gated in ready], self.ports.admin)
        except ClusterError as error:
            return [Answer(AnswerKind.UNCLEAR, str(error))] * len(ready)

    def note_handed_over(self, ready: Sequence[GatedChange]) -> None:
        """Note that a request for each of them may leave this process now."""
        for gated in ready:
            sent = self.ledger.sent.setdefault(gated.digest, SentChange(self._identities[gated.digest], NO_ANSWER))
            sent.answer, sent.had_no_effect = NO_ANSWER, False
            sent.requests += 1

    def _decide_by_answers(self, answers: Sequence[tuple[GatedChange, Answer]]) -> None:
        for gated, answer in answers:
            sent = self.ledger.sent[gated.digest]
            sent.answer = answer
            sent.requests -= not answer.left
            self._resume_at = max(self._resume_at, self.clock.now() + answer.wait_s)
            if answer.kind is AnswerKind.ACCEPTED:
                self.ledger.decide(gated, OutcomeStatus.DONE)
        self.ledger.write()  # reading back the others may take long
        for kind, limit_s in {AnswerKind.FAILED: self.ports.reader.lag_s, **READ_BACK_S}.items():
            self._decide_by_reading([pair for pair in answers if pair[1].kind is kind], limit_s)
            self.ledger.write()

    def _decide_by_reading(self, answers: Sequence[tuple[GatedChange, Answer]], limit_s: float) -> None:
        """Find out whether requests took effect.

        A refusal is read back as well, once: the client may have repeated a request that had already worked. What went
        to a former controller stays undecided while its topic is as before.
        """
        topics, began = [gated for gated, _ in answers], self.clock.now()
        with waiting_for("what became of a request without a clear answer", limit_s=limit_s):
            comparisons = read_back(
                topics, reader=self.ports.reader, clock=self.clock, limit_s=limit_s, interrupted=self.interrupted
            )
        waited_s = round(self.clock.now() - began) if self.interrupted() else limit_s
        for gated, answer in answers:
            comparison = comparisons.get(gated.digest)
            match = comparison.match if comparison else None
            if match is Match.AFTER:
                self.ledger.decide(gated, OutcomeStatus.DONE)
            elif (answer.kind, match) != (AnswerKind.CONTROLLER_MOVED, Match.BEFORE):
                is_known = answer.kind is AnswerKind.FAILED and not may_have_worked(answer, comparison)
                status = OutcomeStatus.FAILED if is_known else OutcomeStatus.UNKNOWN
                self.ledger.decide(gated, status, no_effect_message(answer, comparison, waited_s))

    def _give_up(self, batch: Sequence[GatedChange]) -> None:
        for gated in batch:
            sent = self.ledger.sent[gated.digest]
            message = f"sent {sent.requests} times, last answer {sent.answer.error}; run again later"
            self.ledger.decide(gated, OutcomeStatus.FAILED, message)
        self.ledger.write()


def _sent_by_kind(changes: Sequence[Change], admin: TopicAdmin) -> Sequence[Answer]:
    match changes[0]:
        case CreateTopic():
            return admin.create(_of_kind(CreateTopic, changes))
        case ExpandTopic():
            return admin.expand(_of_kind(ExpandTopic, changes))
        case ConfigureTopic():
            return admin.configure(_of_kind(ConfigureTopic, changes))
        case DeleteTopic():
            return [admin.delete(change) for change in _of_kind(DeleteTopic, changes)]
        case ReassignTopic():
            raise ValueError(f"{changes[0].topic}: a mover sends reassignments")
    assert_never(changes[0])


def _of_kind(kind: type[_C], changes: Sequence[Change]) -> list[_C]:
    return [change for change in changes if isinstance(change, kind)]


def _dead_brokers_message(change: Change, dead: Sequence[int]) -> str:
    names = ", ".join(f"broker {broker}" for broker in dead)
    if isinstance(change, DeleteTopic):
        return f"its replicas are on {names}, not live ({Code.BROKER_DOWN}): start it to delete them, and run again"
    return (
        f"the assignment names {names}, not live ({Code.ASSIGNED_BROKER_DOWN}); start it and run again, or plan again"
    )
