"""What carries moves on in Airflow: when a run of the moves DAG is started, and what each of its looks does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk import BaseNotifier, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from fixtures.scripted_flow import CREATE, ScriptedFlow, ScriptedTask, context, site
from topicops.features.moves import stepping
from topicops.features.moves.carrying.values import Stepped
from topicops.features.moves.on_airflow import looks, starting
from topicops.features.moves.on_airflow.dag import step_every
from topicops.features.moves.on_airflow.looks import announce, step
from topicops.features.moves.on_airflow.starting import start_moves
from topicops.features.moves.record import MOVES, EndedMove, MovesRecord, OwnedRate, PartitionMove, TopicMove
from topicops.flow.runs.outcomes import write_outcomes
from topicops.flow.runs.run import EnvironmentRun, notes_of
from topicops.model.errors import (
    ArtifactError,
    ClusterUnreachableError,
    LeaseHeldError,
    LoginRefusedError,
    TopicopsError,
    UsageError,
    WrongTargetError,
)
from topicops.model.plans.changes import GateWord, MoveReason
from topicops.model.plans.plan import GatedChange
from topicops.model.runs.results import Outcome, OutcomeStatus
from topicops.on_airflow import topic_asset, topics_alias
from topicops.on_airflow.site import Options
from topicops.on_airflow.tasks import changes, planning

BEGUN = datetime(2026, 11, 20, 6, tzinfo=UTC)
"""As ``ScriptedRun.run_after``."""
IDLE = MovesRecord(cluster_id="c")
WAITING = replace(
    IDLE,
    topics=(
        TopicMove(
            topic="shop.orders", identity="a", why=MoveReason.FACTOR, digest="d", run="cli/1", accepted_at=BEGUN,
            partitions={0: PartitionMove(origin=(1,), target=(1, 2))},
        ),
    ),
)  # fmt: skip
OWING = replace(IDLE, rates=(OwnedRate(broker=3, rate=1),))


def ended(topic: str, *, minutes: int = 1, status: str = "done") -> EndedMove:
    return EndedMove(
        topic=topic, why=MoveReason.FACTOR, run="cli/1", partitions=2, status=status,
        at=BEGUN + timedelta(minutes=minutes),
    )  # fmt: skip


# --- starting ---------------------------------------------------------------------------------------------------------


@dataclass
class Airflow(ScriptedTask):
    """A task to which Airflow says how the moves DAG is, and which notes what was started."""

    unfinished: int = 0
    is_paused: bool = False
    problem: str = ""
    started: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    """Environments of which a step was made."""
    fails: TopicopsError | None = None
    """Error of a step."""

    def get_dag(self, dag_id: str) -> SimpleNamespace:
        return SimpleNamespace(is_paused=self.is_paused)

    def get_dr_count(self, dag_id: str, *, states: list[str] = (), **_: object) -> int:  # type: ignore[assignment]
        return self.unfinished if states == ["queued", "running"] else 0

    def trigger(self, dag_id: str, run_id: str, *, said: str) -> None:
        if self.problem:
            raise RuntimeError(self.problem)
        self.started.append(f"{dag_id}: {said}")

    def take_step(self, run: EnvironmentRun) -> None:
        self.steps.append(run.environment)
        if self.fails:
            raise self.fails

    def replaces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(starting, "trigger_run", self.trigger)
        monkeypatch.setattr(stepping, "take_step", self.take_step)


@pytest.fixture
def run(tmp_path: Path) -> EnvironmentRun:
    flow = ScriptedFlow(tmp_path)
    return flow.open_run(environment="local", topics=tmp_path, group="topic_moves_local", run_id="moves__1")


def keep(run: EnvironmentRun, record: MovesRecord | None) -> None:
    if record is not None:
        MOVES.of(run.home, run.environment).write(record)


def of(task: ScriptedTask, **params: object) -> Context:
    return cast("Context", context(task, **params))


@pytest.mark.parametrize(
    ("record", "task", "started"),
    [
        pytest.param(None, Airflow(), [], id="nothing ever moved"),
        pytest.param(IDLE, Airflow(), [], id="nothing moves"),
        pytest.param(WAITING, Airflow(), ["topic_moves_local"], id="something waits"),
        pytest.param(OWING, Airflow(), ["topic_moves_local"], id="a throttle is owed"),
        pytest.param(WAITING, Airflow(unfinished=1), [], id="a run is there"),
        pytest.param(WAITING, Airflow(is_paused=True), [], id="its runs would wait for ever"),
    ],
)
def test_the_moves_dag_is_started_where_something_is_left_and_no_run_is_there(
    run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch, record: MovesRecord | None, task: Airflow, started: list[str]
) -> None:
    task.replaces(monkeypatch)
    keep(run, record)
    task.started.clear()
    start_moves(run, of(task))
    assert [said.split(":")[0] for said in task.started] == started


@pytest.mark.parametrize(
    ("task", "said"),
    [
        pytest.param(
            Airflow(is_paused=True),
            "topic_moves_local is paused, so only runs of the pipeline carry the moves on: unpause it",
            id="paused",
        ),
        pytest.param(
            Airflow(problem="the API is away"),
            "topic_moves_local was not started, so only runs of the pipeline carry the moves on: the API is away",
            id="refused",
        ),
    ],
)
def test_a_dag_that_cannot_be_started_fails_no_task_and_the_report_says_so_once(
    run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch, task: Airflow, said: str
) -> None:
    task.replaces(monkeypatch)
    keep(run, WAITING)
    start_moves(run, of(task))
    start_moves(run, of(task))
    assert notes_of(run) == (said,)


@pytest.mark.parametrize(
    ("record", "task", "mode", "steps"),
    [
        pytest.param(WAITING, Airflow(is_paused=True), "apply", ["local"], id="the DAG is paused"),
        pytest.param(OWING, Airflow(problem="the API is away"), "apply", ["local"], id="it cannot be started"),
        pytest.param(WAITING, Airflow(is_paused=True), "plan", [], id="a run that only plans"),
        pytest.param(WAITING, Airflow(unfinished=1), "apply", [], id="a run of the DAG makes them"),
        pytest.param(WAITING, Airflow(), "apply", [], id="one was started"),
        pytest.param(IDLE, Airflow(is_paused=True), "apply", [], id="nothing moves"),
    ],
)
def test_a_run_of_the_pipeline_makes_a_step_where_the_moves_dag_makes_none(
    run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch, record: MovesRecord, task: Airflow, mode: str, steps: object
) -> None:
    task.replaces(monkeypatch)
    task.steps.clear()
    keep(run, record)
    start_moves(run, of(task, mode=mode))
    assert task.steps == steps


def test_a_step_that_cannot_be_made_fails_no_task_and_the_report_says_so(
    run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Airflow(is_paused=True, fails=LeaseHeldError("held by cli/1"))
    task.replaces(monkeypatch)
    keep(run, WAITING)
    start_moves(run, of(task))
    assert notes_of(run)[1:] == ("this run made no step of the moves: held by cli/1",)


def test_the_report_names_what_moves_wait_for_and_what_is_owed_once(
    run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Airflow(unfinished=1)
    task.replaces(monkeypatch)
    keep(run, replace(OWING, notes=("a partition 0: no leader.", "b partition 0: not started: full.")))
    gated = GatedChange(change=CREATE, digest="d", gate=GateWord.RUN)
    begun = Outcome.of(gated, OutcomeStatus.MOVING, "b partition 0: not started: full")
    write_outcomes(run, ("create",), [begun])

    start_moves(run, of(task))
    assert notes_of(run) == (), "other tasks come too early for the report"
    task.task_id = "report"
    start_moves(run, of(task))
    assert notes_of(run) == ("moves: a partition 0: no leader.",)

    keep(run, replace(IDLE, notes=("a partition 1: no leader.",)))
    start_moves(run, of(task))
    assert notes_of(run) == ("moves: a partition 0: no leader.",), "nothing is left any more"


def test_a_record_that_cannot_be_read_fails_no_task(run: EnvironmentRun) -> None:
    keep(run, WAITING)
    Path(str(MOVES.of(run.home, run.environment).path)).write_text("{", encoding="utf-8")
    start_moves(run, of(Airflow()))
    (said,) = notes_of(run)
    assert "moves/local.json: cannot be read" in said


@pytest.mark.parametrize("mode", ["plan", "apply"])
def test_each_run_of_the_pipeline_sees_to_it_that_moves_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    flow, task = ScriptedFlow(tmp_path, changes=(CREATE,)), Airflow()
    task.replaces(monkeypatch)
    MOVES.of(tmp_path, "local").write(WAITING)
    planning.gate(site(flow), of(task, mode=mode))
    changes.report(site(flow), of(task, mode=mode))
    assert task.started == ["topic_moves_local: Moves of topic_pipeline_local, run manual__1"]


# --- a look -----------------------------------------------------------------------------------------------------------


def steps_of(*answers: Stepped | TopicopsError | None) -> Callable[..., Stepped | None]:
    left = iter(answers)

    def take_step(run: EnvironmentRun, *, lock_timeout_s: float) -> Stepped | None:
        assert lock_timeout_s == 0.0
        answer = next(left)
        if isinstance(answer, TopicopsError):
            raise answer
        if answer:
            MOVES.of(run.home, run.environment).write(answer.record)
        return answer

    return take_step


@pytest.mark.parametrize(
    ("answer", "is_done"),
    [
        pytest.param(None, True, id="nothing was left"),
        pytest.param(Stepped(record=IDLE), True, id="the last step"),
        pytest.param(Stepped(record=WAITING), False, id="something waits"),
        pytest.param(Stepped(record=OWING), False, id="a throttle is owed"),
        pytest.param(LeaseHeldError("held"), False, id="another run holds the lease"),
        pytest.param(ClusterUnreachableError("away"), False, id="no broker answers"),
        pytest.param(ArtifactError("full"), False, id="the disk is full"),
    ],
)
def test_a_look_is_the_last_one_only_when_nothing_is_left(
    run: EnvironmentRun, answer: Stepped | TopicopsError | None, is_done: bool
) -> None:
    assert step(run, of(ScriptedTask()), steps_of(answer)).is_done is is_done


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(UsageError("no such environment"), AirflowFailException, id="a person must act"),
        pytest.param(LoginRefusedError("wrong password"), AirflowFailException, id="the login is refused"),
        pytest.param(WrongTargetError("another cluster"), AirflowFailException, id="another cluster"),
    ],
)
def test_only_what_a_person_must_fix_fails_a_look_and_no_retry_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: TopicopsError, kind: type[AirflowException]
) -> None:
    stand_in = SimpleNamespace(take_step=steps_of(error))
    monkeypatch.setitem(__import__("sys").modules, "topicops.features.moves.stepping", stand_in)
    with pytest.raises(kind, match=str(error)):
        looks.look(site(ScriptedFlow(tmp_path)), of(ScriptedTask(dag_id="topic_moves_local")))


class Heard(BaseNotifier):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, str]] = []

    def notify(self, context: Context) -> None:
        event: Any = dict(context)["topicops_event"]
        self.heard.append((event["kind"], event["verdict"]))


@pytest.mark.parametrize(
    ("moves", "told"),
    [
        pytest.param((), [], id="a run that found nothing to do"),
        pytest.param(
            (ended("shop.orders"), ended("shop.prices"), ended("shop.bills", status="cancelled")),
            [("applied", "Moves of 3 topics ended: 2 partitions cancelled, 4 partitions moved as planned.")],
            id="three topics",
        ),
        pytest.param(
            (ended("shop.orders", status="dropped"),),
            [("applied", "Moves of 1 topic ended: 2 partitions not moved.")],
            id="one that is not asked for any more",
        ),
    ],
)
def test_people_are_told_once_how_moves_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: Sequence[EndedMove], told: Sequence[tuple[str, str]]
) -> None:
    heard, task = Heard(), ScriptedTask(dag_id="topic_moves_local")
    where = replace(site(ScriptedFlow(tmp_path)), options=Options(notifiers=(heard,)))
    last = Stepped(record=replace(IDLE, ended=tuple(moves)))
    stand_in = SimpleNamespace(take_step=steps_of(Stepped(record=WAITING), last, last))
    monkeypatch.setitem(__import__("sys").modules, "topicops.features.moves.stepping", stand_in)
    for _ in range(3):
        looks.look(where, of(task))
    assert heard.heard == told


def test_the_log_says_how_far_the_moves_are_and_what_they_wait_for(
    run: EnvironmentRun, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    record = replace(WAITING, notes=("shop.orders: waits for broker 4, which is dead",))
    step(run, of(ScriptedTask()), steps_of(Stepped(record=record)))
    assert "shop.orders: 1 of 1 partition waits" in caplog.text
    assert "shop.orders: waits for broker 4, which is dead" in caplog.text


def topics_told(told: Any) -> list[str]:
    return sorted(event.dest_asset_key.uri for event in told["outlet_events"][topics_alias("local")].asset_alias_events)


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topicops.on_airflow.tasks.changes.first_server", lambda _: "")


@pytest.mark.usefixtures("no_server")
def test_each_topic_that_moved_as_planned_since_the_run_began_gets_an_event_at_the_end(run: EnvironmentRun) -> None:
    of_before, cancelled = ended("shop.old", minutes=-1), ended("shop.back", status="cancelled")
    partly = (ended("shop.partly"), ended("shop.partly", minutes=2, status="dropped"))
    first = replace(WAITING, ended=(of_before, ended("shop.orders"), cancelled, *partly))
    last = replace(IDLE, ended=(ended("shop.carts", minutes=2),))  # the record has only the newest
    take_step, told = steps_of(Stepped(record=first), Stepped(record=last)), of(ScriptedTask())
    assert step(run, told, take_step).is_done is False
    assert topics_told(told) == []
    assert step(run, told, take_step).is_done is True
    assert topics_told(told) == [topic_asset("local", name).uri for name in ("shop.carts", "shop.orders")]


@pytest.mark.usefixtures("no_server")
def test_many_topics_are_told_of_in_groups(
    tmp_path: Path, run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"shop.t{n:02}" for n in range(12)]
    record = replace(IDLE, ended=tuple(map(ended, names)))
    told = of(ScriptedTask())
    found = step(run, told, steps_of(Stepped(record=record)))
    groups = cast("Sequence[tuple[int, str]]", found.xcom_value)
    assert len(groups) > 1
    seen = topics_told(told)
    for first, server in groups:
        later = of(ScriptedTask(dag_id="topic_moves_local", run_id="moves__1"))
        announce(site(ScriptedFlow(tmp_path)), later, first, server)
        seen += topics_told(later)
    assert seen == [topic_asset("local", name).uri for name in names]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("14s", "is less than 15s", id="sooner than Airflow starts a task again"),
        pytest.param("fast", "not a duration", id="no duration"),
    ],
)
def test_steps_come_no_more_often_than_airflow_can_start_them(
    monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    monkeypatch.setenv("TOPICOPS_STEP_MOVES_EVERY", text)
    with pytest.raises(UsageError, match=reason):
        step_every()


def test_a_step_comes_each_minute_unless_the_setting_says_another_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOPICOPS_STEP_MOVES_EVERY", raising=False)
    assert step_every() == timedelta(minutes=1)
    monkeypatch.setenv("TOPICOPS_STEP_MOVES_EVERY", "15s")
    assert step_every() == timedelta(seconds=15)
