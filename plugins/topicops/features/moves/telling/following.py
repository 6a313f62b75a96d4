"""What people ask of moves that run: to cancel them, to copy faster or slower, and to carry them on until they end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import TypeVar

from topicops.features.moves.carrying.step import asked_to_cancel
from topicops.features.moves.carrying.values import Stepped
from topicops.features.moves.record import MOVES, EndedMove, MovesRecord
from topicops.features.moves.telling.status import MovesStatus
from topicops.flow.runs.access import PORT_WRAPPERS
from topicops.flow.runs.files import read_needed_specs
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.errors import ClusterError, LeaseHeldError, LeaseLostError, UsageError
from topicops.model.ports import Clock
from topicops.model.specs.spellings import likely_unit
from topicops.model.specs.topic_config import ConfigValueError, read_size
from topicops.steps.specs.needed import no_topic

T = TypeVar("T")


def bytes_of(text: str) -> int:
    """Return a number of bytes: ``50MiB``, or ``1000``. Raises ``UsageError``."""
    try:
        return read_size(text)
    except ConfigValueError as error:
        raise UsageError(f"{text!r} is no number of bytes: {error}; {likely_unit(text, 'bytes')}") from error


def change_record(
    run: EnvironmentRun, change: Callable[[MovesRecord], MovesRecord], *, lock_timeout_s: float
) -> MovesRecord:
    """Write what a person asks for into the record, behind the lease, so that no step overwrites it.

    Raises:
        UsageError: Nothing of ours moves.
        LeaseHeldError: Another run holds the lease.
    """
    environment, _ = read_needed_specs(run.files, no_topic, run.progress).require()
    file = MOVES.of(run.home, run.environment)
    record = _moving(file.read(), run.environment)
    lease_to_take = run.access(environment).lease(record.cluster_id, operation="moves", lock_timeout_s=lock_timeout_s)
    with PORT_WRAPPERS.get().lease(lease_to_take) as lease:
        record = change(_moving(file.read(), run.environment))
        lease.confirm()
        file.write(record)
    return record


def cancelling(topics: Collection[str] | None, run: EnvironmentRun) -> Callable[[MovesRecord], MovesRecord]:
    """Return what marks the moves of these topics as to be cancelled; None means all."""

    def change(record: MovesRecord) -> MovesRecord:
        ours = {move.topic for move in record.topics if move.partitions}
        for topic in topics or ():
            if topic not in ours:
                raise UsageError(
                    f"topicops moves no replicas of {topic} in {run.environment}; `topicops moves` lists what moves, "
                    "and `topicops why TOPIC` takes back what others move"
                )
        return asked_to_cancel(record, ours if topics is None else topics, run.clock.utc())

    return change


def throttled(rate: int) -> Callable[[MovesRecord], MovesRecord]:
    """Return what sets the rate that the next step gives to the brokers, bytes a second. Raises ``UsageError``."""
    if not rate:
        raise UsageError("a throttle of nothing would stop the moves; `topicops moves --cancel-all` ends them")
    return lambda record: replace(record, throttle=rate)


def forgetting(broker: int, run: EnvironmentRun) -> Callable[[MovesRecord], MovesRecord]:
    """Return what takes the rate of a broker that never comes back out of what is owed.

    Raises ``UsageError`` for a live broker: a step removes its rate. Raises ``ClusterError`` where none can be read.
    """
    environment, _ = read_needed_specs(run.files, no_topic, run.progress).require()
    with run.access(environment).reader() as reader:
        live = reader.brokers()
    if broker in live:
        raise UsageError(f"broker {broker} is live: `topicops moves --step` removes our rate from it")

    def change(record: MovesRecord) -> MovesRecord:
        left = tuple(rate for rate in record.rates if rate.broker != broker)
        if len(left) == len(record.rates):
            raise UsageError(f"topicops has set no rate on broker {broker} in {run.environment} that is still there")
        return replace(record, rates=left)

    return change


def watch(
    step: Callable[[], Stepped | None],
    status: Callable[[], MovesStatus],
    show: Callable[[MovesStatus], None],
    warn: Callable[[str], None],
    *,
    every_s: float,
    clock: Clock,
) -> list[EndedMove]:
    """Make a step, show how far the moves are, wait, and so on until nothing of ours moves or is owed.

    A step that has no clear answer, or for which another run holds the lease, is said and tried again.

    Returns:
        Moves that ended meanwhile, oldest first.
    """
    known, ended, told = set(status().ended), list[EndedMove](), ""
    while True:
        problem = _problem_of(step)
        if problem and problem != told:
            warn(f"{problem}; it is tried again in {every_s:g} s")
        told, found = problem, status()
        show(found)
        ended += [each for each in reversed(found.ended) if each not in known]  # later the record may forget them
        known.update(found.ended)
        if found.is_idle:
            return ended
        clock.sleep(every_s)


def _problem_of(step: Callable[[], Stepped | None]) -> str:
    try:
        step()
    except (ClusterError, LeaseHeldError, LeaseLostError) as error:
        return str(error)
    return ""


def dropped(ended: Iterable[EndedMove]) -> list[EndedMove]:
    """Return the moves that came to nothing without a person's word."""
    return [move for move in ended if move.status == "dropped"]


def _moving(record: MovesRecord | None, environment: str) -> MovesRecord:
    if record is None or record.is_idle:
        raise UsageError(f"topicops moves nothing in {environment}: there is nothing to cancel or to throttle")
    return record
