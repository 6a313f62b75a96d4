"""Rules about topics as they stand in the metadata: what Kafka accepted, a hand wrote, or a run left behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from topicops.model.cluster.doctor_facts import DoctorFacts, Severity
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic, PartitionState
from topicops.model.specs.environment import Environment
from topicops.steps.doctor.rule import Trouble, listed, live_of, zookeeper_of
from topicops.steps.planning.blocking import ZNODE_FRAME_BYTES, ZNODE_LIMIT_BYTES
from topicops.steps.specs.rules.names import folded

THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
THROTTLE_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
NAMES_LIMIT_BYTES = 3_400_000
"""Four fifths of the longest answer that Kafka's client takes: the names below one znode come in one answer."""


def znodes_are_readable(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    """Looked at only where no snapshot could be made: that stops at the first of them."""
    undecodable = zookeeper_of(examined).undecodable
    if undecodable:
        places = tuple(sentence.partition(";")[0] for sentence in undecodable)
        fix = undecodable[0].partition("; ")[2] or "find out which program wrote it"
        yield Trouble(Severity.ERROR, f"znodes that cannot be read: {listed(places)}", fix, places=places)


def assigned_brokers_are_registered(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    live = live_of(examined)
    topics_by_broker: dict[int, set[str]] = defaultdict(set)
    for topic in live.topics.values():
        for broker in {broker for row in topic.assignment.values() for broker in row} - live.brokers.keys():
            topics_by_broker[broker].add(topic.name)
    if topics_by_broker:
        places = tuple(
            f"broker {broker} ({listed(sorted(topics))})" for broker, topics in sorted(topics_by_broker.items())
        )
        message = f"assignments name brokers that are not registered: {listed(places)}"
        fix = "start the broker, or move its replicas to another one with kafka-reassign-partitions"
        yield Trouble(Severity.ERROR, message, fix, "TOP602", places)


def partitions_have_a_state(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    places = tuple(
        f"{topic.name}-{p}"
        for topic in _staying(live_of(examined))
        for p in sorted(topic.assignment.keys() - (topic.states or {}).keys())
    )
    if places:
        message = f"partitions without a state, which no broker has ever led: {listed(places)}"
        fix = "start a broker of its assignment; if there is none, have its znodes removed and the controller moved"
        yield Trouble(Severity.ERROR, message, fix, "TOP601", places)


def partitions_have_a_leader(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    live = live_of(examined)
    places = tuple(
        f"{topic.name}-{p} (ISR {listed(map(str, state.isr))})"
        for topic, p, state in _states(live)
        if state.leader not in live.brokers
    )
    if places:
        message = f"partitions without a live leader: {listed(places)}"
        yield Trouble(Severity.ERROR, message, "start a broker of the ISR that the message names", "TOP601", places)


def isrs_are_replicas(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    places = tuple(
        f"{topic.name}-{p} (ISR {listed(map(str, state.isr))}, replicas {listed(map(str, topic.assignment[p]))})"
        for topic, p, state in _states(live_of(examined))
        if set(state.isr) - set(topic.assignment.get(p, ()))
    )
    if places:
        message = f"an ISR names brokers that hold no replica: {listed(places)}"
        fix = "something else than Kafka wrote it: move the controller, and compare the state again"
        yield Trouble(Severity.ERROR, message, fix, "TOP602", places)


def replication_is_even(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    places = tuple(
        f"{topic.name} ({listed(map(str, sorted(topic.replication_factors)))} replicas)"
        for topic in _staying(live_of(examined))
        if len(topic.replication_factors) > 1
    )
    if places:
        message = f"partitions of one topic differ in their number of replicas: {listed(places)}"
        fix = "give each partition the same number with kafka-reassign-partitions"
        yield Trouble(Severity.WARNING, message, fix, "TOP423", places)


def partition_ids_have_no_gaps(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    places = tuple(
        topic.name for topic in _staying(live_of(examined)) if sorted(topic.assignment) != list(range(topic.partitions))
    )
    if places:
        message = f"partition ids have gaps, and an expansion would write over partitions: {listed(places)}"
        yield Trouble(Severity.WARNING, message, "rebuild the topic; never expand it", "TOP426", places)


def topics_have_an_id(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    """Below inter-broker protocol 2.8 no topic has one, and nothing is missing."""
    live = live_of(examined)
    places = tuple(topic.name for topic in live.topics.values() if topic.topic_id is None)
    if places and len(places) < len(live.topics):
        message = f"topics without a topic id, though others have one: {listed(places)}"
        fix = (
            "write the id that the brokers have (kafka-topics --describe) back into the topic znode before the "
            "controller moves: the next one would give a new id, which the brokers then refuse"
        )
        yield Trouble(Severity.WARNING, message, fix, places=places)


def names_do_not_collide(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(live_of(examined).topics):
        groups[folded(name)].append(name)
    places = tuple(" and ".join(names) for names in groups.values() if len(names) > 1)
    if places:
        message = f"names that differ by . and _ only share their metrics: {listed(places)}"
        yield Trouble(Severity.WARNING, message, "move to one of the two, then retire the other", "TOP417", places)


def configs_have_a_topic(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    places = tuple(sorted(live_of(examined).orphan_configs))
    if places:
        message = f"config znodes without a topic, left by a delete or made by a hand: {listed(places)}"
        fix = "have /config/topics/<name> removed with zookeeper-shell"
        yield Trouble(Severity.WARNING, message, fix, places=places)


def topics_have_a_config(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    """Brokers write it before the topic; who writes znodes by hand often does not."""
    places = zookeeper_of(examined).topics_without_config
    if places:
        message = f"topics without a config znode, which no broker made: {listed(places)}"
        fix = "find out who writes to ZooKeeper; setting any config of the topic makes the znode"
        yield Trouble(Severity.NOTICE, message, fix, places=places)


def deletions_end(examined: DoctorFacts, environment: Environment) -> Iterator[Trouble]:
    """A marker that waits for a broker which is not there has no end; others have as long as ``verify`` gives them."""
    live, limit_ms = live_of(examined), environment.spec.verify.deletes.total_seconds() * 1000
    places = []
    for name, age_ms in sorted(live.deleting.items()):
        topic = live.topics.get(name)
        missing = _brokers_of(topic) - live.brokers.keys() if topic else set()
        if missing or age_ms > limit_ms:
            waits = f", waits for broker {listed(map(str, sorted(missing)))}" if missing else ""
            places.append(f"{name} ({age_ms // 1000} s{waits})")
    if places:
        message = f"deletions that do not end: {listed(places)}"
        fix = "start the missing broker, even empty, under its id; without one, look in the controller's log"
        yield Trouble(Severity.ERROR, message, fix, "TOP418", tuple(places))


def nothing_is_reassigned(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    live = live_of(examined)
    moving = sorted({topic.name for topic in live.topics.values() if topic.is_reassigning} | live.reassigning)
    if moving:
        places = tuple(f"{name}{_stuck(live, name)}" for name in moving)
        message = f"replicas are being moved, or a move was left behind: {listed(places)}"
        fix = "wait until it has ended; one that cannot end is called off by kafka-reassign-partitions --cancel"
        yield Trouble(Severity.WARNING, message, fix, "TOP419", places)


def throttles_are_gone(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    live = live_of(examined)
    places = tuple(
        f"{topic.name} ({name})"
        for topic in live.topics.values()
        for name in THROTTLES
        if topic.overrides.get(name, "").strip() and not _is_moving(live, topic)
    )
    if not any(_is_moving(live, topic) for topic in live.topics.values()):
        places += tuple(_throttled_brokers(examined))
    if places:
        message = f"replication is throttled, and nothing is moved: {listed(places)}"
        fix = "remove it: kafka-reassign-partitions --verify does, kafka-configs can"
        yield Trouble(Severity.WARNING, message, fix, "TOP313", places)


def znodes_are_small(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    """By their contents, as Kafka would write them: ZooKeeper loses a connection that writes 1 MiB."""
    live = live_of(examined)
    sizes = {f"/brokers/topics/{topic.name}": topic_bytes(topic) for topic in live.topics.values()}
    sizes |= {f"/config/topics/{topic.name}": config_bytes(topic) for topic in live.topics.values()}
    wide = {path: size for path, size in sizes.items() if size > ZNODE_LIMIT_BYTES}
    names = sum(len(name) + 4 for name in live.topics)
    if names > NAMES_LIMIT_BYTES:
        wide["the names below /brokers/topics"] = names
    if wide:
        places = tuple(f"{path} ({size} bytes)" for path, size in wide.items())
        message = f"near the 1 MiB that ZooKeeper takes in one request, or 4 MiB in one answer: {listed(places)}"
        fix = "fewer partitions, shorter overrides or fewer topics: a topic at the limit cannot be changed any more"
        yield Trouble(Severity.WARNING, message, fix, "TOP428", places)


def topics_rest(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    places = tuple(topic.name for topic in live_of(examined).topics.values() if topic.unstable)
    if places:
        message = f"topics that changed each time they were looked at: {listed(places)}"
        yield Trouble(Severity.NOTICE, message, "find out what writes them all the time", places=places)


def topic_bytes(topic: LiveTopic) -> int:
    """Size of the topic's znode."""
    return ZNODE_FRAME_BYTES + sum(map(_rows_bytes, (topic.assignment, topic.adding, topic.removing)))


def config_bytes(topic: LiveTopic) -> int:
    """Size of the config znode, in UTF-8."""
    return 25 + sum(len(f'"{name}":"{value}",'.encode()) for name, value in topic.overrides.items())


def _rows_bytes(rows: Assignment) -> int:
    return sum(len(f'"{p}":[],') + sum(len(str(broker)) + 1 for broker in row) for p, row in rows.items())


def _staying(live: ClusterSnapshot) -> Iterator[LiveTopic]:
    """Topics that nobody has asked to delete: those that go have lost their leaders on purpose."""
    return (topic for name, topic in sorted(live.topics.items()) if name not in live.deleting)


def _states(live: ClusterSnapshot) -> Iterator[tuple[LiveTopic, int, PartitionState]]:
    for topic in _staying(live):
        for p, state in sorted((topic.states or {}).items()):
            yield topic, p, state


def _is_moving(live: ClusterSnapshot, topic: LiveTopic) -> bool:
    return topic.is_reassigning or topic.name in live.reassigning


def _throttled_brokers(examined: DoctorFacts) -> Iterator[str]:
    """``broker 1 (leader.replication.throttled.rate)``; without a rate that was set a broker names none."""
    brokers = examined.kafka.brokers if examined.kafka else {}
    for broker, facts in sorted(brokers.items()):
        yield from (f"broker {broker} ({name})" for name in THROTTLE_RATES if name in facts.settings)


def _brokers_of(topic: LiveTopic) -> set[int]:
    return {broker for row in topic.assignment.values() for broker in row}


def _stuck(live: ClusterSnapshot, name: str) -> str:
    topic = live.topics.get(name)
    if topic is None:
        return " (no such topic)"
    missing = sorted({broker for row in topic.adding.values() for broker in row} - live.brokers.keys())
    return f" (cannot end without broker {listed(map(str, missing))})" if missing else ""
