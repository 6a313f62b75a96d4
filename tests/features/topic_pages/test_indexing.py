"""The topic index as the runs of an environment write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes import builders
from fakes.changes import audit_origin, mutation_of
from fixtures.rich_plan import rich_plan
from fixtures.topic_index import CHANGE, PLANNED, a_cluster, healthy, the_files
from topicops.edges.home.audit_log import FileAuditLog
from topicops.features.topic_pages.file import TopicIndex
from topicops.features.topic_pages.indexing import index_topics, indexed_topics, life_of_topic, planned_changes
from topicops.features.topic_pages.values import BrokerShare, IndexedTopic, TopicsWanted
from topicops.flow.runs.kept import keep_reading
from topicops.flow.runs.questions import ASKED_SET
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.model.plans.changes import Change, GateWord
from topicops.model.plans.plan_file import plan_to_json
from topicops.model.runs.results import QUIET_FILE, Outcome, OutcomeStatus
from topicops.steps.planning.gate import gate
from topicops.steps.planning.only import keep_only


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def run(tmp_path: Path, lines: list[str]) -> EnvironmentRun:
    run = open_run(
        environment="local",
        topics=Path("topics"),
        group="topic_pipeline_local",
        run_id="manual__1",
        home=tmp_path,
        progress=lines.append,
    )
    live = a_cluster()
    run.store.write_value("desired.json", builders.desired_of(builders.desired_like(live.topics["shop.orders"])))
    run.store.write_value("live.json", live)
    keep_reading(run, builders.reading(live, at=datetime(2024, 5, 1, 12, tzinfo=UTC)))
    return run


def write_plan(run: EnvironmentRun, only: str | None = None, changes: Sequence[Change] | None = None) -> None:
    """A change of shop.orders, unless it is others; with ``only``, those of it that match."""
    found = builders.change_set([builders.configure_change("shop.orders")] if changes is None else list(changes))
    if only is not None:
        found = keep_only(found, a_cluster(), (), only)
    run.store.write_text("plan.json", plan_to_json(gate(found, builders.environment())))


def test_a_run_writes_what_it_has_found(run: EnvironmentRun, tmp_path: Path) -> None:
    write_plan(run)
    index_topics(run)
    index = TopicIndex.of(tmp_path, "local")
    assert index.head().read_at == datetime(2024, 5, 1, 12, tzinfo=UTC)
    assert index.page(TopicsWanted()).topics == 7
    topic = index.topic("shop.orders")
    assert topic is not None
    assert [entry.title for entry in topic.planned] == ["configure"]


def test_of_an_environment_with_a_prefix_the_topics_of_others_are_left_out(run: EnvironmentRun, tmp_path: Path) -> None:
    desired = builders.desired_of(builders.desired_like(a_cluster().topics["shop.orders"]))
    run.store.write_value("desired.json", replace(desired, prefix="shop."))
    write_plan(run)
    index_topics(run)
    names = [topic.name for topic in TopicIndex.of(tmp_path, "local").page(TopicsWanted()).rows]
    assert (len(names), {name.partition(".")[0] for name in names}) == (3, {"shop"})


def planned_of(home: Path) -> dict[str, list[str]]:
    return {name: [entry.title for entry in found] for name, found in TopicIndex.of(home, "local").planned().items()}


def test_a_run_of_a_part_writes_no_first_index(run: EnvironmentRun, tmp_path: Path) -> None:
    write_plan(run, only="shop.*")
    index_topics(run)
    assert not TopicIndex.of(tmp_path, "local").path.exists()


def test_a_run_of_a_part_leaves_what_is_said_of_the_plan_of_other_topics(run: EnvironmentRun, tmp_path: Path) -> None:
    write_plan(run)
    index_topics(run)
    write_plan(run, only="crm.*")
    index_topics(run)
    assert planned_of(tmp_path) == {"shop.orders": ["configure"]}
    write_plan(run, only="shop.*", changes=())
    index_topics(run)
    assert planned_of(tmp_path) == {}


def test_an_approval_s_run_is_of_a_part_too(run: EnvironmentRun, tmp_path: Path) -> None:
    write_plan(run)
    index_topics(run)
    run.store.write_value(ASKED_SET, {})
    write_plan(run, changes=(builders.configure_change("crm.wild"),))
    index_topics(run)
    assert planned_of(tmp_path) == {"shop.orders": ["configure"], "crm.wild": ["configure"]}


def test_the_last_change_comes_from_the_audit_log_and_stays(run: EnvironmentRun, tmp_path: Path) -> None:
    sent = mutation_of(builders.configure_change("shop.orders"))
    FileAuditLog(tmp_path / "audit", audit_origin(run.name)).append([sent])
    for _ in range(2):  # the second one reads it from the index before
        index_topics(run)
        (row,) = TopicIndex.of(tmp_path, "local").page(TopicsWanted(q="shop.orders")).rows
        assert row.changed.endswith("configure by User:applier (Kafka)")
        assert TopicIndex.of(tmp_path, "local").head().audit_lines == 1
    assert [line.n for line in life_of_topic(tmp_path, "local", "shop.orders", most=5)] == [1]
    assert not life_of_topic(tmp_path, "local", "shop.order", most=5)


def test_a_damaged_index_is_written_again(run: EnvironmentRun, tmp_path: Path) -> None:
    index = TopicIndex.of(tmp_path, "local")
    index.path.parent.mkdir()
    index.path.write_bytes(b"no database")
    index_topics(run)
    assert index.page(TopicsWanted()).topics == 7


def test_a_problem_is_a_line_of_progress_and_ends_no_run(run: EnvironmentRun, tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "topic-index").write_text("in the way", encoding="utf-8")
    index_topics(run)
    assert any(line.startswith("The Topics page stays as it was: local.sqlite: cannot be written") for line in lines)


def test_a_quiet_run_is_noted_where_there_is_an_index(run: EnvironmentRun, tmp_path: Path) -> None:
    index = TopicIndex.of(tmp_path, "local")
    run.store.write_json(QUIET_FILE, {})
    index_topics(run)
    assert not index.path.exists()
    run.store.remove(QUIET_FILE)
    index_topics(run)
    assert index.head().looked_at is None
    run.store.write_json(QUIET_FILE, {})
    index_topics(run)
    assert index.head().looked_at is not None


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
    moving = {g.digest: Outcome.of(g, OutcomeStatus.MOVING) for g in plan.changes}
    found = [entry for entries in planned_changes(plan, run="d/r", outcomes=moving).values() for entry in entries]
    assert {entry.reasons for entry in found if entry.word == "moving"} == {()}


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
