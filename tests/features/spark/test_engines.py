"""Which engine a plan gets where nobody chose one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from fixtures.plan_bytes import CLUSTER_ID, cluster, planned, standing_in, write_topics
from topicops.edges.home.memories import keep_topic_count
from topicops.features.spark import engine
from topicops.features.spark.engine import FROM_TOPICS, SPARK
from topicops.flow import single_steps
from topicops.flow.engines import engine_for, engine_of_run, topics_to_compare
from topicops.flow.runs.files import read_specs
from topicops.flow.runs.run import EnvironmentRun, open_run, read_environment
from topicops.model.choices import EngineChoice
from topicops.model.errors import UsageError
from topicops.model.specs.environment import Quality, QualityRule
from topicops.plugged import ENGINES


@pytest.mark.parametrize(
    ("choice", "topics", "chosen"),
    [
        pytest.param("auto", 0, "python: fewer than 100,000 topics", id="no topic"),
        pytest.param("auto", FROM_TOPICS - 1, "python: fewer than 100,000 topics", id="just below"),
        pytest.param("auto", FROM_TOPICS, "spark: 100,000 topics or more", id="at the limit"),
        pytest.param("python", FROM_TOPICS, "python", id="a person chose"),
    ],
)
def test_auto_takes_spark_from_a_measured_size_on(choice: EngineChoice, topics: int, chosen: str) -> None:
    assert str(engine_for(choice, topics, ENGINES)) == chosen


@pytest.fixture
def run(tmp_path: Path) -> EnvironmentRun:
    """A run of a DAG that has read its files and its cluster."""
    write_topics(tmp_path)
    run = open_run(
        environment="local", topics=tmp_path / "topics", group="topic_pipeline_local", run_id="1", home=tmp_path
    )
    single_steps.validate(run)
    with standing_in(cluster(1)):
        single_steps.snapshot(run, states=True)
    return run


def asks_for(run: EnvironmentRun, engine: EngineChoice, *rules: QualityRule) -> None:
    found = read_environment(run)
    airflow, quality = structs.replace(found.spec.airflow, engine=engine), Quality(rules=rules)
    spec = structs.replace(found.spec, airflow=airflow, quality=quality)
    run.store.write_value("environment.json", replace(found, spec=spec))


RULE = QualityRule(id="two-copies", level="spec", holds="replication_factor = 2", title="There are two copies")


@pytest.mark.parametrize(
    ("engine", "rules", "chosen"),
    [
        pytest.param("auto", (), "python: fewer than 40,000 topics", id="few topics"),
        pytest.param("auto", (RULE,), "spark: quality.rules are conditions in SQL", id="a rule in SQL"),
        pytest.param("spark", (), "spark", id="the environment asks for Spark"),
        pytest.param("python", (), "python", id="the environment asks for Python"),
    ],
)
def test_a_run_of_a_dag_has_the_engine_that_its_environment_asks_for(
    run: EnvironmentRun, engine: EngineChoice, rules: tuple[QualityRule, ...], chosen: str
) -> None:
    asks_for(run, engine, *rules)
    assert str(engine_of_run(run, ENGINES)) == chosen


def test_a_run_of_a_dag_with_many_topics_has_spark(run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SPARK, "judges_from_topics", 100, raising=False)
    assert str(engine_of_run(run, ENGINES)) == "spark: 100 topics or more"


def test_a_rule_in_sql_needs_an_engine_that_reads_sql(run: EnvironmentRun) -> None:
    asks_for(run, "auto", RULE)
    with pytest.raises(UsageError, match="engine spark: this installation of topicops has none"):
        engine_of_run(run, ())


def test_a_spark_that_cannot_start_early_fails_no_run(run: EnvironmentRun) -> None:
    run.store.write_text("spark", "in the way of its folder")
    SPARK.start_early(run)
    assert run.store.read_text("spark") == "in the way of its folder"


def test_without_spark_python_compares_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "has_extra", lambda _: False)
    assert str(engine_for("auto", FROM_TOPICS, ENGINES)) == "python: Spark is not installed"


def test_an_installation_without_the_engine_compares_in_python_and_refuses_the_other() -> None:
    assert str(engine_for("auto", FROM_TOPICS, ())) == "python"
    with pytest.raises(UsageError, match="engine spark: this installation of topicops has none; use --engine python"):
        engine_for("spark", 1, ())


def test_the_topics_of_the_cluster_count_if_they_were_more(tmp_path: Path) -> None:
    write_topics(tmp_path)
    run = open_run(environment="local", topics=tmp_path / "topics", group="cli", run_id="1", home=tmp_path)
    validated = read_specs(run.files)
    assert topics_to_compare(run.home, validated) == 108
    keep_topic_count(tmp_path, CLUSTER_ID, 60_000)
    assert topics_to_compare(run.home, validated) == 60_000


def test_a_plan_by_auto_has_the_bytes_of_a_plan_by_python(tmp_path: Path) -> None:
    write_topics(tmp_path)
    choices: tuple[EngineChoice, ...] = ("auto", "python")
    with standing_in(cluster(1)):
        plans = [planned(tmp_path, choice, choice, 1).store.read_text("plan.json") for choice in choices]
    assert plans[0] == plans[1]
