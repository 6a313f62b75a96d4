"""Whole runs by ``dag.test()``: real scheduling decisions, scripted steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import pytest
from airflow.sdk import DAG

from fakes import builders
from fixtures.scripted_flow import CREATE, DELETE, OTHER_DELETE, ScriptedFlow, digest, failed_rule, report_of, site
from topicops.edges.home.memories import HELD
from topicops.flow.runs.memory import question_name, read_held
from topicops.model.errors import WrongTargetError
from topicops.model.plans.changes import Change
from topicops.model.plans.plan_file import plan_from_json
from topicops.model.runs.memories import HeldSet
from topicops.model.runs.results import Quiet
from topicops.on_airflow.airflow_inside import IS_3_2
from topicops.on_airflow.dags.environment_dags import approval_dag, drift_dag, pipeline_dag
from topicops.on_airflow.site import Site

ADMIN = {"id": "1", "name": "admin"}


def nothing_happens() -> None:
    """Between the question and its answer."""


@contextmanager
def person(
    dag_id: str,
    option: str | None,
    *,
    filled: Mapping[str, str] | None = None,
    meanwhile: Callable[[], None] = nothing_happens,
) -> Iterator[None]:
    """Answers the next question of that DAG once it waits; None: lets pass each time limit with which it waits.

    Args:
        filled: The form beside the buttons.
    """
    if IS_3_2:
        pytest.skip(
            "dag.test() of Airflow 3.2 forgets what a task keeps while it waits; test_release_story.py asks there"
        )
    over = Event()
    thread = Thread(target=_answer, args=(dag_id, option, filled or {}, meanwhile, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _answer(
    dag_id: str, option: str | None, filled: Mapping[str, str], meanwhile: Callable[[], None], over: Event
) -> None:
    while not _is_asked(dag_id):
        if over.wait(0.1):
            return
    meanwhile()
    while not over.wait(0.1):
        if _is_asked(dag_id):  # again: what the task itself writes last may take back the first answer's effect
            _resume(dag_id, option, filled)
            over.wait(2.0)


def _is_asked(dag_id: str) -> bool:
    from airflow.utils.session import create_session

    with create_session() as session:
        return session.scalar(_waiting(dag_id)) is not None


def _resume(dag_id: str, option: str | None, filled: Mapping[str, str]) -> None:
    """As the API does with an answer, and the scheduler when there is none in time."""
    from airflow.models.hitl import HITLDetail
    from airflow.models.trigger import handle_event_submit
    from airflow.sdk import timezone
    from airflow.triggers.base import TriggerEvent
    from airflow.utils.session import create_session

    with create_session() as session:
        ti = session.scalar(_waiting(dag_id))
        if option is None:
            event = {"error": "The Human-in-the-loop response timeout has passed.", "error_type": "timeout"}
        else:
            asked = session.get(HITLDetail, ti.id)
            asked.responded_by, asked.responded_at, asked.chosen_options = ADMIN, timezone.utcnow(), [option]
            asked.params_input = dict(filled)
            event = asked.as_resume_event_payload()
        handle_event_submit(TriggerEvent(event), task_instance=ti, session=session)


def _waiting(dag_id: str):
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import select

    return select(TaskInstance).where(TaskInstance.dag_id == dag_id, TaskInstance.state == "awaiting_input")


pytestmark = pytest.mark.usefixtures("airflow_database")

ALL_KINDS = ["configure", "create", "delete", "expand"]
"""Kinds of changes of these runs: none of them moves replicas."""


def run_pipeline(flow: ScriptedFlow, **params: object) -> tuple[str, Mapping[str, str]]:
    run = pipeline_dag(site(flow)).test(run_conf={"mode": "apply", **params})
    return run.state, {ti.task_id: ti.state for ti in run.get_task_instances()}


def gate_words(flow: ScriptedFlow) -> Mapping[str, str]:
    """By topic, of the flow's one run."""
    (plan,) = (flow.home / "runs").glob("*/*/plan.json")
    return {g.change.topic: g.gate.value for g in plan_from_json(plan.read_text(encoding="utf-8")).changes}


def kinds_sent(flow: ScriptedFlow) -> list[str]:
    return [action for action, _ in flow.sent]


def asked() -> list[str]:
    """Run ids of the approval DAG, oldest first."""
    from airflow.models.dagrun import DagRun

    runs = DagRun.find(dag_id="topic_approval_local")
    return [run.run_id for run in sorted(runs, key=lambda run: run.id)]


EXPAND, CONFIGURE = builders.expand_change("clicks"), builders.configure_change("carts")


def question_of(*changes: Change) -> str:
    held = HeldSet(addresses={digest(change): "" for change in changes})
    return question_name(held.digest, len(changes))


def test_a_pipeline_sends_every_kind_with_deletes_last_and_ends_well(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, EXPAND, CONFIGURE, DELETE))
    state, tasks = run_pipeline(flow, approved=[digest(change) for change in flow.changes])
    assert state == "success"
    assert sorted(kinds_sent(flow)) == ALL_KINDS
    assert kinds_sent(flow)[-1] == "delete"
    assert {name for name, task in tasks.items() if task != "success"} == {"announce", "ask", "reassign"}


@pytest.mark.soak
def test_kinds_without_a_change_start_no_process_and_what_was_sent_is_verified_all_the_same(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    state, tasks = run_pipeline(flow)
    assert (state, kinds_sent(flow)) == ("success", ["create"])
    skipped = {name for name, task in tasks.items() if task != "success"}
    assert skipped == {"expand", "configure", "reassign", "delete", "announce", "ask"}


def test_mode_plan_ends_well_with_nothing_sent(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    state, tasks = run_pipeline(flow, mode="plan")
    assert state == "success"
    assert flow.sent == []
    assert [tasks[kind] for kind in ALL_KINDS] == ["skipped"] * 4
    assert tasks["report"] == "success"


def test_a_pipeline_with_nothing_to_do_asks_nothing_and_ends_well(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path)
    before = asked()
    state, tasks = run_pipeline(flow)
    assert state == "success"
    skipped = {name for name, task in tasks.items() if task == "skipped"}
    assert skipped == {*ALL_KINDS, "reassign", "verify", "announce", "ask"}
    assert {tasks[name] for name in ("quality_after", "report")} == {"success"}
    assert read_held(tmp_path, "local").addresses == {}
    assert asked() == before


@pytest.mark.soak
def test_without_a_change_the_rules_are_evaluated_again_only_if_no_run_left_this_very_state(tmp_path: Path) -> None:
    state, tasks = run_pipeline(ScriptedFlow(tmp_path, judged="topic_pipeline_local/1"))
    assert state == "success"
    skipped = {name for name, task in tasks.items() if task == "skipped"}
    assert skipped == {*ALL_KINDS, "reassign", "verify", "announce", "quality_after", "ask"}


QUIET = Quiet(
    sentence="Nothing differs from run topic_pipeline_local/1, which was good.",
    run="topic_pipeline_local/1",
    full_check_at=datetime(2026, 11, 24, tzinfo=UTC),
    commit="c" * 40,
)


@pytest.mark.parametrize("dag_of", [pipeline_dag, drift_dag])
def test_a_quiet_run_starts_two_tasks_and_ends_well(tmp_path: Path, dag_of: Callable[[Site], DAG]) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,), quiet=QUIET)
    run = dag_of(site(flow)).test()
    assert run.state == "success"
    states = {ti.task_id: ti.state for ti in run.get_task_instances()}
    assert {name for name, state in states.items() if state != "skipped"} == {"validate", "snapshot"}
    assert {states["validate"], states["snapshot"]} == {"success"}
    assert (flow.sent, flow.noted_good) == ([], [])


@pytest.mark.soak
def test_a_skipped_change_is_asked_about_by_nobody_and_fails_nothing(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, builders.create_change("__consumer_offsets")))
    before = asked()
    state, tasks = run_pipeline(flow)
    assert state == "success"
    assert gate_words(flow) == {"orders": "run", "__consumer_offsets": "skipped"}
    assert (tasks["create"], tasks["ask"]) == ("success", "skipped")
    assert asked() == before


@pytest.mark.soak
def test_approved_digests_cover_exactly_themselves_and_the_rest_is_asked_about(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE, OTHER_DELETE))
    before = asked()
    state, _ = run_pipeline(flow, approved=[digest(DELETE)])
    assert state == "success"
    assert gate_words(flow) == {"orders": "run", "tmp-import": "run", "old-clicks": "held"}
    assert {approved for _, approved in flow.sent} == {frozenset({digest(DELETE)})}
    assert asked() == [*before, f"{question_of(OTHER_DELETE)}.1"]


def test_after_a_failed_create_the_siblings_run_the_delete_does_not_and_the_run_is_failed(tmp_path: Path) -> None:
    changes = (CREATE, EXPAND, CONFIGURE, DELETE)
    flow = ScriptedFlow(tmp_path, changes=changes, outcomes_of={"create": {"refused": 1}})
    state, tasks = run_pipeline(flow, approved=[digest(change) for change in changes])
    assert state == "failed"
    assert sorted(kinds_sent(flow)) == ["configure", "create", "expand"]
    assert tasks["delete"] == "upstream_failed"
    assert flow.failed_tasks == ["create"]


@pytest.mark.soak
def test_a_critical_rule_before_the_plan_stops_everything_but_the_report(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, rules_before=(failed_rule("critical"),))
    state, tasks = run_pipeline(flow)
    assert state == "failed"
    assert flow.sent == []
    assert tasks["quality_before"] == "failed"
    assert tasks["gate"] == "upstream_failed"
    assert flow.failed_tasks == ["quality_before"]


@pytest.mark.soak
def test_a_verify_that_cannot_look_fails_the_run_and_the_rules_are_evaluated_all_the_same(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,), problem_of_verify=WrongTargetError("another cluster answers"))
    state, tasks = run_pipeline(flow)
    assert state == "failed"
    assert (tasks["create"], tasks["verify"], tasks["quality_after"]) == ("success", "failed", "success")
    assert flow.failed_tasks == ["verify"]


@pytest.mark.soak
def test_a_critical_rule_after_the_changes_fails_the_run(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, rules_after=(failed_rule("critical"),))
    state, tasks = run_pipeline(flow)
    assert state == "failed"
    assert tasks["quality_after"] == "failed"


@pytest.mark.soak
def test_an_unhealthy_check_fails_the_run_although_no_task_did(tmp_path: Path) -> None:
    state, tasks = run_pipeline(ScriptedFlow(tmp_path, report_summary=report_of(ok=False)))
    assert state == "failed"
    assert {name for name, task in tasks.items() if task == "failed"} == {"report"}


@pytest.mark.soak
def test_one_held_set_is_asked_about_once_and_holds_nothing_up(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    before = asked()
    first, tasks = run_pipeline(flow)
    second, tasks_again = run_pipeline(replace(flow, sent=[]))
    assert (first, second) == ("success", "success")
    assert (tasks["ask"], tasks_again["ask"]) == ("success", "skipped")
    assert asked() == [*before, f"{question_of(DELETE)}.1"]


@pytest.mark.soak
def test_without_a_recorded_answer_an_approval_run_sends_nothing_and_ends_well(tmp_path: Path) -> None:
    # `dag.test()` cannot wait for a person; a task that is marked as successful has no record, as after a rejection.
    HELD.of(tmp_path, "local").write(HeldSet(addresses={digest(DELETE): "delete topic.tmp-import"}))
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    run = approval_dag(site(flow)).test(run_conf={"digests": [digest(DELETE)]}, mark_success_pattern="approve")
    assert run.state == "success"
    assert flow.sent == []
    states = {ti.task_id: ti.state for ti in run.get_task_instances()}
    assert [states[kind] for kind in ALL_KINDS] == ["skipped"] * 4
    assert states["verify"] == "skipped"
    assert states["report"] == "success"


def ask(
    flow: ScriptedFlow, option: str | None, *, meanwhile: Callable[[], None] = nothing_happens
) -> tuple[str, Mapping[str, str]]:
    """Return the approval of a delete that is held, answered so; None: not at all, and its time limit passes."""
    HELD.of(flow.home, "local").write(HeldSet(addresses={digest(DELETE): "delete topic.tmp-import"}))
    with person("topic_approval_local", option, meanwhile=meanwhile):
        run = approval_dag(site(flow)).test(run_conf={"digests": [digest(DELETE)]})
    return run.state, {ti.task_id: ti.state for ti in run.get_task_instances()}


def test_an_approval_sends_what_was_asked_verifies_it_and_ends_well(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    state, tasks = ask(flow, "Approve")
    assert state == "success"
    assert {name for name, task in tasks.items() if task != "success"} == {
        "create",
        "expand",
        "configure",
        "reassign",
        "announce",
    }
    assert kinds_sent(flow) == ["delete"]
    assert {approved for _, approved in flow.sent} == {frozenset({digest(DELETE)})}
    assert [given.signature for given in flow.approvals] == ["admin (id 1)"]


def test_a_rejection_sends_nothing_and_ends_well(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    state, tasks = ask(flow, "Reject")
    assert state == "success"
    assert flow.sent == []
    assert {tasks[name] for name in (*ALL_KINDS, "verify")} == {"skipped"}
    assert (tasks["approve"], tasks["report"]) == ("success", "success")


@pytest.mark.soak
def test_an_approval_of_a_part_sends_that_part_and_the_next_run_asks_nobody_about_the_rest(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(DELETE, OTHER_DELETE))
    held = {digest(DELETE): "delete topic.tmp-import", digest(OTHER_DELETE): "delete topic.old-clicks"}
    HELD.of(tmp_path, "local").write(HeldSet(addresses=held))
    with person("topic_approval_local", "Approve", filled={"delete old-clicks": "reject", "comment": "still read"}):
        run = approval_dag(site(flow)).test()
    assert run.state == "success"
    assert {approved for _, approved in flow.sent} == {frozenset({digest(DELETE)})}
    before = asked()
    state, tasks = run_pipeline(replace(flow, changes=(OTHER_DELETE,), sent=[]))
    assert (state, tasks["ask"]) == ("success", "skipped")
    assert asked() == before
    run_pipeline(replace(flow, changes=(OTHER_DELETE, builders.delete_change("older")), sent=[]))
    assert len(asked()) == len(before) + 1


@pytest.mark.soak
def test_no_answer_in_time_sends_nothing_and_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICOPS_ANSWER_WITHIN", "1s")
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    state, tasks = ask(flow, None)
    assert state == "failed"
    assert flow.sent == []
    assert tasks["approve"] == "failed"
    assert (tasks["delete"], tasks["verify"], tasks["quality_after"]) == ("upstream_failed", "skipped", "skipped")


@pytest.mark.parametrize(
    ("option", "approve", "report"),
    [
        pytest.param("Approve", "success", "skipped", id="approved", marks=pytest.mark.soak),
        pytest.param(None, "skipped", "success", id="not answered: the question is withdrawn"),
    ],
)
def test_a_question_whose_set_was_replaced_while_it_waited_sends_nothing_fails_nothing_and_is_not_all_green(
    tmp_path: Path, option: str | None, approve: str, report: str
) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    newer = HeldSet(addresses={digest(OTHER_DELETE): "delete topic.old-clicks"}, found_by="p/run-2")
    state, tasks = ask(flow, option, meanwhile=lambda: HELD.of(tmp_path, "local").write(newer))
    assert state == "success"
    assert flow.sent == []
    assert {tasks[name] for name in (*ALL_KINDS, "verify", "quality_after")} == {"skipped"}
    assert (tasks["approve"], tasks["report"]) == (approve, report)


@pytest.mark.soak
def test_nobody_is_asked_when_the_set_is_due_no_more(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    run = approval_dag(site(flow)).test(run_conf={"digests": [digest(DELETE)]})
    states = {ti.task_id: ti.state for ti in run.get_task_instances()}
    assert run.state == "success"
    assert states["approve"] == "skipped"
    assert flow.sent == []


def test_a_drift_run_tells_what_differs_sends_nothing_and_ends_well(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    run = drift_dag(site(flow)).test()
    assert run.state == "success"
    assert {ti.state for ti in run.get_task_instances()} == {"success"}
    assert flow.sent == []
    assert not HELD.of(tmp_path, "local").path.exists()


@pytest.mark.soak
def test_a_drift_run_whose_inputs_cannot_be_trusted_is_failed_and_tells_no_drift(tmp_path: Path) -> None:
    run = drift_dag(site(ScriptedFlow(tmp_path, rules_before=(failed_rule("critical"),)))).test()
    states = {ti.task_id: ti.state for ti in run.get_task_instances()}
    assert run.state == "failed"
    assert (states["quality_before"], states["drift"]) == ("failed", "upstream_failed")
