"""Rules about replicas that move, and about throttles: those of others, and what is still to be done for our own."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import timedelta

from topicops.features.ask.doctor.findings import ERROR, NOTICE, WARNING, Finding, Rules, found, listed
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.model.printable import plural
from topicops.model.release import (
    CONFIGURES_TOPICS_BY_BROKERS,
    MISSES_MOVES,
    NO_ZOOKEEPER,
    REASSIGNMENTS_IN_TOPICS,
    USUAL,
    Release,
)
from topicops.model.runs.moves import KnownMoves
from topicops.steps.reporting.facts_wording import why_command

THROTTLE_LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
THROTTLE_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
CARRIED_ON_WITHIN = timedelta(hours=1)
"""Moves whose last step is older are carried on by nobody."""


class MoveRules(Rules):
    def moves_record(self) -> Iterator[Finding]:
        if problem := self.facts.moves_problem:
            fix = "do what the message says: until then no replica is moved, and whose moves run is not known"
            yield Finding(ERROR, f"the record of our moves cannot be read: {problem}", fix)

    def waiting_moves(self) -> Iterator[Finding]:
        """Moves end by themselves; without a step nobody starts the next ones, or removes the throttles."""
        record, now = self.facts.moves, self.facts.read_at
        if record.is_idle or now is None:
            return
        last = record.stepped_at
        if last is None or now - last > CARRIED_ON_WITHIN:
            since = f"since {last:%Y-%m-%d %H:%M} UTC" if last else "yet"
            message = f"no step of our moves was made {since}; moves or throttles are left:"
            name = self.environment.name
            fix = f"topicops moves --watch --environment {name}; in Airflow, see that topic_moves_{name} is not paused"
            yield from found(WARNING, message, _left(record), fix)

    def owed_moves(self) -> Iterator[Finding]:
        """What the last step said, such as a rate on a broker that is down."""
        if not self.facts.moves.is_idle:
            message = "our moves wait for something, or something is still to be done for them:"
            fix = f"do what the sentences say; topicops moves --environment {self.environment.name} shows all"
            yield from found(NOTICE, message, self.facts.moves.notes, fix)

    def reassignment(self) -> Iterator[Finding]:
        live, moving = self.live, _foreign(self.live, self.facts.moves)
        places = (f"{name}{_stuck(live, name)}" for name in moving)
        message = "replicas are being moved, or a move was left unfinished:"
        fix = f"wait until it has ended; {self._way_to_cancel(next(iter(moving), ''))}"
        return found(WARNING, message, places, fix, Code.REASSIGNMENT_RUNS)

    def leftover_throttle(self) -> Iterator[Finding]:
        """Without its list a rate holds nothing back, so the lists of the topics come first.

        Brokers before 2.5 take a rate for a secret, and name it only where it is set.
        """
        topics, moving = self.live.topics, _moving(self.live)
        lists = {
            name: throttles
            for name, topic in topics.items()
            if name not in moving and (throttles := _foreign_lists(topic, self.facts.moves))
        }
        rates = {
            b: set_here
            for b, broker in (self.facts.kafka.by_id if self.facts.kafka and not topics.keys() & moving else ())
            if b not in self.facts.moves.rates
            and (set_here := [rate for rate in THROTTLE_RATES if rate in {*broker.settings, *broker.hidden}])
        }
        places = [f"{name} ({each})" for name, found_here in lists.items() for each in found_here]
        places += [f"broker {b} ({rate})" for b, found_here in rates.items() for rate in found_here]
        fixes = [self._delete_config("topics", name, configs) for name, configs in [*lists.items()][:1]]
        fixes += [self._delete_config("brokers", str(b), configs) for b, configs in [*rates.items()][:1]]
        fix = (
            f"remove it, of each as of the first: {'; then '.join(fixes)}; without the lists of the topics no rate "
            "holds anything back, also not that of a broker that is down, which can be removed only when it is back"
        )
        return found(WARNING, "replication is throttled, and nothing is moved:", places, fix, Code.THROTTLE)

    @property
    def _oldest(self) -> Release:
        return min(self.facts.kafka.releases.values() if self.facts.kafka else (), default=USUAL)

    def _delete_config(self, kind: str, name: str, configs: list[str]) -> str:
        is_old = kind == "topics" and self._oldest < CONFIGURES_TOPICS_BY_BROKERS
        server = "--zookeeper HOST:PORT/CHROOT" if is_old else "--bootstrap-server HOST:PORT"
        entity = f"--entity-type {kind} --entity-name {shlex.quote(name)}"
        return f"kafka-configs.sh {server} --alter {entity} --delete-config {','.join(configs)}"

    def _way_to_cancel(self, topic: str) -> str:
        """Return what ends a reassignment that cannot end by itself, with the oldest of these brokers."""
        if self._oldest < REASSIGNMENTS_IN_TOPICS:
            return (
                f"Kafka {self._oldest} cannot cancel one that cannot end: when no other one runs, delete "
                "/admin/reassign_partitions with zookeeper-shell, and then /controller, so that the next controller "
                "does not know of it"
            )
        return (
            f"what takes one back that cannot end: {why_command(topic, self.environment.name)}; do not use --cancel of "
            f"Kafka's tool from {MISSES_MOVES} until before {NO_ZOOKEEPER}, which overlooks a move that only adds "
            "replicas, and removes the throttles of all brokers"
        )


def _moving(live: ClusterSnapshot) -> list[str]:
    return sorted({name for name, topic in live.topics.items() if topic.is_reassigning} | live.reassigning)


def _foreign(live: ClusterSnapshot, known: KnownMoves) -> list[str]:
    """Return the topics of which partitions move that we have not asked for."""
    ours = {topic: set(moves.asked) for topic, moves in known.topics.items()}
    moved = {topic: live.topics[topic].moving for topic in ours if topic in live.topics}
    return [name for name in _moving(live) if name not in ours or moved.get(name, set()) - ours[name]]


def _foreign_lists(topic: LiveTopic, known: KnownMoves) -> list[str]:
    """Return the throttle lists of a topic that have an entry which is not ours."""
    ours = known.topics[topic.name].entries if topic.name in known.topics else {}
    live = {name: {*map(str.strip, topic.overrides.get(name, "").split(","))} for name in THROTTLE_LISTS}
    return [name for name, entries in live.items() if entries - {"", *ours.get(name, ())}]


def _left(known: KnownMoves) -> list[str]:
    topics = [f"{topic} ({plural(len(moves.partitions), 'partition')})" for topic, moves in known.topics.items()]
    return [*topics, *(f"broker {broker} (throttle rate)" for broker in known.rates)]


def _stuck(live: ClusterSnapshot, name: str) -> str:
    topic = live.topics.get(name)
    if topic is None:
        return " (no such topic)"
    missing = sorted({broker for row in topic.adding.values() for broker in row} - live.brokers.keys())
    return f" (cannot end without broker {listed(missing)})" if missing else ""
