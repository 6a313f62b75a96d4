"""A topic that was deleted outside git comes back as a create that says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.builders import desired_of, desired_topic, environment, paused_topic, snapshot, tombstone
from fixtures.planning import plan_of
from topicops.model.cluster.snapshot import LastSeen
from topicops.model.plans.changes import CreateTopic, GateWord
from topicops.model.specs.environment import Policy, Risk
from topicops.steps.planning.diff import lost_topics
from topicops.steps.planning.gate import gate

SEEN = LastSeen(identity="id-of-a", at="2026-01-31T12:00:00Z")


def created(*, lost: bool) -> CreateTopic:
    live = replace(snapshot(orphan_configs=frozenset({"a"})), lost={"a": SEEN} if lost else {})
    (change,) = plan_of(desired_of(desired_topic("a")), live).changes
    assert isinstance(change, CreateTopic)
    return change


def test_a_create_of_a_lost_topic_says_so_first_and_is_a_notice() -> None:
    change = created(lost=True)
    assert (change.risk, change.codes) == (Risk.NOTICE, ("TOP430",))
    assert change.notes == (
        "the topic lived at an earlier snapshot (id id-of-a, seen at 2026-01-31T12:00:00Z), and was deleted outside "
        "git; its records are gone",
        "the config znode of an earlier topic of this name is replaced",
    )


def test_nothing_else_of_the_create_depends_on_it() -> None:
    plain = created(lost=False)
    assert (plain.risk, plain.codes, len(plain.notes)) == (Risk.SAFE, (), 1)
    assert replace(created(lost=True), risk=plain.risk, codes=plain.codes, notes=plain.notes) == plain


def test_where_only_safe_changes_run_unattended_it_is_held() -> None:
    live = replace(snapshot(), lost={"a": SEEN})
    careful = environment(policy=Policy(unattended=Risk.SAFE))
    plan = gate(plan_of(desired_of(desired_topic("a"), desired_topic("b")), live, careful), careful)
    assert [(gated.change.topic, gated.gate) for gated in plan.changes] == [("a", GateWord.HELD), ("b", GateWord.RUN)]


@pytest.mark.parametrize(
    ("topic", "deleted", "is_lost"),
    [
        pytest.param(desired_topic("a"), (), True, id="its file asks for it"),
        pytest.param(paused_topic("a"), (), True, id="paused: its file asks for it later"),
        pytest.param(desired_topic("a"), ("another",), True, id="topicops deleted an earlier topic of that name"),
        pytest.param(desired_topic("a"), ("id-of-a",), False, id="topicops deleted it"),
        pytest.param(tombstone("a"), (), False, id="its file wants it absent"),
        pytest.param(desired_topic("b"), (), False, id="no file describes it"),
    ],
)
def test_lost_is_what_files_ask_for_and_nobody_deleted_through_topicops(
    topic: object, deleted: tuple[str, ...], is_lost: bool
) -> None:
    found = lost_topics({"a": SEEN}, desired_of(topic), deleted=deleted)  # type: ignore[arg-type]
    assert found == ({"a": SEEN} if is_lost else {})
