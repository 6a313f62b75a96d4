"""Whole runs by ``dag.test()``: real scheduling decisions, scripted steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.scripted_flow import CREATE, DELETE, ScriptedFlow, digest, failed_rule, site
from topicops.on_airflow.dags import approval_dag, drift_dag, pipeline_dag
from topicops.on_airflow.held import HeldSet, held_path, write_held

pytestmark = pytest.mark.usefixtures("airflow_database")

ALL_KINDS = ["configure", "create", "delete", "expand"]


def run_pipeline(flow: ScriptedFlow, **params: object) -> tuple[str, Mapping[str, str]]:
    run = pipeline_dag(site(flow)).test(run_conf={"mode": "apply", **params})
    return run.state, {ti.task_id: ti.state for ti in run.get_task_instances()}


def kinds_sent(flow: ScriptedFlow) -> list[str]:
    return [action for action, _ in flow.sent]


def asked() -> list[str]:
    """Run ids of the approval DAG, oldest first."""
    from airflow.models.dagrun import DagRun

    runs = DagRun.find(dag_id="topic_approval_local")
    return [run.run_id for run in sorted(runs, key=lambda run: run.id)]


def test_a_pipeline_sends_every_kind_with_deletes_last_and_ends_well(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    state, tasks = run_pipeline(flow)
    assert state == "success"
    assert sorted(kinds_sent(flow)) == ALL_KINDS
    assert kinds_sent(flow)[-1] == "delete"
    assert {name for name, task in tasks.items() if task != "success"} == {"ask"}


def test_mode_plan_ends_well_with_nothing_sent(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    state, tasks = run_pipeline(flow, mode="plan")
    assert state == "success"
    assert flow.sent == []
    assert [tasks[kind] for kind in ALL_KINDS] == ["skipped"] * 4
    assert tasks["report"] == "success"


def test_after_a_failed_create_the_siblings_run_the_delete_does_not_and_the_run_is_failed(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,), outcomes_of={"create": {"refused": 1}})
    state, tasks = run_pipeline(flow)
    assert state == "failed"
    assert sorted(kinds_sent(flow)) == ["configure", "create", "expand"]
    assert tasks["delete"] == "upstream_failed"
    assert flow.failed_tasks == ["create"]


def test_a_critical_rule_before_the_plan_stops_everything_but_the_report(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, rules_before=(failed_rule("critical"),))
    state, tasks = run_pipeline(flow)
    assert state == "failed"
    assert flow.sent == []
    assert tasks["quality_before"] == "failed"
    assert tasks["gate"] == "upstream_failed"
    assert flow.failed_tasks == ["quality_before"]


def test_a_critical_rule_after_the_changes_fails_the_run(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, rules_after=(failed_rule("critical"),))
    state, tasks = run_pipeline(flow)
    assert state == "failed"
    assert tasks["quality_after"] == "failed"


def test_an_unhealthy_check_fails_the_run_although_no_task_did(tmp_path: Path) -> None:
    state, tasks = run_pipeline(ScriptedFlow(tmp_path, report_facts={"ok": False}))
    assert state == "failed"
    assert {name for name, task in tasks.items() if task == "failed"} == {"report"}


def test_one_held_set_is_asked_about_once_and_holds_nothing_up(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    before = asked()
    first, tasks = run_pipeline(flow)
    second, tasks_again = run_pipeline(replace(flow, sent=[]))
    assert (first, second) == ("success", "success")
    assert (tasks["ask"], tasks_again["ask"]) == ("success", "skipped")
    question = HeldSet(addresses={digest(DELETE): ""}).digest
    assert asked() == [*before, f"{question}.1"]


def test_without_a_recorded_answer_an_approval_run_sends_nothing_and_ends_well(tmp_path: Path) -> None:
    # `dag.test()` cannot wait for a person; a task that is marked as successful has no record, as after a rejection.
    write_held(held_path(tmp_path, "local"), HeldSet(addresses={digest(DELETE): "delete topic.tmp-import"}))
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    run = approval_dag(site(flow)).test(run_conf={"digests": [digest(DELETE)]}, mark_success_pattern="approve")
    assert run.state == "success"
    assert flow.sent == []
    states = {ti.task_id: ti.state for ti in run.get_task_instances()}
    assert [states[kind] for kind in ALL_KINDS] == ["skipped"] * 4
    assert states["verify"] == "skipped"
    assert states["report"] == "success"


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
    assert not held_path(tmp_path, "local").exists()


def test_a_drift_run_whose_inputs_cannot_be_trusted_is_failed_and_tells_no_drift(tmp_path: Path) -> None:
    run = drift_dag(site(ScriptedFlow(tmp_path, rules_before=(failed_rule("critical"),)))).test()
    states = {ti.task_id: ti.state for ti in run.get_task_instances()}
    assert run.state == "failed"
    assert (states["quality_before"], states["drift"]) == ("failed", "upstream_failed")
