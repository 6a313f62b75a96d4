"""drift: all differences between the live cluster and the files, with or without a change that removes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase

from topicops.model.cluster.snapshot import ClusterSnapshot, LastSeen, LiveTopic, PastDelete
from topicops.model.codes import Code
from topicops.model.json_types import FormatVersion
from topicops.model.plans.delta import Delta, TopicClass, desired_row, live_row
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Environment
from topicops.model.specs.topic_config import canonical_overrides
from topicops.model.topics_in_files import hold
from topicops.steps.planning.diff import diff

_COMPARED = (TopicClass.DIFFERENT, TopicClass.MISSING, TopicClass.TOMBSTONED)
"""Classes of whose topics more than the name is needed."""


class DriftKind(StrEnum):
    CHANGED = "changed"
    """File and cluster have another value."""
    UNLISTED = "unlisted"
    """A live override that no file names."""
    MISSING = "missing"
    """Described and not live."""
    RETIRED = "retired"
    """A tombstone's topic that is live."""
    UNMANAGED = "unmanaged"
    """Live, and no file of this environment names it; protected topics are left out."""
    BEING_DELETED = "being deleted"
    """Marked for deletion by whomever, and not gone yet; no other difference of it is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftEntry:
    """One difference."""

    topic: str
    kind: DriftKind
    field: str | None = None
    """``partitions``, ``replicationFactor``, ``assignment`` or ``configs.<key>``; None means the topic as a whole."""
    wanted: str | None = None
    """Value of the file, in canonical text; None means no value."""
    live: str | None = None
    file: str | None = None
    line: int | None = None
    seen: LastSeen | None = None
    """Where an earlier snapshot had a missing topic that topicops did not delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """What ``drift`` prints, and ``drift.json`` holds."""

    format_version: FormatVersion = "1.0"
    compared: int
    """Number of described topics that were compared with the cluster."""
    only: str | None
    """Glob that left the others out; None means that there was none."""
    drift: tuple[DriftEntry, ...]
    """All differences, by topic."""


def drift(
    desired: Desired,
    live: ClusterSnapshot,
    environment: Environment,
    *,
    only: str | None = None,
    delta: Delta | None = None,
) -> DriftReport:
    """All differences; a paused topic has none.

    Args:
        only: A glob; topics that do not match it are left out.
        delta: Of these two, if it is known already.
    """
    if delta is None:
        delta = diff(map(desired_row, desired.topics.values()), map(live_row, live.topics.values()))
    classes = dict.fromkeys(live.deleting.keys() & desired.topics.keys(), TopicClass.SAME)
    classes |= {row.topic: row.topic_class for row in delta.topics}
    names = sorted((n, found) for n, found in classes.items() if only is None or fnmatchcase(n, only))
    for topics in (desired.topics, live.topics):
        hold(topics, [name for name, topic_class in names if topic_class in _COMPARED or name in live.deleting])
    entries = (entry for name, found in names for entry in _entries(found, name, desired, live, environment))
    compared = sum(only is None or fnmatchcase(name, only) for name in desired.topics)
    return DriftReport(compared=compared, only=only, drift=tuple(entries))


def counted(entries: Sequence[DriftEntry]) -> Mapping[DriftKind, int]:
    """How many topics there are of each kind."""
    found = Counter(kind for kind, _ in {(entry.kind, entry.topic) for entry in entries})
    return {kind: found[kind] for kind in DriftKind}


def _entries(
    topic_class: TopicClass, name: str, desired: Desired, live: ClusterSnapshot, environment: Environment
) -> Iterator[DriftEntry]:
    if name in live.deleting:
        yield from _being_deleted(name, desired, environment)
        return
    match topic_class:
        case TopicClass.MISSING:
            place, seen = desired.topics[name].location, live.lost.get(name)
            yield _entry(name, DriftKind.MISSING, place, seen=seen)
        case TopicClass.TOMBSTONED:
            yield _entry(name, DriftKind.RETIRED, desired.topics[name].location_of("lifecycle.state"))
        case TopicClass.UNMANAGED:
            if name not in desired.left_out and not environment.protecting_pattern(name):
                yield DriftEntry(topic=name, kind=DriftKind.UNMANAGED)
        case TopicClass.DIFFERENT:
            yield from _numbers(desired.topics[name], live.topics[name])
            yield from _assignment(desired.topics[name], live.topics[name])
            yield from _configs(desired.topics[name], live.topics[name])


def _being_deleted(name: str, desired: Desired, environment: Environment) -> Iterator[DriftEntry]:
    topic = desired.topics.get(name)
    if topic is None and not environment.protecting_pattern(name):
        yield DriftEntry(topic=name, kind=DriftKind.BEING_DELETED)
    elif topic is not None and topic.lifecycle is not Lifecycle.PAUSED:
        yield _entry(name, DriftKind.BEING_DELETED, topic.location)


def _entry(name: str, kind: DriftKind, place: Location, *, seen: LastSeen | None = None) -> DriftEntry:
    return DriftEntry(topic=name, kind=kind, file=place.file, line=place.line, seen=seen)


def _numbers(desired: DesiredTopic, live: LiveTopic) -> Iterator[DriftEntry]:
    factors = sorted(live.replication_factors)
    if desired.partitions != live.partitions:
        yield _changed(desired, "partitions", str(desired.partitions), str(live.partitions))
    if factors != [desired.replication_factor]:
        found = " and ".join(map(str, factors)) or None
        yield _changed(desired, "replicationFactor", str(desired.replication_factor), found)


def _assignment(desired: DesiredTopic, live: LiveTopic) -> Iterator[DriftEntry]:
    if desired.assignment is None:
        return
    wanted = {p: tuple(row) for p, row in desired.assignment.items()}
    if wanted != live.target_assignment:
        yield _changed(desired, "assignment", _rows(wanted), _rows(live.target_assignment))


def _rows(assignment: Mapping[int, tuple[int, ...]]) -> str:
    """Kafka's text form."""
    return ",".join(":".join(map(str, assignment[p])) for p in sorted(assignment))


def _configs(desired: DesiredTopic, live: LiveTopic) -> Iterator[DriftEntry]:
    found = canonical_overrides(live.overrides)
    for name in sorted(desired.configs.keys() | found.keys()):
        wanted, is_listed = desired.configs.get(name), name in desired.configs
        if is_listed and wanted != found.get(name):
            yield _changed(desired, f"configs.{name}", wanted, found.get(name))
        elif not is_listed:
            unlisted = _entry(live.name, DriftKind.UNLISTED, desired.location)
            yield replace(unlisted, field=f"configs.{name}", live=found[name])


def _changed(desired: DesiredTopic, field: str, wanted: str | None, live: str | None) -> DriftEntry:
    entry = _entry(desired.name, DriftKind.CHANGED, desired.location_of(field))
    return replace(entry, field=field, wanted=wanted, live=live)


LOST_CODE = Code.LOST_TOPIC
DELETED_CODE = Code.COMES_BACK_EMPTY


def lost_topics(missing: Mapping[str, LastSeen], desired: Desired, *, deleted: Collection[str]) -> dict[str, LastSeen]:
    """Those of the missing topics that files still ask for and that topicops did not delete, by name.

    Args:
        missing: Topics of earlier snapshots that are not live.
        deleted: Identities of the topics that topicops has deleted.
    """
    described = sorted(missing.keys() & desired.topics.keys())
    hold(desired.topics, described)
    return {
        name: missing[name]
        for name in described
        if desired.topics[name].lifecycle is not Lifecycle.ABSENT and missing[name].identity not in deleted
    }


def deleted_note(past: PastDelete) -> str:
    """What a reviewer must know before the topic is created again, as after the revert of a tombstone."""
    return (
        f"the run {past.run} deleted a topic of this name on {past.at}: it comes back empty, without offsets of groups"
    )


def lost_note(seen: LastSeen) -> str:
    """What a reviewer must know before the topic is created again."""
    return (
        f"the topic lived at an earlier snapshot (id {seen.identity}, seen at {seen.at}), and was deleted outside git; "
        "its records are gone"
    )
