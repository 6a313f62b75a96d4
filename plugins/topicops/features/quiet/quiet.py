"""A run in which nothing differs from the last good one ends after its snapshot: no Spark, no plan and no report.

It must hide nothing, so each of these makes a full run: a change that is held, blocked or due; a rule that fails; a
partition that is not healthy; a lost topic; a deletion or a move of replicas that is going on; requests of unknown
outcome; a run in between that failed or never ended; anything that time alone changes; and, every
``airflow.fullCheckEvery``, nothing at all: what only the brokers know is not in the snapshot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import topicops
from topicops.edges.home.journal import open_journals_folder
from topicops.edges.home.memories import Memory, MemoryFile
from topicops.flow.runs.memory import read_held, unverified_of, write_verified
from topicops.flow.runs.run import ENVIRONMENT_FILE, TABLES_FILE, EnvironmentRun, now, read_environment
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ArtifactError
from topicops.model.json_types import FormatVersion
from topicops.model.printable import plural
from topicops.model.runs.results import QUIET_FILE, QualityReport, Quiet, quality_file
from topicops.model.specs.desired import Desired

if TYPE_CHECKING:
    from topicops.edges.tables.table_folder import TableFolder
    from topicops.steps.reporting.run_report import RunReport


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """All that decides what a run finds, as digests: the same state gives the same plan and the same rules."""

    mode: str
    """``apply``, ``plan`` or ``drift``."""
    program: str
    environment: str
    """Digest of the environment's file, with its policy and exceptions."""
    files: str
    """Digest of the described topics and of their warnings."""
    cluster: str | None
    """Digest of brokers, topics and partition states; None means that something in it changes with the time alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodRun:
    """A run in which nothing failed, was held or blocked, and no rule failed."""

    format_version: FormatVersion = "1.0"
    run: str
    """``<group>/<run id>``."""
    state: RunState
    """State that the run left, and that the rules judged last."""
    has_empty_plan: bool
    """Whether the plan of exactly this state is known to have no change."""
    checked_at: datetime
    """Time at which the rules were last evaluated, UTC."""
    holds_until: datetime | None = None
    """Time from which the plan may change because a pause ends, UTC; None means that none does."""


DIFFERENCES: Mapping[str, str] = {
    "mode": "its mode was another",
    "program": "topicops was another",
    "environment": "the environment's file was another",
    "files": "the topic files ask for something else",
    "cluster": "the cluster is not the same",
}
"""Words for each field of a state that differs."""
LAST_GOOD_RUN = Memory("last-good-run", GoodRun)
STATE_FILE = "state.json"
LAST_GOOD_FILE = "last-good-run.json"
"""File in the folder of a full run: what was remembered when it began."""


def look_for_quiet(run: EnvironmentRun, *, mode: str, full_because: str = "") -> Quiet | None:
    """Write ``quiet.json`` after the snapshot if nothing differs from the last good run. None means a full run is due.

    A quiet run in mode apply has its commit verified, as a full one with an empty plan has.
    """
    run.store.remove(QUIET_FILE, STATE_FILE, LAST_GOOD_FILE)
    memory, state, at = _memory(run), state_of(run, mode), now()
    run.store.write_value(STATE_FILE, state)
    try:
        good = memory.read()
        reason = full_because or next(_open_matters(run), "") or why_full(good, state, at=at, every=_every(run))
    except ArtifactError as error:
        good, reason = None, str(error)
    if reason or good is None:
        run.progress(f"A full run: {reason}")
        if good is not None:
            run.store.write_value(LAST_GOOD_FILE, good)
        memory.remove()
        return None
    full_check_at = min(filter(None, (good.checked_at + _every(run), good.holds_until)))
    sentence = (
        f"Nothing differs from run {good.run}, which was good; the next full check is due at {_clock(full_check_at)}."
    )
    quiet = Quiet(sentence=sentence, run=good.run, full_check_at=full_check_at, commit=_desired(run).commit)
    run.store.write_value(QUIET_FILE, quiet)
    run.progress(quiet.sentence)
    run.known_tables().remove_all()
    run.store.remove(TABLES_FILE)
    if mode == "apply" and quiet.commit:
        write_verified(run, quiet.commit)
    return quiet


def why_full(good: GoodRun | None, state: RunState, *, at: datetime, every: timedelta) -> str:
    """Say why a full run is due; empty: none is."""
    if good is None:
        return "no good run is known, or one after it was not good"
    if differing := _differing(good.state, state):
        return f"{'; '.join(DIFFERENCES[name] for name in differing)}, compared with run {good.run}"
    if not good.has_empty_plan:
        return f"run {good.run} made changes, so what they led to is planned again"
    return _why_full_by_time(good, at=at, every=every)


def _differing(before: RunState, after: RunState) -> list[str]:
    """Name the fields that differ; a digest that is not known differs from each."""
    pairs = {field.name: (getattr(before, field.name), getattr(after, field.name)) for field in fields(after)}
    return [name for name, (old, new) in pairs.items() if new is None or old != new]


def _why_full_by_time(good: GoodRun, *, at: datetime, every: timedelta) -> str:
    if not good.checked_at <= at < good.checked_at + every:
        return f"every {every} all is checked; that was last at {_clock(good.checked_at)}"
    if good.holds_until is not None and good.holds_until <= at:
        return f"a pause ended at {_clock(good.holds_until)}"
    return ""


def judged_by(run: EnvironmentRun) -> str:
    """Name the good run at whose end the rules held in the state of this run's snapshot; empty: none, or too old."""
    if not (run.store.has(LAST_GOOD_FILE) and run.store.has(STATE_FILE)):
        return ""
    good, state = run.store.read_value(LAST_GOOD_FILE, GoodRun), run.store.read_value(STATE_FILE, RunState)
    if _differing(good.state, state) or _why_full_by_time(good, at=now(), every=_every(run)):
        return ""
    return good.run


def note_end(run: EnvironmentRun, *, failed_tasks: Sequence[str] = ()) -> None:
    """Remember a full run at its end if it was good, else forget the one before."""
    memory, good = _memory(run), None
    if not failed_tasks:
        from topicops.flow.reporting import run_report

        try:
            good = _good_run(run, run_report(run))
        except ArtifactError as error:
            run.progress(f"The next run makes every check: {error}")
    if good is None:
        memory.remove()
    else:
        memory.write(good)


def is_good(report: RunReport) -> bool:
    """Say whether all that the files ask for is in place, and nothing is worth a look: a stricter word than success."""
    plan = report.plan
    if plan is None or plan.change_set.source.only is not None or plan.change_set.blocked:
        return False
    rules, done = (*report.quality_before, *report.quality_after), {outcome.digest for outcome in report.outcomes}
    return (
        report.is_success
        and bool(report.quality_before)
        and all(rule.success for rule in rules)
        and all(check.is_healthy for check in report.checks)
        and all(gated.digest in done for gated in plan.changes)
        and not any(facts.unhealthy for facts in (report.facts_before, report.facts_after) if facts)
    )


def state_of(run: EnvironmentRun, mode: str) -> RunState:
    """Read the state of the run's files and of its first snapshot."""
    tables, desired = run.known_tables(), replace(_desired(run), commit=None)
    return RunState(
        mode=mode,
        program=_program_digest(),
        environment=_sha256(run.store.read_text(ENVIRONMENT_FILE).encode()),
        files=_sha256(msgspec.json.encode(desired, order="sorted"), tables.digest("desired").encode()),
        cluster=cluster_digest(tables),
    )


def cluster_digest(tables: TableFolder) -> str | None:
    """Digest a snapshot's tables. None means that a topic is being deleted, because the age of that counts too."""
    if any(tables.read("cluster", columns=["deleting"])["deleting"].to_pylist()):
        return None
    return tables.digest("cluster", "brokers", "topics", "partitions")


def _good_run(run: EnvironmentRun, report: RunReport) -> GoodRun | None:
    if not is_good(report) or report.plan is None or next(_open_matters(run), ""):
        return None
    state = run.store.read_value(STATE_FILE, RunState)
    checked_at = run.store.read_value(quality_file("before"), QualityReport).checked_at
    first_cluster = state.cluster
    if report.quality_after:
        state = replace(state, cluster=cluster_digest(run.known_tables().below("after")))
    elif state.mode == "apply":
        if not judged_by(run):
            return None
        checked_at = run.store.read_value(LAST_GOOD_FILE, GoodRun).checked_at
    if state.cluster is None:
        return None
    pauses = [paused.until for paused in report.plan.change_set.paused if paused.until]
    return GoodRun(
        run=run.name,
        state=state,
        has_empty_plan=not report.plan.changes and state.cluster == first_cluster,
        checked_at=checked_at,
        holds_until=min(map(datetime.fromisoformat, pauses), default=None),
    )


def _open_matters(run: EnvironmentRun) -> Iterator[str]:
    """Yield what is neither in the files nor in the snapshot, and must not be hidden."""
    if any(open_journals_folder(run.home, run.environment).glob("*.json")):
        yield "requests of another run are being sent, or nobody knows what became of them"
    if left := unverified_of(run).earlier():
        yield f"{plural(len(left), 'topic')} changed by an earlier run and not verified yet"
    if not run.known_moves().is_idle:
        yield "replicas move, or throttles of theirs are still to be removed"
    if held := read_held(run.home, run.environment).addresses:
        yield f"{plural(len(held), 'change')} held"
    if lost := run.store.read_value("live.json", ClusterSnapshot).lost:
        yield f"{plural(len(lost), 'described topic')} deleted outside git"
    if left_out := _desired(run).left_out:
        yield f"{plural(len(left_out), 'topic')} left out because of errors in their files"


def _every(run: EnvironmentRun) -> timedelta:
    return read_environment(run).spec.airflow.full_check_every


def _desired(run: EnvironmentRun) -> Desired:
    """Read what the files ask for without the topics, which are in the table."""
    return run.store.read_value("desired.json", Desired)


def _memory(run: EnvironmentRun) -> MemoryFile[GoodRun]:
    """Give the last good run of this run's DAG.

    A run that does more than look removes it first, so that after a crash or a failure the next run makes every check.
    """
    return LAST_GOOD_RUN.of(run.home, run.name.partition("/")[0])


@cache
def _program_digest() -> str:
    """Give the SHA-256 of every Python file of the package: a checkout may change under one version number."""
    root = Path(topicops.__file__).parent
    files = sorted(root.rglob("*.py"))
    return _sha256(*(part for path in files for part in (bytes(path.relative_to(root)), path.read_bytes())))


def _sha256(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def _clock(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
