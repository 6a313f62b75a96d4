"""What a run sent and did not come to verify: the next run looks at it first."""

from __future__ import annotations

from fixtures.simulated import Simulated
from topicops.flow import single_steps
from topicops.flow.runs.memory import unverified_of
from topicops.flow.verifying import verify_left


def test_what_was_sent_is_unverified_until_somebody_looked(simulated: Simulated) -> None:
    simulated.workspace.topic("orders")
    simulated.workspace.topic("items")
    first = simulated.planned("1")
    simulated.apply(first)
    assert sorted(unverified_of(first).own()) == ["items", "orders"]
    assert not unverified_of(first).earlier(), "not of an earlier run"
    single_steps.verify(first)
    assert not unverified_of(first).own()


def test_what_an_earlier_run_left_stays_when_a_later_one_sends_nothing_to_it(simulated: Simulated) -> None:
    first, second = simulated.opened("1"), simulated.opened("2")
    unverified_of(first).note(["orders"])
    unverified_of(second).note(["orders", "items"])
    unverified_of(second).note_not_sent(["orders", "items"])
    assert unverified_of(second).earlier() == {"orders": first.name}


def test_the_next_run_verifies_what_an_earlier_one_left(simulated: Simulated) -> None:
    simulated.workspace.topic("orders")
    simulated.workspace.topic("items")
    first = simulated.planned("1")
    simulated.apply(first)
    simulated.cluster.hold_back(1)
    second = simulated.planned("2")
    assert len(unverified_of(second).earlier()) == 2
    (sentence,) = verify_left(second)
    assert sentence.startswith(
        f"run {first.name} ended before it had verified 2 topics that it may have changed; now: "
    )
    assert verify_left(second) == []
    assert not unverified_of(second).earlier()
