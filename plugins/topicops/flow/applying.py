"""Send what may run: gate again on a fresh snapshot, take the lease, keep a journal, record one outcome a change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from topicops.edges.connections.lookup import Role, principal_of
from topicops.edges.home.audit_log import AuditOrigin, FileAuditLog, StoredAuditLog, audit_log
from topicops.edges.home.journal import FileJournal, has_later_try, open_journals_folder, registered
from topicops.flow.judging import QUESTION_TIMEOUT_S, judge_now, recover_earlier_runs, with_needed_answers
from topicops.flow.runs.access import PORT_WRAPPERS, Access
from topicops.flow.runs.files import read_files, read_specs
from topicops.flow.runs.guards import require_files, require_planned_target, require_same_cluster, require_whole
from topicops.flow.runs.memory import Unverified
from topicops.flow.runs.outcomes import (
    count_applied_deletes,
    count_planned_deletes,
    kind_of,
    noted_once_sent,
    outcome_line,
    unrecorded_once_sent,
    write_outcomes,
)
from topicops.flow.runs.run import EnvironmentRun, Notes, Run, audit_folder, safety_notes
from topicops.flow.verifying import record_baseline
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.codes import Code
from topicops.model.errors import ArtifactError, ClusterError, UsageError
from topicops.model.plans.changes import ACTIONS, Action, GateWord
from topicops.model.plans.plan import Approval, GatedChange, Plan, may_run
from topicops.model.ports import ApplyPorts, LiveReader, ServerTime
from topicops.model.runs.results import NO_FAILURE, Outcome, OutcomeStatus
from topicops.model.specs.desired import Desired
from topicops.steps.applying.apply import apply as apply_step
from topicops.steps.clocks import difference_text
from topicops.steps.planning.only import needs_again
from topicops.steps.planning.right_cluster import require_cluster_id
from topicops.steps.reporting.run_report import reasons_of
from topicops.steps.verifying.observation import FindingKey

if TYPE_CHECKING:
    from topicops.model.ports import Lease


def approved_digests(plan: Plan, key: str) -> frozenset[str]:
    """Return the digests that ``--approve KEY`` covers. Raises ``UsageError`` for another plan's, or a short one."""
    if problem := plan.key_problem(key):
        raise UsageError(f"--approve {problem}; nothing was sent")
    return frozenset(gated.digest for gated in plan.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What came of the changes."""

    outcomes: tuple[Outcome, ...] = ()
    known_findings: frozenset[FindingKey] = frozenset()
    """Problems of the topics before anything was sent."""


def carry_out(
    run: EnvironmentRun,
    plan: Plan,
    *,
    since: str | None,
    notes: Notes,
    actions: Collection[Action] = ACTIONS,
    approvals: Sequence[Approval] = (),
    earlier: Mapping[Action, Sequence[Outcome]] = MappingProxyType({}),
    lock_timeout_s: float = 0.0,
    attempt: int = 1,
    interrupted: Callable[[], bool] = lambda: False,
    started_by: str = "",
) -> Applied:
    """Send what may run, and write ``outcomes-<action>.json`` for each of ``actions``.

    Args:
        since: The commit of which this run has read the files before; None: it has not, and a saved plan may be of a
            branch.
        earlier: Outcomes of the actions that other tasks of this run have carried out.
        approvals: Let the held changes run that they name, as far as the policy counts them.
        attempt: Which try of a task this is; each has a journal of its own.
        started_by: Who or what started the run, for the audit log; empty: not known.

    Raises:
        WrongTargetError: The cluster is not the one the plan is for, or has shrunk; nothing was sent.
        LeaseHeldError: Another run is changing the cluster; nothing was sent.
        MovedFilesError: The files are not of the pinned commit, or git's history was rewritten; nothing was sent.
        UnrecordedError: Requests were sent, and their outcomes could not be written down. No other error leaves this
            function after the first request: it is in the outcomes, or a note of the run.
    """
    wanted = [g for g in plan.changes if g.change.action in actions and may_run(g, approvals)]
    if not wanted:
        write_outcomes(run, actions, ())
        return Applied()
    read = partial(read_specs, run.files, needs=needs_again(plan))
    is_any_commit = run.files.pinned is None and since is None
    validated = read() if is_any_commit else read_files(run.files, read, since=since)[0]
    environment, desired = validated.require()
    require_files(run.topics, environment, desired)
    kind = kind_of(actions)
    access = replace(run.access(environment), interrupted=interrupted)
    home = access.home
    _require_connections(access, plan, actions, approvals)
    journal = FileJournal(run.store.path(f"journal-{kind}-{attempt}.jsonl"))
    outcomes: list[Outcome] = []
    with noted_once_sent(environment.name, outcomes, notes), access.reader() as reader:
        # Before the lease, because taking a lease writes: nothing is written to another cluster.
        cluster_id = reader.cluster_id()
        require_cluster_id(cluster_id, environment)
        require_planned_target(plan, cluster_id, reader.chroot)
        # And before others wait for this run: without these addresses each request, and verify, ends with a time-out.
        access.require_reachable_brokers({"reader", *(_role_of(gated.change.action) for gated in wanted)})
        lease_to_take = access.lease(cluster_id, operation=f"apply {kind}", lock_timeout_s=lock_timeout_s)
        with PORT_WRAPPERS.get().lease(lease_to_take) as lease:
            reader.catch_up_with(lease)
            # Behind the lease: the wait may have been long, and what the holder before created is complete by now.
            live = reader.snapshot(states=True)
            require_whole(home, environment, live)
            live = with_needed_answers(access, live, plan, desired)
            server_time = lease.server_time() or reader.server_time()
            judged = judge_now(
                run, access, plan, desired=desired, live=live, approvals=approvals, notes=notes, server_time=server_time
            )
            notes.add([*safety_notes(environment), *filter(None, [difference_text(server_time, run.clock)])])
            notes.add(recover_earlier_runs(run, access, reader))
            unsent = judged.outcomes(actions)
            final = judged.without(unsent)
            if unsent:  # kept in the journal: its file shows an earlier try that a later one has begun
                journal.record(unsent)
            for alike in reasons_of(unsent):
                first, *more = map(outcome_line, alike.outcomes)
                run.progress(f"{first}, and {len(more)} more for the same reason" if more else first)
            if reason := _reason_to_wait(final, actions, earlier):
                waiting = [Outcome.of(gated, OutcomeStatus.NOT_SENT, reason) for gated in _to_run(final, actions)]
                return Applied(outcomes=write_outcomes(run, actions, [*unsent, *waiting]))
            comments = _comments(approvals, judged.approved)
            sending = _Sending(
                run,
                access,
                final,
                plan.fingerprint,
                tuple(actions),
                judged.approved,
                comments,
                interrupted,
                server_time,
                started_by,
                notes,
                desired,
            )
            sending.send(live, reader, lease, journal, into=outcomes)
    if has_later_try(journal.path):  # this try slept through the end of its session, and Airflow started another
        run.progress("A later try of this task has begun: its outcomes count, and not these.")
        return Applied(outcomes=(*unsent, *outcomes))
    ended = [*unsent, *outcomes]
    with unrecorded_once_sent(ended):
        write_outcomes(run, actions, ended)
        count_applied_deletes(home, live, ended)
    return Applied(outcomes=tuple(ended), known_findings=frozenset(sending.known_findings))


def _require_connections(
    access: Access, plan: Plan, actions: Collection[Action], approvals: Sequence[Approval]
) -> None:
    """Raise ``UsageError`` for a connection that this run will need, in this task or a later one, and cannot use."""
    still_to_come = ACTIONS[min(map(ACTIONS.index, actions)) :]
    to_run = [gated.change.action for gated in plan.changes if may_run(gated, approvals)]
    needed = {_role_of(action) for action in to_run if action in still_to_come}
    for role in ("reader", *sorted(needed)):
        access.kafka(role)


@dataclass(slots=True)
class _Sending:
    """What one apply sends, and in whose name."""

    run: Run
    access: Access
    plan: Plan
    fingerprint: str
    """Fingerprint of the plan that was approved."""
    actions: tuple[Action, ...]
    approvers: Mapping[str, str]
    """Approver of each change whose approval counts, by digest."""
    comments: Mapping[str, str]
    """Comments of these approvers, by digest."""
    interrupted: Callable[[], bool]
    server_time: ServerTime | None
    started_by: str
    notes: Notes
    desired: Desired
    known_findings: Collection[FindingKey] = ()
    """Problems of the topics before anything was sent."""

    def send(
        self, live: ClusterSnapshot, reader: LiveReader, lease: Lease, journal: FileJournal, *, into: list[Outcome]
    ) -> None:
        """Add one outcome for each change that may run to ``into``. Brokers are asked only if there is one.

        Args:
            into: Has the outcomes as soon as nothing more is sent, whatever fails after that.
        """
        to_run = _to_run(self.plan, self.actions)
        if not to_run:
            return
        with self.access.admin({_role_of(gated.change.action) for gated in to_run}) as admin:
            require_same_cluster(admin.cluster_id(), live)
            audit = self._audit_log(to_run)
            audit_lines = audit.check().count
            home, name = self.access.home, self.access.environment.name
            count_planned_deletes(home, live, to_run)
            topics = [gated.change.topic for gated in to_run]
            self.known_findings = record_baseline(self.run, self.access, live, topics, kind=kind_of(self.actions))
            unverified = Unverified(home, name, self.run.name)
            unverified.note(topics)
            wrappers, epoch_before = PORT_WRAPPERS.get(), reader.controller_epoch()
            with (
                registered(open_journals_folder(home, name), journal.path, audit.origin, audit_lines=audit_lines),
                self.access.questions(timeout_s=QUESTION_TIMEOUT_S) as questions,
            ):
                into += self._apply(
                    ApplyPorts(
                        reader=wrappers.reader(reader),
                        admin=wrappers.admin(admin),
                        lease=lease,
                        journal=wrappers.journal(journal),
                        audit=wrappers.audit(audit),
                        questions=questions,
                        mover=self.access.moves.mover(
                            self.access,
                            clock=self.run.clock,
                            reader=reader,
                            lease=lease,
                            desired=self.desired,
                            approvers=self.approvers,
                            origin=audit.origin,
                        ),
                    )
                )
            unverified.note_not_sent({outcome.topic for outcome in into if not outcome.sent})
            self.notes.add(_controller_note(epoch_before, reader))
            if any(outcome.sent for outcome in into):
                _show_audit_end(audit, self.run.progress)

    def _apply(self, ports: ApplyPorts) -> Sequence[Outcome]:
        return apply_step(
            self.plan,
            ports,
            actions=self.actions,
            environment=self.access.environment.spec,
            clock=self.run.clock,
            server_time=self.server_time,
            progress=lambda outcomes: self.run.progress("\n".join(map(outcome_line, outcomes))),
            # The last change is in effect, and no outcome says that something about it could not be written.
            unwritten=lambda reason: self.notes.add([f"{reason}; the next run adds what the audit log lacks"]),
            interrupted=self.interrupted,
        )

    def _audit_log(self, to_run: Sequence[GatedChange]) -> FileAuditLog | StoredAuditLog:
        """Return the environment's audit log, with the principals of the roles that are used and of no other."""
        roles = {_role_of(gated.change.action) for gated in to_run}
        principals = {a: principal_of(self.access.kafka(_role_of(a))) for a in ACTIONS if _role_of(a) in roles}
        origin = AuditOrigin(
            environment=self.access.environment.name,
            run=self.run.name,
            plan=self.fingerprint,
            commit=self.plan.change_set.source.commit,
            approvers=self.approvers,
            comments=self.comments,
            principals=principals,
            started_by=self.started_by,
        )
        return audit_log(audit_folder(self.access.home), origin)


def _comments(approvals: Sequence[Approval], approvers: Mapping[str, str]) -> Mapping[str, str]:
    """Return comments of the approvals that count, by digest of the change."""
    return {
        digest: approval.comment
        for approval in approvals
        for digest in approval.digests
        if approval.comment and approvers.get(digest) == approval.signature
    }


def _role_of(action: Action) -> Role:
    others: Mapping[Action, Role] = {"reassign": "mover", "delete": "deleter"}
    return others.get(action, "applier")


def _to_run(plan: Plan, actions: Collection[Action]) -> list[GatedChange]:
    return [gated for gated in plan.with_gate(GateWord.RUN) if gated.change.action in actions]


def _controller_note(before: int | None, reader: LiveReader) -> list[str]:
    """Note if another controller took over meanwhile, because that explains waits and repeated requests."""
    try:
        after = reader.controller_epoch()
    except ClusterError:
        return []
    if after == before:
        return []
    return [f"the controller changed meanwhile: epoch {before}, now {after} ({Code.CONTROLLER_MOVED})"]


def _show_audit_end(audit: FileAuditLog | StoredAuditLog, progress: Callable[[str], None]) -> None:
    """Print the last line's hash: kept elsewhere, as in a task's log, it shows later whether the log was rewritten."""
    try:
        progress(f"The audit log of {audit.origin.environment} ends with line {audit.check()}")
    except ArtifactError as error:
        progress(str(error))


def _reason_to_wait(plan: Plan, actions: Collection[Action], earlier: Mapping[Action, Sequence[Outcome]]) -> str | None:
    """Return why deletes of their own task may not run: another kind of this run did not run, or did not succeed."""
    if "delete" not in actions:
        return None
    rule = "deletes run only when all before succeeded"
    for action in (action for action in ACTIONS if action not in actions):
        if action in earlier:
            failed = [outcome for outcome in earlier[action] if outcome.status not in NO_FAILURE]
            if failed:
                return f"{rule}; {action} of {failed[0].topic} ended {failed[0].status}"
        elif any(gated.change.action == action for gated in plan.with_gate(GateWord.RUN)):
            return f"{rule}; {action} was to run and left no outcome: run it first, or plan again"
    return None
