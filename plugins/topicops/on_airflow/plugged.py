"""What features add to the tasks of DAGs and to the pages. Deleting a feature's folder deletes its lines here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import topicops.features.ask.why.causes
import topicops.features.moves.on_airflow.starting
import topicops.features.pull_requests.signed_reviews
import topicops.features.quality.judging
import topicops.features.quiet.quiet
import topicops.features.spark.settings
import topicops.features.topic_pages.indexing
from topicops.flow import single_steps
from topicops.flow.engines import DiffEngine, engine_of_run
from topicops.flow.runs.access import Moves
from topicops.flow.runs.run import EnvironmentRun
from topicops.flow.single_steps import ReportSummary, Summary
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.plans.changes import Action
from topicops.model.plans.plan import Approval
from topicops.model.ports import ConnectionSource
from topicops.model.runs.results import QualityReport, Quiet, ReviewApprovals
from topicops.plugged import ENGINES
from topicops.steps.planning.diff import DriftReport

if TYPE_CHECKING:
    from airflow.sdk import Context


class Flow(Protocol):
    """The functions of ``flow.single_steps`` that tasks use; tests put others in their place."""

    def open_run(
        self,
        *,
        environment: str,
        topics: Path,
        group: str,
        run_id: str,
        connections: ConnectionSource,
        progress: Callable[[str], None],
        version: str | None,
        pinned: str | None,
        moves: Moves,
    ) -> EnvironmentRun: ...
    def validate(self, run: EnvironmentRun, *, as_tables: bool = False, patience_s: float = 0.0) -> Summary: ...
    def snapshot(self, run: EnvironmentRun, *, states: bool) -> Summary: ...
    def diff(self, run: EnvironmentRun, *, engine: DiffEngine) -> Summary: ...
    def diff_once(self, run: EnvironmentRun, *, engine: DiffEngine) -> Summary: ...
    def plan(self, run: EnvironmentRun, *, only: str | None) -> Summary: ...
    def plan_held(self, run: EnvironmentRun, digests: Collection[str]) -> Summary: ...
    def gate(self, run: EnvironmentRun, *, approvals: Sequence[Approval] = ()) -> Summary: ...
    def record_drift(self, run: EnvironmentRun, *, only: str | None) -> DriftReport: ...
    def apply(
        self,
        run: EnvironmentRun,
        *,
        actions: Collection[Action],
        approvals: Sequence[Approval],
        lock_timeout_s: float,
        attempt: int,
        started_by: str,
        interrupted: Callable[[], bool],
    ) -> Mapping[str, int]: ...
    def verify(self, run: EnvironmentRun) -> Summary: ...
    def report(self, run: EnvironmentRun, *, failed_tasks: Sequence[str]) -> ReportSummary: ...
    def note_verified(self, run: EnvironmentRun, *, failed_tasks: Sequence[str]) -> None: ...


class ShortCut(Protocol):
    """Lets a run of a DAG do less, where nothing changed. Its functions are described where they are defined."""

    def look_for_quiet(self, run: EnvironmentRun, *, mode: str, full_because: str) -> Quiet | None: ...
    def judged_by(self, run: EnvironmentRun) -> str: ...
    def note_end(self, run: EnvironmentRun, *, failed_tasks: Sequence[str] = ()) -> None: ...


class Quality(Protocol):
    """Judges every row of a run that keeps its topics in tables. Its functions are described where they are defined."""

    def beside(self, run: EnvironmentRun, engine: DiffEngine) -> AbstractContextManager[None]: ...
    def before(self, run: EnvironmentRun, engine: DiffEngine) -> QualityReport: ...
    def after(self, run: EnvironmentRun, engine: DiffEngine) -> QualityReport: ...


SHORT_CUTS: tuple[ShortCut, ...] = (
    topicops.features.quiet.quiet,
)  # fmt: skip
AFTER_READING: tuple[Callable[[EnvironmentRun], None], ...] = (
    topicops.features.topic_pages.indexing.index_topics,
)  # fmt: skip
"""Functions called after tasks that have read, planned for or changed the cluster. They raise nothing."""
CARRY_ON: tuple[Callable[[EnvironmentRun, Context], None], ...] = (
    topicops.features.moves.on_airflow.starting.start_moves,
)  # fmt: skip
"""Functions called in a task that has sent changes, and at the end of each run: start what carries them on.

They raise nothing.
"""
REVIEWS: tuple[Callable[[EnvironmentRun, Sequence[object]], ReviewApprovals], ...] = (
    topicops.features.pull_requests.signed_reviews.approvals_of_reviews,
)  # fmt: skip
"""Functions that check the entries of the param ``reviews``, and give what they approve."""
CAUSES: tuple[Callable[[ClusterSnapshot, LiveTopic], Iterable[tuple[str, str]]], ...] = (
    topicops.features.ask.why.causes.causes_as_read,
)  # fmt: skip
"""Functions that say what is wrong with a topic of a snapshot, and what ends each of it."""
QUALITY: tuple[Quality, ...] = (
    topicops.features.quality.judging,
)  # fmt: skip
SECRETS: tuple[Callable[[], Iterable[str]], ...] = (
    topicops.features.spark.settings.secrets_of_settings,
)  # fmt: skip
"""Functions that give secrets in variables of this process, for a log that can mask them."""


def engine_of(run: EnvironmentRun) -> DiffEngine:
    """Return the engine of a run, and say which it is. Raises ``UsageError``."""
    chosen = engine_of_run(run, ENGINES)
    run.progress(f"Compared and judged by {chosen}")
    return chosen.engine


def end_engines(run: EnvironmentRun) -> None:
    """End what an earlier task has started for this run."""
    for engine in ENGINES:
        engine.end(run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What the tasks of a DAG use."""

    flow: Flow = single_steps
    short_cuts: Sequence[ShortCut] = SHORT_CUTS
    quality: Sequence[Quality] = QUALITY
    engine_of: Callable[[EnvironmentRun], DiffEngine] = engine_of


def after_reading(run: EnvironmentRun) -> None:
    """Call each feature that keeps what runs have last seen of the cluster and of its plan."""
    for call in AFTER_READING:
        call(run)


def carry_on(run: EnvironmentRun, context: Context) -> None:
    """Start what carries on, after this task, the changes that take long."""
    for call in CARRY_ON:
        call(run, context)
