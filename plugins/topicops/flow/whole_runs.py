"""Several steps in one process, as one command takes them: apply a plan, verify a plan or a cluster.

The steps hand their values on. What they keep in the run's folder is for people, and for the commands after this one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from topicops.flow.applying import Applied, carry_out
from topicops.flow.judging import judge_now, with_needed_answers
from topicops.flow.planning import gate_again, read_snapshot
from topicops.flow.reporting import finish, note_verified
from topicops.flow.runs.access import Access
from topicops.flow.runs.files import read_needed_specs
from topicops.flow.runs.guards import require_files, require_planned_target
from topicops.flow.runs.kept import keep_checks, keep_facts
from topicops.flow.runs.memory import note_begin, stop_reason
from topicops.flow.runs.outcomes import unrecorded_once_sent
from topicops.flow.runs.run import ENVIRONMENT_FILE, PLAN_FILE, EnvironmentRun, Notes, Run
from topicops.flow.runs.values import Planned, RunResults
from topicops.flow.verifying import still_absent, topics_that_move, verify_outcomes
from topicops.model.codes import Code
from topicops.model.errors import ExitStatus, TopicopsError, log_error, sentence
from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import Approval, Plan
from topicops.model.plans.plan_file import plan_to_json
from topicops.model.printable import plural
from topicops.model.runs.results import Check, Outcome, OutcomeStatus, Verdict
from topicops.model.specs.environment import Environment
from topicops.steps.facts import facts_of, partition_counts
from topicops.steps.planning.only import needs_again
from topicops.steps.reporting.run_report import RunReport
from topicops.steps.reporting.run_result import apply_exit_status, verify_exit_status
from topicops.steps.specs.needed import no_topic
from topicops.steps.verifying.verify import verify_cluster as verify_cluster_step

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended."""

    results: RunResults
    report: RunReport
    status: ExitStatus


def apply_plan(
    run: EnvironmentRun,
    saved: Plan,
    *,
    approvals: Sequence[Approval] = (),
    lock_timeout_s: float = 0.0,
    interrupted: Callable[[], bool] = lambda: False,
) -> Ended:
    """Apply a saved plan in a run of its own, verify, and report."""
    run.progress(f"Reading the live topics of {run.environment}")
    environment, desired = read_needed_specs(run.files, needs_again(saved), run.progress).require()
    run.store.write_value(ENVIRONMENT_FILE, environment)
    access, notes = run.access(environment), Notes(run)
    snapshot = read_snapshot(run, access, None, states=True)
    live = snapshot.live
    require_planned_target(saved, live.cluster_id, live.chroot)
    require_files(run.topics, environment, desired)
    live = with_needed_answers(access, live, saved, desired)
    judged = judge_now(run, access, saved, desired=desired, live=live, approvals=approvals, notes=notes)
    run.store.write_text(PLAN_FILE, plan_to_json(judged.plan))
    results = RunResults(reading=snapshot.reading, environment=environment, plan=judged.plan)
    return _apply_and_verify(run, environment, judged.plan, results, notes, approvals, lock_timeout_s, interrupted)


def apply_own_plan(
    run: EnvironmentRun,
    planned: Planned,
    *,
    approvals: Sequence[Approval] = (),
    lock_timeout_s: float = 0.0,
    interrupted: Callable[[], bool] = lambda: False,
) -> Ended:
    """Apply the plan that this run has made, verify, and report.

    As for a saved plan, each change is judged again by the present files, policy and cluster.
    """
    environment, notes = planned.specs.environment, Notes(run)
    if approvals:
        gated = gate_again(run, environment, planned.changes, approvals)
        planned, notes = replace(planned, plan=gated.plan), Notes(run, gated.objections)
    return _apply_and_verify(
        run,
        environment,
        planned.plan,
        planned.results(),
        notes,
        approvals,
        lock_timeout_s,
        interrupted,
        since=planned.specs.desired.commit,
    )


def _apply_and_verify(
    run: EnvironmentRun,
    environment: Environment,
    plan: Plan,
    results: RunResults,
    notes: Notes,
    approvals: Sequence[Approval],
    lock_timeout_s: float,
    interrupted: Callable[[], bool],
    since: str | None = None,
) -> Ended:
    begun = note_begin(run)

    def is_stopped() -> bool:
        return interrupted() or bool(stop_reason(run, begun))

    applied = carry_out(
        run, plan, since=since, notes=notes, approvals=approvals, lock_timeout_s=lock_timeout_s, interrupted=is_stopped
    )
    with unrecorded_once_sent(applied.outcomes):
        results = replace(results, outcomes=applied.outcomes, has_applied=True)
        if applied.outcomes:
            checks = verify_or_fail(run, run.access(environment), plan, applied, interrupted=is_stopped)
            results = replace(results, checks=checks)
        results = replace(results, notes=notes.sentences)
        found = finish(run, results, interrupted=is_stopped())
        note_verified(run, found)
        return Ended(results=results, report=found, status=apply_exit_status(found.summary))


def verify_or_fail(
    run: Run, access: Access, plan: Plan, applied: Applied, *, interrupted: Callable[[], bool]
) -> tuple[Check, ...]:
    """Verify what was applied; an error becomes a failed check, so that the report still lists the changes."""
    try:
        return verify_outcomes(
            run, access, plan, applied.outcomes, known_findings=applied.known_findings, interrupted=interrupted
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, the changes must be reported
        log_error(logger, f"nothing is verified environment={access.environment.name}", error, level=logging.INFO)
        message = f"nothing could be verified: {sentence(error)}"
        code = error.code if isinstance(error, TopicopsError) else None
        checks = (Check(id=Code.V13, topic="", verdict=Verdict.DEGRADED, message=message, code=code),)
        keep_checks(run, checks)
        return checks


def verify_plan(run: EnvironmentRun, saved: Plan) -> Ended:
    """Check that the cluster is as a saved plan wants it, whoever applied it."""
    environment = _keep_environment(run)
    access = run.access(environment)
    snapshot = read_snapshot(run, access, None, states=True)
    require_planned_target(saved, snapshot.live.cluster_id, snapshot.live.chroot)
    run.store.write_text(PLAN_FILE, plan_to_json(saved))
    # As if this run had done them: so verify checks that the cluster is as planned.
    outcomes = [Outcome.of(g, OutcomeStatus.DONE) for g in saved.changes if g.gate is not GateWord.SKIPPED]
    # Problems from before the run count too: the question is the present state.
    checks = verify_outcomes(run, access, saved, outcomes, known_findings=())
    results = RunResults(reading=snapshot.reading, environment=environment, plan=saved, checks=checks)
    return _verified(run, results)


def verify_cluster(run: EnvironmentRun) -> Ended:
    """Check every topic of the cluster once, without a plan."""
    return check_cluster(run, _keep_environment(run))


def check_cluster(run: EnvironmentRun, environment: Environment) -> Ended:
    """Check as ``verify_cluster``; the environment is known, and kept in the run's folder."""
    access = run.access(environment)
    snapshot = read_snapshot(run, access, None, states=True)
    live = access.with_broker_answers(snapshot.live)
    run.progress(f"Asking {plural(len(live.brokers), 'broker')} about {plural(len(live.topics), 'topic')}")
    with access.broker_views() as metadata:
        checks = tuple(
            verify_cluster_step(
                live, metadata, confirmed=lambda names: still_absent(access, names), moving=topics_that_move(access)
            )
        )
    facts = facts_of(partition_counts(live), live)
    keep_checks(run, checks)
    keep_facts(run, "after", facts, None)
    results = RunResults(reading=snapshot.reading, environment=environment, checks=checks, facts_after=facts)
    return _verified(run, results)


def _keep_environment(run: EnvironmentRun) -> Environment:
    """Write ``environment.json`` of the files as they are now, whatever is wrong with files of topics."""
    environment, _ = read_needed_specs(run.files, no_topic, run.progress).require()
    run.store.write_value(ENVIRONMENT_FILE, environment)
    return environment


def _verified(run: EnvironmentRun, results: RunResults) -> Ended:
    found = finish(run, results)
    return Ended(results=results, report=found, status=verify_exit_status(found.summary))
