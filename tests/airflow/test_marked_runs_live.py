"""A run that a person marks as failed while it sends: it stops, is told and shown, and the next run verifies first.

A real Airflow, a real cluster; the create task stops itself when the first of its two requests was answered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from fixtures.live import until
from fixtures.stopped_runs import PIPELINE, Stage, stage_for_kills
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("told") / "told.txt"


@pytest.fixture(scope="module")
def stage(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory, told: Path) -> Iterator[Stage]:
    more = {"TOPICOPS_NOTIFY": "fixtures.writing_notifier:to_file", "TOLD_TO": str(told)}
    with stage_for_kills(tmp_path_factory.mktemp("marked"), local_cluster, more) as stage:
        yield stage


def verdicts(told: Path, kind: str) -> list[str]:
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    return [event["verdict"] for event in map(json.loads, lines) if event["kind"] == kind]


def test_a_marked_run_stops_is_told_shown_and_verified_by_the_next_one(stage: Stage, told: Path) -> None:
    whole = stage.client.trigger(PIPELINE, {"mode": "plan"})  # so that the pages know the cluster
    for _ in stage.client.follow(PIPELINE, whole, timeout_s=300):
        pass
    run = stage.stopped_run()
    one, two, *_ = run.topics
    stage.ask("PATCH", f"/api/v2/dags/{PIPELINE}/dagRuns/{quote(run.run_id)}", {"state": "failed"})
    run.go_on()
    until(lambda: bool(verdicts(told, "failed")), timeout_s=90)
    until(lambda: not run.is_alive, timeout_s=60)

    created = {topic for topic in (one, two) if run.history().after[topic]}
    assert len(created) == 1, "no request may leave after the run was marked"
    (verdict,) = verdicts(told, "failed")
    assert f"run {PIPELINE}/{run.run_id}: Dag Run's state was manually set to `failed`" in verdict
    assert f"create {one}" in verdict
    assert two not in verdict
    assert "not verified, which the next run does first" in verdict
    assert "manually set" in stage.client.run_note(PIPELINE, run.run_id)

    shown = stage.ask("GET", f"/topicops/dags/{PIPELINE}/topics")
    assert "The newest run, " in shown
    assert "changed since" in shown or "older than the changes of" in shown
    first = stage.ask("GET", "/topicops/topics")
    assert "1 in trouble" in first
    assert "newest run failed" in first

    next_id = stage.client.trigger(PIPELINE, {"mode": "plan", "only": f"{run.prefix}-*"})
    stage.client.wait_for_task(PIPELINE, next_id, "snapshot", "success", timeout_s=120)
    log = stage.client.log(PIPELINE, next_id, "snapshot")
    assert f"run {PIPELINE}/{run.run_id} ended before it had verified" in log
    for _ in stage.client.follow(PIPELINE, next_id, timeout_s=300):
        pass
    assert stage.client.run_state(PIPELINE, next_id) == "success"
    until(lambda: bool(stage.client.run_note(PIPELINE, next_id)), timeout_s=20)
