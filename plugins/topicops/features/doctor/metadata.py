"""Rules about topics in the metadata: what Kafka accepted, what was written by hand, what a run left behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from topicops.features.doctor.values import (
    ERROR,
    NOTICE,
    WARNING,
    DoctorFacts,
    Finding,
    found,
    listed,
    needed,
    with_why,
)
from topicops.model.cluster.health import PartitionHealth, health_of
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.model.release import CANCELS_MOVES, REASSIGNMENTS_IN_TOPICS
from topicops.steps.planning.blocking import ZNODE_FRAME_BYTES, ZNODE_LIMIT_BYTES
from topicops.steps.specs.rules.names import folded

THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
THROTTLE_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
NAMES_LIMIT_BYTES = 3_400_000
"""Four fifths of the longest answer that Kafka's client accepts: the names below one znode come in one answer."""
START_OR_MOVE = "start the broker, or move its replicas to another one with kafka-reassign-partitions"
START_OR_REMOVE = "start a broker of its assignment; if there is none, remove its znodes and move the controller"


def znodes_are_readable(facts: DoctorFacts) -> Iterator[Finding]:
    """Read only when there is no snapshot, because a snapshot stops at the first such znode."""
    undecodable = needed(facts.zookeeper).undecodable
    fix = undecodable[0].partition("; ")[2] if undecodable else ""
    places = (sentence.partition(";")[0] for sentence in undecodable)
    return found(ERROR, "znodes that cannot be read:", places, fix or "find out which program wrote it")


def assigned_brokers_are_registered(facts: DoctorFacts) -> Iterator[Finding]:
    message = "assignments name brokers that are not registered:"
    return found(ERROR, message, missing_brokers(needed(facts.snapshot)), START_OR_MOVE, Code.UNKNOWN_BROKER)


def partitions_have_a_state(facts: DoctorFacts) -> Iterator[Finding]:
    if places := partitions_without_state(needed(facts.snapshot)):
        fix = with_why(START_OR_REMOVE, places[0].rpartition("-")[0], facts.environment.name)
        yield from found(ERROR, "partitions without a state, which no broker has ever led:", places, fix, Code.NO_STATE)


def partitions_have_a_leader(facts: DoctorFacts) -> Iterator[Finding]:
    offline = [(topic.name, p, health) for topic, p, health in _led(needed(facts.snapshot)) if health.is_offline]
    if offline:
        places = (f"{topic}-{p} (ISR {listed(health.isr)})" for topic, p, health in offline)
        fix = with_why("start a broker of the ISR that the message names", offline[0][0], facts.environment.name)
        yield from found(ERROR, "partitions without a live leader:", places, fix, Code.NO_LEADER)


def isrs_are_replicas(facts: DoctorFacts) -> Iterator[Finding]:
    places = (
        f"{topic.name}-{p} (ISR {listed(health.isr)}, replicas {listed(topic.assignment[p])})"
        for topic, p, health in _led(needed(facts.snapshot))
        if set(health.isr) - set(topic.assignment.get(p, ()))
    )
    fix = "a program other than Kafka wrote it: move the controller, then compare the state again"
    return found(ERROR, "an ISR names brokers that hold no replica:", places, fix, Code.STRANGE_STATE)


def replication_is_even(facts: DoctorFacts) -> Iterator[Finding]:
    places = (
        f"{topic.name} ({listed(sorted(topic.replication_factors))} replicas)"
        for topic in _staying(needed(facts.snapshot))
        if len(topic.replication_factors) > 1
    )
    message = "partitions of one topic differ in their number of replicas:"
    fix = "give each partition the same number with kafka-reassign-partitions"
    return found(WARNING, message, places, fix, Code.MIXED_REPLICATION_FACTOR)


def partition_ids_have_no_gaps(facts: DoctorFacts) -> Iterator[Finding]:
    topics = _staying(needed(facts.snapshot))
    places = (topic.name for topic in topics if sorted(topic.assignment) != list(range(topic.partitions)))
    message = "partition ids have gaps, and an expansion would write over partitions:"
    return found(WARNING, message, places, "rebuild the topic; never expand it", Code.MALFORMED_PARTITIONS)


def topics_have_an_id(facts: DoctorFacts) -> Iterator[Finding]:
    """Below inter-broker protocol 2.8 no topic has an id, so none is missing."""
    topics = needed(facts.snapshot).topics
    places = [topic.name for topic in topics.values() if topic.topic_id is None]
    if len(places) < len(topics):
        fix = (
            "write the id that the brokers have (kafka-topics --describe) back into the topic znode before the "
            "controller moves: the next one would write a new id, which the brokers refuse"
        )
        yield from found(WARNING, "topics without a topic id, though others have one:", places, fix)


def names_do_not_collide(facts: DoctorFacts) -> Iterator[Finding]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(needed(facts.snapshot).topics):
        groups[folded(name)].append(name)
    places = (" and ".join(names) for names in groups.values() if len(names) > 1)
    message = "names that differ only by . and _ share their metrics:"
    return found(WARNING, message, places, "move to one of the two, then retire the other", Code.COLLIDES_WITH_LIVE)


def configs_have_a_topic(facts: DoctorFacts) -> Iterator[Finding]:
    message = "config znodes without a topic, left by a delete or created by hand:"
    fix = "remove /config/topics/<name> with zookeeper-shell"
    return found(WARNING, message, sorted(needed(facts.snapshot).orphan_configs), fix)


def topics_have_a_config(facts: DoctorFacts) -> Iterator[Finding]:
    """Brokers write it before the topic; programs that write znodes themselves often do not."""
    message = "topics without a config znode, which no broker created:"
    fix = "find the program that writes to ZooKeeper; setting any config of the topic creates the znode"
    return found(NOTICE, message, needed(facts.zookeeper).topics_without_config, fix)


def deletions_end(facts: DoctorFacts) -> Iterator[Finding]:
    """A deletion that waits for a missing broker cannot end; any other may take as long as ``verify`` allows."""
    live, limit_ms = needed(facts.snapshot), facts.environment.spec.verify.deletes.total_seconds() * 1000
    places = []
    for name, age_ms in sorted(live.deleting.items()):
        topic = live.topics.get(name)
        missing = _brokers_of(topic.assignment) - live.brokers.keys() if topic else set()
        if missing or age_ms > limit_ms:
            waits = f", waits for broker {listed(sorted(missing))}" if missing else ""
            places.append(f"{name} ({age_ms // 1000} s{waits})")
    if places:
        fix = "start the missing broker, even empty, under its id; if none is missing, read the controller's log"
        fix = with_why(fix, places[0].partition(" ")[0], facts.environment.name)
        yield from found(ERROR, "deletions that do not end:", places, fix, Code.BEING_DELETED)


def nothing_is_reassigned(facts: DoctorFacts) -> Iterator[Finding]:
    live = needed(facts.snapshot)
    places = (f"{name}{_stuck(live, name)}" for name in moving_topics(live))
    message = "replicas are being moved, or a move was left unfinished:"
    fix = f"wait until it has ended; {way_to_cancel(facts)}"
    return found(WARNING, message, places, fix, Code.REASSIGNMENT_RUNS)


def throttles_are_gone(facts: DoctorFacts) -> Iterator[Finding]:
    topics, moving = needed(facts.snapshot).topics, moving_topics(needed(facts.snapshot))
    places = [
        f"{name} ({throttle})"
        for name, topic in topics.items()
        for throttle in THROTTLES
        if topic.overrides.get(throttle, "").strip() and name not in moving
    ]
    if facts.kafka and not topics.keys() & moving:
        places += [
            f"broker {b} ({r})" for b, broker in facts.kafka.by_id for r in THROTTLE_RATES if r in broker.settings
        ]
    fix = "remove it: kafka-reassign-partitions --verify does, kafka-configs can"
    return found(WARNING, "replication is throttled, and nothing is moved:", places, fix, Code.THROTTLE)


def znodes_are_small(facts: DoctorFacts) -> Iterator[Finding]:
    """By their contents, as Kafka would write them: ZooKeeper closes a connection that writes 1 MiB."""
    topics = needed(facts.snapshot).topics
    sizes = {f"/brokers/topics/{name}": _topic_bytes(topic) for name, topic in topics.items()}
    for name, topic in topics.items():
        config = (f'"{config}":"{value}",' for config, value in topic.overrides.items())
        sizes[f"/config/topics/{name}"] = 25 + sum(len(text.encode()) for text in config)
    wide = {path: size for path, size in sizes.items() if size > ZNODE_LIMIT_BYTES}
    names = sum(len(name) + 4 for name in topics)
    if names > NAMES_LIMIT_BYTES:
        wide["the names below /brokers/topics"] = names
    places = (f"{path} ({size} bytes)" for path, size in wide.items())
    message = "near the limit of 1 MiB for a request to ZooKeeper, or of 4 MiB for an answer:"
    fix = "use fewer partitions, shorter overrides or fewer topics: a topic at the limit cannot be changed"
    return found(WARNING, message, places, fix, Code.LARGE_ZNODE)


def topics_are_stable(facts: DoctorFacts) -> Iterator[Finding]:
    places = (topic.name for topic in needed(facts.snapshot).topics.values() if topic.unstable)
    message = "topics that changed each time they were read:"
    return found(NOTICE, message, places, "find the program that keeps writing them")


def way_to_cancel(facts: DoctorFacts) -> str:
    """What ends a reassignment that cannot end by itself, with the oldest of these brokers."""
    oldest = min(facts.kafka.releases.values() if facts.kafka else (), default=CANCELS_MOVES)
    if oldest >= CANCELS_MOVES:
        return "cancel one that cannot end with kafka-reassign-partitions --cancel"
    if oldest >= REASSIGNMENTS_IN_TOPICS:
        return f"cancel one that cannot end with kafka-reassign-partitions --cancel of Kafka {CANCELS_MOVES} or later"
    return (
        f"Kafka {oldest} cannot cancel one that cannot end: when no other one runs, delete /admin/reassign_partitions "
        "with zookeeper-shell, and then /controller, so that the next controller does not know of it"
    )


def missing_brokers(live: ClusterSnapshot) -> list[str]:
    """``broker 9 (orders)`` for each that assignments name and that is not registered, with its topics."""
    topics_by_broker: dict[int, list[str]] = defaultdict(list)
    for name, topic in sorted(live.topics.items()):
        for broker in _brokers_of(topic.assignment) - live.brokers.keys():
            topics_by_broker[broker].append(name)
    return [f"broker {broker} ({listed(topics)})" for broker, topics in sorted(topics_by_broker.items())]


def moving_topics(live: ClusterSnapshot) -> list[str]:
    return sorted({name for name, topic in live.topics.items() if topic.is_reassigning} | live.reassigning)


def partitions_without_state(live: ClusterSnapshot) -> list[str]:
    """``topic-partition`` of each, without those of topics that are being deleted."""
    return [
        f"{topic.name}-{p}"
        for topic in _staying(live)
        for p in sorted(topic.assignment.keys() - (topic.states or {}).keys())
    ]


def _topic_bytes(topic: LiveTopic) -> int:
    """Size of the topic's znode."""
    rows = (each for by in (topic.assignment, topic.adding, topic.removing) for each in by.items())
    return ZNODE_FRAME_BYTES + sum(len(f'"{p}":[],') + sum(len(str(b)) + 1 for b in row) for p, row in rows)


def _staying(live: ClusterSnapshot) -> Iterator[LiveTopic]:
    """Topics without a deletion marker: those that are being deleted have lost their leaders on purpose."""
    return (topic for name, topic in sorted(live.topics.items()) if name not in live.deleting)


def _led(live: ClusterSnapshot) -> Iterator[tuple[LiveTopic, int, PartitionHealth]]:
    """Each partition that has a state."""
    return (
        (topic, p, health_of(topic, p, live.brokers)) for topic in _staying(live) for p in sorted(topic.states or ())
    )


def _brokers_of(rows: Assignment) -> set[int]:
    return {broker for row in rows.values() for broker in row}


def _stuck(live: ClusterSnapshot, name: str) -> str:
    topic = live.topics.get(name)
    if topic is None:
        return " (no such topic)"
    missing = sorted(_brokers_of(topic.adding) - live.brokers.keys())
    return f" (cannot end without broker {listed(missing)})" if missing else ""
