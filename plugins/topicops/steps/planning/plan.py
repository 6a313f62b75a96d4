"""The plan step: decide for each topic that differs whether it is blocked, or which changes it gets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import assert_never

from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, LogDirectories
from topicops.model.codes import Code
from topicops.model.errors import DiffError
from topicops.model.plans.changes import ACTIONS, Action, Change, DeleteTopic, MoveReason, Target, lets_records_go
from topicops.model.plans.delta import Delta, TopicClass, compared_overrides
from topicops.model.plans.plan import Blocked, ChangeSet, ClusterState, Drift, Paused, PlanSource, TopicActivity
from topicops.model.printable import plural
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.environment import Environment
from topicops.steps.planning.blocking import (
    ALTER_RULES,
    CREATE_RULES,
    DELETE_RULES,
    Finding,
    Situation,
    being_deleted,
    expired_pause,
    findings_of,
    names_by_folded,
    raised_min_isr,
    unstable,
)
from topicops.steps.planning.moves import NO_PLANNER, MovePlanner
from topicops.steps.planning.placement.load import NOTHING, live_load, load_table
from topicops.steps.planning.planned_changes import changes_of
from topicops.steps.planning.right_cluster import require_known_draining

NO_ACTIVITY: Mapping[str, TopicActivity] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What happens to one topic: with findings it is blocked as a whole, else all its actions are planned."""

    situation: Situation
    actions: tuple[Action, ...] = ()
    findings: tuple[Finding, ...] = ()


def plan(
    desired: Desired,
    live: ClusterSnapshot,
    delta: Delta,
    environment: Environment,
    *,
    now: datetime,
    activity: Mapping[str, TopicActivity] = NO_ACTIVITY,
    warnings: Sequence[str] = (),
    moves: MovePlanner = NO_PLANNER,
    drained: Mapping[str, int] | None = None,
) -> ChangeSet:
    """Return all changes that apply may send, and all topics that are blocked. Equal inputs give an equal result.

    Args:
        live: With partition states of the topics that ``topics_whose_isr_counts`` names.
        now: UTC; decides pauses, ``notBefore`` and ``restsFor`` and is not part of the result.
        activity: Of the topics that may be deleted.
        drained: What ``moves.drained`` gives; None: not known yet.

    Raises ``DiffError``: ``delta`` is not of these inputs.
    """
    require_known_draining(live, environment)
    live = replace(live, draining=frozenset(environment.spec.cluster.draining))
    drained = moves.drained(live, environment) if drained is None else drained
    situations = situations_of(
        desired, live, delta, environment, now=now, activity=activity, moves=moves, drained=drained
    )
    decisions = [decide(situation) for situation in situations]
    blocked = [decision for decision in decisions if decision.findings]
    load = live_load(live) if decisions else NOTHING
    changes = changes_of([(d.situation, d.actions) for d in decisions if not d.findings], load, moves)
    deleted = sorted(change.topic for change in changes if isinstance(change, DeleteTopic))
    return ChangeSet(
        target=Target(environment=environment.name, cluster_id=live.cluster_id, chroot=live.chroot),
        source=PlanSource(commit=desired.commit, desired_digest=desired.digest, topics=len(desired.topics)),
        cluster=ClusterState(
            live_brokers=len(live.brokers),
            has_controller=live.controller_id is not None,
            offline_partitions=live.offline_partitions,
            live_topics=len(live.topics),
            managed_topics=len(desired.topics.keys() & live.topics.keys()),
            planned_deletes=len(deleted),
        ),
        throttle=environment.spec.apply.throttle,
        changes=changes,
        blocked=tuple(_blocked(d, moves.for_tool(d.situation, load)) for d in blocked),
        drift=tuple(entry for decision in decisions for entry in _drift(decision.situation)),
        unmanaged=tuple(sorted(_unmanaged(delta, environment))),
        paused=tuple(_paused(desired, delta, now=now)),
        activity={topic: _in_order(activity[topic]) for topic in deleted if topic in activity},
        load=load_table(live, changes, before=load),
        log_bytes={c.topic: _log_bytes(live, c.topic) for c in changes if lets_records_go(c)},
        move_obstacles=moves.obstacles(changes, live, environment),
        warnings=(*warnings, *moves.notes(drained, desired, live, environment), *_warned_of(desired, changes)),
    )


def _log_bytes(live: ClusterSnapshot, name: str) -> Mapping[int, int | None]:
    """Return the bytes of the topic's logs by broker; None where the broker did not tell of each of its replicas."""
    rows, found = live.topics[name].assignment, dict[int, int | None]()
    for broker in sorted({broker for row in rows.values() for broker in row}):
        told = (live.log_directories or {}).get(broker)
        its = {partition for partition, row in rows.items() if broker in row}
        whole = told if isinstance(told, LogDirectories) and its <= told.held.get(name, set()) else None
        found[broker] = whole.log_bytes.get(name, 0) if whole else None
    return found


def _warned_of(desired: Desired, changes: Iterable[Change]) -> Iterator[str]:
    """Yield what `validate` warns of in the files of topics that change, one line for each code."""
    topics = {_below_topics(change.location.file): change.topic for change in changes}
    found: dict[Code, dict[str, Diagnostic]] = {}
    for warning in desired.warnings:
        if (topic := topics.get(_below_topics(warning.file))) is not None:
            found.setdefault(warning.code, {}).setdefault(topic, warning)
    for code, warned in sorted(found.items()):
        first, *others = sorted(warned)
        more = f" (and {plural(len(others), 'other topic')})" if others else ""
        help_text = f"; {warned[first].help}" if warned[first].help else ""
        yield f"{code} of {first}{more}: {warned[first].summary}{help_text}"


def _below_topics(file: str) -> str:
    """Return ``shop/orders.yaml``: a plan names the folder of topics in another way than a diagnostic."""
    return "/".join(file.split("/")[-2:])


def _unmanaged(delta: Delta, environment: Environment) -> Iterator[str]:
    for row in delta.topics:
        if row.topic_class is TopicClass.UNMANAGED and row.topic.startswith(environment.prefix):
            yield row.topic


def topics_whose_isr_counts(situations: Iterable[Situation]) -> tuple[str, ...]:
    """Return topics whose partition states the plan needs, to see whether an ISR is too small."""
    live = (situation for situation in situations if situation.topic is not None)
    return tuple(s.desired.name for s in live if is_to_move(s) or raised_min_isr(s) is not None)


def is_to_move(situation: Situation) -> bool:
    """Return whether replicas of the topic are to move; never while its file leaves it alone or deletes it."""
    desired = situation.desired
    is_alone = desired.lifecycle is Lifecycle.PAUSED and _is_left_alone(desired, now=situation.now)
    return desired.lifecycle is not Lifecycle.ABSENT and not is_alone and situation.move is not None


def situations_of(
    desired: Desired,
    live: ClusterSnapshot,
    delta: Delta,
    environment: Environment,
    *,
    now: datetime,
    activity: Mapping[str, TopicActivity] = NO_ACTIVITY,
    moves: MovePlanner = NO_PLANNER,
    drained: Mapping[str, int] | None = None,
) -> list[Situation]:
    """Return each topic that needs a decision, by name: it differs, is marked for deletion, or leaves a broker."""
    live = replace(live, draining=frozenset(environment.spec.cluster.draining))
    drained = moves.drained(live, environment) if drained is None else drained
    differing = {row.topic for row in delta.topics if row.topic_class is not TopicClass.UNMANAGED}
    if strange := sorted(differing - desired.topics.keys()):
        raise DiffError(f"the comparison names {strange[0]}, which no spec describes; the delta is of other inputs")
    unmanaged = moves.undescribed(drained, desired, live, environment)
    described = differing | (
        desired.topics.keys() & (live.deleting.keys() | drained.keys() | live.accepted_moves.keys())
    )
    twins = names_by_folded(live.topics) if described else {}
    topics = live.with_accepted_moves.topics
    found = (
        Situation(
            desired=unmanaged[name] if name in unmanaged else desired.topics[name],
            topic=topics.get(name),
            live=live,
            environment=environment,
            now=now,
            names_by_folded=twins,
            activity=activity.get(name),
            is_unmanaged=name in unmanaged,
        )
        for name in sorted(described | unmanaged.keys())
    )
    return [replace(situation, move=moves.wanted(situation)) for situation in found]


def decide(situation: Situation) -> Decision:
    """Return what is to become of one topic; neither actions nor obstacles: nothing."""
    desired, move = situation.desired, situation.move
    if situation.is_unmanaged:
        findings = (*findings_of(situation, (unstable,)), *move.findings) if move else ()
        return Decision(situation=situation, actions=("reassign",) if move else (), findings=findings)
    if desired.lifecycle is Lifecycle.PAUSED and _is_left_alone(desired, now=situation.now):
        return Decision(situation=situation)
    if marked := being_deleted(situation):
        return Decision(situation=situation, findings=(marked,))
    match desired.lifecycle:
        case Lifecycle.ABSENT if situation.topic is None:
            return Decision(situation=situation)
        case Lifecycle.ABSENT:
            return Decision(situation=situation, actions=("delete",), findings=findings_of(situation, DELETE_RULES))
        case Lifecycle.PAUSED:
            return _decide_expired_pause(situation)
        case Lifecycle.PRESENT:
            return _decide_present(situation)
    assert_never(desired.lifecycle)


def _is_left_alone(desired: DesiredTopic, *, now: datetime) -> bool:
    return desired.until is None or desired.until > now


def _decide_expired_pause(situation: Situation) -> Decision:
    """Blocked, with all other findings, unless there is nothing to do."""
    wanted, until = _decide_present(situation), situation.desired.until
    if until is None or not (wanted.actions or wanted.findings):
        return Decision(situation=situation)
    return replace(wanted, findings=(expired_pause(until), *wanted.findings))


def _decide_present(situation: Situation) -> Decision:
    if situation.topic is None:
        return Decision(situation=situation, actions=("create",), findings=findings_of(situation, CREATE_RULES))
    if not _differs(situation, situation.topic):
        return Decision(situation=situation)
    move = situation.move
    is_by_hand = (
        move is not None and move.why is MoveReason.ASSIGNMENT
    )  # rows of new partitions have the new factor too
    wanted: dict[Action, bool] = {
        "expand": situation.grows and not is_by_hand,
        "configure": bool(situation.edits.after),
        "reassign": move is not None and not move.later,
    }
    return Decision(
        situation=situation,
        actions=tuple(action for action in ACTIONS if wanted.get(action)),
        findings=(*findings_of(situation, ALTER_RULES), *(move.findings if move else ())),
    )


def _differs(situation: Situation, topic: LiveTopic) -> bool:
    """Return whether the topic needs a change; a live override that is only reported does not count."""
    desired = situation.desired
    rows = {p: tuple(row) for p, row in (desired.assignment or topic.target_assignment).items()}
    return (
        desired.partitions != topic.partitions
        or topic.replication_factors != {desired.replication_factor}
        or rows != topic.target_assignment
        or bool(situation.edits.after)
        or situation.move is not None
    )


def _blocked(decision: Decision, reassignment: str | None) -> Blocked:
    found = sorted(decision.findings, key=lambda finding: (finding.code, finding.reason))
    desired = decision.situation.desired
    field = next((finding.field for finding in found if finding.field in desired.locations), "")
    return Blocked(
        topic=desired.name,
        owner=desired.owner,
        codes=tuple(finding.code for finding in found),
        reasons=tuple(finding.reason for finding in found),
        way_out="; ".join(dict.fromkeys(finding.way_out for finding in found)),
        location=desired.location_of(field),
        reassignment=reassignment,
        wanted=tuple(_wanted(decision.situation)),
        spec=None if decision.situation.is_unmanaged else desired.location,
    )


def _wanted(situation: Situation) -> Iterator[str]:
    """Yield what the spec of a blocked topic asks for."""
    desired, topic = situation.desired, situation.topic
    if desired.lifecycle is Lifecycle.ABSENT:
        yield "delete the topic"
    elif topic is None:
        yield f"create it with {plural(desired.partitions, 'partition')}"
        yield f"replication factor {desired.replication_factor}"
    else:
        if desired.partitions != topic.partitions:
            yield f"partitions {topic.partitions} -> {desired.partitions}"
        why = situation.move.why if situation.move else None
        if topic.replication_factors != {desired.replication_factor} and not situation.is_unmanaged:
            found = ", ".join(map(str, sorted(topic.replication_factors)))
            yield f"replication factor {found} -> {desired.replication_factor}"
        elif why is MoveReason.ASSIGNMENT:
            yield "other replicas"
        if why is MoveReason.DRAIN:
            yield f"no replica on {brokers_text(situation.live.draining)}"
        if edited := sorted(situation.edits.after):
            yield f"other values of {', '.join(edited)}"


def _in_order(activity: TopicActivity) -> TopicActivity:
    """Sort the partitions and the groups."""
    offsets, groups = activity.end_offsets, activity.groups
    return replace(
        activity,
        end_offsets=dict(sorted(offsets.items())) if offsets is not None else None,
        groups=tuple(sorted(groups)) if groups is not None else None,
        group_uses=dict(sorted(activity.group_uses.items())),
    )


def _drift(situation: Situation) -> Iterator[Drift]:
    desired, topic = situation.desired, situation.topic
    if desired.lifecycle is not Lifecycle.PRESENT or topic is None or being_deleted(situation):
        return
    if situation.is_unmanaged:
        return
    compared = compared_overrides(topic)
    for name, value in situation.edits.unlisted.items():
        if name in compared:
            yield Drift(topic=desired.name, owner=desired.owner, config=name, value=value, location=desired.location)


def _paused(desired: Desired, delta: Delta, *, now: datetime) -> Iterator[Paused]:
    for name in (row.topic for row in delta.topics if row.topic_class is TopicClass.PAUSED):
        topic = desired.topics[name]
        if _is_left_alone(topic, now=now):
            until = f"{topic.until:%Y-%m-%dT%H:%M:%SZ}" if topic.until else ""
            yield Paused(topic=name, owner=topic.owner, reason=topic.reason, until=until, location=topic.location)
