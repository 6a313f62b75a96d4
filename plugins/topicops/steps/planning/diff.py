"""How desired and live topics differ: the delta of a plan, which Spark computes at scale, and the drift."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TypeVar

from topicops.model.cluster.snapshot import ClusterSnapshot, LastSeen, LiveTopic
from topicops.model.errors import DiffError
from topicops.model.json_types import FormatVersion
from topicops.model.memory import hold
from topicops.model.plans.delta import (
    Delta,
    DesiredRow,
    Field,
    LiveRow,
    TopicClass,
    TopicDelta,
    class_of,
    compared_overrides,
    desired_row,
    live_row,
)
from topicops.model.printable import or_not_set, plural, printable
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Environment

UNTOUCHED = frozenset({TopicClass.SAME, TopicClass.RETIRED})
"""Classes that are only counted."""

Row = TypeVar("Row", DesiredRow, LiveRow)


def diff(desired: Iterable[DesiredRow], live: Iterable[LiveRow]) -> Delta:
    """Compare desired and live topics: a full outer join on the topic's name.

    Raises ``DiffError``: One input lists a topic twice.
    """
    desired_rows, live_rows = _by_topic(desired, name="desired"), _by_topic(live, name="live")
    names = desired_rows.keys() | live_rows.keys()
    delta = delta_of(compare(desired_rows.get(name), live_rows.get(name)) for name in names)
    check_conserved(delta, desired_rows.keys(), live_rows.keys())
    return delta


def compare(desired: DesiredRow | None, live: LiveRow | None) -> TopicDelta:
    """Return one topic's class, and the fields that differ."""
    row = desired or live
    if row is None:
        raise DiffError("a topic that is neither desired nor live was to be compared")
    changed = changed_fields(desired, live) if desired and live else frozenset()
    topic_class = class_of(desired.lifecycle if desired else None, is_live=live is not None, differs=bool(changed))
    return TopicDelta(
        topic=row.topic,
        presence="both" if desired and live else "desired" if desired else "live",
        topic_class=topic_class,
        changed=changed,
        desired=desired,
        live=live,
    )


def changed_fields(desired: DesiredRow, live: LiveRow) -> frozenset[Field]:
    """Return no field for a topic that is paused or must be absent: it is not compared."""
    if desired.lifecycle != Lifecycle.PRESENT:
        return frozenset()
    live_factors = {live.replication_factor_min, live.replication_factor_max}
    differs: dict[Field, bool] = {
        "partitions": desired.partitions != live.partitions,
        "replication_factor": live_factors != {desired.replication_factor},
        "assignment": desired.assignment_digest not in (None, live.assignment_digest),
        "configs": desired.configs != live.configs,
    }
    return frozenset(name for name, is_different in differs.items() if is_different)


def delta_of(rows: Iterable[TopicDelta]) -> Delta:
    """Return the delta of one row for each topic, in any order; rows of ``UNTOUCHED`` classes are only counted."""
    every = sorted(rows, key=lambda row: row.topic)
    found = Counter(row.topic_class for row in every)
    return Delta(
        topics=tuple(row for row in every if row.topic_class not in UNTOUCHED),
        counts={topic_class: found[topic_class] for topic_class in TopicClass},
    )


def check_conserved(delta: Delta, desired_topics: Iterable[str], live_topics: Iterable[str]) -> None:
    """Check that every desired or live topic is in exactly one class.

    Raises ``DiffError``: The counts do not add up, or a topic is listed twice, or is unknown.
    """
    known = frozenset(desired_topics) | frozenset(live_topics)
    counted = sum(delta.counts.values())
    if counted != len(known):
        raise DiffError(f"{len(known)} distinct topics were compared and {counted} came back; so there is no plan")
    listed = Counter(row.topic for row in delta.topics)
    if odd := sorted(topic for topic, times in listed.items() if times > 1 or topic not in known):
        raise DiffError(f"the comparison lists topics twice, or unknown ones: {', '.join(odd[:5])}")
    rows = Counter(row.topic_class for row in delta.topics)
    if delta.counts != {word: delta.counts.get(word, 0) if word in UNTOUCHED else rows[word] for word in TopicClass}:
        raise DiffError("the comparison's rows and its counts disagree; so there is no plan")


def _by_topic(rows: Iterable[Row], *, name: str) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in rows:
        if row.topic in found:
            raise DiffError(f"topic {row.topic} is twice in the {name} topics; so there is no plan")
        found[row.topic] = row
    return found


_COMPARED = (TopicClass.DIFFERENT, TopicClass.MISSING, TopicClass.TOMBSTONED)
"""Classes that need more than the topic's name."""


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


_KEPT_BY = {DriftKind.CHANGED: "adopt", DriftKind.UNLISTED: "adopt", DriftKind.UNMANAGED: "import --only"}


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
    """Earlier snapshot with a missing topic that topicops did not delete."""


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
    """Return all differences; a paused topic has none.

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


def counted(entries: Sequence[DriftEntry]) -> Mapping[str, int]:
    """How many topics there are of each kind."""
    found = Counter(kind for kind, _ in {(entry.kind, entry.topic) for entry in entries})
    return {kind.value: found[kind] for kind in DriftKind}


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
    """Return Kafka's text form."""
    return ",".join(":".join(map(str, assignment[p])) for p in sorted(assignment))


def _configs(desired: DesiredTopic, live: LiveTopic) -> Iterator[DriftEntry]:
    found = compared_overrides(live)
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


def lost_topics(missing: Mapping[str, LastSeen], desired: Desired, *, deleted: Collection[str]) -> dict[str, LastSeen]:
    """Return those of the missing topics that files still ask for and that topicops did not delete, by name.

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


def drift_lines(entries: Sequence[DriftEntry]) -> Iterator[str]:
    """Yield one line for each difference, with the command that takes over what is live where there is one."""
    for entry in entries:
        place = f" ({entry.file}:{entry.line})" if entry.file else ""
        keep = (
            f"; to keep it: topicops {_KEPT_BY[entry.kind]} {shlex.quote(entry.topic)}"
            if entry.kind in _KEPT_BY
            else ""
        )
        yield printable(f"{entry.topic}: {_difference(entry)}{place}{keep}")


def drift_summary(report: DriftReport) -> str:
    """Return how many topics there are of each kind; where nothing was compared, that is no good news."""
    numbers = [f"{number} {kind}" for kind, number in counted(report.drift).items() if number]
    if numbers:
        return f"Drift, in topics: {', '.join(numbers)}."
    if report.compared:
        return f"No drift: the cluster agrees with the files of {plural(report.compared, 'topic')}."
    if report.only is None:
        return "Nothing was compared: no file describes a topic of this environment."
    return printable(f"Nothing was compared: no described topic matches {report.only}; a glob is of the whole name.")


def _difference(entry: DriftEntry) -> str:
    name, wanted, live = (entry.field or "").removeprefix("configs."), or_not_set(entry.wanted), or_not_set(entry.live)
    match entry.kind:
        case DriftKind.CHANGED:
            return f"{name}: {wanted} in the files, {live} live"
        case DriftKind.UNLISTED:
            return f"{name}: {live} live, but no file names it"
        case DriftKind.MISSING:
            seen = entry.seen
            outside = f"; deleted outside git (id {seen.identity}, seen at {seen.at})" if seen else ""
            return f"described in a file, but not live{outside}"
        case DriftKind.RETIRED:
            return "live, although a tombstone deletes it"
        case DriftKind.UNMANAGED:
            return "live, but no file describes it"
        case DriftKind.BEING_DELETED:
            return "being deleted: marked for deletion, and not gone yet"
