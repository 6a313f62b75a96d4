"""A rehearsal as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.features.rehearse.losses import PartitionName, RackLoss, RackLosses
from topicops.features.rehearse.moving import BrokerLoss, MoveLosses, Troubled
from topicops.features.rehearse.played import (
    Effect,
    Rehearsal,
    RehearsedChange,
    RehearsedLoad,
    RehearsedPartition,
    RehearsedTopic,
)
from topicops.model.printable import plural, printable
from topicops.steps.reporting.document import Section, as_text

NAMES_SHOWN = 10
"""Number of partitions that a line names; JSON has all."""


def rehearsal_text(found: Rehearsal) -> str:
    """Show what happens, the changes, each topic of the plan, the brokers' load, and what is lost, in this order."""
    changes = [f"{change.action} {change.topic}: {_effect(change)}" for change in found.changes]
    sections = [
        Section(rows=[f"Rehearsal in {found.environment}: {_story(found)}."]),
        Section(title="Changes", rows=changes),
        Section(title="Topics afterwards", rows=[line for topic in found.topics for line in _topic_lines(topic)]),
        Section(title="Load afterwards", rows=list(map(_load_text, found.load))),
        Section(title=f"Afterwards, of {plural(found.partitions, 'partition')}", rows=list(_loss_lines(found))),
    ]
    return as_text(sections).rstrip("\n")


def racks_text(found: RackLosses) -> str:
    rows = list(map(_rack_line, found.racks))
    if found.brokers_without_rack:
        rows.append(f"Brokers without a rack stay in each line: {_ids(found.brokers_without_rack)}")
    return as_text([Section(rows=[_racks_head(found)]), Section(rows=rows)]).rstrip("\n")


def moves_text(found: MoveLosses) -> str:
    head = (
        f"Moves in {found.environment}: {plural(found.partitions, 'partition')} of {plural(found.topics, 'topic')}, "
        "before the moves, in the middle of them, and after them."
    )
    end = "No loss of a broker costs more while replicas move than it does before."
    rows = [line for loss in found.losses for line in _moving_lines(loss)]
    return as_text([Section(rows=[head]), Section(rows=rows), Section(rows=[end] if found.is_safe else [])]).rstrip(
        "\n"
    )


def _moving_lines(loss: BrokerLoss) -> Iterator[str]:
    rack = f" ({loss.rack})" if loss.rack else ""
    name = "without a loss" if loss.broker is None else f"without broker {loss.broker}{rack}"
    stages = (loss.before, loss.moving, loss.after)
    offline, below = (" -> ".join(map(str, counts)) for counts in zip(*map(_counts, stages), strict=True))
    yield f"{name}: {offline} offline, {below} below min.insync.replicas"
    if loss.examples:
        number = loss.moving.offline + loss.moving.below_min_isr
        only = f"; {loss.worse} of them only then" if loss.worse else ""
        yield f"  while they move{_names(loss.examples, number)}{only}"


def _counts(found: Troubled) -> tuple[int, int]:
    return found.offline, found.below_min_isr


def _story(found: Rehearsal) -> str:
    changes = plural(len(found.changes), "change")
    if not found.lost_brokers:
        return changes
    when = f"after change {found.step}" if found.step else "before the first change"
    then = "after them" if found.step == len(found.changes) else when
    names = [f"{row.broker} ({row.rack})" if row.rack else str(row.broker) for row in found.load if row.is_lost]
    lost = f"broker {names[0]} is" if len(names) == 1 else f"brokers {', '.join(names)} are"
    return f"{changes}; {lost} lost{f' {then}' if found.changes else ''}"


def _effect(change: RehearsedChange) -> str:
    return f"{change.effect}: {change.reason}" if change.reason else change.effect


def _topic_lines(topic: RehearsedTopic) -> Iterator[str]:
    if not topic.partitions:
        yield f"{topic.topic}: {'marked for deletion' if topic.is_deleting else 'absent'}"
        return
    yield topic.topic
    yield from (f"  {_partition_text(partition)}" for partition in topic.partitions)


def _partition_text(found: RehearsedPartition) -> str:
    leader = "no leader" if found.leader is None else f"leader {found.leader}"
    was = f" (was {found.leader_before})" if found.leader_before not in (None, found.leader) else ""
    below = "; producers with acks=all fail" if found.is_below_min_isr else ""
    return f"partition {found.partition}: {leader}{was}, replicas {_ids(found.replicas)}, ISR {_ids(found.isr)}{below}"


def _load_text(row: RehearsedLoad) -> str:
    rack = f" ({row.rack})" if row.rack else ""
    if row.is_lost:
        return f"broker {row.broker}{rack}: lost, with {plural(row.leaders_before, 'leader')} before"
    leaders, replicas = _arrow(row.leaders_before, row.leaders), _arrow(row.replicas_before, row.replicas)
    return f"broker {row.broker}{rack}: leaders {leaders}, replicas {replicas}"


def _arrow(before: int, after: int) -> str:
    return str(after) if before == after else f"{before} -> {after}"


def _loss_lines(found: Rehearsal) -> Iterator[str]:
    yield f"{len(found.offline)} offline ({found.offline_before} before){_names(found.offline)}"
    below, names = f"{len(found.below_min_isr)} below min.insync.replicas", _names(found.below_min_isr)
    yield f"{below} ({found.below_min_isr_before} before){names}"
    if hanging := found.with_effect(Effect.HANGS):
        yield f"{plural(len(hanging), 'delete')} that would hang: {', '.join(change.topic for change in hanging)}"


def _racks_head(found: RackLosses) -> str:
    return (
        f"{found.environment}{', after the plan' if found.after_plan else ''}: {plural(found.topics, 'topic')}, "
        f"{plural(found.partitions, 'partition')}; now {found.offline_now} offline, "
        f"{found.below_min_isr_now} below min.insync.replicas, at most {found.most_leaders_now} leaders on a broker."
    )


def _rack_line(loss: RackLoss) -> str:
    offline, below = _names(loss.offline_examples, loss.offline), _names(loss.below_examples, loss.below_min_isr)
    return (
        f"without {loss.rack} (brokers {_ids(loss.brokers)}): {loss.offline} offline{offline}, "
        f"{loss.below_min_isr} below min.insync.replicas{below}, {loss.moved_leaders} leaders move, "
        f"at most {loss.most_leaders} on a broker"
    )


def _names(names: Sequence[PartitionName], number: int | None = None) -> str:
    if not names:
        return ""
    left = (len(names) if number is None else number) - len(names[:NAMES_SHOWN])
    return f" ({', '.join(printable(str(name)) for name in names[:NAMES_SHOWN])}{f' and {left} more' if left else ''})"


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers)) or "none"
