"""What a task asks and tells an Airflow that answers slowly: each answer is waited for, and each few KiB of its log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fakes.builders import create_change
from fakes.changes import plan_of
from fixtures.scripted_flow import ScriptedTask
from topicops.flow.runs.memory import ask_to_stop
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.on_airflow.tasks import changes
from topicops.on_airflow.tasks.changes import StopAsked
from topicops.on_airflow.tasks.planning import log_changes

LOOKS_EVERY_S = 0.1


@dataclass
class SlowAirflow(ScriptedTask):
    """Answers after so many seconds of a clock that nothing else moves."""

    answer_s: float = 0.0
    now: float = 1000.0
    asked: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def get_dagrun_state(self, dag_id: str, run_id: str) -> str:
        self.asked.append(self.now)
        self.now += self.answer_s
        return super().get_dagrun_state(dag_id, run_id)

    def looks(self, stop: StopAsked, seconds: float) -> Iterator[bool]:
        end = self.now + seconds
        while self.now < end:
            yield stop()
            self.now += LOOKS_EVERY_S


@pytest.fixture
def run(tmp_path: Path) -> EnvironmentRun:
    return open_run(environment="local", topics=tmp_path / "topics", group="g", run_id="r", home=tmp_path / "home")


def asked_of(answer_s: float, run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch) -> tuple[SlowAirflow, StopAsked]:
    airflow = SlowAirflow(answer_s=answer_s)
    monkeypatch.setattr(changes, "time", airflow)
    return airflow, StopAsked(run, airflow)


def test_a_fast_airflow_is_asked_at_each_look(run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch) -> None:
    airflow, stop = asked_of(0.01, run, monkeypatch)
    looks = list(airflow.looks(stop, 10))
    assert not any(looks)
    assert len(airflow.asked) == len(looks)


def test_a_slow_airflow_takes_a_quarter_of_the_time_and_its_word_still_counts(
    run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    airflow, stop = asked_of(5, run, monkeypatch)
    assert not any(airflow.looks(stop, 100))
    assert len(airflow.asked) == 5
    airflow.runs[airflow.run_id] = "failed"
    assert any(airflow.looks(stop, 20.5))
    assert stop.reason == "the run is failed and no longer running in Airflow"


def test_after_one_very_late_answer_airflow_is_asked_again_soon(
    run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    airflow, stop = asked_of(300, run, monkeypatch)
    assert not stop()
    airflow.answer_s, airflow.runs[airflow.run_id] = 0.01, "failed"
    assert any(airflow.looks(stop, 31))


def test_a_stop_that_was_typed_is_seen_while_airflow_is_left_alone(
    run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    airflow, stop = asked_of(5, run, monkeypatch)
    assert not stop()
    ask_to_stop(run.home, run.environment, by="a person")
    airflow.now += LOOKS_EVERY_S
    assert stop()
    assert stop.by_a_person
    assert len(airflow.asked) == 1


def test_the_changes_of_a_plan_are_one_record_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    topics = [f"t-{number:03}" for number in range(200)]
    with caplog.at_level(logging.INFO, logger="topicops"):
        log_changes(plan_of(*map(create_change, topics)))
    (message,) = caplog.messages
    assert message.splitlines() == [f"run create {topic}" for topic in topics]
