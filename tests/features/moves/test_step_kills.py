"""The process is killed at every single call of its steps: later steps reach the same end, and leave nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fixtures.moves.cluster import Kind
from fixtures.moves.mover import Mover, killed_at, world
from topicops.features.moves.record import TopicPartition

TARGETS: Mapping[str, Mapping[int, tuple[int, ...]]] = {
    "factor": {0: (1, 2, 3), 1: (2, 3)},
    "drain": {0: (4, 2, 3), 1: (2, 3)},
    "order": {0: (3, 1, 2)},
}
ENDED = {TopicPartition(topic, p): row for topic, rows in TARGETS.items() for p, row in rows.items()}


def accepted(kind: Kind, *, at_once: int) -> Mover:
    rows = {"factor": {0: (1,), 1: (2,)}, "drain": {0: (1, 2, 3), 1: (2, 3, 1)}, "order": {0: (1, 2, 3)}}
    mover = world(rows, kind=kind, at_once=at_once)
    for topic, target in TARGETS.items():
        mover.accept(topic, target)
    return mover


def calls_of(kind: Kind, *, at_once: int) -> int:
    mover = accepted(kind, at_once=at_once)
    mover.steps(every_s=10)
    return len(mover.cluster.calls)


@pytest.mark.parametrize("after", [False, True], ids=["before it", "after it"])
@pytest.mark.parametrize("at_once", [3, 50], ids=["two waves", "one wave"])
@pytest.mark.parametrize("kind", [*Kind])
def test_a_kill_at_any_call_changes_nothing_about_the_end(kind: Kind, at_once: int, after: bool) -> None:
    problems = {}
    calls = calls_of(kind, at_once=at_once)
    for number in range(1, calls + 1):
        mover = accepted(kind, at_once=at_once)
        mover.cluster.before_call, mover.cluster.after_call = killed_at(number, after=after)
        steps = mover.steps(every_s=31)
        rows = {at: found.replicas for at, found in mover.cluster.all_partitions().items()}
        ended = sum(end.partitions for end in mover.record.ended if end.status == "done")
        if rows != ENDED or ended != len(ENDED) or steps > 5 or mover.left() or mover.cluster.violations:
            problems[number, mover.cluster.calls[number - 1]] = (rows, ended, steps, mover.left())
    assert problems == {}
    assert calls > 30


@pytest.mark.parametrize("kind", [*Kind])
def test_a_kill_at_any_call_of_a_cancel_leaves_the_origin_or_the_target(kind: Kind) -> None:
    def cancelled() -> Mover:
        mover = world({"a": {0: (1, 2)}, "b": {0: (1,)}}, kind=kind, size=3e9)
        mover.accept("a", {0: (3, 4)})
        mover.accept("b", {0: (2, 3)})
        mover.step()
        mover.cancel("a", "b")
        return mover

    begun = len(cancelled().cluster.calls)
    known = cancelled()
    known.steps(every_s=31)
    for number in range(begun + 1, len(known.cluster.calls) + 1):
        for after in (False, True):
            mover = cancelled()
            mover.cluster.before_call, mover.cluster.after_call = killed_at(number, after=after)
            mover.steps(every_s=31)
            assert {end.status for end in mover.record.ended} == {"cancelled"}
            assert [found.replicas for found in mover.cluster.all_partitions().values()] == [(1, 2), (1,)]
            assert mover.left() == []
            assert mover.cluster.violations == []
