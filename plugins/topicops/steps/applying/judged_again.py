"""Judge the changes of a plan again, by the present files, policy and cluster.

A plan gives the changes, where their replicas go, and what was seen. Everything else in it may be old or edited, so
risk, limits and the gate's word come from a plan that was made just now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import assert_never

from topicops.model.cluster.broker_defaults import default_text
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot
from topicops.model.codes import Code
from topicops.model.plans.changes import (
    Action,
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    GateWord,
    ReassignTopic,
    digest_of,
)
from topicops.model.plans.plan import Blocked, ChangeSet, GatedChange, Plan
from topicops.model.printable import plural
from topicops.model.runs.results import NO_FILE, NO_TOMBSTONE, OTHER_VALUES, PAUSED_NOW, Outcome, OutcomeStatus
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.environment import Environment
from topicops.steps.applying.precondition import Match, compare
from topicops.steps.before_deletes import failed_by_broker, named
from topicops.steps.planning.gate import gate, strictest_of, with_approval
from topicops.steps.planning.moves import JudgedMove

Verdict = tuple[OutcomeStatus, str]
"""Result of a change that was not sent, and the reason."""
IN_EFFECT: Verdict = (OutcomeStatus.ALREADY_SO, "")
ACCEPTED: Verdict = (OutcomeStatus.MOVING, "a run has accepted it already, and later steps carry it on")
NOBODY: Mapping[str, str] = MappingProxyType({})
"""Approved anything."""
NO_MOVES: Mapping[str, JudgedMove] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A plan after its changes were judged again."""

    plan: Plan
    """Plan with the present risk and state of the cluster, and the stricter word of both gates on each change."""
    decided: Mapping[str, Verdict]
    """The changes that were to run and are not sent, by digest."""
    approved: Mapping[str, str] = field(default_factory=dict)
    """Approver of each change whose approval counts, by digest."""

    def outcomes(self, actions: Collection[Action]) -> tuple[Outcome, ...]:
        """Return outcomes of the changes of these actions that are not sent. No delete runs beside a refused change."""
        entries = [gated for gated in self.plan.changes if gated.change.action in actions]
        found = [Outcome.of(g, *self.decided[g.digest]) for g in entries if g.digest in self.decided]
        refused = [o for o in found if o.status is OutcomeStatus.REFUSED and o.action != "delete"]
        if not refused:
            return tuple(found)
        rule = f"deletes run only when all before succeeded; {refused[0].action} of {refused[0].topic} ended refused"
        left = (g for g in entries if g.gate is GateWord.RUN and g.digest not in self.decided)
        deletes = [gated for gated in left if gated.change.action == "delete"]
        return (*found, *(Outcome.of(gated, OutcomeStatus.NOT_SENT, rule) for gated in deletes))

    def without(self, outcomes: Collection[Outcome]) -> Plan:
        """Return the plan to send: what has an outcome already is skipped."""
        out = {outcome.digest for outcome in outcomes} | self.decided.keys()
        entries = (replace(g, gate=GateWord.SKIPPED) if g.digest in out else g for g in self.plan.changes)
        return replace(self.plan, changes=tuple(entries))


def judge_again(
    plan: Plan,
    anew: ChangeSet,
    *,
    desired: Desired,
    live: ClusterSnapshot,
    environment: Environment,
    moves: Mapping[str, JudgedMove] = NO_MOVES,
    approved: Mapping[str, str] = NOBODY,
    waits: Sequence[str] = (),
) -> Judged:
    """Keep changes that a present plan has too; decide all others without sending them.

    Args:
        anew: The changes that files, policy and cluster ask for now, at least of the plan's topics.
        moves: The plan's reassignments, judged by what plans them, by digest.
        approved: Who approved the changes that a person has approved, by digest.
        waits: Why nothing may be sent to this environment yet.
    """
    live = replace(live, draining=frozenset(environment.spec.cluster.draining))
    counted, decided = _held_against(anew, plan, desired, live, moves)
    anew = replace(anew, changes=counted, move_obstacles={m.now.topic: m.obstacles for m in moves.values() if m.now})
    entries = {
        digest: entry
        for digest, entry in _gated_again(plan, anew, environment, approved, waits).items()
        if digest not in decided
    }
    decided |= {
        d: (OutcomeStatus.REFUSED, f"{'; '.join(entry.reasons)}; plan again")
        for d, entry in entries.items()
        if entry.gate is not GateWord.RUN
    }
    planned = {gated.digest: with_approval(gated, approved) for gated in plan.changes}
    final = tuple(entries.get(digest, entry) for digest, entry in planned.items())
    changes = tuple(entry.change for entry in final)
    return Judged(
        plan=Plan(change_set=replace(plan.change_set, cluster=anew.cluster, changes=changes), changes=final),
        decided={digest: verdict for digest, verdict in decided.items() if planned[digest].gate is GateWord.RUN},
        approved=approved,
    )


def _held_against(
    anew: ChangeSet, plan: Plan, desired: Desired, live: ClusterSnapshot, moves: Mapping[str, JudgedMove]
) -> tuple[tuple[Change, ...], dict[str, Verdict]]:
    """Return the changes that the present gate counts, as now wanted, and the unwanted ones, by digest."""
    twins = _twins(anew, moves)
    blocked = {entry.topic: entry for entry in anew.blocked}
    racks, failed = live.racks, failed_by_broker(live.log_directories or {})
    unfit = {**live.closed, **{b: f"whose log directory {named(paths)} has failed" for b, paths in failed.items()}}
    counted: list[Change] = []
    decided: dict[str, Verdict] = {}
    for gated in plan.changes:
        change, twin, move = gated.change, twins.get(gated.digest), moves.get(gated.digest)
        if move and move.is_accepted:
            decided[gated.digest] = ACCEPTED
        elif twin is None:
            decided[gated.digest] = _not_wanted(change, live, desired, blocked.get(change.topic))
            if decided[gated.digest] == IN_EFFECT and isinstance(change, CreateTopic | ExpandTopic):
                counted.append(change)  # another task of this run may have sent it: the run's limit goes on
        elif problem := next(
            chain(_unfit_problems(change, unfit), move.problems if move else _problems(change, twin, desired, racks)),
            None,
        ):
            decided[gated.digest] = (OutcomeStatus.REFUSED, f"{problem} ({Code.STALE_PLAN}); plan again")
        else:
            counted.append(_as_shown(twin, change))
    return tuple(counted), decided


def with_risk_of_now(plan: Plan, anew: ChangeSet, moves: Mapping[str, JudgedMove] = NO_MOVES) -> list[GatedChange]:
    """Return the plan's changes, each as a plan made now has it. Changes that such a plan lacks stay as they are."""
    twins = _twins(anew, moves)
    return [
        replace(gated, change=_as_shown(twins.get(gated.digest, gated.change), gated.change)) for gated in plan.changes
    ]


def _twins(anew: ChangeSet, moves: Mapping[str, JudgedMove]) -> Mapping[str, Change]:
    """Return the change of now for each change of the plan that is still asked for, by digest.

    A reassignment has one only if what plans moves judged it: nothing else here looks at its rows.
    """
    others = (change for change in anew.changes if not isinstance(change, ReassignTopic))
    found: dict[str, Change] = {digest_of(change, anew.target): change for change in others}
    return found | {digest: move.now for digest, move in moves.items() if move.now}


def _gated_again(
    plan: Plan, anew: ChangeSet, environment: Environment, approved: Collection[str], waits: Sequence[str]
) -> Mapping[str, GatedChange]:
    """Gate the still wanted changes now, by digest; the plan's own word counts if stricter."""
    again = gate(anew, environment, approved=approved, waits=waits)
    digests = {entry.digest for entry in again.changes}
    before = replace(plan, changes=tuple(entry for entry in plan.changes if entry.digest in digests))
    return {entry.digest: entry for entry in strictest_of(before, again, approved=approved).changes}


def _not_wanted(change: Change, live: ClusterSnapshot, desired: Desired, obstacle: Blocked | None) -> Verdict:
    """Say why no present plan has this change: it is done, the topic changed, it is blocked, or no file has it."""
    comparison = compare(change, live.traces(change.topic))
    match comparison.match:
        case Match.AFTER:
            return IN_EFFECT
        case Match.CHANGED:
            return OutcomeStatus.REFUSED, comparison.refusal
        case Match.BEFORE:
            return OutcomeStatus.REFUSED, _obstacle(obstacle) if obstacle else _why_unasked(change, desired)
    assert_never(comparison.match)


def _obstacle(blocked: Blocked) -> str:
    reasons = "; ".join(f"{code}: {reason}" for code, reason in zip(blocked.codes, blocked.reasons, strict=True))
    return f"{reasons}; {blocked.way_out}"


def _why_unasked(change: Change, desired: Desired) -> str:
    topic = desired.topics.get(change.topic)
    if topic is None:
        return f"{NO_FILE} {desired.environment} asks for it ({Code.STALE_PLAN}); plan again"
    if topic.lifecycle is Lifecycle.PAUSED:
        return f"{PAUSED_NOW} ({Code.STALE_PLAN}), {topic.location}: {topic.reason}; plan again after the pause"
    if isinstance(change, DeleteTopic):
        return f"{NO_TOMBSTONE}: no file asks for the delete any more ({Code.STALE_PLAN})"
    return f"{OTHER_VALUES} ({Code.STALE_PLAN}); plan again"


def _problems(planned: Change, twin: Change, desired: Desired, racks: Mapping[int, str | None]) -> Iterator[str]:
    """Yield what no digest covers: the rows of new partitions, and the brokers' defaults behind an override."""
    topic = desired.topics.get(planned.topic)
    match planned, twin:
        case (CreateTopic() | ExpandTopic(), CreateTopic() | ExpandTopic()) if not twin.assignment:
            if planned.assignment:
                yield "the plan places replicas, and in this cluster the brokers place them (cluster.kind: managed)"
        case CreateTopic(), CreateTopic():
            yield from _row_problems(planned, range(planned.partitions), planned.replication_factor)
            yield from placement_problems(planned.assignment, twin.assignment, topic, racks)
        case ExpandTopic(), ExpandTopic():
            new = range(planned.partitions_before, planned.partitions)
            yield from _row_problems(planned, new, len(twin.assignment_before.get(0, ())))
            yield from placement_problems(planned.assignment, twin.assignment, topic, racks)
        case ConfigureTopic(), ConfigureTopic():
            yield from _default_problems(planned, twin)


def _unfit_problems(planned: Change, unfit: Mapping[int, str]) -> Iterator[str]:
    """Yield each planned broker that a present plan gives no replica, with the reason."""
    if isinstance(planned, CreateTopic | ExpandTopic | ReassignTopic):
        before = planned.assignment_before if isinstance(planned, ReassignTopic) else {}
        new = {broker for p, row in planned.assignment.items() for broker in row if broker not in before.get(p, ())}
        for broker in sorted(new & unfit.keys()):
            yield f"the plan places replicas on broker {broker}, {unfit[broker]}"


def _row_problems(change: CreateTopic | ExpandTopic, partitions: range, replicas: int) -> Iterator[str]:
    rows = change.assignment
    if sorted(rows) != list(partitions):
        yield f"the plan places {plural(len(rows), 'partition')}, {len(partitions)} are new"
    for partition, row in rows.items():
        yield from wrong_row(partition, row, replicas)


def wrong_row(partition: int, row: Sequence[int], replicas: int) -> Iterator[str]:
    if len(row) != replicas or len(set(row)) < len(row):
        yield f"the plan's replicas of partition {partition}, {list(row)}, are not {plural(replicas, 'broker')}"


def placement_problems(
    planned: Assignment, wanted: Assignment, topic: DesiredTopic | None, racks: Mapping[int, str | None]
) -> Iterator[str]:
    """Yield a reason if the file gives other rows, or if a partition's replicas are on fewer racks than possible.

    Args:
        wanted: The rows that a plan of now gives.
    """
    if topic is None:
        return
    for partition, row in planned.items():
        other = wanted[partition]
        if topic.assignment is not None and tuple(row) != tuple(other):
            yield f"the plan's replicas of partition {partition}, {list(row)}, are not those of its file, {list(other)}"
        if topic.rack_aware and _racks(row, racks) < _racks(other, racks):
            yield f"the plan's replicas of partition {partition}, {list(row)}, are on fewer racks than they can be"


def _racks(row: Sequence[int], racks: Mapping[int, str | None]) -> int:
    """Count the racks of the replicas. A broker that is not live counts: another rule refuses it."""
    return len({racks.get(broker) or broker for broker in row})


def _default_problems(planned: ConfigureTopic, now: ConfigureTopic) -> Iterator[str]:
    """Yield each default of the brokers that has changed: the risk was judged by them."""
    for name in (*planned.broker_defaults, *planned.differing_defaults):
        was, found = planned.default(name), now.default(name)
        if was != found:
            texts = default_text(was), default_text(found)
            yield f"the brokers' default of {name} was {texts[0]} when the plan was made, and is {texts[1]} now"


def _as_shown(twin: Change, planned: Change) -> Change:
    """Return the change of now with the plan's own placement and defaults, because these were shown and approved."""
    if isinstance(twin, CreateTopic | ExpandTopic) and isinstance(planned, CreateTopic | ExpandTopic):
        return replace(twin, assignment=planned.assignment)
    if isinstance(twin, ConfigureTopic) and isinstance(planned, ConfigureTopic):
        return replace(twin, broker_defaults=planned.broker_defaults, differing_defaults=planned.differing_defaults)
    return twin
