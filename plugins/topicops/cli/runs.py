"""The run of a command; it has a folder of its own, and stderr names that folder before the first step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from topicops.cli.output import new_run_id, progress, shown_path

if TYPE_CHECKING:
    from topicops.flow.runs.run import EnvironmentRun


def new_run(environment: str, topics: Path) -> EnvironmentRun:
    """Return a run whose progress goes to stderr."""
    run = unrecorded_run(environment, topics)
    progress(f"Keeping this run's files in {shown_path(run.store.folder)}")
    return run


def unrecorded_run(environment: str, topics: Path) -> EnvironmentRun:
    """Return a run for a command that only reads and prints: its folder is never created."""
    from topicops.flow.runs.run import open_run

    return open_run(environment=environment, topics=topics, group="cli", run_id=new_run_id(), progress=progress)
