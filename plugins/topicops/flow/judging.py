"""Before anything is sent: judge the plan again by the present files, policy and cluster.

Also read what became of the requests of runs that ended in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from topicops.edges.home.artifacts import ArtifactStore
from topicops.edges.home.audit_files import read_audit_log
from topicops.edges.home.audit_log import audit_log
from topicops.edges.home.journal import (
    FileJournal,
    JournalEntry,
    OpenJournal,
    abandoned,
    open_intents,
    open_journals_folder,
    read_journal,
    unregister,
)
from topicops.edges.places import Place, place_of_text
from topicops.flow.runs.access import PORT_WRAPPERS, Access, with_broker_answers, with_log_directories
from topicops.flow.runs.files import commit_of_files
from topicops.flow.runs.guards import counted_signatures, known_lost_topics, known_past_deletes
from topicops.flow.runs.memory import waits_for
from topicops.flow.runs.run import EnvironmentRun, Notes, Run, audit_folder
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ArtifactError
from topicops.model.plans.changes import ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic, ReassignTopic
from topicops.model.plans.delta import desired_row, live_row
from topicops.model.plans.plan import Approval, ChangeSet, GatedChange, Plan
from topicops.model.plans.plan_file import plan_from_json
from topicops.model.ports import LiveReader, ServerTime
from topicops.model.runs.results import Mutation
from topicops.model.specs.desired import Desired, Lifecycle
from topicops.model.specs.environment import Risk
from topicops.steps.applying.judged_again import Judged, judge_again, with_risk_of_now
from topicops.steps.applying.read_back import recover_intents
from topicops.steps.clocks import passed_by_both
from topicops.steps.planning.diff import diff
from topicops.steps.planning.plan import plan as plan_step

QUESTION_TIMEOUT_S = 15.0
"""Seconds that brokers may take to answer before something is sent; a plan waits only 2 s."""


def with_needed_answers(access: Access, live: ClusterSnapshot, plan: Plan, desired: Desired) -> ClusterSnapshot:
    """Return the snapshot with what a planned change depends on.

    That is what brokers answer, for its risk and its place, and which topics were deleted, outside git or by a run.
    """
    live = replace(live, accepted_moves=access.known_moves().accepted(live))
    changes = [gated.change for gated in plan.changes]
    with access.questions(timeout_s=QUESTION_TIMEOUT_S) as questions:
        if any(isinstance(change, ConfigureTopic | ExpandTopic | ReassignTopic) for change in changes):
            live = with_broker_answers(replace(live, broker_defaults=None), questions)
        if any(not isinstance(change, ConfigureTopic) for change in changes):
            doomed = {change.topic for change in changes if isinstance(change, DeleteTopic)}
            moved = {change.topic for change in changes if isinstance(change, ReassignTopic)}
            new = {c.topic: c.assignment.keys() for c in changes if isinstance(c, CreateTopic | ExpandTopic)}
            live = with_log_directories(live, doomed | moved | _absent(desired), new, questions)
    created = {change.topic for change in changes if isinstance(change, CreateTopic)}
    if not created:
        return live
    home, environment = access.home, access.environment.name
    lost = known_lost_topics(home, environment, live, desired)
    return replace(live, lost=lost, past_deletes=known_past_deletes(home, environment, created))


def judge_now(
    run: EnvironmentRun,
    access: Access,
    plan: Plan,
    *,
    desired: Desired,
    live: ClusterSnapshot,
    approvals: Sequence[Approval],
    notes: Notes,
    server_time: ServerTime | None = None,
) -> Judged:
    """Return the plan as it may run now, and what may not. Whether an approval counts depends on the risk of now.

    Args:
        notes: Get why an approval does not count.
        live: With partition states, and with what ``with_needed_answers`` gives.
        server_time: Beside the clock of this host: ``notBefore`` must be over, and an approval must last, by both.
    """
    environment = access.environment
    anew = _planned_anew(access, plan, desired, live, passed_by_both(server_time, run.clock))
    judged = access.moves.judged(plan, anew, desired, live, environment)
    changes = with_risk_of_now(plan, anew, judged)
    approved = counted_signatures(environment, approvals, changes, run.clock, server_time)
    for objection in approved.objections:
        run.progress(objection)
    notes.add(approved.objections)
    commit = commit_of_files(run.files) if environment.spec.policy.after else None
    waits = tuple(waits_for(access.home, environment, run.topics, commit))
    return judge_again(
        plan,
        anew,
        desired=desired,
        live=live,
        environment=environment,
        moves=judged,
        approved=approved.signatures,
        waits=waits,
    )


def _planned_anew(access: Access, plan: Plan, desired: Desired, live: ClusterSnapshot, at: datetime) -> ChangeSet:
    """Return what files, policy and cluster ask for now: of the plan's topics, and of all topics that must be absent.

    The limits on deletes count all of these. Whether a topic is in use is asked right before its delete.
    """
    environment, moves = access.environment, access.moves
    topics = {gated.change.topic for gated in plan.changes} | _absent(desired)
    moved = {gated.change.topic for gated in plan.changes if isinstance(gated.change, ReassignTopic)}
    drained = {name: held for name, held in moves.drained(live, environment).items() if name in moved}
    delta = diff(
        (desired_row(desired.topics[name]) for name in topics if name in desired.topics),
        (live_row(live.topics[name]) for name in topics if name in live.topics),
    )
    anew = plan_step(desired, live, delta, environment, now=at, moves=moves, drained=drained)
    if desired.has_files:
        return anew
    # Without files the risk is not known: the worst counts, so each change needs an approval.
    return replace(
        anew, changes=tuple(replace(gated.change, risk=Risk.DESTRUCTIVE, reversible=False) for gated in plan.changes)
    )


def _absent(desired: Desired) -> set[str]:
    return {name for name, topic in desired.topics.items() if topic.lifecycle is Lifecycle.ABSENT}


def recover_earlier_runs(run: Run, access: Access, reader: LiveReader) -> list[str]:
    """Close the intents that earlier runs of the environment left open, under the lease; a sentence for each.

    An intent that cannot be closed gets a sentence too, and stays open: safety does not depend on it.

    Raises ``ClusterError`` where the cluster cannot be read.
    """
    folder = open_journals_folder(access.home, access.environment.name)
    sentences: list[str] = []
    with abandoned(folder) as entries:
        for entry in entries:
            try:
                sentences += _recover(run.name, access, entry, reader)
                unregister(folder, entry)
            except ArtifactError as error:
                sentences.append(f"run {entry.origin.run} ended in the middle; its requests cannot be checked: {error}")
    for sentence in sentences:
        run.progress(f"Earlier: {sentence}")
    return sentences


def _recover(by: str, access: Access, entry: OpenJournal, reader: LiveReader) -> list[str]:
    audit = audit_folder(access.home)
    journal = place_of_text(audit, entry.journal)
    intents = open_intents(read_journal(journal)) if ArtifactStore(journal.parent).has(journal.name) else ()
    accepted = {moves.digest for moves in access.known_moves().topics.values()} if intents else ()
    found = recover_intents(_changes(journal, intents), run=entry.origin.run, by=by, reader=reader, accepted=accepted)
    if not found:
        return []
    wrappers = PORT_WRAPPERS.get()
    ours = [each.mutation for each in found if each.mutation.action != "reassign"]  # the mover has its own lines
    missing = _without_line(audit, entry, ours)
    if missing:
        wrappers.earlier_audit(audit_log(audit, entry.origin)).append(missing)
    wrappers.earlier_journal(FileJournal(journal)).record([each.outcome for each in found])
    return [each.sentence for each in found]


def _changes(journal: Place, intents: Sequence[JournalEntry]) -> list[GatedChange]:
    """Return the intended changes, from the plan beside the journal. Raises ``ArtifactError`` when it is missing."""
    if not intents:
        return []
    path = journal.parent / "plan.json"
    try:
        planned = {gated.digest: gated for gated in plan_from_json(path.read_bytes().decode()).changes}
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path}: cannot be read: {error}; look at the topics it named") from error
    if unknown := [intent.topic for intent in intents if intent.digest not in planned]:
        raise ArtifactError(f"{path}: is not the plan of {journal.name}; look at {', '.join(unknown)}")
    return [planned[intent.digest] for intent in intents]


def _without_line(audit: Place, entry: OpenJournal, mutations: Sequence[Mutation]) -> list[Mutation]:
    """Return those that are not in the audit log: a run may have ended between its two lines."""
    log = read_audit_log(audit, entry.origin.environment, may_begin_with=lambda line: line.n <= entry.audit_lines)
    written = {line.digest for line in log.lines if line.n > entry.audit_lines and line.run == entry.origin.run}
    return [mutation for mutation in mutations if mutation.digest not in written]
