"""Rules about topics in the metadata: what Kafka accepted, what was written by hand, what a run left behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from topicops.model.cluster.doctor_facts import DoctorFacts, Finding, Severity
from topicops.model.cluster.health import PartitionHealth, health_of
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.model.release import CANCELS_MOVES, REASSIGNMENTS_IN_TOPICS
from topicops.model.specs.environment import Environment
from topicops.steps.doctor.rule import listed, live_of, with_why, zookeeper_of
from topicops.steps.planning.blocking import ZNODE_FRAME_BYTES, ZNODE_LIMIT_BYTES
from topicops.steps.specs.rules.names import folded

THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
THROTTLE_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
NAMES_LIMIT_BYTES = 3_400_000
"""Four fifths of the longest answer that Kafka's client accepts: the names below one znode come in one answer."""


def znodes_are_readable(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """Read only when there is no snapshot, because a snapshot stops at the first such znode."""
    undecodable = zookeeper_of(facts).undecodable
    if undecodable:
        places = tuple(sentence.partition(";")[0] for sentence in undecodable)
        fix = undecodable[0].partition("; ")[2] or "find out which program wrote it"
        yield Finding(Severity.ERROR, f"znodes that cannot be read: {listed(places)}", fix, places=places)


def assigned_brokers_are_registered(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    topics_by_broker = topics_by_missing_broker(live_of(facts))
    if topics_by_broker:
        places = tuple(
            f"broker {broker} ({listed(sorted(topics))})" for broker, topics in sorted(topics_by_broker.items())
        )
        message = f"assignments name brokers that are not registered: {listed(places)}"
        fix = "start the broker, or move its replicas to another one with kafka-reassign-partitions"
        yield Finding(Severity.ERROR, message, fix, Code.UNKNOWN_BROKER, places)


def partitions_have_a_state(facts: DoctorFacts, environment: Environment) -> Iterator[Finding]:
    places = partitions_without_state(live_of(facts))
    if places:
        message = f"partitions without a state, which no broker has ever led: {listed(places)}"
        fix = "start a broker of its assignment; if there is none, remove its znodes and move the controller"
        fix = with_why(fix, places[0].rpartition("-")[0], environment)
        yield Finding(Severity.ERROR, message, fix, Code.NO_STATE, places)


def partitions_have_a_leader(facts: DoctorFacts, environment: Environment) -> Iterator[Finding]:
    live = live_of(facts)
    found = [(topic.name, p, health) for topic, p, health in _led(live) if health.is_offline]
    if found:
        places = tuple(f"{topic}-{p} (ISR {listed(map(str, health.isr))})" for topic, p, health in found)
        message = f"partitions without a live leader: {listed(places)}"
        fix = with_why("start a broker of the ISR that the message names", found[0][0], environment)
        yield Finding(Severity.ERROR, message, fix, Code.NO_LEADER, places)


def isrs_are_replicas(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = tuple(
        f"{topic.name}-{p} (ISR {listed(map(str, health.isr))}, replicas {listed(map(str, topic.assignment[p]))})"
        for topic, p, health in _led(live_of(facts))
        if set(health.isr) - set(topic.assignment.get(p, ()))
    )
    if places:
        message = f"an ISR names brokers that hold no replica: {listed(places)}"
        fix = "a program other than Kafka wrote it: move the controller, then compare the state again"
        yield Finding(Severity.ERROR, message, fix, Code.STRANGE_STATE, places)


def replication_is_even(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = tuple(
        f"{topic.name} ({listed(map(str, sorted(topic.replication_factors)))} replicas)"
        for topic in _staying(live_of(facts))
        if len(topic.replication_factors) > 1
    )
    if places:
        message = f"partitions of one topic differ in their number of replicas: {listed(places)}"
        fix = "give each partition the same number with kafka-reassign-partitions"
        yield Finding(Severity.WARNING, message, fix, Code.MIXED_REPLICATION_FACTOR, places)


def partition_ids_have_no_gaps(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = tuple(
        topic.name for topic in _staying(live_of(facts)) if sorted(topic.assignment) != list(range(topic.partitions))
    )
    if places:
        message = f"partition ids have gaps, and an expansion would write over partitions: {listed(places)}"
        yield Finding(
            Severity.WARNING, message, "rebuild the topic; never expand it", Code.MALFORMED_PARTITIONS, places
        )


def topics_have_an_id(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """Below inter-broker protocol 2.8 no topic has an id, so none is missing."""
    live = live_of(facts)
    places = tuple(topic.name for topic in live.topics.values() if topic.topic_id is None)
    if places and len(places) < len(live.topics):
        message = f"topics without a topic id, though others have one: {listed(places)}"
        fix = (
            "write the id that the brokers have (kafka-topics --describe) back into the topic znode before the "
            "controller moves: the next one would write a new id, which the brokers refuse"
        )
        yield Finding(Severity.WARNING, message, fix, places=places)


def names_do_not_collide(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(live_of(facts).topics):
        groups[folded(name)].append(name)
    places = tuple(" and ".join(names) for names in groups.values() if len(names) > 1)
    if places:
        message = f"names that differ only by . and _ share their metrics: {listed(places)}"
        yield Finding(
            Severity.WARNING, message, "move to one of the two, then retire the other", Code.COLLIDES_WITH_LIVE, places
        )


def configs_have_a_topic(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = tuple(sorted(live_of(facts).orphan_configs))
    if places:
        message = f"config znodes without a topic, left by a delete or created by hand: {listed(places)}"
        fix = "remove /config/topics/<name> with zookeeper-shell"
        yield Finding(Severity.WARNING, message, fix, places=places)


def topics_have_a_config(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """Brokers write it before the topic; programs that write znodes themselves often do not."""
    places = zookeeper_of(facts).topics_without_config
    if places:
        message = f"topics without a config znode, which no broker created: {listed(places)}"
        fix = "find the program that writes to ZooKeeper; setting any config of the topic creates the znode"
        yield Finding(Severity.NOTICE, message, fix, places=places)


def deletions_end(facts: DoctorFacts, environment: Environment) -> Iterator[Finding]:
    """A deletion that waits for a missing broker cannot end; any other may take as long as ``verify`` allows."""
    live, limit_ms = live_of(facts), environment.spec.verify.deletes.total_seconds() * 1000
    places = []
    for name, age_ms in sorted(live.deleting.items()):
        topic = live.topics.get(name)
        missing = _brokers_of(topic) - live.brokers.keys() if topic else set()
        if missing or age_ms > limit_ms:
            waits = f", waits for broker {listed(map(str, sorted(missing)))}" if missing else ""
            places.append(f"{name} ({age_ms // 1000} s{waits})")
    if places:
        message = f"deletions that do not end: {listed(places)}"
        fix = "start the missing broker, even empty, under its id; if none is missing, read the controller's log"
        fix = with_why(fix, places[0].partition(" ")[0], environment)
        yield Finding(Severity.ERROR, message, fix, Code.BEING_DELETED, tuple(places))


def nothing_is_reassigned(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    live = live_of(facts)
    moving = sorted({topic.name for topic in live.topics.values() if topic.is_reassigning} | live.reassigning)
    if moving:
        places = tuple(f"{name}{_stuck(live, name)}" for name in moving)
        message = f"replicas are being moved, or a move was left unfinished: {listed(places)}"
        fix = f"wait until it has ended; {way_to_cancel(facts)}"
        yield Finding(Severity.WARNING, message, fix, Code.REASSIGNMENT_RUNS, places)


def throttles_are_gone(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    live = live_of(facts)
    places = tuple(
        f"{topic.name} ({name})"
        for topic in live.topics.values()
        for name in THROTTLES
        if topic.overrides.get(name, "").strip() and not _is_moving(live, topic)
    )
    if not any(_is_moving(live, topic) for topic in live.topics.values()):
        places += tuple(_throttled_brokers(facts))
    if places:
        message = f"replication is throttled, and nothing is moved: {listed(places)}"
        fix = "remove it: kafka-reassign-partitions --verify does, kafka-configs can"
        yield Finding(Severity.WARNING, message, fix, Code.THROTTLE, places)


def znodes_are_small(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """By their contents, as Kafka would write them: ZooKeeper closes a connection that writes 1 MiB."""
    live = live_of(facts)
    sizes = {f"/brokers/topics/{topic.name}": topic_bytes(topic) for topic in live.topics.values()}
    sizes |= {f"/config/topics/{topic.name}": config_bytes(topic) for topic in live.topics.values()}
    wide = {path: size for path, size in sizes.items() if size > ZNODE_LIMIT_BYTES}
    names = sum(len(name) + 4 for name in live.topics)
    if names > NAMES_LIMIT_BYTES:
        wide["the names below /brokers/topics"] = names
    if wide:
        places = tuple(f"{path} ({size} bytes)" for path, size in wide.items())
        message = f"near the limit of 1 MiB for a request to ZooKeeper, or of 4 MiB for an answer: {listed(places)}"
        fix = "use fewer partitions, shorter overrides or fewer topics: a topic at the limit cannot be changed"
        yield Finding(Severity.WARNING, message, fix, Code.LARGE_ZNODE, places)


def topics_are_stable(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = tuple(topic.name for topic in live_of(facts).topics.values() if topic.unstable)
    if places:
        message = f"topics that changed each time they were read: {listed(places)}"
        yield Finding(Severity.NOTICE, message, "find the program that keeps writing them", places=places)


def way_to_cancel(facts: DoctorFacts) -> str:
    """What ends a reassignment that cannot end by itself, with the oldest of these brokers."""
    brokers = facts.kafka.brokers.values() if facts.kafka else ()
    oldest = min((broker.release for broker in brokers if broker.release), default=CANCELS_MOVES)
    if oldest >= CANCELS_MOVES:
        return "cancel one that cannot end with kafka-reassign-partitions --cancel"
    if oldest >= REASSIGNMENTS_IN_TOPICS:
        return f"cancel one that cannot end with kafka-reassign-partitions --cancel of Kafka {CANCELS_MOVES} or later"
    return (
        f"Kafka {oldest} cannot cancel one that cannot end: when no other one runs, delete /admin/reassign_partitions "
        "with zookeeper-shell, and then /controller, so that the next controller does not know of it"
    )


def topics_by_missing_broker(live: ClusterSnapshot) -> Mapping[int, AbstractSet[str]]:
    """Topics with a replica on a broker that is not registered, by that broker."""
    found: dict[int, set[str]] = defaultdict(set)
    for topic in live.topics.values():
        for broker in _brokers_of(topic) - live.brokers.keys():
            found[broker].add(topic.name)
    return found


def partitions_without_state(live: ClusterSnapshot) -> tuple[str, ...]:
    """``topic-partition`` of each, without those of topics that are being deleted."""
    return tuple(
        f"{topic.name}-{p}"
        for topic in _staying(live)
        for p in sorted(topic.assignment.keys() - (topic.states or {}).keys())
    )


def topic_bytes(topic: LiveTopic) -> int:
    """Size of the topic's znode."""
    return ZNODE_FRAME_BYTES + sum(map(_rows_bytes, (topic.assignment, topic.adding, topic.removing)))


def config_bytes(topic: LiveTopic) -> int:
    """Size of the config znode, in UTF-8."""
    return 25 + sum(len(f'"{name}":"{value}",'.encode()) for name, value in topic.overrides.items())


def _rows_bytes(rows: Assignment) -> int:
    return sum(len(f'"{p}":[],') + sum(len(str(broker)) + 1 for broker in row) for p, row in rows.items())


def _staying(live: ClusterSnapshot) -> Iterator[LiveTopic]:
    """Topics without a deletion marker: those that are being deleted have lost their leaders on purpose."""
    return (topic for name, topic in sorted(live.topics.items()) if name not in live.deleting)


def _led(live: ClusterSnapshot) -> Iterator[tuple[LiveTopic, int, PartitionHealth]]:
    """Each partition that has a state."""
    for topic in _staying(live):
        for p in sorted(topic.states or {}):
            yield topic, p, health_of(topic, p, live.brokers)


def _is_moving(live: ClusterSnapshot, topic: LiveTopic) -> bool:
    return topic.is_reassigning or topic.name in live.reassigning


def _throttled_brokers(facts: DoctorFacts) -> Iterator[str]:
    """``broker 1 (leader.replication.throttled.rate)`` for each rate that is set."""
    brokers = facts.kafka.brokers if facts.kafka else {}
    for b, broker in sorted(brokers.items()):
        yield from (f"broker {b} ({name})" for name in THROTTLE_RATES if name in broker.settings)


def _brokers_of(topic: LiveTopic) -> set[int]:
    return {broker for row in topic.assignment.values() for broker in row}


def _stuck(live: ClusterSnapshot, name: str) -> str:
    topic = live.topics.get(name)
    if topic is None:
        return " (no such topic)"
    missing = sorted({broker for row in topic.adding.values() for broker in row} - live.brokers.keys())
    return f" (cannot end without broker {listed(map(str, missing))})" if missing else ""
