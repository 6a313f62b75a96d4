"""What the tasks of the moves DAG do: a step each time, and at the end the asset events of the topics that moved."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from airflow.sdk import Context, PokeReturnValue
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from topicops.features.moves.carrying.values import Stepped
from topicops.features.moves.record import EndedMove, MovesRecord, read_moves
from topicops.features.moves.telling.status import status_of
from topicops.features.moves.telling.text import speed
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.errors import ConnectionSecurityError, TopicopsError, UsageError, WrongTargetError
from topicops.model.printable import plural, printable
from topicops.model.waits import told_waits
from topicops.on_airflow.plugged import Tools
from topicops.on_airflow.plugged_at_start import TELLERS
from topicops.on_airflow.site import Site
from topicops.on_airflow.tasks.changes import announce_group
from topicops.on_airflow.tasks.opening import task_run

_WORDS = {"done": "moved as planned", "dropped": "not moved"}
FOR_A_PERSON = (ConnectionSecurityError, UsageError, WrongTargetError)
"""Errors that no later step gets over. All others only end this step, and the next one tries again."""
ENDED_FILE = "ended-moves.json"
TOPICS_LOGGED = 20
TakeStep = Callable[..., Stepped | None]

log = logging.getLogger(__name__)


def look(site: Site, context: Context) -> PokeReturnValue:
    """Make a step as a run of the DAG does."""
    from topicops.features.moves.stepping import take_step

    with _opened(site, context) as run:
        found = step(run, context, take_step)
        if found.is_done:
            _tell(site, run, context)
        return found


def step(run: EnvironmentRun, context: Context, take_step: TakeStep) -> PokeReturnValue:
    """Make a step. When nothing is left, the value has the groups of topics that ``announce`` has to announce.

    Raises an error of ``FOR_A_PERSON``.
    """
    try:
        stepped = take_step(run, lock_timeout_s=0.0)
    except FOR_A_PERSON:
        raise
    except TopicopsError as error:
        log.warning("this step ended early, and the next one tries again: %s", error)
        return PokeReturnValue(is_done=False)
    record = stepped.record if stepped else read_moves(run.home, run.environment)
    log_progress(run.environment, record)
    ended = _keep_ended(run, record, context)
    if record is not None and not record.is_idle:
        return PokeReturnValue(is_done=False)
    return PokeReturnValue(is_done=True, xcom_value=announce_group(run, context, _events(ended)))


def announce(site: Site, context: Context, first: int, server: str | None = None) -> None:
    """Emit the events of one group of topics."""
    with _opened(site, context) as run:
        ended = run.store.read_value(ENDED_FILE, tuple[EndedMove, ...])
        announce_group(run, context, _events(ended), first=first, server=server)


@contextmanager
def _opened(site: Site, context: Context) -> Iterator[EnvironmentRun]:
    try:
        run = task_run(site.tools or Tools(), site, context)
        with told_waits(log.info):
            yield run
    except FOR_A_PERSON as error:
        raise AirflowFailException(str(error)) from error
    except TopicopsError as error:
        raise AirflowException(str(error)) from error


def log_progress(environment: str, record: MovesRecord | None) -> None:
    found = status_of(environment, record)
    log.info("%s%s", found.text, f", {speed(found.bytes_per_s)}" if found.bytes_per_s else "")
    for topic in found.topics[:TOPICS_LOGGED]:
        log.info("%s: %s", topic.topic, topic.text)
    for said in found.notes:
        log.info("%s", printable(said))


def _keep_ended(run: EnvironmentRun, record: MovesRecord | None, context: Context) -> Sequence[EndedMove]:
    """Keep the moves that have ended since this run began: the record has only the newest."""
    kept = run.store.read_if_there(ENDED_FILE, tuple[EndedMove, ...]) or ()
    since = context["dag_run"].run_after
    new = [move for move in (record.ended if record else ()) if move.at >= since and move not in kept]
    if new:
        kept = (*kept, *new)
        run.store.write_value(ENDED_FILE, kept)
    return kept


def _tell(site: Site, run: EnvironmentRun, context: Context) -> None:
    """Tell people how the moves ended that this run carried on; a run that found none has nothing to tell."""
    ended = run.store.read_if_there(ENDED_FILE, tuple[EndedMove, ...]) or ()
    if not ended:
        return
    partitions = Counter[str]()
    for move in ended:
        partitions[_WORDS.get(move.status, move.status)] += move.partitions
    counted = ", ".join(f"{plural(partitions[word], 'partition')} {word}" for word in sorted(partitions))
    topics = {move.topic for move in ended}
    verdict = f"Moves of {plural(len(topics), 'topic')} ended: {counted}."
    for teller in TELLERS:
        teller.tell_of_one(
            run, site.options.notifiers, context, kind="applied", verdict=lambda: verdict, changes=len(topics)
        )


def _events(ended: Sequence[EndedMove]) -> Mapping[str, Mapping[str, Any]]:
    """Give each topic all of whose partitions moved as planned."""
    others = {move.topic for move in ended if move.status != "done"}
    return {move.topic: {"actions": ["reassign"], "commit": ""} for move in ended if move.topic not in others}
