"""Send what the plan says and may run, each change only while its topic is still as the plan saw it.

Every change that was to run ends with exactly one outcome, whatever happens on the way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar, assert_never

from topicops.model.cluster.snapshot import Broker, TopicTraces
from topicops.model.errors import ClusterError, TopicopsError
from topicops.model.plans.changes import (
    ACTIONS,
    Action,
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    GateWord,
)
from topicops.model.plans.plan import GatedChange, Plan, TopicActivity
from topicops.model.ports import (
    Answer,
    AnswerKind,
    ApplyPorts,
    Clock,
)
from topicops.model.printable import printable
from topicops.model.runs.results import IN_PLACE, Mutation, Outcome, OutcomeStatus
from topicops.model.specs.environment import EnvironmentSpec
from topicops.steps.applying.in_use import activity_reason, was_read
from topicops.steps.applying.precondition import Comparison, Match, compare

logger = logging.getLogger(__name__)

SETTLE_S = 60.0
"""How long an unclear answer is read back before its outcome is unknown; Kafka's own request timeout."""
ELECTION_S = 10.0
"""How long a request to a former controller is read back before it may be sent to the new one."""
RETRY_WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Waits before a request that surely did nothing is sent again: time for an election or for a quota to fill up."""
QUOTA_PATIENCE_S = 900.0
"""How long a quota may delay one request in all, beside the waits above."""
NOT_READ = "not read"
"""Stands for a topic id that could not be read back."""
STOP_CLIENTS = "stop its clients and plan again, or set policy.deleteActive: allow"
LET_THE_READER_LOOK = "see that the brokers answer, and what the reader may do (topicops doctor), then plan again"
"""Not the leave to delete what is in use: nobody knows whether it is."""
FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 2.0
FIRST_WAIT_FOR_DELETE_S = 0.04
"""The deletes of a few small topics are over within a few of these."""
MOST_DELETES_AT_ONCE = 8
"""A delete makes each broker walk all its fetches and checkpoints; some share the walk, more would gain nothing."""
ACTIVITY_IS_NEW_S = 0.5
"""How old an answer about a topic's activity may be when its delete is sent."""

_C = TypeVar("_C", CreateTopic, ExpandTopic, ConfigureTopic, DeleteTopic)


def apply(
    plan: Plan,
    ports: ApplyPorts,
    *,
    actions: Collection[Action] = ACTIONS,
    environment: EnvironmentSpec,
    clock: Clock,
    progress: Callable[[Outcome], None] = lambda _: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> tuple[Outcome, ...]:
    """Give one outcome for each change of ``actions`` that the gate lets run, in the plan's order.

    ``progress`` is called with each outcome as it is decided; ``interrupted`` is asked before each request, once true
    nothing more is sent.

    No error of the cluster, the lease or the journal leaves this function: it ends the run, the outcomes say why.

    """
    to_run = [gated for gated in plan.with_gate(GateWord.RUN) if gated.change.action in actions]
    run = _Run(plan=plan, ports=ports, environment=environment, clock=clock, progress=progress, interrupted=interrupted)
    try:
        run.run_all(to_run)
    except _StopError as stop:
        run.leave_unsent(to_run, str(stop))
    except TopicopsError as error:
        logger.error(  # noqa: TRY400 - the sentence is for everybody, the traceback for whoever asks for DEBUG
            "apply stopped environment=%s: %s",
            plan.target.environment,
            printable(str(error)),
            exc_info=logger.isEnabledFor(logging.DEBUG),
        )
        run.leave_unsent(to_run, str(error))
    return tuple(run.outcomes[gated.digest] for gated in to_run)


class _StopError(Exception):
    """Nothing more may be sent; the text says why."""


@dataclass(slots=True)
class _Sent:
    """What left for one change, and what came back."""

    id_before: str | None
    answer: Answer
    """The last one."""
    requests: int = 0


@dataclass(slots=True, kw_only=True)
class _Run:
    """The ports of one apply, and the outcomes so far by digest."""

    plan: Plan
    ports: ApplyPorts
    environment: EnvironmentSpec
    clock: Clock
    progress: Callable[[Outcome], None]
    interrupted: Callable[[], bool]
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    unwritten: list[Outcome] = field(default_factory=list)
    """Decided, and not in the journal yet."""
    identities: dict[str, str | None] = field(default_factory=dict)
    """What each topic was at its last look, by digest; None: absent."""
    sent: dict[str, _Sent] = field(default_factory=dict)
    """By digest."""
    resume_at: float = 0.0
    """When the brokers' quota lets the next request through, by ``clock``."""
    activity: dict[str, tuple[float, TopicActivity | None]] = field(default_factory=dict)
    """What the brokers told of the topics to delete, and when, by ``clock``; None: nothing."""
    disk_problem: str = ""
    """Why journal or audit log can no longer be written: outcomes are still counted, nothing more is sent."""

    def run_all(self, to_run: Sequence[GatedChange]) -> None:
        growing = [gated for gated in to_run if not isinstance(gated.change, DeleteTopic)]
        self._look_first(growing)
        self._validate(self._undecided(growing))
        for batch in batches(self._undecided(growing), self.environment):
            self._run_batch(batch)
        self._run_deletes([gated for gated in to_run if isinstance(gated.change, DeleteTopic)])

    def leave_unsent(self, to_run: Sequence[GatedChange], reason: str) -> None:
        """Close the account: what has no outcome yet was not sent."""
        for gated in self._undecided(to_run):
            if sent := self.sent.get(gated.digest):
                self._decide(gated, OutcomeStatus.FAILED, f"{sent.answer.error}; not sent again: {reason}")
            else:
                self._decide(gated, OutcomeStatus.NOT_SENT, reason)
        self._write_down()

    # --- before any request -------------------------------------------------------------------------------------

    def _look_first(self, gated_changes: Sequence[GatedChange]) -> None:
        """Decide what needs no request, before the brokers' dry run could mistake it for an error."""
        self._confirm(gated_changes)
        self._ready(gated_changes)
        self._write_down()

    def _validate(self, gated_changes: Sequence[GatedChange]) -> None:
        if not self.environment.apply.validate_only:
            return
        for batch in batches(gated_changes, self.environment):
            self._stop_if_interrupted()
            answers = self._validated(batch)
            rejected = {g.digest: a for g, a in zip(batch, answers, strict=True) if a.kind is not AnswerKind.ACCEPTED}
            # Another hand may be the reason: then the topic moved, and that is the better answer.
            for gated in self._ready([gated for gated in batch if gated.digest in rejected]):
                message = f"the brokers' dry run answered {rejected[gated.digest].error}; nothing was sent"
                self._decide(gated, OutcomeStatus.FAILED, message)
            self._write_down()

    def _validated(self, batch: Sequence[GatedChange]) -> list[Answer]:
        """Ask for a dry run; it changes nothing, so what met a bad moment is asked again."""
        answers = self._dry_run(batch)
        for wait in RETRY_WAITS_S:
            again = [i for i, a in enumerate(answers) if a.kind not in (AnswerKind.ACCEPTED, AnswerKind.FAILED)]
            if not again:
                break
            self._pause(wait)
            for index, answer in zip(again, self._dry_run([batch[i] for i in again]), strict=True):
                answers[index] = answer
        return answers

    def _dry_run(self, batch: Sequence[GatedChange]) -> list[Answer]:
        try:
            return list(self.ports.admin.validate([gated.change for gated in batch]))
        except ClusterError as error:
            return [Answer(AnswerKind.UNCLEAR, str(error))] * len(batch)

    # --- create, expand, configure ------------------------------------------------------------------------------

    def _run_batch(self, batch: Sequence[GatedChange]) -> None:
        self._send_until_decided(batch, self._send_ready)

    def _send_until_decided(
        self, batch: Sequence[GatedChange], send: Callable[[Sequence[GatedChange]], Sequence[GatedChange]]
    ) -> None:
        """Send again what was told to wait, as long as a quota says and a few times besides."""
        waits, quota_left_s = iter(RETRY_WAITS_S), QUOTA_PATIENCE_S
        while batch := send(batch):
            quota_s = max(self.sent[gated.digest].answer.wait_s for gated in batch)
            wait = quota_s or next(waits, None)
            quota_left_s -= quota_s
            if wait is None or quota_left_s < 0:
                self._give_up(batch)
                return
            self._pause(wait)

    def _send_ready(self, batch: Sequence[GatedChange]) -> list[GatedChange]:
        """Send those of the batch that still may go; give those that were told to wait, the others are decided."""
        self._pause(self.resume_at - self.clock.now())
        self._stop_if_it_must()
        ready = self._ready(batch)
        self._write_down()
        if not ready:
            return []
        self.ports.journal.intend(ready)
        # Last of all: a process that was paused on the way here must not send.
        self.ports.lease.confirm()
        self._conclude(list(zip(ready, self._send(ready), strict=True)))
        return self._undecided(ready)

    def _give_up(self, batch: Sequence[GatedChange]) -> None:
        for gated in batch:
            sent = self.sent[gated.digest]
            message = f"sent {sent.requests} times, last answer {sent.answer.error}; run again later"
            self._decide(gated, OutcomeStatus.FAILED, message)
        self._write_down()

    def _pause(self, seconds: float) -> None:
        """Sleep, in steps that an interrupt ends."""
        end = self.clock.now() + seconds
        while (left := end - self.clock.now()) > 0:
            self._stop_if_interrupted()
            self.clock.sleep(min(left, LONGEST_WAIT_S))

    def _confirm(self, about_to: Sequence[GatedChange]) -> None:
        """Stop unless not interrupted and the lease still ours; when there is nothing to send, neither is needed."""
        if not about_to:
            return
        self._stop_if_it_must()
        self.ports.lease.confirm()

    def _stop_if_it_must(self) -> None:
        self._stop_if_interrupted()
        if self.disk_problem:
            raise _StopError(self.disk_problem)

    def _stop_if_interrupted(self) -> None:
        if self.interrupted():
            raise _StopError("interrupted before it was sent; run again to go on")

    def _ready(self, gated_changes: Sequence[GatedChange]) -> list[GatedChange]:
        """Read each topic again; give those that may be sent, decide the others."""
        if not gated_changes:
            return []
        traces = self.ports.reader.traces([gated.change.topic for gated in gated_changes])
        brokers = self.ports.reader.brokers()
        return [gated for gated in gated_changes if self._may_go(gated, traces[gated.change.topic], brokers)]

    def _may_go(self, gated: GatedChange, traces: TopicTraces, brokers: Mapping[int, Broker]) -> bool:
        comparison = compare(gated.change, traces)
        self.identities[gated.digest] = traces.live.identity if traces.live else None
        dead = _dead_brokers(gated.change, traces, brokers)
        if comparison.match is Match.AFTER:
            self._decide(gated, OutcomeStatus.DONE if self._has_left(gated) else OutcomeStatus.ALREADY_SO)
        elif comparison.match is Match.MOVED:
            self._decide(gated, OutcomeStatus.REFUSED, moved_message(comparison))
        elif dead:
            self._decide(gated, OutcomeStatus.REFUSED, _dead_message(gated.change, dead))
        elif isinstance(gated.change, DeleteTopic) and (reason := self._activity_reason(gated.change)):
            self._decide(gated, OutcomeStatus.REFUSED, reason)
        else:
            return True
        return False

    def _send(self, ready: Sequence[GatedChange]) -> Sequence[Answer]:
        """One request of one kind. An error on the way is an unclear answer: the request may have left."""
        for gated in ready:
            no_answer = _Sent(self.identities[gated.digest], Answer(AnswerKind.UNCLEAR, "no answer"))
            self.sent.setdefault(gated.digest, no_answer).requests += 1
        try:
            return self._sent_by_kind([gated.change for gated in ready])
        except ClusterError as error:
            return [Answer(AnswerKind.UNCLEAR, str(error))] * len(ready)

    def _sent_by_kind(self, changes: Sequence[Change]) -> Sequence[Answer]:
        match changes[0]:
            case CreateTopic():
                return self.ports.admin.create(_only(CreateTopic, changes))
            case ExpandTopic():
                return self.ports.admin.expand(_only(ExpandTopic, changes))
            case ConfigureTopic():
                return self.ports.admin.configure(_only(ConfigureTopic, changes))
            case DeleteTopic():
                return [self.ports.admin.delete(change) for change in _only(DeleteTopic, changes)]
        assert_never(changes[0])

    # --- what an answer means -----------------------------------------------------------------------------------

    def _conclude(self, answers: Sequence[tuple[GatedChange, Answer]]) -> None:
        for gated, answer in answers:
            self.sent[gated.digest].answer = answer
            self.sent[gated.digest].requests -= not answer.left
            self.resume_at = max(self.resume_at, self.clock.now() + answer.wait_s)
            if answer.kind is AnswerKind.ACCEPTED:
                self._decide(gated, OutcomeStatus.DONE)
        self._write_down()  # before a long look at the others
        for kind, patience_s in _PATIENCE_S.items():
            self._settle([pair for pair in answers if pair[1].kind is kind], patience_s)
            self._write_down()

    def _settle(self, answers: Sequence[tuple[GatedChange, Answer]], patience_s: float) -> None:
        """Find out by reading whether requests took effect.

        A refusal is read back as well, once: the client may have repeated a request that had already worked. What went
        to a former controller stays undecided while its topic is as before.
        """
        comparisons = self._read_back([gated for gated, _ in answers], patience_s)
        for gated, answer in answers:
            comparison = comparisons.get(gated.digest)
            if comparison is not None and comparison.match is Match.AFTER:
                self._decide(gated, OutcomeStatus.DONE)
                continue
            if answer.kind is AnswerKind.CONTROLLER_MOVED and _is_as_before(comparison):
                continue
            status = OutcomeStatus.FAILED if answer.kind is AnswerKind.FAILED else OutcomeStatus.UNKNOWN
            self._decide(gated, status, _unsettled_message(answer, comparison, patience_s))

    def _read_back(self, gated_changes: Sequence[GatedChange], patience_s: float) -> dict[str, Comparison]:
        """Compare until all are decided or the patience ends; by digest, no entry for what could not be read."""
        deadline = self.clock.now() + patience_s
        comparisons: dict[str, Comparison] = {}
        pending = list(gated_changes)
        for wait in _waits(FIRST_WAIT_S):
            comparisons.update(self._comparisons(pending))
            pending = [gated for gated in pending if not _is_decided(comparisons.get(gated.digest))]
            if not pending or self.clock.now() >= deadline:
                break
            self.clock.sleep(wait)
        return comparisons

    def _comparisons(self, gated_changes: Sequence[GatedChange]) -> dict[str, Comparison]:
        if not gated_changes:
            return {}
        try:
            traces = self.ports.reader.traces([gated.change.topic for gated in gated_changes])
        except ClusterError as error:
            logger.warning("cannot read back topics=%d: %s", len(gated_changes), printable(str(error)))
            return {}
        return {gated.digest: compare(gated.change, traces[gated.change.topic]) for gated in gated_changes}

    # --- delete -------------------------------------------------------------------------------------------------

    def _run_deletes(self, rest: Sequence[GatedChange]) -> None:
        """One topic a request, in waves: the next one only when nothing is left of the topics of this one.

        One goes alone until it has shown that this cluster gets rid of topics at all; each wave after it is twice as
        large as the one before.
        """
        at_once = 1
        while rest:
            wave, rest = rest[:at_once], rest[at_once:]
            self._stop_deletes_after_trouble()
            self._ask_about_activity(wave)
            for gated in wave:
                self._send_until_decided([gated], self._send_delete)
            going = [gated.change for gated in wave if self.outcomes[gated.digest].status in IN_PLACE]
            self._wait_until_gone(going)
            at_once = min(2 * at_once, MOST_DELETES_AT_ONCE) if going else at_once

    def _send_delete(self, batch: Sequence[GatedChange]) -> list[GatedChange]:
        """Like ``_send_ready``, for topics at rest only; that is asked before the last look."""
        self._ask_about_activity([gated for gated in batch if self._activity_is_old(gated.change)])
        return self._send_ready(batch)

    def _stop_deletes_after_trouble(self) -> None:
        for outcome in self.outcomes.values():
            if outcome.action != "delete" and outcome.status not in IN_PLACE:
                trouble = f"{outcome.action} of {outcome.topic} ended {outcome.status}"
                raise _StopError(f"deletes run only when all before succeeded; {trouble}")

    def _ask_about_activity(self, gated_changes: Sequence[GatedChange]) -> None:
        if self.ports.questions is None or self.environment.policy.delete_active == "allow":
            return
        topics = [gated.change.topic for gated in gated_changes]
        asked_at, told = self.clock.now(), self.ports.questions.activity(topics)
        self.activity |= {topic: (asked_at, told.get(topic)) for topic in topics}

    def _activity_is_old(self, change: Change) -> bool:
        asked_at, _ = self.activity.get(change.topic, (-inf, None))
        return self.clock.now() - asked_at > ACTIVITY_IS_NEW_S

    def _activity_reason(self, change: DeleteTopic) -> str | None:
        if self.environment.policy.delete_active == "allow":
            return None
        planned = self.plan.change_set.activity.get(change.topic)
        _, now = self.activity.get(change.topic, (-inf, None))
        reason = activity_reason(planned, now)
        if reason is None:
            return None
        way_out = STOP_CLIENTS if was_read(planned) and was_read(now) else LET_THE_READER_LOOK
        return f"{reason}; {way_out}"

    def _wait_until_gone(self, changes: Sequence[Change]) -> None:
        limit_s = self.environment.verify.deletes.total_seconds()
        deadline, left = self.clock.now() + limit_s, list(changes)
        for wait in _waits(FIRST_WAIT_FOR_DELETE_S, growth=1.1):
            traces = self.ports.reader.traces([change.topic for change in left]) if left else {}
            left = [change for change in left if not _is_out_of_the_way(change, traces[change.topic])]
            if not left:
                return
            if self.clock.now() >= deadline:
                names = ", ".join(change.topic for change in left)
                raise _StopError(f"the delete of {names} has not ended after {limit_s:g} s")
            self._stop_if_interrupted()
            self.clock.sleep(wait)

    # --- the account --------------------------------------------------------------------------------------------

    def _undecided(self, gated_changes: Iterable[GatedChange]) -> list[GatedChange]:
        return [gated for gated in gated_changes if gated.digest not in self.outcomes]

    def _has_left(self, gated: GatedChange) -> bool:
        """Whether a request for it left, with whatever effect."""
        return gated.digest in self.sent and self.sent[gated.digest].requests > 0

    def _decide(self, gated: GatedChange, status: OutcomeStatus, message: str = "") -> None:
        change = gated.change
        outcome = Outcome(
            topic=change.topic,
            action=change.action,
            digest=gated.digest,
            status=status,
            message=message,
            sent=self._has_left(gated),
        )
        self.outcomes[gated.digest] = outcome
        self.unwritten.append(outcome)
        _log(change, outcome)
        self.progress(outcome)

    def _write_down(self) -> None:
        """First the audit log: where that fails, the intent stays open, and a later run finds and enters it."""
        outcomes, self.unwritten = self.unwritten, []
        if not outcomes:
            return
        try:
            if mutations := self._mutations([outcome for outcome in outcomes if outcome.sent]):
                self.ports.audit.append(mutations)
            self.ports.journal.record(outcomes)
        except TopicopsError as error:
            # What was done stays done when it cannot be written down; nothing more is sent.
            self.disk_problem = str(error)

    def _mutations(self, outcomes: Sequence[Outcome]) -> list[Mutation]:
        changes = {gated.digest: gated.change for gated in self.plan.changes}
        after = self._identities_after([changes[outcome.digest] for outcome in outcomes])
        return [
            _mutation(changes[outcome.digest], outcome, self.sent[outcome.digest], after[outcome.topic])
            for outcome in outcomes
        ]

    def _identities_after(self, changes: Sequence[Change]) -> Mapping[str, str | None]:
        """By topic; only a look tells the id of a new one."""
        if not changes:
            return {}
        try:
            traces = self.ports.reader.traces([change.topic for change in changes])
        except ClusterError:
            return {change.topic: NOT_READ for change in changes}
        return {topic: found.lasting_identity for topic, found in traces.items()}


_PATIENCE_S: Mapping[AnswerKind, float] = {
    AnswerKind.FAILED: 0.0,
    AnswerKind.CONTROLLER_MOVED: ELECTION_S,
    AnswerKind.UNCLEAR: SETTLE_S,
}
"""How long the effect of a request is looked for, by the answer to it."""


def batches(gated_changes: Sequence[GatedChange], environment: EnvironmentSpec) -> Iterator[list[GatedChange]]:
    """Split into requests of one kind each, within the environment's topics and partitions a request; order is kept."""
    batch: list[GatedChange] = []
    for gated in gated_changes:
        if batch and not _fits(batch, gated, environment):
            yield batch
            batch = []
        batch.append(gated)
    if batch:
        yield batch


def moved_message(comparison: Comparison) -> str:
    """Old and new value, field by field, and what to do."""
    return f"it moved since the plan (TOP501): {'; '.join(comparison.differences)}; plan again"


def _fits(batch: Sequence[GatedChange], gated: GatedChange, environment: EnvironmentSpec) -> bool:
    limits = environment.apply
    partitions = sum(_partitions_sent(other.change) for other in (*batch, gated))
    same_kind = batch[0].change.action == gated.change.action
    return same_kind and len(batch) < limits.topics_per_request and partitions <= limits.partitions_per_request


def _partitions_sent(change: Change) -> int:
    return len(change.assignment) if isinstance(change, CreateTopic | ExpandTopic) else 0


def _dead_brokers(change: Change, traces: TopicTraces, brokers: Mapping[int, Broker]) -> list[int]:
    """Brokers that the change needs and that are not registered; Kafka would take the change all the same."""
    rows: Iterable[Sequence[int]] = ()
    match change:
        case CreateTopic() | ExpandTopic():
            rows = change.assignment.values()
        case DeleteTopic():
            rows = traces.live.assignment.values() if traces.live else ()
        case ConfigureTopic():
            pass
        case _:
            assert_never(change)
    return sorted({broker for row in rows for broker in row} - brokers.keys())


def _dead_message(change: Change, dead: Sequence[int]) -> str:
    names = ", ".join(f"broker {broker}" for broker in dead)
    if isinstance(change, DeleteTopic):
        return f"{names} with replicas of it not live (TOP421): the deletion would hang; start it, then run again"
    return f"the assignment names {names}, not live (TOP427); start it and run again, or plan again"


def _unsettled_message(answer: Answer, comparison: Comparison | None, patience_s: float) -> str:
    if comparison is not None and comparison.match is Match.MOVED:
        return f"{answer.error}; read back: {'; '.join(comparison.differences)}; plan again"
    if answer.kind is AnswerKind.FAILED:
        return answer.error
    seen = "the topic cannot be read" if comparison is None else "the topic is still as before"
    return (
        f"{answer.error}; {patience_s:g} s later {seen}, and it may yet take effect (TOP505); verify, then plan again"
    )


def _is_out_of_the_way(change: Change, traces: TopicTraces) -> bool:
    if traces.is_gone:
        return True
    identity = change.precondition.identity
    # Auto-creation may have brought the name back at once: then the old topic is gone all the same.
    return traces.live is not None and identity is not None and traces.live.identity != identity


def _is_as_before(comparison: Comparison | None) -> bool:
    return comparison is not None and comparison.match is Match.BEFORE


def _mutation(change: Change, outcome: Outcome, sent: _Sent, id_after: str | None) -> Mutation:
    return Mutation(
        change=change,
        digest=outcome.digest,
        requests=sent.requests,
        answer=sent.answer.error or "accepted",
        status=outcome.status,
        id_before=sent.id_before,
        id_after=id_after,
    )


def _is_decided(comparison: Comparison | None) -> bool:
    return comparison is not None and comparison.match is not Match.BEFORE


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
        case DeleteTopic():
            logger.info("deleted topic=%s topic_id=%s", change.topic, change.topic_id)
        case _:
            assert_never(change)


def _only(kind: type[_C], changes: Sequence[Change]) -> list[_C]:
    return [change for change in changes if isinstance(change, kind)]


def _waits(first_s: float, *, growth: float = 1.5) -> Iterator[float]:
    """Seconds to wait between looks, growing, without end."""
    wait = first_s
    while True:
        yield wait
        wait = min(wait * growth, LONGEST_WAIT_S)
