"""The changes of topics that are not blocked, each with its placement, risk, precondition and notes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, assert_never

from topicops.model.cluster.broker_defaults import Default, DefaultOnBrokers, agreed, not_given, possible
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.model.errors import DiffError
from topicops.model.json_types import assignment_digest
from topicops.model.plans.changes import (
    ACTIONS,
    Action,
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    Precondition,
    ReassignTopic,
)
from topicops.model.release import SINGLE_OVERRIDES
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Risk
from topicops.model.specs.topic_config import canonical_overrides, config_of
from topicops.steps.before_deletes import delete_doubts
from topicops.steps.planning.blocking import NO_TOPIC_ID, Situation, raised_min_isr
from topicops.steps.planning.moves import MovePlanner
from topicops.steps.planning.placement import place
from topicops.steps.planning.placement.request import Load, PlacementRequest
from topicops.steps.planning.risk import config_risk, worst


def changes_of(
    planned: Sequence[tuple[Situation, Sequence[Action]]], load: Load, moves: MovePlanner
) -> tuple[Change, ...]:
    """Return all changes of the topics that are not blocked, in the order in which apply sends them.

    Each placement counts the replicas of those before it.
    """
    found: list[Change] = []
    for action in ACTIONS:
        for situation in (situation for situation, actions in planned if action in actions):
            change = _change(action, situation, load, moves)
            if isinstance(change, CreateTopic | ExpandTopic | ReassignTopic):
                load = load.plus(change.assignment)
            if isinstance(change, ReassignTopic):
                load = load.minus(change.assignment_before)
            found.append(change)
    return _noted(found, rename_notes(found))  # only the whole plan shows that a delete and a create are no rename


def _change(action: Action, situation: Situation, load: Load, moves: MovePlanner) -> Change:
    match action:
        case "create":
            return _create(situation, load)
        case "expand":
            return _expand(situation, load)
        case "configure":
            return _configure(situation)
        case "reassign":
            return moves.change(situation, load)
        case "delete":
            return _delete(situation)
    assert_never(action)


def _noted(changes: Sequence[Change], notes: Mapping[str, str]) -> tuple[Change, ...]:
    return tuple(
        replace(change, notes=(notes[change.topic], *change.notes)) if change.topic in notes else change
        for change in changes
    )


def _create(situation: Situation, load: Load) -> CreateTopic:
    desired = situation.desired
    codes = (
        *((Code.LOST_TOPIC,) if desired.name in situation.live.lost else ()),
        *((Code.COMES_BACK_EMPTY,) if desired.name in situation.live.past_deletes else ()),
    )
    return CreateTopic(
        topic=desired.name,
        owner=desired.owner,
        location=desired.location,
        risk=Risk.NOTICE if codes else Risk.SAFE,
        codes=codes,
        reversible=True,
        precondition=Precondition(absent=True),
        notes=tuple(_create_notes(situation)),
        partitions=desired.partitions,
        replication_factor=desired.replication_factor,
        assignment=_placed(situation, load),
        configs={name: value for name, value in sorted(desired.configs.items()) if value is not None},
    )


def _create_notes(situation: Situation) -> Iterator[str]:
    name, live = situation.desired.name, situation.live
    if lost := live.lost.get(name):
        yield (
            f"the topic lived at an earlier snapshot (id {lost.identity}, seen at {lost.at}), and was deleted outside "
            "git; its records are gone"
        )
    if past := live.past_deletes.get(name):
        deleted = f"the run {past.run} deleted a topic of this name on {past.at}"
        yield f"{deleted}: it comes back empty, without offsets of groups"
    if name in live.orphan_configs:
        yield "the config znode of an earlier topic of this name is replaced"
    yield from _vendor_notes(situation.desired.configs)


def _expand(situation: Situation, load: Load) -> ExpandTopic:
    desired, topic = situation.desired, _live(situation)
    policies = _cleanup_policies(situation, topic)
    codes = _expansion_codes(situation, policies)
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
            # A service may move replicas at any time, and the change names none.
            assignment_digest=None if situation.is_managed else assignment_digest(topic.target_assignment),
        ),
        notes=(*(EXPANSION_NOTES[code] for code in codes), *_unknown_policy_notes(policies), *_later(situation)),
        partitions_before=topic.partitions,
        assignment_before=topic.target_assignment,
        partitions=desired.partitions,
        assignment=_placed(situation, load),
    )


EXPANSION_NOTES: Mapping[Code, str] = {
    Code.KEYED_EXPANSION: "records of one key may go to another partition than before: their order is no longer kept",
    Code.COMPACTED_EXPANSION: "old and new values of a key may stay in two partitions for ever: a new topic avoids it",
}


def _later(situation: Situation) -> Iterator[str]:
    if situation.move and situation.move.later:
        yield situation.move.later


def _cleanup_policies(situation: Situation, topic: LiveTopic) -> Default:
    """Return the policy in force on each broker: the topic's own on all of them, else their defaults."""
    own = canonical_overrides(topic.overrides).get("cleanup.policy")
    return situation.default_of("cleanup.policy") if own is None else (DefaultOnBrokers(own, ()),)


def _unknown_policy_notes(policies: Default) -> Iterator[str]:
    if gap := not_given(policies):
        yield f"{gap} default of cleanup.policy, so the topic counts as compacted"


def _expansion_codes(situation: Situation, policies: Default) -> tuple[Code, ...]:
    is_compacted = any(policy is None or "compact" in policy.split(",") for policy in possible(policies))
    found = {Code.KEYED_EXPANSION: situation.desired.keyed, Code.COMPACTED_EXPANSION: is_compacted}
    return tuple(code for code, holds in found.items() if holds)


def _configure(situation: Situation) -> ConfigureTopic:
    desired, topic, edits = situation.desired, _live(situation), situation.edits
    sends_all = situation.sends_all_overrides
    defaults = {name: situation.default_of(name) for name in edits.after}
    risk, codes = worst(
        config_risk(name, edits.before[name], edits.after[name], value)
        for name, default in defaults.items()
        for value in possible(default)
    )
    shown = {name: defaults[name] for name in edits.after if None in (edits.before[name], edits.after[name])}
    return ConfigureTopic(
        topic=desired.name,
        owner=desired.owner,
        location=_config_location(desired, tuple(edits.after)),
        risk=risk,
        codes=codes,
        reversible=risk is not Risk.DESTRUCTIVE,
        precondition=Precondition(
            identity=topic.identity,
            overrides=dict(sorted({**canonical_overrides(topic.overrides), **edits.before}.items()))
            if sends_all
            else edits.before,
            all_overrides=sends_all,
        ),
        notes=tuple(_config_notes(situation)),
        configs_before=edits.before,
        configs=edits.after,
        broker_defaults={name: value for name, default in shown.items() if (value := agreed(default)) is not None},
        differing_defaults={name: default for name, default in shown.items() if len(default) > 1},
    )


def _config_location(desired: DesiredTopic, names: Sequence[str]) -> Location:
    written = [f"configs.{name}" for name in names if f"configs.{name}" in desired.locations]
    return desired.location_of(written[0] if written else "configs")


def _config_notes(situation: Situation) -> Iterator[str]:
    edits = situation.edits
    for name in edits.after:
        if None in (edits.before[name], edits.after[name]):
            yield from _default_notes(name, situation.default_of(name))
    topic = situation.topic
    if situation.sends_all_overrides and topic is not None:
        kept = sorted(topic.overrides.keys() - edits.after.keys())
        yield (
            f"{situation.without(SINGLE_OVERRIDES)}, so all overrides of the topic are sent: the request also names "
            f"{'the ' + ', '.join(kept) + ' of now' if kept else 'no other, because there is none'}, and one that is "
            "set by hand right before it is lost"
        )
    yield from _vendor_notes(edits.after)
    if raised_min_isr(situation) is not None and topic is not None and topic.states is None:
        yield "the ISR of the partitions was not read"
    if not situation.grows:
        yield from _later(situation)


def _vendor_notes(names: Iterable[str]) -> Iterator[str]:
    for name in sorted(names):
        if (config := config_of(name)) and config.vendor:
            yield f"{name} is a config of {config.vendor}: its brokers judge it, and what it does is not known here"


def _default_notes(config: str, default: Default) -> Iterator[str]:
    if gap := not_given(default):
        yield f"{gap} default of {config}; the worse direction counts"
    elif len(default) > 1:
        yield f"the brokers' defaults of {config} differ; the riskiest one counts"


def _delete(situation: Situation) -> DeleteTopic:
    desired, topic = situation.desired, _live(situation)
    return DeleteTopic(
        topic=desired.name,
        owner=desired.owner,
        location=desired.location_of("lifecycle.state"),
        risk=Risk.DESTRUCTIVE,
        codes=() if topic.topic_id else (Code.DELETED_BY_NAME,),
        notes=tuple(_delete_notes(topic, situation.live)),
        reversible=False,
        precondition=Precondition(identity=topic.identity, partitions=topic.partitions),
        topic_id=topic.topic_id,
        partitions=topic.partitions,
        reason=desired.reason,
    )


def _delete_notes(topic: LiveTopic, live: ClusterSnapshot) -> Iterator[str]:
    if not topic.topic_id:
        yield NO_TOPIC_ID
    for doubt in delete_doubts(topic.assignment, live.log_directories or {}, live.brokers):
        yield f"{doubt}; apply refuses the delete until it is"


def _live(situation: Situation) -> LiveTopic:
    if situation.topic is None:
        raise DiffError(f"{situation.desired.name} must be changed but is not live")
    return situation.topic


def _placed(situation: Situation, load: Load) -> Assignment:
    desired, topic = situation.desired, situation.topic
    if situation.is_managed:
        return {}
    request = PlacementRequest(
        topic=desired.name,
        partitions=desired.partitions,
        replication_factor=situation.replication_factor,
        racks=situation.live.whole_racks,
        existing=topic.target_assignment if topic else {},
        rack_aware=desired.rack_aware,
        load=load,
        manual=desired.assignment or None,
    )
    return place(desired.placement, request)


_WORD = re.compile(r"[^._-]+")
"""Pattern of a word in a topic's name."""
_COMMON = 50
_CARRIED = "no record and no group's offset is carried over"


class _Sketch(NamedTuple):
    """What a rename would keep."""

    topic: str
    words: frozenset[str]
    place: tuple[str, int]
    """Folder and partitions."""


def rename_notes(changes: Sequence[Change]) -> Mapping[str, str]:
    """Return a sentence by topic, for both topics of each pair that looks like a rename.

    A deleted topic is paired with the created one that shares most words of its name, if that is at least half of the
    shorter name, or if both have the same folder and the same number of partitions. One pair too many is
    better than one too few.
    """
    notes: dict[str, str] = {}
    for old, new in _twins((_sketch(change) for change in changes if isinstance(change, DeleteTopic)), changes):
        notes[old] = f"this is not a rename to {new}: {_CARRIED}"
        notes[new] = f"this is not a rename of {old}: {_CARRIED}"
    return notes


def with_notes_of_lost_files(
    changes: Sequence[Change], lost: Mapping[str, str], partitions: Mapping[str, int]
) -> tuple[Change, ...]:
    """Add a note to each created topic that looks like a live one whose file was renamed or removed.

    Args:
        lost: The folder of the file that each of these live topics had; no file names them now.
        partitions: Of these topics.
    """
    sketches = (_Sketch(name, _words(name), (folder, partitions[name])) for name, folder in lost.items())
    notes = {
        new: f"this is not a rename of {old}: {_CARRIED}; {old} stays as it is, and no file describes it now"
        for old, new in _twins(sketches, changes)
    }
    return _noted(changes, notes)


def _twins(gone: Iterable[_Sketch], changes: Sequence[Change]) -> Iterator[tuple[str, str]]:
    """Yield each topic that goes, with the created topic that looks most like it, where one does."""
    similar = _index(_sketch(change) for change in changes if isinstance(change, CreateTopic))
    for old in gone:
        candidates = {sketch.topic: sketch for sign in (*old.words, old.place) for sketch in similar.get(sign, ())}
        twin = max(candidates.values(), key=lambda sketch: (_likeness(old, sketch), sketch.topic), default=None)
        if twin is None:
            continue
        likeness, is_same_place = _likeness(old, twin)
        if likeness >= 0.5 or is_same_place:
            yield old.topic, twin.topic


def _index(created: Iterable[_Sketch]) -> Mapping[object, Sequence[_Sketch]]:
    """Created topics by each word and by place; a word or place that more than ``_COMMON`` share means little."""
    found: dict[object, list[_Sketch]] = {}
    for sketch in created:
        for sign in (*sketch.words, sketch.place):
            found.setdefault(sign, []).append(sketch)
    return {sign: [min(sketches)] if len(sketches) > _COMMON else sketches for sign, sketches in found.items()}


def _sketch(change: CreateTopic | DeleteTopic) -> _Sketch:
    folder, _, _ = change.location.file.rpartition("/")
    return _Sketch(change.topic, _words(change.topic), (folder, change.partitions))


def _words(name: str) -> frozenset[str]:
    return frozenset(_WORD.findall(name))


def _likeness(deleted: _Sketch, created: _Sketch) -> tuple[float, bool]:
    """Return the part of the shorter name's words that both share, 0 to 1, and whether they have one place."""
    shared = len(deleted.words & created.words) / max(1, min(len(deleted.words), len(created.words)))
    return shared, deleted.place == created.place
