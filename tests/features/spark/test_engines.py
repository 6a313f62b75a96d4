"""Which engine a plan gets where nobody chose one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.plan_bytes import CLUSTER_ID, cluster, planned, standing_in, write_topics
from topicops.edges.home.memories import keep_topic_count
from topicops.features.spark import engine
from topicops.features.spark.engine import FROM_TOPICS
from topicops.flow.engines import engine_for, topics_to_compare
from topicops.flow.runs.files import read_specs
from topicops.flow.runs.run import open_run
from topicops.model.choices import EngineChoice
from topicops.model.errors import UsageError
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
