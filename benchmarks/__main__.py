"""``python -m benchmarks [NAME]``: run all, or the one named; exit 1 when a goal is missed."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import diff, plan, snapshot
from benchmarks.harness import Benchmark, run, table, write

BENCHMARKS: tuple[Benchmark, ...] = (snapshot.BENCHMARK, diff.BENCHMARK, plan.BENCHMARK)
RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None, *, benchmarks: Sequence[Benchmark] = BENCHMARKS) -> int:
    """Run, print and write; 0 when every goal is met, else 1."""
    asked = _parser(benchmarks).parse_args(arguments)
    chosen = [benchmark for benchmark in benchmarks if asked.name in (None, benchmark.name)]
    missed = False
    for benchmark in chosen:
        result = run(benchmark, topics=asked.topics, rounds=asked.rounds)
        print(table(result), flush=True)
        write(result, asked.results)
        missed = missed or not result.is_met
    return int(missed)


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
    sys.exit(main())
