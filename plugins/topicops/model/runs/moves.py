"""What the runs of an environment know of moves of replicas that were accepted, and that later steps carry on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot
from topicops.model.memory import hold


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMoves:
    """Moves of one topic that have not ended, or whose throttle is still to be removed."""

    identity: str
    """Identity of the topic; another topic of this name has no such moves."""
    digest: str
    """Digest of the change that asked for them."""
    partitions: Collection[int]
    """Partitions whose move has not ended."""
    asked: Collection[int] = ()
    """Those of them that Kafka was asked to move, or to move back."""
    targets: Assignment = field(default_factory=dict)
    """Rows that the moves lead to, without those that are cancelled."""
    sentence: str
    """Sentence that says how far they are."""
    is_stuck: bool = False
    entries: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Our entries in the throttle lists of the topic, by config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownMoves:
    """All moves of one environment that have not ended; without any field set there are none."""

    cluster_id: str = ""
    topics: Mapping[str, TopicMoves] = field(default_factory=dict)
    rates: Collection[int] = ()
    """Brokers whose throttle rate is ours."""
    notes: tuple[str, ...] = ()
    """What the last step said: what waits for what, and what is still to be done."""
    stepped_at: datetime | None = None
    """Time of the last step; None means that there was none."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing of ours moves, waits or is owed."""
        return not self.topics and not self.rates

    def accepted(self, live: ClusterSnapshot) -> Mapping[str, Assignment]:
        """Return the rows that they lead to, of topics that are still the same: a plan takes them for granted."""
        if self.cluster_id != live.cluster_id:
            return {}
        moving = {name: moves for name, moves in self.topics.items() if moves.partitions and name in live.topics}
        hold(live.topics, moving)
        return {
            name: moves.targets
            for name, moves in moving.items()
            if live.topics[name].identity_after(moves.identity) == moves.identity
        }
