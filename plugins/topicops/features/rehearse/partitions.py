"""The partitions of topics by name, counted by what decides their fate."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.steps.rack_losses import Fate, Kind, fate_of, kinds_of


@dataclass(frozen=True, slots=True, order=True)
class PartitionName:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class PartitionKinds:
    """All partitions of some topics, by kind."""

    names: Mapping[Kind, list[PartitionName]]

    @classmethod
    def of(cls, live: ClusterSnapshot, topics: Iterable[LiveTopic]) -> PartitionKinds:
        """Topics of a snapshot with states; those that are being deleted are left out: nobody can use them."""
        names: defaultdict[Kind, list[PartitionName]] = defaultdict(list)
        for topic in topics:
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
        """How many partitions each broker leads then."""
        found = Counter[int]()
        for _, fate, names in self.fates(live):
            if fate.leader is not None:
                found[fate.leader] += len(names)
        return found
