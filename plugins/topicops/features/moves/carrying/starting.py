"""Starts the next wave: moves that may start now, small ones first, within limits, with their throttle in force."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from topicops.features.moves.carrying.ending import MOST_AT_ONCE
from topicops.features.moves.carrying.measuring import Sizes
from topicops.features.moves.carrying.ports import BrokerNow, LogSizes, PartitionNow, TopicNow
from topicops.features.moves.carrying.reading import Reading, leads_to, read
from topicops.features.moves.carrying.records import DROPPED, topic_of, with_partitions
from topicops.features.moves.carrying.sending import Sender, by_topic
from topicops.features.moves.carrying.throttling import (
    both,
    entries_for,
    foreign_entries,
    foreign_rate,
    has_rate,
    live,
    minus,
    owned,
    recorded,
    set_rates,
    with_entries,
)
from topicops.features.moves.carrying.values import MoveSettings
from topicops.model.errors import ClusterError
from topicops.model.runs.moves import PartitionMove, Stage, TopicMove, TopicPartition

TOPICS_A_LOOK, LOOKS = 200, 5
"""Topics that are read together for a wave, and how often at most in one step."""
MOST_COMPARED = 2_000
"""Most moves of which the next one is chosen, again and again."""
READ_BACKS, BETWEEN_S = 8, 0.3
"""Readings until a throttle must be in force, and the pause between them: brokers take it over within a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """One partition that may start."""

    at: TopicPartition
    found: PartitionMove
    size: int | None = None
    """Bytes of the leader's log; None means not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What decides which moves may start."""

    sender: Sender
    settings: MoveSettings
    throttle: int | None
    still_asked: Callable[[TopicMove], str]
    left: Mapping[int, int]
    """Bytes that moves which run will still bring to each broker."""


@dataclass(slots=True, kw_only=True)
class Waves:
    """Starts the waves of one step. Topics are read for the first one; what it leaves is for the next ones."""

    begin: Start
    looks: Iterator[Sequence[str]]
    """Names of topics that are not read yet."""
    able: Sequence[Chosen] = ()
    """Moves that may start as far as limits allow, and that no wave has taken."""
    sizes: Sizes = field(default_factory=dict)
    """Sizes by broker, as they were when the topics of ``able`` were read."""
    left: Counter[int]
    """Bytes that come to each broker since then: those of moves that ran, and of each wave."""
    number: int = 0
    """Number of waves that were begun."""

    @classmethod
    def of(cls, begin: Start, reading: Reading) -> Waves:
        return cls(begin=begin, looks=_looks(begin, reading), left=Counter(begin.left))

    def start(self, reading: Reading) -> bool:
        """Start what may start now; says whether anything was sent for it."""
        if not (wave := self._choose(reading)):
            return False
        if self.number:  # its topics were read for an earlier wave
            reading, wave = _read_again(self.begin, wave)
        self.number += 1
        if ready := _throttled(self.begin, wave, reading):
            _ask(self.begin.sender, ready)
        return True

    def is_full(self, reading: Reading) -> bool:
        """Return whether moves are left that could start, and as many run as may."""
        return bool(self.able) and Load.of(reading, self.begin, self.left).slots <= 0

    def _choose(self, reading: Reading) -> Sequence[Chosen]:
        """Choose the next wave among the topics that come first."""
        sender, load = self.begin.sender, Load.of(reading, self.begin, self.left)
        self.able = load.take(self.able, self.sizes, sender)
        while load.slots > 0 and (names := next(self.looks, ())):
            now = replace(reading, names=frozenset(names), topics=sender.cluster.topics(names))
            able = list(_able(self.begin, now, names))
            sizes = _sizes(self.begin, now, able) if able else {}
            self.sizes = {**self.sizes, **sizes}
            found = [replace(chosen, size=_size(chosen, now, sizes)) for chosen in able]
            self.able = [*self.able, *load.take(found, self.sizes, sender)]
        return load.wave


def _looks(begin: Start, reading: Reading) -> Iterator[Sequence[str]]:
    """Yield names of topics with a move that brokers let start, those with a single replica first."""
    lonely, others = list[str](), list[str]()
    waiting = Counter[tuple[int, ...]]()
    for move in begin.sender.record.topics:
        ready = []
        for found in move.partitions.values():
            if found.stage is Stage.ACCEPTED:
                dead = tuple(sorted(set(found.target) - reading.brokers.keys()))
                if dead:
                    waiting[dead] += 1
                else:
                    ready.append(found)
        if ready:
            (lonely if any(len(found.origin) == 1 for found in ready) else others).append(move.topic)
    for dead, count in sorted(waiting.items()):
        partitions = "1 partition waits" if count == 1 else f"{count:,} partitions wait"
        are = f"broker {dead[0]}, which is" if len(dead) == 1 else f"brokers {', '.join(map(str, dead))}, which are"
        begin.sender.note(f"{partitions} for {are} not live.")
    names = iter([*lonely, *others])
    for _ in range(LOOKS):
        if look := list(islice(names, TOPICS_A_LOOK)):
            yield look


def _able(begin: Start, reading: Reading, names: Collection[str]) -> Iterator[Chosen]:
    """Yield the moves of these topics that nothing stands in the way of but a limit; drop those that never may."""
    dropped: list[tuple[TopicPartition, str, str]] = []
    for name in names:
        move = topic_of(begin.sender.record, name)
        unasked = begin.still_asked(move)
        for partition, found in sorted(move.partitions.items()):
            at = TopicPartition(name, partition)
            if found.stage is not Stage.ACCEPTED:
                continue
            if reason := unasked or never(reading, move, at, found):
                dropped.append((at, DROPPED, reason))
            elif reason := not_now(begin, reading, move, at, found):
                begin.sender.wait(at, reason)
            else:
                yield Chosen(at=at, found=found)
    begin.sender.end(dropped)


def never(reading: Reading, move: TopicMove, at: TopicPartition, found: PartitionMove) -> str:
    """Say why a move may not start any more and has to be planned anew; empty means that it may."""
    topic = reading.topics.get(move.topic)
    if topic is None or topic.is_deleting:
        return "its topic was deleted"
    if topic.identity != move.identity:
        return "its topic was deleted and made anew"
    if (now := topic.partitions.get(at.partition)) is None:
        return "the topic has no such partition"
    if at not in reading.listed and now.replicas != found.origin:
        return f"its replicas are {list(now.replicas)}, and were {list(found.origin)} in the plan"
    for broker in sorted(found.added & reading.brokers.keys()):
        if closed := reading.brokers[broker].closed:
            return f"it would move to broker {broker}, {closed}"
    return ""


def not_now(begin: Start, reading: Reading, move: TopicMove, at: TopicPartition, found: PartitionMove) -> str:
    """Say what a move has to wait for; empty means that it may start as far as limits allow."""
    topic = reading.topics[move.topic]
    if at in reading.listed:
        return "somebody else moves it"
    return _unhealthy(topic, topic.partitions[at.partition], found, reading.brokers) or (
        _foreign_throttle(begin, topic, move, at, found, reading.brokers) if begin.throttle is not None else ""
    )


def _unhealthy(topic: TopicNow, now: PartitionNow, found: PartitionMove, brokers: Mapping[int, BrokerNow]) -> str:
    if dead := sorted(set(found.target) - brokers.keys()):
        return f"broker {dead[0]} is not live, and the move would wait for it"
    in_sync = len(set(now.isr) & brokers.keys())
    if now.leader not in brokers or not in_sync:
        return "it has no leader"
    if topic.min_isr > in_sync:
        replicas = "1 replica is" if in_sync == 1 else f"{in_sync} replicas are"
        return (
            f"min.insync.replicas is {topic.min_isr} and {replicas} in sync: acks=all would be refused while it moves; "
            f"lower min.insync.replicas to {in_sync} first, and raise it after the move"
        )
    if topic.min_isr > len(found.target):
        return (
            f"min.insync.replicas is {topic.min_isr} and it would have {len(found.target)} replicas; "
            "lower min.insync.replicas first"
        )
    return ""


def _foreign_throttle(
    begin: Start,
    topic: TopicNow,
    move: TopicMove,
    at: TopicPartition,
    found: PartitionMove,
    brokers: Mapping[int, BrokerNow],
) -> str:
    if not found.added:
        return ""
    if reason := foreign_entries(topic, move, entries_for(at.partition, found)):
        return reason
    ours = owned(begin.sender.record)
    for broker in sorted({*found.origin, *found.target} & brokers.keys()):
        if reason := foreign_rate(brokers[broker], ours.get(broker)):
            return f"broker {broker}: {reason}"
    return ""


def _sizes(begin: Start, reading: Reading, able: Sequence[Chosen]) -> Sizes:
    leaders = {reading.topics[c.at.topic].partitions[c.at.partition].leader for c in able}
    added = {broker for chosen in able for broker in chosen.found.added}
    topics = {chosen.at.topic for chosen in able}
    return begin.sender.cluster.log_sizes((leaders | added) & reading.brokers.keys(), topics)


@dataclass(slots=True, kw_only=True)
class Load:
    """What brokers receive, send and have room for, with the wave as far as it is chosen."""

    slots: int
    per_broker: int
    receives: Counter[int]
    sends: Counter[int]
    left: Counter[int]
    wave: list[Chosen]

    @classmethod
    def of(cls, reading: Reading, begin: Start, left: Counter[int]) -> Load:
        """Count what moves now, whosever it is, and what was asked to."""
        receives, sends = Counter[int](), Counter[int]()
        for listed in reading.listed.values():
            receives.update(listed.adding)
            sends.update(set(listed.replicas) - set(listed.adding))
        asked = {at: found for at, _, found in begin.sender.record.moving() if at not in reading.listed}
        for found in asked.values():
            receives.update(found.added)
            sends.update(found.origin if found.added else ())
        slots = min(begin.settings.at_once - len(reading.listed) - len(asked), MOST_AT_ONCE)
        return cls(
            slots=slots, per_broker=begin.settings.per_broker, receives=receives, sends=sends, left=left, wave=[]
        )

    def take(self, able: Sequence[Chosen], sizes: Sizes, sender: Sender) -> Sequence[Chosen]:
        """Take as many as limits and disks allow: single replicas first, small ones, and brokers in turn.

        Returns:
            Moves that no limit but those of now keeps from being taken later.
        """
        known = sorted(able, key=self._order)
        waiting = {chosen.at: chosen for chosen in known[:MOST_COMPARED]}
        while self.slots > 0 and (ready := [each for each in waiting.values() if self._may_receive(each.found)]):
            chosen = min(ready, key=self._order)
            del waiting[chosen.at]
            if full := self._full(chosen, sizes):
                sender.wait(chosen.at, full)
                continue
            self.slots -= 1
            self.wave.append(chosen)
            self.receives.update(chosen.found.added)
            self.sends.update(chosen.found.origin if chosen.found.added else ())
            self.left.update(dict.fromkeys(chosen.found.added, chosen.size or 0))
        return [*waiting.values(), *known[MOST_COMPARED:]]

    def _may_receive(self, found: PartitionMove) -> bool:
        return all(self.receives[broker] < self.per_broker for broker in found.added)

    def _order(self, chosen: Chosen) -> tuple[object, ...]:
        found, size = chosen.found, chosen.size
        busiest = max((self.receives[b] for b in found.added), default=0)
        sender = min((self.sends[b] for b in found.origin), default=0)
        return len(found.origin) > 1, busiest, sender, size is None, size or 0, chosen.at

    def _full(self, chosen: Chosen, sizes: Sizes) -> str:
        """Say which broker has no room for another copy and a tenth of it; empty where that is not known."""
        for broker in sorted(chosen.found.added):
            told = sizes.get(broker)
            if chosen.size is None or not isinstance(told, LogSizes) or told.free_bytes is None:
                continue
            needed = self.left[broker] + chosen.size * 11 // 10
            if needed > told.free_bytes:
                return f"the disk of broker {broker} has {told.free_bytes:,} bytes free, and {needed:,} would be needed"
        return ""


def _size(chosen: Chosen, reading: Reading, sizes: Sizes) -> int | None:
    """Return the bytes of the leader's log; None means not known."""
    told = sizes.get(reading.topics[chosen.at.topic].partitions[chosen.at.partition].leader)
    return told.bytes_of.get(chosen.at, 0) if isinstance(told, LogSizes) else None


def _read_again(begin: Start, wave: Sequence[Chosen]) -> tuple[Reading, Sequence[Chosen]]:
    """Read the topics of a wave, and give its moves that still may start."""
    now = read(begin.sender.cluster, {chosen.at.topic for chosen in wave})
    return now, _without_reason(begin, wave, {chosen.at: _no_more(begin, now, chosen) for chosen in wave})


def _without_reason(begin: Start, wave: Sequence[Chosen], reasons: Mapping[TopicPartition, str]) -> Sequence[Chosen]:
    """Give the moves that have no reason to wait; the others wait."""
    for chosen in wave:
        if reason := reasons[chosen.at]:
            begin.sender.wait(chosen.at, reason)
    return [chosen for chosen in wave if not reasons[chosen.at]]


def _throttled(begin: Start, wave: Sequence[Chosen], reading: Reading) -> Sequence[Chosen]:
    """Put the throttle of a wave in force, and give the moves for which it is and which still may start."""
    failed = _set_throttle(begin, wave, reading)
    for chosen in wave:
        if reason := failed.get(chosen.at):
            begin.sender.wait(chosen.at, reason)
    left = [chosen for chosen in wave if chosen.at not in failed]
    return _read_back(begin, left) if left else ()


def _set_throttle(begin: Start, wave: Sequence[Chosen], reading: Reading) -> Mapping[TopicPartition, str]:
    """Record and send the entries and rates of a wave; gives the moves for which one of them is refused."""
    copied = [chosen for chosen in wave if chosen.found.added]
    if begin.throttle is None or not copied:
        return {}
    sender, failed = begin.sender, dict[TopicPartition, str]()
    grouped: defaultdict[str, list[Chosen]] = defaultdict(list)
    for chosen in copied:
        grouped[chosen.at.topic].append(chosen)
    record = sender.record
    for topic, found in grouped.items():
        needed = both(entries_for(chosen.at.partition, chosen.found) for chosen in found)
        record = with_entries(record, topic_of(record, topic), both([recorded(topic_of(record, topic)), needed]))
    sender.keep(record)
    for topic, found in grouped.items():
        needed = both(entries_for(chosen.at.partition, chosen.found) for chosen in found)
        if answer := sender.add_entries(topic, *needed):
            failed |= dict.fromkeys((chosen.at for chosen in found), f"its throttle entries cannot be set: {answer}")
    brokers = {b for chosen in copied for b in (*chosen.found.origin, *chosen.found.target)}
    refused = set_rates(sender, reading.brokers, brokers, begin.throttle)
    for chosen in copied:
        for broker in sorted({*chosen.found.origin, *chosen.found.target} & refused.keys()):
            failed.setdefault(chosen.at, f"the throttle rate of broker {broker} cannot be set: {refused[broker]}")
    return failed


def _read_back(begin: Start, wave: Sequence[Chosen]) -> Sequence[Chosen]:
    """Read until the throttle of each move is in force; give those for which it is, and which still may start."""
    for attempt in range(READ_BACKS):
        if attempt:
            begin.sender.clock.sleep(BETWEEN_S)
        now = read(begin.sender.cluster, {chosen.at.topic for chosen in wave})
        reasons = {chosen.at: _not_ready(begin, now, chosen) for chosen in wave}
        if not any(reasons.values()):
            break
    return _without_reason(begin, wave, reasons)


def _no_more(begin: Start, now: Reading, chosen: Chosen) -> str:
    """Say why a move that was chosen may not start any more; empty means that it may."""
    move = topic_of(begin.sender.record, chosen.at.topic)
    return never(now, move, chosen.at, chosen.found) or not_now(begin, now, move, chosen.at, chosen.found)


def _not_ready(begin: Start, now: Reading, chosen: Chosen) -> str:
    at, found = chosen.at, chosen.found
    if reason := _no_more(begin, now, chosen):
        return reason
    if begin.throttle is None or not found.added:
        return ""
    if any(minus(entries_for(at.partition, found), live(now.topics[at.topic]))):
        return "its throttle entries are not in force yet"
    for broker in sorted({*found.origin, *found.target} & now.brokers.keys()):
        if not has_rate(now.brokers[broker], begin.throttle):
            return f"the throttle rate of broker {broker} is not in force yet"
    return ""


def _ask(sender: Sender, wave: Sequence[Chosen]) -> None:
    """Send the one request that starts a wave, and keep what Kafka made of it."""
    rows = {chosen.at: chosen.found.target for chosen in wave}
    asked = {chosen.at: _asked(chosen.found, sender.clock.utc()) for chosen in wave}
    _keep(sender, asked)
    refusals, is_clear = sender.start(rows, {chosen.at: chosen.found.origin for chosen in wave})
    if is_clear and all(refusals.get(at) == "" for at in rows):
        _keep(sender, {at: replace(found, seen=True) for at, found in asked.items()})
        return
    try:
        listed = sender.cluster.listed()
    except ClusterError:
        return  # the next step reads what became of it
    moves = {at for at, target in rows.items() if at in listed and leads_to(listed[at], target)}
    accepted = {at for at in rows if is_clear and refusals.get(at) == ""}
    _keep(sender, {at: replace(asked[at], seen=True) for at in moves | accepted})
    if is_clear:
        sender.end((at, DROPPED, answer) for at, answer in refusals.items() if answer and at not in moves)


def _asked(found: PartitionMove, now: datetime) -> PartitionMove:
    return PartitionMove(origin=found.origin, target=found.target, stage=Stage.ASKED, asked_at=now)


def _keep(sender: Sender, changed: Mapping[TopicPartition, PartitionMove]) -> None:
    record = sender.record
    for topic, partitions in by_topic(changed).items():
        record = with_partitions(record, topic, {p: changed[TopicPartition(topic, p)] for p in partitions})
    sender.keep(record)
