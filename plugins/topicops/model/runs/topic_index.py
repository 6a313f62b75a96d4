"""The topic index: what the Topics page shows of each topic, as the last run of the environment saw it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.json_types import FormatVersion
from topicops.model.plans.changes import Action
from topicops.model.plans.delta import Field, TopicClass
from topicops.model.runs.later_changes import AuditMarks
from topicops.model.runs.results import OutcomeStatus
from topicops.model.specs.desired import DesiredTopic

Word = Literal[
    "offline", "under min ISR", "deleted outside git", "change failed", "refused", "under-replicated", "blocked",
    "held", "rejected", "missing", "different", "to delete", "skipped", "changed since", "being deleted", "moving",
    "paused", "unmanaged", "healthy",
]  # fmt: skip
"""A state of a topic, the gravest first; a topic may have several.

- ``healthy``: each partition has a leader and all its replicas in sync.
- ``refused``: the last run had a change of it, and did not send it.
- ``changed since``: a run has sent a change of it after the cluster was read.
"""
RANKS: Mapping[Word, int] = {word: rank for rank, word in enumerate(get_args(Word))}


def later_words(outcome: OutcomeStatus) -> tuple[Word, ...]:
    """Of a topic that was changed after it was read, the gravest first."""
    has_failed = outcome in (OutcomeStatus.FAILED, OutcomeStatus.UNKNOWN)
    return ("change failed", "changed since") if has_failed else ("changed since",)


TROUBLE: frozenset[Word] = frozenset(("offline", "under min ISR", "under-replicated"))
Order = Literal["trouble", "name", "partitions", "owner", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastChange:
    """The newest line of the audit log about a topic."""

    at: datetime
    action: Action
    outcome: OutcomeStatus
    run: str
    by: str
    """Who approved it, else who started the run, else the principal that sent it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerShare:
    """What one broker has of one topic, in partitions."""

    broker: int
    replicas: int
    leaders: int
    missing: int
    """Replicas here that are not in the ISR."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChange:
    """What a plan has about a topic: a change with the gate's word, or why it is blocked."""

    title: str
    """``configure``, or ``blocked``."""
    word: Word | Literal["run"]
    """``rejected``: held, and a person said no."""
    run: str
    """``<DAG>/<run id>`` of the run with that plan."""
    reasons: tuple[str, ...] = ()
    """With an outcome, its message."""
    anchor: str = ""
    """Of its row in that run's Plan page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedTopic:
    """One topic, live or described."""

    name: str
    topic_class: TopicClass
    words: frozenset[Word]
    partitions: int
    replication_factor: int
    offline: int
    """Partitions without a live leader, as are the next two."""
    under_min_isr: int
    under_replicated: int
    shares: tuple[BrokerShare, ...] = ()
    """By broker."""
    live: LiveTopic | None
    desired: DesiredTopic | None
    changed: frozenset[Field] = frozenset()
    """Fields in which live and described topic differ."""
    planned: tuple[PlannedChange, ...] = ()
    last_change: LastChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexHead:
    """What the whole index is about."""

    environment: str
    run: str
    """``<DAG>/<run id>`` of the run that read the cluster."""
    read_at: datetime
    commit: str | None = None
    commit_address: str = ""
    audit_lines: int = 0
    """How many lines of the audit log are in it."""
    audit_marks: AuditMarks = field(default_factory=dict)
    """How many lines each audit log had before the cluster was read: those after them are later."""
    live: ClusterSnapshot
    """Without its topics."""
    looked_at: datetime | None = None
    """When a later run found nothing different; None: none has."""
    format_version: FormatVersion = "1.0"

    @property
    def known_at(self) -> datetime:
        """When the cluster was last seen to be so."""
        return self.looked_at or self.read_at


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsWanted:
    """Which topics a page lists; empty words let all through."""

    q: str = ""
    """A part of name, owner or file, in any case."""
    owner: str = ""
    state: str = ""
    """A ``Word``."""
    broker: int | None = None
    """One that has a replica; with a state of ``TROUBLE``, one that is missing from an ISR."""
    order: Order = "trouble"
    first: int = 0
    most: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRow:
    """One row of the list."""

    name: str
    words: tuple[Word, ...]
    partitions: int
    replication_factor: int
    offline: int
    under_min_isr: int
    under_replicated: int
    owner: str
    place: str
    """``<file>:<line>``; empty: no file describes it."""
    changed: str
    """``2026-01-31 08:00 configure by alice``; empty: never by topicops."""
    shares: Mapping[int, BrokerShare] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsPage:
    """Some of the topics that are wanted."""

    topics: int
    """In the index."""
    found: int
    rows: Sequence[ListedRow]
    words: Mapping[Word, int]
    """How many topics are in each state, of all."""
    owners: Mapping[str, int]
    """The owners with most topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerTotals:
    """What one broker has of all topics, in partitions."""

    broker: int
    replicas: int = 0
    leaders: int = 0
    missing: int = 0
    topics_missing: int = 0
    """Topics with a partition whose ISR lacks this broker."""
