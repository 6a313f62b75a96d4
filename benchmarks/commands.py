"""What twelve commands cost from a cold process to its exit: CPU seconds, with those of the processes they start.

``python -m benchmarks.commands [--before FOLDER]``; it is no part of ``python -m benchmarks``.

A cluster of three brokers with a ZooKeeper has 100 topics, as their files want them; the Python engine compares. With
``--before``, the folder of an older checkout of this repository, its commands take turns with those of this one, so
that whatever slows the machine slows both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.apply import BEFORE, HEAP_MB, PARTITIONS, present, write_specs
from benchmarks.harness import BenchmarkError, Side, interleave, machine
from benchmarks.quiet_run import RESULTS, ROOT, make_topics
from benchmarks.verify import local_cluster

TOPICS, FEW = 100, 10
FULL, SMALL = "full", "small"
"""Folders: all topics, and a few of them."""
TAB = "Tab"
LIVE = ("--environment", "bench")


@dataclass(frozen=True, slots=True)
class Command:
    words: Sequence[str]
    folder: str = FULL
    most_s: float | None = None
    """CPU seconds that it may take."""


COMMANDS: Mapping[str, Command] = {
    "version": Command(["--version"], most_s=0.10),
    TAB: Command([], most_s=0.20),
    "help": Command(["--help"]),
    "explain a code": Command(["explain", "TOP501"]),
    "validate 10 files": Command(["validate"], SMALL, most_s=0.25),
    "help of plan": Command(["plan", "--help"]),
    "explain a topic": Command(["explain", "bench.topic-7", *LIVE]),
    "plan of 100 topics": Command(["plan", *LIVE, "--engine", "python"], most_s=0.50),
    "drift": Command(["drift", *LIVE, "--engine", "python"]),
    "list": Command(["list", *LIVE]),
    "why": Command(["why", "bench.topic-7", *LIVE]),
    "doctor": Command(["doctor", *LIVE]),
}
ENDS = {"doctor": (0, 1)}
"""Exit statuses other than success: ``doctor`` finds that the cluster takes no logins."""


@contextmanager
def checkout() -> Iterator[Path]:
    """The folders of files, next to each other."""
    names = [f"bench.topic-{number}" for number in range(TOPICS)]
    texts = dict.fromkeys(names, present(partitions=PARTITIONS, retention_ms=BEFORE))
    with tempfile.TemporaryDirectory(prefix="topicops-bench-") as name, local_cluster(heap_mb=HEAP_MB) as cluster:
        make_topics(cluster, dict.fromkeys(names, PARTITIONS))
        for folder, count in ((FULL, TOPICS), (SMALL, FEW)):
            write_specs(Path(name) / folder / "topics", dict(list(texts.items())[:count]), cluster)
        yield Path(name)


def cpu_s(name: str, code: Path, folder: Path) -> float:
    """CPU seconds of one run. Raises ``BenchmarkError`` if it does not do its work."""
    command = COMMANDS[name]
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(code / "plugins"), str(code / "local"))),
        "TOPICOPS_HOME": str(folder / command.folder / "home"),
        **({"_TOPICOPS_COMPLETE": "complete_bash", "COMP_WORDS": "topicops plan -e ", "COMP_CWORD": "3"}
           if name == TAB else {}),
    }  # fmt: skip
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "topicops", *command.words],
            cwd=folder / command.folder, env=variables, stdout=said, stderr=subprocess.STDOUT,
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        if process.returncode not in ENDS.get(name, (0,)):
            raise BenchmarkError(f"{name} ended with {process.returncode}:\n{said.read().decode()}")
    return used.ru_utime + used.ru_stime


def compare(checkouts: Mapping[str, Path], rounds: int) -> Mapping[str, Mapping[str, float]]:
    """The medians, by command and by name of checkout."""
    found = {}
    with checkout() as folder:
        for name, command in COMMANDS.items():
            sides = {side: _side(name, code, folder) for side, code in checkouts.items()}
            medians = {side: round(median(each), 3) for side, each in interleave(sides, rounds=rounds).items()}
            found[name] = medians if command.most_s is None else {**medians, "goal": command.most_s}
            print(
                f"{name:<20}", "  ".join(f"{side} {seconds:.3f}" for side, seconds in found[name].items()), flush=True
            )
    return found


def _side(name: str, code: Path, folder: Path) -> Side:
    return lambda: cpu_s(name, code, folder)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.commands", description=__doc__)
    parser.add_argument("--before", type=Path, help="an older checkout of this repository")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    checkouts = {"before": asked.before.resolve(), "after": ROOT} if asked.before else {"after": ROOT}
    document = {"name": "commands", "machine": machine(), "cpu_s": compare(checkouts, asked.rounds)}
    asked.results.mkdir(parents=True, exist_ok=True)
    (asked.results / "commands.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
