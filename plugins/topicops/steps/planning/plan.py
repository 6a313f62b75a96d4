"""plan: from a delta to ordered changes with placement, risk and preconditions, and to what is blocked and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import assert_never

from topicops.model.canonical import assignment_digest
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic
from topicops.model.errors import DiffError
from topicops.model.plans.changes import (
    ACTIONS,
    Action,
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    Precondition,
    Target,
)
from topicops.model.plans.delta import Delta, TopicClass
from topicops.model.plans.plan import Blocked, ChangeSet, ClusterFacts, Drift, Paused, PlanSource, TopicActivity
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Environment, Risk
from topicops.model.specs.topic_config import canonical_overrides
from topicops.steps.planning.blocking import (
    Finding,
    Situation,
    alter_findings,
    being_deleted,
    create_findings,
    delete_findings,
    expired_pause,
    hindrance_to_move,
    names_by_folded,
    raised_min_isr,
)
from topicops.steps.planning.placement import Load, PlacementRequest, place
from topicops.steps.planning.placement.load_table import NOTHING, live_load, load_table
from topicops.steps.planning.reassignment import reassignment_json, resized
from topicops.steps.planning.renames import rename_notes
from topicops.steps.planning.risk import config_risk, worst

NO_ACTIVITY: Mapping[str, TopicActivity] = MappingProxyType({})
REASSIGNABLE = frozenset({"TOP402", "TOP423", "TOP425"})
"""Codes whose way out is a reassignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is to become of one topic: blocked as a whole, or all its actions planned."""

    situation: Situation
    actions: tuple[Action, ...] = ()
    obstacles: tuple[Finding, ...] = ()

    @property
    def topic(self) -> str:
        return self.situation.desired.name


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
    """Everything that apply may do and all that stands in the way; equal inputs give an equal result, in any order.

    Args:
        live: With partition states of the topics that ``topics_with_rising_min_isr`` names.
        now: UTC; decides pauses and ``notBefore`` and is not part of the result.
        activity: Of the topics that may be deleted.

    Raises:
        DiffError: ``delta`` is not of these inputs.

    """
    judged = [judge(situation) for situation in situations(desired, live, delta, environment, now=now)]
    load = live_load(live) if judged else NOTHING
    changes = _noted(tuple(_changes([judgement for judgement in judged if not judgement.obstacles], load)))
    deleted = sorted(change.topic for change in changes if isinstance(change, DeleteTopic))
    return ChangeSet(
        target=Target(environment=environment.name, cluster_id=live.cluster_id, chroot=live.chroot),
        source=PlanSource(commit=desired.commit, desired_digest=desired.digest, topics=len(desired.topics)),
        facts=cluster_facts(desired, live, planned_deletes=len(deleted)),
        changes=changes,
        blocked=tuple(_blocked(judgement, load) for judgement in judged if judgement.obstacles),
        drift=tuple(entry for judgement in judged for entry in _drift(judgement.situation)),
        unmanaged=tuple(sorted(row.topic for row in delta.topics if row.topic_class is TopicClass.UNMANAGED)),
        paused=tuple(_paused(desired, now=now)),
        activity={topic: _in_order(activity[topic]) for topic in deleted if topic in activity},
        load=load_table(live, changes, before=load),
        warnings=tuple(warnings),
    )


def topics_with_rising_min_isr(
    desired: Desired, live: ClusterSnapshot, delta: Delta, environment: Environment, *, now: datetime
) -> tuple[str, ...]:
    """Topics whose partition states the plan needs: it must know whether an ISR is too small."""
    found = situations(desired, live, delta, environment, now=now)
    return tuple(s.desired.name for s in found if s.topic is not None and raised_min_isr(s) is not None)


def situations(
    desired: Desired, live: ClusterSnapshot, delta: Delta, environment: Environment, *, now: datetime
) -> list[Situation]:
    """Each described topic that must be looked at, by name: it differs, or is marked for deletion."""
    differing = {row.topic for row in delta.topics if row.topic_class is not TopicClass.UNMANAGED}
    if strange := sorted(differing - desired.topics.keys()):
        raise DiffError(f"the comparison names {strange[0]}, which no spec describes; it belongs to other inputs")
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
        )
        for name in names
    ]


def cluster_facts(desired: Desired, live: ClusterSnapshot, *, planned_deletes: int) -> ClusterFacts:
    return ClusterFacts(
        live_brokers=len(live.brokers),
        has_controller=live.controller_id is not None,
        offline_partitions=live.offline_partitions,
        live_topics=len(live.topics),
        managed_topics=len(desired.topics.keys() & live.topics.keys()),
        planned_deletes=planned_deletes,
    )


def judge(situation: Situation) -> Judgement:
    """What is to become of one topic; neither actions nor obstacles: nothing."""
    desired = situation.desired
    if desired.lifecycle is Lifecycle.PAUSED and _rests(desired, now=situation.now):
        return Judgement(situation=situation)
    if marked := being_deleted(situation):
        return Judgement(situation=situation, obstacles=(marked,))
    match desired.lifecycle:
        case Lifecycle.ABSENT:
            return _judge_absent(situation)
        case Lifecycle.PAUSED:
            return _judge_expired_pause(situation)
        case Lifecycle.PRESENT:
            return _judge_present(situation)
    assert_never(desired.lifecycle)


def _rests(desired: DesiredTopic, *, now: datetime) -> bool:
    return desired.until is None or desired.until > now


def _judge_absent(situation: Situation) -> Judgement:
    if situation.topic is None:
        return Judgement(situation=situation)
    return Judgement(situation=situation, actions=("delete",), obstacles=tuple(delete_findings(situation)))


def _judge_expired_pause(situation: Situation) -> Judgement:
    """Blocked, with whatever else holds, unless there is nothing to do."""
    wanted, until = _judge_present(situation), situation.desired.until
    if until is None or not (wanted.actions or wanted.obstacles):
        return Judgement(situation=situation)
    return replace(wanted, obstacles=(expired_pause(until), *wanted.obstacles))


def _judge_present(situation: Situation) -> Judgement:
    if situation.topic is None:
        return Judgement(situation=situation, actions=("create",), obstacles=tuple(create_findings(situation)))
    if not _differs(situation, situation.topic):
        return Judgement(situation=situation)
    wanted: dict[Action, bool] = {"expand": situation.grows, "configure": bool(situation.edits.after)}
    return Judgement(
        situation=situation,
        actions=tuple(action for action in ACTIONS if wanted.get(action)),
        obstacles=tuple(alter_findings(situation)),
    )


def _differs(situation: Situation, topic: LiveTopic) -> bool:
    """Whether anything is to be done; a live override that is only reported does not count."""
    desired = situation.desired
    rows = {p: tuple(row) for p, row in (desired.assignment or topic.target_assignment).items()}
    return (
        desired.partitions != topic.partitions
        or topic.replication_factors != {desired.replication_factor}
        or rows != topic.target_assignment
        or bool(situation.edits.after)
    )


def _changes(judged: Sequence[Judgement], load: Load) -> Iterator[Change]:
    """In the order in which apply runs them; each placement counts those before it."""
    for action in ACTIONS:
        for judgement in judged:
            if action not in judgement.actions:
                continue
            change = _built(action, judgement.situation, load)
            if isinstance(change, CreateTopic | ExpandTopic):
                load = load.plus(change.assignment)
            yield change


def _built(action: Action, situation: Situation, load: Load) -> Change:
    match action:
        case "create":
            return _create(situation, load)
        case "expand":
            return _expand(situation, load)
        case "configure":
            return _configure(situation)
        case "delete":
            return _delete(situation)
    assert_never(action)


def _noted(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """What only the whole plan shows is noted at the changes that it is about."""
    notes = rename_notes(changes)
    if not notes:
        return changes
    return tuple(
        replace(change, notes=(notes[change.topic], *change.notes)) if change.topic in notes else change
        for change in changes
    )


def _create(situation: Situation, load: Load) -> CreateTopic:
    desired = situation.desired
    replaced = desired.name in situation.live.orphan_configs
    return CreateTopic(
        topic=desired.name,
        owner=desired.owner,
        location=desired.location,
        risk=Risk.SAFE,
        reversible=True,
        precondition=Precondition(absent=True),
        notes=("the config znode of an earlier topic of this name is replaced",) if replaced else (),
        partitions=desired.partitions,
        replication_factor=desired.replication_factor,
        assignment=_placed(situation, load),
        configs={name: value for name, value in sorted(desired.configs.items()) if value is not None},
    )


def _expand(situation: Situation, load: Load) -> ExpandTopic:
    desired, topic = situation.desired, _live(situation)
    codes = _expansion_codes(situation, topic)
    return ExpandTopic(
        topic=desired.name,
        owner=desired.owner,
        location=desired.location_of("assignment" if desired.assignment else "partitions"),
        risk=Risk.RISKY if codes else Risk.NOTICE,
        codes=codes,
        reversible=False,
        precondition=Precondition(
            identity=topic.identity,
            partitions=topic.partitions,
            assignment_digest=assignment_digest(topic.target_assignment),
        ),
        notes=tuple(EXPANSION_NOTES[code] for code in codes),
        partitions_before=topic.partitions,
        assignment_before=topic.target_assignment,
        partitions=desired.partitions,
        assignment=_placed(situation, load),
    )


EXPANSION_NOTES: Mapping[str, str] = {
    "TOP403": "records of one key may go to another partition than before, so their order is no longer kept",
    "TOP404": "old and new values of a key may stay in two partitions for ever; a new topic avoids that",
}


def _expansion_codes(situation: Situation, topic: LiveTopic) -> tuple[str, ...]:
    defaults = situation.live.broker_defaults or {}
    policy = canonical_overrides(topic.overrides).get("cleanup.policy", defaults.get("cleanup.policy", ""))
    is_compacted = "compact" in policy.split(",")
    found = {"TOP403": situation.desired.keyed, "TOP404": is_compacted}
    return tuple(code for code, holds in found.items() if holds)


def _configure(situation: Situation) -> ConfigureTopic:
    desired, topic, edits = situation.desired, _live(situation), situation.edits
    defaults = situation.live.broker_defaults or {}
    risk, codes = worst(
        config_risk(name, edits.before[name], edits.after[name], defaults.get(name)) for name in edits.after
    )
    return ConfigureTopic(
        topic=desired.name,
        owner=desired.owner,
        location=_config_location(desired, tuple(edits.after)),
        risk=risk,
        codes=codes,
        reversible=risk is not Risk.DESTRUCTIVE,
        precondition=Precondition(identity=topic.identity, overrides=edits.before),
        notes=tuple(_config_notes(situation)),
        configs_before=edits.before,
        configs=edits.after,
        broker_defaults={
            name: defaults[name]
            for name in edits.after
            if name in defaults and None in (edits.before[name], edits.after[name])
        },
    )


def _config_location(desired: DesiredTopic, names: Sequence[str]) -> Location:
    written = [f"configs.{name}" for name in names if f"configs.{name}" in desired.locations]
    return desired.location_of(written[0] if written else "configs")


def _config_notes(situation: Situation) -> Iterator[str]:
    edits, defaults = situation.edits, situation.live.broker_defaults or {}
    for name in edits.after:
        if None in (edits.before[name], edits.after[name]) and name not in defaults:
            yield f"the brokers' default of {name} is not known; the worse direction counts"
    topic = situation.topic
    if raised_min_isr(situation) is not None and topic is not None and topic.states is None:
        yield "the ISR of the partitions was not read"


def _delete(situation: Situation) -> DeleteTopic:
    desired, topic = situation.desired, _live(situation)
    return DeleteTopic(
        topic=desired.name,
        owner=desired.owner,
        location=desired.location_of("lifecycle.state"),
        risk=Risk.DESTRUCTIVE,
        reversible=False,
        precondition=Precondition(identity=topic.identity, partitions=topic.partitions),
        topic_id=topic.topic_id,
        partitions=topic.partitions,
        reason=desired.reason,
    )


def _live(situation: Situation) -> LiveTopic:
    if situation.topic is None:
        raise DiffError(f"{situation.desired.name} is to be changed and is not live")
    return situation.topic


def _placed(situation: Situation, load: Load) -> Assignment:
    desired, topic = situation.desired, situation.topic
    request = PlacementRequest(
        topic=desired.name,
        partitions=desired.partitions,
        replication_factor=situation.replication_factor,
        racks=situation.live.racks,
        existing=topic.target_assignment if topic else {},
        rack_aware=desired.rack_aware,
        load=load,
        manual=desired.assignment,
    )
    return place("manual" if desired.assignment else desired.placement, request)


def _blocked(judgement: Judgement, load: Load) -> Blocked:
    found = sorted(judgement.obstacles, key=lambda obstacle: (obstacle.code, obstacle.reason))
    desired = judgement.situation.desired
    field = next((obstacle.field for obstacle in found if obstacle.field in desired.locations), "")
    return Blocked(
        topic=judgement.topic,
        owner=desired.owner,
        codes=tuple(obstacle.code for obstacle in found),
        reasons=tuple(obstacle.reason for obstacle in found),
        way_out="; ".join(dict.fromkeys(obstacle.way_out for obstacle in found)),
        location=desired.location_of(field),
        reassignment=_reassignment(judgement, load),
    )


def _reassignment(judgement: Judgement, load: Load) -> str | None:
    situation, topic = judgement.situation, judgement.situation.topic
    codes = {obstacle.code for obstacle in judgement.obstacles}
    if topic is None or not codes & REASSIGNABLE or hindrance_to_move(situation):
        return None
    rows = _wanted_rows(situation.desired, topic, situation.live, load)
    return reassignment_json(topic.name, rows) if rows else None


def _wanted_rows(desired: DesiredTopic, topic: LiveTopic, live: ClusterSnapshot, load: Load) -> Assignment | None:
    """Rows of the partitions that are live; only those that move."""
    target = topic.target_assignment
    if desired.assignment is not None:
        wanted: Assignment | None = {p: tuple(row) for p, row in desired.assignment.items() if p in target}
    else:
        racks = live.racks if desired.rack_aware else dict.fromkeys(live.racks)
        wanted = resized(target, desired.replication_factor, racks, load=load)
    return {p: row for p, row in wanted.items() if row != target[p]} if wanted else None


def _in_order(activity: TopicActivity) -> TopicActivity:
    offsets, groups = activity.end_offsets, activity.groups
    return TopicActivity(
        end_offsets=dict(sorted(offsets.items())) if offsets is not None else None,
        groups=tuple(sorted(groups)) if groups is not None else None,
    )


def _drift(situation: Situation) -> Iterator[Drift]:
    desired, topic = situation.desired, situation.topic
    if desired.lifecycle is not Lifecycle.PRESENT or topic is None or being_deleted(situation):
        return
    for name, value in situation.edits.unlisted.items():
        yield Drift(topic=desired.name, owner=desired.owner, config=name, value=value, location=desired.location)


def _paused(desired: Desired, *, now: datetime) -> Iterator[Paused]:
    for name in sorted(desired.topics):
        topic = desired.topics[name]
        if topic.lifecycle is Lifecycle.PAUSED and _rests(topic, now=now):
            until = f"{topic.until:%Y-%m-%dT%H:%M:%SZ}" if topic.until else ""
            yield Paused(topic=name, owner=topic.owner, reason=topic.reason, until=until, location=topic.location)
