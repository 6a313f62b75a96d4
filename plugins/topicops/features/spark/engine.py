"""The engine that compares files and cluster in Spark."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path

from topicops.edges.extras import has_extra
from topicops.edges.places import scratch_folder
from topicops.features.shared.java import pyspark_jars
from topicops.features.spark.settings import DEFAULT_MEMORY, SETTING, spark_place
from topicops.flow.engines import PYTHON, Progress
from topicops.flow.runs.run import EnvironmentRun, Run
from topicops.flow.runs.values import Comparison
from topicops.model.choices import Engine
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import LocalClusterError, TopicopsError
from topicops.model.ports import ConnectionSource
from topicops.model.specs.desired import Desired
from topicops.steps.facts import counts_without_states, facts_of

FROM_TOPICS = 100_000
"""Number of topics from which a plan by Spark is as fast as one by Python, with Spark's start.

Source: benchmarks/results/engine.json, on a machine of two cores: of Spark's seconds Python took 0.11 at 500 topics,
0.23 at 5,000, 0.86 at 50,000 and 1.07 at 100,000.
"""
JUDGES_FROM_TOPICS = 40_000
"""The same for a DAG's run, which judges each partition; with 20 partitions a topic.

Source: benchmarks/results/judging.json.
"""


class SparkEngine:
    """Compares the tables of the run, in Spark; a run that keeps no tables is compared in Python."""

    name: Engine = "spark"
    setting = SETTING
    needs_tables = True
    from_topics = FROM_TOPICS
    judges_from_topics = JUDGES_FROM_TOPICS

    @property
    def is_installed(self) -> bool:
        """Return whether there is a Spark to run, or its client and the setting that names a server."""
        with suppress(LocalClusterError):
            return has_extra("spark") and (bool(os.environ.get(SETTING)) or pyspark_jars().is_dir())
        return False

    def beside(
        self, connections: ConnectionSource, progress: Progress, run: Run | None = None, /
    ) -> AbstractContextManager[None]:
        from topicops.features.spark.edges.kept_driver import kept_driver
        from topicops.features.spark.edges.session import spark_application

        kept = partial(kept_driver, _folder(run)) if run else lambda: None
        return spark_application(connections=connections, progress=progress, kept=kept)

    def start_early(self, run: EnvironmentRun, /) -> None:
        place = spark_place(None, run.connections)
        if place.kind == "local":
            with suppress(TopicopsError, OSError):  # who needs it starts one, and says why that failed
                from topicops.features.spark.edges.kept_driver import keep_driver

                keep_driver(_folder(run), place.memory or DEFAULT_MEMORY)

    def end(self, run: EnvironmentRun, /) -> None:
        if _folder(run).is_dir():
            from topicops.features.spark.edges.kept_driver import end_kept

            end_kept(_folder(run))

    def compare(
        self, run: Run, desired: Desired, live: ClusterSnapshot, connections: ConnectionSource, /
    ) -> Comparison:
        tables = run.tables()
        if tables is None:
            return PYTHON.compare(run, desired, live)
        from topicops.features.spark.edges.comparison import count_partitions, spark_diff
        from topicops.features.spark.edges.frames import RunTables
        from topicops.features.spark.edges.session import spark_session

        with spark_session(connections=connections, progress=run.progress) as spark:
            frames = RunTables(spark, tables, live, f"{desired.environment} {run.name}")
            with frames.step("diff", rows=len(desired.topics) + len(live.topics)):
                delta, owned = spark_diff(frames.frame("desired"), frames.frame("topics"))
            counts = counts_without_states(live)
            if live.has_states:
                with frames.step("facts", rows=live.partitions):
                    counts = count_partitions(frames, by_owner=True)
            return Comparison(delta=delta, facts=facts_of(counts, live, owned))


def _folder(run: Run) -> Path:
    """Return where the Spark writes that the tasks of a run share on this machine."""
    return scratch_folder(run.store.folder) / "spark"


SPARK = SparkEngine()
