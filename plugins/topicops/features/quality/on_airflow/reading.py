"""Read what the Quality tab shows: one run from its artifacts, and the last runs of its DAG from their folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import get_args

from topicops.edges.home.artifacts import ArtifactStore, folders_in, runs_folder
from topicops.model.errors import ArtifactError
from topicops.model.runs.facts import Facts, FactsWhen
from topicops.model.runs.results import QualityReport, QualitySuite, quality_file
from topicops.on_airflow.dag_ids import kind_of
from topicops.on_airflow.pages.reading import RunOf, RunReading, opened

RUNS_SHOWN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuality:
    """The results of both suites of one run."""

    before: QualityReport | None
    after: QualityReport | None
    """None: the run has not reached that suite, or ended before it."""

    @property
    def checked_at(self) -> datetime:
        """When the later of the two suites was evaluated, UTC."""
        return max(report.checked_at for report in (self.before, self.after) if report is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityModel:
    """The Quality tab."""

    run: RunOf
    before: QualityReport | None = None
    after: QualityReport | None = None
    facts: Facts | None = None
    """Of the newest snapshot."""
    facts_when: FactsWhen = "before"
    """Which of the run's snapshots that is."""
    history: tuple[RunQuality, ...] = ()
    """The last runs of the DAG that evaluated a rule, newest first."""
    without_rules: int = 0
    """How many of its runs evaluated none."""
    quiet: str = ""
    """Why the run ended after its snapshot, if it did; one sentence."""
    problems: tuple[str, ...] = ()
    """Files that exist and cannot be read."""


def suites_of(run: RunOf) -> tuple[QualitySuite, ...]:
    """The suites of rules that a run of this DAG evaluates: an approval only sends, a drift run only looks."""
    one: Mapping[str, tuple[QualitySuite, ...]] = {"approval": ("after",), "drift": ("before",)}
    return one.get(kind_of(run.dag_id) or "", ("before", "after"))


def read_quality(home: Path, run: RunOf) -> QualityModel:
    """Each file is read on its own, so a damaged file does not hide the others."""
    if run.environment is None:
        return QualityModel(run=run)
    reading = RunReading(opened(home, run.dag_id, run.run_id))
    after = reading.facts("after")

    def report(suite: QualitySuite) -> QualityReport | None:
        name = quality_file(suite)
        return reading.value(name, lambda run: run.store.read_value(name, QualityReport))

    return QualityModel(
        run=run,
        before=report("before"),
        after=report("after"),
        facts=after or reading.facts("before"),
        facts_when="after" if after else "before",
        history=quality_history(home, run.dag_id),
        without_rules=runs_without_rules(home, run.dag_id),
        quiet=reading.quiet(),
        problems=tuple(reading.problems),
    )


def runs_without_rules(home: Path, group: str) -> int:
    """How many runs of a DAG evaluated no rule: they were quiet, ended before, or have only begun."""
    folders = folders_in(runs_folder(home, group, "any").parent)
    return sum(not _written_at(folder) for folder in folders)


def quality_history(home: Path, group: str, *, most: int = RUNS_SHOWN) -> tuple[RunQuality, ...]:
    """The last ``most`` runs of a DAG that evaluated any rule, newest first.

    A file that is damaged or of another format is skipped: one such run must not hide the others.
    """
    folders = folders_in(runs_folder(home, group, "any").parent)
    # Sorted by time of writing, so that only the files of the shown runs are read.
    newest = sorted(folders, key=_written_at, reverse=True)
    stores = [ArtifactStore(folder) for folder in newest[:most]]
    found = [RunQuality(before=_report(store, "before"), after=_report(store, "after")) for store in stores]
    return tuple(
        sorted((run for run in found if run.before or run.after), key=lambda run: run.checked_at, reverse=True)
    )


def _written_at(folder: Path) -> float:
    return max(_modified_at(folder / quality_file(suite)) for suite in get_args(QualitySuite))


def _modified_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:  # not written yet, or just pruned
        return 0.0


def _report(store: ArtifactStore, suite: QualitySuite) -> QualityReport | None:
    try:
        return store.read_value(quality_file(suite), QualityReport)
    except ArtifactError:
        return None
