"""How desired and live topics differ: the rows that both diff engines compare, and their result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Literal, NamedTuple

from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.json_types import assignment_digest, canonical_json
from topicops.model.specs.desired import DesiredTopic, Lifecycle
from topicops.model.specs.topic_config import THROTTLE_LISTS, canonical_overrides

Presence = Literal["both", "desired", "live"]
Field = Literal["partitions", "replication_factor", "assignment", "configs"]


class DesiredRow(NamedTuple):
    """One row per topic of git; key ``topic``; unordered."""

    topic: str
    lifecycle: str
    partitions: int
    replication_factor: int
    assignment_digest: str | None
    """None unless the spec gives the replicas by hand."""
    configs: str
    """Canonical JSON of the overrides in the spec."""
    owner: str = ""
    """Owner in the spec; not compared."""


class LiveRow(NamedTuple):
    """One row per topic of the cluster; key ``topic``; unordered."""

    topic: str
    partitions: int
    replication_factor_min: int
    replication_factor_max: int
    assignment_digest: str
    configs: str
    """Canonical JSON of the overrides that are live."""


class TopicClass(StrEnum):
    """Every desired or live topic is in exactly one class."""

    MISSING = "missing"
    """Desired, not live."""
    SAME = "same"
    DIFFERENT = "different"
    TOMBSTONED = "tombstoned"
    """Topic that must be absent, but is live."""
    RETIRED = "retired"
    """Topic that must be absent, and is."""
    PAUSED = "paused"
    UNMANAGED = "unmanaged"
    """Live, and no spec of this environment names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDelta:
    """How one topic differs."""

    topic: str
    presence: Presence
    topic_class: TopicClass
    changed: frozenset[Field] = frozenset()
    desired: DesiredRow | None = None
    live: LiveRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """All that differs, by topic name, and how many topics are in each class."""

    topics: tuple[TopicDelta, ...]
    """Differences sorted by topic; without topics of class ``same`` and ``retired``."""
    counts: Mapping[TopicClass, int]
    """Every class has a count; they add up to the distinct topics, desired or live."""


def desired_row(topic: DesiredTopic) -> DesiredRow:
    return DesiredRow(
        topic=topic.name,
        lifecycle=topic.lifecycle.value,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignment_digest=assignment_digest(topic.assignment) if topic.assignment else None,
        configs=_configs_json(tuple((name, value) for name, value in topic.configs.items() if value is not None)),
        owner=topic.owner,
    )


def live_row(topic: LiveTopic) -> LiveRow:
    """Return the comparable row of a live topic; during a reassignment its target counts as its replicas."""
    target = topic.target_assignment
    sizes = topic.replication_factors or frozenset({0})
    return LiveRow(
        topic=topic.name,
        partitions=topic.partitions,
        replication_factor_min=min(sizes),
        replication_factor_max=max(sizes),
        assignment_digest=assignment_digest(target),
        configs=_configs_json(tuple(compared_overrides(topic).items())),
    )


@lru_cache(maxsize=1 << 12)
def _configs_json(configs: tuple[tuple[str, str], ...]) -> str:
    """Return their canonical JSON. Most topics have the configs of many others."""
    return canonical_json(dict(configs))


def compared_overrides(topic: LiveTopic) -> dict[str, str]:
    """Return the overrides that a file is compared with: while replicas move, without the lists of their throttle."""
    left_out = THROTTLE_LISTS if topic.is_reassigning else frozenset[str]()
    return {name: value for name, value in canonical_overrides(topic.overrides).items() if name not in left_out}


def class_of(lifecycle: str | None, *, is_live: bool, differs: bool) -> TopicClass:
    """Return the class of a topic; ``lifecycle`` None means that no spec names it."""
    if lifecycle is None:
        return TopicClass.UNMANAGED
    if lifecycle == Lifecycle.ABSENT:
        return TopicClass.TOMBSTONED if is_live else TopicClass.RETIRED
    if lifecycle == Lifecycle.PAUSED:
        return TopicClass.PAUSED
    if not is_live:
        return TopicClass.MISSING
    return TopicClass.DIFFERENT if differs else TopicClass.SAME
