"""What compares, where nobody chose: plain Python up to a size, Spark above it. Both give the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from topicops.edges.extras import has_extra
from topicops.edges.home.topic_count import TopicCount
from topicops.flow.runs.run import Engine, EngineChoice, Run
from topicops.model.errors import ArtifactError

if TYPE_CHECKING:
    from topicops.steps.specs.validate import Validated

SPARK_FROM_TOPICS = 100_000
"""From this many topics on, a plan by Spark takes no more seconds than one by Python, with Spark's start.

Source: benchmarks/results/engine.json, on a machine of two cores: of Spark's seconds Python took 0.11 at 500 topics,
0.23 at 5,000, 0.86 at 50,000 and 1.07 at 100,000.
"""


@dataclass(frozen=True, slots=True)
class ChosenEngine:
    engine: Engine
    why: str = ""
    """A few words, unless a person chose."""

    def __str__(self) -> str:
        return f"{self.engine}: {self.why}" if self.why else self.engine


def engine_for(choice: EngineChoice, topics: int) -> ChosenEngine:
    """The engine that compares this many topics."""
    if choice != "auto":
        return ChosenEngine(choice)
    if topics < SPARK_FROM_TOPICS:
        return ChosenEngine("python", f"fewer than {SPARK_FROM_TOPICS:,} topics")
    if not has_extra("spark"):
        return ChosenEngine("python", "Spark is not installed")
    return ChosenEngine("spark", f"{SPARK_FROM_TOPICS:,} topics or more")


def topics_to_compare(run: Run, validated: Validated) -> int:
    """The topics of the files, or of the cluster at its last snapshot if these were more."""
    described = len(validated.desired.topics) if validated.desired else 0
    cluster_id = validated.environment.spec.cluster.id if validated.environment else None
    return max(described, _last_count(run.home, cluster_id) if cluster_id else 0)


def _last_count(home: Path, cluster_id: str) -> int:
    try:
        return TopicCount(home, cluster_id).read() or 0
    except ArtifactError:
        return 0  # the snapshot reads it too, and says what is wrong with it
