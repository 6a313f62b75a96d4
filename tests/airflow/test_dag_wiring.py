"""Which task stands where: the wiring decides whether a delete can run after a failure or a rejection."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from copy import copy
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.models.taskinstancekey import TaskInstanceKey
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException, ParamValidationError
from airflow.serialization.serialized_objects import DagSerialization

from fakes import builders
from fixtures.imports import WITH_AIRFLOW
from fixtures.reviews import as_param, review_of, signed
from topicops.on_airflow.dags.environment_dags import misnamed
from topicops.on_airflow.dags.operators import STEP_OPERATORS, PlanLink, QualityLink
from topicops.on_airflow.names import PLAN_ROUTE, QUALITY_ROUTE
from topicops.on_airflow.plugin import TopicopsPlugin

REPOSITORY = Path(__file__).resolve().parents[2]
KINDS = ("pipeline", "approval", "drift", "moves")
CHANGES = {"create", "expand", "configure", "reassign", "delete"}
PIPELINE_UPSTREAM = {
    "validate": set(),
    "snapshot": {"validate"},
    "quality_before": {"snapshot"},
    "diff": {"quality_before"},
    "plan": {"diff"},
    "gate": {"plan"},
    "create": {"gate"},
    "expand": {"gate"},
    "configure": {"gate"},
    "reassign": {"gate"},
    "delete": {"gate", "create", "expand", "configure", "reassign"},
    "verify": CHANGES,
    "announce": {"verify"},
    "quality_after": {"verify"},
    "ask": {"gate"},
    "report": {"quality_after", "announce", "ask", *CHANGES},
}
DRIFT_UPSTREAM = {
    "validate": set(),
    "snapshot": {"validate"},
    "quality_before": {"snapshot"},
    "diff": {"quality_before"},
    "plan": {"diff"},
    "drift": {"plan"},
}
APPROVAL_UPSTREAM = {
    "load": set(),
    "approve": {"load"},
    "create": {"approve"},
    "expand": {"approve"},
    "configure": {"approve"},
    "reassign": {"approve"},
    "delete": {"approve", "create", "expand", "configure", "reassign"},
    "verify": CHANGES,
    "announce": {"verify"},
    "quality_after": {"verify"},
    "report": {"quality_after", "announce", *CHANGES},
}


REVIEW: Mapping[str, Any] = as_param(signed(review_of(builders.delete_change("old"))))[0]


def with_field(name: str, value: object) -> list[object]:
    return [{**REVIEW, "review": {**REVIEW["review"], name: value}}]


@pytest.fixture(scope="module")
def dags(project: Path) -> Mapping[str, DAG]:
    bag = DagBag(dag_folder=str(project / "dags"))
    assert bag.import_errors == {}
    return bag.dags


def test_the_dag_files_of_this_repository_can_be_imported() -> None:
    bag = DagBag(dag_folder=str(REPOSITORY / "dags"))
    assert bag.import_errors == {}
    assert {f"topic_{kind}_local" for kind in KINDS} <= set(bag.dags)


def test_each_environment_file_has_one_set_of_dags_also_one_that_is_no_yaml(dags: Mapping[str, DAG]) -> None:
    own = {f"topic_{kind}_{environment}" for kind in KINDS for environment in ("local", "prod-eu")}
    assert set(dags) == own


ODD_NAMES = ("prod eu", "prod@eu", "prod+eu", "ü", "n" * 101, "local\ncopy")


def test_a_file_name_that_can_name_no_dag_leaves_the_others_their_dags_and_is_named_by_a_dag(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "dags", tmp_path / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "topics/environments").mkdir(parents=True)
    for name in ("local", "prod-eu_2", "n" * 100, *ODD_NAMES):
        (tmp_path / f"topics/environments/{name}.yaml").touch()
    bag = DagBag(dag_folder=str(tmp_path / "dags"))
    assert bag.import_errors == {}
    own = {f"topic_{kind}_{environment}" for kind in KINDS for environment in ("local", "prod-eu_2", "n" * 100)}
    assert set(bag.dags) == {*own, "topic_problems"}
    said = misnamed(tmp_path / "topics")
    assert len(said) == len(ODD_NAMES)
    assert any("prod eu.yaml has no DAGs" in line for line in said)
    assert all("\n" not in line for line in said)


def test_an_approval_and_moves_are_judged_by_the_files_of_now_and_a_pipeline_by_those_of_its_own_commit(
    dags: Mapping[str, DAG],
) -> None:
    unpinned = {name for name, dag in dags.items() if dag.disable_bundle_versioning}
    answered_or_moving = {f"topic_{kind}_{name}" for kind in ("approval", "moves") for name in ("local", "prod-eu")}
    assert unpinned == answered_or_moving


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("pipeline", PIPELINE_UPSTREAM, id="pipeline"),
        pytest.param("approval", APPROVAL_UPSTREAM, id="approval"),
        pytest.param("drift", DRIFT_UPSTREAM, id="drift"),
        pytest.param("moves", {"step": set(), "announce": {"step"}}, id="moves"),
    ],
)
def test_every_task_has_exactly_these_direct_upstreams(
    dags: Mapping[str, DAG], kind: str, expected: Mapping[str, set[str]]
) -> None:
    dag = dags[f"topic_{kind}_local"]
    assert {task.task_id: set(task.upstream_task_ids) for task in dag.tasks} == expected


@pytest.mark.parametrize("kind", ["pipeline", "approval"])
def test_only_what_looks_and_reports_runs_whatever_happened(dags: Mapping[str, DAG], kind: str) -> None:
    rules = {task.task_id: task.trigger_rule.value for task in dags[f"topic_{kind}_local"].tasks}
    special = {name: rule for name, rule in rules.items() if rule != "all_success"}
    looks = dict.fromkeys(("verify", "quality_after", "report"), "all_done")
    assert special == {"delete": "none_failed", **looks}


def test_a_branch_below_which_a_task_was_skipped_skips_it_again_when_it_alone_is_cleared(
    dags: Mapping[str, DAG],
) -> None:
    branches = {
        kind: {task.task_id for task in dags[f"topic_{kind}_local"].tasks if task.inherits_from_skipmixin}
        for kind in KINDS
    }
    assert branches == {
        "pipeline": {"snapshot", "gate"},
        "approval": {"load", "approve"},
        "drift": {"snapshot"},
        "moves": set(),
    }


def test_looking_for_drift_ends_at_the_first_step_that_fails(dags: Mapping[str, DAG]) -> None:
    assert {task.trigger_rule.value for task in dags["topic_drift_local"].tasks} == {"all_success"}


def test_nobody_answers_for_the_approver(dags: Mapping[str, DAG]) -> None:
    approve = dags["topic_approval_local"].get_task("approve")
    assert approve.options == ["Approve", "Reject"]
    assert approve.defaults is None
    assert approve.response_timeout == timedelta(hours=8)
    assert approve.retries == 0
    assert not approve.ignore_downstream_trigger_rules


def test_the_question_is_asked_once(dags: Mapping[str, DAG]) -> None:
    ask = dags["topic_pipeline_local"].get_task("ask")
    assert ask.trigger_dag_id == "topic_approval_local"
    assert ask.skip_when_already_exists
    assert not ask.wait_for_completion


def test_nobody_is_asked_by_a_paused_dag(dags: Mapping[str, DAG], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its run would wait in the queue for ever, and nobody would know of the question."""
    asked = ("1-change-0f3a.1", {}, "1 held change")
    monkeypatch.setattr("topicops.on_airflow.tasks.approval.to_ask", lambda *_: asked)
    ti = SimpleNamespace(get_dag=lambda dag_id: SimpleNamespace(is_paused=dag_id == "topic_approval_local"))
    with pytest.raises(AirflowException, match="topic_approval_local is paused, so nobody would be asked: unpause it"):
        dags["topic_pipeline_local"].get_task("ask").execute({"ti": ti})


def test_pipelines_run_one_at_a_time_and_never_catch_up(dags: Mapping[str, DAG]) -> None:
    assert [dags[f"topic_{kind}_local"].max_active_runs for kind in ("pipeline", "drift", "moves")] == [1, 1, 1]
    for dag in dags.values():
        assert not dag.catchup
        assert dag.is_paused_upon_creation is False
        assert dag.tags >= {"topicops", "kafka"}
        assert dag.doc_md
        assert {task.owner for task in dag.tasks} == {"topicops"}


def test_a_pipeline_only_looks_unless_told_otherwise(dags: Mapping[str, DAG]) -> None:
    pipeline = dags["topic_pipeline_local"]
    assert pipeline.params["mode"] == "plan"
    assert pipeline.schedule is None


def test_mode_and_schedule_come_from_the_environment_variables(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICOPS_MODE", "apply")
    monkeypatch.setenv("TOPICOPS_SCHEDULE", "0 * * * *")
    bag = DagBag(dag_folder=str(project / "dags"))
    assert bag.dags["topic_pipeline_local"].params["mode"] == "apply"
    assert bag.dags["topic_pipeline_local"].schedule == "0 * * * *"
    assert bag.dags["topic_approval_local"].schedule is None
    assert bag.dags["topic_drift_local"].schedule is None


def test_drift_is_looked_for_on_a_schedule_of_its_own(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICOPS_DRIFT_SCHEDULE", "@daily")
    bag = DagBag(dag_folder=str(project / "dags"))
    assert {kind: bag.dags[f"topic_{kind}_local"].schedule for kind in KINDS} == {
        "pipeline": None,
        "approval": None,
        "drift": "@daily",
        "moves": None,
    }


def test_a_run_takes_the_reviews_that_ci_signs(dags: Mapping[str, DAG]) -> None:
    params = copy(dags["topic_pipeline_local"].params)
    params["reviews"] = [REVIEW] * 50
    assert params.validate()["reviews"] == [REVIEW] * 50


@pytest.mark.parametrize(
    "reviews",
    [
        pytest.param([REVIEW] * 51, id="more than 50 reviews"),
        pytest.param([{**REVIEW, "approved": True}], id="a field that no review has"),
        pytest.param([{"review": REVIEW["review"]}], id="no signature"),
        pytest.param([{**REVIEW, "signature": "f" * 63}], id="a signature that is too short"),
        pytest.param(with_field("digests", ["f" * 64] * 501), id="more than 500 digests"),
        pytest.param(with_field("digests", ["all"]), id="a digest that is none"),
        pytest.param(with_field("merge_commit", "--all"), id="a commit that is none"),
        pytest.param(with_field("pull_request", "12"), id="a number in quotes"),
        pytest.param(with_field("owner", "alice"), id="a field that no review has, within"),
        pytest.param("alice", id="no list"),
    ],
)
def test_params_that_are_no_reviews_are_refused_when_the_run_is_triggered(
    dags: Mapping[str, DAG], reviews: object
) -> None:
    params = copy(dags["topic_pipeline_local"].params)
    with pytest.raises(ParamValidationError):
        params["reviews"] = reviews


@pytest.mark.parametrize("commit", ["main", "a" * 39, "A" * 40, "--all"])
def test_a_run_is_pinned_to_a_full_commit_and_to_nothing_else(dags: Mapping[str, DAG], commit: str) -> None:
    params = copy(dags["topic_pipeline_local"].params)
    params["commit"] = "a" * 40
    assert params.validate()["commit"] == "a" * 40
    with pytest.raises(ParamValidationError):
        params["commit"] = commit


def test_how_long_a_question_waits_comes_from_an_environment_variable(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICOPS_ANSWER_WITHIN", "2d")
    bag = DagBag(dag_folder=str(project / "dags"))
    assert bag.dags["topic_approval_local"].get_task("approve").response_timeout == timedelta(days=2)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        pytest.param("TOPICOPS_MODE", "dry", "it takes plan or apply", id="an unknown mode"),
        pytest.param("TOPICOPS_ANSWER_WITHIN", "8", "a duration needs a unit", id="no unit"),
        pytest.param("TOPICOPS_ANSWER_WITHIN", "soon", "not a duration", id="a word"),
        pytest.param("TOPICOPS_ANSWER_WITHIN", "0s", "nobody can answer in no time", id="no time"),
        pytest.param("TOPICOPS_ANSWER_WITHIN", "999999999999999d", "write 30m, 8h or 2d", id="for ever"),
        pytest.param("TOPICOPS_STEP_MOVES_EVERY", "quickly", "not a duration", id="no duration for moves"),
    ],
)
def test_a_value_of_no_sense_is_an_import_error_that_names_the_variable(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, reason: str
) -> None:
    monkeypatch.setenv(name, text)
    bag = DagBag(dag_folder=str(project / "dags"))
    assert bag.dags == {}
    (problem,) = bag.import_errors.values()
    assert f"{name} is '{text}'" in problem
    assert reason in problem


PARSE = """
import json, sys, time
import airflow.sdk.execution_time.task_runner
from airflow.dag_processing.dagbag import DagBag
there = set(sys.modules)
started = time.process_time()
bag = DagBag(dag_folder=sys.argv[1])
seconds = time.process_time() - started
import topicops.on_airflow.tasks.steps
packages = {name.partition(".")[0] for name in set(sys.modules) - there} - sys.stdlib_module_names
packages -= {"airflow", "topicops"}
print(json.dumps([len(bag.dags), [name for name in packages if not name.startswith("unusual_prefix_")], seconds]))
"""


def test_parsing_the_dags_and_starting_a_task_imports_what_airflow_has_in_less_than_a_second(project: Path) -> None:
    # The bound is a promise of the project, far from the 0.2 s of CPU that parsing takes; a clock minds other tests.
    result = subprocess.run(
        [sys.executable, "-c", PARSE, str(project / "dags")], capture_output=True, text=True, check=True, timeout=120
    )
    dags, packages, seconds = json.loads(result.stdout.splitlines()[-1])
    assert (dags, {*packages} - WITH_AIRFLOW) == (8, set())
    assert seconds < 1


LOAD_PLUGINS = """
import sys
from airflow.plugins_manager import _get_plugins
plugins, errors = _get_plugins()
bare = sorted(name for name, module in list(sys.modules.items())
    if "." not in name and name != "topicops" and (getattr(module, "__file__", None) or "").startswith(sys.argv[1]))
print([plugin.name for plugin in plugins if plugin.name == "topicops"], errors, bare)
"""


def load_plugins(folder: Path) -> str:
    result = subprocess.run(
        [sys.executable, "-c", LOAD_PLUGINS, str(folder / "topicops")],
        capture_output=True, text=True, check=True, timeout=120,
        env={**os.environ, "AIRFLOW__CORE__PLUGINS_FOLDER": str(folder)},
    )  # fmt: skip
    return result.stdout.splitlines()[-1]


def test_the_plugin_loader_runs_none_of_our_modules_under_a_bare_name() -> None:
    assert load_plugins(REPOSITORY / "plugins") == "['topicops'] {} []"


@pytest.mark.soak
def test_without_the_ignore_file_the_plugin_loader_would_run_them(tmp_path: Path) -> None:
    (tmp_path / "topicops").mkdir()
    (tmp_path / "topicops/canonical.py").write_text("", encoding="utf-8")
    assert load_plugins(tmp_path) == "['topicops'] {} ['canonical']"


LINKED = {"plan": "Plan", "gate": "Plan", "quality_before": "Quality", "quality_after": "Quality"}


@pytest.fixture(scope="module")
def pipeline(project: Path) -> DAG:
    return DagBag(dag_folder=str(project / "dags")).dags["topic_pipeline_local"]


def test_the_tasks_about_plan_and_quality_have_a_button_and_no_other_has(pipeline: DAG) -> None:
    links = {task.task_id: [link.name for link in task.operator_extra_links] for task in pipeline.tasks}
    links.pop("ask")  # Airflow's own: it leads to the run that was started
    assert {task: name for task, (name,) in ((t, n) for t, n in links.items() if n)} == LINKED
    assert set(STEP_OPERATORS) == {*LINKED, "load", "snapshot"}


def test_the_plan_and_the_rules_of_a_drift_run_have_their_buttons_too(project: Path) -> None:
    drift = DagBag(dag_folder=str(project / "dags")).dags["topic_drift_local"]
    links = {task.task_id: [link.name for link in task.operator_extra_links] for task in drift.tasks}
    assert {task: names for task, names in links.items() if names} == {"plan": ["Plan"], "quality_before": ["Quality"]}


def test_the_api_server_knows_the_buttons_without_our_classes(pipeline: DAG) -> None:
    known = DagSerialization.from_dict(DagSerialization.to_dict(pipeline))
    assert [link.name for link in known.get_task("gate").operator_extra_links] == ["Plan"]


@pytest.mark.parametrize(
    ("link", "route"),
    [pytest.param(PlanLink(), PLAN_ROUTE, id="plan"), pytest.param(QualityLink(), QUALITY_ROUTE, id="quality")],
)
def test_a_button_leads_to_the_tab_of_its_run(pipeline: DAG, link: PlanLink | QualityLink, route: str) -> None:
    key = TaskInstanceKey("topic_pipeline_local", "gate", "scheduled__2024-05-01T12:00:00+00:00")
    address = link.get_link(pipeline.get_task("gate"), ti_key=key)
    path = f"/dags/topic_pipeline_local/runs/scheduled__2024-05-01T12%3A00%3A00%2B00%3A00/plugin/{route}"
    assert address.endswith(path)
    assert route in {view["url_route"] for view in TopicopsPlugin.external_views if view["destination"] == "dag_run"}
