"""The topic index: what the Topics page shows of each topic, as the last run of the environment saw it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple, get_args

from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.json_types import FormatVersion
from topicops.model.plans.changes import Action
from topicops.model.runs.results import OutcomeStatus
from topicops.model.specs.desired import DesiredTopic

Word = Literal[
    "offline", "under min ISR", "deleted outside git", "change failed", "refused", "under-replicated", "blocked",
    "held", "rejected", "missing", "different", "to delete", "skipped", "changed since", "being deleted", "moving",
    "paused", "unmanaged", "healthy",
]  # fmt: skip
"""State of a topic, the gravest first; a topic may have several.

- ``healthy``: each partition has a leader and all its replicas in sync.
- ``refused``: the last run had a change of it, and did not send it.
- ``changed since``: a run has sent a change of it after the cluster was read.
"""
RANKS: Mapping[Word, int] = {word: rank for rank, word in enumerate(get_args(Word))}
TROUBLE: frozenset[Word] = frozenset(("offline", "under min ISR", "under-replicated"))
Order = Literal["trouble", "name", "partitions", "owner", "changed"]


def later_words(outcome: OutcomeStatus) -> tuple[Word, ...]:
    """Give the states of a topic that was changed after it was read, the gravest first."""
    match outcome:
        case OutcomeStatus.FAILED | OutcomeStatus.UNKNOWN:
            return ("change failed", "changed since")
        case OutcomeStatus.MOVING:
            return ("moving", "changed since")
        case _:
            return ("changed since",)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastChange:
    """The newest line of the audit log about a topic."""

    at: datetime
    action: Action
    outcome: OutcomeStatus
    run: str
    by: str
    """Name of the approver, else of who started the run, else the principal that sent it."""


class BrokerShare(NamedTuple):
    """What one broker has of one topic or of several, in partitions."""

    broker: int
    replicas: int = 0
    leaders: int = 0
    missing: int = 0
    """Number of replicas here that are not in the ISR."""
    topics_missing: int = 0
    """Number of topics with a partition whose ISR lacks this broker; 0 in the share of one topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChange:
    """What a plan has about a topic: a change with the gate's word, or why it is blocked."""

    title: str
    """``configure``, or ``blocked``."""
    word: Word | Literal["run"]
    """State of the change; ``rejected`` means that it is held, and a person rejected it."""
    run: str
    """``<DAG>/<run id>`` of the run with that plan."""
    reasons: tuple[str, ...] = ()
    """Reasons of the word; with an outcome, its message."""
    anchor: str = ""
    """Name of its row in that run's Plan page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedTopic:
    """One topic, live or described."""

    name: str
    words: frozenset[Word]
    offline: int
    """Number of partitions without a live leader; the next two count partitions too."""
    under_min_isr: int
    under_replicated: int
    shares: tuple[BrokerShare, ...] = ()
    """Shares, by broker."""
    live: LiveTopic | None
    desired: DesiredTopic | None
    planned: tuple[PlannedChange, ...] = ()
    last_change: LastChange | None = None

    @property
    def partitions(self) -> int:
        shown = self.live or self.desired
        return shown.partitions if shown else 0

    @property
    def replication_factor(self) -> int:
        """Replication factor; of a live topic the largest of its partitions."""
        if self.live is not None:
            return max(self.live.replication_factors, default=0)
        return self.desired.replication_factor if self.desired else 0


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
    """Number of the last line of the audit log that is in the index."""
    audit_marks: Mapping[str, int] = field(default_factory=dict)
    """Number of lines of each audit log before the cluster was read: those after them are later."""
    live: ClusterSnapshot
    """Snapshot without its topics."""
    looked_at: datetime | None = None
    """Time when a later run found nothing different; None means that none has."""
    format_version: FormatVersion = "1.0"

    @property
    def known_at(self) -> datetime:
        """Time when the cluster was last seen to be so."""
        return self.looked_at or self.read_at


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsWanted:
    """Which topics a page lists; empty words let all through."""

    q: str = ""
    """Part of name, owner or file, in any case."""
    owner: str = ""
    state: str = ""
    """A ``Word``."""
    broker: int | None = None
    """Id of a broker that has a replica; with a state of ``TROUBLE``, of one that is missing from an ISR."""
    order: Order = "trouble"
    first: int = 0
    most: int = 50


class ListedRow(NamedTuple):
    name: str
    words: tuple[Word, ...]
    partitions: int
    replication_factor: int
    offline: int
    under_replicated: int
    owner: str
    place: str
    """``<file>:<line>``; empty if no file describes it."""
    changed: str
    """``2026-01-31 08:00 configure by alice``; empty if topicops never changed it."""
    shares: Mapping[int, BrokerShare]


class TopicsPage(NamedTuple):
    topics: int
    """Number of topics in the index."""
    found: int
    """Number of topics that are wanted."""
    rows: Sequence[ListedRow]
    words: Mapping[Word, int]
    """Number of topics in each state, of all."""
    owners: Mapping[str, int]
    """Number of topics of the owners with most of them."""
