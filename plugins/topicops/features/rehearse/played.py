"""Play a plan on a snapshot of the live cluster, with brokers that go missing at one of its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from topicops.features.rehearse.controller.context import ControllerSettings
from topicops.features.rehearse.controller.played_cluster import PlayedCluster
from topicops.features.rehearse.controller.znodes import Znodes
from topicops.features.rehearse.partitions import PartitionKinds, PartitionName
from topicops.model.cluster.health import health_of
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.model.errors import UsageError
from topicops.model.json_types import FormatVersion
from topicops.model.plans.changes import Action, Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.printable import plural
from topicops.model.release import USUAL
from topicops.steps.applying.precondition import Match, compare
from topicops.steps.rack_losses import Fate, Kind, elects_unclean_by_default, fate_of, kinds_of


class Effect(StrEnum):
    """What becomes of one change."""

    DONE = "done"
    SKEWED = "skewed"
    """Done, but a partition that it makes is led by another broker than planned, or by none."""
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

    Raises:
        UsageError: A broker is not live, none would be left, or there are fewer changes than ``step``.
    """
    step = _checked_step(live, changes, lost, step)
    touched = {change.topic for change in changes}
    stage = Stage(live, touched, is_kraft=is_kraft)
    played = [stage.play(change) for change in changes[:step]]
    if lost:
        stage.lose(lost)
    played += [stage.play(change) for change in changes[step:]]
    before = PartitionKinds.of(live, live.topics.values())
    others = PartitionKinds.of(live, [topic for name, topic in live.topics.items() if name not in touched])
    brokers = set(stage.brokers)
    after = replace(live, topics=stage.topics, deleting=dict.fromkeys(stage.deleting, 0))
    made = PartitionKinds.of(after, after.topics.values())
    offline, below = (now + new for now, new in zip(others.troubled(brokers), made.troubled(brokers), strict=True))
    offline_before, below_before = before.troubled(live.brokers.keys())
    return Rehearsal(
        environment=environment,
        cluster_id=live.cluster_id,
        lost_brokers=tuple(sorted(lost)),
        step=step,
        changes=tuple(_with_skew(changes, played, made, brokers)),
        topics=tuple(_topic(stage, after, name, brokers) for name in sorted(touched)),
        load=tuple(_load(live, before, others, made, brokers)),
        partitions=others.partitions + made.partitions,
        offline=tuple(sorted(offline)),
        below_min_isr=tuple(sorted(below)),
        offline_before=len(offline_before),
        below_min_isr_before=len(below_before),
    )


def after_plan(live: ClusterSnapshot, changes: Sequence[Change], *, is_kraft: bool = False) -> ClusterSnapshot:
    """The snapshot once all these changes are done; arguments as for ``rehearse``."""
    stage = Stage(live, {change.topic for change in changes}, is_kraft=is_kraft)
    for change in changes:
        stage.play(change)
    others = {name: topic for name, topic in live.topics.items() if name not in stage.touched}
    deleting = {name: age for name, age in live.deleting.items() if name in others or name in stage.deleting}
    return replace(live, topics={**others, **stage.topics}, deleting=deleting)


class Stage:
    """The topics of a plan on a played cluster, and the brokers that are left."""

    def __init__(self, live: ClusterSnapshot, touched: Collection[str], *, is_kraft: bool = False) -> None:
        self.live = live
        self._is_kraft = is_kraft
        self.touched = touched
        self.there = {name: live.topics[name] for name in sorted(touched) if name in live.topics}
        self.cluster = PlayedCluster(Znodes.of(live, self.there), settings=_settings(live))
        self.cluster.slow |= live.brokers.keys()  # followers that are not in sync now stay so

    @property
    def brokers(self) -> AbstractSet[int]:
        return self.cluster.znodes.brokers.keys()

    def lose(self, brokers: Collection[int]) -> None:
        self.cluster.stop(sorted(brokers))

    def play(self, change: Change) -> RehearsedChange:
        """Do what the brokers would do, unless apply would not ask them: then the cluster stays as it is."""
        found = self._unsent(change)
        if found is None:
            self._send(change)
        effect, reason = found or (Effect.DONE, "")
        return RehearsedChange(topic=change.topic, action=change.action, effect=effect, reason=reason)

    def _unsent(self, change: Change) -> tuple[Effect, str] | None:
        """What becomes of a change that apply does not send, and why. None: it sends it."""
        comparison = compare(change, self.live.traces(change.topic))
        if comparison.match is Match.AFTER:
            return Effect.DONE, "already so"
        if comparison.match is Match.CHANGED:
            return Effect.REFUSED, comparison.refusal
        missing = sorted(self._brokers_of(change) - self.brokers)
        if not missing:
            return None
        names = ", ".join(f"broker {broker}" for broker in missing)
        if isinstance(change, DeleteTopic) and self._is_kraft:
            return Effect.REFUSED, f"it has replicas on {names}; apply refuses it ({Code.BROKER_DOWN})"
        if isinstance(change, DeleteTopic):
            return Effect.HANGS, f"it waits for {names}; apply does not begin it ({Code.BROKER_DOWN})"
        return Effect.REFUSED, f"it has new replicas on {names}; apply refuses it ({Code.ASSIGNED_BROKER_DOWN})"

    def _brokers_of(self, change: Change) -> set[int]:
        """The brokers that a change needs: those of its new replicas, and of a delete all that hold the topic."""
        rows: Assignment = {}
        if isinstance(change, CreateTopic | ExpandTopic):
            rows = change.assignment
        elif isinstance(change, DeleteTopic):
            rows = self.there[change.topic].assignment
        return {broker for row in rows.values() for broker in row}

    def _send(self, change: Change) -> None:
        match change:
            case CreateTopic():
                self.cluster.create(change.topic, change.assignment, change.configs)
            case ExpandTopic():
                self.cluster.expand(change.topic, change.assignment)
            case ConfigureTopic():
                self.cluster.configure(change.topic, change.configs)
            case DeleteTopic() if self._is_kraft:
                self.cluster.remove(change.topic)
            case DeleteTopic():
                self.cluster.delete(change.topic)
            case _:
                assert_never(change)

    @property
    def topics(self) -> dict[str, LiveTopic]:
        """The topics of the plan as they are now."""
        return {name: self.cluster.znodes.topic(name) for name in self.cluster.znodes.topics}

    @property
    def deleting(self) -> Collection[str]:
        return self.cluster.znodes.markers.keys()


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


def _settings(live: ClusterSnapshot) -> ControllerSettings:
    return ControllerSettings(
        release=live.releases.oldest if live.releases else USUAL,
        unclean_leader_election_enable=elects_unclean_by_default(live),
    )


def _with_skew(
    changes: Sequence[Change], played: Sequence[RehearsedChange], touched: PartitionKinds, brokers: Collection[int]
) -> Iterator[RehearsedChange]:
    """The changes in their order; creates and expansions that are done may have leaders elsewhere than planned."""
    moved = {
        name
        for kind, fate, names in touched.fates(brokers)
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


def _topic(stage: Stage, after: ClusterSnapshot, name: str, brokers: Collection[int]) -> RehearsedTopic:
    topic = after.topics.get(name)
    is_deleting = name in after.deleting
    if topic is None or is_deleting:
        return RehearsedTopic(topic=name, is_deleting=is_deleting, partitions=())
    earlier = stage.there.get(name)
    return RehearsedTopic(
        topic=name,
        is_deleting=False,
        partitions=tuple(
            _partition(stage.live, earlier, p, kind, fate_of(kind, brokers))
            for p, kind in sorted(kinds_of(after, topic))
        ),
    )


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
    live: ClusterSnapshot,
    before: PartitionKinds,
    others: PartitionKinds,
    touched: PartitionKinds,
    brokers: Collection[int],
) -> Iterator[RehearsedLoad]:
    leaders_before = before.leaders(live.brokers.keys())
    leaders = others.leaders(brokers) + touched.leaders(brokers)
    replicas_before, replicas = _replicas(before), _replicas(others) + _replicas(touched)
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
