"""Who is told of what failed where a person was asked, and when that is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from topicops.features.notify.events import Event
from topicops.features.notify.told import Telling, telling_of_failure, telling_of_run
from topicops.flow.reporting import note_problem, run_report
from topicops.flow.runs.run import open_run
from topicops.steps.reporting.run_report import headline

APPROVAL, PIPELINE = "topic_approval_local", "topic_pipeline_local"


class Chat:
    """One receiver, over several runs."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def hears(self, telling: Telling) -> list[str]:
        return [f"{event.kind}: {event.verdict}" for event in telling.tell("chat", _take)]

    def run(self, dag: str, run_id: str, *failed_tasks: str, is_whole: bool = True) -> list[str]:
        run = open_run(environment="local", topics=self.home, group=dag, run_id=run_id, home=self.home)
        mode = "approval" if dag == APPROVAL else "apply"
        return self.hears(
            telling_of_run(run, mode=mode, failed_tasks=failed_tasks, is_whole=is_whole, approval=APPROVAL)
        )

    def broke(self, run_id: str) -> list[str]:
        """Return an approval run that ended before its report."""
        run = open_run(environment="local", topics=self.home, group=APPROVAL, run_id=run_id, home=self.home)
        return self.hears(telling_of_failure(run, "a task failed"))


def _take(event: Event) -> bool:
    return True


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    return Chat(tmp_path)


DELETE_FAILED = "failed: The run failed: delete failed."


def test_a_failed_approval_is_over_with_the_next_good_run_of_the_pipeline(chat: Chat) -> None:
    assert chat.run(APPROVAL, "1", "delete") == [DELETE_FAILED]
    assert chat.run(APPROVAL, "1", "delete") == []
    (over,) = chat.run(PIPELINE, "1")
    assert over.startswith("recovered: Over: a run that failed.")
    assert chat.run(PIPELINE, "2") == []
    assert chat.run(APPROVAL, "2") == []


def test_a_failed_approval_is_over_with_the_next_good_approval(chat: Chat) -> None:
    chat.run(APPROVAL, "1", "delete")
    (over,) = chat.run(APPROVAL, "2")
    assert over.startswith("recovered: Over: a run that failed.")
    assert chat.run(PIPELINE, "1") == []


def test_an_approval_that_broke_before_its_report_is_over_in_the_same_way(chat: Chat) -> None:
    assert chat.broke("1") == ["failed: The run failed: run topic_approval_local/1: a task failed; nothing was sent."]
    assert chat.broke("2") == ["failed: The run failed: run topic_approval_local/2: a task failed; nothing was sent."]
    (over,) = chat.run(PIPELINE, "1")
    assert over.startswith("recovered: Over: a run that failed.")


def test_the_same_failure_of_another_question_is_told_again(chat: Chat) -> None:
    assert chat.run(APPROVAL, "1", "approve") == chat.run(APPROVAL, "2", "approve") != []


def test_a_failed_or_a_narrowed_run_of_the_pipeline_ends_nothing(chat: Chat) -> None:
    chat.run(APPROVAL, "1", "delete")
    assert chat.run(PIPELINE, "1", is_whole=False) == []
    assert chat.run(PIPELINE, "2", "snapshot") == ["failed: The run failed: snapshot failed."]
    (over,) = chat.run(PIPELINE, "3")
    assert over.startswith("recovered: Over: a run that failed.")
    assert chat.run(PIPELINE, "4") == []


def test_a_good_approval_does_not_end_what_failed_in_the_pipeline(chat: Chat) -> None:
    chat.run(PIPELINE, "1", "snapshot")
    assert chat.run(APPROVAL, "1") == []
    (over,) = chat.run(PIPELINE, "2")
    assert over.startswith("recovered: Over: a run that failed.")


def test_why_a_task_failed_is_told_and_is_in_the_headline(chat: Chat) -> None:
    run = open_run(environment="local", topics=chat.home, group="topic_pipeline_local", run_id="1", home=chat.home)
    note_problem(run, "snapshot", "ZooKeeper at zk:2181 does not answer.\nIt was asked three times.")
    told = chat.run("topic_pipeline_local", "1", "snapshot")
    assert told == ["failed: The run failed: ZooKeeper at zk:2181 does not answer; snapshot failed."]
    said = headline(run_report(run, failed_tasks=("snapshot",)))
    assert said == "The run did not end as it should: ZooKeeper at zk:2181 does not answer."


def test_why_a_task_failed_and_nobody_can_read_it_is_told_so(chat: Chat) -> None:
    run = open_run(environment="local", topics=chat.home, group="topic_pipeline_local", run_id="1", home=chat.home)
    note_problem(run, "snapshot", "ZooKeeper does not answer")
    run.store.path("problem-snapshot.txt").write_bytes(b"\xff")
    (told,) = chat.run("topic_pipeline_local", "1", "snapshot")
    assert "why it failed cannot be read: " in told


def test_why_a_task_failed_that_was_well_in_a_later_try_is_not_told(chat: Chat) -> None:
    run = open_run(environment="local", topics=chat.home, group="topic_pipeline_local", run_id="1", home=chat.home)
    note_problem(run, "snapshot", "ZooKeeper does not answer")
    assert chat.run("topic_pipeline_local", "1", "create") == ["failed: The run failed: create failed."]
