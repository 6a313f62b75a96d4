"""Send what the plan says and may run, each change only while its topic is still as the plan saw it.

Every change that was to run ends with exactly one outcome, whatever happens on the way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence

from topicops.model.cluster.snapshot import TopicTraces
from topicops.model.errors import ClusterError, TopicopsError, log_error, sentence
from topicops.model.plans.changes import (
    ACTIONS,
    Action,
    Change,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    GateWord,
    ReassignTopic,
)
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.ports import Answer, AnswerKind, ApplyPorts, Begun, Clock, ServerTime
from topicops.model.runs.results import IN_PLACE, NO_FAILURE, Outcome, OutcomeStatus
from topicops.model.specs.environment import EnvironmentSpec
from topicops.model.waits import waiting_for
from topicops.steps.applying.ledger import Ledger
from topicops.steps.applying.precondition import TopicsInUse
from topicops.steps.applying.read_back import growing_waits
from topicops.steps.applying.sending import RETRY_WAITS_S, Disks, Sender, StopError

logger = logging.getLogger(__name__)


def apply(
    plan: Plan,
    ports: ApplyPorts,
    *,
    actions: Collection[Action] = ACTIONS,
    environment: EnvironmentSpec,
    clock: Clock,
    server_time: ServerTime | None = None,
    progress: Callable[[Sequence[Outcome]], None] = lambda _: None,
    unwritten: Callable[[str], None] = lambda _: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> tuple[Outcome, ...]:
    """Give one outcome for each change of ``actions`` that the gate lets run, in the plan's order.

    ``server_time`` is what a server of the cluster told, after the lease was taken; None: none tells its time.
    ``progress`` is called with the outcomes of a request once they are written; ``unwritten`` with the reason why one
    was not, which stands in no outcome if it was the last; ``interrupted`` is asked before each request, once true
    nothing more is sent.

    No ``Exception`` leaves this function, whatever its reason: it ends the run, the outcomes say why.
    """
    to_run = [gated for gated in plan.with_gate(GateWord.RUN) if gated.change.action in actions]
    ledger = Ledger(plan=plan, ports=ports, progress=progress)
    in_use = TopicsInUse(
        plan=plan, questions=ports.questions, environment=environment, clock=clock, server_time=server_time
    )
    disks = Disks(questions=ports.questions, clock=clock)
    sender = Sender(ports=ports, clock=clock, interrupted=interrupted, ledger=ledger, in_use=in_use, disks=disks)
    try:
        _run(to_run, sender, environment)
    except StopError as stop:
        ledger.close(to_run, str(stop))
    except Exception as error:  # noqa: BLE001 - whatever it is, requests may have been sent, and must be reported
        log_error(logger, f"apply stopped environment={plan.target.environment}", error)
        ledger.close(to_run, sentence(error))
    if ledger.problem:
        unwritten(ledger.problem)
    return tuple(ledger.outcomes[gated.digest] for gated in to_run)


def _run(to_run: Sequence[GatedChange], sender: Sender, environment: EnvironmentSpec) -> None:
    growing = [gated for gated in to_run if not isinstance(gated.change, ReassignTopic | DeleteTopic)]
    moves = [gated for gated in to_run if isinstance(gated.change, ReassignTopic)]
    deletes = [gated for gated in to_run if isinstance(gated.change, DeleteTopic)]
    if growing:
        # Decides what needs no request, before the brokers' dry run could mistake it for an error.
        sender.confirm_lease()
        sender.recheck(growing)
        sender.ledger.write()
    if environment.apply.validate_only:
        for batch in batches_in_doubt(sender.ledger.undecided(growing), sender, environment):
            fail_rejected(batch, sender)
    for batch in batches(sender.ledger.undecided(growing), environment):
        sender.send_until_decided(batch)
    begin_moves(moves, sender)
    run_deletes(deletes, sender, limit_s=environment.verify.deletes.total_seconds())


NO_MOVER = "this installation of topicops moves no replicas; move them with Kafka's tool, or install topicops whole"


def begin_moves(moves: Sequence[GatedChange], sender: Sender) -> None:
    """Hand all reassignments to the mover, which makes a first step. It writes their lines of the audit log, too."""
    if not moves:
        return
    sender.stop_if_needed()
    ready, ledger, mover = sender.recheck(moves), sender.ledger, sender.ports.mover
    if mover is None:
        for gated in ready:
            ledger.decide(gated, OutcomeStatus.REFUSED, NO_MOVER)
    ledger.write()
    if mover is None or not ready:
        return
    sender.ports.journal.intend(ready)
    sender.ports.lease.confirm()
    sender.note_handed_over(ready)
    try:
        begun = mover.begin(ready)
    except TopicopsError as error:  # nothing was recorded, so nothing will be sent either
        begun = dict.fromkeys((gated.digest for gated in ready), Begun(OutcomeStatus.FAILED, sentence(error)))
    for gated in ready:
        ledger.decide_begun(gated, begun[gated.digest])
    ledger.write()


def batches(
    gated_changes: Sequence[GatedChange], environment: EnvironmentSpec, *, topics: int | None = None
) -> Iterator[list[GatedChange]]:
    """Split into requests of one kind each, within the environment's topics and partitions a request.

    The order is kept. A change that is larger than the limit goes alone.

    Args:
        topics: The most topics in one request; None means the environment's.
    """
    limits = environment.apply
    batch: list[GatedChange] = []
    partitions = 0
    for gated in gated_changes:
        partitions += new_partitions(gated.change)
        fits = len(batch) < (topics or limits.topics_per_request) and partitions <= limits.partitions_per_request
        if batch and not (fits and batch[0].change.action == gated.change.action):
            yield batch
            batch, partitions = [], new_partitions(gated.change)
        batch.append(gated)
    if batch:
        yield batch


def new_partitions(change: Change) -> int:
    return change.new_partitions if isinstance(change, CreateTopic | ExpandTopic) else 0


MOST_S = 60.0
"""Seconds for which a dry run without an answer is repeated; one that times out takes so long by itself."""


def batches_in_doubt(
    gated_changes: Sequence[GatedChange], sender: Sender, environment: EnvironmentSpec
) -> Iterator[list[GatedChange]]:
    """Yield the batches of which one dry run of many batches has not shown that the brokers accept every change.

    A refusal says little about one change: some brokers refuse a large request as a whole, or answer it late.
    """
    for many in batches(gated_changes, environment, topics=environment.apply.partitions_per_request):
        parts = [*batches(many, environment)]
        sender.stop_if_interrupted()
        if len(parts) == 1 or any(answer.kind is not AnswerKind.ACCEPTED for answer in _answers(many, sender)):
            yield from parts


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
    """Return final answers to the dry run: it changes nothing, so an answer that may pass is asked for again."""
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


FIRST_WAIT_S = 0.04
"""The deletes of a few small topics are over within a few of these."""
MOST_DELETES_AT_ONCE = 64
"""A delete makes each broker walk all its fetches and checkpoints; those that the controller finds at once share it."""
ASKED_AT_ONCE = 8
"""Number of deletes whose topics the brokers are asked about in one question: the last one is sent soon after it."""


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
        for start in range(0, len(wave), ASKED_AT_ONCE):
            asked = wave[start : start + ASKED_AT_ONCE]
            if len(asked) > 1:
                sender.ask_before_deletes(asked)  # in one question, and not one for each
            for gated in asked:
                sender.send_until_decided([gated])
        going = [gated.change for gated in wave if sender.ledger.outcomes[gated.digest].status in IN_PLACE]
        with waiting_for("the end of the deletions that were sent", limit_s=limit_s):
            _wait_until_gone(going, sender, limit_s)
        at_once = min(2 * at_once, MOST_DELETES_AT_ONCE) if going else at_once


def _stop_after_failure(ledger: Ledger) -> None:
    for outcome in ledger.outcomes.values():
        if outcome.action != "delete" and outcome.status not in NO_FAILURE:
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
