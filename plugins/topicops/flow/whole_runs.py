"""Several steps in a row, as one command takes them: apply a saved plan, verify a plan or a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from topicops.flow.applying import apply
from topicops.flow.judging import judge_now, with_lost_topics, with_needed_answers
from topicops.flow.planning import gate, snapshot
from topicops.flow.reporting import note_verified, report, run_report, write_report
from topicops.flow.runs.facts import write_facts
from topicops.flow.runs.guards import require_files, require_planned_target
from topicops.flow.runs.outcomes import as_if_done, read_outcomes, unrecorded_once_sent
from topicops.flow.runs.run import (
    ENVIRONMENT_FILE,
    PLAN_FILE,
    Run,
    keep_environment,
    read_environment,
    read_needed_specs,
)
from topicops.flow.stopping import note_begin, stop_reason
from topicops.flow.verifying import still_absent, verify_or_note_failure, verify_outcomes, write_checks
from topicops.model.exit_status import ExitStatus
from topicops.model.plans.approval import Approval
from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import Plan
from topicops.model.plans.plan_file import plan_to_json
from topicops.model.printable import plural
from topicops.steps.facts import facts_of, partition_counts
from topicops.steps.planning.only import needs_again
from topicops.steps.reporting.runs.exit_status import apply_exit_status, verify_exit_status
from topicops.steps.verifying.cluster_health import verify_cluster as verify_cluster_step


def apply_plan(
    run: Run,
    saved: Plan,
    *,
    approvals: Sequence[Approval] = (),
    lock_timeout_s: float = 0.0,
    interrupted: Callable[[], bool] = lambda: False,
) -> ExitStatus:
    """Apply a saved plan in a run of its own, verify, and report. Gives the exit status."""
    run.progress(f"Reading the live topics of {run.environment}")
    environment, desired = read_needed_specs(run, needs_again(saved)).require()
    run.store.write_value(ENVIRONMENT_FILE, environment)
    snapshot(run, states=True)
    live = run.read_live()
    require_planned_target(saved, live.cluster_id, live.chroot)
    require_files(run, environment, desired)
    live = with_lost_topics(run, with_needed_answers(run.access(environment), live, saved, desired), saved, desired)
    judged = judge_now(run, environment, saved, desired=desired, live=live, approvals=approvals)
    run.store.write_text(PLAN_FILE, plan_to_json(judged.plan))
    return _apply_and_verify(run, approvals, lock_timeout_s, interrupted)


def apply_own_plan(
    run: Run,
    *,
    approvals: Sequence[Approval] = (),
    lock_timeout_s: float = 0.0,
    interrupted: Callable[[], bool] = lambda: False,
) -> ExitStatus:
    """Apply the plan that this run has made, verify, and report. Gives the exit status.

    ``apply`` judges each change again, by the files, the policy and the cluster of now, as it does for a saved plan.
    """
    if approvals:
        gate(run, approvals=approvals)
    return _apply_and_verify(run, approvals, lock_timeout_s, interrupted)


def _apply_and_verify(
    run: Run, approvals: Sequence[Approval], lock_timeout_s: float, interrupted: Callable[[], bool]
) -> ExitStatus:
    note_begin(run)

    def is_stopped() -> bool:
        return interrupted() or bool(stop_reason(run))

    apply(run, approvals=approvals, lock_timeout_s=lock_timeout_s, interrupted=is_stopped)
    outcomes = read_outcomes(run)
    with unrecorded_once_sent(outcomes):
        if outcomes:
            verify_or_note_failure(run, interrupted=is_stopped)
        report(run, interrupted=is_stopped())
        note_verified(run, interrupted=is_stopped())
        return apply_exit_status(run_report(run, interrupted=is_stopped()).summary)


def verify_plan(run: Run, saved: Plan) -> ExitStatus:
    """Check that the cluster is as a saved plan wants it, whoever applied it. Gives the exit status."""
    keep_environment(run)
    snapshot(run, states=True)
    live = run.read_live()
    require_planned_target(saved, live.cluster_id, live.chroot)
    run.store.write_text(PLAN_FILE, plan_to_json(saved))
    wanted = [gated for gated in saved.changes if gated.gate is not GateWord.SKIPPED]
    # No problem is excused as older than the run, because the problems of now are the question.
    verify_outcomes(run, [as_if_done(gated) for gated in wanted], known_findings=())
    return _verify_status(run)


def verify_cluster(run: Run) -> ExitStatus:
    """Check every topic of the cluster once, without a plan. Gives the exit status."""
    if not run.store.has(ENVIRONMENT_FILE):
        keep_environment(run)
    snapshot(run, states=True)
    access = run.access(read_environment(run))
    live = access.with_broker_answers(run.read_live())
    run.progress(f"Asking {plural(len(live.brokers), 'broker')} about {plural(len(live.topics), 'topic')}")
    with access.broker_views() as metadata:
        checks = verify_cluster_step(live, metadata, confirmed=lambda names: still_absent(access, names))
    write_checks(run, checks)
    write_facts(run, "after", facts_of(partition_counts(live), live), None)
    return _verify_status(run)


def _verify_status(run: Run) -> ExitStatus:
    found = run_report(run)
    write_report(run, found)
    return verify_exit_status(found.summary)
