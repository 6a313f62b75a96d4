"""One step of the moves of an environment: what ended is taken out, and what may start is started.

A step takes seconds, and waits for no copy. Any later step, by anybody who holds the lease, goes on from the record and
from what Kafka lists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from topicops.features.moves.carrying.ending import cancel, harvest, judge_anew, unasked, without_leader
from topicops.features.moves.carrying.measuring import measure
from topicops.features.moves.carrying.ports import MoveCluster
from topicops.features.moves.carrying.reading import Reading, concerned, read
from topicops.features.moves.carrying.records import DONE, accept, asked_to_cancel
from topicops.features.moves.carrying.sending import Sender
from topicops.features.moves.carrying.starting import Start, Waves
from topicops.features.moves.carrying.throttling import put_back, remove_rates, take_out_entries
from topicops.features.moves.carrying.values import MoveSettings, Sent, Stepped
from topicops.features.moves.record import MovesRecord, TopicMove
from topicops.model.errors import ClusterError
from topicops.model.ports import Begun, Clock
from topicops.model.printable import first_line
from topicops.model.runs.results import OutcomeStatus

__all__ = ["accept", "asked_to_cancel", "make_step"]

LAST_WAVE = timedelta(seconds=3)
"""Time of a step after which it starts no wave more: nobody else gets the lease meanwhile."""
LOOKS, BETWEEN_S = 3, 0.4
"""How often a step looks whether a wave has ended, and the pause between: small partitions take about a second."""


def make_step(
    record: MovesRecord,
    cluster: MoveCluster,
    *,
    settings: MoveSettings,
    keep: Callable[[MovesRecord], None],
    confirm: Callable[[], None],
    still_asked: Callable[[TopicMove], str],
    left_out: Collection[str] = (),
    clock: Clock,
    tell: Callable[[Sent], None],
) -> Stepped:
    """Make one step, and return what it did; an unclear answer in its middle ends it early, with a note.

    Args:
        keep: Writes the record durably; called before each request that the record explains.
        confirm: Raises ``LeaseLostError`` unless the lease is held; called right before each alter.
        still_asked: Gives the reason why the files ask for a move no longer; empty means that they do.
        left_out: Topics whose files have errors: what moves goes on, and what waits is neither started nor dropped.
        tell: Takes one line for the audit log after the answer to each request.

    Raises:
        ClusterError: The cluster could not be read; nothing was sent.
        LeaseLostError: Another run may act by now; nothing more was sent.
    """
    sender = Sender(cluster=cluster, record=record, write=keep, confirm=confirm, tell=tell, clock=clock)
    if record.is_idle:
        return Stepped(record=record)
    reading = read(cluster, concerned(record))
    try:
        _go_on(sender, reading, settings, still_asked, left_out)
    except ClusterError as error:
        sender.note(f"The step ended early: {first_line(error)}; the next one goes on.", first=True)
    notes = sender.notes
    sender.keep(replace(sender.record, notes=notes, stepped_at=sender.now))
    return Stepped(record=sender.record, notes=notes, became=_became(record, sender), moved=frozenset(sender.moved))


def _go_on(
    sender: Sender,
    reading: Reading,
    settings: MoveSettings,
    still_asked: Callable[[TopicMove], str],
    left_out: Collection[str],
) -> None:
    throttle = settings.throttle if sender.record.throttle is None else sender.record.throttle
    reading = harvest(sender, reading)
    take_out_entries(sender, reading)
    put_back(sender, reading, throttle)
    without_leader(sender, reading)
    unasked(sender, reading, still_asked)
    judge_anew(sender)
    left = measure(sender, reading, settings, throttle)
    has_cancelled = cancel(sender)
    begin = Start(
        sender=sender, settings=settings, throttle=throttle, still_asked=still_asked, left_out=left_out, left=left
    )
    waves = Waves.of(begin, reading)
    is_sent = waves.start(reading) or has_cancelled
    while is_sent:
        reading = _soon_after(sender, waves)
        is_sent = sender.clock.utc() - sender.now < LAST_WAVE and waves.start(reading)
    take_out_entries(sender, reading)
    if not any(sender.record.moving()):
        remove_rates(sender, reading.brokers)


def _soon_after(sender: Sender, waves: Waves) -> Reading:
    """Take out what has ended since a request; look again for a moment where only an end lets the next one start."""
    ended = len(sender.moved)
    for _ in range(LOOKS):
        reading = harvest(sender, read(sender.cluster, concerned(sender.record)))
        if len(sender.moved) > ended or not waves.is_full(reading):
            break
        sender.clock.sleep(BETWEEN_S)
    return reading


def _became(before: MovesRecord, sender: Sender) -> Mapping[str, Begun]:
    """Say what became of each change, by digest."""
    left, waiting = {move.digest: move for move in sender.record.topics}, sender.waiting
    earlier = defaultdict[tuple[str, str], list[tuple[str, str]]](list)
    for end in before.ended:
        earlier[end.topic, end.run].append((end.status, end.message))
    return {
        move.digest: _begun(
            move,
            left.get(move.digest),
            [*earlier[move.topic, move.run], *sender.ended[move.topic]],
            waiting=waiting.get(move.topic, ()),
            was_asked=move.topic in sender.asked,
        )
        for move in before.topics
        if move.partitions
    }


def _begun(
    before: TopicMove,
    after: TopicMove | None,
    ended: Sequence[tuple[str, str]],
    *,
    waiting: Sequence[str],
    was_asked: bool,
) -> Begun:
    message = "; ".join(dict.fromkeys([*(message for _, message in ended if message), *waiting]))
    is_done = bool(ended) and all(status == DONE for status, _ in ended)
    sent = was_asked or is_done or any(found.asked_at is not None for found in before.partitions.values())
    if after is not None and after.partitions:
        return Begun(OutcomeStatus.MOVING, message, sent=sent)
    if is_done:
        return Begun(OutcomeStatus.DONE, message, sent=sent)
    return Begun(OutcomeStatus.FAILED if sent else OutcomeStatus.REFUSED, message, sent=sent)
