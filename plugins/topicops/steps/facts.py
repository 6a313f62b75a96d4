"""Facts of a run in plain Python: the reference for what Spark counts, and what is made of either's counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.codes import Code
from topicops.model.errors import TopicopsError
from topicops.model.plans.delta import Delta, TopicClass
from topicops.model.runs.facts import (
    CAUSES,
    Facts,
    Load,
    OwnedTopics,
    PartitionCounts,
    PartitionRow,
    UnhealthyPartitions,
    partition_rows,
)
from topicops.model.specs.desired import DesiredTopic, Lifecycle
from topicops.steps.planning.placement.load import live_load


def facts_of(counts: PartitionCounts, live: ClusterSnapshot, classes: Sequence[OwnedTopics] = ()) -> Facts:
    """Return the facts of one snapshot.

    Raises ``TopicopsError``: The counts are not those that were made when the topics were read.
    """
    check_counted(counts, live)
    return Facts(
        classes=tuple(sorted(classes, key=_by_owner)),
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


def classes_by_owner(desired: Iterable[DesiredTopic], delta: Delta) -> list[OwnedTopics]:
    """Return how many topics of each owner and domain are in each class."""
    listed = {row.topic: row.topic_class for row in delta.topics}
    found = Counter(
        (
            topic.owner,
            topic.domain,
            listed.get(topic.name) or (TopicClass.RETIRED if topic.lifecycle is Lifecycle.ABSENT else TopicClass.SAME),
        )
        for topic in desired
    )
    owned: list[OwnedTopics] = [
        OwnedTopics(owner=owner, domain=domain, topic_class=topic_class, topics=topics)
        for (owner, domain, topic_class), topics in found.items()
    ]
    if unmanaged := delta.counts[TopicClass.UNMANAGED]:
        owned.append(OwnedTopics(owner=None, domain=None, topic_class=TopicClass.UNMANAGED, topics=unmanaged))
    return owned


def partition_counts(live: ClusterSnapshot) -> PartitionCounts:
    """Return what is counted over all partitions of a snapshot that is in memory, with states."""
    rows = [row for topic in live.topics.values() for row in topic.target_assignment.values()]
    racks = {broker: rack for broker, rack in live.racks.items() if rack is not None}
    return PartitionCounts(
        replicas=Counter(broker for row in rows for broker in row),
        preferred=Counter(row[0] for row in rows if row),
        leaders=Counter(_leaders(live)),
        rack_partitions=Counter(rack for row in rows for rack in {racks[broker] for broker in row if broker in racks}),
        unhealthy=Counter(_causes(partition_rows(live))),
    )


def _leaders(live: ClusterSnapshot) -> Iterator[int]:
    for topic in live.topics.values():
        for partition, state in (topic.states or {}).items():
            if partition in topic.assignment and state.leader >= 0:
                yield state.leader


_BROKERS_AT_FAULT: Mapping[str, Callable[[PartitionRow], Collection[int] | None]] = {
    Code.Q11: lambda row: None if row.leader_is_live else row.replicas[:1] if row.leader == -1 else [row.leader],
    Code.Q12: lambda row: row.missing_replicas or None,
    Code.Q13: lambda row: None if len(row.isr) >= row.min_isr else row.missing_replicas,
    Code.Q15: lambda row: None if row.racks_used >= row.racks_possible else (),
    Code.Q26: lambda row: None if row.leader == -1 or row.leader in row.isr else [row.leader],
    Code.Q27: lambda row: row.dead_replicas or None,
}
"""The brokers that make a partition break the rule, none where no single broker does; None if it holds."""


def _causes(rows: Iterable[PartitionRow]) -> Iterator[tuple[str, int | None]]:
    for row in rows:
        for rule, at_fault in _BROKERS_AT_FAULT.items():
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


def _by_owner(owned: OwnedTopics) -> tuple[object, ...]:
    return (owned.owner is None, owned.owner or "", owned.domain or "", list(TopicClass).index(owned.topic_class))
