"""What compares the files with the cluster: plain Python, or Spark. Where nobody chose, the number of topics does."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from topicops.edges.extras import has_extra
from topicops.edges.home.memories import topic_count
from topicops.flow.runs.run import Engine, EngineChoice, Run
from topicops.flow.runs.values import Comparison
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ArtifactError
from topicops.model.plans.delta import desired_row, live_row
from topicops.model.ports import ConnectionSource
from topicops.model.specs.desired import Desired
from topicops.steps.facts import classes_by_owner, counts_without_states, facts_of, partition_counts
from topicops.steps.planning.diff import diff

if TYPE_CHECKING:
    from topicops.edges.tables.table_folder import TableFolder
    from topicops.steps.specs.validate import Validated

SPARK_FROM_TOPICS = 100_000
"""From this many topics on, a plan by Spark takes no more seconds than one by Python, with Spark's start.

Source: benchmarks/results/engine.json, on a machine of two cores: of Spark's seconds Python took 0.11 at 500 topics,
0.23 at 5,000, 0.86 at 50,000 and 1.07 at 100,000.
"""


class DiffEngine(Protocol):
    """Compares the files with the cluster. Every engine gives the same comparison, byte for byte."""

    name: Engine
    needs_tables: bool
    """Whether the topics of the run are kept in tables."""

    def beside(self, connections: ConnectionSource, /) -> AbstractContextManager[None]:
        """Start what the comparison needs, beside the work of the block."""

    def compare(
        self, desired: Desired, live: ClusterSnapshot, tables: TableFolder | None, connections: ConnectionSource, /
    ) -> Comparison:
        """Raise ``TopicopsError`` if that is not possible."""


class PythonEngine:
    """Compares in this process, in memory."""

    name: Engine = "python"
    needs_tables = False

    def beside(self, *_: object) -> AbstractContextManager[None]:
        return nullcontext()

    def compare(self, desired: Desired, live: ClusterSnapshot, *_: object) -> Comparison:
        delta = diff(map(desired_row, desired.topics.values()), map(live_row, live.topics.values()))
        counts = partition_counts(live) if live.has_states else counts_without_states(live)
        facts = facts_of(counts, live, classes_by_owner(desired.topics.values(), delta))
        return Comparison(delta=delta, facts=facts)


class SparkEngine:
    """Compares the tables of the run, in Spark; a run that keeps no tables is compared in Python."""

    name: Engine = "spark"
    needs_tables = True

    def beside(self, connections: ConnectionSource, /) -> AbstractContextManager[None]:
        from topicops.edges.spark.session import spark_application

        return spark_application(connections=connections)

    def compare(
        self, desired: Desired, live: ClusterSnapshot, tables: TableFolder | None, connections: ConnectionSource, /
    ) -> Comparison:
        if tables is None:
            return PYTHON.compare(desired, live)
        from topicops.edges.spark.diff import spark_diff
        from topicops.edges.spark.facts import count_partitions
        from topicops.edges.spark.quality_frames import RunTables
        from topicops.edges.spark.session import planned_for, spark_session

        with spark_session(connections=connections) as spark:
            frames = RunTables(spark, tables, live)
            with planned_for(spark, len(desired.topics) + len(live.topics)):
                delta, classes = spark_diff(frames.frame("desired"), frames.frame("topics"))
            counts = count_partitions(frames) if live.has_states else counts_without_states(live)
            return Comparison(delta=delta, facts=facts_of(counts, live, classes))


PYTHON, SPARK = PythonEngine(), SparkEngine()
ENGINES: Mapping[Engine, DiffEngine] = {"python": PYTHON, "spark": SPARK}


@dataclass(frozen=True, slots=True)
class ChosenEngine:
    engine: DiffEngine
    why: str = ""
    """A few words; empty if a person chose."""

    def __str__(self) -> str:
        return f"{self.engine.name}: {self.why}" if self.why else self.engine.name


def engine_for(choice: EngineChoice, topics: int) -> ChosenEngine:
    """The engine that compares this many topics."""
    if choice != "auto":
        return ChosenEngine(ENGINES[choice])
    if topics < SPARK_FROM_TOPICS:
        return ChosenEngine(PYTHON, f"fewer than {SPARK_FROM_TOPICS:,} topics")
    if not has_extra("spark"):
        return ChosenEngine(PYTHON, "Spark is not installed")
    return ChosenEngine(SPARK, f"{SPARK_FROM_TOPICS:,} topics or more")


def topics_to_compare(run: Run, validated: Validated) -> int:
    """The topics of the files, or of the cluster at its last snapshot if these were more."""
    described = len(validated.desired.topics) if validated.desired else 0
    cluster_id = validated.environment.spec.cluster.id if validated.environment else None
    return max(described, _last_count(run.home, cluster_id) if cluster_id else 0)


def _last_count(home: Path, cluster_id: str) -> int:
    try:
        return topic_count(home, cluster_id) or 0
    except ArtifactError:
        return 0  # the snapshot reads it too, and says what is wrong with it
