"""Who is told when a run ends without a report, and what stands in its note; with Airflow's own objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from airflow.models.dagrun import DagRun
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType

from fixtures.scripted_flow import CREATE
from fixtures.writing_notifier import to_file
from topicops.edges.home.journal import FileJournal
from topicops.features.notify import on_airflow as notifying
from topicops.features.notify.told import note_end_told, telling_of_run
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import GatedChange
from topicops.on_airflow import listening
from topicops.on_airflow.listening import on_dag_run_failed, on_dag_run_running, on_dag_run_success, tell_of_end
from topicops.on_airflow.pages.airflow_state import AirflowDag
from topicops.on_airflow.plugin import TopicopsPlugin

pytestmark = pytest.mark.usefixtures("airflow_database")
DAG = "topic_pipeline_local"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where a notifier of the setting writes what it is told."""
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path))
    monkeypatch.setenv("TOPICOPS_NOTIFY", "fixtures.writing_notifier:to_file")
    monkeypatch.setenv("TOLD_TO", str(tmp_path / "told.txt"))
    return tmp_path / "told.txt"


def run_in(home: Path) -> EnvironmentRun:
    return open_run(environment="local", topics=Path(), group=DAG, run_id="r1", home=home)


def send_one(home: Path) -> None:
    folder = run_in(home).store.folder
    folder.mkdir(parents=True, exist_ok=True)
    FileJournal(folder / "journal-create-1.jsonl").intend([GatedChange(change=CREATE, digest="d", gate=GateWord.RUN)])


def lines(told: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()] if told.exists() else []


def test_a_run_that_ended_without_a_report_is_told_with_what_it_sent(told: Path, tmp_path: Path) -> None:
    send_one(tmp_path)
    tell_of_end(DAG, "r1", "a task failed")
    (event,) = lines(told)
    assert event["kind"] == "failed"
    assert "run topic_pipeline_local/r1: a task failed; 1 change sent: create orders" in event["verdict"]
    tell_of_end(DAG, "r1", "a task failed")
    assert len(lines(told)) == 1, "the same cause is told once"


def test_nothing_is_told_twice_that_the_report_has_told(told: Path, tmp_path: Path) -> None:
    note_end_told(run_in(tmp_path))
    tell_of_end(DAG, "r1", "a task failed")
    assert not lines(told)


def test_a_notifier_of_a_dag_file_is_another_receiver_than_one_of_the_setting(told: Path, tmp_path: Path) -> None:
    notifying.tell_of_end(run_in(tmp_path), "a task failed", [to_file()], {})
    tell_of_end(DAG, "r1", "a task failed")
    assert len(lines(told)) == 2, "each of them hears of it"


def test_a_home_that_nobody_can_write_or_read_stops_no_alarm(told: Path, tmp_path: Path) -> None:
    (tmp_path / "told").write_text("in the way", encoding="utf-8")
    (tmp_path / "runs").write_text("in the way", encoding="utf-8")
    tell_of_end(DAG, "r1", "a task failed")
    (event,) = lines(told)
    assert event["kind"] == "failed"


def test_what_was_told_while_nobody_could_write_is_told_as_over_by_the_next_good_run(
    told: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening.threading, "Thread", AtOnce)
    run = DagRun(dag_id=DAG, run_id="r2")
    (tmp_path / "told").write_text("in the way", encoding="utf-8")
    tell_of_end(DAG, "r1", "a task failed")
    on_dag_run_running(run, "")
    (tmp_path / "told").unlink()
    on_dag_run_running(run, "")
    good = partial(telling_of_run, run_in(tmp_path), mode="apply", failed_tasks=(), is_whole=True)
    notifying.tell(good, [], {})
    assert [event["kind"] for event in lines(told)] == ["failed", "recovered"]


def test_the_scheduler_does_not_end_with_our_problem(
    told: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("topicops.features.notify.told.telling_of_failure", lambda *_: 1 / 0)
    tell_of_end(DAG, "r1", "a task failed")
    assert "nobody is told of the failed run r1" in caplog.text
    assert not lines(told)


@pytest.fixture
def dag_run() -> Iterator[DagRun]:
    with create_session() as session:
        for old in session.query(DagRun).filter(DagRun.run_id == "noted"):
            session.delete(old)
        session.flush()
        run = DagRun(
            dag_id=DAG, run_id="noted", run_type=DagRunType.MANUAL, state=DagRunState.SUCCESS,
            run_after=datetime(2026, 1, 1, tzinfo=UTC), logical_date=None,
            triggered_by=DagRunTriggeredByType.TEST,
        )  # fmt: skip
        session.add(run)
        session.flush()
        yield run
        session.rollback()


def test_the_note_of_a_run_is_what_it_came_to(dag_run: DagRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_look_at_files", lambda _: None)
    on_dag_run_success(dag_run, "")
    assert dag_run.note is None, "no task has handed over a result"
    with create_session() as session:
        assert session.query(XComModel).filter(XComModel.run_id == "noted").count() == 0


def test_a_failed_run_has_airflow_s_reason_in_its_note_and_tells_in_a_thread(
    dag_run: DagRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[object, ...]] = []
    monkeypatch.setattr(listening.threading, "Thread", lambda **given: Started(started, given["args"]))
    dag_run.note = "found by a run"
    on_dag_run_failed(dag_run, "task_failure")
    assert dag_run.note == "found by a run\n\na task failed"
    assert started == [(DAG, "noted", "a task failed"), (DAG, "noted")]
    monkeypatch.setattr(listening, "_failed_tasks", lambda session, run: {"snapshot", "validate"})
    on_dag_run_failed(dag_run, "task_failure")
    assert started[-2] == (DAG, "noted", "snapshot, validate failed")
    on_dag_run_failed(dag_run, "marked by a person")
    assert started[-2] == (DAG, "noted", "marked by a person")


def test_files_that_airflow_does_not_fetch_are_told_once_and_so_is_their_end(
    told: Path, dag_run: DagRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening.threading, "Thread", AtOnce)
    pipeline = AirflowDag(dag_id=DAG, files_fetched_at=datetime.now(UTC) - timedelta(minutes=21))
    known = {DAG: pipeline}
    monkeypatch.setattr("topicops.on_airflow.pages.airflow_state.dags_of", lambda _: known)
    on_dag_run_success(dag_run, "")
    on_dag_run_success(dag_run, "")
    known.clear()
    on_dag_run_success(dag_run, "")
    known[DAG] = replace(pipeline, files_fetched_at=None)
    on_dag_run_success(dag_run, "")
    assert [event["kind"] for event in lines(told)] == ["outdated"], "once; and what is not known is not over"
    assert "Airflow fetched the files last at " in lines(told)[0]["verdict"]

    known[DAG] = replace(pipeline, files_fetched_at=datetime.now(UTC))
    on_dag_run_success(dag_run, "")
    on_dag_run_success(dag_run, "")
    over = [event["verdict"] for event in lines(told)[1:]]
    assert over == ["Over: files that Airflow does not fetch. Airflow fetches the files again."]


def test_a_good_run_says_nothing_of_files_that_are_not_fetched(told: Path, tmp_path: Path) -> None:
    notifying.tell_setting_of_files(run_in(tmp_path), datetime.now(UTC))
    notifying.tell(partial(telling_of_run, run_in(tmp_path), mode="apply", failed_tasks=(), is_whole=True), [], {})
    assert [event["kind"] for event in lines(told)] == ["outdated"]


class Started:
    def __init__(self, started: list[tuple[object, ...]], args: tuple[object, ...]) -> None:
        self._started, self._args = started, args

    def start(self) -> None:
        self._started.append(self._args)


def test_a_dag_of_somebody_else_is_none_of_our_business(dag_run: DagRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_write_note", lambda *_: pytest.fail("not ours"))
    dag_run.dag_id = "billing"
    on_dag_run_failed(dag_run, "x")
    on_dag_run_success(dag_run, "x")


def test_the_plugin_brings_the_listener() -> None:
    assert TopicopsPlugin.listeners == [listening]


class AtOnce:
    """A thread that does its work when it is started, in the thread of the test."""

    def __init__(self, *, target: Callable[..., None], args: tuple[object, ...], **_: object) -> None:
        self._work = partial(target, *args)

    def start(self) -> None:
        self._work()


def test_the_scheduler_leaves_a_home_in_a_store_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started: list[str] = []
    monkeypatch.setenv("TOPICOPS_HOME", "s3://bucket/home")
    monkeypatch.setattr(listening.threading, "Thread", lambda **given: Started(started, given["args"]))

    listening._in_a_thread(tell_of_end, DAG, "r1", "a task failed")

    assert not started
    assert "left out, because TOPICOPS_HOME is an object store: tell_of_end topic_pipeline_local r1" in caplog.text
