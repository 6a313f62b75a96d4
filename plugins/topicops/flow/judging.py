"""Judge a plan again before it is applied: by the files, the policy and the cluster of now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from topicops.flow.runs.access import Access, with_broker_answers, with_log_directories
from topicops.flow.runs.files import SpecFiles, commit_of_files
from topicops.flow.runs.guards import counted_signatures, known_lost_topics, known_past_deletes
from topicops.flow.runs.memory import waits_for
from topicops.flow.runs.run import Notes
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.plans.changes import ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plans.delta import Delta, desired_row, live_row
from topicops.model.plans.plan import Approval, ChangeSet, Plan
from topicops.model.ports import Clock, ServerTime
from topicops.model.specs.desired import Desired, Lifecycle
from topicops.model.specs.environment import Environment, Risk
from topicops.steps.applying.judged_again import Judged, judge_again, with_risk_of_now
from topicops.steps.clocks import passed_by_both
from topicops.steps.planning.diff import diff
from topicops.steps.planning.plan import plan as plan_step

QUESTION_TIMEOUT_S = 15.0
"""How long brokers may take to answer before something is sent; a plan waits 2 s, a delete is worth more."""


def with_needed_answers(access: Access, live: ClusterSnapshot, plan: Plan, desired: Desired) -> ClusterSnapshot:
    """The snapshot with what a planned change depends on.

    That is what brokers answer, for its risk and its place, and which topics were deleted, outside git or by a run.
    """
    changes = [gated.change for gated in plan.changes]
    with access.questions(timeout_s=QUESTION_TIMEOUT_S) as questions:
        if any(isinstance(change, ConfigureTopic | ExpandTopic) for change in changes):
            live = with_broker_answers(replace(live, broker_defaults=None), questions)
        if any(not isinstance(change, ConfigureTopic) for change in changes):
            doomed = {change.topic for change in changes if isinstance(change, DeleteTopic)}
            live = with_log_directories(live, doomed | _absent(desired), questions)
    created = {change.topic for change in changes if isinstance(change, CreateTopic)}
    if not created:
        return live
    home, environment = access.home, access.environment.name
    lost = known_lost_topics(home, environment, live, desired)
    return replace(live, lost=lost, past_deletes=known_past_deletes(home, environment, created))


def judge_now(
    plan: Plan,
    environment: Environment,
    files: SpecFiles,
    home: Path,
    *,
    desired: Desired,
    live: ClusterSnapshot,
    approvals: Sequence[Approval],
    notes: Notes,
    clock: Clock,
    progress: Callable[[str], None],
    server_time: ServerTime | None = None,
) -> Judged:
    """The plan as it may run now, and what may not. Whether an approval counts depends on the risk of now.

    Args:
        notes: Get why an approval does not count.
        live: With partition states, and with what ``with_needed_answers`` gives.
        clock: Of this host.
        server_time: Beside it: ``notBefore`` must be over, and an approval must last, by both.
    """
    anew = _planned_anew(environment, plan, desired, live, passed_by_both(server_time, clock))
    changes = with_risk_of_now(plan, anew)
    approved = counted_signatures(environment, approvals, changes, clock, server_time)
    for objection in approved.objections:
        progress(objection)
    notes.add(approved.objections)
    commit = commit_of_files(files) if environment.spec.policy.after else None
    waits = tuple(waits_for(home, environment, files.topics, commit))
    return judge_again(
        plan, anew, desired=desired, live=live, environment=environment, approved=approved.signatures, waits=waits
    )


def _planned_anew(
    environment: Environment, plan: Plan, desired: Desired, live: ClusterSnapshot, at: datetime
) -> ChangeSet:
    """What files, policy and cluster ask for now: of the plan's topics, and of all topics that must be absent.

    The limits on deletes count all of these. Whether a topic is in use is asked right before its delete.
    """
    planned = {gated.change.topic for gated in plan.changes}
    anew = plan_step(desired, live, _delta(planned | _absent(desired), desired, live), environment, now=at)
    if desired.has_files:
        return anew
    # Without files the risk is not known: the worst counts, so each change needs an approval.
    return replace(
        anew, changes=tuple(replace(gated.change, risk=Risk.DESTRUCTIVE, reversible=False) for gated in plan.changes)
    )


def _absent(desired: Desired) -> set[str]:
    return {name for name, topic in desired.topics.items() if topic.lifecycle is Lifecycle.ABSENT}


def _delta(topics: Collection[str], desired: Desired, live: ClusterSnapshot) -> Delta:
    return diff(
        (desired_row(desired.topics[name]) for name in topics if name in desired.topics),
        (live_row(live.topics[name]) for name in topics if name in live.topics),
    )
