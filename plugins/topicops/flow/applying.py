"""Send what may run: the gate once more on fresh facts, the lease, the journal, and one outcome for each change."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import TYPE_CHECKING

from topicops.edges.artifact_store import FileJournal
from topicops.edges.connections import kafka_properties, zookeeper_hosts
from topicops.flow.run import Facts, Run, cluster_reader, read_environment
from topicops.model.changes import ACTIONS, Action, GateWord
from topicops.model.environment import Environment
from topicops.model.errors import UsageError, WrongTargetError
from topicops.model.plan import Plan
from topicops.model.plan_file import plan_to_json
from topicops.model.ports import ClusterQuestions, Lease
from topicops.model.results import Outcome, OutcomeStatus
from topicops.model.snapshot import ClusterSnapshot
from topicops.steps.apply import apply as apply_step
from topicops.steps.exit_status import apply_exit_status
from topicops.steps.gate import gate as gate_step
from topicops.steps.gate import stricter

if TYPE_CHECKING:
    from topicops.edges.kafka_admin import KafkaAdmin

NOBODY: frozenset[str] = frozenset()
IN_PLACE = (OutcomeStatus.DONE, OutcomeStatus.ALREADY_SO)


def approval(plan: Plan, fingerprint: str) -> frozenset[str]:
    """The digests that ``--approve FINGERPRINT`` covers: this plan's. Raises ``UsageError`` for another plan's."""
    if fingerprint != plan.fingerprint:
        raise UsageError(f"--approve {fingerprint}: this plan's fingerprint is {plan.fingerprint}; review it first")
    return frozenset(gated.digest for gated in plan.changes)


def apply(
    run: Run,
    *,
    actions: Collection[Action] = ACTIONS,
    approved: Collection[str] = NOBODY,
    lock_timeout_s: float = 0.0,
    attempt: int = 1,
    interrupted: Callable[[], bool] = lambda: False,
) -> Facts:
    """``outcomes-<action>.json`` for each of ``actions``.

    Args:
        approved: Digests of held changes that a person has approved.
        attempt: Which try of a task this is; each has a journal of its own.

    Raises:
        WrongTargetError: The cluster is not the one the plan is for; nothing was sent.
        LeaseHeldError: Another run is at work; nothing was sent.

    """
    plan, environment = run.plan, read_environment(run)
    if not any(gated.change.action in actions for gated in plan.changes):
        return _close(run, actions, ())
    kind = "all" if len(actions) == len(ACTIONS) else "-".join(actions)
    with cluster_reader(run, environment) as reader:
        live = reader.snapshot(states=plan.change_set.facts.offline_partitions is not None)
        require_planned_target(plan, live)
        final = regated(plan, environment, live, approved)
        if trouble := _earlier_trouble(run, actions):
            return _close(run, actions, tuple(_not_sent(final, actions, trouble)))
        with _lease(run, environment, f"apply {kind}", lock_timeout_s) as lease, _admin(run, environment) as admin:
            require_same_cluster(admin.cluster_id(), live.cluster_id)
            outcomes = apply_step(
                final,
                actions=actions,
                reader=reader,
                admin=admin,
                lease=lease,
                journal=FileJournal(run.store.path(f"journal-{kind}-{attempt}.jsonl")),
                questions=_questions(run, environment),
                environment=environment.spec,
                clock=time.monotonic,
                sleep=time.sleep,
                progress=lambda outcome: run.say(outcome_line(outcome)),
                interrupted=interrupted,
            )
    _forget_deleted(run, live.cluster_id, outcomes)
    return _close(run, actions, outcomes)


def apply_plan(
    run: Run,
    plan: Plan,
    *,
    approved: Collection[str] = NOBODY,
    lock_timeout_s: float = 0.0,
    interrupted: Callable[[], bool] = lambda: False,
) -> int:
    """Apply a saved plan in a run of its own, verify, and report. Gives the exit status."""
    from topicops.flow.planning import snapshot
    from topicops.flow.proving import report, run_report, verify

    run.say(f"Reading the live topics of {run.environment}")
    snapshot(run, states=True)
    require_planned_target(plan, run.live)
    run.store.write_text("plan.json", plan_to_json(regated(plan, read_environment(run), run.live, approved)))
    apply(run, approved=approved, lock_timeout_s=lock_timeout_s, interrupted=interrupted)
    if read_outcomes(run):
        verify(run, interrupted=interrupted)
    report(run, interrupted=interrupted())
    return apply_exit_status(run_report(run, interrupted=interrupted()).summary)


def require_planned_target(plan: Plan, live: ClusterSnapshot) -> None:
    """Raise ``WrongTargetError`` unless the cluster that answered is the one that the plan was made for."""
    planned = (plan.target.cluster_id, plan.target.chroot)
    if planned != (live.cluster_id, live.chroot):
        raise WrongTargetError(
            f"the plan is for cluster {planned[0]} below {planned[1] or '/'}, and {live.cluster_id} below "
            f"{live.chroot or '/'} answered; nothing was sent: correct the environment's address, or plan again"
        )


def require_same_cluster(by_brokers: str, by_zookeeper: str) -> None:
    """Raise ``WrongTargetError`` when the bootstrap servers belong to another cluster than ZooKeeper."""
    if by_brokers != by_zookeeper:
        raise WrongTargetError(
            f"the bootstrap servers belong to cluster {by_brokers}, ZooKeeper to {by_zookeeper}; nothing was sent: "
            "correct one of the two addresses"
        )


def regated(plan: Plan, environment: Environment, live: ClusterSnapshot, approved: Collection[str]) -> Plan:
    """The gate anew, on today's policy and cluster; the stricter of both words counts, an approval lifts a hold."""
    facts = replace(
        plan.change_set.facts,
        live_brokers=len(live.brokers),
        has_controller=live.controller_id is not None,
        offline_partitions=live.offline_partitions,
    )
    anew = gate_step(replace(plan.change_set, facts=facts), environment, approved=approved)
    return stricter(plan, anew, approved=approved)


def outcome_line(outcome: Outcome) -> str:
    """``create payments.orders: done``, with the message where there is one."""
    return f"{outcome.action} {outcome.topic}: {outcome.status}" + (f" ({outcome.message})" if outcome.message else "")


def read_outcomes(run: Run, actions: Collection[Action] = ACTIONS) -> tuple[Outcome, ...]:
    """What was done so far, in the order in which a plan runs; an action without a file has run nothing yet."""
    return tuple(
        outcome
        for action in ACTIONS
        if action in actions and run.store.has(_file_of(action))
        for outcome in run.store.read_value(_file_of(action), tuple[Outcome, ...])
    )


def _lease(run: Run, environment: Environment, operation: str, lock_timeout_s: float) -> AbstractContextManager[Lease]:
    match environment.spec.cluster.lease:
        case "zookeeper":
            from topicops.edges.zookeeper_lease import ZooKeeperLease

            hosts = zookeeper_hosts(environment, run.connections)
            return ZooKeeperLease(hosts, run=run.name, operation=operation, lock_timeout_s=lock_timeout_s)
        case "file":
            from topicops.edges.file_lease import FileLease

            path = run.home / "lease" / f"{environment.name}.lock"
            return FileLease(path, run=run.name, operation=operation, lock_timeout_s=lock_timeout_s)
        case "none":
            from topicops.edges.file_lease import NoLease

            return NoLease()


def _admin(run: Run, environment: Environment) -> AbstractContextManager[KafkaAdmin]:
    from topicops.edges.kafka_admin import KafkaAdmin

    return closing(
        KafkaAdmin(
            kafka_properties(environment, "applier", run.connections),
            deleter=kafka_properties(environment, "deleter", run.connections),
            topics_per_request=environment.spec.apply.topics_per_request,
            partitions_per_request=environment.spec.apply.partitions_per_request,
        )
    )


def _questions(run: Run, environment: Environment) -> ClusterQuestions:
    from topicops.edges.kafka_reader import BrokerQuestions

    return BrokerQuestions(kafka_properties(environment, "reader", run.connections))


def _earlier_trouble(run: Run, actions: Collection[Action]) -> str | None:
    """Why deletes of their own task may not run: another kind of this run did not succeed."""
    if "delete" not in actions:
        return None
    others = [action for action in ACTIONS if action not in actions]
    failed = [outcome for outcome in read_outcomes(run, others) if outcome.status not in IN_PLACE]
    if not failed:
        return None
    return (
        f"deletes run only when all before succeeded; {failed[0].action} of {failed[0].topic} ended {failed[0].status}"
    )


def _not_sent(plan: Plan, actions: Collection[Action], reason: str) -> Iterator[Outcome]:
    for gated in plan.with_gate(GateWord.RUN):
        if gated.change.action in actions:
            yield Outcome(
                topic=gated.change.topic,
                action=gated.change.action,
                digest=gated.digest,
                status=OutcomeStatus.NOT_SENT,
                message=reason,
            )


def _forget_deleted(run: Run, cluster_id: str, outcomes: Sequence[Outcome]) -> None:
    """Our own deletes are no reason to call the world shrunken."""
    from topicops.edges.last_good import LastGood

    deleted = sum(outcome.action == "delete" and outcome.status is OutcomeStatus.DONE for outcome in outcomes)
    LastGood(run.home, cluster_id).lower(deleted)


def _close(run: Run, actions: Collection[Action], outcomes: Sequence[Outcome]) -> Facts:
    for action in actions:
        run.store.write_value(_file_of(action), tuple(o for o in outcomes if o.action == action))
    counts: Facts = {status.value: sum(o.status is status for o in outcomes) for status in OutcomeStatus}
    return {"path": str(run.store.folder), **counts}


def _file_of(action: Action) -> str:
    return f"outcomes-{action}.json"
