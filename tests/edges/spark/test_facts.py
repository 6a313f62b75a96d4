"""Facts counted by Spark from tables, wherever they are: the same as plain Python counts in the same world."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fakes.builders import desired_topic
from fixtures.plan_bytes import cluster, planned, quality_of, standing_in, write_topics
from fixtures.random_worlds import World
from fixtures.spark_rows import written
from topicops.edges.tables.schemas import SCHEMAS
from topicops.edges.tables.table_folder import TableFolder
from topicops.edges.tables.topics import write_desired_topics
from topicops.features.quality import judging
from topicops.features.spark.edges.comparison import count_partitions, spark_diff
from topicops.features.spark.edges.frames import table_frame
from topicops.features.spark.edges.session import spark_session
from topicops.features.spark.engine import SPARK, SparkEngine
from topicops.model.choices import Engine
from topicops.model.plans.delta import desired_row, live_row
from topicops.model.release import USUAL
from topicops.steps.facts import facts_of, owned_topics, owners_of, partition_counts
from topicops.steps.planning.diff import diff


@pytest.mark.parametrize("seed", range(3))
def test_spark_and_plain_python_find_the_same_facts(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    world = World(seed)
    live = replace(world.live, topics={t.name: replace(t, states=t.states or {}) for t in world.live.topics.values()})
    delta = diff(map(desired_row, world.desired.topics.values()), map(live_row, live.topics.values()))
    desired = world.desired.topics.values()
    plain = facts_of(partition_counts(live, owners_of(desired)), live, owned_topics(desired, live, delta))

    tables = written(spark, tmp_path, world, live)
    found, owned = spark_diff(tables.frame("desired"), tables.frame("topics"))

    assert found == delta
    assert facts_of(count_partitions(tables, by_owner=True), live, owned) == plain
    assert any(of.unhealthy for of in plain.owners) == bool(plain.unhealthy)


@pytest.mark.soak
def test_a_whole_run_has_the_same_facts_with_both_engines_and_all_tables(spark: SparkSession, tmp_path: Path) -> None:
    write_topics(tmp_path)
    facts = {}
    both: tuple[Engine, ...] = ("spark", "python")
    for engine in both:
        with standing_in(cluster(2)):
            run = planned(tmp_path, engine, engine, 2)
            facts[engine] = run.store.read_text("facts-before.json")
            if engine == "spark":
                applications = {spark.sparkContext.applicationId}
                with judging.beside(run, SPARK), spark_session() as session:
                    quality_of(run)
                    applications.add(session.sparkContext.applicationId)
                tables = run.known_tables()

    assert facts["spark"] == facts["python"]
    assert len(applications) == 1
    assert {name for name in SCHEMAS if tables.has(name)} == set(SCHEMAS)
    after = set(SCHEMAS) - {"desired", "delta", "owners"}
    assert {name for name in SCHEMAS if tables.below("after").has(name)} == after


def test_auto_hands_many_topics_to_spark_and_the_plan_has_the_same_bytes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.sparkContext.applicationId
    write_topics(tmp_path)
    runs = {}
    for limit, used in ((1, "spark"), (1_000, "python")):
        monkeypatch.setattr(SparkEngine, "from_topics", limit)
        with standing_in(cluster(2)):
            runs[used] = planned(tmp_path, used, "auto", 2)

    assert runs["spark"].tables() is not None
    assert runs["python"].tables() is None
    assert len({run.store.read_text("plan.json") for run in runs.values()}) == 1


def test_a_folder_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    tables = TableFolder.at(tmp_path / "a[1]{b,c}*?" / "d\\e%20 f:g#h" / "i=j")
    write_desired_topics(tables, {"orders": desired_topic("orders", 1)}, USUAL)

    frame = table_frame(spark, tables, "desired")

    assert [row.topic for row in frame.select("topic").collect()] == ["orders"]
    assert "i" not in frame.columns
