"""Notifiers, the log and the metrics: each receiver is told once, and a broken notifier stops nobody."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from airflow.sdk import BaseNotifier, Context
from airflow.sdk.observability.stats import Stats

from fixtures.scripted_flow import ScriptedTask, context
from topicops.features.notify.on_airflow import notifiers_of_setting, tell
from topicops.features.notify.told import Telling, telling_of_one
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.model.errors import UsageError
from topicops.on_airflow.airflow_inside import count


class Heard(BaseNotifier):
    """Keeps what it is told; its text is a template."""

    template_fields = ("text",)

    def __init__(self, heard: list[Any], text: str = "{{ topicops_event.kind }}: {{ topicops_event.verdict }}") -> None:
        super().__init__()
        self.heard, self.text = heard, text

    def notify(self, context: Context) -> None:
        self.heard.append((self.text, dict(context)["topicops_event"]))


class Awaited(Heard):
    def notify(self, context: Context) -> None:
        raise NotImplementedError

    async def async_notify(self, context: Context) -> None:
        super().notify(context)


class Broken(Heard):
    is_broken = True

    def notify(self, context: Context) -> None:
        if self.is_broken:
            raise ConnectionError("no route to the chat")
        super().notify(context)


@pytest.fixture
def run(topicops_home: Path) -> EnvironmentRun:
    return open_run(environment="local", topics=Path("topics"), group="topic_approval_local", run_id="1")


def held(run: EnvironmentRun) -> Telling:
    return telling_of_one(run, kind="held", verdict="1 change waits", changes=1)


def told(run: EnvironmentRun, *notifiers: BaseNotifier) -> None:
    tell(lambda: held(run), notifiers, context(ScriptedTask()))  # type: ignore[arg-type]  # a scripted context


def test_a_notifier_finds_the_event_in_its_templates_and_hears_it_once(run: EnvironmentRun) -> None:
    heard: list[Any] = []
    for _ in range(2):
        told(run, Heard(heard))
    ((text, event),) = heard
    assert text == "held: 1 change waits"
    assert (event["environment"], event["counts"], event["run"]) == ("local", {"changes": 1}, run.name)
    assert event["link"].endswith("/dags/topic_approval_local/runs/1/plugin/topicops-plan")


def test_one_that_can_only_be_awaited_is_awaited(run: EnvironmentRun) -> None:
    heard: list[Any] = []
    told(run, Awaited(heard))
    assert [text for text, _ in heard] == ["held: 1 change waits"]


def test_a_broken_notifier_stops_nobody_and_is_told_anew(run: EnvironmentRun, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Any] = []
    broken, whole = Broken(heard), Heard(heard)
    told(run, broken, whole)
    assert len(heard) == 1
    assert "Broken could not tell of held: ConnectionError: no route to the chat" in caplog.text
    broken.is_broken = False
    told(run, broken, whole)
    assert len(heard) == 2


def test_two_notifiers_of_one_class_are_both_told(run: EnvironmentRun) -> None:
    heard: list[Any] = []
    told(run, Heard(heard), Heard(heard))
    assert len(heard) == 2


def test_the_log_has_each_event_once(run: EnvironmentRun, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            told(run)
    assert caplog.text.count("held: 1 change waits") == 1


def test_a_damaged_memory_tells_again_rather_than_nothing(run: EnvironmentRun) -> None:
    heard: list[Any] = []
    told(run, Heard(heard))
    run.store.path("told.json").write_text("{", encoding="utf-8")
    told(run, Heard(heard))
    assert len(heard) == 2


def test_the_setting_names_a_factory(run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    module = ModuleType("chat")
    module.notifiers = lambda: [Heard(heard)]  # type: ignore[attr-defined]  # made here
    monkeypatch.setitem(sys.modules, "chat", module)
    monkeypatch.setenv("TOPICOPS_NOTIFY", "chat:notifiers")
    told(run)
    assert len(heard) == 1


@pytest.mark.parametrize("written", ["chat", "no.such.module:notifier", "json:nothing"])
def test_a_setting_that_makes_no_notifier_is_named_and_fails_no_task(
    run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, written: str
) -> None:
    monkeypatch.setenv("TOPICOPS_NOTIFY", written)
    with pytest.raises(UsageError, match="TOPICOPS_NOTIFY"):
        notifiers_of_setting()
    told(run)
    assert "nobody is told: TOPICOPS_NOTIFY is" in caplog.text


def test_gauges_are_named_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, float] = {}
    monkeypatch.setattr(Stats, "gauge", seen.__setitem__, raising=False)
    count("prod-eu", {"held": 2, "blocked": 0})
    assert seen == {"topicops.prod-eu.held": 2, "topicops.prod-eu.blocked": 0}
