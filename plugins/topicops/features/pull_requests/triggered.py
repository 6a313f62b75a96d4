"""The runs that ``topicops ci trigger`` has started, as it leaves them for ``topicops ci report``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from topicops.model.runs.run_result import RunResult

RUNS_FILE = "runs.json"

RunState = Literal["applied", "held", "failed", "waiting", "not started"]
"""``held``: done, but for changes that are held or skipped. ``waiting``: another environment comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggeredRun:
    """One environment after the merge."""

    environment: str
    state: RunState
    sentence: str
    """What happened."""
    dag_id: str = ""
    run_id: str = ""
    url: str = ""
    commit: str = ""
    """The commit on which the run works."""
    reviews: int = 0
    """How many reviews were handed over."""
    result: RunResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggeredRuns:
    format_version: Literal["1.0"] = "1.0"
    number: int | None
    """Of the pull request; None: the commit came another way."""
    merge_commit: str
    environments: tuple[TriggeredRun, ...] = ()
