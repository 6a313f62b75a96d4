"""When moves are said to end, beside when they end: on a simulated cluster whose copies share the throttle."""

from __future__ import annotations

import random

import pytest

from fixtures.moves.cluster import MB
from fixtures.moves.mover import Mover, world
from topicops.features.moves.record import PartitionMove, TopicPartition
from topicops.features.moves.telling.status import status_of

MINUTE_S = 60.0
BROKERS = range(1, 7)


def moving(seed: int) -> Mover:
    """Forty partitions of very different sizes that leave broker 6, most of them to one of two brokers."""
    chosen = random.Random(seed)
    rows = {f"topic-{n}": {p: (chosen.choice((6, 6, 1, 2, 3)), 0) for p in range(4)} for n in range(10)}
    rows = {name: {p: tuple(dict.fromkeys((row[0], 6))) for p, row in its.items()} for name, its in rows.items()}
    mover = world(rows, brokers=len(BROKERS), at_once=20, per_broker=3, throttle=2 * MB)
    for name, its in rows.items():
        for p in its:
            found = mover.cluster.partition(TopicPartition(name, p))
            found.size = chosen.lognormvariate(5.0, 0.8) * MB
            found.logs = dict.fromkeys(found.replicas, found.size)
        target = {p: tuple(b for b in row if b != 6) for p, row in its.items()}
        takers = {p: [b for b in (4, 4, 5, 3) if b not in row] for p, row in target.items()}
        mover.accept(name, {p: (*row, chosen.choice(takers[p])) for p, row in target.items()})
    return mover


@pytest.mark.parametrize("seed", range(8))
def test_after_a_fifth_of_the_time_the_end_is_known_to_a_quarter(seed: int) -> None:
    mover, said = moving(seed), list[tuple[float, int | None]]()
    for _ in range(400):
        mover.step()
        if mover.record.is_idle:
            break
        said.append((mover.cluster.seconds, status_of("local", mover.record).left_s))
        mover.cluster.advance(MINUTE_S)
    took = mover.cluster.seconds
    assert took > 20 * MINUTE_S
    late = [(at, left) for at, left in said if at >= took / 5]
    ends = [at + (left or 0) for at, left in late]
    assert ends == [pytest.approx(took, abs=took / 4)] * len(ends)


def test_what_waits_counts_with_its_own_size() -> None:
    mover = world({"a": {0: (1,)}, "b": {0: (1,)}}, brokers=2, at_once=1, throttle=1 * MB)
    for name, size in (("a", 600.0), ("b", 1800.0)):
        found = mover.cluster.partition(TopicPartition(name, 0))
        found.size, found.logs = size * MB, {1: size * MB}
        mover.accept(name, {0: (2,)})
    mover.step()
    mover.cluster.advance(MINUTE_S)
    mover.step()
    left = status_of("local", mover.record).left_s
    assert left == pytest.approx(2400 - MINUTE_S, rel=0.02)


def test_the_speed_is_that_of_late() -> None:
    mover = world({"a": {0: (1,)}}, brokers=2, size=54_000.0 * MB, throttle=4 * MB)
    mover.accept("a", {0: (2,)})
    for rate in (4, 1):
        mover.change_throttle(rate * MB)
        for _ in range(15):
            mover.step()
            mover.cluster.advance(MINUTE_S)
    (found,) = moves_of(mover)
    assert found.bytes_per_s == pytest.approx(1 * MB, rel=0.05)
    assert found.copied_bytes > 30 * MINUTE_S * MB


def moves_of(mover: Mover) -> list[PartitionMove]:
    return [found for _, _, found in mover.record.moving()]
