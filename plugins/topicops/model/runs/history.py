"""The history of an environment: what each run found, and the spans of time in which something was so.

A run is one row of ``runs``, and rows of the other tables. ``docs/reference/history.md`` says what each column means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

Mode = Literal["plan", "apply", "drift", "verify"]
TableName = Literal["runs", "deltas", "quality", "unhealthy", "outcomes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run."""

    mode: Mode
    """``apply``: the run could send changes."""
    read_at: datetime | None = None
    """When the run read the cluster, UTC; None: it did not."""
    commit: str | None = None
    cluster_id: str | None = None
    source: str | None = None
    topicops: str = ""
    """The version that recorded the run."""
    compared: bool = False
    """Whether the run compared all topics, so that its rows of ``deltas`` are all that differed."""
    checked_before: bool = False
    """Whether it evaluated the quality rules of the suite ``before``."""
    checked_after: bool = False
    topics: int | None = None
    """Live ones."""
    partitions: int | None = None
    brokers: int | None = None
    missing: int | None = None
    same: int | None = None
    different: int | None = None
    tombstoned: int | None = None
    retired: int | None = None
    paused: int | None = None
    unmanaged: int | None = None
    changes: int | None = None
    """Of the plan, as are the next three."""
    held: int | None = None
    skipped: int | None = None
    blocked: int | None = None
    in_place: int = 0
    """Changes that were made, or were not needed any more."""
    not_in_place: int = 0
    """Changes that ended otherwise."""
    rules: int = 0
    """Quality rules that were evaluated."""
    rules_failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaRow:
    """One difference between files and cluster."""

    topic: str
    topic_class: str
    """``missing``, ``different``, ``tombstoned`` or ``unmanaged``."""
    field: str = ""
    """``partitions``, ``replicationFactor``, ``assignment`` or ``configs.<key>``; empty: the topic as a whole."""
    desired: str | None = None
    """Canonical text; of ``assignment`` a digest; None: no value."""
    live: str | None = None
    owner: str | None = None
    """None: no file names the topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRow:
    """What one quality rule found."""

    suite: str
    rule: str
    severity: str
    success: bool
    rows_checked: int
    rows_failed: int
    rows_failed_before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnhealthyRow:
    """One topic or partition that breaks a quality rule; a rule names at most 20."""

    suite: str
    rule: str
    topic: str
    partition: int | None = None
    shown: str = "{}"
    """What is wrong with it: a JSON object."""
    so_before: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRow:
    """What apply did with one change."""

    topic: str
    action: str
    status: str
    message: str
    digest: str
    sent: bool


Row = RunRow | DeltaRow | QualityRow | UnhealthyRow | OutcomeRow
ROW_TYPES: Mapping[TableName, type[Row]] = {
    "deltas": DeltaRow,
    "quality": QualityRow,
    "unhealthy": UnhealthyRow,
    "outcomes": OutcomeRow,
    "runs": RunRow,
}
"""In the order in which a run writes its tables: it counts as soon as its row of ``runs`` is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """All rows of one run. A run that is tried again is recorded again: its newest entry counts."""

    environment: str
    run: str
    """``<group>/<run id>``."""
    recorded_at: datetime
    """UTC."""
    runs: tuple[RunRow]
    deltas: tuple[DeltaRow, ...] = ()
    quality: tuple[QualityRow, ...] = ()
    unhealthy: tuple[UnhealthyRow, ...] = ()
    outcomes: tuple[OutcomeRow, ...] = ()

    def rows(self, table: TableName) -> Sequence[Row]:
        found: Sequence[Row] = getattr(self, table)
        return found


Key = tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanQuestion:
    """Which rows of a table to join to spans of time, as columns of the table."""

    table: TableName
    key: tuple[str, ...]
    """Rows with equal values in runs that follow each other are one span."""
    detail: str
    """Shown as the last run of the span had it."""
    lane: str | None
    """Runs follow each other within one value of this column; None: there is one lane, whose name is empty."""
    lanes: Mapping[str, str]
    """For each lane the column of ``runs`` that says whether a run is in it."""
    failed_only: bool = False
    """Without rows whose ``success`` is true."""


_SUITES = {"before": "checked_before", "after": "checked_after"}
DIFFERENCES = SpanQuestion(
    table="deltas",
    key=("topic", "topic_class", "field", "desired", "live"),
    detail="owner",
    lane=None,
    lanes={"": "compared"},
)
FAILING_RULES = SpanQuestion(
    table="quality", key=("rule", "severity"), detail="rows_failed", lane="suite", lanes=_SUITES, failed_only=True
)
UNHEALTHY = SpanQuestion(
    table="unhealthy", key=("rule", "topic", "partition"), detail="shown", lane="suite", lanes=_SUITES
)


class LaneRun(NamedTuple):
    """A run in the row of runs that are compared with each other; the newest ``recorded_at`` of a run counts."""

    lane: str
    run: str
    recorded_at: datetime
    at: datetime
    """When the run read the cluster, or was recorded if it did not read it."""
    commit: str | None


class Sighting(NamedTuple):
    """Something that one run saw."""

    lane: str
    run: str
    recorded_at: datetime
    key: Key
    detail: str | None


class RunPoint(NamedTuple):
    """A run, as the begin or end of a span."""

    run: str
    at: datetime
    commit: str | None


class Span(NamedTuple):
    """Something that was so in runs that follow each other."""

    lane: str
    key: Key
    detail: str | None
    """As the last of the runs saw it."""
    began: RunPoint
    """The first run that saw it."""
    last: RunPoint
    """The last run that saw it."""
    ended: RunPoint | None
    """The first run after them, which saw it no more; None: there is none yet."""
    runs: int
    """How many saw it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastOutcome:
    """A change of a topic that a run had to make."""

    run: str
    at: datetime
    action: str
    status: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpansFound:
    """What a question about the history found."""

    environment: str
    since: datetime | None
    """None: the whole history."""
    spans: tuple[Span, ...]
    """By lane, key and time."""
    warnings: tuple[str, ...]
    """Files that were left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicHistory:
    """What the history has of one topic."""

    environment: str
    topic: str
    differences: tuple[Span, ...]
    unhealthy: tuple[Span, ...]
    outcomes: tuple[PastOutcome, ...]
    """Oldest first."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRun:
    """One run of all topics, in numbers."""

    run: str
    at: datetime
    """When it read the cluster."""
    seconds: float
    """From then until it was recorded, at its end."""
    partitions: int | None
    differing: int | None
    """Topics that are missing, different or to be deleted; None: not compared."""
    waiting: int | None
    """Changes that are held, and topics that are blocked."""
    changes: int = 0
    """That it had to make after it had read the cluster: its numbers are from before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trends:
    runs: tuple[TrendRun, ...]
    """Oldest first."""
    failed_rows: Mapping[str, Mapping[str, int]]
    """By quality rule and run; 0: it held; no entry: not evaluated."""
    warnings: tuple[str, ...]
