"""``min.insync.replicas`` and a move: where producers with ``acks=all`` would be refused by it, a while or for good."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from topicops.features.moves.asked.resizing import kept_replicas, rack_of_each
from topicops.features.moves.asked.rows import racks_of, rows_by_hand, sizes_of
from topicops.model.codes import Code
from topicops.model.release import CAPPED_MIN_ISR
from topicops.model.specs.topic_config import MIN_ISR, canonical_overrides
from topicops.steps.planning.blocking import Finding, Situation, min_isr_values


def min_isr_of_file(situation: Situation) -> set[int | None]:
    topic = situation.topic
    own = canonical_overrides(topic.overrides).get(MIN_ISR) if topic else None
    return min_isr_values(situation, situation.edits.after.get(MIN_ISR, own))


def min_isr_problem(situation: Situation, values: Collection[int | None]) -> Finding | None:
    """Return where producers with ``acks=all`` would be refused by the move, while it runs or for good.

    Args:
        values: What ``min.insync.replicas`` may be; None among them: not known, and the worst counts.
    """
    return _too_few_meanwhile(situation, values) or _too_few_afterwards(situation, values)


def _too_few_meanwhile(situation: Situation, values: Collection[int | None]) -> Finding | None:
    """Replicas that are being added count for the cap of ``min.insync.replicas``, and they are not in sync yet.

    Source: kafka.cluster.Partition#effectiveMinIsr (3.7 and later). Before, nothing is capped, so nothing gets worse.
    """
    releases, sizes = situation.live.releases, _sizes_meanwhile(situation)
    if releases is not None and releases.newest < CAPPED_MIN_ISR:
        return None
    in_sync = _in_sync(situation)
    short = [p for p, (now, then) in sizes.items() if any(_is_short(in_sync[p], now, then, value) for value in values)]
    if not short:
        return None
    fewest = max(1, min(in_sync[p] for p in short))
    which = f"partition{'s' if short[1:] else ''} {', '.join(map(str, short[:10]))}"
    reason = (
        f"{_shown(values)}, and of {which} only {fewest} {'is' if fewest == 1 else 'are'} in sync: since Kafka "
        f"{CAPPED_MIN_ISR} producers with acks=all are refused until the new replicas are in sync"
    )
    first = f"set {MIN_ISR}: {fewest} {_where(situation)} and apply that"
    way_out = f"{first}, then let the replicas move, and raise it again when they are in sync"
    return Finding(Code.MIN_ISR_ABOVE_ISR, reason, way_out, _field_of(situation))


def _is_short(in_sync: int, now: int, then: int, value: int | None) -> bool:
    """Return whether a partition of ``now`` replicas takes records, and refuses them while it has ``then``."""
    if value is None:
        return then > now and in_sync < then
    return min(value, now) <= in_sync < min(value, then)


def _too_few_afterwards(situation: Situation, values: Collection[int | None]) -> Finding | None:
    rows = situation.topic.target_assignment if situation.topic else {}
    fewer = [size for p, size in sizes_of(situation).items() if size < len(rows[p])]
    if not fewer or all(value is not None and value <= min(fewer) for value in values):
        return None
    reason = f"{_shown(values)}, and the replication factor is to be {min(fewer)}"
    way_out = f"set {MIN_ISR}: {min(fewer)} {_where(situation)} and apply that, then lower the replication factor"
    return Finding(Code.MIN_ISR_ABOVE_ISR, reason, way_out, _field_of(situation))


def _shown(values: Collection[int | None]) -> str:
    known = [value for value in values if value is not None]
    unknown = f"{MIN_ISR} is not known on every broker"
    return unknown if None in values else f"{MIN_ISR} is {max(known, default=1)}"


def _where(situation: Situation) -> str:
    return "on the topic (kafka-configs)" if situation.is_unmanaged else "in its file"


def _field_of(situation: Situation) -> str:
    return "assignment" if situation.desired.assignment else "replicationFactor"


def _sizes_meanwhile(situation: Situation) -> Mapping[int, tuple[int, int]]:
    """Return how many replicas each partition has now, and while it moves: those of both sides together."""
    rows, sizes = (situation.topic.target_assignment if situation.topic else {}), sizes_of(situation)
    if situation.desired.assignment is not None:
        moved = rows_by_hand(situation)
        return {p: (len(row), len({*row, *moved.get(p, ())})) for p, row in rows.items()}
    racks, takers = racks_of(situation)
    rack_of = rack_of_each(racks)
    open_racks = {rack_of[broker] for broker in takers}
    return {
        p: (len(row), len(row) + sizes[p] - kept)
        for p, row in rows.items()
        if (len(row) != sizes[p] or not racks.keys() >= set(row))
        and (kept := kept_replicas(row, sizes[p], rack_of, open_racks)) < sizes[p]
    }


def _in_sync(situation: Situation) -> Mapping[int, int]:
    """Return how many replicas of each partition are in sync; the live ones, where the states were not read."""
    topic, live = situation.topic, situation.live
    if topic is None:
        return {}
    if topic.states is None:
        return {p: sum(broker in live.brokers for broker in row) for p, row in topic.target_assignment.items()}
    return {p: len(topic.states[p].isr) if p in topic.states else 0 for p in topic.target_assignment}
