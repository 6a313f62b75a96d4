"""Which topics get an asset event, and what a DAG of data finds in it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from airflow.sdk import Context
from airflow.sdk.execution_time.context import OutletEventAccessors

from fixtures.scripted_flow import CREATE, DELETE, ScriptedFlow, site
from fixtures.scripted_task import ScriptedTask, context
from topicops.model.plans.changes import Action
from topicops.model.runs.results import Check, Outcome, OutcomeStatus, Verdict
from topicops.on_airflow import assets, tasks, topic_asset, topics_alias
from topicops.on_airflow.assets import ready_topics
from topicops.on_airflow.dags import approval_dag, pipeline_dag
from topicops.testing import builders


def outcome(topic: str, action: Action, status: OutcomeStatus = OutcomeStatus.DONE) -> Outcome:
    return Outcome(topic=topic, action=action, digest="", status=status)


def check(topic: str, verdict: Verdict = Verdict.HEALTHY) -> Check:
    return Check(id="V01", topic=topic, verdict=verdict)


def test_a_topic_is_ready_when_a_change_is_in_place_and_every_check_of_it_is_healthy() -> None:
    outcomes = [
        outcome("a", "expand"),
        outcome("a", "configure"),
        outcome("b", "create", OutcomeStatus.ALREADY_SO),
        outcome("refused", "configure", OutcomeStatus.REFUSED),
        outcome("slow", "create"),
        outcome("gone", "delete"),
    ]
    checks = [check("a"), check("b", Verdict.NOT_CHECKED), check("slow", Verdict.CONVERGING), check("gone")]
    assert ready_topics(outcomes, checks) == {"a": ["expand", "configure"], "b": ["create"]}


@pytest.mark.parametrize("dag_of", [pipeline_dag, approval_dag])
def test_verify_of_both_dags_emits_by_the_alias_of_its_environment(tmp_path: Path, dag_of) -> None:
    assert dag_of(site(ScriptedFlow(tmp_path))).get_task("verify").outlets == [topics_alias("local")]


def test_verify_emits_what_was_done_by_which_run_of_which_commit(tmp_path: Path) -> None:
    flow, given = ScriptedFlow(tmp_path, changes=(CREATE, DELETE)), context(ScriptedTask())
    for task in (tasks.gate, tasks.pipeline_change("create"), tasks.verify):
        task(site(flow), cast("Context", given))
    events = cast("OutletEventAccessors", given["outlet_events"])
    (event,) = events[topics_alias("local")].asset_alias_events
    assert (event.source_alias_name, event.dest_asset_key.uri) == ("topicops://local", "topicops://local/orders")
    assert event.extra == {"actions": ["create"], "run": "topic_pipeline_local/manual__1", "commit": ""}


def test_a_topic_that_did_not_become_healthy_gets_no_event(tmp_path: Path) -> None:
    flow, given = ScriptedFlow(tmp_path, changes=(CREATE,), verdict=Verdict.CONVERGING), context(ScriptedTask())
    for task in (tasks.gate, tasks.pipeline_change("create"), tasks.verify):
        task(site(flow), cast("Context", given))
    assert cast("OutletEventAccessors", given["outlet_events"])[topics_alias("local")].asset_alias_events == []


def test_an_asset_is_named_by_environment_and_topic() -> None:
    asset = topic_asset("prod_eu", "Shop.orders_v1-x")
    assert (asset.uri, asset.name) == ("topicops://prod_eu/Shop.orders_v1-x", "topicops://prod_eu/Shop.orders_v1-x")


def test_of_very_many_topics_those_that_somebody_waits_for_get_their_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    changes = [builders.create_change(f"t-{number}") for number in range(assets.MOST_EVENTS + 1)]
    monkeypatch.setattr(assets, "is_known", lambda asset: asset.uri.endswith("/t-7"))
    flow, given = ScriptedFlow(tmp_path, changes=changes), context(ScriptedTask())
    for task in (tasks.gate, tasks.pipeline_change("create"), tasks.verify):
        task(site(flow), cast("Context", given))
    events = cast("OutletEventAccessors", given["outlet_events"])[topics_alias("local")].asset_alias_events
    assert [event.dest_asset_key.uri for event in events] == ["topicops://local/t-7"]
    assert "200 of 201 changed topics have no asset event" in caplog.text
