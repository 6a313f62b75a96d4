"""Which topics get an asset event, and what a DAG of data finds in it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import cast

import pytest
from airflow.sdk import Asset, Context
from airflow.sdk.execution_time.context import OutletEventAccessors

from fakes import builders
from fixtures.scripted_flow import CREATE, DELETE, ScriptedFlow, ScriptedTask, context, site
from topicops.flow.runs.run import open_run
from topicops.model.plans.changes import Action
from topicops.model.runs.results import Check, Outcome, OutcomeStatus, Verdict
from topicops.on_airflow import topic_asset, topics_alias
from topicops.on_airflow.dags.environment_dags import approval_dag, pipeline_dag
from topicops.on_airflow.for_dag_files import kafka_alias, kafka_asset
from topicops.on_airflow.tasks import changes, opening, planning
from topicops.on_airflow.tasks.changes import ready_topics

ENVIRONMENT = """\
apiVersion: topicops/v1
kind: Environment
metadata: {{name: local}}
spec: {{cluster: {{class: sandbox, source: kafka, lease: none, {kafka}}}}}
"""


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
        outcome("moving", "configure"),
        outcome("moving", "reassign", OutcomeStatus.MOVING),
        outcome("moved by an earlier run", "configure"),
        outcome("moved", "reassign"),
    ]
    checks = [check("a"), check("b", Verdict.NOT_CHECKED), check("slow", Verdict.CONVERGING), check("gone")]
    checks += [check("moving"), check("moved by an earlier run", Verdict.MOVING), check("moved")]
    assert ready_topics(outcomes, checks) == {"a": ["expand", "configure"], "b": ["create"], "moved": ["reassign"]}


@pytest.mark.parametrize("dag_of", [pipeline_dag, approval_dag])
def test_verify_of_both_dags_emits_by_the_alias_of_its_environment(tmp_path: Path, dag_of) -> None:
    assert dag_of(site(ScriptedFlow(tmp_path))).get_task("verify").outlets == [
        topics_alias("local"),
        kafka_alias("local"),
    ]


def test_verify_emits_what_was_done_by_which_run_of_which_commit(tmp_path: Path) -> None:
    flow, given = ScriptedFlow(tmp_path, changes=(CREATE, DELETE)), context(ScriptedTask())
    for task in (planning.gate, partial(changes.pipeline_change, "create"), changes.verify):
        task(site(flow), cast("Context", given))
    events = cast("OutletEventAccessors", given["outlet_events"])
    (event,) = events[topics_alias("local")].asset_alias_events
    assert (event.source_alias_name, event.dest_asset_key.uri) == ("topicops://local", "topicops://local/orders")
    page = "/topicops/dags/topic_pipeline_local/topic?name=orders"
    assert event.extra.pop("page").endswith(page)
    assert event.extra == {"actions": ["create"], "run": "topic_pipeline_local/manual__1", "commit": ""}
    assert event.dest_asset_key.uri == topic_asset("local", "orders").uri
    assert topic_asset("local", "orders").group == "topicops-local"


def test_each_event_goes_to_the_asset_of_airflows_kafka_provider_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "first_server", lambda run: "b1:9092")
    flow, given = ScriptedFlow(tmp_path, changes=(CREATE,)), context(ScriptedTask())
    for task in (planning.gate, partial(changes.pipeline_change, "create"), changes.verify):
        task(site(flow), cast("Context", given))
    events = cast("OutletEventAccessors", given["outlet_events"])
    (ours,), (theirs,) = (events[alias("local")].asset_alias_events for alias in (topics_alias, kafka_alias))
    by_hand = Asset("kafka://b1:9092/orders")
    assert (theirs.dest_asset_key.uri, theirs.dest_asset_key.name) == (by_hand.uri, by_hand.name)
    assert theirs.extra == ours.extra


@pytest.mark.parametrize(
    ("servers", "first"),
    [("b1:9092", "b1:9092"), (" SASL_SSL://b1:9093 ,b2:9093", "b1:9093"), ("[::1]:9092", "[::1]:9092"), (None, "")],
)
def test_the_name_has_the_first_bootstrap_server(tmp_path: Path, servers: str | None, first: str) -> None:
    kafka = f"kafka: {{bootstrapServers: '{servers}'}}" if servers else ""
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/local.yaml").write_text(ENVIRONMENT.format(kafka=kafka), encoding="utf-8")
    run = open_run(environment="local", topics=tmp_path, group="g", run_id="r", home=tmp_path / "home")
    assert changes.first_server(run) == first
    assert not first or kafka_asset(first, "orders").uri == f"kafka://{first}/orders"


def test_a_topic_that_did_not_become_healthy_gets_no_event(tmp_path: Path) -> None:
    flow, given = ScriptedFlow(tmp_path, changes=(CREATE,), verdict=Verdict.CONVERGING), context(ScriptedTask())
    for task in (planning.gate, partial(changes.pipeline_change, "create"), changes.verify):
        task(site(flow), cast("Context", given))
    assert cast("OutletEventAccessors", given["outlet_events"])[topics_alias("local")].asset_alias_events == []


def test_an_asset_is_named_by_environment_and_topic() -> None:
    asset = topic_asset("prod_eu", "Shop.orders_v1-x")
    assert (asset.uri, asset.name) == ("topicops://prod_eu/Shop.orders_v1-x", "topicops://prod_eu/Shop.orders_v1-x")


def test_a_later_group_names_the_server_of_the_first_and_reads_no_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = iter(["b1:9092"])
    monkeypatch.setattr(changes, "first_server", lambda run: next(servers))
    topics = [f"t-{number:03}" for number in range(6)]
    flow, given = ScriptedFlow(tmp_path, changes=[*map(builders.create_change, topics)]), context(ScriptedTask())
    for task in (planning.gate, partial(changes.pipeline_change, "create")):
        task(site(flow), cast("Context", given))
    ((first, server),) = changes.verify(site(flow), cast("Context", given))
    mapped = context(ScriptedTask(task_id="announce"))
    changes.announce(site(flow), cast("Context", mapped), first, server)
    (theirs,) = cast("OutletEventAccessors", mapped["outlet_events"])[kafka_alias("local")].asset_alias_events
    assert theirs.dest_asset_key.uri == "kafka://b1:9092/t-005"


def announced(given: dict[str, object]) -> list[str]:
    events = cast("OutletEventAccessors", given["outlet_events"])[topics_alias("local")].asset_alias_events
    return [event.dest_asset_key.uri.rpartition("/")[2] for event in events]


def test_each_of_very_many_topics_has_its_event_in_a_group_that_airflow_stores_in_time(tmp_path: Path) -> None:
    topics = [f"t-{number:03}" for number in range(31)]
    flow, given = ScriptedFlow(tmp_path, changes=[*map(builders.create_change, topics)]), context(ScriptedTask())
    for task in (planning.gate, partial(changes.pipeline_change, "create")):
        task(site(flow), cast("Context", given))
    groups = changes.verify(site(flow), cast("Context", given))
    assert groups == [[first, ""] for first in (5, 10, 15, 20, 25, 30)]  # of Airflow's five seconds
    seen = announced(given)
    for first, server in groups:
        mapped = context(ScriptedTask(task_id="announce"))
        changes.announce(site(flow), cast("Context", mapped), first, server)
        seen += announced(mapped)
    assert seen == topics


@pytest.mark.parametrize(
    ("timeout_s", "most", "groups"), [("120", "9", []), ("0.1", "9", [1, 2, 3]), ("0.1", "2", [2])]
)
def test_a_group_follows_the_settings_of_airflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timeout_s: str, most: str, groups: list[int]
) -> None:
    monkeypatch.setenv("AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT", timeout_s)
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", most)
    flow, given = ScriptedFlow(tmp_path, changes=[*map(builders.create_change, "abcd")]), context(ScriptedTask())
    for task in (planning.gate, partial(changes.pipeline_change, "create")):
        task(site(flow), cast("Context", given))
    assert [first for first, _ in changes.verify(site(flow), cast("Context", given))] == groups


def test_a_group_is_small_enough_for_others_to_write_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT", "60")
    topics = [f"t-{number:03}" for number in range(60)]
    flow, given = ScriptedFlow(tmp_path, changes=[*map(builders.create_change, topics)]), context(ScriptedTask())
    for task in (planning.gate, partial(changes.pipeline_change, "create")):
        task(site(flow), cast("Context", given))
    assert [first for first, _ in changes.verify(site(flow), cast("Context", given))] == [25, 50]


def test_the_run_does_not_fail_with_an_event_whose_answer_came_late() -> None:
    states = {"verify": "success", "announce_0": "success", "announce_1": "failed", "announce": "upstream_failed"}
    assert opening.failed_tasks(cast("Context", context(ScriptedTask(states=states)))) == []
