"""``topicops apply`` without a plan file to its verified end, from a cold and in a warm process, beside a bare script.

It reads the files, plans, applies and verifies. The script sends the same requests with the same assignments, from a
warm process, and waits until ZooKeeper shows what was asked for: it reads no files, plans and verifies nothing. The CPU
seconds are those of the client; the servers take theirs on the same machine.
Four turns: creates, expansions, changes of all kinds, deletes; one cluster of three brokers, topics of 6 partitions.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.apply import Bench, Cohort, on_brokers, require_changes
from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side, timed
from topicops.flow import planning, whole_runs
from topicops.flow.runs.run import open_run
from topicops.model.errors import ExitStatus
from topicops.model.plans.plan import Plan
from topicops.model.runs.results import OutcomeStatus

COMMAND = (str(Path(sys.executable).with_name("topicops")), "apply", "--environment", "bench", "--yes")
ALLOWED = 1.35
"""Times the bare script, with the plan and the verification."""
COLD, WARM, BARE = "a cold command", "one process", "bare script"
WHY: Mapping[str, str] = {
    WARM: "0.3 s go to plan and judgement, 0.2 to 0.8 s to looks of verify until all is well twice; a delete also reads"
    " its topic and its lease and notes intent and outcome, which takes half as long as its request",
    COLD: "the same, and 0.4 s of imports",
}
"""Reasons for a missed goal, from the timeline of docs/decisions/0025-apply-asks-for-many-at-once.md."""
CPU_S: dict[str, list[float]] = defaultdict(list)
"""CPU seconds of the clients, by side."""


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

    def turn_s(self, who: str, kind: str) -> float:
        """Seconds of one turn; notes the CPU seconds of its client."""
        self.turn += 1
        cohort = KINDS[kind](self._names(self.turn))
        self._lay([*cohort.wider, *cohort.other, *cohort.gone])
        self.turn += 1
        run, plan = self._planned(cohort)
        require_changes(plan, cohort)
        works: Mapping[str, Callable[[], None]] = {
            COLD: partial(self._command, run.topics.parent),
            WARM: partial(self._in_process, run.topics),
            BARE: partial(self._script, plan),
        }
        before = cpu_s()
        seconds = timed(works[who])()
        CPU_S[side(who, kind, self.topics)].append(cpu_s() - before)
        self._clear([*cohort.new, *cohort.wider, *cohort.other])
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

    def _in_process(self, topics: Path) -> None:
        home, run_id = self.folder / "home", f"turn-{self.turn}-apply"
        run = open_run(environment="bench", topics=topics, group="bench", run_id=run_id, home=home)
        ended = whole_runs.apply_own_plan(run, planning.make_plan(run, states=True))
        if ended.status is not ExitStatus.SUCCESS:
            bad = [outcome for outcome in ended.results.outcomes if outcome.status is not OutcomeStatus.DONE]
            raise BenchmarkError(f"the run ended with {ended.status}; not done: {bad[:1]}")


def cpu_s() -> float:
    """CPU seconds of this process, and of its children that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with on_brokers(AtOnce, topics) as bench:
        turns = [(who, kind) for kind in KINDS for who in (COLD, WARM, BARE)]
        yield {side(who, kind, topics): partial(bench.turn_s, who, kind) for who, kind in turns}


def comparisons(topics: int) -> Sequence[Comparison]:
    return [
        Comparison(
            id=f"apply-in-{who}-to-bare-script-{topics}-{kind}".replace(" ", "-"),
            numerator=side(who, kind, topics),
            denominator=side(BARE, kind, topics),
            goal=ALLOWED,
            better="lower",
            why=WHY[who],
        )
        for kind in KINDS
        for who in (COLD, WARM)
    ]


def remarks(_: int) -> Iterator[str]:
    """The CPU seconds; the first turn of each side is not among its rounds."""
    for name, seconds in CPU_S.items():
        yield f"{name}: {median(seconds[1:] or seconds):.2f} CPU seconds"


def side(who: str, kind: str, topics: int) -> str:
    return f"{who}, {topics} {kind}"


BENCHMARK = Benchmark(name="apply_at_once", topics=100, rounds=5, comparisons=comparisons, sides=sides, remarks=remarks)
