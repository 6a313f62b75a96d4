"""One step at a time, as the tasks of a DAG take them: load the values of the steps before, take it, keep its values.

Several steps in one process hand the values on instead: ``planning.make_plan`` and ``whole_runs``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from topicops.flow.applying import carry_out
from topicops.flow.engines import PYTHON, DiffEngine
from topicops.flow.planning import compare, gate_again, gate_changes, plan_changes, read_snapshot, specs_of
from topicops.flow.reporting import finish, problem_of, run_report
from topicops.flow.reporting import note_verified as note_verified_report
from topicops.flow.runs.files import diagnostics_named, read_files, read_specs, wait_for_pinned_files
from topicops.flow.runs.kept import keep_changes, keep_plan, keep_specs, load_results, load_snapshot, prune
from topicops.flow.runs.outcomes import outcomes_so_far, read_outcomes
from topicops.flow.runs.run import (
    CHANGES_FILE,
    CHECKS_FILE,
    DELTA_FILE,
    DESIRED_FILE,
    DIAGNOSTICS_FILE,
    DRIFT_FILE,
    ENVIRONMENT_FILE,
    FILES_COMMIT,
    KINDS,
    LIVE_FILE,
    PLAN_FILE,
    EnvironmentRun,
    Notes,
    Run,
    baseline_file,
    notes_of,
    outcomes_file,
    read_environment,
)
from topicops.flow.runs.run import open_run as open_run
from topicops.flow.runs.values import Specs
from topicops.flow.verifying import verify_outcomes
from topicops.model.errors import ArtifactError, SpecError
from topicops.model.plans.changes import ACTIONS, Action, GateWord
from topicops.model.plans.delta import Delta
from topicops.model.plans.plan import Approval, Plan
from topicops.model.runs.results import Outcome, OutcomeStatus, Verdict
from topicops.steps.planning.diff import DriftReport, drift, drift_lines, drift_summary
from topicops.steps.planning.only import Only, keep_held
from topicops.steps.reporting.run_report import headline
from topicops.steps.verifying.observation import FindingKey

logger = logging.getLogger(__name__)


Summary = dict[str, object]
"""What a step leaves in XCom: the ``path`` of its artifact, digests and counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSummary:
    path: str
    ok: bool
    """Whether nothing failed."""
    summary: str
    """First line of the report."""
    held: int
    skipped: int
    blocked: int


def validate(run: EnvironmentRun, *, as_tables: bool = False, patience_s: float = 0.0) -> Summary:
    """Write ``environment.json`` and ``desired.json``. Opens no connection.

    Args:
        as_tables: Keep the topics of this run, desired and live, in tables.
        patience_s: How long to wait until the files are those of the commit that the run is pinned to.

    Raises:
        SpecError: With every problem, which ``diagnostics.json`` keeps for the run's page.
        MovedFilesError: The files are not of the pinned commit.
    """
    specs = _read_specs(run, patience_s)
    keep_specs(run, specs, as_tables=as_tables)
    desired = specs.desired
    return {
        "path": str(run.store.path(DESIRED_FILE)),
        "topics": len(desired.topics),
        "warnings": len(desired.warnings),
        "commit": desired.commit,
        "digest": desired.digest,
    }


def _read_specs(run: EnvironmentRun, patience_s: float = 0.0) -> Specs:
    wait_for_pinned_files(run.files, patience_s=patience_s, clock=run.clock, progress=run.progress)
    validated, commit = read_files(run.files, lambda: read_specs(run.files))
    run.store.remove(DIAGNOSTICS_FILE)
    run.store.write_text(FILES_COMMIT, commit or "")
    prune(run.home, now=run.clock.utc())
    try:
        return specs_of(validated, commit)
    except SpecError as error:
        found = diagnostics_named(run.topics, error.diagnostics)
        run.store.write_value(DIAGNOSTICS_FILE, found)
        raise SpecError(found) from error


def snapshot(run: EnvironmentRun, *, states: bool = False) -> Summary:
    """Write ``live.json``. Raises as ``planning.read_snapshot``."""
    started = time.monotonic()
    desired = run.read_desired() if run.store.has(DESIRED_FILE) else None
    reading = read_snapshot(run, run.access(read_environment(run)), desired, states=states).reading
    return {
        "path": str(run.store.path(LIVE_FILE)),
        "cluster_id": reading.cluster_id,
        "topics": reading.topics,
        "partitions": reading.partitions,
        "brokers": reading.brokers,
        "seconds": round(time.monotonic() - started, 3),
    }


def diff(run: EnvironmentRun, *, engine: DiffEngine = PYTHON) -> Summary:
    """Write ``delta.json`` and ``facts-before.json``. Raises as ``planning.compare``."""
    desired, live, started = run.read_desired(), run.read_live(), time.monotonic()
    comparison = compare(run, desired, live, engine=engine, connections=run.connections)
    return _diff_summary(run, comparison.delta, started)


def diff_once(run: EnvironmentRun, *, engine: DiffEngine = PYTHON) -> Summary:
    """As ``diff``, unless the run has a ``delta.json``: that is of this snapshot, because each snapshot removes it."""
    if not run.store.has(DELTA_FILE):
        return diff(run, engine=engine)
    return _diff_summary(run, run.read_delta(), time.monotonic())


def _diff_summary(run: Run, delta: Delta, started: float) -> Summary:
    counts = {topic_class.value: count for topic_class, count in delta.counts.items()}
    path = str(run.store.path(DELTA_FILE))
    return {"path": path, "counts": counts, "seconds": round(time.monotonic() - started, 3)}


def plan(run: EnvironmentRun, *, only: Only | None = None) -> Summary:
    """Write ``changes.json``: the ordered changes, and what is blocked, drifted, unmanaged or paused.

    Args:
        only: A glob, or names; topics that do not match are left out.
    """
    access, snapshot = run.access(read_environment(run)), load_snapshot(run)
    _, change_set = plan_changes(run, access, run.read_desired(), snapshot, run.read_delta(), only=only)
    return {
        "path": str(run.store.path(CHANGES_FILE)),
        "changes": len(change_set.changes),
        "blocked": len(change_set.blocked),
        "drift": len(change_set.drift),
        "unmanaged": len(change_set.unmanaged),
    }


def gate(run: EnvironmentRun, *, approvals: Sequence[Approval] = ()) -> Summary:
    """Write ``plan.json``: each change sorted into run, held or skipped; the approvals let run what the policy counts.

    An earlier try of the run applied an earlier plan: its outcomes, notes, checks and baselines are removed.

    Raises ``MovedFilesError`` where the files are not of the commit that the run is pinned to.
    """
    found = gate_again(run, read_environment(run), run.read_change_set(), approvals).plan
    return _gate_summary(run, found)


def _gate_summary(run: Run, found: Plan) -> Summary:
    counts = {word.value: len(found.with_gate(word)) for word in GateWord}
    return {**counts, "path": str(run.store.path(PLAN_FILE)), "fingerprint": found.fingerprint}


def plan_held(run: EnvironmentRun, digests: Collection[str]) -> Summary:
    """Write ``plan.json`` of these changes alone, by the present files and cluster. Raises as ``keep_held``."""
    specs = _read_specs(run)
    specs = keep_specs(run, specs, as_tables=True)  # quality_after reads the tables
    access = run.access(specs.environment)
    snapshot = read_snapshot(run, access, specs.desired, states=True)
    comparison = compare(run, specs.desired, snapshot.live, engine=PYTHON, connections=run.connections)
    _, change_set = plan_changes(run, access, specs.desired, snapshot, comparison.delta)
    gated = gate_changes(run, specs.environment, change_set).plan
    keep_plan(run, gated)
    narrowed = keep_held(change_set, gated, digests)
    keep_changes(run, narrowed)
    return _gate_summary(run, gate_again(run, specs.environment, narrowed, ()).plan)


def apply(
    run: EnvironmentRun,
    *,
    actions: Collection[Action] = ACTIONS,
    approvals: Sequence[Approval] = (),
    lock_timeout_s: float = 0.0,
    attempt: int = 1,
    interrupted: Callable[[], bool] = lambda: False,
    started_by: str = "",
) -> Mapping[str, int]:
    """Write ``outcomes-<action>.json`` for each of ``actions``; gives how many outcomes have each status.

    Takes and raises what ``applying.carry_out`` does.
    """
    earlier = {a: read_outcomes(run, [a]) for a in ACTIONS if a not in actions and run.store.has(outcomes_file(a))}
    planned = run.read_plan()
    applied = carry_out(
        run,
        planned,
        since=planned.change_set.source.commit if run.store.has(DESIRED_FILE) else None,
        actions=actions,
        approvals=approvals,
        earlier=earlier,
        notes=Notes(run, notes_of(run)),
        lock_timeout_s=lock_timeout_s,
        attempt=attempt,
        interrupted=interrupted,
        started_by=started_by,
    )
    return counts_of(applied.outcomes)


def counts_of(outcomes: Sequence[Outcome]) -> Mapping[str, int]:
    return {status.value: sum(outcome.status is status for outcome in outcomes) for status in OutcomeStatus}


def verify(run: EnvironmentRun) -> Summary:
    """Write ``checks.json``: each topic that apply touched; problems from before the run are marked as such."""
    baselines = map(baseline_file, KINDS)
    known = [run.store.read_value(name, tuple[FindingKey, ...]) for name in baselines if run.store.has(name)]
    checks = verify_outcomes(
        run,
        run.access(read_environment(run)),
        run.read_plan(),
        outcomes_so_far(run),
        known_findings=frozenset(found for each in known for found in each),
    )
    counts = {verdict.value: sum(check.verdict is verdict for check in checks) for verdict in Verdict}
    topics = len({check.topic for check in checks if check.topic})
    return {**counts, "path": str(run.store.path(CHECKS_FILE)), "topics": topics}


def report(run: EnvironmentRun, *, failed_tasks: Sequence[str] = ()) -> ReportSummary:
    """Write ``report.txt``, ``report.md`` and ``report.json``.

    Raises ``ArtifactError`` where the folder holds no run, and nothing has failed that would explain it.
    """
    results = load_results(run)
    if not (failed_tasks or run.store.has(ENVIRONMENT_FILE) or results.plan):
        raise ArtifactError(f"{run.store.folder}: there is no run to report: its first step has left nothing here")
    found = finish(run, results, failed_tasks=failed_tasks, problem=problem_of(run, failed_tasks))
    return ReportSummary(
        path=str(run.store.path("report.txt")),
        ok=found.is_success,
        summary=headline(found),
        held=found.summary.held,
        skipped=found.summary.skipped,
        blocked=found.summary.blocked,
    )


def note_verified(run: EnvironmentRun, *, failed_tasks: Sequence[str] = ()) -> None:
    """Note as ``reporting.note_verified``, from what the run has left in its folder."""
    note_verified_report(run, run_report(run, failed_tasks=failed_tasks))


def record_drift(run: EnvironmentRun, *, only: str | None = None) -> DriftReport:
    """Write ``drift.json``, and a line for each difference between the files and the snapshot of this run."""
    delta = run.read_delta() if run.store.has(DELTA_FILE) else None
    found = drift(run.read_desired(), run.read_live(), read_environment(run), only=only, delta=delta)
    run.progress("\n".join((*drift_lines(found.drift), drift_summary(found))))
    run.store.write_json(DRIFT_FILE, found)
    return found
