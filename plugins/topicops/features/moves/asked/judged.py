"""Moves of an earlier plan, judged again: whether files, brokers or a command of then still ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from topicops.features.moves.asked.changes import copied_bytes, move_obstacles, rated
from topicops.features.moves.asked.draining import as_it_is
from topicops.features.moves.asked.wanted import move_findings, move_reason, obstacle
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.codes import Code
from topicops.model.plans.changes import MoveReason, ReassignTopic, digest_of
from topicops.model.plans.plan import ChangeSet, Plan
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.environment import Environment
from topicops.model.specs.spellings import EPOCH
from topicops.steps.applying.judged_again import placement_problems, wrong_row
from topicops.steps.applying.precondition import Match, compare
from topicops.steps.planning.blocking import Situation, unstable
from topicops.steps.planning.moves import JudgedMove


def judged_moves(
    plan: Plan, anew: ChangeSet, desired: Desired, live: ClusterSnapshot, environment: Environment
) -> Mapping[str, JudgedMove]:
    """Judge each reassignment of the plan, by digest.

    A plan of now may lead a topic's replicas elsewhere, and rows are in the digest: those of the plan count, because
    they were shown and approved. A move that a command asked for is in no plan of now, so that it is judged by itself.
    """
    live = replace(live, draining=frozenset(environment.spec.cluster.draining))
    asked = {change.topic: change for change in anew.changes if isinstance(change, ReassignTopic)}
    found: dict[str, JudgedMove] = {}
    for gated in plan.changes:
        change = gated.change
        if not isinstance(change, ReassignTopic):
            continue
        twin, judged = asked.get(change.topic), JudgedMove()
        if twin is None:
            judged = _of_command(change, desired, live, environment)
        elif digest_of(replace(twin, assignment=change.assignment), anew.target) == gated.digest:
            problems = tuple(_row_problems(change, twin, desired, live))
            judged = JudgedMove(now=_as_shown(twin, change, live), problems=problems)
        found[gated.digest] = replace(judged, is_accepted=_is_accepted(change, live))
    obstacles = move_obstacles((judged.now for judged in found.values() if judged.now), live, environment)
    for digest, each in found.items():
        if each.now:
            found[digest] = replace(each, obstacles=obstacles.get(each.now.topic, ()))
    return found


def _as_shown(twin: ReassignTopic, planned: ReassignTopic, live: ClusterSnapshot) -> ReassignTopic:
    """Return the change of now with the plan's own rows, and the higher risk."""
    copied = copied_bytes(planned.topic, planned.assignment_before, planned.assignment, live)
    shown = rated(replace(twin, assignment=planned.assignment, copied_bytes=copied))
    return replace(shown, risk=max(shown.risk, twin.risk, key=lambda risk: risk.rank))


def _of_command(change: ReassignTopic, desired: Desired, live: ClusterSnapshot, environment: Environment) -> JudgedMove:
    """Judge a move that no plan of now has: a command asked for it, and its topic is as it was, or nothing does."""
    if not is_of_command(change, environment) or compare(change, live.traces(change.topic)).match is not Match.BEFORE:
        return JudgedMove()
    codes = () if change.topic in desired.topics else (Code.UNMANAGED_MOVE,)
    problems = command_problems(change, desired, live, environment) if desired.has_files else ()
    now = _as_shown(rated(replace(change, codes=codes)), change, live)
    return JudgedMove(now=now, problems=tuple(problems))


def _row_problems(change: ReassignTopic, twin: ReassignTopic, desired: Desired, live: ClusterSnapshot) -> Iterator[str]:
    racks = live.racks
    for partition, row in change.assignment.items():
        yield from wrong_row(partition, row, len(twin.assignment[partition]))
        if dead := set(row) - racks.keys():
            yield f"the plan places replicas of partition {partition} on {brokers_text(dead)}, not live now"
    yield from placement_problems(change.assignment, twin.assignment, desired.topics.get(change.topic), racks)


def _is_accepted(change: ReassignTopic, live: ClusterSnapshot) -> bool:
    """Return whether a run has accepted these rows already, and some of them have not ended."""
    accepted = live.accepted_moves.get(change.topic)
    if accepted is None or change.topic not in live.topics:
        return False
    rows = live.topics[change.topic].moved(accepted).target_assignment
    return not accepted.keys().isdisjoint(change.assignment) and all(
        rows.get(p) == row for p, row in change.assignment.items()
    )


# ---- moves that no file asks for ----


def is_of_command(change: ReassignTopic, environment: Environment) -> bool:
    """Return whether no file asks for such a move: for racks or balance, or off a broker outside the drain's list."""
    draining = frozenset(environment.spec.cluster.draining)
    return change.why in (MoveReason.RACKS, MoveReason.BALANCE) or (
        change.why is MoveReason.DRAIN and draining.isdisjoint(change.removed.keys())
    )


def command_problems(
    change: ReassignTopic, desired: Desired, live: ClusterSnapshot, environment: Environment
) -> Iterator[str]:
    """Yield why a move that a command asks for must not run: what blocks a move, and what its file says.

    Args:
        live: With ``draining``, the brokers' answers, and the states of the topic.
    """
    topic, described = live.topics.get(change.topic), desired.topics.get(change.topic)
    if topic is None:
        return
    if described is None and change.why is MoveReason.DRAIN and environment.spec.policy.drain_unmanaged == "refuse":
        place = environment.place_of("policy.drainUnmanaged")
        yield f"no file describes the topic, and policy.drainUnmanaged refuses to move it ({place})"
    elif described is not None:
        yield from _contradictions(change, described)
    situation = Situation(
        desired=replace(described or as_it_is(topic, environment), assignment=change.assignment),
        topic=topic,
        live=live,
        environment=environment,
        now=EPOCH,
        names_by_folded={},
        is_unmanaged=described is None,
    )
    if found := obstacle(situation):
        yield found.reason or found.way_out
    else:
        moving = move_findings(situation, None) if move_reason(situation) else ()
        yield from (finding.reason for finding in (unstable(situation), *moving) if finding)
    racks = live.racks
    for partition, row in change.assignment.items():
        before = change.assignment_before[partition]
        if len({racks.get(b) or b for b in row}) < len({racks[b] or b for b in before if b in racks}):
            yield f"the replicas of partition {partition}, {list(row)}, are on fewer racks than {list(before)}"


def _contradictions(change: ReassignTopic, desired: DesiredTopic) -> Iterator[str]:
    if desired.lifecycle is not Lifecycle.PRESENT:
        yield f"its file says {desired.lifecycle} ({desired.location})"
    elif desired.assignment is not None:
        yield f"its file gives its replicas by hand ({desired.location_of('assignment')})"
    elif {len(row) for row in change.assignment.values()} != {desired.replication_factor}:
        place = desired.location_of("replicationFactor")
        yield f"its file asks for replication factor {desired.replication_factor} ({place})"
