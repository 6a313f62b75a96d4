"""Send what may run: the gate once more on fresh facts, the lease, the journal, and one outcome for each change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import TYPE_CHECKING

from topicops.edges.connections.lookup import Role, kafka_properties, principal_of, zookeeper_address
from topicops.edges.home.audit_log import AuditOrigin, FileAuditLog
from topicops.edges.home.journal import FileJournal, is_overtaken
from topicops.edges.home.open_journals import registered
from topicops.edges.home.topic_count import TopicCount
from topicops.flow.interception import PORT_WRAPPERS
from topicops.flow.recovery import open_journals_folder, recover_earlier_runs
from topicops.flow.run import (
    ENVIRONMENT_FILE,
    Facts,
    Run,
    audit_folder,
    cluster_reader,
    lease_note,
    note,
    now,
    outcomes_file,
    read_specs,
)
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ArtifactError, ClusterError, UnrecordedError, UsageError, WrongTargetError
from topicops.model.exit_status import ExitStatus
from topicops.model.plans.changes import ACTIONS, Action, GateWord
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.plans.plan_file import plan_to_json
from topicops.model.ports import ApplyPorts, Clock, ClusterQuestions, Lease, LiveReader
from topicops.model.printable import printable
from topicops.model.runs.results import IN_PLACE, Outcome, OutcomeStatus
from topicops.model.specs.desired import Desired, Lifecycle
from topicops.model.specs.environment import Environment
from topicops.steps.applying.apply import apply as apply_step
from topicops.steps.applying.outdated import outdated_topics, refuse_outdated
from topicops.steps.planning.cluster_guard import require_cluster_id, require_not_shrunken
from topicops.steps.planning.gate import gate as gate_step
from topicops.steps.planning.gate import strictest_of
from topicops.steps.reporting.runs.exit_status import apply_exit_status

if TYPE_CHECKING:
    from topicops.edges.kafka.admin import KafkaAdmin

NOBODY: frozenset[str] = frozenset()
QUESTION_TIMEOUT_S = 15.0
"""How long brokers may take to tell whether a topic is in use; a plan waits 2 s, a delete is worth more."""


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
    approver: str | None = None,
    lock_timeout_s: float = 0.0,
    attempt: int = 1,
    interrupted: Callable[[], bool] = lambda: False,
) -> Facts:
    """``outcomes-<action>.json`` for each of ``actions``.

    Args:
        approved: Digests of held changes that a person has approved.
        approver: Who that was, where it is known.
        attempt: Which try of a task this is; each has a journal of its own.

    Raises:
        WrongTargetError: The cluster is not the one the plan is for, or has shrunk; nothing was sent.
        LeaseHeldError: Another run is at work; nothing was sent.
        UnrecordedError: Requests were sent, and what came of them could not be written down.

    """
    plan = run.plan
    if not any(_may_ever_run(gated, approved) for gated in plan.changes if gated.change.action in actions):
        return _close(run, actions, ())
    environment, desired = read_specs(run).require()
    kind = kind_of(actions)
    with cluster_reader(run, environment) as reader:
        # Before the lease, which is a write: not even that goes to another cluster.
        cluster_id = reader.cluster_id()
        require_cluster_id(cluster_id, environment)
        require_planned_target(plan, cluster_id, reader.chroot)
        with PORT_WRAPPERS.get().lease(_lease(run, environment, f"apply {kind}", lock_timeout_s)) as lease:
            reader.catch_up_with(lease)
            # Behind it: the wait may have been long, and what the holder before made is whole by now.
            live = reader.snapshot(states=plan.change_set.facts.offline_partitions is not None)
            require_whole(run, environment, live)
            final = gate_again(plan, environment, live, approved, tombstones=tombstones_of(desired))
            note(run, _notes_of(environment) + recover_earlier_runs(run, reader))
            if trouble := _earlier_trouble(run, final, actions):
                return _close(run, actions, [_not_sent(gated, trouble) for gated in _to_run(final, actions)])
            final, stale = refuse_outdated(final, _rewritten(run, desired), actions)
            for outcome in stale:
                run.progress(outcome_line(outcome))
            journal = FileJournal(run.store.path(f"journal-{kind}-{attempt}.jsonl"))
            identities = _identities(run, environment, _to_run(final, actions))
            audit = _audit_log(run, environment, final, approver, identities)
            outcomes = _send(
                run, environment, identities, final, actions, live, reader, lease, journal, audit, interrupted
            )
    if is_overtaken(journal.path):  # this try slept through the end of its session, and Airflow started another
        run.progress("A later try of this has begun: its outcomes count, and not these.")
        return _counts(run, outcomes)
    return _close_sent(run, actions, [*stale, *outcomes], live)


def apply_plan(
    run: Run,
    plan: Plan,
    *,
    approved: Collection[str] = NOBODY,
    approver: str | None = None,
    lock_timeout_s: float = 0.0,
    interrupted: Callable[[], bool] = lambda: False,
) -> ExitStatus:
    """Apply a saved plan in a run of its own, verify, and report. Gives the exit status."""
    from topicops.flow.planning import snapshot
    from topicops.flow.verifying import report, run_report, verify_or_say_why

    run.progress(f"Reading the live topics of {run.environment}")
    environment, desired = read_specs(run).require()
    run.store.write_value(ENVIRONMENT_FILE, environment)
    snapshot(run, states=True)
    live = run.live
    require_planned_target(plan, live.cluster_id, live.chroot)
    final = gate_again(plan, environment, live, approved, tombstones=tombstones_of(desired))
    run.store.write_text("plan.json", plan_to_json(final))
    apply(run, approved=approved, approver=approver, lock_timeout_s=lock_timeout_s, interrupted=interrupted)
    if read_outcomes(run):
        verify_or_say_why(run, interrupted=interrupted)
    report(run, interrupted=interrupted())
    return apply_exit_status(run_report(run, interrupted=interrupted()).summary)


def require_planned_target(plan: Plan, cluster_id: str, chroot: str) -> None:
    """Raise ``WrongTargetError`` unless the cluster that answered is the one that the plan was made for."""
    planned = (plan.target.cluster_id, plan.target.chroot)
    if planned != (cluster_id, chroot):
        raise WrongTargetError(
            f"the plan is for cluster {planned[0]} below {planned[1] or '/'}, and {cluster_id} below "
            f"{chroot or '/'} answered; nothing was sent: correct the environment's address, or plan again"
        )


def require_whole(run: Run, environment: Environment, live: ClusterSnapshot) -> None:
    """Raise ``ShrunkenWorldError`` when too many topics went since the last good snapshot, the plan's own perhaps."""
    topics_before = TopicCount(run.home, live.cluster_id).read()
    require_not_shrunken(len(live.topics), topics_before, environment.spec.limits.shrink_percent)


def require_same_cluster(by_brokers: str, live: ClusterSnapshot) -> None:
    """Raise ``WrongTargetError`` when the applier's brokers belong to another cluster than the one that was read."""
    if by_brokers != live.cluster_id:
        read = "ZooKeeper" if live.source == "zookeeper" else "the brokers that were read"
        raise WrongTargetError(
            f"the bootstrap servers belong to cluster {by_brokers}, {read} to {live.cluster_id}; nothing was sent: "
            "correct one of the two addresses"
        )


def tombstones_of(desired: Desired) -> frozenset[str]:
    """Topics that git says shall be absent, as of now."""
    at = now()
    return frozenset(
        name
        for name, topic in desired.topics.items()
        if topic.lifecycle is Lifecycle.ABSENT and (topic.not_before is None or topic.not_before <= at)
    )


def _rewritten(run: Run, desired: Desired) -> frozenset[str]:
    """None for a saved plan, whose files are not beside it: it was reviewed as it is."""
    return outdated_topics(run.desired, desired) if run.store.has("desired.json") else frozenset()


def gate_again(
    plan: Plan,
    environment: Environment,
    live: ClusterSnapshot,
    approved: Collection[str],
    *,
    tombstones: Collection[str],
) -> Plan:
    """The gate anew, on today's policy, tombstones and cluster; the stricter of both words counts.

    An approval lifts a hold. A tombstone may be gone by now: hours can lie between a plan and its approval.
    """
    facts = replace(
        plan.change_set.facts,
        live_brokers=len(live.brokers),
        has_controller=live.controller_id is not None,
        offline_partitions=live.offline_partitions,
    )
    anew = gate_step(replace(plan.change_set, facts=facts), environment, approved=approved, tombstones=tombstones)
    return strictest_of(plan, anew, approved=approved)


def kind_of(actions: Collection[Action]) -> str:
    """What one task applies, for the names of its files."""
    return "all" if len(actions) == len(ACTIONS) else "-".join(actions)


def outcome_line(outcome: Outcome) -> str:
    """``create payments.orders: done``, with the message where there is one."""
    said = f" ({outcome.message})" if outcome.message else ""
    return printable(f"{outcome.action} {outcome.topic}: {outcome.status}{said}")


def read_outcomes(run: Run, actions: Collection[Action] = ACTIONS) -> tuple[Outcome, ...]:
    """What was done so far, in the order in which a plan runs; an action without a file has run nothing yet."""
    return tuple(
        outcome
        for action in ACTIONS
        if action in actions and run.store.has(outcomes_file(action))
        for outcome in run.store.read_value(outcomes_file(action), tuple[Outcome, ...])
    )


def _lease(run: Run, environment: Environment, operation: str, lock_timeout_s: float) -> AbstractContextManager[Lease]:
    match environment.spec.cluster.lease:
        case "zookeeper" if environment.spec.cluster.source == "kafka":
            place = environment.place_of("cluster.lease")
            raise UsageError(f"{place}: with source: kafka the lease is file or none; write one of the two")
        case "zookeeper":
            from topicops.edges.zookeeper.lease import ZooKeeperLease

            address = zookeeper_address(environment, run.connections)
            return ZooKeeperLease(address, run=run.name, operation=operation, lock_timeout_s=lock_timeout_s)
        case "file":
            from topicops.edges.home.file_lease import FileLease

            path = run.home / "lease" / f"{environment.name}.lock"
            return FileLease(path, run=run.name, operation=operation, lock_timeout_s=lock_timeout_s)
        case "none":
            from topicops.edges.home.file_lease import NoLease

            return NoLease()


def _role_of(action: Action) -> Role:
    return "deleter" if action == "delete" else "applier"


def _identities(run: Run, environment: Environment, to_run: Iterable[GatedChange]) -> dict[Role, dict[str, str]]:
    """Properties of the roles that these changes need, and of no other: whoever only creates holds no right to delete.

    The applier comes first.
    """
    roles = sorted({_role_of(gated.change.action) for gated in to_run})
    return {role: kafka_properties(environment, role, run.connections) for role in roles}


def _admin(identities: Mapping[Role, Mapping[str, str]]) -> AbstractContextManager[KafkaAdmin]:
    from topicops.edges.kafka.admin import KafkaAdmin

    return closing(
        KafkaAdmin(
            next(iter(identities.values())),
            deleter=identities.get("deleter"),
        )
    )


def _audit_log(
    run: Run,
    environment: Environment,
    plan: Plan,
    approver: str | None,
    identities: Mapping[Role, Mapping[str, str]],
) -> FileAuditLog:
    principals = {a: principal_of(identities[_role_of(a)]) for a in ACTIONS if _role_of(a) in identities}
    origin = AuditOrigin(
        environment=environment.name,
        run=run.name,
        plan=plan.fingerprint,
        commit=plan.change_set.source.commit,
        approver=approver,
        principals=principals,
    )
    return FileAuditLog(audit_folder(run.home), origin)


def _questions(run: Run, environment: Environment) -> ClusterQuestions:
    from topicops.edges.kafka.broker_questions import BrokerQuestions

    properties = kafka_properties(environment, "reader", run.connections)
    return BrokerQuestions(properties, timeout_s=QUESTION_TIMEOUT_S)


def _notes_of(environment: Environment) -> list[str]:
    """What a reader of the report must know of how this environment is applied to."""
    lacking = lease_note(environment)
    return [lacking] if lacking else []


def _may_ever_run(gated: GatedChange, approved: Collection[str]) -> bool:
    """Whether the gate may let it run; its first word is never softened but by an approval."""
    return gated.gate is GateWord.RUN or (gated.approvable and gated.digest in approved)


def _to_run(plan: Plan, actions: Collection[Action]) -> list[GatedChange]:
    return [gated for gated in plan.with_gate(GateWord.RUN) if gated.change.action in actions]


def _send(
    run: Run,
    environment: Environment,
    identities: Mapping[Role, Mapping[str, str]],
    plan: Plan,
    actions: Collection[Action],
    live: ClusterSnapshot,
    reader: LiveReader,
    lease: Lease,
    journal: FileJournal,
    audit: FileAuditLog,
    interrupted: Callable[[], bool],
) -> Sequence[Outcome]:
    """Brokers are asked only where something may run."""
    from topicops.flow.verifying import record_baseline

    to_run = _to_run(plan, actions)
    if not to_run:
        return ()
    with _admin(identities) as admin:
        require_same_cluster(admin.cluster_id(), live)
        audit.check()
        _expect_deletes(run, live, to_run)
        record_baseline(run, live, [gated.change.topic for gated in to_run], kind=kind_of(actions))
        seams = PORT_WRAPPERS.get()
        before = reader.controller_epoch()
        with registered(open_journals_folder(run), journal.path, audit.origin):
            outcomes = apply_step(
                plan,
                ApplyPorts(
                    reader=seams.reader(reader),
                    admin=seams.admin(admin),
                    lease=lease,
                    journal=seams.journal(journal),
                    audit=seams.audit(audit),
                    questions=_questions(run, environment),
                ),
                actions=actions,
                environment=environment.spec,
                clock=Clock(),
                progress=lambda outcome: run.progress(outcome_line(outcome)),
                interrupted=interrupted,
            )
        note(run, _controller_note(before, reader))
        if any(outcome.sent for outcome in outcomes):
            _tell_audit_end(run, audit)
        return outcomes


def _controller_note(before: int | None, reader: LiveReader) -> list[str]:
    """That another controller took over meanwhile, which explains waits and repeated requests."""
    try:
        after = reader.controller_epoch()
    except ClusterError:
        return []
    return [] if after == before else [f"the controller changed meanwhile: epoch {before}, now {after} (TOP508)"]


def _tell_audit_end(run: Run, audit: FileAuditLog) -> None:
    """Whoever keeps this line elsewhere, as a task's log does, can tell later whether the log was rewritten."""
    try:
        run.progress(f"The audit log of {run.environment} ends with line {audit.check()}")
    except ArtifactError as error:
        run.progress(str(error))


def _earlier_trouble(run: Run, plan: Plan, actions: Collection[Action]) -> str | None:
    """Why deletes of their own task may not run: another kind of this run did not run, or did not succeed."""
    if "delete" not in actions:
        return None
    rule = "deletes run only when all before succeeded"
    for action in (action for action in ACTIONS if action not in actions):
        if run.store.has(outcomes_file(action)):
            failed = [outcome for outcome in read_outcomes(run, [action]) if outcome.status not in IN_PLACE]
            if failed:
                return f"{rule}; {action} of {failed[0].topic} ended {failed[0].status}"
        elif any(gated.change.action == action for gated in plan.with_gate(GateWord.RUN)):
            return f"{rule}; {action} was to run and left no outcome: run it first, or plan again"
    return None


def _not_sent(gated: GatedChange, reason: str) -> Outcome:
    change = gated.change
    return Outcome(
        topic=change.topic,
        action=change.action,
        digest=gated.digest,
        status=OutcomeStatus.NOT_SENT,
        message=reason,
    )


def _expect_deletes(run: Run, live: ClusterSnapshot, to_run: Sequence[GatedChange]) -> None:
    """Our own deletes are no reason to call the world shrunken, even when this process dies right after one."""
    going = {gated.change.topic for gated in to_run if gated.change.action == "delete"} & live.topics.keys()
    if going:
        TopicCount(run.home, live.cluster_id).write(len(live.topics) - len(going))


def _close_sent(run: Run, actions: Collection[Action], outcomes: Sequence[Outcome], live: ClusterSnapshot) -> Facts:
    try:
        facts = _close(run, actions, outcomes)
        _count_deletes(run, live, outcomes)
    except ArtifactError as error:
        if any(outcome.sent for outcome in outcomes):
            raise UnrecordedError(f"{error}; requests were sent before: apply the same plan again") from error
        raise
    return facts


def _count_deletes(run: Run, live: ClusterSnapshot, outcomes: Sequence[Outcome]) -> None:
    """Topics that were to go and stay count again; one whose delete may yet take effect does not."""
    deletes = [outcome for outcome in outcomes if outcome.action == "delete"]
    gone = {o.topic for o in deletes if o.status in (*IN_PLACE, OutcomeStatus.UNKNOWN)} & live.topics.keys()
    if deletes:
        TopicCount(run.home, live.cluster_id).write(len(live.topics) - len(gone))


def _close(run: Run, actions: Collection[Action], outcomes: Sequence[Outcome]) -> Facts:
    for action in actions:
        run.store.write_value(outcomes_file(action), tuple(o for o in outcomes if o.action == action))
    return _counts(run, outcomes)


def _counts(run: Run, outcomes: Sequence[Outcome]) -> Facts:
    counts: Facts = {status.value: sum(o.status is status for o in outcomes) for status in OutcomeStatus}
    return {"path": str(run.store.folder), **counts}
