"""At which commit an environment was last applied and verified as a whole: ``policy.after`` of others asks for it.

``verified/<environment>.json`` is written at the end of a run in mode apply, and read by the gates of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from topicops.edges.home.memory_file import MemoryFile
from topicops.flow.runs.commits import named_commit
from topicops.flow.runs.run import Run, now
from topicops.model.specs.environment import Environment

SHOWN = 12
"""Characters of a commit in a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedCommit:
    commit: str
    run: str
    """``<group>/<run id>`` of the run that verified it."""
    at: datetime
    """UTC."""


def write_verified(run: Run, commit: str) -> None:
    """Remember that all that the files of this commit ask for is in place and verified."""
    _file(run.home, run.environment).write(VerifiedCommit(commit=commit, run=run.name, at=now()))


def waits_for(run: Run, environment: Environment, commit: str | None) -> Iterator[str]:
    """Yield a reason for each environment of ``policy.after`` that was not last verified at this commit.

    Raises:
        ArtifactError: What was verified cannot be read.
    """
    place = environment.place_of("policy.after")
    for name in environment.spec.policy.after:
        found = _file(run.home, name).read()
        if commit is None:
            files = named_commit(run.topics, None)
            yield (
                f"waits for {name}: these files are of {files}, so none was verified there; commit all below "
                f"{run.topics.name}/, or have Airflow read them from git ({place})"
            )
        elif found is None:
            yield f"waits for {name}: it was never verified, these files are of {commit[:SHOWN]} ({place})"
        elif found.commit != commit:
            last, these = found.commit[:SHOWN], commit[:SHOWN]
            yield f"waits for {name}: it was last verified at commit {last}, these files are of {these} ({place})"


def _file(home: Path, environment: str) -> MemoryFile[VerifiedCommit]:
    return MemoryFile(home / "verified" / f"{environment}.json", VerifiedCommit)
