"""Partitions after a loss, counted by what decides their fate, so that a large cluster costs little more than a pass.

Partitions with the same replicas, state and settings share their fate. A cluster of 200,000 partitions has a few
thousand kinds of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from topicops.controller.context import UNCLEAN_ELECTION, elects_unclean
from topicops.controller.losses import after_loss
from topicops.model.cluster.health import PartitionHealth
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, PartitionState
from topicops.model.specs.topic_config import min_insync_replicas, needed_in_sync


class Kind(NamedTuple):
    """All that decides what becomes of a partition."""

    replicas: tuple[int, ...]
    leader: int
    isr: tuple[int, ...]
    needed: int
    """In-sync replicas without which producers with ``acks=all`` fail."""
    unclean: bool
    has_state: bool


class Fate(NamedTuple):
    """A kind of partition once only some brokers are live."""

    leader: int | None
    """None: offline."""
    isr: tuple[int, ...]
    """Of live brokers."""
    is_below_min_isr: bool
    """Or offline: producers with ``acks=all`` fail."""

    def loses_leader(self, then: Fate) -> bool:
        """Whether it has a leader now and none ``then``."""
        return self.leader is not None and then.leader is None

    def loses_min_isr(self, then: Fate) -> bool:
        """Whether a leader takes records with ``acks=all`` now, and one refuses them ``then``."""
        return then.leader is not None and then.is_below_min_isr and not self.is_below_min_isr

    def changes_leader(self, then: Fate) -> bool:
        """Whether another broker leads it ``then``."""
        return then.leader not in (None, self.leader)


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

    def leaders(self, live: Collection[int]) -> Counter[int]:
        """How many partitions each broker leads then."""
        found = Counter[int]()
        for _, fate, names in self.fates(live):
            if fate.leader is not None:
                found[fate.leader] += len(names)
        return found


def elects_unclean_by_default(live: ClusterSnapshot) -> bool:
    """Whether a controller may elect a replica that lacks records; any broker may become the controller."""
    given = (defaults for defaults in (live.broker_defaults or {}).values() if not isinstance(defaults, str))
    return any(elects_unclean(defaults.get(UNCLEAN_ELECTION)) for defaults in given)


def kinds_of(live: ClusterSnapshot, topic: LiveTopic) -> Iterator[tuple[int, Kind]]:
    """The kind of each partition, by id."""
    least = min_insync_replicas(topic.overrides, live.broker_defaults)
    unclean = elects_unclean(topic.overrides.get(UNCLEAN_ELECTION), default=elects_unclean_by_default(live))
    states = topic.states or {}
    for p, replicas in topic.assignment.items():
        state = states.get(p)
        yield (
            p,
            Kind(
                replicas=replicas,
                leader=state.leader if state else -1,
                isr=state.isr if state else (),
                needed=needed_in_sync(least, len(replicas), live.releases),
                unclean=unclean,
                has_state=state is not None,
            ),
        )


def fate_of(kind: Kind, live: Collection[int]) -> Fate:
    """What becomes of a partition of this kind. One that never had a leader gets none by a loss."""
    if not kind.has_state:
        return Fate(leader=None, isr=(), is_below_min_isr=True)
    before = PartitionState(leader=kind.leader, isr=kind.isr, leader_epoch=0, controller_epoch=0, version=0)
    gone = [broker for broker in kind.replicas if broker not in live]
    state = after_loss(before, kind.replicas, live=live, lost=gone, unclean=kind.unclean)
    isr = tuple(broker for broker in state.isr if broker in live)
    health = PartitionHealth(kind.replicas, state.leader, isr, live, kind.needed)
    return Fate(None if health.is_offline else state.leader, isr, is_below_min_isr=health.refuses_all_acks)


@dataclass(frozen=True, slots=True)
class Racks:
    """The live brokers by rack."""

    brokers: Mapping[str, frozenset[int]]
    """Racks by name."""
    without: tuple[int, ...]
    """Brokers that name no rack."""

    @classmethod
    def of(cls, live: ClusterSnapshot) -> Racks:
        racks = {found.rack for found in live.brokers.values() if found.rack is not None}
        return cls(
            {rack: frozenset(b for b, found in live.brokers.items() if found.rack == rack) for rack in sorted(racks)},
            tuple(sorted(b for b, found in live.brokers.items() if found.rack is None)),
        )

    @property
    def one_can_be_lost(self) -> bool:
        """Whether the loss of any one rack leaves a broker."""
        return bool(self.brokers) and len(self.brokers) + bool(self.without) > 1
