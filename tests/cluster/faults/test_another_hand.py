"""Another program changes the same topics: between plan and apply, and between apply's last read and its request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from fixtures.fault_runs import DAY, FaultRun
from fixtures.proxy import Fate, Strike
from topicops.model.plans.changes import Action

Meddling = Callable[[FaultRun], None]
REQUESTS: Mapping[Action, str] = {
    "create": "CreateTopics",
    "expand": "CreatePartitions",
    "configure": "IncrementalAlterConfigs",
    "delete": "DeleteTopics",
}
WORST: Mapping[str, tuple[Action, Meddling]] = {
    "creates what we create": ("create", lambda run: run.other_hand.create(run.new, partitions=5)),
    "expands what we expand": ("expand", lambda run: run.other_hand.expand(run.grow, 6)),
    "re-creates what we expand": ("expand", lambda run: run.recreate(run.grow)),
    "deletes what we expand": ("expand", lambda run: run.take_away(run.grow)),
    "sets what we set": ("configure", lambda run: run.other_hand.configure(run.tuned, retention_ms="77")),
    "sets another config": ("configure", lambda run: run.other_hand.configure(run.tuned, max_message_bytes="77777")),
    "re-creates what we configure": ("configure", lambda run: run.recreate(run.tuned)),
    "re-creates what we delete": ("delete", lambda run: run.recreate(run.old)),
    "deletes what we delete": ("delete", lambda run: run.take_away(run.old)),
}
NO_HARM = ("sets another config", "deletes what we delete")
"""After these the plan is still right."""
LAST_WRITER_WINS = ("sets what we set",)
"""In the gap between the last read and the request: Kafka has no precondition for it."""
TOLD_BY_VERIFY = ("re-creates what we expand", "re-creates what we configure")
"""In that gap the request reaches the new topic, which Kafka knows by its name only."""
IN_MAKE_TEST = ("re-creates what we delete",)


def every(stories: Mapping[str, object]) -> list[object]:
    return [pytest.param(story, marks=() if story in IN_MAKE_TEST else pytest.mark.soak) for story in stories]


def topic_of(run: FaultRun, action: Action) -> str:
    return {"create": run.new, "expand": run.grow, "configure": run.tuned, "delete": run.old}[action]


@pytest.mark.parametrize("story", every(WORST))
def test_what_moved_since_the_plan_is_refused_and_left_alone(fault_run: FaultRun, story: str) -> None:
    action, meddle = WORST[story]
    topic = topic_of(fault_run, action)
    meddle(fault_run)
    fault_run.meddled.add(topic)
    as_they_left_it = fault_run.look()[topic]

    ended = fault_run.again()

    history = fault_run.check(story=f"between plan and apply: {story}, status {ended.status}")
    if story in NO_HARM:
        assert ended.status == 0, ended.err
        return
    assert ended.status == 6, ended.err
    assert f"{action} {topic}: refused (the topic changed since the plan (TOP501)" in ended.err
    assert history.after[topic] == as_they_left_it
    assert not any((seen.action, seen.topic) == (action, topic) for seen in history.requests)


@pytest.mark.parametrize("story", every(WORST))
def test_what_moves_between_the_last_look_and_the_request_is_never_deleted_or_cut_back(
    fault_run: FaultRun, story: str
) -> None:
    action, meddle = WORST[story]
    topic = topic_of(fault_run, action)
    fault_run.meddled.add(topic)
    left: list[object] = []

    def strike() -> None:
        meddle(fault_run)
        left.append(fault_run.look()[topic])

    with fault_run.between(Strike(REQUESTS[action], Fate.PASS, before=strike)) as (brokers, _):
        ended = fault_run.again()

    history = fault_run.check(story=f"between look and request: {story}, status {ended.status}")
    assert len(brokers.done) == 1
    assert ended.status == status_after(story), f"{ended.err}\nreproduce: {fault_run.reproduce}"
    if story in TOLD_BY_VERIFY:
        # At once: no read will ever show the old topic again.
        assert "3 of 4 topics are right" in ended.err
        assert "it was deleted and created again" in ended.out
    if ended.status == 6:
        assert [history.after[topic]] == left, fault_run.reproduce


def status_after(story: str) -> int:
    if story in TOLD_BY_VERIFY:
        return 7
    return 0 if story in (*NO_HARM, *LAST_WRITER_WINS) else 6


@pytest.mark.soak
def test_a_topic_in_no_plan_may_change_and_the_plan_still_applies(fault_run: FaultRun) -> None:
    fault_run.other_hand.configure(fault_run.other, retention_ms=DAY)
    fault_run.recreate(fault_run.other)
    fault_run.meddled.add(fault_run.other)

    assert fault_run.again().status == 0

    fault_run.check(story="a bystander changed")


@pytest.mark.soak
def test_a_config_that_half_a_creation_left_behind_is_replaced(fault_run: FaultRun) -> None:
    leftover = {"version": 1, "config": {"retention.ms": "1", "max.message.bytes": "77777"}}
    fault_run.znodes.create(f"/config/topics/{fault_run.new}", json.dumps(leftover).encode())

    assert fault_run.again().status == 0

    fault_run.check(story="a config was left behind")
