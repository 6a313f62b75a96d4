"""What compares the files with the cluster: plain Python, or an engine that a feature adds."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from topicops.edges.home.memories import topic_count
from topicops.edges.places import Place
from topicops.flow.runs.run import EnvironmentRun, Run, read_environment
from topicops.flow.runs.values import Comparison
from topicops.model.choices import Engine, EngineChoice
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ArtifactError, UsageError
from topicops.model.plans.delta import desired_row, live_row
from topicops.model.ports import ConnectionSource
from topicops.model.specs.desired import Desired
from topicops.steps.facts import counts_without_states, facts_of, owned_topics, owners_of, partition_counts
from topicops.steps.planning.diff import diff

if TYPE_CHECKING:
    from topicops.steps.specs.validate import Validated


Progress = Callable[[str], None]
"""Takes one line of progress."""


class DiffEngine(Protocol):
    """Compares the files with the cluster. Every engine gives the same comparison, byte for byte."""

    name: Engine
    setting: str
    """Variable that says where it runs; empty: there is none."""
    needs_tables: bool
    """Whether the topics of the run are kept in tables."""
    from_topics: int
    """Number of topics from which it is the default engine of a plan."""
    judges_from_topics: int
    """Number of topics from which it is the default engine of a DAG's run, which judges every partition too."""

    @property
    def is_installed(self) -> bool:
        """Whether the packages that it needs are there."""

    def beside(
        self, connections: ConnectionSource, progress: Progress, run: Run | None = None, /
    ) -> AbstractContextManager[None]:
        """Start what the comparison needs, beside the work of the block; what was started early for ``run`` is used."""

    def start_early(self, run: EnvironmentRun, /) -> None:
        """Start what later tasks of the run need, which are other processes of this machine, and return at once."""

    def end(self, run: EnvironmentRun, /) -> None:
        """End what was started early. Raises nothing."""

    def compare(
        self, run: Run, desired: Desired, live: ClusterSnapshot, connections: ConnectionSource, /
    ) -> Comparison:
        """Raise ``TopicopsError`` if that is not possible."""


class PythonEngine:
    """Compares in this process, in memory."""

    name: Engine = "python"
    setting = ""
    needs_tables = False
    from_topics = 0
    judges_from_topics = 0
    is_installed = True

    def beside(self, *_: object) -> AbstractContextManager[None]:
        return nullcontext()

    def start_early(self, _: EnvironmentRun, /) -> None:
        """Nothing takes long."""

    def end(self, _: EnvironmentRun, /) -> None:
        """Nothing was started."""

    def compare(self, _: Run, desired: Desired, live: ClusterSnapshot, *__: object) -> Comparison:
        delta = diff(map(desired_row, desired.topics.values()), map(live_row, live.topics.values()))
        topics = desired.topics.values()
        counts = partition_counts(live, owners_of(topics)) if live.has_states else counts_without_states(live)
        return Comparison(delta=delta, facts=facts_of(counts, live, owned_topics(topics, live, delta)))


PYTHON = PythonEngine()


@dataclass(frozen=True, slots=True)
class ChosenEngine:
    engine: DiffEngine
    why: str = ""
    """A few words; empty if a person chose."""

    def __str__(self) -> str:
        return f"{self.engine.name}: {self.why}" if self.why else self.engine.name


def engine_for(
    choice: EngineChoice, topics: int, others: Sequence[DiffEngine], *, judges: bool = False
) -> ChosenEngine:
    """Return the engine that compares this many topics.

    Args:
        others: The installed engines beside plain Python.
        judges: Whether quality rules are judged too.

    Raises ``UsageError`` where the engine that somebody chose is not installed with this topicops.
    """
    if choice != "auto":
        engine = next((engine for engine in (PYTHON, *others) if engine.name == choice), None)
        if engine is None:
            raise UsageError(f"engine {choice}: this installation of topicops has none; use --engine python")
        return ChosenEngine(engine)
    for engine in others:
        from_topics = engine.judges_from_topics if judges else engine.from_topics
        least = f"{from_topics:,} topics"
        if topics < from_topics:
            unused = f"; {engine.setting} is not used" if os.environ.get(engine.setting) else ""
            return ChosenEngine(PYTHON, f"fewer than {least}{unused}")
        if not engine.is_installed:
            return ChosenEngine(PYTHON, f"{engine.name.capitalize()} is not installed")
        return ChosenEngine(engine, f"{least} or more")
    return ChosenEngine(PYTHON)


def engine_of_run(run: EnvironmentRun, others: Sequence[DiffEngine]) -> ChosenEngine:
    """Return the engine for a run whose files and cluster were read, as ``airflow.engine`` of its environment says.

    Raises ``UsageError`` as ``engine_for``.
    """
    spec = read_environment(run).spec
    if spec.airflow.engine == "auto" and spec.quality.rules:
        return ChosenEngine(engine_for("spark", 0, others).engine, "quality.rules are conditions in SQL")
    topics = max(len(run.read_desired().topics), len(run.read_live().topics))
    return engine_for(spec.airflow.engine, topics, others, judges=True)


def topics_to_compare(home: Place, validated: Validated) -> int:
    """Return the topics of the files, or of the cluster at its last snapshot if these were more."""
    described = len(validated.desired.topics) if validated.desired else 0
    cluster_id = validated.environment.spec.cluster.id if validated.environment else None
    return max(described, _last_count(home, cluster_id) if cluster_id else 0)


def _last_count(home: Place, cluster_id: str) -> int:
    try:
        return topic_count(home, cluster_id) or 0
    except ArtifactError:
        return 0  # the snapshot reads it too, and says what is wrong with it
