"""``topicops apply`` without a plan file, from a cold process to its verified end, beside a bare script.

The command reads the files, plans, applies and verifies. The script sends the same requests with the same assignments,
from a warm process, and waits until ZooKeeper shows what was asked for: it reads no files, plans and verifies nothing.
Four turns: creates, expansions, changes of all kinds, deletes; one cluster of three brokers, topics of 6 partitions.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.apply import Bench, Cohort, on_brokers, require_changes
from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side, timed
from topicops.model.plans.plan import Plan

COMMAND = (str(Path(sys.executable).with_name("topicops")), "apply", "--environment", "bench", "--yes")
ALLOWED = 1.35
"""Times the bare script, with the start of the process and the verification."""


def creates(new: Sequence[str]) -> Cohort:
    return Cohort(new=new, wider=(), other=(), gone=())


def expansions(old: Sequence[str]) -> Cohort:
    return Cohort(new=(), wider=old, other=(), gone=())


def mixed(names: Sequence[str]) -> Cohort:
    """A quarter of each kind; the first quarter does not exist."""
    quarter = len(names) // 4
    first, second, third, fourth = (names[n * quarter : (n + 1) * quarter] for n in range(4))
    return Cohort(new=first, wider=second, other=third, gone=fourth)


def deletes(old: Sequence[str]) -> Cohort:
    return Cohort(new=(), wider=(), other=(), gone=old)


KINDS: Mapping[str, Callable[[Sequence[str]], Cohort]] = {
    "creates": creates, "expansions": expansions, "mixed changes": mixed, "deletes": deletes,
}  # fmt: skip


class AtOnce(Bench):
    """Each turn lays its own topics first, and clears them away."""

    def at_once_s(self, kind: str) -> float:
        return self._turn_of(kind, self._command)

    def script_s(self, kind: str) -> float:
        return self._turn_of(kind, None)

    def _turn_of(self, kind: str, command: Callable[[Path], None] | None) -> float:
        self.turn += 1
        names = self._names(self.turn)
        cohort = KINDS[kind](names)
        standing = [name for name in names if name not in cohort.new]
        self._lay(standing)
        self.turn += 1
        run, plan = self._planned(cohort)
        require_changes(plan, cohort)
        folder = run.topics.parent
        work = partial(command, folder) if command else partial(self._script, plan)
        seconds = timed(work)()
        self._clear([name for name in names if name not in cohort.gone])
        return seconds

    def _lay(self, names: Sequence[str]) -> None:
        if names:
            _, plan = self._planned(creates(names))
            self._script(plan)

    def _script(self, plan: Plan) -> None:
        self._send_bare(plan)
        self._wait_for([gated.change for gated in plan.changes])

    def _command(self, folder: Path) -> None:
        environment = {**os.environ, "TOPICOPS_HOME": str(self.folder / "home")}
        done = subprocess.run(COMMAND, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchmarkError(f"topicops apply ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}")


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with on_brokers(AtOnce, topics) as bench:
        yield {
            side(who, kind, topics): partial(measure, kind)
            for kind in KINDS
            for who, measure in (("apply at once", bench.at_once_s), ("bare script", bench.script_s))
        }


def comparisons(topics: int) -> Sequence[Comparison]:
    return [
        Comparison(
            id=f"apply-at-once-to-bare-script-{topics}-{kind.replace(' ', '-')}",
            numerator=side("apply at once", kind, topics),
            denominator=side("bare script", kind, topics),
            goal=ALLOWED,
            better="lower",
        )
        for kind in KINDS
    ]


def side(who: str, kind: str, topics: int) -> str:
    return f"{who}, {topics} {kind}"


BENCHMARK = Benchmark(name="apply_at_once", topics=100, rounds=3, comparisons=comparisons, sides=sides)
