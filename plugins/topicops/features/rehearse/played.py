"""Play a plan on a snapshot of the live cluster, with brokers that go missing at one of its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from topicops.features.rehearse.losses import PartitionKinds, PartitionName
from topicops.model.cluster.health import health_of
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.model.errors import UsageError
from topicops.model.json_types import FormatVersion
from topicops.model.plans.changes import Action, Change, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.printable import plural
from topicops.steps.applying.precondition import Match, compare
from topicops.steps.rack_losses import Fate, Kind, brokers_needed, fate_of, kinds_of, topic_after, topic_on


class Effect(StrEnum):
    """What becomes of one change."""

    DONE = "done"
    SKEWED = "skewed"
    """Done, but the leader of a partition is not the planned broker, or there is none."""
    HANGS = "hangs"
    """A deletion that would wait for a broker; apply does not begin it."""
    REFUSED = "refused"
    """Apply refuses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedChange:
    topic: str
    action: Action
    effect: Effect
    reason: str = ""
    """Reason of another effect; empty when it is done as planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedPartition:
    partition: int
    replicas: tuple[int, ...]
    leader_before: int | None
    """Leader before; None means that it had none, or did not exist."""
    leader: int | None
    isr: tuple[int, ...]
    """In-sync replicas without lost brokers."""
    is_below_min_isr: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedTopic:
    """A topic that the plan changes, after the plan and the loss; without partitions if it is absent."""

    topic: str
    is_deleting: bool
    partitions: tuple[RehearsedPartition, ...]
    """Partitions by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedLoad:
    broker: int
    rack: str | None
    is_lost: bool
    leaders_before: int
    leaders: int
    replicas_before: int
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """The cluster after a plan, and after the loss of some brokers."""

    environment: str
    cluster_id: str
    lost_brokers: tuple[int, ...]
    step: int
    """Number of changes before the loss; without a loss, of all changes."""
    changes: tuple[RehearsedChange, ...]
    """Changes in the plan's order."""
    topics: tuple[RehearsedTopic, ...]
    """Topics that the plan changes, by name."""
    load: tuple[RehearsedLoad, ...]
    """Brokers by id."""
    partitions: int
    """Number of partitions of all topics afterwards."""
    offline: tuple[PartitionName, ...]
    """Partitions of all topics without a leader afterwards, sorted."""
    below_min_isr: tuple[PartitionName, ...]
    """Partitions of all topics with a leader that refuse records with ``acks=all`` afterwards, sorted."""
    offline_before: int
    below_min_isr_before: int
    format_version: FormatVersion = "1.0"

    def with_effect(self, effect: Effect) -> tuple[RehearsedChange, ...]:
        return tuple(change for change in self.changes if change.effect is effect)


def rehearse(
    live: ClusterSnapshot,
    changes: Sequence[Change],
    *,
    environment: str,
    lost: Collection[int] = (),
    step: int | None = None,
    is_kraft: bool = False,
) -> Rehearsal:
    """Play these changes in their order; the lost brokers go before change ``step`` + 1, by default after the last.

    Args:
        live: With states, and the brokers' defaults and releases where they are known.
        lost: Live brokers.
        is_kraft: A controller of KRaft deletes without waiting for brokers.

    Raises ``UsageError``: A broker is not live, none would be left, or there are fewer changes than ``step``.
    """
    step = _checked_step(live, changes, lost, step)
    stage = Stage(live, changes, is_kraft=is_kraft)
    played = [stage.play(change) for change in changes[:step]]
    stage.lose(lost)
    played += [stage.play(change) for change in changes[step:]]
    after, brokers = stage.after, stage.brokers
    kinds_before, kinds = map(PartitionKinds.of, (live, after))
    offline_before, below_before = kinds_before.troubled(live.brokers.keys())
    offline, below = kinds.troubled(brokers)
    return Rehearsal(
        environment=environment,
        cluster_id=live.cluster_id,
        lost_brokers=tuple(sorted(lost)),
        step=step,
        changes=tuple(_with_skew(changes, played, kinds, brokers)),
        topics=tuple(_topic(live, after, name, brokers) for name in sorted(stage.touched)),
        load=tuple(_load(live, kinds_before, kinds, brokers)),
        partitions=kinds.partitions,
        offline=tuple(sorted(offline)),
        below_min_isr=tuple(sorted(below)),
        offline_before=len(offline_before),
        below_min_isr_before=len(below_before),
    )


def after_plan(live: ClusterSnapshot, changes: Sequence[Change], *, is_kraft: bool = False) -> ClusterSnapshot:
    """Return the snapshot once all these changes are done; arguments as for ``rehearse``."""
    stage = Stage(live, changes, is_kraft=is_kraft)
    for change in changes:
        stage.play(change)
    return stage.after


class Stage:
    """The topics of a plan, and the brokers that are left. Followers that are not in sync stay so."""

    def __init__(self, live: ClusterSnapshot, changes: Sequence[Change], *, is_kraft: bool = False) -> None:
        """Raise ``UsageError`` for changes whose replicas the brokers place: nobody knows where they will be."""
        for change in changes:
            if isinstance(change, CreateTopic | ExpandTopic) and not change.assignment:
                where = f"the brokers choose where the replicas of {change.topic} go (cluster.kind: managed)"
                raise UsageError(f"{where}, so the plan cannot be rehearsed; rehearse the cluster without it")
        self.live = live
        self.touched = {change.topic for change in changes}
        self._is_kraft = is_kraft
        self.brokers = set(live.brokers)
        there = (name for name in self.touched if name in live.topics and not _ends_deleted(live, name))
        self.topics = {name: live.topics[name] for name in there}
        self.lose(())  # brokers that are dead already may lead still, in a snapshot of just before the election

    def lose(self, brokers: Collection[int]) -> None:
        self.brokers -= set(brokers)
        self.topics = {name: topic_on(self.live, topic, self.brokers) for name, topic in self.topics.items()}

    def play(self, change: Change) -> RehearsedChange:
        """Do what the brokers would do, unless apply would not ask them: then the cluster stays as it is."""
        effect, reason = self._unsent(change) or (Effect.DONE, "")
        if not reason:
            topic = topic_after(self.topics.pop(change.topic, None), change, self.brokers)
            self.topics |= {change.topic: topic} if topic else {}
        return RehearsedChange(topic=change.topic, action=change.action, effect=effect, reason=reason)

    def _unsent(self, change: Change) -> tuple[Effect, str] | None:
        """Return what becomes of a change that apply does not send, and why. None means that it sends it."""
        comparison = compare(change, self.live.traces(change.topic))
        if comparison.match is Match.AFTER:
            return Effect.DONE, "already so"
        if comparison.match is Match.CHANGED:
            return Effect.REFUSED, comparison.refusal
        missing = sorted(brokers_needed(self.topics.get(change.topic), change) - self.brokers)
        if not missing:
            return None
        names = ", ".join(f"broker {broker}" for broker in missing)
        if not isinstance(change, DeleteTopic):
            return Effect.REFUSED, f"it has new replicas on {names}; apply refuses it ({Code.ASSIGNED_BROKER_DOWN})"
        if self._is_kraft:
            return Effect.REFUSED, f"it has replicas on {names}; apply refuses it ({Code.BROKER_DOWN})"
        return Effect.HANGS, f"it waits for {names}; apply does not begin it ({Code.BROKER_DOWN})"

    @property
    def after(self) -> ClusterSnapshot:
        """Snapshot of now; its brokers are those of before."""
        others = {name: topic for name, topic in self.live.topics.items() if name not in self.touched}
        topics = {**others, **self.topics}
        deleting = {name: age for name, age in self.live.deleting.items() if name in topics}
        return replace(self.live, topics=topics, deleting=deleting)


def _ends_deleted(live: ClusterSnapshot, name: str) -> bool:
    """Return whether the topic is marked for deletion, and no dead broker holds that up."""
    holders = {broker for row in live.topics[name].assignment.values() for broker in row}
    return name in live.deleting and holders <= live.brokers.keys()


def _checked_step(live: ClusterSnapshot, changes: Sequence[Change], lost: Collection[int], step: int | None) -> int:
    if unknown := sorted(set(lost) - live.brokers.keys()):
        known = ", ".join(map(str, sorted(live.brokers)))
        raise UsageError(f"broker {unknown[0]} is not live; live brokers: {known}")
    if set(lost) == live.brokers.keys():
        raise UsageError("this leaves no broker: nothing can be rehearsed without one")
    if step is not None and not 0 <= step <= len(changes):
        may_run = f"{plural(len(changes), 'change')} of the plan may run"
        raise UsageError(f"step {step}: {may_run}; name 0 to {len(changes)}")
    return len(changes) if step is None or not lost else step


def _with_skew(
    changes: Sequence[Change], played: Sequence[RehearsedChange], kinds: PartitionKinds, brokers: Collection[int]
) -> Iterator[RehearsedChange]:
    """Yield the changes in order; done creates and expansions may have other leaders than planned."""
    moved = {
        name
        for kind, fate, names in kinds.fates(brokers)
        if kind.replicas and fate.leader != kind.replicas[0]
        for name in names
    }
    for change, found in zip(changes, played, strict=True):
        rows = change.assignment if isinstance(change, CreateTopic | ExpandTopic) else {}
        skewed = sum(PartitionName(change.topic, p) in moved for p in rows)
        if skewed and found.effect is Effect.DONE:
            reason = f"the first replica does not lead {plural(skewed, 'new partition')}"
            yield replace(found, effect=Effect.SKEWED, reason=reason)
        else:
            yield found


def _topic(live: ClusterSnapshot, after: ClusterSnapshot, name: str, brokers: Collection[int]) -> RehearsedTopic:
    topic, earlier, is_deleting = after.topics.get(name), live.topics.get(name), name in after.deleting
    kinds = sorted(kinds_of(after, topic)) if topic and not is_deleting else []
    partitions = tuple(_partition(live, earlier, p, kind, fate_of(kind, brokers)) for p, kind in kinds)
    return RehearsedTopic(topic=name, is_deleting=is_deleting, partitions=partitions)


def _partition(live: ClusterSnapshot, earlier: LiveTopic | None, p: int, kind: Kind, fate: Fate) -> RehearsedPartition:
    had_leader = earlier is not None and p in earlier.assignment and not health_of(earlier, p, live.brokers).is_offline
    return RehearsedPartition(
        partition=p,
        replicas=kind.replicas,
        leader_before=(earlier.states or {})[p].leader if earlier and had_leader else None,
        leader=fate.leader,
        isr=fate.isr,
        is_below_min_isr=fate.is_below_min_isr,
    )


def _load(
    live: ClusterSnapshot, before: PartitionKinds, after: PartitionKinds, brokers: Collection[int]
) -> Iterator[RehearsedLoad]:
    leaders_before, leaders = before.leaders(live.brokers.keys()), after.leaders(brokers)
    replicas_before, replicas = _replicas(before), _replicas(after)
    for broker, found in sorted(live.brokers.items()):
        yield RehearsedLoad(
            broker=broker,
            rack=found.rack,
            is_lost=broker not in brokers,
            leaders_before=leaders_before[broker],
            leaders=leaders[broker],
            replicas_before=replicas_before[broker],
            replicas=replicas[broker] if broker in brokers else 0,
        )


def _replicas(kinds: PartitionKinds) -> Counter[int]:
    found = Counter[int]()
    for kind, names in kinds.names.items():
        for broker in kind.replicas:
            found[broker] += len(names)
    return found
