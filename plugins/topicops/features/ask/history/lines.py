"""The line that a run leaves, with the troubles that it opens and closes, and when each of them began and ended.

``docs/reference/artifacts.md`` shows a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias

import msgspec

from topicops.flow.runs.values import RunMode
from topicops.model.json_types import FormatVersion
from topicops.model.runs.facts import DRIFT_CLASSES, OwnerCounts
from topicops.model.runs.results import QualitySuite
from topicops.model.specs.spellings import in_utc

Key = tuple[str | int | None, ...]
"""Values by which a trouble is the same in two lines; the kinds have keys of different lengths."""


class Difference(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="difference"):
    """One difference between the files and the cluster."""

    topic: str
    topic_class: str = msgspec.field(name="class")
    """Word: ``missing``, ``different``, ``tombstoned`` or ``unmanaged``."""
    field: str | None = None
    """Name: ``partitions``, ``replicationFactor``, ``assignment`` or ``configs.<key>``; None means the whole topic."""
    desired: str | None = None
    """Canonical text of the value in the files, of ``assignment`` a digest; None means that there is no value."""
    live: str | None = None
    owner: str | None = None
    """Owner in the files when it opened; None means that no file names the topic."""

    @property
    def key(self) -> Key:
        return self.topic, self.topic_class, self.field, self.desired, self.live


class FailingRule(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="failing rule"):
    """A quality rule that does not hold."""

    suite: QualitySuite
    rule: str
    severity: str
    rows_failed: int
    """Number of rows that failed when it opened."""

    @property
    def key(self) -> Key:
        return self.suite, self.rule


class UnhealthyTopic(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="unhealthy"):
    """A topic or a partition that a failing rule names."""

    topic: str
    suite: QualitySuite
    rule: str
    partition: int | None = None
    """Number of the partition; None means the topic as a whole."""
    shown: str = "{}"
    """JSON object that says what was wrong when it opened."""

    @property
    def key(self) -> Key:
        return self.suite, self.rule, self.topic, self.partition


Trouble: TypeAlias = Difference | FailingRule | UnhealthyTopic


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCounts:
    """Numbers of changes in a plan, and of topics that it cannot change."""

    changes: int
    held: int
    skipped: int
    blocked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOutcome:
    """What apply did with one change."""

    topic: str
    action: str
    status: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """The part of a line that says what is open after it; an append reads no more of the lines before."""

    run: str
    """Name: ``<group>/<run id>``."""
    recorded_at: datetime
    """Time in UTC at which the line was written."""
    read_at: datetime | None = None
    """Time in UTC at which the run read the cluster; None means that it did not."""
    commit: str | None = None
    """Commit of the files that were planned; None means that it is not known, or that they were not those of a
    commit."""
    has_looked: bool
    """Whether the run compared files and cluster, or evaluated a quality rule."""
    opened: tuple[Trouble, ...] = ()
    """Troubles that were not open after the lines before."""
    closed: tuple[Trouble, ...] = ()
    """Troubles that were open after the lines before, and that the run looked for and did not see."""
    format_version: FormatVersion = "1.0"
    """Version of the format."""

    def __post_init__(self) -> None:
        for time in (self.recorded_at, self.at):
            in_utc(time)

    @property
    def at(self) -> datetime:
        """Time when the run read the cluster, or was recorded if it did not read it."""
        return self.read_at or self.recorded_at


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLine(Moves):
    """One run. A run may have several lines: the last one has its numbers."""

    environment: str
    """Name of the environment."""
    mode: RunMode
    """Kind of run: ``plan``; ``apply``: it could send changes; ``drift``: a run of the drift DAG; ``verify``."""
    cluster_id: str | None = None
    """Id of the cluster."""
    source: str | None = None
    """Source that was read: ``zookeeper`` or ``kafka``."""
    topics: int | None = None
    partitions: int | None = None
    """Number of live partitions."""
    brokers: int | None = None
    """Number of live brokers."""
    classes: Mapping[str, int] | None = None
    """Number of topics of each class, before the changes: ``missing``, ``same``, ``different``, ``tombstoned``,
    ``retired``, ``paused``, ``unmanaged``; None means that files and cluster were not compared."""
    owners: tuple[OwnerCounts, ...] = ()
    """What each owner has: ``owner``, ``domain``, ``topics``, ``partitions``, ``missing``, ``different``,
    ``tombstoned``, ``unhealthy``."""
    plan: PlanCounts | None = None
    """Numbers of the plan: ``changes``, ``held``, ``skipped``, ``blocked``; None means that there is none."""
    in_place: int = 0
    """Number of changes that are in effect."""
    not_in_place: int = 0
    rules: Mapping[str, int]
    """Number of rows that failed, by quality rule that was evaluated; 0: it holds. A rule that is missing was not
    evaluated."""
    outcomes: tuple[TopicOutcome, ...] = ()
    """Outcomes of the changes that were to run: ``topic``, ``action``, ``status``, ``message``."""

    @property
    def differing(self) -> int | None:
        """Topics that are not as their files want them; None means that nothing was compared."""
        return None if self.classes is None else sum(self.classes.get(name, 0) for name in DRIFT_CLASSES)

    @property
    def unhealthy(self) -> int | None:
        """Partitions that are not healthy, of all owners; None means that nobody counted them."""
        counts = [owner.unhealthy for owner in self.owners if owner.unhealthy is not None]
        return sum(counts) if counts else None


# ---- what lines add up to ----


@dataclass(frozen=True, slots=True)
class RunPoint:
    """A run at which a trouble began or ended."""

    run: str
    at: datetime
    """Time at which the run read the cluster, UTC."""
    commit: str | None


@dataclass(frozen=True, slots=True)
class Span:
    """The time in which a trouble lasted."""

    what: Trouble
    began: RunPoint
    ended: RunPoint | None = None
    """First run that looked for it and did not see it; None means that it lasts."""


@dataclass(slots=True)
class Spans:
    open: dict[Key, Span] = field(default_factory=dict)
    ended: list[Span] = field(default_factory=list)
    newest: RunPoint | None = None


def spans_of(lines: Iterable[Moves]) -> Spans:
    found = Spans()
    for line in lines:
        point = RunPoint(line.run, line.at, line.commit)
        for trouble in line.closed:
            if span := found.open.pop(trouble.key, None):
                found.ended.append(replace(span, ended=point))
        for trouble in line.opened:
            found.open.setdefault(trouble.key, Span(trouble, point))
        if line.has_looked and not is_older(point.at, found.newest):
            found.newest = point
    return found


def is_older(at: datetime, newest: RunPoint | None) -> bool:
    return newest is not None and at < newest.at


def in_order(spans: Iterable[Span]) -> Sequence[Span]:
    """Sort by trouble, then by time; None comes before any text."""

    def order(span: Span) -> tuple[object, ...]:
        key = tuple((value is not None, value or "") for value in span.what.key)
        return type(span.what).__name__, key, span.began.at

    return sorted(spans, key=order)
