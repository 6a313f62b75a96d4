"""When the newest good run of an environment's pipeline ended, for whoever watches that runs still come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from topicops.edges.home.artifacts import name_on_disk
from topicops.edges.home.memory_file import MemoryFile
from topicops.flow.runs.run import Run, now
from topicops.model.errors import ArtifactError

NEVER_S = 10 * 365 * 86400.0
"""An age for what is not known: ten years, so that each alert on the age goes off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestGood:
    run: str
    at: datetime
    topics: str = ""
    """The folder with the environment's file; empty: not known."""


def note_newest_good(run: Run, topics: str) -> None:
    """At the end of a run of all topics that did what it should, or found nothing to do."""
    try:
        _memory(run.home, run.environment).write(NewestGood(run=run.name, at=now(), topics=topics))
    except ArtifactError as error:
        run.progress(f"The age of the newest good run grows on: {error}")


def age_of_newest_good(home: Path, environment: str) -> float:
    """In seconds; ``NEVER_S`` where there is none, or nobody can read it."""
    try:
        found = _memory(home, environment).read()
    except ArtifactError:
        found = None
    return NEVER_S if found is None else max(0.0, (now() - found.at).total_seconds())


def _memory(home: Path, environment: str) -> MemoryFile[NewestGood]:
    return MemoryFile(home / "newest-good" / f"{name_on_disk(environment)}.json", NewestGood)
