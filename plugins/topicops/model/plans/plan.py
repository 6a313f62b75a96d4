"""The plan: what a person reviews, what the gate sorts and what apply is bound to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from topicops.model.canonical import sha256_of
from topicops.model.plans.changes import ACTIONS, Action, Change, GateWord, Target
from topicops.model.plans.load_table import LoadTable
from topicops.model.specs.diagnostics import Location

FORMAT_VERSION = "1.2"
"""Major: a reader of an older one must refuse. Minor: it may ignore what it does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A topic whose difference no change can mend now; it holds nobody else up."""

    topic: str
    owner: str = ""
    codes: tuple[str, ...]
    """All reasons that hold, sorted."""
    reasons: tuple[str, ...]
    """One sentence for each code, in the same order."""
    way_out: str
    """What a person can do next."""
    location: Location
    reassignment: str | None = None
    """JSON for Kafka's own reassignment tool, where that is the way out."""

    @property
    def address(self) -> str:
        return f"topic.{self.topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A live override that no spec names, reported and left alone."""

    topic: str
    owner: str = ""
    config: str
    value: str
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    topic: str
    owner: str = ""
    reason: str
    until: str
    """RFC 3339 UTC."""
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSource:
    """What the plan was made from."""

    commit: str | None
    desired_digest: str
    topics: int
    """How many topics of this environment are described."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What the gate must know of the cluster at the time of the plan."""

    live_brokers: int
    has_controller: bool
    offline_partitions: int | None
    """None: states were not read."""
    live_topics: int
    managed_topics: int
    """Live topics that a spec of this environment names."""
    planned_deletes: int = 0
    """Of the whole plan, also where only a part of it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicActivity:
    """Traffic on a topic that is to be deleted; outside every digest."""

    end_offsets: Mapping[int, int] | None
    """By partition; None: could not be read."""
    groups: tuple[str, ...] | None
    """Consumer groups with members or commits; None: could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """The plan step's result, before the gate: ``changes.json``."""

    target: Target
    source: PlanSource
    facts: ClusterFacts
    changes: tuple[Change, ...]
    """Ordered create, expand, configure, delete; by topic name in each."""
    blocked: tuple[Blocked, ...] = ()
    drift: tuple[Drift, ...] = ()
    unmanaged: tuple[str, ...] = ()
    paused: tuple[Paused, ...] = ()
    activity: Mapping[str, TopicActivity] = field(default_factory=dict)
    load: LoadTable = field(default_factory=LoadTable)
    """As if every change ran, whatever the gate says; outside every digest."""
    warnings: tuple[str, ...] = ()
    """What could not be asked, sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedChange:
    """A change, its name to an approval, and the gate's word on it."""

    change: Change
    digest: str
    gate: GateWord
    reasons: tuple[str, ...] = ()
    """Why it is held or skipped, with both numbers and the place of the limit; empty when it runs."""
    approvable: bool = False
    """Held, and an approval that names it lets it run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A change set that went through the gate: ``plan.json``."""

    change_set: ChangeSet
    changes: tuple[GatedChange, ...]

    @property
    def target(self) -> Target:
        return self.change_set.target

    @property
    def fingerprint(self) -> str:
        """SHA-256 of target and sorted digests: equal plans have equal ones whatever the order of their inputs."""
        target = self.target
        digests = sorted(gated.digest for gated in self.changes)
        return sha256_of({"target": [target.environment, target.cluster_id, target.chroot], "changes": digests})

    def with_gate(self, word: GateWord) -> tuple[GatedChange, ...]:
        return tuple(gated for gated in self.changes if gated.gate is word)

    @property
    def is_empty(self) -> bool:
        """Nothing to change and nothing blocked."""
        return not self.changes and not self.change_set.blocked

    @property
    def action_counts(self) -> dict[Action, int]:
        return {action: sum(gated.change.action == action for gated in self.changes) for action in ACTIONS}
