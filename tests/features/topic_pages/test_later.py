"""What was sent after a reading, by the audit logs and the open journals of a home."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fakes import builders
from fakes.changes import audit_origin, mutation_of
from fixtures.topic_index import a_cluster, head_of
from topicops.edges.home.audit_log import FileAuditLog
from topicops.edges.home.journal import FileJournal, registered
from topicops.features.topic_pages.file import TopicIndex
from topicops.features.topic_pages.later import LaterRun, known_clusters, later_changes, outcomes_of
from topicops.features.topic_pages.values import IndexHead
from topicops.flow.runs.kept import audit_marks
from topicops.model.errors import ArtifactError
from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import GatedChange
from topicops.model.runs.results import OutcomeStatus

RUN = "topic_pipeline_local/later"


def send(home: Path, topic: str, status: OutcomeStatus = OutcomeStatus.DONE, environment: str = "local") -> None:
    sent = mutation_of(builders.create_change(topic), digest=topic, status=status)
    run = RUN if environment == "local" else f"topic_pipeline_{environment}/r"
    FileAuditLog(home / "audit", audit_origin(run, environment=environment)).append([sent])


def head_now(home: Path, environment: str = "local") -> IndexHead:
    head = replace(head_of(a_cluster(), environment), audit_marks=audit_marks(home))
    TopicIndex.of(home, environment).write(head, ())
    return head


def later_than(head: IndexHead, home: Path) -> tuple[LaterRun, ...]:
    return later_changes(home, head, known_clusters(home))


def test_what_is_in_the_log_before_the_reading_is_not_later(tmp_path: Path) -> None:
    send(tmp_path, "shop.a")
    head = head_now(tmp_path)
    assert later_than(head, tmp_path) == ()
    send(tmp_path, "shop.b")
    send(tmp_path, "shop.c", OutcomeStatus.UNKNOWN)
    (later,) = later_than(head, tmp_path)
    assert (later.run, later.is_open) == (RUN, False)
    assert outcomes_of([later]) == {"shop.b": OutcomeStatus.DONE, "shop.c": OutcomeStatus.UNKNOWN}


def test_another_environment_of_the_same_cluster_counts_and_one_of_another_cluster_does_not(tmp_path: Path) -> None:
    head = head_now(tmp_path)
    TopicIndex.of(tmp_path, "same").write(head_of(a_cluster(), "same"), ())
    TopicIndex.of(tmp_path, "other").write(head_of(replace(a_cluster(), cluster_id="other"), "other"), ())
    send(tmp_path, "shop.a", environment="same")
    send(tmp_path, "shop.b", environment="other")
    send(tmp_path, "shop.c", environment="never-read")  # nobody knows its cluster: it may be this one
    assert {run.environment for run in later_than(head, tmp_path)} == {"same", "never-read"}
    assert outcomes_of(later_than(head, tmp_path)).keys() == {"shop.a", "shop.c"}


def test_requests_without_an_answer_are_of_unknown_outcome(tmp_path: Path) -> None:
    head = head_now(tmp_path)
    path = tmp_path / "runs" / "journal-all-1.jsonl"
    path.parent.mkdir()
    gated = GatedChange(change=builders.create_change("shop.a"), digest="d", gate=GateWord.RUN)
    with registered(tmp_path / "unsettled" / "local", path, audit_origin(RUN), audit_lines=0):
        FileJournal(path).intend([gated])
        (later,) = later_than(head, tmp_path)
        assert (later.is_open, later.outcomes) == (True, {"shop.a": OutcomeStatus.UNKNOWN})


def test_a_log_that_nobody_can_read_is_an_error_and_not_nothing(tmp_path: Path) -> None:
    head = head_now(tmp_path)
    (tmp_path / "unsettled" / "local").mkdir(parents=True)
    (tmp_path / "unsettled" / "local" / "x.json").write_text("no json", encoding="utf-8")
    with pytest.raises(ArtifactError, match="damaged"):
        later_than(head, tmp_path)
