from dataclasses import replace

import pytest

from fakes import builders
from fixtures.rich_plan import rich_plan
from fixtures.topic_index import CHANGE, PLANNED, a_cluster, healthy, the_files
from topicops.features.topic_pages.indexing import indexed_topics, planned_changes
from topicops.features.topic_pages.values import BrokerShare, IndexedTopic
from topicops.model.plans.changes import GateWord
from topicops.model.runs.results import Outcome, OutcomeStatus


def indexed() -> dict[str, IndexedTopic]:
    return {row.name: row for row in indexed_topics(a_cluster(), the_files(), PLANNED, {})}


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("shop.orders", {"healthy"}),
        ("shop.items", {"under-replicated"}),
        ("pay.bills", {"offline", "under min ISR"}),
        ("crm.wild", {"unmanaged", "healthy"}),
        ("old.gone", {"to delete", "held", "healthy"}),
        ("old.going", {"unmanaged", "being deleted"}),
        ("shop.moved", {"different", "blocked", "healthy"}),
        ("shop.new", {"missing"}),
    ],
)
def test_each_topic_has_its_states(topic: str, words: set[str]) -> None:
    assert indexed()[topic].words == words


def test_a_tombstone_whose_topic_is_gone_is_no_topic() -> None:
    assert "old.retired" not in indexed()


def test_a_broker_s_share_counts_what_it_holds_leads_and_lacks() -> None:
    assert indexed()["shop.items"].shares == (
        BrokerShare(broker=1, replicas=1, leaders=1, missing=0),
        BrokerShare(broker=2, replicas=1, leaders=0, missing=0),
        BrokerShare(broker=3, replicas=1, leaders=0, missing=1),
    )


def test_a_topic_without_states_is_neither_healthy_nor_ill() -> None:
    live = builders.snapshot(replace(healthy("a"), states=None))
    (row,) = indexed_topics(live, {"a": builders.desired_like(live.topics["a"])}, {}, {})
    assert row.words == frozenset()


def test_a_topic_whose_file_has_errors_is_not_called_unmanaged() -> None:
    live = builders.snapshot(healthy("a"))
    (row,) = indexed_topics(live, {}, {}, {}, left_out={"a"})
    assert row.words == {"healthy"}


def test_a_moving_topic_says_so() -> None:
    live = builders.snapshot(healthy("a"), reassigning=frozenset({"a"}))
    (row,) = indexed_topics(live, {}, {}, {})
    assert "moving" in row.words


def test_what_came_of_a_change_is_said_instead_of_the_gate_s_word() -> None:
    plan = rich_plan()
    outcomes = {g.digest: Outcome.of(g, OutcomeStatus.REFUSED, "broker 2 is not live") for g in plan.changes}
    found = [entry for entries in planned_changes(plan, run="d/r", outcomes=outcomes).values() for entry in entries]
    refused = [entry for entry in found if entry.word != "blocked"]
    assert {(entry.word, entry.reasons) for entry in refused} == {("refused", ("refused: broker 2 is not live",))}


def test_what_the_plan_has_about_a_topic_leaves_out_what_is_done() -> None:
    plan = rich_plan()
    every = planned_changes(plan, run="d/r")
    assert {entry.word for entries in every.values() for entry in entries} >= {"run", "held", "blocked"}
    done = {gated.digest: Outcome.of(gated, OutcomeStatus.DONE) for gated in plan.changes}
    left = [entry for entries in planned_changes(plan, run="d/r", outcomes=done).values() for entry in entries]
    assert {entry.word for entry in left} == {"blocked"}


def test_a_held_change_that_somebody_rejected_says_who() -> None:
    plan = rich_plan()
    held = next(gated for gated in plan.changes if gated.gate is GateWord.HELD)
    found = planned_changes(plan, run="d/r", rejected={held.digest: "rejected by alice"})[held.change.topic]
    assert [(entry.word, entry.reasons) for entry in found] == [("rejected", ("rejected by alice",))]


@pytest.mark.parametrize(("topic", "says"), [("shop.moved", True), ("shop.orders", False)])
def test_a_change_that_failed_is_told_while_the_file_still_asks_for_it(topic: str, *, says: bool) -> None:
    failed = replace(CHANGE, outcome=OutcomeStatus.FAILED)
    rows = {row.name: row for row in indexed_topics(a_cluster(), the_files(), {}, {topic: failed})}
    assert ("change failed" in rows[topic].words) is says
