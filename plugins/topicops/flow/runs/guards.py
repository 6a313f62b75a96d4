"""Checks before anything is sent: the cluster is the planned one and whole, and there are files."""

from __future__ import annotations

from collections.abc import Sequence

from topicops.edges.home.memories import topic_count
from topicops.flow.runs.run import Run
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import UsageError, WrongTargetError
from topicops.model.plans.approval import Approval
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.ports import Clock, ServerTime
from topicops.model.specs.desired import Desired
from topicops.model.specs.environment import Environment
from topicops.steps.clocks import difference_text, reached_by_either
from topicops.steps.planning.approval_rules import Counted, counted
from topicops.steps.planning.cluster_guard import require_not_shrunken


def require_planned_target(plan: Plan, cluster_id: str, chroot: str) -> None:
    """Raise ``WrongTargetError`` unless the cluster that answered is the one that the plan was made for."""
    planned = (plan.target.cluster_id, plan.target.chroot)
    if planned != (cluster_id, chroot):
        raise WrongTargetError(
            f"the plan is for cluster {planned[0]} below {planned[1] or '/'}, and {cluster_id} below "
            f"{chroot or '/'} answered; nothing was sent: correct the environment's address, or plan again"
        )


def require_whole(run: Run, environment: Environment, live: ClusterSnapshot) -> None:
    """Raise ``ShrunkenWorldError`` when too many topics are gone since the last good snapshot."""
    topics_before = topic_count(run.home, live.cluster_id)
    require_not_shrunken(len(live.topics), topics_before, environment.spec.limits.shrink_percent)


def require_same_cluster(by_brokers: str, live: ClusterSnapshot) -> None:
    """Raise ``WrongTargetError`` when the applier's brokers belong to another cluster than the one that was read."""
    if by_brokers != live.cluster_id:
        read = "ZooKeeper" if live.source == "zookeeper" else "the brokers that were read"
        raise WrongTargetError(
            f"the bootstrap servers belong to cluster {by_brokers}, {read} to {live.cluster_id}; nothing was sent: "
            "correct one of the two addresses"
        )


def require_files(run: Run, environment: Environment, desired: Desired) -> None:
    """Raise ``UsageError`` where no topic file can ask for the plan's changes, unless the policy allows it."""
    if desired.has_files or environment.spec.policy.plans_without_files == "allow":
        return
    raise UsageError(
        f"{run.topics} has no topic of environment {environment.name}, so nothing asks for the plan's changes; nothing "
        "was sent: apply it where the files are, or set policy.plansWithoutFiles: allow "
        f"({environment.place_of('policy.plansWithoutFiles')})"
    )


def counted_signatures(
    run: Run,
    environment: Environment,
    approvals: Sequence[Approval],
    changes: Sequence[GatedChange],
    *,
    server_time: ServerTime | None = None,
) -> Counted:
    """Who approved each change that may run by the policy of now; a line of progress for each objection."""
    # An approval's time may be of either clock.
    found = counted(
        approvals,
        changes,
        environment,
        now=reached_by_either(server_time, Clock()),
        clocks=difference_text(server_time, Clock()),
    )
    for objection in found.objections:
        run.progress(objection)
    return found
