"""What features add to the loop. Deleting a feature's folder deletes its lines here, and in the lists of `cli`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import topicops.features.ask.history.answers
import topicops.features.ask.history.recording
import topicops.features.files.formatting.files
import topicops.features.moves.offered
import topicops.features.spark.engine
from topicops.flow.engines import DiffEngine
from topicops.flow.runs.access import NO_MOVES, Moves
from topicops.flow.runs.kept import load_all_results
from topicops.flow.runs.run import EnvironmentRun, note
from topicops.flow.runs.values import RunMode, RunResults
from topicops.model.errors import ArtifactError


class AfterRun(Protocol):
    """Called once the steps of a run are done. It raises nothing."""

    def __call__(self, run: EnvironmentRun, results: RunResults, *, mode: RunMode | None) -> None: ...


class DriftSince(Protocol):
    """Returns when each difference of an environment began and ended, warnings, and whether a difference lasts."""

    def __call__(
        self, environment: str, since: str, only: str | None, *, as_json: bool
    ) -> tuple[str, Sequence[str], bool]: ...


AFTER_RUN: tuple[AfterRun, ...] = (
    topicops.features.ask.history.recording.record,
)  # fmt: skip
SINCE: tuple[DriftSince, ...] = (
    topicops.features.ask.history.answers.shown_drift_since,
)  # fmt: skip
"""The first is used."""

ENGINES: tuple[DiffEngine, ...] = (
    topicops.features.spark.engine.SPARK,
)  # fmt: skip
"""Engines besides plain Python; by default, the first is used from its number of topics on."""
MOVERS: tuple[Moves, ...] = (
    topicops.features.moves.offered.MOVES_BY_KAFKA,
)  # fmt: skip
"""The first is used; without one, a topic whose replicas must move is blocked."""
NEW_FILE: tuple[Callable[[str], str], ...] = (
    topicops.features.files.formatting.files.formatted_topic,
)  # fmt: skip
"""Functions that take the text of a new topic's file, and give what is written in its place."""


def moves() -> Moves:
    """Return what plans moves of replicas in this installation, carries them out, and knows which it has accepted."""
    return next(iter(MOVERS), NO_MOVES)


def after_run(run: EnvironmentRun, results: RunResults, *, mode: RunMode | None = None) -> None:
    """Call each feature that looks at a run which is done; without a ``mode`` the results tell it."""
    for call in AFTER_RUN:
        call(run, results, mode=mode)


def after_task(run: EnvironmentRun, *, mode: RunMode | None = None) -> None:
    """Do as ``after_run``, with what the run has left in its folder. An unreadable part is noted, and fails no task."""
    try:
        results = load_all_results(run)
    except ArtifactError as error:
        said = f"what follows a run is left out: {error}"
        run.progress(said)
        with suppress(ArtifactError):
            note(run, [said])
        return
    after_run(run, results, mode=mode)
