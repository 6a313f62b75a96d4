"""What features add to the loop. Deleting a feature's folder deletes its lines here, and in the lists of `cli`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import topicops.features.formatting.files
import topicops.features.history.recording
import topicops.features.history.text
import topicops.features.history.trends_page
import topicops.features.pull_requests.signed_reviews
import topicops.features.quality.judging
import topicops.features.quiet.quiet
import topicops.features.sandbox.addresses
import topicops.features.spark.engine
import topicops.features.spark.settings
import topicops.features.topic_pages.indexing
import topicops.features.why.causes
from topicops.features.shared.markup import Html
from topicops.flow.engines import PYTHON, DiffEngine
from topicops.flow.runs.kept import load_all_results
from topicops.flow.runs.run import Run, note
from topicops.flow.runs.values import RunMode, RunResults
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.errors import ArtifactError
from topicops.model.runs.results import QualityReport
from topicops.model.runs.review import ReviewApprovals
from topicops.model.runs.run_result import Quiet
from topicops.model.specs.environment import KafkaEndpoint, ZooKeeperEndpoint


class AfterRun(Protocol):
    """Called once the steps of a run are done. It raises nothing."""

    def __call__(self, run: Run, results: RunResults, *, mode: RunMode | None) -> None: ...


class ShortCut(Protocol):
    """Lets a run of a DAG do less, where nothing changed. Its functions are described where they are defined."""

    def look_for_quiet(self, run: Run, *, mode: str, full_because: str) -> Quiet | None: ...
    def judged_by(self, run: Run) -> str: ...
    def note_end(self, run: Run, *, failed_tasks: Sequence[str] = ()) -> None: ...


class Quality(Protocol):
    """Judges every row of a run that keeps its topics in tables; what it finds is a value of the run."""

    def beside(self, run: Run) -> AbstractContextManager[None]:
        """Start what the rules need, beside the work of the block."""

    def before(self, run: Run) -> QualityReport:
        """Give the rules before the changes: may the inputs be trusted?"""

    def after(self, run: Run) -> QualityReport:
        """Give the rules after the changes: is the result healthy?"""


class DriftSince(Protocol):
    """Returns when each difference of an environment began and ended, warnings, and whether a difference lasts."""

    def __call__(
        self, environment: str, since: str, only: str | None, *, as_json: bool
    ) -> tuple[str, Sequence[str], bool]: ...


@dataclass(frozen=True, slots=True)
class Page:
    """A page of an environment."""

    name: str
    """Last word of its address."""
    title: str
    body: Callable[[Path, str], Iterable[Html]]
    """Function that takes the home and the environment, and reads what the page shows."""


AFTER_RUN: tuple[AfterRun, ...] = (
    topicops.features.history.recording.record,
)  # fmt: skip
SHORT_CUTS: tuple[ShortCut, ...] = (
    topicops.features.quiet.quiet,
)  # fmt: skip
AFTER_READING: tuple[Callable[[Run], None], ...] = (
    topicops.features.topic_pages.indexing.index_topics,
)  # fmt: skip
"""Functions called after tasks that have read, planned for or changed the cluster. They raise nothing."""
PAGES: tuple[Page, ...] = (
    Page("trends", "Trends", topicops.features.history.trends_page.trends_page),
)  # fmt: skip

SINCE: tuple[DriftSince, ...] = (
    topicops.features.history.text.shown_drift_since,
)  # fmt: skip
"""The first is used."""

REVIEWS: tuple[Callable[[Run, Sequence[object]], ReviewApprovals], ...] = (
    topicops.features.pull_requests.signed_reviews.approvals_of_reviews,
)  # fmt: skip
"""Functions that check the entries of the param ``reviews``, and give what they approve."""

CAUSES: tuple[Callable[[ClusterSnapshot, LiveTopic], Iterable[tuple[str, str]]], ...] = (
    topicops.features.why.causes.causes_as_read,
)  # fmt: skip
"""Functions that say what is wrong with a topic of a snapshot, and what ends each of it."""
ENGINES: tuple[DiffEngine, ...] = (
    topicops.features.spark.engine.SPARK,
)  # fmt: skip
"""Engines beside plain Python; where nobody chose, the first is taken from its number of topics on."""
TASK_ENGINE: DiffEngine = (*ENGINES, PYTHON)[0]
"""Engine of the tasks of a DAG, whose runs keep their topics in tables."""

QUALITY: tuple[Quality, ...] = (
    topicops.features.quality.judging,
)  # fmt: skip

SECRETS: tuple[Callable[[], Iterable[str]], ...] = (
    topicops.features.spark.settings.secrets_of_settings,
)  # fmt: skip
"""Functions that give secrets in variables of this process, for a log that can mask them."""

NEW_FILE: tuple[Callable[[str], str], ...] = (
    topicops.features.formatting.files.formatted_topic,
)  # fmt: skip
"""Functions that take the text of a new topic's file, and give what is written in its place."""

LOCAL_CLUSTER: tuple[Callable[[], tuple[ZooKeeperEndpoint | None, KafkaEndpoint]], ...] = (
    topicops.features.sandbox.addresses.local_addresses,
)  # fmt: skip
"""Functions that give the addresses of a cluster on this machine; the first is used."""


def after_run(run: Run, results: RunResults, *, mode: RunMode | None = None) -> None:
    """Call each feature that looks at a run which is done.

    Args:
        mode: None means that the results tell it: ``apply``, ``verify`` or ``plan``.
    """
    for call in AFTER_RUN:
        call(run, results, mode=mode)


def after_reading(run: Run) -> None:
    """Call each feature that keeps what runs have last seen of the cluster and of its plan."""
    for call in AFTER_READING:
        call(run)


def after_task(run: Run, *, mode: RunMode | None = None) -> None:
    """As ``after_run``, of what the run has left in its folder. What cannot be read is noted, and fails no task."""
    try:
        results = load_all_results(run)
    except ArtifactError as error:
        said = f"what follows a run is left out: {error}"
        run.progress(said)
        with suppress(ArtifactError):
            note(run, [said])
        return
    after_run(run, results, mode=mode)
