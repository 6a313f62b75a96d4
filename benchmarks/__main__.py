"""``python -m benchmarks [NAME]``: run all, or the one named; exit 1 when a goal is missed."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import (
    airflow,
    apply,
    apply_at_once,
    balance,
    diff,
    engine,
    fleet,
    judging,
    memory,
    moves,
    plan,
    quality,
    reading,
    rehearse_racks,
    snapshot,
    spark,
    topics_page,
    validate,
    verify,
)
from benchmarks.harness import Benchmark, BenchmarkError, run, table, write
from topicops.model.errors import TopicopsError

BENCHMARKS: tuple[Benchmark, ...] = (
    reading.BENCHMARK,
    snapshot.BENCHMARK,
    diff.BENCHMARK,
    plan.BENCHMARK,
    engine.BENCHMARK,
    spark.BENCHMARK,
    fleet.BENCHMARK,
    validate.BENCHMARK,
    balance.BENCHMARK,
    quality.BENCHMARK,
    judging.BENCHMARK,
    memory.BENCHMARK,
    verify.BENCHMARK,
    apply.BENCHMARK,
    apply_at_once.BENCHMARK,
    airflow.BENCHMARK,
    topics_page.BENCHMARK,
    rehearse_racks.BENCHMARK,
    moves.BENCHMARK,
)
INTERRUPTED = 130
RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None, *, benchmarks: Sequence[Benchmark] = BENCHMARKS) -> int:
    """Run, print and write; 0 when every goal is met, else 1."""
    asked = _parser(benchmarks).parse_args(arguments)
    chosen = [benchmark for benchmark in benchmarks if asked.name in (None, benchmark.name)]
    met = [_run_and_tell(benchmark, asked) for benchmark in chosen]
    return 0 if all(met) else 1


def _run_and_tell(benchmark: Benchmark, asked: argparse.Namespace) -> bool:
    """Whether all its goals are met; a benchmark that cannot run meets none, and stops no other."""
    try:
        result = run(benchmark, topics=asked.topics, rounds=asked.rounds)
    except (BenchmarkError, TopicopsError) as error:
        print(f"{benchmark.name}: {error}", file=sys.stderr)
        return False
    print(table(result), flush=True)
    write(result, asked.results)
    return result.is_met


def _parser(benchmarks: Sequence[Benchmark]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("name", nargs="?", choices=[benchmark.name for benchmark in benchmarks], help="only this one")
    parser.add_argument("--topics", type=_count, help="another size than the benchmark's own")
    parser.add_argument("--rounds", type=_count, help="another number of rounds than the benchmark's own")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the result files go")
    return parser


def _count(text: str) -> int:
    if (count := int(text)) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return count


if __name__ == "__main__":
    # As Ctrl-C does, so that servers which a benchmark started go with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
