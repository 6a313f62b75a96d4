"""The loss of each broker before the moves of a plan, in the middle of them, and after them.

No partition decides what becomes of another, so that the middle of all moves at once stands for each wave of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest

from topicops.features.rehearse.losses import EXAMPLES, PartitionKinds, PartitionName
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.errors import UsageError
from topicops.model.json_types import FormatVersion
from topicops.model.plans.changes import Change, ReassignTopic
from topicops.steps.rack_losses import topic_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubled:
    """Numbers of partitions that move."""

    offline: int
    below_min_isr: int
    """Partitions with a leader that refuse records with ``acks=all``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLoss:
    """The partitions that move, without one broker."""

    broker: int | None
    """None means that none is lost."""
    rack: str | None
    before: Troubled
    moving: Troubled
    """While the new replicas copy: those of before are in sync, and no other."""
    after: Troubled
    worse: int
    """Number of partitions that are offline, or below their minimum, while they move, and are not before."""
    examples: tuple[PartitionName, ...]
    """Partitions that are offline, or below their minimum, while they move; those that were not before come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveLosses:
    environment: str
    cluster_id: str
    topics: int
    """Number of topics that the plan moves."""
    partitions: int
    losses: tuple[BrokerLoss, ...]
    """First without a loss, then each live broker, by id."""
    format_version: FormatVersion = "1.0"

    @property
    def is_safe(self) -> bool:
        """Whether no loss of a broker costs more while replicas move than it does before."""
        return not any(loss.worse for loss in self.losses)


def without_each_broker(live: ClusterSnapshot, changes: Sequence[Change], *, environment: str) -> MoveLosses:
    """Lose each broker in turn, on a snapshot with states. Raises ``UsageError`` for a plan without moves."""
    moves = [change for change in changes if isinstance(change, ReassignTopic) and change.topic in live.topics]
    if not moves:
        raise UsageError("the plan moves no replicas of live topics: there is no move to rehearse")
    stages = [
        PartitionKinds.of(replace(live, topics={topic.name: topic for topic in topics}, deleting={}))
        for topics in zip(*(_stages(live, move) for move in moves), strict=True)
    ]
    return MoveLosses(
        environment=environment,
        cluster_id=live.cluster_id,
        topics=len(moves),
        partitions=stages[0].partitions,
        losses=tuple(_loss(live, broker, stages) for broker in (None, *sorted(live.brokers))),
    )


def _stages(live: ClusterSnapshot, move: ReassignTopic) -> Iterator[LiveTopic]:
    """Yield the partitions that move before, in the middle and after."""
    topic = live.topics[move.topic]
    topic = replace(topic, assignment={p: row for p, row in topic.assignment.items() if p in move.assignment})
    both = {
        p: (*target, *(broker for broker in topic.assignment.get(p, ()) if broker not in target))
        for p, target in move.assignment.items()
    }
    yield topic
    yield replace(topic, assignment=both)
    yield topic_after(topic, move, live.brokers.keys()) or topic


def _loss(live: ClusterSnapshot, broker: int | None, stages: Sequence[PartitionKinds]) -> BrokerLoss:
    left = live.brokers.keys() - {broker}
    found = [kinds.troubled(left) for kinds in stages]
    before, moving, after = (Troubled(offline=len(off), below_min_isr=len(below)) for off, below in found)
    (offline, below), (offline_moving, below_moving) = (tuple(map(set, each)) for each in found[:2])
    worse = (offline_moving - offline) | (below_moving - below - offline)
    return BrokerLoss(
        broker=broker,
        rack=live.brokers[broker].rack if broker is not None else None,
        before=before,
        moving=moving,
        after=after,
        worse=len(worse),
        examples=tuple(nsmallest(EXAMPLES, offline_moving | below_moving, key=lambda name: (name not in worse, name))),
    )
