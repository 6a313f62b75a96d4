"""The memory that the steps of a run need for all partitions of a cluster: each step is a process of its own.

The cluster is healthy: each partition has three replicas in sync. ``snapshot`` reads it from ZooKeeper into tables,
with partition states; ``quality`` reads it once more, compares what three brokers say, and checks the rules of
``quality_after`` on Spark. The brokers' answers are made of the tables, because there are no brokers.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side
from benchmarks.lone_zookeeper import connected, lay_cluster, lay_states, lone_server
from benchmarks.process_tree import Usage, run_measured
from topicops.edges.tables.table_folder import TableFolder
from topicops.edges.tables.topics import read_live_topics
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.features.quality.judging import differing_topics
from topicops.features.quality.rules import AFTER, Afterwards
from topicops.flow.runs.kept import snapshot_into
from topicops.model.ports import BrokerLogs, BrokerView, Clock, LogQuestions, PartitionView
from topicops.model.release import USUAL

SNAPSHOT, PYTHON, JAVA = "snapshot, Python", "quality, Python", "quality, Java"
ALLOWED_MIB: Mapping[str, float] = {SNAPSHOT: 260, PYTHON: 350, JAVA: 700}
"""For a million partitions."""
TIMEOUT_S = 60.0
_HEAP_MB = 4096


@dataclass(frozen=True)
class EchoingBrokers:
    """Brokers that know of each topic what its tables say."""

    tables: TableFolder
    brokers: frozenset[int]

    def views(self, brokers: Sequence[int], topics: Sequence[str] | None) -> Mapping[int, BrokerView | str]:
        live = read_live_topics(self.tables)
        live.hold(topics or ())
        found = {
            name: {
                p: PartitionView(leader=state.leader, replicas=live[name].assignment[p], isr=state.isr)
                for p, state in (live[name].states or {}).items()
            }
            for name in topics or ()
        }
        identities = {name: live[name].topic_id or "" for name in topics or ()}
        return {broker: BrokerView(topics=found, brokers=self.brokers, topic_ids=identities) for broker in brokers}

    def logs(self, questions: Mapping[int, LogQuestions]) -> Mapping[int, BrokerLogs | str]:
        return dict.fromkeys(questions, "has no logs")

    def overrides(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | str]:
        return dict.fromkeys(topics, "tells no overrides")


def take_snapshot(zookeeper: str, folder: Path) -> None:
    with ZooKeeperReader(zookeeper, timeout_s=TIMEOUT_S) as reader:
        snapshot_into(TableFolder.at(folder), reader, USUAL, states=True)


def check_rules(zookeeper: str, folder: Path) -> None:
    """Raises ``BenchmarkError`` unless the cluster is healthy by every rule that asks for it."""
    from topicops.features.quality.edges.in_spark import frames_to_count
    from topicops.features.quality.judging import expected_after

    tables = TableFolder.at(folder)
    with ZooKeeperReader(zookeeper, timeout_s=TIMEOUT_S) as reader:
        live = replace(snapshot_into(tables, reader, USUAL, states=True), broker_defaults={})
        echo = EchoingBrokers(tables, frozenset(live.brokers))
        differences = differing_topics(live, reader=reader, brokers=echo, clock=Clock())
    known = Afterwards(managed=live.topics.keys(), differences=differences)

    # As late as the step imports them: Great Expectations alone takes 200 MiB.
    from topicops.features.quality.edges.measuring import judge_rows
    from topicops.features.quality.edges.validation import failed_rules
    from topicops.features.spark.edges.frames import RunTables
    from topicops.features.spark.edges.session import spark_session

    with spark_session() as spark:
        rows = RunTables(spark, tables, live, "bench memory")
        with rows.step("quality_after", rows=live.partitions):
            judged, _ = judge_rows(AFTER, frames_to_count(rows, known), dict, expected_after(live, differences))
    if failed := failed_rules(folder / "great-expectations", "bench-after", AFTER, judged.measures, run="bench/1"):
        raise BenchmarkError(f"a healthy cluster breaks {', '.join(failed)}")


@dataclass
class Bench:
    zookeeper: str
    folder: Path
    found: dict[str, list[Usage]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    def mib(self, side: str) -> float:
        """One figure of a run of the step; the first side of a round that asks has it made."""
        step, program = side.split(", ")
        runs, turn = self.found.setdefault(step, []), self.asked[side]
        if turn == len(runs):
            runs.append(self._run(step))
        self.asked[side] += 1
        return runs[turn].peak_of("java" if program == "Java" else "python")

    def _run(self, step: str) -> Usage:
        command = (sys.executable, "-m", "benchmarks.memory", step, self.zookeeper, str(self.folder / step))
        return run_measured(command, cwd=Path.cwd(), environment=os.environ)


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with tempfile.TemporaryDirectory(prefix="topicops-bench-") as name, lone_server(heap_mb=_HEAP_MB) as (server, _):
        with connected(server) as client:
            lay_cluster(client, "/kafka", topics)
            lay_states(client, "/kafka", topics)
        bench = Bench(f"{server}/kafka", Path(name))
        measured: dict[str, Side] = {side: _side_of(bench, side) for side in ALLOWED_MIB}
        allowed: dict[str, Side] = {_allowance(side): _constant(mib) for side, mib in ALLOWED_MIB.items()}
        yield {**measured, **allowed}


def _side_of(bench: Bench, side: str) -> Side:
    return lambda: bench.mib(side)


def _constant(value: float) -> Side:
    return lambda: value


def _allowance(side: str) -> str:
    return f"{side}: allowed"


def comparisons(topics: int) -> Sequence[Comparison]:
    return tuple(
        Comparison(
            id=f"{side.lower().replace(', ', '-')}-mib-to-allowed-{topics}-topics",
            numerator=side,
            denominator=_allowance(side),
            goal=1.0,
            better="lower",
            of=max,
        )
        for side in ALLOWED_MIB
    )


STEPS = {"snapshot": take_snapshot, "quality": check_rules}
BENCHMARK = Benchmark(name="memory", topics=50_000, rounds=2, comparisons=comparisons, sides=sides, unit="MiB")

if __name__ == "__main__":
    STEPS[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
