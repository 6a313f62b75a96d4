"""What each broker holds: while replicas are handed out, and before and after a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from topicops.model.cluster.snapshot import ClusterSnapshot, LogDirectories
from topicops.model.plans.changes import Change, CreateTopic, DeleteTopic, ExpandTopic, ReassignTopic
from topicops.model.plans.plan import BrokerLoad, LoadTable, RackLoad, Share
from topicops.steps.planning.placement.request import Load


class Tally:
    """The counts for one topic, on live brokers with their racks."""

    def __init__(self, racks: Mapping[int, str], *, topic: Load, cluster: Load) -> None:
        """Count a ``cluster`` that holds ``topic``; a broker that is not live may be in both."""
        self._racks = racks
        self._rack_sizes = Counter(racks.values())
        self._cluster = Counter(cluster.replicas)
        self._cluster_leaders = Counter(cluster.leaders)
        self._topic = Counter(topic.replicas)
        self._topic_by_rack: Counter[str] = Counter()
        for broker in racks:
            self._topic_by_rack[racks[broker]] += self._topic[broker]

    def grown(self, row: Sequence[int], size: int) -> tuple[int, ...]:
        """Fill the row up to ``size``, from unused racks while there are any, with the brokers that hold least.

        The first broker of a row counts as its leader.
        """
        found = list(row)
        while len(found) < size:
            broker = min(self._candidates(found), key=self._weight)
            self._cluster_leaders[broker] += not found
            self._count(broker, +1)
            found.append(broker)
        return tuple(found)

    def _candidates(self, row: Sequence[int]) -> list[int]:
        used = {self._racks[broker] for broker in row}
        free = [broker for broker in self._takers() if broker not in row]
        return [broker for broker in free if self._racks[broker] not in used] or free

    def _takers(self) -> Collection[int]:
        """Return the brokers that may get replicas."""
        return self._racks

    def _weight(self, broker: int) -> tuple[float, ...]:
        """Least first. Without the rack's part, the last brokers that lack a replica could all be on one rack.

        They could not share a row then, and another broker would get a replica too many.
        """
        rack = self._racks[broker]
        of_rack = self._topic_by_rack[rack] / self._rack_sizes[rack]
        return self._topic[broker], of_rack, self._cluster[broker], self._cluster_leaders[broker], broker

    def _count(self, broker: int, step: int) -> None:
        self._topic[broker] += step
        self._topic_by_rack[self._racks[broker]] += step
        self._cluster[broker] += step


NOTHING = Load()


def load_table(live: ClusterSnapshot, changes: Sequence[Change], before: Load | None = None) -> LoadTable:
    """Count replicas and first replicas on every live broker, without the changes and with all of them.

    A replica that a running reassignment takes away is not counted. Empty when no change places or moves a replica.

    Args:
        before: Of all live topics, where it has been counted already.
    """
    placed = [change.assignment for change in changes if isinstance(change, CreateTopic | ExpandTopic | ReassignTopic)]
    if not placed:
        return LoadTable()
    deleted = {change.topic for change in changes if isinstance(change, DeleteTopic)}
    before = live_load(live) if before is None else before
    left = [change.assignment_before for change in changes if isinstance(change, ReassignTopic)]
    gone = Load.of([*left, *(live.topics[name].target_assignment for name in deleted if name in live.topics)])
    new = Load.of(placed)
    brokers = tuple(
        BrokerLoad(
            broker=broker, rack=rack, before=_share(broker, before), after=_share(broker, before, new, less=gone)
        )
        for broker, rack in sorted(live.racks.items())
    )
    return LoadTable(brokers=brokers, racks=tuple(_racks(brokers)), free_bytes=_free_bytes(live, changes))


def _free_bytes(live: ClusterSnapshot, changes: Iterable[Change]) -> Mapping[int, int]:
    """Return what brokers that get copies have free with them, by broker; what is taken away frees nothing before."""
    copied = Counter[int]()
    for change in changes:
        if isinstance(change, ReassignTopic) and change.copied_bytes is not None:
            each = change.copied_bytes // max(1, change.added_replicas)
            copied.update({broker: count * each for broker, count in change.added.items()})
    told = ((broker, (live.log_directories or {}).get(broker)) for broker in sorted(copied))
    free = {broker: found.free_bytes for broker, found in told if isinstance(found, LogDirectories)}
    return {broker: max(0, size - copied[broker]) for broker, size in free.items() if size is not None}


def live_load(live: ClusterSnapshot) -> Load:
    """Count all live topics, as they will be after running reassignments; of a snapshot as it was read."""
    if live.totals:
        load = Load(replicas=live.totals.replicas, leaders=live.totals.first_replicas)
        for name in live.accepted_moves.keys() & live.topics.keys():
            rows = live.topics[name].target_assignment
            moved = {p: row for p, row in live.accepted_moves[name].items() if p in rows}
            load = load.plus(moved).minus({p: rows[p] for p in moved})
        return load
    live = live.with_accepted_moves
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
