"""While verify waits it says when something became better or worse, and else only from time to time."""

from __future__ import annotations

from fakes.fake_ports import FakeClock
from topicops.flow.verifying import ProgressLines
from topicops.model.ports import Clock
from topicops.steps.verifying.watch import Progress


def seen(healthy: int, waiting_for: str = "") -> Progress:
    return Progress(healthy=healthy, topics=3, waiting_for=(waiting_for,) if waiting_for else ())


def test_two_texts_in_turn_are_said_every_five_seconds_and_not_each_time() -> None:
    clock, said = FakeClock(), list[str]()
    lines = ProgressLines(say=said.append, clock=Clock(clock, clock.sleep))

    for turn in range(27 * 4):
        lines.take(seen(0, "t: its configs differ" if turn % 2 else ""))
        clock.sleep(0.25)

    assert len(said) == 6
    assert set(said) <= {"verify: 0 of 3 topics are right", "verify: 0 of 3 topics are right; t: its configs differ"}


def test_what_becomes_right_or_wrong_is_said_at_once() -> None:
    clock, said = FakeClock(), list[str]()
    lines = ProgressLines(say=said.append, clock=Clock(clock, clock.sleep))

    for healthy in (0, 0, 2, 2, 1, 3):
        lines.take(seen(healthy))
        clock.sleep(0.1)

    assert [line.partition(" of")[0] for line in said] == ["verify: 0", "verify: 2", "verify: 1", "verify: 3"]
