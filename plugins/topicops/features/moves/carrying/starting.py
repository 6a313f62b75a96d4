"""Starts the next wave: moves that may start now, small ones first, within limits, with their throttle in force."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from topicops.features.moves.carrying.ending import MOST_AT_ONCE
from topicops.features.moves.carrying.measuring import Sizes
from topicops.features.moves.carrying.ports import BrokerNow, LogSizes, PartitionNow, TopicNow
from topicops.features.moves.carrying.reading import Reading, leads_to, read
from topicops.features.moves.carrying.records import DROPPED, topic_of, with_partitions
from topicops.features.moves.carrying.sending import Sender
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
from topicops.features.moves.record import Moving, PartitionMove, Stage, TopicMove, TopicPartition, by_topic
from topicops.model.codes import Code
from topicops.model.errors import ClusterError

TOPICS_A_LOOK, LOOKS = 200, 5
"""Topics that are read together for a wave, and how often at most in one step."""
MOST_COMPARED = 2_000
"""Most moves of which the next one is chosen, again and again."""
READ_BACKS, BETWEEN_S = 8, 0.3
"""Readings until a throttle must be in force, and the pause between them: brokers take it over within a second."""


FILE_WITH_ERRORS = "its file has errors; `topicops validate` lists them"

Sized = tuple[Moving, int | None]
"""With the bytes of its leader's log; None means not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What decides which moves may start."""

    sender: Sender
    settings: MoveSettings
    throttle: int | None
    still_asked: Callable[[TopicMove], str]
    left_out: Collection[str] = ()
    """Topics whose files have errors: nobody knows what they ask for."""
    left: Mapping[int, int]
    """Bytes that moves which run will still bring to each broker."""


@dataclass(slots=True, kw_only=True)
class Waves:
    """Starts the waves of one step. Topics are read for the first one; what it leaves is for the next ones."""

    begin: Start
    looks: Iterator[Sequence[str]]
    """Names of topics that are not read yet."""
    able: Sequence[Sized] = ()
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

    def _choose(self, reading: Reading) -> Sequence[Moving]:
        """Choose the next wave among the topics that come first."""
        sender, load = self.begin.sender, Load.of(reading, self.begin, self.left)
        self.able = load.take(self.able, self.sizes, sender)
        while load.slots > 0 and (names := next(self.looks, ())):
            now = replace(reading, names=frozenset(names), topics=sender.cluster.topics(names))
            able = list(_able(self.begin, now, names))
            sizes = _sizes(self.begin, now, able) if able else {}
            self.sizes = {**self.sizes, **sizes}  # of each broker the newest: they have its room, and not all its logs
            able = list(_without_old_logs(sender, now, able, sizes))
            found = [_sized(chosen, now, sizes) for chosen in able]
            _keep(sender, {chosen.at: chosen.found for chosen, _ in found})  # what waits counts in the forecast
            self.able = [*self.able, *load.take(found, self.sizes, sender)]
        return load.wave


def _looks(begin: Start, reading: Reading) -> Iterator[Sequence[str]]:
    """Yield names of topics with a move that brokers let start, those with a single replica first.

    One step reads so many topics at most. Where there are more, each minute begins with others.
    """
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
    listed, most = [*lonely, *others], TOPICS_A_LOOK * LOOKS
    if len(listed) > most:  # those of the step before may all have to wait
        first = int(begin.sender.now.timestamp() // 60) * most % len(listed)
        listed = [*listed[first:], *listed[:first]]
    names = iter(listed)
    for _ in range(LOOKS):
        if look := list(islice(names, TOPICS_A_LOOK)):
            yield look


def _able(begin: Start, reading: Reading, names: Collection[str]) -> Iterator[Moving]:
    """Yield the moves of these topics that nothing stands in the way of but a limit; drop those that never may."""
    dropped: list[tuple[TopicPartition, str, str]] = []
    for name in names:
        move = topic_of(begin.sender.record, name)
        unasked = "" if name in begin.left_out else begin.still_asked(move)
        for each in move.each():
            if each.found.stage is not Stage.ACCEPTED:
                continue
            if reason := unasked or never(reading, each):
                dropped.append((each.at, DROPPED, reason))
            elif reason := (FILE_WITH_ERRORS if name in begin.left_out else not_now(begin, reading, each)):
                begin.sender.wait(each.at, reason)
            else:
                yield each
    begin.sender.end(dropped)


def never(reading: Reading, moving: Moving) -> str:
    """Say why a move may not start any more and has to be planned anew; empty means that it may."""
    at, move, found = moving
    topic = reading.topics.get(move.topic)
    if topic is None or topic.is_deleting:
        return "its topic was deleted"
    if not topic.is_same(move.identity):
        return "its topic was deleted and made anew"
    if (now := topic.partitions.get(at.partition)) is None:
        return "the topic has no such partition"
    if at not in reading.listed and now.replicas != found.origin:
        return f"its replicas are {list(now.replicas)}, and were {list(found.origin)} in the plan ({Code.STALE_PLAN})"
    for broker in sorted(found.added & reading.brokers.keys()):
        if closed := reading.brokers[broker].closed:
            return f"it would move to broker {broker}, {closed}"
    for broker in sorted(move.racks.keys() & {*found.target} & reading.brokers.keys()):
        if (rack := reading.brokers[broker].rack) != move.racks[broker]:
            return f"broker {broker} is on {_rack(rack)}, and was on {_rack(move.racks[broker])} in the plan"
    return ""


def _rack(name: str | None) -> str:
    return "no rack" if name is None else f"rack {name}"


def not_now(begin: Start, reading: Reading, moving: Moving) -> str:
    """Say what a move has to wait for; empty means that it may start as far as limits allow."""
    at, _, found = moving
    topic = reading.topics[at.topic]
    if at in reading.listed:
        return "somebody else moves it"
    return _unhealthy(topic, topic.partitions[at.partition], found, reading.brokers) or (
        _foreign_throttle(begin, reading, moving) if begin.throttle is not None else ""
    )


def _unhealthy(topic: TopicNow, now: PartitionNow, found: PartitionMove, brokers: Mapping[int, BrokerNow]) -> str:
    if dead := sorted(set(found.target) - brokers.keys()):
        return f"broker {dead[0]} is not live, and the move would wait for it"
    in_sync = len(set(now.isr) & brokers.keys())
    if now.leader not in brokers or not in_sync:
        return "it has no leader"
    if _refuses_always(topic, now, found, brokers):
        return ""
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


def _refuses_always(topic: TopicNow, now: PartitionNow, found: PartitionMove, brokers: Mapping[int, BrokerNow]) -> bool:
    """Return whether the partition refuses ``acks=all`` whatever is in sync, so that a move makes nothing worse.

    Brokers before 3.7 do not cap ``min.insync.replicas`` at the number of replicas.
    """
    is_capped = any(brokers[broker].caps_min_isr for broker in found.brokers & brokers.keys())
    return topic.min_isr > len(now.replicas) and not is_capped


def _foreign_throttle(begin: Start, reading: Reading, moving: Moving) -> str:
    at, move, found = moving
    if not found.added:
        return ""
    if reason := foreign_entries(reading.topics[at.topic], move, entries_for(at.partition, found)):
        return reason
    ours = owned(begin.sender.record)
    for broker in sorted(found.brokers & reading.brokers.keys()):
        if reason := foreign_rate(reading.brokers[broker], ours.get(broker)):
            return f"broker {broker}: {reason}"
    return ""


def _sizes(begin: Start, reading: Reading, able: Sequence[Moving]) -> Sizes:
    leaders = {reading.topics[c.at.topic].partitions[c.at.partition].leader for c in able}
    added = {broker for chosen in able for broker in chosen.found.added}
    topics = {chosen.at.topic for chosen in able}
    return begin.sender.cluster.log_sizes((leaders | added) & reading.brokers.keys(), topics)


@dataclass(slots=True, kw_only=True)
class Load:
    """What brokers receive, send and have room for, with the wave as far as it is chosen."""

    slots: int
    per_broker: int
    left: Counter[int]
    receives: Counter[int] = field(default_factory=Counter)
    sends: Counter[int] = field(default_factory=Counter)
    wave: list[Moving] = field(default_factory=list)

    @classmethod
    def of(cls, reading: Reading, begin: Start, left: Counter[int]) -> Load:
        """Count what moves now, whosever it is, and what was asked to; ``left`` counts on with the wave."""
        asked = [each.found for each in begin.sender.record.moving() if each.at not in reading.listed]
        slots = min(begin.settings.at_once - len(reading.listed) - len(asked), MOST_AT_ONCE)
        load = cls(slots=slots, per_broker=begin.settings.per_broker, left=left)
        for listed in reading.listed.values():
            load.receives.update(listed.adding)
            load.sends.update(set(listed.replicas) - set(listed.adding))
        for found in asked:
            load._add(found)
        return load

    def _add(self, found: PartitionMove) -> None:
        self.receives.update(found.added)
        self.sends.update(found.origin if found.added else ())

    def take(self, sized: Iterable[Sized], sizes: Sizes, sender: Sender) -> Sequence[Sized]:
        """Take as many as limits and disks allow: single replicas first, small ones, and brokers in turn.

        Returns:
            Moves that no limit but those of now keeps from being taken later.
        """
        known = sorted(sized, key=lambda found: self._order(*found))
        waiting = {found[0].at: found for found in known[:MOST_COMPARED]}
        while self.slots > 0 and (ready := [each for each in waiting.values() if self._may_receive(each[0].found)]):
            chosen, size = min(ready, key=lambda found: self._order(*found))
            del waiting[chosen.at]
            if reason := self._full(chosen.found, size, sizes):
                sender.wait(chosen.at, reason)
                continue
            self.slots -= 1
            self.wave.append(chosen)
            self._add(chosen.found)
            self.left.update(dict.fromkeys(chosen.found.added, size or 0))
        return [*waiting.values(), *known[MOST_COMPARED:]]

    def _may_receive(self, found: PartitionMove) -> bool:
        return all(self.receives[broker] < self.per_broker for broker in found.added)

    def _order(self, chosen: Moving, size: int | None) -> tuple[object, ...]:
        found = chosen.found
        busiest = max((self.receives[b] for b in found.added), default=0)
        sender = min((self.sends[b] for b in found.origin), default=0)
        is_known = size is not None
        return len(found.origin) > 1, busiest, sender, not is_known, size or 0, chosen.at

    def _full(self, found: PartitionMove, size: int | None, sizes: Sizes) -> str:
        """Say which broker has no room for another copy and a tenth of it; empty where that is not known."""
        for broker in sorted(found.added):
            told = sizes.get(broker)
            if size is None or not isinstance(told, LogSizes) or told.free_bytes is None:
                continue
            needed = self.left[broker] + size * 11 // 10
            if needed > told.free_bytes:
                return f"the disk of broker {broker} has {told.free_bytes:,} bytes free, and {needed:,} would be needed"
        return ""


def _without_old_logs(sender: Sender, now: Reading, able: Iterable[Moving], sizes: Sizes) -> Iterator[Moving]:
    """Yield the moves whose new replicas find no log on their brokers; the others wait.

    Args:
        sizes: With the logs of all their topics.
    """
    for chosen in able:
        if reason := _old_log(chosen, sizes, own=_own_logs(sender, now, chosen)):
            sender.wait(chosen.at, reason)
        else:
            yield chosen


def _own_logs(sender: Sender, now: Reading, chosen: Moving) -> frozenset[int]:
    """Return the brokers that can have no log of the partition but one of this topic, which a move of ours began."""
    topic, at = now.topics[chosen.at.topic], chosen.at
    known = (logs for logs in sender.record.own_logs if logs.topic == at.topic and topic.is_same(logs.identity))
    return frozenset(broker for logs in known for broker in logs.brokers.get(at.partition, ()))


def _old_log(chosen: Moving, sizes: Sizes, *, own: Collection[int]) -> str:
    """Say which new replica would find a log on its broker, or may find one; empty: none.

    A broker that was down when a replica was taken away keeps its log. If that is of an earlier topic of the name,
    brokers of 3.9 refuse the new replica for ever; those of 2.4 and 2.8 count it as in sync, and it lacks records.
    Seen on 2.4.1, 2.8.2 and 3.9.2 with ZooKeeper; no answer tells of which topic a log is.
    """
    for broker in sorted(chosen.found.added - {*own}):
        told = sizes.get(broker, f"broker {broker} was not asked")
        if isinstance(told, str):
            return f"whether broker {broker} has a log of before is not known: {told}"
        if chosen.at in told.bytes_of:
            folder = f"{chosen.at.topic}-{chosen.at.partition}"
            return (
                f"broker {broker} has a log of before, perhaps of an earlier topic of that name, whose records would "
                f"be taken for those of now; stop the broker, remove the folder {folder} from its log directory, and "
                "start it again"
            )
    return ""


def _sized(chosen: Moving, reading: Reading, sizes: Sizes) -> Sized:
    told = sizes.get(reading.topics[chosen.at.topic].partitions[chosen.at.partition].leader)
    size = told.bytes_of.get(chosen.at, 0) if isinstance(told, LogSizes) else None
    found = replace(chosen.found, size_bytes=(size or 0) * len(chosen.found.added))
    return chosen._replace(found=found), size


def _read_again(begin: Start, wave: Sequence[Moving]) -> tuple[Reading, Sequence[Moving]]:
    """Read the topics of a wave, and give its moves that still may start."""
    now = read(begin.sender.cluster, {chosen.at.topic for chosen in wave})
    return now, _without_reason(begin, wave, {chosen.at: _no_more(begin, now, chosen) for chosen in wave})


def _without_reason(begin: Start, wave: Sequence[Moving], reasons: Mapping[TopicPartition, str]) -> Sequence[Moving]:
    """Give the moves that have no reason to wait; the others wait."""
    for chosen in wave:
        if reason := reasons[chosen.at]:
            begin.sender.wait(chosen.at, reason)
    return [chosen for chosen in wave if not reasons[chosen.at]]


def _throttled(begin: Start, wave: Sequence[Moving], reading: Reading) -> Sequence[Moving]:
    """Put the throttle of a wave in force, and give the moves for which it is and which still may start."""
    failed = _set_throttle(begin, wave, reading)
    for chosen in wave:
        if reason := failed.get(chosen.at):
            begin.sender.wait(chosen.at, reason)
    left = [chosen for chosen in wave if chosen.at not in failed]
    return _read_back(begin, left) if left else ()


def _set_throttle(begin: Start, wave: Sequence[Moving], reading: Reading) -> Mapping[TopicPartition, str]:
    """Record and send the entries and rates of a wave; gives the moves for which one of them is refused."""
    copied = [chosen for chosen in wave if chosen.found.added]
    if begin.throttle is None or not copied:
        return {}
    sender, failed = begin.sender, dict[TopicPartition, str]()
    grouped: defaultdict[str, list[Moving]] = defaultdict(list)
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
    brokers = {broker for chosen in copied for broker in chosen.found.brokers}
    refused = set_rates(sender, reading.brokers, brokers, begin.throttle)
    for chosen in copied:
        for broker in sorted(chosen.found.brokers & refused.keys()):
            failed.setdefault(chosen.at, f"the throttle rate of broker {broker} cannot be set: {refused[broker]}")
    return failed


def _read_back(begin: Start, wave: Sequence[Moving]) -> Sequence[Moving]:
    """Read until the throttle of each move is in force; give those for which it is, and which still may start."""
    for attempt in range(READ_BACKS):
        if attempt:
            begin.sender.clock.sleep(BETWEEN_S)
        now = read(begin.sender.cluster, {chosen.at.topic for chosen in wave})
        reasons = {chosen.at: _not_ready(begin, now, chosen) for chosen in wave}
        if not any(reasons.values()):
            break
    return _without_reason(begin, wave, reasons)


def _no_more(begin: Start, now: Reading, chosen: Moving) -> str:
    """Say why a move that was chosen may not start any more; empty means that it may."""
    chosen = chosen._replace(move=topic_of(begin.sender.record, chosen.at.topic))  # by now it has our entries
    return never(now, chosen) or not_now(begin, now, chosen)


def _not_ready(begin: Start, now: Reading, chosen: Moving) -> str:
    at, _, found = chosen
    if reason := _no_more(begin, now, chosen):
        return reason
    if begin.throttle is None or not found.added:
        return ""
    if any(minus(entries_for(at.partition, found), live(now.topics[at.topic]))):
        return "its throttle entries are not in force yet"
    for broker in sorted(found.brokers & now.brokers.keys()):
        if not has_rate(now.brokers[broker], begin.throttle):
            return f"the throttle rate of broker {broker} is not in force yet"
    return ""


def _ask(sender: Sender, wave: Sequence[Moving]) -> None:
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
    return PartitionMove(
        origin=found.origin, target=found.target, stage=Stage.ASKED, asked_at=now, size_bytes=found.size_bytes
    )


def _keep(sender: Sender, changed: Mapping[TopicPartition, PartitionMove]) -> None:
    record = sender.record
    for topic, partitions in by_topic(changed).items():
        record = with_partitions(record, topic, {p: changed[TopicPartition(topic, p)] for p in partitions})
    sender.keep(record)
