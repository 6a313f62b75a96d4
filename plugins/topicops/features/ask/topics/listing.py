"""Live topics with their owners and files, through the filters of Kafka's own ``kafka-topics --describe``.

Source: org.apache.kafka.tools.TopicCommand (3.9).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from topicops.features.shared.listed_partitions import ListedPartition, listed_partitions
from topicops.flow.runs.access import read_live_topics
from topicops.flow.runs.files import read_needed_specs
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.cluster.broker_defaults import is_known
from topicops.model.cluster.health import PartitionHealth
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.json_types import FormatVersion
from topicops.model.printable import plural, printable
from topicops.model.specs.desired import DesiredTopic, Lifecycle
from topicops.model.specs.topic_config import MIN_ISR
from topicops.steps.reporting.document import Section, as_text
from topicops.steps.reporting.facts_wording import why_command, why_commands
from topicops.steps.specs.needed import no_topic

FILTERS: Mapping[str, Callable[[PartitionHealth], bool]] = {
    "under-replicated": lambda health: health.is_under_replicated,
    "under-min-isr": lambda health: health.refuses_all_acks,
    "at-min-isr": lambda health: health.is_at_min_isr,
    "unavailable": lambda health: health.is_offline,
}
"""Filters of partitions, by the option of the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingPartition:
    """One partition as the brokers show it to clients."""

    partition: int
    leader: int | None
    """Broker id; None means that there is none, or that its broker is not registered."""
    replicas: tuple[int, ...]
    """All, with those that are being added."""
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    min_isr: int
    """Number of the topic, else of the brokers, as Kafka's tool takes it: also above the replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingTopic:
    name: str
    topic_id: str | None
    partitions: int
    replication_factor: int
    """Number of replicas of the first partition, as Kafka counts: without those that are being added."""
    overrides: Mapping[str, str]
    managed: bool
    deleting: bool
    matching_partitions: tuple[MatchingPartition, ...] | None
    """Partitions that pass the filters, by id; None means that no filter of partitions was asked for."""
    why: str | None
    """Command that says why; None means that the topic stays, and that each partition listed is healthy."""
    owner: str | None = None
    """None, as ``file`` and ``state``, means that no valid file describes the topic."""
    file: str | None = None
    state: Lifecycle | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What ``list`` prints."""

    format_version: FormatVersion = "1.0"
    environment: str
    cluster_id: str
    source: str
    knows_broker_defaults: bool | None
    """False: Kafka's own ``min.insync.replicas``, 1, was used. None means that no partition was filtered."""
    topics_read: int
    topics: tuple[MatchingTopic, ...]
    """Topics by name."""


def read_topics(run: EnvironmentRun, wanted: Collection[str], name: str | None) -> Listing:
    """Read the live topics that ``wanted`` and a glob let through. Raises ``WrongTargetError`` for another cluster."""
    environment, desired = read_needed_specs(run.files, no_topic, run.progress).require()
    access, filters = run.access(environment), FILTERS.keys() & set(wanted)
    live = read_live_topics(access, states=bool(filters))
    if filters:
        live = access.with_broker_answers(live)
    managed = {**dict.fromkeys(desired.left_out), **desired.topics}
    prefix = environment.prefix
    return list_topics(live, wanted, environment=environment.name, managed=managed, name=name, prefix=prefix)


def list_topics(
    snapshot: ClusterSnapshot,
    wanted: Collection[str],
    *,
    environment: str,
    managed: Mapping[str, DesiredTopic | None],
    name: str | None = None,
    prefix: str = "",
) -> Listing:
    """Filter a snapshot, which must hold the states where partitions are filtered.

    A topic that is marked for deletion has no partitions to filter: the brokers have stopped telling of it.

    Args:
        wanted: Options of the command: keys of ``FILTERS``, ``with-overrides``, ``unmanaged``. All must hold at once.
        managed: Topics with a file; None where it has errors.
        name: A glob; None lets every name through.
        prefix: Begins the names of the environment's topics; partitions of others are listed, too.
    """
    found, filters = [], [passes for option, passes in FILTERS.items() if option in wanted]
    for topic in sorted(snapshot.topics.values(), key=lambda topic: topic.name):
        described, is_deleting = managed.get(topic.name), topic.name in snapshot.deleting
        passing: list[ListedPartition] | None = None
        if filters:
            listed = () if is_deleting else listed_partitions(snapshot, topic)
            passing = [each for each in listed if all(passes(each.health) for passes in filters)]
        is_left_out = ("unmanaged" in wanted and topic.name in managed) or not fnmatchcase(topic.name, name or "*")
        is_elsewhere = not topic.name.startswith(prefix) and ("unmanaged" in wanted or not filters)
        if is_left_out or is_elsewhere or passing == [] or ("with-overrides" in wanted and not topic.overrides):
            continue
        health, first = [each.health for each in passing or ()], min(topic.assignment, default=-1)
        is_healthy = not any(each.is_under_replicated or each.refuses_all_acks for each in health)
        found.append(
            MatchingTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=topic.partitions,
                replication_factor=len(set(topic.assignment.get(first, ())) - set(topic.adding.get(first, ()))),
                overrides=dict(sorted(topic.overrides.items())),
                managed=topic.name in managed,
                deleting=is_deleting,
                matching_partitions=None if passing is None else tuple(map(_partition, passing)),
                why=None if is_healthy and not is_deleting else why_command(topic.name, environment),
                owner=described.owner if described else None,
                file=described.location.file if described else None,
                state=described.lifecycle if described else None,
            )
        )
    return Listing(
        environment=environment,
        cluster_id=snapshot.cluster_id,
        source=snapshot.source,
        knows_broker_defaults=is_known(snapshot.default_of(MIN_ISR)) if filters else None,
        topics_read=len(snapshot.topics),
        topics=tuple(found),
    )


def _partition(listed: ListedPartition) -> MatchingPartition:
    return MatchingPartition(
        partition=listed.id,
        leader=listed.leader,
        replicas=listed.replicas,
        isr=listed.health.isr,
        adding=listed.adding,
        removing=listed.removing,
        min_isr=listed.health.min_isr,
    )


def topics_table(listing: Listing) -> str:
    """Return a line for each topic: its name, owner, file, state, partitions and replication factor."""
    rows = []
    for topic in listing.topics:
        state = "being deleted" if topic.deleting else topic.state or ("bad file" if topic.managed else "unmanaged")
        numbers = (str(topic.partitions), str(topic.replication_factor))
        rows.append((topic.name, topic.owner or "-", topic.file or "-", state, *numbers))
    head = ("topic", "owner", "file", "state", "partitions", "replicas")
    return as_text([Section(head=head, rows=rows)]).rstrip("\n")


def topics_text(listing: Listing) -> str:
    """Return Kafka's own lines, tabs included: of the partitions where those were filtered, else of the topics."""
    return "\n".join("\t".join(map(printable, cells)) for topic in listing.topics for cells in _lines(topic))


def topics_summary(listing: Listing) -> str:
    """Say how much of what was read is listed, on one line."""
    topics = f"{len(listing.topics):,} of {plural(listing.topics_read, 'topic')}"
    rows = [len(topic.matching_partitions) for topic in listing.topics if topic.matching_partitions is not None]
    return f"{topics}, {plural(sum(rows), 'partition')}" if rows else topics


def topics_ways(listing: Listing) -> list[str]:
    """Return the command that says why, for each listed topic that is not healthy or still being deleted."""
    return why_commands((topic.name for topic in listing.topics if topic.why), listing.environment)


def _lines(topic: MatchingTopic) -> Iterator[list[str]]:
    if topic.matching_partitions is not None:
        yield from (_cells(topic.name, partition) for partition in topic.matching_partitions)
        return
    yield [
        f"Topic: {topic.name}",
        *([f"TopicId: {topic.topic_id}"] if topic.topic_id else []),
        f"PartitionCount: {topic.partitions}",
        f"ReplicationFactor: {topic.replication_factor}",
        f"Configs: {','.join(f'{name}={value}' for name, value in topic.overrides.items())}",
        *(["MarkedForDeletion: true"] if topic.deleting else []),
    ]


def _cells(topic: str, partition: MatchingPartition) -> list[str]:
    leader = "none" if partition.leader is None else partition.leader
    brokers = {"Replicas": partition.replicas, "Isr": partition.isr}
    if partition.adding or partition.removing:
        brokers |= {"Adding Replicas": partition.adding, "Removing Replicas": partition.removing}
    joined = (f"{name}: {','.join(map(str, ids))}" for name, ids in brokers.items())
    return ["", f"Topic: {topic}", f"Partition: {partition.partition}", f"Leader: {leader}", *joined]
