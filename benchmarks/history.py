"""A year of hourly runs: how large their history is, what a run pays to be in it, and what a question about it costs.

The size is a number of runs, an hour apart. Each sees about eleven differences and evaluates ten rules. Times of
questions are CPU seconds of whole processes, each started anew, with all that they start; Spark's own start is apart.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side
from topicops.edges.history.append import append_tables
from topicops.edges.history.compaction import compact
from topicops.model.runs.history import DeltaRow, HistoryEntry, QualityRow, RunRow

SPARK, PLAIN, SESSION = "drift --since on Spark", "drift --since, plain Python", "Spark's start, apart"
ALLOWED = "allowed (6 CPU s)"
SIZE, ALLOWED_SIZE = "compacted (MB)", "allowed (3 MB)"
APPEND, ALLOWED_APPEND = "a run's three files, p99 (wall s)", "allowed (0.1 wall s)"
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
AFTER = date(2027, 1, 1)
DIFFERENCES = 22
RULES = 10
APPENDS = 500
"""So many are timed, on a disk."""
QUESTION = """
import json, sys
import psutil
from datetime import datetime
from topicops.flow import drift_since

def spent():
    here = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (here, *here.children(recursive=True)))

engine, since, session = sys.argv[1], sys.argv[2], 0.0
if engine == "spark":
    from topicops.edges.spark.session import spark_session
    before = spent()
    with spark_session("local[*]"):
        session = spent() - before
        found = drift_since("bench", since, engine="spark")
        whole = spent()
else:
    found = drift_since("bench", since, engine="python")
    whole = spent()
print(json.dumps([whole - session, session, [str(span) for span in found.spans]]))
"""


@contextmanager
def sides(runs: int) -> Iterator[Mapping[str, Side]]:
    memory = Path("/dev/shm")  # the year is there; the timed appends are on a disk
    with (
        tempfile.TemporaryDirectory(prefix="topicops-bench-") as disk,
        tempfile.TemporaryDirectory(prefix="topicops-bench-", dir=memory if memory.is_dir() else None) as name,
    ):
        home = Path(name)
        p99 = timed_appends(Path(disk), min(runs, APPENDS))
        for number in range(runs):
            append_tables(home, entry(number))
        if not compact(home, AFTER):
            raise BenchmarkError("the history was not compacted")
        _remove_inputs(home)
        size = sum(path.stat().st_size for path in home.rglob("*.parquet")) / 1e6
        since = entry(runs - 7 * 24 if runs > 7 * 24 else 0).recorded_at.isoformat()
        require_one_answer(asked(home, "spark", since)[2], asked(home, "python", since)[2])
        starts: list[float] = []

        def on_spark() -> float:
            question, start, _ = asked(home, "spark", since)
            starts.append(start)
            return question

        yield {
            SPARK: on_spark,
            PLAIN: lambda: asked(home, "python", since)[0],
            SESSION: lambda: starts[-1] if starts else 0.0,
            ALLOWED: lambda: 6.0,
            SIZE: lambda: size,
            ALLOWED_SIZE: lambda: 3.0,
            APPEND: lambda: p99,
            ALLOWED_APPEND: lambda: 0.1,
        }


def timed_appends(home: Path, runs: int) -> float:
    """Seconds that all but one in a hundred runs stay below."""
    seconds = []
    for number in range(runs):
        added = entry(number)
        started = time.perf_counter()
        append_tables(home, added)
        seconds.append(time.perf_counter() - started)
    return sorted(seconds)[len(seconds) * 99 // 100]


def asked(home: Path, engine: str, since: str) -> tuple[float, float, Sequence[str]]:
    """CPU seconds of the question, those of Spark's start, and the answer."""
    ended = subprocess.run(
        [sys.executable, "-c", QUESTION, engine, since],
        env={**os.environ, "TOPICOPS_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    question, start, answer = json.loads(ended.stdout)
    return question, start, answer


def require_one_answer(spark: Sequence[str], plain: Sequence[str]) -> None:
    """Raise ``BenchmarkError`` unless both engines found the same, and found something."""
    if spark != plain:
        raise BenchmarkError("the engines disagree")
    if not plain:
        raise BenchmarkError("both engines found nothing in the history")


def _remove_inputs(home: Path) -> None:
    """As the compaction of the next day does it."""
    for path in home.rglob("day=*/*.parquet"):
        if not path.name.startswith("+"):
            path.unlink()


def entry(number: int) -> HistoryEntry:
    """A run of the drift DAG. Each difference is there for some days, then away for as many."""
    at = BEGIN + timedelta(hours=number, seconds=number * 7 % 60, microseconds=number * 7919 % 10**6)
    shown = (k for k in range(DIFFERENCES) if (number // (24 * (k % 7 + 1)) + k) % 2 == 0)
    return HistoryEntry(
        environment="bench",
        run=f"topic_drift_bench/scheduled__{at.isoformat()}",
        recorded_at=at + timedelta(seconds=20),
        runs=(RunRow(mode="drift", read_at=at, commit=f"{number // 30:040x}", compared=True, checked_before=True),),
        deltas=tuple(_difference(k) for k in shown),
        quality=tuple(
            QualityRow(
                suite="before",
                rule=f"Q{rule:02}",
                severity="warning",
                success=(number // 50 + rule) % 9 != 0,
                rows_checked=1000,
                rows_failed=0,
            )
            for rule in range(1, RULES + 1)
        ),
    )


def _difference(k: int) -> DeltaRow:
    return DeltaRow(
        topic=f"bench.topic-{k:03}",
        topic_class="different",
        field="configs.retention.ms",
        desired="604800000",
        live=str(86400000 + k),
        owner=f"team-{k % 5}",
    )


def comparisons(runs: int) -> Sequence[Comparison]:
    return (
        Comparison(id=f"spark-to-allowed-{runs}-runs", numerator=SPARK, denominator=ALLOWED, goal=1, better="lower"),
        Comparison(id=f"plain-to-spark-{runs}-runs", numerator=PLAIN, denominator=SPARK, goal=1, better="lower"),
        Comparison(id=f"start-to-allowed-{runs}-runs", numerator=SESSION, denominator=ALLOWED, goal=1, better="lower"),
        Comparison(id=f"size-to-allowed-{runs}-runs", numerator=SIZE, denominator=ALLOWED_SIZE, goal=1, better="lower"),
        Comparison(
            id=f"append-to-allowed-{runs}-runs", numerator=APPEND, denominator=ALLOWED_APPEND, goal=1, better="lower"
        ),
    )


BENCHMARK = Benchmark(name="history", topics=8_760, rounds=3, comparisons=comparisons, sides=sides, unit="CPU s")
