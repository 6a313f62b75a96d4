"""The plan step: decide for each topic that differs whether it is blocked, or which changes it gets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import assert_never

from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic, LogDirectories
from topicops.model.codes import Code
from topicops.model.errors import DiffError
from topicops.model.json_types import canonical_json
from topicops.model.plans.changes import ACTIONS, Action, Change, DeleteTopic, Target, lets_records_go
from topicops.model.plans.delta import Delta, TopicClass
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
    needed_before_moving,
    raised_min_isr,
)
from topicops.steps.planning.placement.balanced import spread_leaders
from topicops.steps.planning.placement.load import NOTHING, Tally, live_load, load_table
from topicops.steps.planning.placement.request import Load
from topicops.steps.planning.planned_changes import changes_of
from topicops.steps.planning.right_cluster import require_known_draining

NO_ACTIVITY: Mapping[str, TopicActivity] = MappingProxyType({})
REASSIGNABLE = frozenset({Code.REPLICATION_FACTOR, Code.MIXED_REPLICATION_FACTOR, Code.ASSIGNMENT_DIFFERS})
"""Codes that a reassignment resolves."""


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
) -> ChangeSet:
    """Return all changes that apply may send, and all topics that are blocked. Equal inputs give an equal result.

    Args:
        live: With partition states of the topics that ``topics_with_rising_min_isr`` names.
        now: UTC; decides pauses, ``notBefore`` and ``restsFor`` and is not part of the result.
        activity: Of the topics that may be deleted.

    Raises ``DiffError``: ``delta`` is not of these inputs.
    """
    require_known_draining(live, environment)
    live = replace(live, draining=frozenset(environment.spec.cluster.draining))
    situations = situations_of(desired, live, delta, environment, now=now, activity=activity)
    decisions = [decide(situation) for situation in situations]
    blocked = [decision for decision in decisions if decision.findings]
    load = live_load(live) if decisions else NOTHING
    changes = changes_of([(d.situation, d.actions) for d in decisions if not d.findings], load)
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
        blocked=tuple(_blocked(decision, load) for decision in blocked),
        drift=tuple(entry for decision in decisions for entry in _drift(decision.situation)),
        unmanaged=tuple(sorted(_unmanaged(delta, environment))),
        paused=tuple(_paused(desired, delta, now=now)),
        activity={topic: _in_order(activity[topic]) for topic in deleted if topic in activity},
        load=load_table(live, changes, before=load),
        log_bytes={c.topic: _log_bytes(live, c.topic) for c in changes if lets_records_go(c)},
        warnings=(*warnings, *_warned_of(desired, changes)),
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


def topics_with_rising_min_isr(
    desired: Desired, live: ClusterSnapshot, delta: Delta, environment: Environment, *, now: datetime
) -> tuple[str, ...]:
    """Return topics whose partition states the plan needs, to see whether an ISR is too small."""
    found = situations_of(desired, live, delta, environment, now=now)
    return tuple(s.desired.name for s in found if s.topic is not None and raised_min_isr(s) is not None)


def situations_of(
    desired: Desired,
    live: ClusterSnapshot,
    delta: Delta,
    environment: Environment,
    *,
    now: datetime,
    activity: Mapping[str, TopicActivity] = NO_ACTIVITY,
) -> list[Situation]:
    """Return each described topic that needs a decision, by name: it differs, or is marked for deletion."""
    differing = {row.topic for row in delta.topics if row.topic_class is not TopicClass.UNMANAGED}
    if strange := sorted(differing - desired.topics.keys()):
        raise DiffError(f"the comparison names {strange[0]}, which no spec describes; the delta is of other inputs")
    names = sorted(differing | (desired.topics.keys() & live.deleting.keys()))
    twins = names_by_folded(live.topics) if names else {}
    return [
        Situation(
            desired=desired.topics[name],
            topic=live.topics.get(name),
            live=live,
            environment=environment,
            now=now,
            names_by_folded=twins,
            activity=activity.get(name),
        )
        for name in names
    ]


def decide(situation: Situation) -> Decision:
    """Return what is to become of one topic; neither actions nor obstacles: nothing."""
    desired = situation.desired
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
    wanted: dict[Action, bool] = {"expand": situation.grows, "configure": bool(situation.edits.after)}
    return Decision(
        situation=situation,
        actions=tuple(action for action in ACTIONS if wanted.get(action)),
        findings=findings_of(situation, ALTER_RULES),
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
    )


def _blocked(decision: Decision, load: Load) -> Blocked:
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
        reassignment=_reassignment(decision, load),
        wanted=tuple(_wanted(decision.situation)),
        spec=desired.location,
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
        if topic.replication_factors != {desired.replication_factor}:
            found = ", ".join(map(str, sorted(topic.replication_factors)))
            yield f"replication factor {found} -> {desired.replication_factor}"
        elif desired.assignment is not None and _wanted_rows(desired, topic, situation.live, NOTHING):
            yield "other replicas"
        if edited := sorted(situation.edits.after):
            yield f"other values of {', '.join(edited)}"


def _reassignment(decision: Decision, load: Load) -> str | None:
    situation, topic = decision.situation, decision.situation.topic
    codes = {finding.code for finding in decision.findings}
    if topic is None or not codes & REASSIGNABLE or needed_before_moving(situation):
        return None
    rows = _wanted_rows(situation.desired, topic, situation.live, load)
    return reassignment_json(topic.name, rows) if rows else None


def _wanted_rows(desired: DesiredTopic, topic: LiveTopic, live: ClusterSnapshot, load: Load) -> Assignment | None:
    """Return rows of the partitions that are live; only those that move."""
    target = topic.target_assignment
    if desired.assignment is not None:
        wanted: Assignment | None = {p: tuple(row) for p, row in desired.assignment.items() if p in target}
    else:
        racks = live.whole_racks if desired.rack_aware else dict.fromkeys(live.whole_racks)
        wanted = resized(target, desired.replication_factor, racks, load=load)
    return {p: row for p, row in wanted.items() if row != target[p]} if wanted else None


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
    for name, value in situation.edits.unlisted.items():
        yield Drift(topic=desired.name, owner=desired.owner, config=name, value=value, location=desired.location)


def _paused(desired: Desired, delta: Delta, *, now: datetime) -> Iterator[Paused]:
    for name in (row.topic for row in delta.topics if row.topic_class is TopicClass.PAUSED):
        topic = desired.topics[name]
        if _is_left_alone(topic, now=now):
            until = f"{topic.until:%Y-%m-%dT%H:%M:%SZ}" if topic.until else ""
            yield Paused(topic=name, owner=topic.owner, reason=topic.reason, until=until, location=topic.location)


def reassignment_json(topic: str, rows: Assignment) -> str:
    """Return what ``kafka-reassign-partitions --reassignment-json-file`` reads."""
    partitions = [{"topic": topic, "partition": p, "replicas": list(rows[p])} for p in sorted(rows)]
    return canonical_json({"version": 1, "partitions": partitions})


def resized(
    rows: Assignment, replication_factor: int, racks: Mapping[int, str | None], *, load: Load
) -> Assignment | None:
    """Return the rows with another replication factor and the fewest moves: live replicas stay if possible.

    Leaders stay too, unless the topic's leaders become less even. A row that has its replicas on live brokers stays.

    Args:
        racks: Rack by live broker. Where only some have one, racks do not count.
        load: The cluster's, this topic included.

    Returns:
        None: there are fewer live brokers than replicas.
    """
    if not 0 < replication_factor <= len(racks):
        return None
    changing = sorted(p for p, row in rows.items() if len(row) != replication_factor or not racks.keys() >= set(row))
    tally = Tally(_rack_of(racks), topic=Load.of([rows]), cluster=load)
    found: dict[int, tuple[int, ...]] = {}
    for partition in changing:
        live = [broker for broker in rows[partition] if broker in racks]
        found[partition] = tally.grown(tally.shrunk(live, replication_factor), replication_factor)
    return {**rows, **_with_leaders(tally.evened(found, rows), rows)}


def _rack_of(racks: Mapping[int, str | None]) -> dict[int, str]:
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    return known if len(known) == len(racks) else {broker: str(broker) for broker in racks}


def _with_leaders(changed: Assignment, rows: Assignment) -> Assignment:
    """Return the changed rows, each with a leader. Other topics do not count: they would make more leaders move.

    Rows that lost their leader choose first. The others choose anew only if that makes the topic more even still.
    """
    others = Load.of([{p: row for p, row in rows.items() if p not in changed}])
    kept = {p: rows[p][:1] for p, row in changed.items() if rows[p] and rows[p][0] in row}
    leaders = {p: row[0] for p, row in spread_leaders({**changed, **kept}, topic=others, cluster=others).items()}
    ordered = {p: (leaders[p], *(broker for broker in row if broker != leaders[p])) for p, row in changed.items()}
    return spread_leaders(ordered, topic=others, cluster=others)
