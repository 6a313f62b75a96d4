"""The quality of the last runs of one DAG, from their folders; a page shows it as a strip."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from topicops.edges.home.artifacts import ArtifactStore, folders_in, runs_folder
from topicops.edges.places import Place, written_at
from topicops.model.errors import ArtifactError
from topicops.model.runs.results import QualityReport, QualitySuite, quality_file

RUNS_SHOWN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuality:
    before: QualityReport | None
    after: QualityReport | None
    """Report of the suite; None means that the run has not reached it, or ended before."""

    @property
    def checked_at(self) -> datetime:
        """When the later of the two suites was evaluated, UTC."""
        return max(report.checked_at for report in (self.before, self.after) if report is not None)


def runs_without_rules(home: Place, group: str) -> int:
    """Return how many runs of a DAG evaluated no rule: they were quiet, ended before, or have only begun."""
    folders = folders_in(runs_folder(home, group, "any").parent)
    return sum(not _written_at(folder) for folder in folders)


def quality_history(home: Place, group: str, *, most: int = RUNS_SHOWN) -> tuple[RunQuality, ...]:
    """Return the last ``most`` runs of a DAG that evaluated any rule, newest first.

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


def _written_at(folder: Place) -> float:
    return max(_modified_at(folder / quality_file(suite)) for suite in get_args(QualitySuite))


def _modified_at(file: Place) -> float:
    try:
        return written_at(file)
    except OSError:  # not written yet, or just pruned
        return 0.0


def _report(store: ArtifactStore, suite: QualitySuite) -> QualityReport | None:
    try:
        return store.read_value(quality_file(suite), QualityReport)
    except ArtifactError:
        return None
