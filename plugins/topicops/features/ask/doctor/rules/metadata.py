"""Rules about topics in the metadata: what Kafka accepted, what was written by hand, what a run left behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from topicops.features.ask.doctor.findings import ERROR, NOTICE, WARNING, Finding, Rules, found, listed, with_why
from topicops.model.cluster.health import PartitionHealth, health_of
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.steps.planning.blocking import ZNODE_FRAME_BYTES, ZNODE_LIMIT_BYTES
from topicops.steps.specs.rules.names import folded

NAMES_LIMIT_BYTES = 3_400_000
"""Four fifths of the longest answer that Kafka's client accepts: the names below one znode come in one answer."""


class TopicRules(Rules):
    def unregistered_broker(self) -> Iterator[Finding]:
        topics: dict[int, list[str]] = defaultdict(list)
        for name, topic in sorted(self.live.topics.items()):
            for broker in _brokers_of(topic.assignment) - self.live.brokers.keys():
                topics[broker].append(name)
        places = (f"broker {broker} ({listed(names)})" for broker, names in sorted(topics.items()))
        fix = "start the broker, or move its replicas to another one with kafka-reassign-partitions"
        return found(ERROR, "assignments name brokers that are not registered:", places, fix, Code.UNKNOWN_BROKER)

    def missing_state(self) -> Iterator[Finding]:
        places = [
            f"{topic.name}-{p}"
            for topic in _staying(self.live)
            for p in sorted(topic.assignment.keys() - (topic.states or {}).keys())
        ]
        if places:
            fix = "start a broker of its assignment; if there is none, remove its znodes and move the controller"
            fix = with_why(fix, places[0].rpartition("-")[0], self.environment.name)
            message = "partitions without a state, which no broker has ever led:"
            yield from found(ERROR, message, places, fix, Code.NO_STATE)

    def no_leader(self) -> Iterator[Finding]:
        offline = [(topic.name, p, health) for topic, p, health in _led(self.live) if health.is_offline]
        if offline:
            places = (f"{topic}-{p} (ISR {listed(health.isr)})" for topic, p, health in offline)
            fix = with_why("start a broker of the ISR that the message names", offline[0][0], self.environment.name)
            yield from found(ERROR, "partitions without a live leader:", places, fix, Code.NO_LEADER)

    def isr_outside_replicas(self) -> Iterator[Finding]:
        places = (
            f"{topic.name}-{p} (ISR {listed(health.isr)}, replicas {listed(topic.assignment[p])})"
            for topic, p, health in _led(self.live)
            if set(health.isr) - set(topic.assignment.get(p, ()))
        )
        fix = "a program other than Kafka wrote it: move the controller, then compare the state again"
        return found(ERROR, "an ISR names brokers that hold no replica:", places, fix, Code.STRANGE_STATE)

    def uneven_replication(self) -> Iterator[Finding]:
        places = (
            f"{topic.name} ({listed(sorted(topic.replication_factors))} replicas)"
            for topic in _staying(self.live)
            if len(topic.replication_factors) > 1
        )
        message = "partitions of one topic differ in their number of replicas:"
        fix = "give each partition the same number with kafka-reassign-partitions"
        return found(WARNING, message, places, fix, Code.MIXED_REPLICATION_FACTOR)

    def partition_gaps(self) -> Iterator[Finding]:
        topics = _staying(self.live)
        places = (topic.name for topic in topics if sorted(topic.assignment) != list(range(topic.partitions)))
        message = "partition ids have gaps, and an expansion would write over partitions:"
        return found(WARNING, message, places, "rebuild the topic; never expand it", Code.MALFORMED_PARTITIONS)

    def missing_topic_id(self) -> Iterator[Finding]:
        """Below inter-broker protocol 2.8 no topic has an id, so none is missing."""
        topics = self.live.topics
        places = [topic.name for topic in topics.values() if topic.topic_id is None]
        if len(places) < len(topics):
            fix = (
                "write the id that the brokers have (kafka-topics --describe) back into the topic znode before the "
                "controller moves: the next one would write a new id, which the brokers refuse"
            )
            yield from found(WARNING, "topics without a topic id, though others have one:", places, fix)

    def colliding_names(self) -> Iterator[Finding]:
        groups: dict[str, list[str]] = defaultdict(list)
        for name in sorted(self.live.topics):
            groups[folded(name)].append(name)
        places = (" and ".join(names) for names in groups.values() if len(names) > 1)
        message = "names that differ only by . and _ share their metrics:"
        return found(WARNING, message, places, "move to one of the two, then retire the other", Code.COLLIDES_WITH_LIVE)

    def orphan_config(self) -> Iterator[Finding]:
        message = "config znodes without a topic, left by a delete or created by hand:"
        fix = "remove /config/topics/<name> with zookeeper-shell"
        return found(WARNING, message, sorted(self.live.orphan_configs), fix)

    def missing_config(self) -> Iterator[Finding]:
        """Brokers write it before the topic; programs that write znodes themselves often do not."""
        message = "topics without a config znode, which no broker created:"
        fix = "find the program that writes to ZooKeeper; setting any config of the topic creates the znode"
        return found(NOTICE, message, self.session.topics_without_config, fix)

    def stuck_deletion(self) -> Iterator[Finding]:
        """A deletion that waits for a missing broker cannot end; any other may take as long as ``verify`` allows."""
        live, limit_ms = self.live, self.environment.spec.verify.deletes.total_seconds() * 1000
        places = []
        for name, age_ms in sorted(live.deleting.items()):
            topic = live.topics.get(name)
            missing = _brokers_of(topic.assignment) - live.brokers.keys() if topic else set()
            if missing or age_ms > limit_ms:
                waits = f", waits for broker {listed(sorted(missing))}" if missing else ""
                places.append(f"{name} ({age_ms // 1000} s{waits})")
        if places:
            fix = "start the missing broker, even empty, under its id; if none is missing, read the controller's log"
            fix = with_why(fix, places[0].partition(" ")[0], self.environment.name)
            yield from found(ERROR, "deletions that do not end:", places, fix, Code.BEING_DELETED)

    def wide_znode(self) -> Iterator[Finding]:
        """By their contents, as Kafka would write them: ZooKeeper closes a connection that writes 1 MiB."""
        topics = self.live.topics
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

    def unstable_topics(self) -> Iterator[Finding]:
        places = (topic.name for topic in self.live.topics.values() if topic.unstable)
        message = "topics that changed each time they were read:"
        return found(NOTICE, message, places, "find the program that keeps writing them")


def _topic_bytes(topic: LiveTopic) -> int:
    """Size of the topic's znode."""
    rows = (each for by in (topic.assignment, topic.adding, topic.removing) for each in by.items())
    return ZNODE_FRAME_BYTES + sum(len(f'"{p}":[],') + sum(len(str(b)) + 1 for b in row) for p, row in rows)


def _staying(live: ClusterSnapshot) -> Iterator[LiveTopic]:
    """Yield topics without a deletion marker: those that are being deleted have lost their leaders on purpose."""
    return (topic for name, topic in sorted(live.topics.items()) if name not in live.deleting)


def _led(live: ClusterSnapshot) -> Iterator[tuple[LiveTopic, int, PartitionHealth]]:
    """Yield each partition that has a state."""
    return (
        (topic, p, health_of(topic, p, live.brokers)) for topic in _staying(live) for p in sorted(topic.states or ())
    )


def _brokers_of(rows: Assignment) -> set[int]:
    return {broker for row in rows.values() for broker in row}
