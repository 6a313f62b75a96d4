"""Look at the live cluster and tell: what is wrong with it, and its topics through filters.

Nothing is written, to no cluster and to no run.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from topicops.edges.connections.lookup import kafka_properties, zookeeper_address
from topicops.flow.run import Run, cluster_reader, read_specs, with_broker_defaults
from topicops.model.cluster.doctor_facts import (
    Area,
    DoctorFacts,
    DoctorReport,
    KafkaFacts,
    KafkaRole,
    UnreadArea,
    ZooKeeperFacts,
)
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import TopicopsError
from topicops.model.ports import LiveReader
from topicops.model.specs.desired import Desired, Lifecycle
from topicops.model.specs.environment import Environment
from topicops.steps.doctor import examine
from topicops.steps.planning.cluster_guard import require_cluster, require_cluster_id
from topicops.steps.topic_listing import Listing, Wanted, list_topics


def topics(run: Run, wanted: Wanted) -> Listing:
    """The live topics that ``wanted`` lets through. Raises ``WrongTargetError`` for another cluster."""
    environment, desired = read_specs(run).require()
    with cluster_reader(run, environment) as reader:
        require_cluster_id(reader.cluster_id(), environment)
        live = reader.snapshot(states=bool(wanted.partitions))
    if wanted.partitions:
        live = with_broker_defaults(run, environment, live)
    return list_topics(live, wanted, environment=environment.name, managed=desired.topics)


def doctor(run: Run) -> DoctorReport:
    """What can be seen of the environment's cluster, and what is wrong with it; what cannot be read is a finding."""
    environment, desired = read_specs(run).require()
    unread: dict[Area, UnreadArea] = {}
    snapshot, zookeeper = _live_side(run, environment, unread)
    changing = _topics_to_change(desired, snapshot.topics if snapshot else ())
    kafka = _broker_side(run, environment, changing, unread)
    return examine(DoctorFacts(snapshot=snapshot, zookeeper=zookeeper, kafka=kafka, unread=unread), environment)


def _live_side(
    run: Run, environment: Environment, unread: dict[Area, UnreadArea]
) -> tuple[ClusterSnapshot | None, ZooKeeperFacts | None]:
    try:
        with cluster_reader(run, environment) as reader:
            snapshot = _whole_snapshot(reader, environment, unread)
            return snapshot, _zookeeper_side(run, environment, reader, is_whole=snapshot is not None)
    except TopicopsError as error:
        area: Area = "zookeeper" if environment.spec.cluster.source == "zookeeper" else "snapshot"
        unread[area] = UnreadArea(message=str(error), code=error.code)
        return None, None


def _whole_snapshot(
    reader: LiveReader, environment: Environment, unread: dict[Area, UnreadArea]
) -> ClusterSnapshot | None:
    """Of the environment's own cluster, with states; None and a problem where there is none to be had."""
    try:
        snapshot = reader.snapshot(states=True)
        require_cluster(snapshot, environment)
    except TopicopsError as error:
        unread["snapshot"] = UnreadArea(message=str(error), code=error.code)
        return None
    return snapshot


def _zookeeper_side(run: Run, environment: Environment, reader: LiveReader, *, is_whole: bool) -> ZooKeeperFacts | None:
    from topicops.edges.zookeeper.diagnosis import tls_context
    from topicops.edges.zookeeper.probe import undecodable_znodes, zookeeper_facts
    from topicops.edges.zookeeper.reader import ZooKeeperReader

    if not isinstance(reader, ZooKeeperReader):
        return None
    tls = zookeeper_address(environment, run.connections).tls
    facts = zookeeper_facts(reader, tls=tls_context(tls) if tls else None)
    return facts if is_whole else replace(facts, undecodable=undecodable_znodes(reader))


def _topics_to_change(desired: Desired, live: Container[str]) -> dict[KafkaRole, list[str]]:
    """Live topics that a role may have to change for git: the deleter those with a tombstone."""
    named = [topic for name, topic in sorted(desired.topics.items()) if name in live]
    return {
        "applier": [topic.name for topic in named if topic.lifecycle is not Lifecycle.ABSENT],
        "deleter": [topic.name for topic in named if topic.lifecycle is Lifecycle.ABSENT],
    }


def _broker_side(
    run: Run,
    environment: Environment,
    topics: Mapping[KafkaRole, Sequence[str]],
    unread: dict[Area, UnreadArea],
) -> KafkaFacts | None:
    from topicops.edges.kafka.probe import kafka_facts

    roles: tuple[KafkaRole, ...] = ("reader", "applier", "deleter")
    try:
        properties = {role: kafka_properties(environment, role, run.connections) for role in roles}
        return kafka_facts(properties, topics=topics)
    except TopicopsError as error:
        unread["brokers"] = UnreadArea(message=str(error), code=error.code)
        return None
