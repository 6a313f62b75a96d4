"""The topic index as the runs of an environment write it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes import builders
from fixtures.topic_index import a_cluster
from topicops.edges.home.audit_log import AuditOrigin, FileAuditLog
from topicops.features.topic_pages.file import TopicIndex
from topicops.features.topic_pages.indexing import index_topics, life_of_topic
from topicops.features.topic_pages.values import TopicsWanted
from topicops.flow.runs.kept import keep_reading
from topicops.flow.runs.questions import ASKED_SET
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.model.plans.changes import Change
from topicops.model.plans.plan_file import plan_to_json
from topicops.model.runs.results import QUIET_FILE, Mutation, OutcomeStatus
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
    origin = AuditOrigin(
        environment="local", run=run.name, plan="p", commit=None, principals={"configure": "User:topicops"}
    )
    change = builders.configure_change("shop.orders")
    mutation = Mutation(
        change=change,
        digest="d",
        requests=1,
        answer="accepted",
        status=OutcomeStatus.DONE,
        id_before=None,
        id_after=None,
    )
    FileAuditLog(tmp_path / "audit", origin).append([mutation])
    for _ in range(2):  # the second one reads it from the index before
        index_topics(run)
        (row,) = TopicIndex.of(tmp_path, "local").page(TopicsWanted(q="shop.orders")).rows
        assert row.changed.endswith("configure by User:topicops (Kafka)")
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
