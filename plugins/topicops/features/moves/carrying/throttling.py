"""Throttles of moves: the entries and rates that are ours, put where they are needed and taken out where they are not.

A throttle needs both halves: a rate on the broker, and entries in the lists of the topic. Entries and rates of others
are never changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from topicops.features.moves.carrying.ports import BrokerNow, TopicNow
from topicops.features.moves.carrying.reading import Now, Reading
from topicops.features.moves.carrying.records import with_topic
from topicops.features.moves.carrying.sending import Sender
from topicops.features.moves.record import MovesRecord, OwnedRate, PartitionMove, Stage, TopicMove
from topicops.model.codes import Code

ALL = "*"
Brokers = Mapping[int, BrokerNow]
Entries = tuple[frozenset[str], frozenset[str]]
"""Entries of the leader list and of the follower list."""


def entries_for(partition: int, found: PartitionMove) -> Entries:
    """Return the entries that throttle one move: each origin replica may lead, and each new one copies."""
    if not found.added:
        return frozenset(), frozenset()
    return _entries(partition, found.origin), _entries(partition, found.added)


def _entries(partition: int, brokers: Collection[int]) -> frozenset[str]:
    return frozenset(f"{partition}:{broker}" for broker in brokers)


def entries_of(move: TopicMove) -> Entries:
    """Return the entries that the partitions need that were asked to move."""
    return both(entries_for(p, found) for p, found in move.partitions.items() if found.stage is not Stage.ACCEPTED)


def both(entries: Iterable[Entries]) -> Entries:
    """Return all these entries together."""
    known = tuple(entries)
    return frozenset().union(*(e[0] for e in known)), frozenset().union(*(e[1] for e in known))


def recorded(move: TopicMove) -> Entries:
    return frozenset(move.leader_entries), frozenset(move.follower_entries)


def live(topic: TopicNow) -> Entries:
    return frozenset(topic.leader_entries), frozenset(topic.follower_entries)


def with_entries(record: MovesRecord, move: TopicMove, entries: Entries) -> MovesRecord:
    """Return the record with these entries of a topic as ours."""
    leader, follower = (tuple(sorted(kind)) for kind in entries)
    return with_topic(record, replace(move, leader_entries=leader, follower_entries=follower))


def minus(one: Entries, other: Entries) -> Entries:
    return one[0] - other[0], one[1] - other[1]


def take_out_entries(sender: Sender, reading: Reading) -> None:
    """Take out the entries of ours that no move needs any more."""
    for move in sender.record.topics:
        surplus = minus(recorded(move), entries_of(move))
        is_gone = reading.topic_of(move) is None
        if not any(surplus) or (is_gone and move.partitions) or move.topic not in reading.names:
            continue
        answer = "" if is_gone else sender.remove_entries(move.topic, *surplus)  # the lists go with their topic
        if answer:
            sender.note(
                f"{move.topic}: our entries are still in its throttle lists: {answer}; a later step removes them."
            )
        else:
            sender.keep(with_entries(sender.record, move, minus(recorded(move), surplus)))


def put_back(sender: Sender, reading: Reading, throttle: int | None) -> None:
    """Put our entries and rates back where a move runs without them, and change rates that a person has changed."""
    for move in sender.record.topics:
        topic = reading.topic_of(move)
        if topic is not None and not topic.is_deleting and _any_moves(reading, move):
            _put_entries_back(sender, move, topic, is_throttled=throttle is not None)
    brokers = {broker for each in sender.record.moving() if each.found.added for broker in each.found.brokers}
    if throttle is None or not brokers:
        return
    wanted = brokers | owned(sender.record).keys()
    for broker, reason in set_rates(sender, reading.brokers, wanted, throttle).items():
        sender.note(f"Broker {broker}: its moves run without our throttle: {reason}.", first=True)


def _any_moves(reading: Reading, move: TopicMove) -> bool:
    return any(reading.of(each) is Now.MOVES for each in move.each() if each.found.stage is not Stage.ACCEPTED)


def _put_entries_back(sender: Sender, move: TopicMove, topic: TopicNow, *, is_throttled: bool) -> None:
    needed = entries_of(move)
    if not is_throttled:
        needed = minus(needed, minus(needed, recorded(move)))
    missing = minus(needed, live(topic))
    if not any(missing):
        return
    sender.keep(with_entries(sender.record, move, both([recorded(move), missing])))
    if answer := sender.add_entries(move.topic, *missing):
        sender.note(f"{move.topic}: its replicas move without a throttle: {answer}.", first=True)


def owned(record: MovesRecord) -> Mapping[int, OwnedRate]:
    """Return our rates by broker."""
    return {rate.broker: rate for rate in record.rates}


def foreign_rate(broker: BrokerNow, ours: OwnedRate | None) -> str:
    """Say which rate of a broker is not ours, or cannot be read; empty means none."""
    if broker.unread:
        return f"its throttle rates cannot be read: {broker.unread}"
    known = {None} if ours is None else {None, ours.rate, ours.was, *ours.others}
    if others := {broker.leader_rate, broker.follower_rate} - known:
        rates = " and ".join(str(rate) for rate in sorted(rate for rate in others if rate is not None))
        return f"{Code.THROTTLE}: it has the throttle rate {rates}, which topicops did not set; remove it if unused"
    return ""


def foreign_entries(topic: TopicNow, move: TopicMove, needed: Entries) -> str:
    """Say which throttle entries of a topic are in the way; empty means none."""
    if ALL in (*topic.leader_entries, *topic.follower_entries):
        return f"{Code.THROTTLE}: somebody throttles all replicas of the topic; remove the lists if nothing needs them"
    there = minus(needed, minus(needed, minus(live(topic), recorded(move))))
    if others := sorted(there[0] | there[1]):
        return (
            f"{Code.THROTTLE}: its throttle lists have {', '.join(others)}, which topicops did not set; "
            "remove them if nothing needs them"
        )
    return ""


def has_rate(broker: BrokerNow, rate: int) -> bool:
    return not broker.unread and broker.leader_rate == broker.follower_rate == rate


def set_rates(sender: Sender, brokers: Brokers, wanted: Collection[int], rate: int) -> Mapping[int, str]:
    """Set our rate on those of these brokers that are live and lack it. Gives the ones where it cannot be, and why."""
    ours, failed, lacking = owned(sender.record), {}, dict[int, OwnedRate]()
    for broker in sorted(set(wanted) & brokers.keys()):
        now = brokers[broker]
        if reason := foreign_rate(now, ours.get(broker)):
            failed[broker] = reason
        elif not has_rate(now, rate) or ours.get(broker) != OwnedRate(broker=broker, rate=rate):
            replaced = _replaced(now, ours.get(broker), rate)
            was, others = next(iter(replaced), None), replaced[1:]
            lacking[broker] = OwnedRate(broker=broker, rate=rate, was=was, others=others)
    sender.keep(_with_rates(sender.record, {**ours, **lacking}))
    for broker, own in lacking.items():
        if has_rate(brokers[broker], rate) and own.was is None:
            continue
        if answer := sender.set_rate(broker, own.was, rate):
            failed[broker] = answer
    return failed


def _replaced(broker: BrokerNow, ours: OwnedRate | None, new: int) -> tuple[int, ...]:
    """Return the other rates of ours that the broker has, or may have: it may tell late of one that was set."""
    has_ours = ours is not None and ours.rate == new and has_rate(broker, new)
    told = (broker.leader_rate, broker.follower_rate)
    earlier = () if ours is None or has_ours else (ours.rate, ours.was, *ours.others)
    return tuple(dict.fromkeys(rate for rate in (*told, *earlier) if rate not in (None, new)))


def _with_rates(record: MovesRecord, rates: Mapping[int, OwnedRate]) -> MovesRecord:
    return replace(record, rates=tuple(rates[broker] for broker in sorted(rates)))


def remove_rates(sender: Sender, brokers: Brokers) -> None:
    """Remove our rates, broker by broker. A rate that cannot be removed now stays in the record, and is said."""
    left = dict(owned(sender.record))
    for broker, ours in owned(sender.record).items():
        now = brokers.get(broker)
        if now is None:
            sender.note(
                f"Broker {broker} is not live; a step after its return removes our throttle rate from it. If it never "
                f"comes back: topicops moves --forget-broker {broker}."
            )
        elif now.unread:
            sender.note(f"Broker {broker}: our throttle rate may still be set: {now.unread}.")
        elif reason := foreign_rate(now, ours):
            sender.note(f"Broker {broker}: {reason}.")
            if broker not in sender.rated:  # ours was replaced
                del left[broker]
        elif answer := sender.set_rate(broker, ours.rate, None):  # even if it tells of none: it may tell so later
            sender.note(f"Broker {broker} still has our throttle rate: {answer}; a later step removes it.")
        else:
            del left[broker]
    sender.keep(_with_rates(sender.record, left))
