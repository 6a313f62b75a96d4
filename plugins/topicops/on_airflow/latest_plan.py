"""Which run of an environment's pipeline has planned last, so that a cleared one which it overtook sends nothing.

A cleared run goes on with the plan that it made. Cleared as a whole it plans anew, but on the files of its own commit
where Airflow keeps versions of the bundle. Either way it may undo what a later run did.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from topicops.edges.home.artifacts import ArtifactStore


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestPlan:
    run: str
    """``<dag id>/<run id>``."""
    run_after: datetime
    """The time that Airflow orders runs by; clearing does not change it."""


def newest_path(home: Path, environment: str) -> Path:
    return home / "newest" / f"{environment}.json"


def note_plan(path: Path, plan: NewestPlan) -> None:
    """Keep it, unless a later run has planned already."""
    newest = _read(path)
    if newest is None or newest.run_after <= plan.run_after:
        ArtifactStore(path.parent).write_value(path.name, plan)


def overtaken_by(path: Path, run_after: datetime) -> str:
    """The run that planned after one of that time; empty where none did. Raises ``ArtifactError`` when damaged."""
    newest = _read(path)
    return newest.run if newest is not None and newest.run_after > run_after else ""


def _read(path: Path) -> NewestPlan | None:
    store = ArtifactStore(path.parent)
    return store.read_value(path.name, NewestPlan) if store.has(path.name) else None
