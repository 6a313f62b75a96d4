"""DAG files that people write themselves, with the public names alone, and what a file says of its own DAGs."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import task
from airflow.sdk.api.datamodels._generated import DagRunType
from airflow.sdk.exceptions import AirflowFailException

from topicops.model.errors import UsageError
from topicops.on_airflow import dags_of, environment_dags
from topicops.on_airflow.dags.dag_file import say
from topicops.on_airflow.dags.environment_dags import misnamed
from topicops.on_airflow.site import Options, resolved

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/your-own-dag-file.md"
PARSED = "_AIRFLOW_PARSING_CONTEXT_DAG_ID"
"""How Airflow tells a task's process which DAG it needs."""
CHANGES = ("create", "expand", "configure", "delete")


def topics_with(folder: Path, **environments: str) -> Path:
    """A folder of topics; each environment's file has this ``spec.airflow``, or is this text if it is no mapping."""
    for name, airflow in environments.items():
        file = folder / "topics/environments" / f"{name.replace('_', '-')}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        cluster = "cluster: {class: sandbox, kafka: {bootstrapServers: 'b:9092'}}"
        text = f"kind: Environment\nspec:\n  {cluster}\n  airflow: {airflow}\n"
        file.write_text(text if airflow.startswith("{") else airflow, encoding="utf-8")
    return folder / "topics"


@pytest.fixture
def own(tmp_path: Path) -> DagBag:
    """Return the DAG file of the page, in the folder that it expects."""
    example = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    topics_with(tmp_path, prod_eu="{schedule: every 5m, mode: plan}")
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags/prod_topics.py").write_text(example, encoding="utf-8")
    return DagBag(dag_folder=str(tmp_path / "dags"))


def test_the_dag_file_of_the_page_has_what_it_asks_for(own: DagBag) -> None:
    assert own.import_errors == {}
    pipeline = own.dags["topic_pipeline_prod-eu"]
    assert set(own.dags) == {f"topic_{kind}_prod-eu" for kind in ("pipeline", "approval", "drift", "moves")}
    assert (pipeline.schedule, pipeline.params["mode"]) == ("0 2 * * *", "apply")
    assert pipeline.tags == {"topicops", "kafka", "prod-eu", "platform"}
    assert pipeline.access_control == {"platform": {"DAGs": {"can_read", "can_edit"}}}
    ours = [task for task in pipeline.tasks if task.task_id not in ("no_freeze", "tell_the_catalogue")]
    assert {(task.owner, task.retries, task.pool) for task in ours} == {("platform", 3, "kafka")}


def test_tasks_of_ones_own_stand_around_ours_and_change_nothing_between(own: DagBag, tmp_path: Path) -> None:
    pipeline = own.dags["topic_pipeline_prod-eu"]
    plain = environment_dags("prod-eu", tmp_path / "topics").pipeline
    assert pipeline.get_task("validate").upstream_task_ids == {"no_freeze"}
    assert pipeline.get_task("tell_the_catalogue").upstream_task_ids == {"report"}
    for ours in plain.tasks:
        mine = pipeline.get_task(ours.task_id)
        assert mine.trigger_rule == ours.trigger_rule
        assert mine.upstream_task_ids - {"no_freeze"} == ours.upstream_task_ids
    assert all("gate" in pipeline.get_task(change).upstream_task_ids for change in CHANGES)


@pytest.mark.soak
@pytest.mark.usefixtures("airflow_database", "topicops_home")
def test_after_a_task_of_ones_own_that_fails_nothing_runs_but_the_report(tmp_path: Path) -> None:
    pipeline = environment_dags("local", topics_with(tmp_path, local="{}")).pipeline
    with pipeline:

        @task(retries=0)
        def no_freeze() -> None:
            raise AirflowFailException("changes are frozen until Monday")

        no_freeze() >> pipeline.get_task("validate")
    run = pipeline.test(run_conf={"mode": "apply"})
    states = {ti.task_id: ti.state for ti in run.get_task_instances()}
    ran = {name: state for name, state in states.items() if state != "upstream_failed"}
    assert ran == {
        "no_freeze": "failed",
        "report": "failed",
        "verify": "skipped",
        "announce": "skipped",
        "quality_after": "skipped",
    }
    (tried,) = (tmp_path / "runs/topic_pipeline_local").iterdir()
    assert "Task no_freeze failed" in (tried / "report.txt").read_text(encoding="utf-8")


def test_each_environment_runs_when_and_how_its_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICOPS_SCHEDULE", "@weekly")
    monkeypatch.setenv("TOPICOPS_MODE", "apply")
    dags = dags_of(
        topics_with(tmp_path, dev="{schedule: every 5m}", prod="{schedule: none, mode: plan, driftSchedule: '@daily'}")
    )
    dev, prod = dags["topic_pipeline_dev"], dags["topic_pipeline_prod"]
    assert re.fullmatch(r"[0-4]-59/5 \* \* \* \*", str(dev.schedule))
    assert (dev.params["mode"], prod.schedule, prod.params["mode"]) == ("apply", None, "plan")
    assert (dags["topic_drift_dev"].schedule, dags["topic_drift_prod"].schedule) == (None, "@daily")


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        pytest.param("{mode: aply}", "plan", id="a mode that is none"),
        pytest.param("{mode: [apply]}", "plan", id="a list"),
        pytest.param("spec: {airflow: [", "plan", id="no YAML"),
        pytest.param("spec: {airflow: apply}", "plan", id="no mapping"),
        pytest.param("airflow " * 3, "apply", id="nothing of that name"),
        pytest.param("{schedule: every 7m}", "apply", id="a schedule that is none"),
        pytest.param("{mode: ~}", "apply", id="a null"),
        pytest.param("{mode: ''}", "plan", id="an empty text"),
        pytest.param(f"spec: {{airflow: {'[' * 30_000}", "plan", id="nested deeper than the parser's stack"),
        pytest.param(f"spec: {{airflow: {{}}, at: {'{a: ' * 20}1{'}' * 20}}}", "plan", id="nested too deep elsewhere"),
        pytest.param(
            "\n".join(
                ["a0: &a0 [airflow]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 200)), "*a199 : 1"]
            ),
            "plan",
            id="aliases that double 199 times",
        ),
        pytest.param("{at: 2001-02-30}", "apply", id="a day that no calendar has"),
        pytest.param("spec: {airflow: {}, ? [1, 2] : 3}", "plan", id="a key that is a list"),
        pytest.param("spec: {airflow: {mode: !!python/none apply}}", "plan", id="a tag"),
        pytest.param("spec: {airflow: {mode: apply, mode: apply}}", "plan", id="a field twice"),
        pytest.param("spec: {airflow: {mode: apply}} #" + "x" * 70_000, "plan", id="more than 64 KiB"),
    ],
)
def test_a_file_that_cannot_be_read_leaves_its_dags_standing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, mode: str
) -> None:
    monkeypatch.setenv("TOPICOPS_SCHEDULE", "@hourly")
    monkeypatch.setenv("TOPICOPS_MODE", "apply")
    pipeline = dags_of(topics_with(tmp_path, dev=written))["topic_pipeline_dev"]
    assert (pipeline.schedule, pipeline.params["mode"]) == ("@hourly", mode)


@pytest.mark.parametrize(
    "written", ["spec: {airflow: [", "{schedule: every 7m}", "{schedule: nonee}", "{schedule: ''}", "{mode: [apply]}"]
)
def test_a_file_that_cannot_say_when_its_runs_come_gets_a_run_each_hour(tmp_path: Path, written: str) -> None:
    pipeline = dags_of(topics_with(tmp_path, dev=written))["topic_pipeline_dev"]
    assert re.fullmatch(r"[0-9]+ \* \* \* \*", str(pipeline.schedule))


def test_a_schedule_of_none_stays_none(tmp_path: Path) -> None:
    assert dags_of(topics_with(tmp_path, dev="{schedule: none}"))["topic_pipeline_dev"].schedule is None


def test_fail_on_comes_from_the_file_or_from_the_dag_file_and_takes_no_other_word(tmp_path: Path) -> None:
    topics = topics_with(tmp_path, dev="{failOn: [unhealthy], mode: apply}", prod="{failOn: unhealthy}", no="{}")
    found = {name: resolved(Options(), name, topics / f"environments/{name}.yaml") for name in ("dev", "prod", "no")}
    assert [found[name].fail_on for name in ("dev", "prod", "no")] == [{"unhealthy"}, {"unhealthy"}, set()]
    assert found["dev"].mode == "apply"
    with pytest.raises(UsageError, match="fail_on has 'sick'; it takes unhealthy"):
        environment_dags("dev", topics, fail_on=["sick"])


def test_airflow_names_the_owner_of_the_file_with_its_link_and_no_link_that_it_would_not_take(tmp_path: Path) -> None:
    mail = "{owner: data-platform, ownerLink: 'mailto:kafka@example.com'}"
    topics = topics_with(tmp_path, dev=mail, prod="{owner: 'a, b', ownerLink: /kafka}", no="{}")
    dags = dags_of(topics)
    owners = {name: dags[f"topic_pipeline_{name}"] for name in ("dev", "prod", "no")}
    assert {name: dag.owner for name, dag in owners.items()} == {
        "dev": "data-platform", "prod": "topicops", "no": "topicops",
    }  # fmt: skip
    assert dags["topic_drift_dev"].owner_links == {"data-platform": "mailto:kafka@example.com"}
    assert owners["prod"].owner_links == owners["no"].owner_links == {}
    own = environment_dags("dev", topics, default_args={"owner": "night shift"}).pipeline
    assert own.owner == "night shift", "the keyword of one's own DAG file wins"
    assert own.owner_links == {"night shift": "mailto:kafka@example.com"}, (
        "Airflow shows a link only beside the owner that the link names"
    )


def test_the_form_has_its_fields_in_their_sections(tmp_path: Path) -> None:
    pipeline = dags_of(topics_with(tmp_path, dev="{mode: apply}"))["topic_pipeline_dev"]
    fields = {name: pipeline.params.get_param(name) for name in pipeline.params}
    assert list(fields) == ["mode", "only", "commit", "approved", "reviews"]
    sections = {name: field.schema["section"] for name, field in fields.items()}
    assert [name for name, section in sections.items() if section == "CI"] == ["approved", "reviews"]
    assert {section for section in sections.values() if " " in section} == set(), (
        "Airflow puts the name into an HTML id"
    )
    assert pipeline.dag_display_name == "dev: pipeline"


def test_each_field_of_each_form_has_a_title_and_may_stay_empty(tmp_path: Path) -> None:
    dags = dags_of(topics_with(tmp_path, dev="{mode: apply}"))
    schemas = {(dag_id, name): dag.params.get_param(name).schema for dag_id, dag in dags.items() for name in dag.params}
    assert {dag_id for dag_id, _ in schemas} >= {"topic_pipeline_dev", "topic_approval_dev", "topic_drift_dev"}
    for field, schema in schemas.items():
        assert "null" in schema["type"], field
        assert schema.get("title"), field


def test_no_range_of_days_can_be_applied(tmp_path: Path) -> None:
    for dag in environment_dags("dev", topics_with(tmp_path, dev="{}")):
        assert DagRunType.BACKFILL not in (dag.allowed_run_types or ())
        assert {DagRunType.SCHEDULED, DagRunType.MANUAL} <= set(dag.allowed_run_types or ())


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "no UTF-8"])
def test_an_environment_that_is_no_regular_file_of_text_only_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("TOPICOPS_MODE", "apply")
    topics = topics_with(tmp_path, good="{}")
    file = topics / "environments/odd.yaml"
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "link":
            file.symlink_to("/dev/zero")
        case "folder":
            file.mkdir()
        case _:
            file.write_bytes(b"spec: {airflow: {mode: \xff}}")
    modes = {name: dags_of(topics)[f"topic_pipeline_{name}"].params["mode"] for name in ("odd", "good")}
    assert modes == {"odd": "plan", "good": "apply"}


def test_what_nobody_thought_of_in_one_file_leaves_the_others_their_dags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topics = topics_with(tmp_path, bad="{}", good="{}")

    def fails_on_bad(file: Path) -> dict[str, str]:
        if file.stem == "bad":
            raise OverflowError("not thought of")
        return {}

    monkeypatch.setattr("topicops.on_airflow.site.read_airflow_part", fails_on_bad)
    assert "topic_pipeline_good" in dags_of(topics)
    assert "topic_pipeline_bad" not in dags_of(topics)
    assert "bad has no DAGs" in caplog.text
    assert "topic_problems" in dags_of(topics)


def test_of_twenty_environments_a_broken_one_and_an_odd_name_stop_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path / "home"))
    good = {f"cluster_{number}": "{schedule: every 5m}" for number in range(18)}
    topics = topics_with(tmp_path, **good, broken="airflow: [kind")
    (topics / "environments/prod eu.yaml").write_text("kind: Environment\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        dags = dags_of(topics)
    assert len(dags) == 19 * 4 + 1
    assert dags["topic_pipeline_broken"].schedule is not None
    assert dags["topic_pipeline_broken"].params["mode"] == "plan"
    assert len({dags[f"topic_pipeline_cluster-{number}"].schedule for number in range(18)}) == 5
    with pytest.raises(AirflowFailException, match=r"environments/prod eu.yaml has no DAGs: .*; rename it"):
        say(misnamed(topics), "r1")
    assert "environments/prod eu.yaml has no DAGs" in caplog.text


def test_a_task_parses_the_dags_of_its_own_environment_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = topics_with(tmp_path, dev="{}", prod="{}", eu_prod="{}")
    monkeypatch.setenv(PARSED, "topic_drift_dev")
    assert set(dags_of(topics)) == {f"topic_{kind}_dev" for kind in ("pipeline", "approval", "drift", "moves")}
    monkeypatch.setenv(PARSED, "topic_pipeline_eu-prod")
    assert "topic_pipeline_eu-prod" in dags_of(topics)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"schedule": "hourly"}, "schedule of dev: 'hourly' is no schedule; write `every 5m`"),
        ({"mode": "dry"}, "mode is 'dry'; it takes plan or apply"),
    ],
)
def test_a_wrong_argument_is_named(tmp_path: Path, arguments: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        environment_dags("dev", topics_with(tmp_path, dev="{}"), **arguments)  # type: ignore[arg-type]  # one at a time


def test_a_name_that_no_dag_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'prod eu': an environment's name has only letters"):
        environment_dags("prod eu", tmp_path)
