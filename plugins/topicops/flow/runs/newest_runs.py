"""Which run of an environment has planned last, was good last, and verified a commit last.

Once a later run has planned, an older one that is cleared sends nothing: it might undo what the later one did. It goes
on with the plan that it made; cleared as a whole it plans again, but from the files of its own commit if Airflow keeps
versions of the bundle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from topicops.edges.home.memories import LATEST_PLAN, NEWEST_GOOD, UNVERIFIED, VERIFIED, MemoryFile
from topicops.flow.runs.files import named_commit
from topicops.flow.runs.run import EnvironmentRun, now
from topicops.model.errors import ArtifactError
from topicops.model.runs.memories import LatestPlan, NewestGood, VerifiedCommit
from topicops.model.specs.environment import Environment

SHOWN = 12
"""Characters of a commit in a reason."""
NEVER_S = 10 * 365 * 86400.0
"""Age of what is not known: ten years, so that each alert on the age goes off."""


def note_plan(home: Path, environment: str, plan: LatestPlan) -> None:
    """Keep the plan, unless a later run has planned already."""
    file = LATEST_PLAN.of(home, environment)
    latest = file.read()
    if latest is None or latest.run_after <= plan.run_after:
        file.write(plan)


def overtaken_by(home: Path, environment: str, run_after: datetime) -> str:
    """The run that planned after one of that time; empty if there is none. Raises ``ArtifactError`` when damaged."""
    latest = LATEST_PLAN.of(home, environment).read()
    return latest.run if latest is not None and latest.run_after > run_after else ""


def note_newest_good(run: EnvironmentRun, topics: str) -> None:
    """At the end of a run of all topics that did what it should, or found nothing to do."""
    try:
        NEWEST_GOOD.of(run.home, run.environment).write(NewestGood(run=run.name, at=now(), topics=topics))
    except ArtifactError as error:
        run.progress(f"The age of the newest good run grows on: {error}")


def age_of_newest_good(home: Path, environment: str) -> float:
    """Give it in seconds; ``NEVER_S`` where there is none, or nobody can read it."""
    try:
        found = NEWEST_GOOD.of(home, environment).read()
    except ArtifactError:
        found = None
    return NEVER_S if found is None else max(0.0, (now() - found.at).total_seconds())


def write_verified(run: EnvironmentRun, commit: str) -> None:
    """Remember that all that the files of this commit ask for is in place and verified."""
    VERIFIED.of(run.home, run.environment).write(VerifiedCommit(commit=commit, run=run.name, at=now()))


def waits_for(home: Path, environment: Environment, topics: Path, commit: str | None) -> Iterator[str]:
    """Yield a reason for each environment of ``policy.after`` that was not last verified at this commit.

    Raises:
        ArtifactError: What was verified cannot be read.
    """
    place = environment.place_of("policy.after")
    for name in environment.spec.policy.after:
        found = VERIFIED.of(home, name).read()
        if commit is None:
            files = named_commit(topics, None)
            yield (
                f"waits for {name}: these files are of {files}, so none was verified there; commit all below "
                f"{topics.name}/, or have Airflow read them from git ({place})"
            )
        elif found is None:
            yield f"waits for {name}: it was never verified, these files are of {commit[:SHOWN]} ({place})"
        elif found.commit != commit:
            last, these = found.commit[:SHOWN], commit[:SHOWN]
            yield f"waits for {name}: it was last verified at commit {last}, these files are of {these} ({place})"


@dataclass(frozen=True, slots=True)
class Unverified:
    """The topics of an environment to which runs sent something, and which nobody has verified; as one run knows them.

    Each method raises ``ArtifactError``.
    """

    home: Path
    environment: str
    run: str
    """Name of the run."""

    def note(self, topics: Collection[str]) -> None:
        """Add topics of this run, before anything is sent: after an error nothing may be sent."""
        self._file.write({**dict.fromkeys(topics, self.run), **self._read()})

    def note_not_sent(self, topics: Collection[str]) -> None:
        """Remove those of this run: nothing was sent to them after all."""
        self.note_verified(set(topics) & set(self.own()))

    def note_verified(self, topics: Collection[str]) -> None:
        """Remove topics after each was looked at, whatever was found."""
        if not (before := self._read()):
            return
        if left := {topic: by for topic, by in before.items() if topic not in topics}:
            self._file.write(left)
        else:
            self._file.remove()

    def earlier(self) -> Mapping[str, str]:
        """Give those of earlier runs: the run by topic."""
        return {topic: by for topic, by in self._read().items() if by != self.run}

    def own(self) -> Collection[str]:
        """Give those of this run, and of no earlier one."""
        return [topic for topic, by in self._read().items() if by == self.run]

    @property
    def _file(self) -> MemoryFile[dict[str, str]]:
        return UNVERIFIED.of(self.home, self.environment)

    def _read(self) -> dict[str, str]:
        return self._file.read() or {}


def unverified_of(run: EnvironmentRun) -> Unverified:
    return Unverified(run.home, run.environment, run.name)
