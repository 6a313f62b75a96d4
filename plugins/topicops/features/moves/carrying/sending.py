"""Requests of one step: the record is kept before each, and the audit log is told of each after its answer."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from topicops.features.moves.carrying.ports import MoveCluster
from topicops.features.moves.carrying.records import DONE, topic_of, without
from topicops.features.moves.carrying.values import Sent
from topicops.features.moves.record import MovesRecord, PartitionMove, TopicPartition, by_topic
from topicops.model.errors import ClusterError
from topicops.model.ports import Clock
from topicops.model.printable import first_line, plural

logger = logging.getLogger(__name__)

Rows = Mapping[TopicPartition, tuple[int, ...]]
RowsOrCancel = Mapping[TopicPartition, tuple[int, ...] | None]
SHOWN = 8
"""Partitions that a note names."""
MOST_NOTES = 100
UNNAMED = "no clear answer: the brokers did not name it"


@dataclass(slots=True, kw_only=True)
class Sender:
    """The record as it was last kept, the requests, and what the step has to say. One step uses it, and no other."""

    cluster: MoveCluster
    record: MovesRecord
    write: Callable[[MovesRecord], None]
    confirm: Callable[[], None]
    tell: Callable[[Sent], None]
    clock: Clock
    now: datetime = field(init=False)
    """Time at which the step began."""
    ended: defaultdict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    """How and why moves have ended in this step, by topic."""
    rated: set[int] = field(default_factory=set)
    """Brokers whose rates were set in this step; they may still tell of those before."""
    asked: set[str] = field(default_factory=set)
    """Topics with a partition that was asked to move in this step."""
    moved: set[TopicPartition] = field(default_factory=set)
    """Partitions whose move has ended as planned."""
    copied: list[PartitionMove] = field(default_factory=list)
    """Those, as they were in the record."""
    _first: list[str] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)
    _waiting: defaultdict[tuple[str, str], set[int]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        self.now = self.clock.utc()

    def keep(self, record: MovesRecord) -> None:
        """Write the record durably, if it changed."""
        if record != self.record:
            self.write(record)
            self.record = record

    def end(self, ended: Iterable[tuple[TopicPartition, str, str]]) -> None:
        """Take partitions out of the record, each with how and why its move ended."""
        together: defaultdict[tuple[str, str, str], set[int]] = defaultdict(set)
        for at, status, message in ended:
            together[at.topic, status, message].add(at.partition)
        record = self.record
        for (topic, status, message), partitions in together.items():
            if status == DONE:
                self.copied += [topic_of(record, topic).partitions[p] for p in sorted(partitions)]
            record = without(record, topic, partitions, status, message, self.now)
        self.keep(record)
        for (topic, status, message), partitions in together.items():
            self.ended[topic].append((status, message))
            if status == DONE:
                self.moved |= {TopicPartition(topic, p) for p in partitions}
            if message:
                self.note(f"{named(topic, partitions)}: {status}: {message}.")
            logger.info("move ended topic=%s partitions=%s status=%s", topic, sorted(partitions), status)
            answer = f"{status}: {message}" if message else status
            self.tell(Sent(what="end", topic=topic, partitions=tuple(sorted(partitions)), answer=answer))

    def note(self, sentence: str, *, first: bool = False) -> None:
        """Say a sentence; ``first`` if a person should read it before all others."""
        (self._first if first else self._notes).append(sentence)

    def wait(self, at: TopicPartition, reason: str) -> None:
        """Say why a partition is not started in this step."""
        self._waiting[at.topic, reason].add(at.partition)

    @property
    def waiting(self) -> Mapping[str, Sequence[str]]:
        """What each topic waits for, without a stop at its end; topics that wait for limits alone have no entry."""
        sentences = defaultdict[str, list[str]](list)
        for (topic, reason), found in self._waiting.items():
            sentences[topic].append(f"{named(topic, found)}: not started: {reason}")
        return sentences

    @property
    def notes(self) -> tuple[str, ...]:
        """All sentences, each once."""
        waiting = (f"{sentence}." for found in self.waiting.values() for sentence in found)
        notes = list(dict.fromkeys([*self._first, *self._notes, *waiting]))
        left = len(notes) - MOST_NOTES
        return (*notes[:MOST_NOTES], *((f"{plural(left, 'more note')} of this step.",) if left > 0 else ()))

    def add_entries(self, topic: str, leader: Collection[str], follower: Collection[str]) -> str:
        """Add entries to the throttle lists of a topic; gives what is in the way, or nothing."""
        answer = _clear(lambda: self.cluster.add_entries(topic, sorted(leader), sorted(follower)))
        self.tell(Sent(what="entries", topic=topic, after=_lists(leader, follower), answer=answer or "accepted"))
        return answer

    def remove_entries(self, topic: str, leader: Collection[str], follower: Collection[str]) -> str:
        """Take entries out of the throttle lists of a topic; gives what is in the way, or nothing."""
        answer = _clear(lambda: self.cluster.remove_entries(topic, sorted(leader), sorted(follower)))
        self.tell(Sent(what="entries", topic=topic, before=_lists(leader, follower), answer=answer or "accepted"))
        return answer

    def set_rate(self, broker: int, before: int | None, rate: int | None) -> str:
        """Set both rates of a broker, or remove them; gives what is in the way, or nothing."""
        self.rated.add(broker)
        answer = _clear(lambda: self.cluster.set_rate(broker, rate))
        rates: tuple[Mapping[str, object], ...] = ({"rate": before}, {"rate": rate})
        self.tell(Sent(what="rate", broker=broker, before=rates[0], after=rates[1], answer=answer or "accepted"))
        return answer

    def start(self, rows: Rows, before: Rows) -> tuple[Mapping[TopicPartition, str], bool]:
        """Ask for moves; gives the refusals, and whether the answer was clear."""
        self.asked |= {at.topic for at in rows}
        answers, is_clear = self._alter(rows)
        for topic, found, answer in _by_answer(rows, answers):
            old, new = ({str(p): list(kind[TopicPartition(topic, p)]) for p in found} for kind in (before, rows))
            self.tell(Sent(what="start", topic=topic, partitions=found, before=old, after=new, answer=answer))
            logger.info("asked to move topic=%s partitions=%s answer=%s", topic, found, answer)
        return answers, is_clear

    def cancel(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, str]:
        """Ask to cancel moves; gives the refusals."""
        answers, _ = self._alter(dict.fromkeys(partitions))
        for topic, found, answer in _by_answer(partitions, answers):
            known = topic_of(self.record, topic).partitions
            before = {str(p): list(known[p].target) for p in found}
            after = {str(p): list(known[p].origin) for p in found}
            self.tell(Sent(what="cancel", topic=topic, partitions=found, before=before, after=after, answer=answer))
            logger.info("asked to cancel topic=%s partitions=%s answer=%s", topic, found, answer)
        return answers

    def _alter(self, rows: RowsOrCancel) -> tuple[Mapping[TopicPartition, str], bool]:
        self.confirm()
        try:
            return self.cluster.alter(rows), True
        except ClusterError as error:
            unclear = f"no clear answer: {first_line(error)}"
            self.note(f"{unclear}; the next step reads what became of {plural(len(rows), 'partition')}.")
            return dict.fromkeys(rows, unclear), False

    def elect(self, partitions: Collection[TopicPartition]) -> None:
        """Let the preferred leaders lead; one that cannot is only said."""
        try:
            answers = self.cluster.elect(partitions)
        except ClusterError as error:
            answers = dict.fromkeys(partitions, first_line(error))
        for topic, found, answer in _by_answer(partitions, answers):
            self.tell(Sent(what="elect", topic=topic, partitions=found, answer=answer))
            if answer != "accepted":
                self.note(f"{named(topic, found)}: the preferred leader does not lead: {answer}.")


def named(topic: str, partitions: Collection[int]) -> str:
    """Name partitions of a topic: ``orders partitions 0, 1 and 7 more``."""
    shown = ", ".join(str(p) for p in sorted(partitions)[:SHOWN])
    more = f" and {len(partitions) - SHOWN} more" if len(partitions) > SHOWN else ""
    return f"{topic} {'partition' if len(partitions) == 1 else 'partitions'} {shown}{more}"


def _clear(request: Callable[[], str]) -> str:
    """Return the answer; an unclear one is told as a refusal, because a later step asks again without harm."""
    try:
        return request()
    except ClusterError as error:
        return f"no clear answer: {first_line(error)}"


def _by_answer(
    asked: Iterable[TopicPartition], answers: Mapping[TopicPartition, str]
) -> Iterator[tuple[str, tuple[int, ...], str]]:
    """Yield topic, partitions and their answer, ``accepted`` for an empty one; each partition is in one of them."""
    for topic, partitions in by_topic(asked).items():
        found: defaultdict[str, list[int]] = defaultdict(list)
        for p in partitions:
            found[answers.get(TopicPartition(topic, p), UNNAMED) or "accepted"].append(p)
        yield from ((topic, tuple(its), answer) for answer, its in found.items())


def _lists(leader: Collection[str], follower: Collection[str]) -> Mapping[str, Sequence[str]]:
    return {"leader": sorted(leader), "follower": sorted(follower)}
