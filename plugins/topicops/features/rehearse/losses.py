"""The partitions of topics by name, counted by what decides their fate; and what the loss of any one rack costs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest

from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import UsageError
from topicops.model.json_types import FormatVersion
from topicops.steps.rack_losses import Fate, Kind, Racks, fate_of, kinds_of

EXAMPLES = 5
"""Number of partitions that are named for each rack; all are counted."""


@dataclass(frozen=True, slots=True, order=True)
class PartitionName:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class PartitionKinds:
    names: Mapping[Kind, list[PartitionName]]

    @classmethod
    def of(cls, live: ClusterSnapshot) -> PartitionKinds:
        """Count from a snapshot with states, without topics that are being deleted: no client can use them."""
        names: defaultdict[Kind, list[PartitionName]] = defaultdict(list)
        for topic in live.topics.values():
            if topic.name not in live.deleting:
                for p, kind in kinds_of(live, topic):
                    names[kind].append(PartitionName(topic.name, p))
        return cls(names)

    @property
    def partitions(self) -> int:
        return sum(len(names) for names in self.names.values())

    def fates(self, live: Collection[int]) -> Iterator[tuple[Kind, Fate, list[PartitionName]]]:
        for kind, names in self.names.items():
            yield kind, fate_of(kind, live), names

    def troubled(self, live: Collection[int]) -> tuple[list[PartitionName], list[PartitionName]]:
        """Give the partitions that are offline then, and those below their minimum that have a leader."""
        offline, below = list[PartitionName](), list[PartitionName]()
        for _, fate, names in self.fates(live):
            if fate.leader is None:
                offline += names
            elif fate.is_below_min_isr:
                below += names
        return offline, below

    def leaders(self, live: Collection[int]) -> Counter[int]:
        """Return how many partitions each broker leads then."""
        found = Counter[int]()
        for _, fate, names in self.fates(live):
            if fate.leader is not None:
                found[fate.leader] += len(names)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLoss:
    """The cluster without the brokers of one rack."""

    rack: str
    brokers: tuple[int, ...]
    offline: int
    """Number of partitions without a leader then, that have one now."""
    below_min_isr: int
    """Number of partitions with a leader then that refuse records with ``acks=all``, and take them now."""
    moved_leaders: int
    """Number of partitions that another broker leads then."""
    most_leaders: int
    """Greatest number of leaders on one broker then."""
    offline_examples: tuple[PartitionName, ...]
    below_examples: tuple[PartitionName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLosses:
    environment: str
    cluster_id: str
    after_plan: bool
    """Whether the cluster is as a plan would make it."""
    topics: int
    partitions: int
    offline_now: int
    below_min_isr_now: int
    most_leaders_now: int
    racks: tuple[RackLoss, ...]
    """Racks by name."""
    brokers_without_rack: tuple[int, ...]
    format_version: FormatVersion = "1.0"


def without_each_rack(live: ClusterSnapshot, *, environment: str, after_plan: bool = False) -> RackLosses:
    """Lose each rack in turn, on a snapshot with states. Raises ``UsageError`` where there are fewer than two."""
    racks = Racks.of(live)
    if not racks.one_can_be_lost:
        raise UsageError(
            "the brokers are on fewer than two racks, and the loss of one leaves no broker; set broker.rack"
        )
    kinds = PartitionKinds.of(live)
    now = {kind: fate for kind, fate, _ in kinds.fates(live.brokers.keys())}
    offline, below = kinds.troubled(live.brokers.keys())
    return RackLosses(
        environment=environment,
        cluster_id=live.cluster_id,
        after_plan=after_plan,
        topics=len(live.topics.keys() - live.deleting.keys()),
        partitions=kinds.partitions,
        offline_now=len(offline),
        below_min_isr_now=len(below),
        most_leaders_now=max(kinds.leaders(live.brokers.keys()).values(), default=0),
        racks=tuple(_without(rack, brokers, live, kinds, now) for rack, brokers in racks.brokers.items()),
        brokers_without_rack=racks.without,
    )


def _without(
    rack: str, brokers: Collection[int], live: ClusterSnapshot, kinds: PartitionKinds, now: Mapping[Kind, Fate]
) -> RackLoss:
    left = live.brokers.keys() - brokers
    offline, below, moved, leaders = list[PartitionName](), list[PartitionName](), 0, Counter[int]()
    for kind, fate, names in kinds.fates(left):
        if fate.leader is not None:
            leaders[fate.leader] += len(names)
        moved += len(names) * now[kind].changes_leader(fate)
        if now[kind].loses_leader(fate):
            offline += names
        elif now[kind].loses_min_isr(fate):
            below += names
    return RackLoss(
        rack=rack,
        brokers=tuple(sorted(brokers)),
        offline=len(offline),
        below_min_isr=len(below),
        moved_leaders=moved,
        most_leaders=max(leaders.values(), default=0),
        offline_examples=tuple(nsmallest(EXAMPLES, offline)),
        below_examples=tuple(nsmallest(EXAMPLES, below)),
    )
