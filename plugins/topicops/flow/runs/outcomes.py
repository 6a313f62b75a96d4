"""What a run did: its outcomes on disk, and the topic count that its deletes explain."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress

from topicops.edges.home.journal import journal_entries
from topicops.edges.home.memories import keep_topic_count
from topicops.edges.places import Place
from topicops.flow.runs.run import PLAN_FILE, Notes, Run, outcomes_file
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ArtifactError, UnrecordedError, log_error, sentence
from topicops.model.plans.changes import ACTIONS, Action
from topicops.model.plans.plan import GatedChange
from topicops.model.printable import printable
from topicops.model.runs.results import IN_PLACE, Outcome, OutcomeStatus

LOST = "its task ended before it could say what came of it: the next run reads it"
logger = logging.getLogger(__name__)


def kind_of(actions: Collection[Action]) -> str:
    """Return what one task applies, for the names of its files."""
    return "all" if len(actions) == len(ACTIONS) else "-".join(actions)


def outcome_line(outcome: Outcome) -> str:
    """Return ``create payments.orders: done``, with the message where there is one."""
    message = f" ({outcome.message})" if outcome.message else ""
    return printable(f"{outcome.action} {outcome.topic}: {outcome.status}{message}")


def read_outcomes(run: Run, actions: Collection[Action] = ACTIONS) -> tuple[Outcome, ...]:
    """Return what was done so far, in the order in which a plan runs; an action without a file has run nothing yet."""
    return tuple(
        outcome
        for action in ACTIONS
        if action in actions and run.store.has(outcomes_file(action))
        for outcome in run.store.read_value(outcomes_file(action), tuple[Outcome, ...])
    )


def outcomes_so_far(run: Run) -> tuple[Outcome, ...]:
    """Read as ``read_outcomes``, and add what a task sent that ended before it knew the outcome."""
    outcomes = read_outcomes(run)
    known = {outcome.digest for outcome in outcomes}
    lost = [found for found in _in_journals(run) if found.digest not in known]
    if lost and run.store.has(PLAN_FILE):  # a run that was cleared may have another plan by now
        planned = {gated.digest for gated in run.read_plan().changes}
        lost = [found for found in lost if found.digest in planned]
    return (*outcomes, *lost)


def _in_journals(run: Run) -> Iterator[Outcome]:
    newest = {entry.digest: entry for entry in journal_entries(run.store.folder)}
    for entry in newest.values():
        yield Outcome(
            topic=entry.topic,
            action=entry.action,
            digest=entry.digest,
            status=entry.status or OutcomeStatus.UNKNOWN,
            message=entry.message or ("" if entry.status else LOST),
            sent=entry.sent or entry.status is None,
        )


def write_outcomes(run: Run, actions: Collection[Action], outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Write one file for each action, empty if nothing of its kind ran."""
    for action in actions:
        run.store.write_value(outcomes_file(action), tuple(o for o in outcomes if o.action == action))
    return tuple(outcomes)


def count_planned_deletes(home: Place, live: ClusterSnapshot, to_run: Sequence[GatedChange]) -> None:
    """Lower the topic count before the deletes, so that a process that dies right after one calls no world shrunken."""
    going = {gated.change.topic for gated in to_run if gated.change.action == "delete"} & live.topics.keys()
    if going:
        keep_topic_count(home, live.cluster_id, len(live.topics) - len(going))


def count_applied_deletes(home: Place, live: ClusterSnapshot, outcomes: Sequence[Outcome]) -> None:
    """Count topics again that were to go and stayed; a delete that may yet take effect keeps its topic uncounted."""
    deletes = [outcome for outcome in outcomes if outcome.action == "delete"]
    gone = {o.topic for o in deletes if o.status in (*IN_PLACE, OutcomeStatus.UNKNOWN)} & live.topics.keys()
    if deletes:
        keep_topic_count(home, live.cluster_id, len(live.topics) - len(gone))


@contextmanager
def noted_once_sent(environment: str, outcomes: Sequence[Outcome], notes: Notes) -> Iterator[None]:
    """Note an error of the block instead of raising it, once ``outcomes`` has one of a request that was sent.

    They must be written and reported, whatever fails after the last request.
    """
    try:
        yield
    except Exception as error:
        if not _was_sent(outcomes):
            raise
        log_error(logger, f"after the last request environment={environment}", error, level=logging.INFO)
        with suppress(Exception):
            notes.add([f"after the last request: {sentence(error)}"])


@contextmanager
def unrecorded_once_sent(outcomes: Sequence[Outcome]) -> Iterator[None]:
    """Raise an error of the block as ``UnrecordedError`` if ``outcomes`` has one of a request that was sent."""
    try:
        yield
    except Exception as error:
        if not _was_sent(outcomes):
            raise
        log_error(logger, "requests were sent before", error, level=logging.INFO)
        advice = "make room, then plan and apply" if isinstance(error, ArtifactError) else "plan and apply"
        raise UnrecordedError(
            f"{sentence(error)}; requests were sent before: {advice} again: the next apply reads what became of them"
        ) from error


def _was_sent(outcomes: Sequence[Outcome]) -> bool:
    return any(outcome.sent for outcome in outcomes)
