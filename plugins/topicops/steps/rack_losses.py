"""The loss of each rack before a plan and after it, counted in one pass over the topics of a snapshot.

Partitions with the same replicas, state and settings share their fate. A cluster of 200,000 partitions has a few
thousand kinds of them, so that a large cluster costs little more than a pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, assert_never

from topicops.model.cluster.broker_defaults import is_known
from topicops.model.cluster.health import (
    NO_STATE,
    UNCLEAN_ELECTION,
    PartitionHealth,
    after_loss,
    elects_unclean,
    first_state,
)
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic, PartitionState
from topicops.model.memory import in_parts
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic, ReassignTopic
from topicops.model.plans.plan import Loss, RackLossRow, RackLossTable
from topicops.model.specs.topic_config import MIN_ISR, min_insync_replicas, needed_in_sync

TOPICS_AT_ONCE = 2_000


class Kind(NamedTuple):
    """All that decides what becomes of a partition."""

    replicas: tuple[int, ...]
    leader: int
    isr: tuple[int, ...]
    needed: int
    """Number of in-sync replicas without which producers with ``acks=all`` fail."""
    unclean: bool
    has_state: bool


class Fate(NamedTuple):
    """A kind of partition once only some brokers are live."""

    leader: int | None
    """Broker that leads it; None means that it is offline."""
    isr: tuple[int, ...]
    """In-sync replicas on live brokers."""
    is_below_min_isr: bool
    """Whether producers with ``acks=all`` fail, as they also do if it is offline."""

    def loses_leader(self, then: Fate) -> bool:
        """Return whether it has a leader now and none ``then``."""
        return self.leader is not None and then.leader is None

    def loses_min_isr(self, then: Fate) -> bool:
        """Return whether a leader takes records with ``acks=all`` now, and one refuses them ``then``."""
        return then.leader is not None and then.is_below_min_isr and not self.is_below_min_isr

    def changes_leader(self, then: Fate) -> bool:
        """Return whether another broker leads it ``then``."""
        return then.leader not in (None, self.leader)


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


Kinds = Counter[Kind]
"""Number of partitions of each kind."""


def planned_losses(live: ClusterSnapshot, changes: Sequence[Change]) -> RackLossTable:
    """Lose each rack in turn, on a snapshot with states, and on what all these changes would make of it."""
    racks, known = Racks.of(live), is_known(live.default_of(MIN_ISR))
    if not racks.one_can_be_lost:
        only = next(iter(racks.brokers), None)
        return RackLossTable(only_rack=only, brokers_without_rack=racks.without, knows_broker_defaults=known)
    before, after = _before_and_after(live, changes)
    everything = _fates(before | after, live.brokers)
    rows = []
    for rack, brokers in racks.brokers.items():
        fates = _fates(before | after, live.brokers.keys() - brokers)
        rows.append(
            RackLossRow(
                rack=rack,
                brokers=len(brokers),
                before=_loss(before, everything, fates),
                after=_loss(after, everything, fates),
            )
        )
    return RackLossTable(racks=tuple(rows), brokers_without_rack=racks.without, knows_broker_defaults=known)


def _before_and_after(live: ClusterSnapshot, changes: Sequence[Change]) -> tuple[Kinds, Kinds]:
    """Count the topics a part of them at a time; those that are being deleted not at all."""
    by_topic: dict[str, list[Change]] = {}
    for change in changes:
        by_topic.setdefault(change.topic, []).append(change)
    before, after = Kinds(), Kinds()
    for part in in_parts(live.topics, sorted(live.topics.keys() - live.deleting.keys()), size=TOPICS_AT_ONCE):
        for name, topic in part.items():
            kinds = [kind for _, kind in kinds_of(live, topic)]
            before.update(kinds)
            after.update(_kinds_after(live, topic, by_topic[name]) if name in by_topic else kinds)
    for name in by_topic.keys() - live.topics.keys():
        after.update(_kinds_after(live, None, by_topic[name]))
    return before, after


def _kinds_after(live: ClusterSnapshot, topic: LiveTopic | None, changes: Sequence[Change]) -> Iterator[Kind]:
    for change in changes:
        topic = topic_after(topic, change, live.brokers)
    return (kind for _, kind in kinds_of(live, topic)) if topic else iter(())


def topic_after(topic: LiveTopic | None, change: Change, brokers: Collection[int]) -> LiveTopic | None:
    """Give the topic once a change of its plan is done; None means that it is absent.

    It stays as it is where the change needs a broker that is not live: apply refuses that.
    """
    if not brokers_needed(topic, change).issubset(brokers):
        return topic
    match change:
        case CreateTopic():
            states = _first_states(change.assignment)
            return LiveTopic(
                name=change.topic, topic_id=None, assignment=change.assignment, overrides=change.configs, states=states
            )
        case ExpandTopic() | ReassignTopic() if topic:
            states = {**(topic.states or {}), **_first_states(change.assignment)}
            return replace(topic, assignment={**topic.assignment, **change.assignment}, states=states)
        case ConfigureTopic() if topic:
            merged = {**topic.overrides, **change.configs}
            return replace(topic, overrides={name: value for name, value in merged.items() if value is not None})
        case DeleteTopic():
            return None
        case _:
            return topic


def brokers_needed(topic: LiveTopic | None, change: Change) -> set[int]:
    """Give the brokers of a change's replicas, and for a delete all that hold the topic."""
    rows: Assignment = {}
    match change:
        case CreateTopic() | ExpandTopic() | ReassignTopic():
            rows = change.assignment
        case DeleteTopic():
            rows = topic.assignment if topic else {}
        case ConfigureTopic():
            pass
        case _:
            assert_never(change)
    return {broker for row in rows.values() for broker in row}


def topic_on(live: ClusterSnapshot, topic: LiveTopic, brokers: Collection[int]) -> LiveTopic:
    """Give a topic of a snapshot once only these brokers are live; new partitions have got their first leaders."""
    states = {}
    for p, kind in kinds_of(live, topic):
        there = [broker for broker in kind.replicas if broker in brokers]
        if not kind.has_state and there:
            states[p] = first_state(there)
        elif kind.has_state:
            fate = fate_of(kind, brokers)
            states[p] = replace(NO_STATE, leader=-1 if fate.leader is None else fate.leader, isr=fate.isr)
    return replace(topic, states=states)


def _first_states(rows: Assignment) -> dict[int, PartitionState]:
    return {p: first_state(row) for p, row in rows.items()}


def elects_unclean_by_default(live: ClusterSnapshot) -> bool:
    """Return whether a controller may elect a replica that lacks records; any broker may become the controller."""
    given = (defaults for defaults in (live.broker_defaults or {}).values() if not isinstance(defaults, str))
    return any(elects_unclean(defaults.get(UNCLEAN_ELECTION)) for defaults in given)


def kinds_of(live: ClusterSnapshot, topic: LiveTopic) -> Iterator[tuple[int, Kind]]:
    """Yield the kind of each partition, by id."""
    least = min_insync_replicas(topic.overrides, live.broker_defaults)
    unclean = elects_unclean(topic.overrides.get(UNCLEAN_ELECTION), default=elects_unclean_by_default(live))
    states = topic.states or {}
    for p, replicas in topic.assignment.items():
        state = states.get(p)
        kind = Kind(
            replicas=replicas,
            leader=state.leader if state else -1,
            isr=state.isr if state else (),
            needed=needed_in_sync(least, len(replicas), live.releases),
            unclean=unclean,
            has_state=state is not None,
        )
        yield p, kind


def fate_of(kind: Kind, live: Collection[int]) -> Fate:
    """Return what becomes of a partition of this kind. One that never had a leader gets none by a loss."""
    if not kind.has_state:
        return Fate(leader=None, isr=(), is_below_min_isr=True)
    before = PartitionState(leader=kind.leader, isr=kind.isr, leader_epoch=0, controller_epoch=0, version=0)
    gone = [broker for broker in kind.replicas if broker not in live]
    state = after_loss(before, kind.replicas, live=live, lost=gone, unclean=kind.unclean)
    isr = tuple(broker for broker in state.isr if broker in live)
    health = PartitionHealth(kind.replicas, state.leader, isr, live, kind.needed)
    return Fate(None if health.is_offline else state.leader, isr, is_below_min_isr=health.refuses_all_acks)


def _fates(kinds: Collection[Kind], live: Collection[int]) -> Mapping[Kind, Fate]:
    return {kind: fate_of(kind, live) for kind in kinds}


def _loss(kinds: Kinds, now: Mapping[Kind, Fate], then: Mapping[Kind, Fate]) -> Loss:
    """Count losses, without what is offline or below its minimum already."""
    return Loss(
        offline=sum(count for kind, count in kinds.items() if now[kind].loses_leader(then[kind])),
        below_min_isr=sum(count for kind, count in kinds.items() if now[kind].loses_min_isr(then[kind])),
        moved_leaders=sum(count for kind, count in kinds.items() if now[kind].changes_leader(then[kind])),
    )
