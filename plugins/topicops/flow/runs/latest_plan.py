"""Which run of an environment's pipeline has planned last: an older run that is cleared then sends nothing.

A cleared run continues with the plan that it made. Cleared as a whole it plans again, but from the files of its own
commit if Airflow keeps versions of the bundle. In both cases it may undo what a later run did.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from topicops.edges.home.memory_file import MemoryFile


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestPlan:
    run: str
    """``<dag id>/<run id>``."""
    run_after: datetime
    """The time that Airflow orders runs by; clearing does not change it."""


def note_plan(home: Path, environment: str, plan: LatestPlan) -> None:
    """Keep the plan, unless a later run has planned already."""
    file = _file(home, environment)
    latest = file.read()
    if latest is None or latest.run_after <= plan.run_after:
        file.write(plan)


def overtaken_by(home: Path, environment: str, run_after: datetime) -> str:
    """The run that planned after one of that time; empty if there is none. Raises ``ArtifactError`` when damaged."""
    latest = _file(home, environment).read()
    return latest.run if latest is not None and latest.run_after > run_after else ""


def _file(home: Path, environment: str) -> MemoryFile[LatestPlan]:
    return MemoryFile(home / "newest" / f"{environment}.json", LatestPlan)
