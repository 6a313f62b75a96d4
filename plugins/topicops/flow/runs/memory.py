"""What the runs of an environment leave for each other, below the home.

- Held changes: those that an approval may still be about, and those that a person rejected. Nobody is asked about
  rejected changes alone until they change. A rejection only keeps questions away; no change is sent because of it.
- Which run has planned last, was good last, and verified a commit last. Once a later run has planned, an older one that
  is cleared sends nothing: it might undo what the later one did. It goes on with the plan that it made; cleared as a
  whole it plans again, but from the files of its own commit if Airflow keeps versions of the bundle.
- Stops: who sends changes asks before each request whether a stop was asked for. A stop is a new word in a file of the
  environment. A run notes the word when it begins; another word later means stop. So no clock is compared, and a run
  that begins after the stop is not touched.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from topicops.edges.home.audit_files import audited_environments, read_audit_log
from topicops.edges.home.journal import open_journals_folder, unsettled
from topicops.edges.home.memories import (
    HELD,
    LATEST_PLAN,
    NEWEST_GOOD,
    REJECTIONS,
    STOPS,
    UNVERIFIED,
    VERIFIED,
    MemoryFile,
)
from topicops.edges.places import Place
from topicops.flow.runs.files import named_commit
from topicops.flow.runs.run import EnvironmentRun, audit_folder, home_folder, now
from topicops.model.errors import ArtifactError, UsageError
from topicops.model.printable import printable
from topicops.model.runs.audit import AuditFile
from topicops.model.runs.memories import HeldSet, LatestPlan, NewestGood, Rejection, Rejections, Stop, VerifiedCommit
from topicops.model.specs.environment import Environment

MOST_REJECTIONS = 10_000
"""Number of rejections that are remembered, the newest."""
SHOWN = 12
"""Characters of a commit in a reason."""
NEVER_S = 10 * 365 * 86400.0
"""Age of what is not known: ten years, so that each alert on the age goes off."""
NOTED_FILE = "stop-noted.json"
NO_STOP = Stop(word="", by="", at=datetime.min.replace(tzinfo=UTC))


def question_name(digest: str, changes: int) -> str:
    """Return ``3-changes-73c682d1aa21``: names the runs that ask about one set; they are numbered behind a dot."""
    return f"{changes}-{'change' if changes == 1 else 'changes'}-{digest[:12]}"


def read_held(home: Place, environment: str) -> HeldSet:
    """Give the newest held set; an empty one before the first gate. Raises ``ArtifactError`` when damaged."""
    return HELD.of(home, environment).read() or HeldSet()


def keep_held(home: Place, environment: str, held: HeldSet) -> None:
    """Replace the held set. Raises ``ArtifactError``."""
    HELD.of(home, environment).write(held)


def read_rejections(home: Place, environment: str) -> Mapping[str, Rejection]:
    """Give the rejections by digest of the change. Raises ``ArtifactError`` when damaged."""
    found = REJECTIONS.of(home, environment).read()
    return found.by_digest if found else {}


def note_answer(
    home: Place, environment: str, rejection: Rejection, *, rejected: Collection[str], approved: Collection[str]
) -> None:
    """Remember what was rejected, and forget the rejection of what was approved now."""
    before = read_rejections(home, environment)
    kept = {digest: found for digest, found in before.items() if digest not in approved}
    found = {**kept, **dict.fromkeys(rejected, rejection)}
    if found != before:
        newest = sorted(found, key=lambda digest: found[digest].at, reverse=True)[:MOST_REJECTIONS]
        REJECTIONS.of(home, environment).write(Rejections(by_digest={digest: found[digest] for digest in newest}))


def resting_lines(rejections: Mapping[str, Rejection], held: Mapping[str, str]) -> Iterator[str]:
    """Yield one sentence for each held change that was rejected; ``held`` has ``delete topic.orders`` by digest."""
    for digest, address in held.items():
        if rejection := rejections.get(digest):
            yield printable(f"{address} rests until it changes: {rejection}")


def note_plan(home: Place, environment: str, plan: LatestPlan) -> None:
    """Keep the plan, unless a later run has planned already."""
    file = LATEST_PLAN.of(home, environment)
    latest = file.read()
    if latest is None or latest.run_after <= plan.run_after:
        file.write(plan)


def overtaken_by(home: Place, environment: str, run_after: datetime) -> str:
    """Return the run that planned after one of that time, or empty. Raises ``ArtifactError`` when damaged."""
    latest = LATEST_PLAN.of(home, environment).read()
    return latest.run if latest is not None and latest.run_after > run_after else ""


def note_newest_good(run: EnvironmentRun, topics: str) -> None:
    """Note a run of all topics that did what it should, or found nothing to do."""
    try:
        NEWEST_GOOD.of(run.home, run.environment).write(NewestGood(run=run.name, at=now(), topics=topics))
    except ArtifactError as error:
        run.progress(f"The age of the newest good run grows on: {error}")


def age_of_newest_good(home: Place, environment: str) -> float:
    """Give it in seconds; ``NEVER_S`` where there is none, or nobody can read it."""
    try:
        found = NEWEST_GOOD.of(home, environment).read()
    except ArtifactError:
        found = None
    return NEVER_S if found is None else max(0.0, (now() - found.at).total_seconds())


def write_verified(run: EnvironmentRun, commit: str) -> None:
    """Remember that all that the files of this commit ask for is in place and verified."""
    VERIFIED.of(run.home, run.environment).write(VerifiedCommit(commit=commit, run=run.name, at=now()))


def waits_for(home: Place, environment: Environment, topics: Path, commit: str | None) -> Iterator[str]:
    """Yield a reason for each environment of ``policy.after`` that was not last verified at this commit.

    Raises ``ArtifactError`` where what was verified cannot be read.
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
    """Topics of an environment that runs have changed and no run has verified yet, as one run knows them.

    Each method raises ``ArtifactError``.
    """

    home: Place
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


def ask_to_stop(home: Place, environment: str, *, by: str) -> tuple[str, ...]:
    """Ask each run of the environment that has begun to send nothing more; returns those that send now, or ended so.

    Raises ``ArtifactError`` where the home cannot be written, so that no run hears of it.
    """
    STOPS.of(home, environment).write(Stop(word=secrets.token_hex(8), by=by, at=now()))
    return tuple(sorted({run for run, _ in unsettled(open_journals_folder(home, environment))}))


def note_begin(run: EnvironmentRun) -> Stop:
    """Note the begin of a run: a stop that was asked for before is not for this run."""
    begun = _newest_stop(run)
    run.store.write_value(NOTED_FILE, begun)
    return begun


def stop_reason(run: EnvironmentRun, begun: Stop | None = None) -> str:
    """Return who asked this run to stop; empty: nobody. A file that cannot be read is a stop too.

    Args:
        begun: As ``note_begin`` gave it; None means that another task of the run has kept it.
    """
    try:
        noted = begun or run.store.read_if_there(NOTED_FILE, Stop) or NO_STOP
        newest = _newest_stop(run)
    except ArtifactError as error:
        return f"nobody can say whether a stop was asked for: {error}"
    return "" if newest.word == noted.word else f"{newest.by} asked it to stop at {newest.at:%Y-%m-%d %H:%M:%S} UTC"


def _newest_stop(run: EnvironmentRun) -> Stop:
    return STOPS.of(run.home, run.environment).read() or NO_STOP


def audit_files(environment: str | None) -> tuple[AuditFile, ...]:
    """Return the audit log of one environment, or all there are. Opens no connection.

    Raises:
        UsageError: The environment has none.
        ArtifactError: A log cannot be read.
    """
    folder = audit_folder(home_folder())
    known = audited_environments(folder)
    if environment is not None and environment not in known:
        others = f"there are logs of {', '.join(known)}" if known else "nothing was ever sent from this TOPICOPS_HOME"
        raise UsageError(f"{folder}: no audit log of {environment}; {others}")
    return tuple(read_audit_log(folder, name) for name in ([environment] if environment else known))
