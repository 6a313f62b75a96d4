"""The buttons that lead from a task to its tab."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.models.taskinstancekey import TaskInstanceKey
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from topicops.on_airflow.dags.operators import STEP_OPERATORS, PlanLink, QualityLink
from topicops.on_airflow.names import PLAN_ROUTE, QUALITY_ROUTE
from topicops.on_airflow.plugin import TopicopsPlugin

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
