"""Moves for balance and for a drain on a large cluster: how many beside the fewest that there can be, time and memory.

A hundred brokers on four racks hold topics of 20 partitions with three replicas each. One or four brokers join, or one
is drained. CPU seconds. Each case is a process of its own, so that its largest memory is known, the cluster's included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import msgspec

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side
from fakes.builders import NOW, alike, desired_of, environment, live_topic, partition_state, snapshot
from fixtures.move_worlds import MoveWorld, large_cluster, topic_spreads
from topicops.features.moves.asked.planner import PLANNER
from topicops.features.moves.planned.balance import Balance, balance_replicas
from topicops.features.moves.planned.leading import lead_evenly
from topicops.features.moves.planned.shares import least_moves
from topicops.model.cluster.snapshot import Assignment
from topicops.model.plans.changes import ReassignTopic
from topicops.model.plans.delta import Delta
from topicops.model.specs.environment import Policy
from topicops.steps.planning.plan import plan

BROKERS, RACKS, PARTITIONS = 100, 4, 20
DRAINED = 7
SECONDS = {"one joins": 60, "four join": 60, "one is drained": 30}
"""What each case may take."""
MIB = 1024
"""What each process may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What one case took."""

    seconds: float
    """CPU seconds of the plan alone."""
    mib: float
    moves: int
    fewest: int
    """The fewest replicas that must move."""
    less_even: int
    """Topics that a broker holds more of, beside another, than before."""


def balanced(topics: int, *, joining: int) -> Moved:
    """Give joining brokers their shares of replicas and leaders."""
    world = large_cluster(topics=topics, partitions=PARTITIONS, brokers=BROKERS, racks=RACKS, joining=joining)
    started = time.process_time()
    found = balance_replicas(Balance(rows=world.rows, racks=world.racks, takers=world.racks.keys()))
    lead_evenly(world.after(found.rows), live=world.racks, takers=world.racks)
    seconds = time.process_time() - started
    if not found.is_even:
        raise BenchmarkError("some brokers do not hold their shares")
    return _moved(world, found.rows, seconds, least_moves(found.before, found.shares))


def drained(topics: int) -> Moved:
    """Plan what moves off one broker, as a plan does."""
    world = large_cluster(topics=topics, partitions=PARTITIONS, brokers=BROKERS, racks=RACKS)
    live = snapshot(
        *(
            live_topic(name, assignment=rows, states={p: partition_state(row) for p, row in rows.items()})
            for name, rows in world.rows.items()
        ),
        racks=world.racks,
        broker_defaults=alike({"min.insync.replicas": "1"}, world.racks),
    )
    allowed = environment(policy=Policy(drain_unmanaged="allow"))
    cluster = msgspec.structs.replace(allowed.spec.cluster, draining=(DRAINED,), kafka_version="3.9")
    allowed = replace(
        allowed,
        spec=msgspec.structs.replace(allowed.spec, cluster=cluster),
        locations={**allowed.locations, "cluster.kafkaVersion": next(iter(allowed.locations.values()))},
    )
    started = time.process_time()
    found = plan(desired_of(), live, Delta(topics=(), counts={}), allowed, now=NOW, moves=PLANNER)
    seconds = time.process_time() - started
    if found.blocked:
        raise BenchmarkError(f"{found.blocked[0].topic} is blocked: {found.blocked[0].reasons[0]}")
    rows = {change.topic: change.assignment for change in found.changes if isinstance(change, ReassignTopic)}
    held = sum(DRAINED in row for its in world.rows.values() for row in its.values())
    if any(DRAINED in row for its in world.after(rows).values() for row in its.values()):
        raise BenchmarkError("the broker is not empty")
    return _moved(world, rows, seconds, held)


def _moved(world: MoveWorld, rows: Mapping[str, Assignment], seconds: float, fewest: int) -> Moved:
    mib = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    before, after = (topic_spreads(each, world.racks) for each in (world.rows, world.after(rows)))
    return Moved(
        seconds=seconds,
        mib=mib,
        moves=world.copied(rows),
        fewest=fewest,
        less_even=sum(after[name] > spread for name, spread in before.items()),
    )


CASES: Mapping[str, Callable[[int], Moved]] = {
    "one joins": partial(balanced, joining=1),
    "four join": partial(balanced, joining=4),
    "one is drained": drained,
}


class Case:
    """One case in its own process; every round runs it once, and its sides take their numbers from that."""

    def __init__(self, name: str, topics: int) -> None:
        self._command = [sys.executable, "-m", "benchmarks.moves", name, str(topics)]
        self.found: Moved | None = None

    def run(self) -> float:
        """Run it, and give its seconds."""
        root = Path(__file__).parents[1]
        folders = os.pathsep.join(str(root / name) for name in ("plugins", "local", "tests"))
        ended = subprocess.run(
            self._command,
            cwd=root,
            env={**os.environ, "PYTHONPATH": folders},
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            raise BenchmarkError(ended.stderr[-500:])
        self.found = Moved(**json.loads(ended.stdout))
        return self.found.seconds

    def give(self, field: str) -> float:
        """Give another number of the last run, or run it."""
        if self.found is None:
            self.run()
        return float(getattr(self.found, field))


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    found: dict[str, Side] = {"MiB allowed": partial(float, MIB)}
    for name, seconds in SECONDS.items():
        case = Case(name, topics)
        found |= {
            f"{name}: seconds": case.run,
            f"{name}: MiB": partial(case.give, "mib"),
            f"{name}: replicas moved": partial(case.give, "moves"),
            f"{name}: fewest": partial(case.give, "fewest"),
            f"{name}: seconds allowed": partial(float, seconds),
        }
    yield found


def comparisons(topics: int) -> Sequence[Comparison]:
    return [each for name in CASES for each in _of_case(name, topics)]


def _of_case(name: str, topics: int) -> Iterator[Comparison]:
    words = name.replace(" ", "-")
    for what, limit, goal in (("seconds", "seconds allowed", 1.0), ("replicas moved", "fewest", 1.01)):
        yield Comparison(
            id=f"{words}-{what.replace(' ', '-')}-of-{topics}-topics",
            numerator=f"{name}: {what}",
            denominator=f"{name}: {limit}",
            goal=goal,
            better="lower",
        )
    yield Comparison(
        id=f"{words}-memory-of-{topics}-topics",
        numerator=f"{name}: MiB",
        denominator="MiB allowed",
        goal=1.0,
        better="lower",
    )


BENCHMARK = Benchmark(name="moves", topics=10_000, rounds=3, comparisons=comparisons, sides=sides, unit="as named")

if __name__ == "__main__":
    _, case_name, size = sys.argv
    print(json.dumps(asdict(CASES[case_name](int(size)))))
