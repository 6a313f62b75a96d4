"""The sentences about a plan that all its forms share; each is one printable line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import assert_never

from topicops.model.cluster.broker_defaults import Default, DefaultOnBrokers
from topicops.model.cluster.snapshot import Assignment
from topicops.model.plans.changes import (
    Action,
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    GateWord,
    MoveReason,
    ReassignTopic,
    lets_records_go,
)
from topicops.model.plans.plan import (
    NO_RECORD,
    Drift,
    GatedChange,
    Paused,
    Plan,
    RackLossRow,
    RackLossTable,
    Share,
    TopicActivity,
)
from topicops.model.printable import about, plural, printable
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Risk
from topicops.model.specs.spellings import largest_unit
from topicops.model.specs.topic_config import SMALLEST_UNITS, TOPIC_CONFIGS, UNITS
from topicops.steps.before_deletes import groups_text, time_text
from topicops.steps.reporting.document import clipped

_LONGEST_INTEGER = 19
"""The digits of a 64-bit integer. A znode may hold more than Python converts to a number."""
_LONGEST_COUNT = 9_999
"""A larger count in another unit is no easier to read than the number itself."""
_WITHOUT_END = frozenset({"retention.ms", "retention.bytes"})
"""Configs for which -1 means no limit."""


def config_text(name: str, value: str) -> str:
    """Return ``retention.ms: 604800000 (7d)``, or ``retention.ms: 7 (7ms)``."""
    return f"{name}: {_shown(name, value)}"


def config_change_text(name: str, before: str | None, after: str | None, default: Default) -> str:
    """Return ``retention.ms: 604800000 (7d, broker default) -> 86400000 (1d, override)``.

    Args:
        before: Canonical; None: no override, so that the brokers' default is in force.
        after: Canonical; None: the override is removed.
        default: Empty: not known.
    """
    both_overrides = before is not None and after is not None
    sides = [_side(name, value, default, alone=both_overrides) for value in (before, after)]
    return f"{name}: {' -> '.join(sides)}"


def default_in_units(name: str, default: Default) -> str:
    """Return ``7d``, or ``7d (broker 1), 1h (brokers 2, 3)`` where brokers differ; empty: not known."""
    return ", ".join(
        f"{'not known' if row.value is None else in_units(name, row.value)}{f' ({row.whose})' if row.whose else ''}"
        for row in default
    )


def in_units(name: str, value: str) -> str:
    """Return ``7d``, ``7ms``, ``no limit``; a value without a unit as it is, and ``""`` for an empty one."""
    return _with_unit(name, value) or value or '""'


def _side(name: str, value: str | None, default: Default, *, alone: bool) -> str:
    """Write one value; ``alone``: both values are overrides, so the word is left out."""
    if value is not None:
        return _shown(name, value, "" if alone else "override")
    return ", ".join(_default_side(name, row) for row in default) or "(broker default, not known)"


def _default_side(name: str, row: DefaultOnBrokers) -> str:
    whose = f"default of {row.whose}" if row.whose else "broker default"
    if row.value is None:
        return f"({whose}, not known)"
    return _shown(name, row.value, whose)


def _shown(name: str, value: str, *remarks: str) -> str:
    """Return the value as Kafka has it, and in brackets the same with its unit."""
    said = ", ".join(remark for remark in (_with_unit(name, value), *remarks) if remark)
    shown = value or '""'
    return f"{shown} ({said})" if said else shown


def _with_unit(name: str, value: str) -> str:
    """Return the number in the largest unit that divides it, or in its own; empty for a config without a unit."""
    if value == "-1" and name in _WITHOUT_END:
        return "no limit"
    unit_of_config = TOPIC_CONFIGS[name].unit if name in TOPIC_CONFIGS else None
    if unit_of_config is None or not value.isdecimal() or len(value) > _LONGEST_INTEGER:
        return ""
    count, unit = largest_unit(int(value), unit_of_config)
    return f"{count}{unit}" if count <= _LONGEST_COUNT else f"{value}{SMALLEST_UNITS[unit_of_config]}"


SIGNS: Mapping[Action, str] = {"create": "+", "expand": "~", "configure": "~", "reassign": "~", "delete": "-"}
PARTICIPLES: Mapping[Action, str] = {
    "create": "created",
    "expand": "expanded",
    "configure": "configured",
    "reassign": "reassigned",
    "delete": "deleted",
}
FEW = 3
"""The most changes, blocked topics and findings with one reason that have a line each."""
_NAMES_WIDTH = 200
"""The most characters of a list of names; the first name is always shown whole."""
MOST_BROKERS = 10
"""The most brokers of which a line shows the bytes."""
MOST_MOVES = 10
"""The most partitions of which a text shows the replicas before and after a move."""
_REPLICAS_WIDTH = 80
"""The most characters of a line of replica lists."""


def title(plan: Plan) -> str:
    target = plan.target
    return printable(
        f"Plan for environment {target.environment}, cluster {target.cluster_id}, chroot {target.chroot or '/'}"
    )


def summary_line(plan: Plan) -> str:
    """Return ``Plan: 3 to create, 1 to expand …; 1 blocked, 2 unmanaged``; ``No changes.`` when nothing differs."""
    unmanaged = len(plan.change_set.unmanaged)
    if plan.is_empty and not plan.change_set.source.topics:
        return f"Nothing was planned: no file describes a topic of this environment. {unmanaged} unmanaged."
    if plan.is_empty:
        return f"No changes. {unmanaged} unmanaged." if unmanaged else "No changes."
    counts = plan.action_counts.items()
    actions = ", ".join(f"{count} to {action}" for action, count in counts if count or action != "reassign")
    held, skipped = len(plan.with_gate(GateWord.HELD)), len(plan.with_gate(GateWord.SKIPPED))
    rest = [f"{len(plan.change_set.blocked)} blocked", f"{unmanaged} unmanaged"]
    rest += [f"{count} {word}" for count, word in ((held, "held"), (skipped, "skipped")) if count]
    return f"Plan: {actions}; {', '.join(rest)}."


def final_line(plan: Plan) -> str:
    """Return ``Cannot be undone: expand a; delete b, c.``; empty when all changes can be undone."""
    final: dict[Action, list[str]] = {}
    for gated in plan.changes:
        if not gated.change.reversible:
            final.setdefault(gated.change.action, []).append(gated.change.topic)
    said = "; ".join(f"{action} {some(topics)}" for action, topics in final.items())
    return printable(f"Cannot be undone: {said}.") if said else ""


def effect_lines(change: Change, *, most_rows: int) -> Iterator[str]:
    """Yield what the change does, with at most ``most_rows`` lists of replicas: a topic may have a thousand.

    With 0 no word is said about replicas, unless the brokers place them.
    """
    match change:
        case CreateTopic():
            yield f"partitions: {change.partitions}"
            yield f"replication factor: {change.replication_factor}"
            yield from (printable(config_text(name, value)) for name, value in sorted(change.configs.items()))
            yield from _replica_lines(change.assignment, most_rows)
        case ExpandTopic():
            yield f"partitions: {change.partitions_before} -> {change.partitions}"
            yield from _replica_lines(change.assignment, most_rows)
        case ConfigureTopic():
            for name in sorted(change.configs):
                before, after = change.configs_before.get(name), change.configs[name]
                yield printable(config_change_text(name, before, after, change.default(name)))
        case ReassignTopic():
            yield from move_lines(change)
            yield from moved_rows(change, min(most_rows, MOST_MOVES))
        case DeleteTopic():
            yield f"partitions: {change.partitions}"
            yield printable(f"topic id: {change.topic_id or 'none'}")
            yield printable(f"reason: {change.reason}")
        case _:
            assert_never(change)


_WHY_MOVED: Mapping[MoveReason, str] = {
    MoveReason.FACTOR: "its file asks for another replication factor",
    MoveReason.ASSIGNMENT: "its file gives the replicas by hand",
    MoveReason.DRAIN: "a broker is drained",
    MoveReason.RACKS: "replicas share a rack, although another is free",
    MoveReason.BALANCE: "the brokers get equal shares",
}


def while_moving_line(plan: Plan, changes: Iterable[Change]) -> str:
    """Return what cannot be done to a topic that moves, and how its move is taken back; empty: nothing is copied."""
    if not any(isinstance(change, ReassignTopic) and change.added for change in changes):
        return ""
    return (
        "while replicas of a topic move, it gets no partitions and cannot be deleted; "
        f"topicops moves --environment {plan.target.environment} --cancel TOPIC takes a move back until it has ended, "
        "and afterwards only another move does"
    )


def move_lines(change: ReassignTopic) -> Iterator[str]:
    """Yield why and how many replicas move, and by broker how many it gets and loses."""
    partitions = plural(len(change.assignment), "partition")
    why = _WHY_MOVED[change.why]
    if change.is_order_only:
        yield f"another preferred leader for {partitions}, because {why}; nothing is copied"
        return
    yield f"replicas of {partitions} move, because {why}"
    before, after = factors_text(change.assignment_before), factors_text(change.assignment)
    if before != after:
        yield f"replication factor: {before} -> {after}"
    for word, replicas in (("added", change.added), ("removed", change.removed)):
        if replicas:
            yield f"replicas {word}: {replicas_by_broker(replicas)}"


def factors_text(assignment: Assignment) -> str:
    """Return ``3``, or ``2, 3`` where partitions differ."""
    return ", ".join(map(str, sorted(set(map(len, assignment.values())))))


def replicas_by_broker(replicas: Mapping[int, int]) -> str:
    """Return ``6 on broker 2, 4 on broker 3``, of the first brokers."""
    shown = [f"{replicas[broker]} on broker {broker}" for broker in sorted(replicas)]
    more = f" and {len(shown) - MOST_BROKERS} more" if len(shown) > MOST_BROKERS else ""
    return f"{', '.join(shown[:MOST_BROKERS])}{more}"


def moved_rows(change: ReassignTopic, most: int) -> Iterator[str]:
    """Yield ``0: 1,2 -> 2,3``, preferred leaders first."""
    for partition in sorted(change.assignment)[:most]:
        rows = (change.assignment_before[partition], change.assignment[partition])
        yield f"partition {partition}: {' -> '.join(','.join(map(str, row)) for row in rows)}"
    if most and (more := len(change.assignment) - most) > 0:
        yield f"… and {plural(more, 'more partition')}, all in the plan file"


def is_drained_without_file(change: Change) -> bool:
    """Return whether no topic file asks for the move: the environment's file does, because a broker is drained."""
    is_drain = isinstance(change, ReassignTopic) and change.why is MoveReason.DRAIN
    return is_drain and PurePath(change.location.file).parent.name == "environments"


def drained_title(changes: Iterable[Change]) -> str:
    """Return ``Topics without a file, moved because broker 3 is drained``."""
    brokers = sorted({broker for change in changes if isinstance(change, ReassignTopic) for broker in change.removed})
    noun, verb = ("broker", "is") if len(brokers) == 1 else ("brokers", "are")
    return f"Topics without a file, moved because {noun} {_some(brokers)} {verb} drained"


def copy_line(plan: Plan, changes: Iterable[Change]) -> str:
    """Return how much these changes copy, and how long that takes at the throttle at least; empty: they copy nothing.

    The forecast is that of the broker that sends or receives most. Which replica sends is not known before: each
    partition's preferred leader counts as the one.
    """
    moves = [change for change in changes if isinstance(change, ReassignTopic) and change.added]
    if not moves:
        return ""
    who = f"the {len(moves)} reassignments copy" if len(moves) > 1 else "copies"
    copied = sum(change.copied_bytes or 0 for change in moves)
    if unknown := [change.topic for change in moves if change.copied_bytes is None]:
        known = f"at least {size_text(copied)}; of {some(unknown)}" if len(unknown) < len(moves) else "bytes of which"
        return printable(f"{who} {known} the number is not known")
    throttle = plan.change_set.throttle
    if not copied or not throttle:
        return f"{who} {size_text(copied)}{', without a throttle' if copied else ''}"
    sent, received = Counter[int](), Counter[int]()
    for change in moves:
        each = (change.copied_bytes or 0) // change.added_replicas
        for partition, row in change.assignment.items():
            before = change.assignment_before[partition]
            new = set(row) - set(before)
            sent[before[0]] += each * len(new)
            received.update(dict.fromkeys(sorted(new), each))
    [(sender, out)], [(receiver, into)] = sent.most_common(1), received.most_common(1)
    how_long = f"{about(max(out, into) / throttle)} at {size_text(throttle)}/s (apply.throttle)"
    busiest = f"broker {sender} sends most, {size_text(out)}, and broker {receiver} receives most, {size_text(into)}"
    return f"{who} {size_text(copied)}, in at least {how_long}; {busiest}"


def why_final(change: Change) -> str:
    """Return why no later change can undo this one; empty when the change can be undone."""
    return "" if change.reversible else _WHY_FINAL[change.action]


PLACED_BY_BROKERS = "placed by the brokers"
_WHY_FINAL: Mapping[Action, str] = {
    "create": "a topic of that name will have been seen",
    "expand": "Kafka takes no partition away again",
    "configure": "records that the new values let go do not come back",
    "reassign": "copies that are removed are gone",
    "delete": "every record of the topic goes",
}


def risk_text(change: Change) -> str:
    """Return ``risky, TOP403 expanding a keyed topic``."""
    codes = [f"{code} {code.meaning}" for code in change.codes]
    return printable(", ".join((change.risk, *codes)))


def is_grave(gated: GatedChange) -> bool:
    """Return whether a reviewer must look at it before all others."""
    return gated.change.risk.rank >= Risk.RISKY.rank


def origin(location: Location, owner: str) -> str:
    """Return ``topics/shop/orders.yaml:4, team-shop``."""
    return f"{location}, {owner}" if owner else str(location)


def traffic_text(activity: TopicActivity | None) -> str:
    """Return what the brokers report about a topic that is to be deleted."""
    if activity is None or activity.end_offsets is None:
        return "traffic: could not be read"
    groups = (
        "groups could not be read" if activity.groups is None else f"groups: {some(groups_text(activity)) or 'none'}"
    )
    offsets = f"end offsets add up to {sum(activity.end_offsets.values())}"
    return printable(f"traffic: {_last_record_text(activity)}; {offsets}; {groups}")


def _last_record_text(activity: TopicActivity) -> str:
    if activity.last_record_ms is None or (activity.emptied and activity.kept_ms is None):
        return "the time of the last record is not known"
    if activity.last_record_ms == NO_RECORD:
        return "no record is left" if any((activity.end_offsets or {}).values()) else "no record was ever written"
    return f"last record of {time_text(activity.last_record_ms)}"


def disk_lines(plan: Plan, changes: Sequence[Change]) -> Iterator[str]:
    """Yield the bytes that reassignments copy, that deletes free, and that topics of shorter retention hold.

    Of the last a part may go.
    """
    if copied := copy_line(plan, changes):
        yield copied
    sizes = plan.change_set.log_bytes
    deletes, others = [list[Change](), list[Change]()]
    for change in changes:
        if change.topic in sizes and lets_records_go(change):
            (deletes if isinstance(change, DeleteTopic) else others).append(change)
    if deletes:
        who = f"the {len(deletes)} deletes free" if len(deletes) > 1 else "frees"
        yield f"{who} {_bytes_text([sizes[change.topic] for change in deletes])}"
    if others:
        who = f"the {len(others)} topics of shorter retention hold" if len(others) > 1 else "holds"
        yield f"{who} {_bytes_text([sizes[change.topic] for change in others], ' today, of which a part may go')}"


def _bytes_text(topics: Sequence[Mapping[int, int | None]], remark: str = "") -> str:
    """Return ``2.1GiB: broker 1 1.4GiB, broker 2 716.8MiB``; the bytes of one topic are a map by broker."""
    unknown = {broker for found in topics for broker, size in found.items() if size is None}
    known = Counter[int]()
    for found in topics:
        known.update({broker: size or 0 for broker, size in found.items()})
    if not known.keys() - unknown:
        return f"a number of bytes that is not known{remark}"
    shown = [f"broker {b} {'not known' if b in unknown else size_text(known[b])}" for b in sorted(known)]
    more = f" and {len(shown) - MOST_BROKERS} more" if len(shown) > MOST_BROKERS else ""
    least = "at least " if unknown else ""
    return f"{least}{size_text(known.total())}{remark}: {', '.join(shown[:MOST_BROKERS])}{more}"


def size_text(size: int) -> str:
    """Return ``1.4GiB``: in the largest unit that is not larger."""
    unit, name = max((each, name) for name, each in UNITS["bytes"].items() if each <= max(size, 1))
    return f"{size / unit:.1f}{name}" if unit > 1 else f"{size}{name}"


def drift_line(drift: Drift) -> str:
    shown = config_text(drift.config, drift.value)
    where = origin(drift.location, drift.owner)
    return printable(f"drift: {drift.topic} has {shown}, which no spec names; it stays  ({where})")


def paused_line(paused: Paused) -> str:
    until = f"until {paused.until}" if paused.until else "without end"
    return printable(f"paused: {paused.topic} {until}: {paused.reason}  ({origin(paused.location, paused.owner)})")


def other_lines(plan: Plan) -> list[str]:
    """Return all that is not a change: drift, paused topics, warnings, unmanaged topics."""
    found = plan.change_set
    lines = [drift_line(drift) for drift in found.drift]
    lines += [paused_line(paused) for paused in found.paused]
    lines += [printable(f"warning: {warning}") for warning in found.warnings]
    lines += [line for line in disk_lines(plan, found.changes) if line.startswith("the ")]
    lines += [line for line in (_room_line(plan), missing_line(plan), while_moving_line(plan, found.changes)) if line]
    if found.unmanaged:
        lines.append(printable(f"unmanaged: {some(found.unmanaged)}"))
    return lines


def _room_line(plan: Plan) -> str:
    """Return which broker has the least free bytes once it has its copies; empty: no broker tells."""
    free = plan.change_set.load.free_bytes
    if not free:
        return ""
    least = min(free, key=lambda broker: (free[broker], broker))
    of = f", the least of {len(free)} that get copies" if len(free) > 1 else ""
    return f"disk after the moves: broker {least} has {size_text(free[least])} free{of}"


def missing_line(plan: Plan) -> str:
    """Return how many described topics the cluster lacks, where it lacks more of them than it has; empty elsewhere.

    So a cluster shows for which these files were not written.
    """
    found = plan.change_set
    missing, live = plan.action_counts["create"], found.cluster.managed_topics
    if missing <= live or found.source.only is not None:
        return ""
    of = f"the {missing}" if not live else f"{missing + live}"
    return printable(
        f"missing: {missing} of {of} described topics are not in this cluster; to keep topics out of "
        f"{plan.target.environment}, write metadata.environments into their files"
    )


def approval_lines(plan: Plan) -> list[str]:
    """Say how to let the held changes run, and which no approval lets run; empty when none is held."""
    return [line for line in (*command_lines(plan), final_hold_line(plan)) if line]


def command_lines(plan: Plan) -> list[str]:
    """Say how to approve held changes by the command, and for which of them that does not count."""
    lines = []
    if here := len(plan.held_for(command=True)):
        lines.append(f"{here} held: to run them too, apply with --approve {plan.key} (of {plan.fingerprint})")
    if elsewhere := len(plan.held_for(command=False)):
        lines.append(
            f"{elsewhere} held: --approve does not count here (policy.approvals, policy.authorApproves); another "
            "person must approve, in a way that the policy names"
        )
    return lines


def final_hold_line(plan: Plan) -> str:
    """Return how many changes are held by a limit that no approval lifts."""
    final = sum(not gated.approvable for gated in plan.with_gate(GateWord.HELD))
    return f"{final} held by a limit that no approval lifts: merge another limit, or fewer deletes" if final else ""


def load_rows(plan: Plan) -> list[tuple[str, str, str]]:
    """Show who holds how many replicas and leaders, ``120 -> 126 (+6)``; racks only if one has several brokers."""
    load = plan.change_set.load
    rows = [
        (f"broker {row.broker}" + (f", rack {row.rack}" if row.rack is not None else ""), row.before, row.after)
        for row in load.brokers
    ]
    if any(rack.brokers > 1 for rack in load.racks):
        rows += [(f"rack {row.rack}, {plural(row.brokers, 'broker')}", row.before, row.after) for row in load.racks]
    return [(printable(who), *growth_texts(before, after)) for who, before, after in rows]


def some(names: Iterable[str]) -> str:
    """Return the first names in order, as many as fit on a line, and how many more there are."""
    listed = sorted(names)
    room, shown = _NAMES_WIDTH, listed[:1]
    for name in listed[1:]:
        room -= len(shown[-1]) + len(", ")
        if room < len(name):
            break
        shown.append(name)
    more = len(listed) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def growth_texts(before: Share, after: Share) -> tuple[str, str]:
    """Show replicas and leaders: ``120 -> 126 (+6)``, or only the number when it does not change."""
    pairs = ((before.replicas, after.replicas), (before.leaders, after.leaders))
    replicas, leaders = (f"{old} -> {new} ({new - old:+d})" if new != old else f"{old}" for old, new in pairs)
    return replicas, leaders


def _replica_lines(assignment: Assignment, most_rows: int) -> Iterator[str]:
    """Yield ``replicas: 0: 1,2,3 1: 2,3,1``, wrapped; the preferred leader stands first."""
    rows = [f"{partition}: {','.join(map(str, assignment[partition]))}" for partition in sorted(assignment)]
    if not rows:
        yield f"replicas: {PLACED_BY_BROKERS}"
    shown = rows[:most_rows]
    if not shown:
        return
    yield from _wrapped("replicas:", shown)
    if more := len(rows) - len(shown):
        yield f"… and {plural(more, 'more partition')}, all in the plan file"


def _wrapped(label: str, rows: Sequence[str]) -> Iterator[str]:
    """Yield the rows in columns, with the label before the first line."""
    width = max(map(len, rows), default=0)
    per_line = max(1, _REPLICAS_WIDTH // (width + 2))
    for first in range(0, len(rows), per_line):
        cells = [row.ljust(width) for row in rows[first : first + per_line]]
        yield f"{label if first == 0 else ' ' * len(label)} {'  '.join(cells)}".rstrip()


LOSSES_TITLE = "If a rack is lost after the plan has run"

LONGEST_RACK = 60
"""Characters of a rack's name that a line shows, so that its counts are never cut off."""


def loss_row(row: RackLossRow) -> str:
    """Return ``with rack r2 gone: 0 offline, 4 below min ISR``; where they are others, the counts of now too."""
    before, after, rack = row.before, row.after, clipped(row.rack, LONGEST_RACK)
    line = f"with rack {rack} gone: {after.offline} offline, {after.below_min_isr} below min ISR"
    if (before.offline, before.below_min_isr) == (after.offline, after.below_min_isr):
        return line
    return f"{line} (now {before.offline} and {before.below_min_isr})"


def worst_losses(table: RackLossTable, most: int) -> Sequence[RackLossRow]:
    """Return all racks by name, if there are no more than these; else the worst, those first that cost most."""
    if len(table.racks) <= most:
        return table.racks
    return sorted(table.racks, key=lambda row: (-row.after.offline, -row.after.below_min_isr, row.rack))[:most]


def loss_remarks(table: RackLossTable) -> Iterator[str]:
    """Yield what a reader of the counts must know, or why there are none."""
    rackless = table.brokers_without_rack
    if not table.racks and table.only_rack is None:
        yield "No broker names its rack, so what the loss of one costs is not known: set broker.rack."
    elif not table.racks and table.only_rack is not None:
        yield f"All brokers are on one rack, {clipped(table.only_rack, LONGEST_RACK)}: its loss leaves none."
    elif rackless:
        noun, verb = ("broker", "counts") if len(rackless) == 1 else ("brokers", "count")
        yield f"The {noun} without a rack, {_some(rackless)}, {verb} as live in each line."
    if table.racks and not table.knows_broker_defaults:
        yield "No broker reported min.insync.replicas: 1 is used for topics without their own."


def _some(brokers: Sequence[int]) -> str:
    more = len(brokers) - 10
    return f"{', '.join(map(str, brokers[:10]))}{f' and {more} more' if more > 0 else ''}"
