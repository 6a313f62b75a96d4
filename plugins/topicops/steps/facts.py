"""Facts of a run in plain Python: the reference for what Spark counts, and what is made of either's counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.model.errors import TopicopsError
from topicops.model.memory import TOPICS_AT_ONCE, in_parts
from topicops.model.plans.delta import Delta, TopicClass
from topicops.model.runs.facts import (
    CAUSES,
    DRIFT_CLASSES,
    Facts,
    Load,
    Owner,
    OwnerCounts,
    PartitionCounts,
    PartitionRow,
    UnhealthyPartitions,
    partition_rows,
)
from topicops.model.specs.desired import DesiredTopic
from topicops.steps.planning.placement.load import live_load

_NOBODY: Owner = (None, None)


class Owned(NamedTuple):
    """Topics of one owner that are in one class."""

    topics: int
    partitions: int
    """Live partitions of these topics."""


OwnedTopics = Mapping[tuple[Owner, TopicClass], Owned]


def facts_of(counts: PartitionCounts, live: ClusterSnapshot, owned: OwnedTopics | None = None) -> Facts:
    """Return the facts of one snapshot; with ``owned`` if files and cluster were compared.

    Raises ``TopicopsError``: The counts are not those that were made when the topics were read.
    """
    check_counted(counts, live)
    return Facts(
        owners=tuple(_owners(owned or {}, counts.unhealthy_by_owner)),
        load=(*_racks(counts, live), *_brokers(counts, live)),
        unhealthy=tuple(_unhealthy(counts, live.racks)),
        has_states=counts.leaders is not None,
    )


def check_counted(counts: PartitionCounts, live: ClusterSnapshot) -> None:
    """Check that no partition was left out or counted twice, where the reader has counted them too."""
    totals = live.totals
    if totals and (counts.replicas != totals.replicas or counts.preferred != totals.first_replicas):
        raise TopicopsError(
            f"facts: {sum(counts.replicas.values())} replicas were counted, and {sum(totals.replicas.values())} were "
            "read; run the step again"
        )


def counts_without_states(live: ClusterSnapshot) -> PartitionCounts:
    """Count a snapshot without partition states: the start of the plan's load table."""
    load = live_load(live)
    return PartitionCounts(replicas=load.replicas, preferred=load.leaders)


# ---- what Spark counts too ----


def owned_topics(desired: Iterable[DesiredTopic], live: ClusterSnapshot, delta: Delta) -> OwnedTopics:
    """Return how many topics and partitions of each owner are in each class."""
    listed = {row.topic: row.topic_class for row in delta.topics}
    owners = owners_of(desired)
    topics, partitions = Counter[tuple[Owner, TopicClass]](), Counter[tuple[Owner, TopicClass]]()
    for name in {*owners, *live.topics}:
        found = listed.get(name) or (TopicClass.SAME if name in live.topics else TopicClass.RETIRED)
        of = owners.get(name, _NOBODY), found
        topics[of] += 1
        partitions[of] += len(live.topics[name].assignment) if name in live.topics else 0
    return {of: Owned(number, partitions[of]) for of, number in topics.items()}


def owners_of(desired: Iterable[DesiredTopic]) -> Mapping[str, Owner]:
    """Return each topic's owner."""
    return {topic.name: (topic.owner, topic.domain) for topic in desired}


def partition_counts(live: ClusterSnapshot, owners: Mapping[str, Owner] | None = None) -> PartitionCounts:
    """Return what is counted over all partitions of a snapshot with states."""
    alike, leaders = Counter[tuple[int, ...]](), Counter[int]()
    unhealthy, unhealthy_by_owner = Counter[tuple[str, int | None]](), Counter[Owner]()
    for part in in_parts(live.topics, list(live.topics), size=TOPICS_AT_ONCE):
        for topic in part.values():
            alike.update(topic.target_assignment.values())
            leaders.update(_leaders(topic))
        for row in partition_rows(replace(live, topics=part)):
            causes = list(_causes(row))
            unhealthy.update(causes)
            unhealthy_by_owner.update([(owners or {}).get(row.topic, _NOBODY)] if causes else [])
    racks = {broker: rack for broker, rack in live.racks.items() if rack is not None}
    replicas, preferred, rack_partitions = Counter[int](), Counter[int](), Counter[str]()
    for brokers, partitions in alike.items():
        for broker in brokers:
            replicas[broker] += partitions
        preferred.update(dict.fromkeys(brokers[:1], partitions))
        rack_partitions.update(dict.fromkeys((racks[broker] for broker in brokers if broker in racks), partitions))
    return PartitionCounts(
        replicas=replicas,
        preferred=preferred,
        leaders=leaders,
        rack_partitions=rack_partitions,
        unhealthy=unhealthy,
        unhealthy_by_owner=unhealthy_by_owner,
    )


def _leaders(topic: LiveTopic) -> Iterator[int]:
    for partition, state in (topic.states or {}).items():
        if partition in topic.assignment and state.leader >= 0:
            yield state.leader


BROKERS_AT_FAULT: Mapping[str, Callable[[PartitionRow], Collection[int] | None]] = {
    Code.Q11: lambda row: None if row.leader_is_live else row.replicas[:1] if row.leader == -1 else [row.leader],
    Code.Q12: lambda row: row.missing_replicas or None,
    Code.Q13: lambda row: None if len(row.isr) >= row.min_isr else row.missing_replicas,
    Code.Q15: lambda row: None if row.racks_used >= row.racks_possible else (),
    Code.Q26: lambda row: None if row.leader == -1 or row.leader in row.isr else [row.leader],
    Code.Q27: lambda row: row.dead_replicas or None,
}
"""The brokers that make a partition break the rule, none where no single broker does; None if it holds."""


def _causes(row: PartitionRow) -> Iterator[tuple[str, int | None]]:
    for rule, at_fault in BROKERS_AT_FAULT.items():
        brokers = at_fault(row)
        if brokers is not None:
            yield from ((rule, broker) for broker in brokers or (None,))


# ---- facts of the counts ----


def _brokers(counts: PartitionCounts, live: ClusterSnapshot) -> Iterator[Load]:
    leaders = counts.leaders
    for broker in sorted({*live.brokers, *counts.replicas, *(leaders or ())}):
        replicas = counts.replicas.get(broker, 0)
        yield Load(
            broker=broker,
            rack=live.racks.get(broker),
            is_live=broker in live.brokers,
            partitions=replicas,
            replicas=replicas,
            preferred_leaders=counts.preferred.get(broker, 0),
            leaders=None if leaders is None else leaders.get(broker, 0),
        )


def _racks(counts: PartitionCounts, live: ClusterSnapshot) -> Iterator[Load]:
    brokers, partitions = list(_brokers(counts, live)), counts.rack_partitions
    for rack in sorted({load.rack for load in brokers if load.rack is not None}):
        members = [load for load in brokers if load.rack == rack]
        yield Load(
            broker=None,
            rack=rack,
            is_live=True,
            partitions=None if partitions is None else partitions.get(rack, 0),
            replicas=sum(load.replicas for load in members),
            preferred_leaders=sum(load.preferred_leaders for load in members),
            leaders=None if counts.leaders is None else sum(load.leaders or 0 for load in members),
        )


def _unhealthy(counts: PartitionCounts, racks: Mapping[int, str | None]) -> Iterator[UnhealthyPartitions]:
    order, unhealthy = list(CAUSES), counts.unhealthy or {}
    found = sorted(unhealthy, key=lambda at: (at[1] is None, at[1] or 0, order.index(at[0])))
    for rule, broker in found:
        rack = None if broker is None else racks.get(broker)
        yield UnhealthyPartitions(broker=broker, rack=rack, rule=rule, partitions=unhealthy[rule, broker])


def _owners(owned: OwnedTopics, unhealthy: Mapping[Owner, int] | None) -> Iterator[OwnerCounts]:
    """Yield those with topics, by name; topics that no file names come last."""
    classes: dict[Owner, dict[TopicClass, Owned]] = defaultdict(dict)
    for (owner, topic_class), found in owned.items():
        if topic_class is not TopicClass.RETIRED:
            classes[owner][topic_class] = found
    for owner in sorted(classes, key=lambda of: (of[0] is None, of[0] or "", of[1] or "")):
        of_owner = classes[owner]
        yield OwnerCounts(
            owner=owner[0],
            domain=owner[1],
            topics=sum(found.topics for found in of_owner.values()),
            partitions=sum(found.partitions for found in of_owner.values()),
            **{name.value: of_owner[name].topics if name in of_owner else 0 for name in DRIFT_CLASSES},
            unhealthy=None if unhealthy is None else unhealthy.get(owner, 0),
        )
