"""How a benchmark is run: interleaved rounds, medians, ratios of medians, and goals that are met or missed."""

from __future__ import annotations

import gc
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Literal

from topicops.features.shared.java import find_java, java_version

Better = Literal["higher", "lower"]
Side = Callable[[], float]
"""Does its work once and gives what was measured; ``timed`` makes one that gives seconds."""


class BenchmarkError(Exception):
    """A side does not do what is to be measured, so that its speed would say nothing."""


PACKAGES = ("kazoo", "msgspec", "pyarrow", "pyspark")
"""Whose versions move the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two sides that are divided, and what should come out."""

    id: str
    numerator: str
    """Name of a side."""
    denominator: str
    """Name of a side."""
    goal: float
    better: Better
    of: Callable[[Sequence[float]], float] = median
    """What of all rounds is divided."""
    why: str = ""
    """Why the goal is missed, where it is; a result file says it beside the ratio."""


def no_remarks(_: int) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """What to run, at a size that the command line can change."""

    name: str
    topics: int
    """The size unless another is asked for."""
    rounds: int
    """As many unless others are asked for."""
    comparisons: Callable[[int], Sequence[Comparison]]
    """Takes the number of topics."""
    sides: Callable[[int], AbstractContextManager[Mapping[str, Side]]]
    """Takes the number of topics; what it starts is gone when it is left."""
    unit: str = "s"
    """Of what the sides give."""
    remarks: Callable[[int], Iterable[str]] = no_remarks
    """Takes the number of topics; lines to print below the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One line of a result file."""

    id: str
    value: float
    goal: float
    better: Better
    numerator: float
    """The median of that side, if the comparison says no other; seconds where a side gives seconds."""
    denominator: float
    why: str = ""
    """Why the goal is missed; empty where it is met."""

    @property
    def is_met(self) -> bool:
        return self.value >= self.goal if self.better == "higher" else self.value <= self.goal


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one benchmark found."""

    name: str
    machine: Mapping[str, str | int | float]
    rounds: int
    measured: Mapping[str, Sequence[float]]
    """Every round's number, by side."""
    ratios: Sequence[Ratio]
    unit: str = "s"
    remarks: Sequence[str] = ()

    @property
    def is_met(self) -> bool:
        return all(ratio.is_met for ratio in self.ratios)


def timed(work: Callable[[], object]) -> Side:
    """A side that gives the seconds of one call; what was left over before it is collected first."""

    def seconds() -> float:
        gc.collect()
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    return seconds


def run(benchmark: Benchmark, *, topics: int | None = None, rounds: int | None = None) -> Result:
    """Run a benchmark at its own size and number of rounds, or at the given ones."""
    size, times = topics or benchmark.topics, rounds or benchmark.rounds
    with benchmark.sides(size) as sides:
        measured = interleave(sides, rounds=times)
    ratios = tuple(ratio_of(comparison, measured) for comparison in benchmark.comparisons(size))
    return Result(
        name=benchmark.name,
        machine=machine(),
        rounds=times,
        measured=measured,
        ratios=ratios,
        unit=benchmark.unit,
        remarks=tuple(benchmark.remarks(size)),
    )


def interleave(sides: Mapping[str, Side], *, rounds: int) -> dict[str, list[float]]:
    """Each side's numbers: all sides once a round, in reverse every other round, after one round that is not kept.

    So whatever slows the machine for a while slows all sides, and none always runs in the wake of another.
    """
    for side in sides.values():
        side()
    forward = tuple(sides)
    measured: dict[str, list[float]] = {name: [] for name in forward}
    for number in range(rounds):
        for name in reversed(forward) if number % 2 else forward:
            measured[name].append(sides[name]())
    return measured


def ratio_of(comparison: Comparison, measured: Mapping[str, Sequence[float]]) -> Ratio:
    """The ratio of the medians, if it says no other; both are rounded first, so that a reader can divide again."""
    numerator = round(comparison.of(measured[comparison.numerator]), 6)
    denominator = round(comparison.of(measured[comparison.denominator]), 6)
    ratio = Ratio(
        id=comparison.id,
        value=round(numerator / denominator, 3),
        goal=comparison.goal,
        better=comparison.better,
        numerator=numerator,
        denominator=denominator,
    )
    return ratio if ratio.is_met else replace(ratio, why=comparison.why)


def machine() -> dict[str, str | int | float]:
    """What a number depends on, and nothing that tells whose machine it was."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count() or 0,
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "java": java_version(find_java()) or 0,
        **{name: version(name) for name in PACKAGES},
    }


def table(result: Result) -> str:
    """Both halves for a person: what each side took, and what came of each goal."""
    remarks = (f"  {remark}" for remark in result.remarks)
    return "\n".join((f"{result.name}, {result.rounds} rounds", *_side_lines(result), *_ratio_lines(result), *remarks))


def write(result: Result, folder: Path) -> Path:
    """``<folder>/<name>.json``, in the form that the project's results have."""
    document = {
        "name": result.name,
        "machine": dict(result.machine),
        "rounds": result.rounds,
        "ratios": [_without_empty_why(asdict(ratio)) for ratio in result.ratios],
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.name}.json"
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return path


def _without_empty_why(ratio: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in ratio.items() if name != "why" or value}


def _side_lines(result: Result) -> Iterator[str]:
    yield f"  {'side':<46}{f'median {result.unit}':>14}  min..max"
    for name, found in result.measured.items():
        yield f"  {name:<46}{median(found):>14.4f}  {min(found):.4f}..{max(found):.4f}"


def _ratio_lines(result: Result) -> Iterator[str]:
    yield f"  {'ratio':<54}{'value':>6}  goal"
    for ratio in result.ratios:
        sign = ">=" if ratio.better == "higher" else "<="
        yield f"  {ratio.id:<54}{ratio.value:>6.2f}  {sign} {ratio.goal:g}, {'met' if ratio.is_met else 'MISSED'}"
