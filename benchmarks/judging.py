"""The rules and the facts of ``quality_after`` by each engine, from a cold process to its exit, at three sizes.

From ``features.spark.engine.JUDGES_FROM_TOPICS`` on, ``airflow.engine: auto`` takes Spark: at that size, with 20
partitions a topic, Spark must take no more CPU seconds than plain Python. Great Expectations is left out: both sides
import it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side
from benchmarks.process_tree import run_measured
from benchmarks.quality import facts_known, write_cluster
from topicops.edges.tables.table_folder import TableFolder
from topicops.edges.tables.topics import read_live_topics
from topicops.features.quality.judging import expected_after
from topicops.features.quality.measures import Measure
from topicops.features.quality.rules import AFTER
from topicops.model.cluster.snapshot import ClusterSnapshot

ENGINES = ("python", "spark")
UNITS = ("s", "CPU s")
ROOT = Path(__file__).resolve().parents[1]
HEAD = "head.json"


def judge_in_python(tables: TableFolder, live: ClusterSnapshot) -> Sequence[Measure]:
    from topicops.features.quality.in_python import judge_rows
    from topicops.features.quality.rows import rows_after
    from topicops.steps.facts import facts_of, partition_counts

    live = replace(live, topics=read_live_topics(tables))
    facts_of(partition_counts(live), live)
    asked = facts_known(live)
    return judge_rows(AFTER, partial(rows_after, live, asked), expected_after(live, asked.differences or {})).measures


def judge_in_spark(tables: TableFolder, live: ClusterSnapshot) -> Sequence[Measure]:
    from topicops.features.quality.edges.in_spark import frames_to_count
    from topicops.features.quality.edges.measuring import judge_rows
    from topicops.features.spark.edges.comparison import counted, counts_of
    from topicops.features.spark.edges.frames import RunTables
    from topicops.features.spark.edges.session import spark_session
    from topicops.steps.facts import facts_of

    live = replace(live, topics=read_live_topics(tables))
    asked = facts_known(live)
    with spark_session("local[*]") as spark:
        rows = RunTables(spark, tables, live, "bench judging")
        with rows.step("quality_after", rows=live.partitions):
            expected = expected_after(live, asked.differences or {})
            judged, beside = judge_rows(
                AFTER, frames_to_count(rows, asked, AFTER), dict, expected, beside=counted(rows)
            )
    facts_of(counts_of(beside), live)
    return judged.measures


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with tempfile.TemporaryDirectory(prefix="topicops-bench-") as name:
        folders = {size: Path(name) / str(size) for size in sizes(topics)}
        for size, folder in folders.items():
            _, live = write_cluster(folder, size)
            (folder / HEAD).write_bytes(msgspec.json.encode(replace(live, topics={})))
        yield {
            side(engine, size, unit): partial(figure, engine, folder, unit)
            for size, folder in folders.items()
            for engine in ENGINES
            for unit in UNITS
        }


_taken: dict[tuple[str, Path], dict[str, float]] = {}


def figure(engine: str, folder: Path, unit: str) -> float:
    """Seconds and CPU seconds are of one run: the first that is asked for runs it."""
    found = _taken.setdefault((engine, folder), {})
    if unit not in found:
        command = [sys.executable, "-m", "benchmarks.judging", engine, str(folder)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))}
        usage = run_measured(command, cwd=ROOT, environment=environment)
        found |= {"s": usage.seconds, "CPU s": usage.cpu_s}
    return found.pop(unit)


def sizes(topics: int) -> tuple[int, int, int]:
    return topics // 40, topics // 4, topics


def side(engine: str, size: int, unit: str) -> str:
    return f"{engine}, {size} topics, {unit}"


def comparisons(topics: int) -> Sequence[Comparison]:
    return [
        Comparison(
            id=f"judging-by-python-to-spark-{size}-topics-{unit.replace(' ', '-').lower()}",
            numerator=side("python", size, unit),
            denominator=side("spark", size, unit),
            goal=1.0,
            better="lower" if size < topics else "higher",
        )
        for size in sizes(topics)
        for unit in UNITS
    ]


def main(engine: str, folder: Path) -> None:
    live = msgspec.json.decode((folder / HEAD).read_bytes(), type=ClusterSnapshot)
    judge = judge_in_python if engine == "python" else judge_in_spark
    if any(measure.rows_failed for measure in judge(TableFolder.at(folder), live)):
        raise BenchmarkError("a healthy cluster breaks a rule")


BENCHMARK = Benchmark(name="judging", topics=40_000, rounds=5, comparisons=comparisons, sides=sides)

if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
