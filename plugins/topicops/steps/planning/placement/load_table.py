"""What a plan does to the load of each broker and rack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.plans.changes import Change, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plans.plan import BrokerLoad, LoadTable, RackLoad, Share
from topicops.steps.planning.placement.request import Load

NOTHING = Load()


def load_table(live: ClusterSnapshot, changes: Sequence[Change], before: Load | None = None) -> LoadTable:
    """Count replicas and first replicas on every live broker, without the changes and with all of them.

    A replica that a running reassignment takes away is not counted. Empty when no change places a replica.

    Args:
        before: Of all live topics, where it has been counted already.
    """
    placed = [change.assignment for change in changes if isinstance(change, CreateTopic | ExpandTopic)]
    if not placed:
        return LoadTable()
    deleted = {change.topic for change in changes if isinstance(change, DeleteTopic)}
    before = live_load(live) if before is None else before
    gone = Load.of(live.topics[name].target_assignment for name in deleted if name in live.topics)
    new = Load.of(placed)
    brokers = tuple(
        BrokerLoad(
            broker=broker, rack=rack, before=_share(broker, before), after=_share(broker, before, new, less=gone)
        )
        for broker, rack in sorted(live.racks.items())
    )
    return LoadTable(brokers=brokers, racks=tuple(_racks(brokers)))


def live_load(live: ClusterSnapshot) -> Load:
    """Of all live topics, as it will be when running reassignments have ended."""
    if live.totals:
        return Load(replicas=live.totals.replicas, leaders=live.totals.first_replicas)
    return Load.of(topic.target_assignment for topic in live.topics.values())


def _racks(brokers: Sequence[BrokerLoad]) -> Iterator[RackLoad]:
    for rack in sorted({load.rack for load in brokers if load.rack is not None}):
        members = [load for load in brokers if load.rack == rack]
        yield RackLoad(
            rack=rack,
            brokers=len(members),
            before=_sum(load.before for load in members),
            after=_sum(load.after for load in members),
        )


def _share(broker: int, *loads: Load, less: Load = NOTHING) -> Share:
    return Share(
        replicas=sum(load.replicas.get(broker, 0) for load in loads) - less.replicas.get(broker, 0),
        leaders=sum(load.leaders.get(broker, 0) for load in loads) - less.leaders.get(broker, 0),
    )


def _sum(shares: Iterable[Share]) -> Share:
    found = list(shares)
    return Share(replicas=sum(s.replicas for s in found), leaders=sum(s.leaders for s in found))
