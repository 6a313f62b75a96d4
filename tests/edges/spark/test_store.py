"""Tables on a store that speaks S3: the whole loop on real Spark, and a store that goes away."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fixtures.simulated import Simulated, outcomes_of
from fixtures.store import SECRET, Store, s3_store
from topicops.features.quality import judging
from topicops.features.spark.edges import frames as spark_tables
from topicops.features.spark.engine import SPARK
from topicops.flow import single_steps
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.model.errors import ArtifactError
from topicops.model.runs.results import OutcomeStatus

pytestmark = pytest.mark.soak
SETTING = "TOPICOPS_TABLES"
TABLES = ("desired", "partitions", "topics")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with s3_store(tmp_path) as store:
        monkeypatch.setenv(SETTING, store.uri)
        yield store


def whole_run(simulated: Simulated, run_id: str) -> EnvironmentRun:
    """From validate to quality_after, as the tasks of a DAG run do it."""
    simulated.workspace.write_environment()
    run = open_run(environment="local", topics=Path("topics"), group="topic_pipeline_local", run_id=run_id)
    single_steps.validate(run, as_tables=True)
    single_steps.snapshot(run, states=True)
    assert judging.before(run, SPARK).critical == ()
    single_steps.diff(run, engine=SPARK)
    single_steps.plan(run)
    single_steps.gate(run)
    single_steps.apply(run)
    single_steps.verify(run)
    assert judging.after(run, SPARK).critical == ()
    return run


def a_world(simulated: Simulated) -> None:
    simulated.workspace.topic("orders", partitions=3)
    simulated.workspace.topic("grown", partitions=4)
    simulated.workspace.tombstone("over")
    for name in ("grown", "over"):
        simulated.cluster.put_topic(name, (1, 2, 3), (2, 3, 1))


def test_the_whole_loop_runs_with_its_tables_on_the_store(
    store: Store, simulated: Simulated, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    a_world(simulated)

    with caplog.at_level(logging.DEBUG):
        run = whole_run(simulated, "manual__2026-01-31T00:00:00+00:00")

    assert {(o.topic, o.status) for o in outcomes_of(run)} == {
        (name, OutcomeStatus.DONE) for name in ("orders", "grown", "over")
    }
    below = f"topicops/tables/topic_pipeline_local/{run.store.folder.name}"
    wanted = [*(f"{below}/{name}.parquet" for name in TABLES), *(f"{below}/after/{n}.parquet" for n in TABLES[1:])]
    assert {*wanted} <= {*store.names()}
    assert all(name.startswith(f"{below}/") for name in store.names())
    assert not run.store.path("tables").exists()
    written = [path.read_text(errors="replace") for path in run.home.rglob("*") if path.is_file()]
    assert not [text for text in (*written, caplog.text) if SECRET in text]


def test_a_spark_elsewhere_that_cannot_read_the_store_gets_the_rows(
    store: Store,
    simulated: Simulated,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    a_world(simulated)
    monkeypatch.setattr(spark_tables, "reads_files_here", lambda _: False)

    whole_run(simulated, "1")

    assert (
        "Spark cannot read s3a://topicops/tables/topic_pipeline_local/1/desired.parquet, so its rows are" in caplog.text
    )
    assert "S3AFileSystem not found" in caplog.text
    assert SECRET not in caplog.text


def test_a_store_that_goes_away_is_one_sentence_without_its_secret(
    store: Store, simulated: Simulated, spark: SparkSession
) -> None:
    simulated.workspace.write_environment()
    run = open_run(environment="local", topics=Path("topics"), group="cli", run_id="1")
    single_steps.validate(run, as_tables=True)
    store.end()
    for step in (single_steps.snapshot, single_steps.diff, lambda run: single_steps.validate(run, as_tables=True)):
        with pytest.raises(ArtifactError, match=r"^s3://topicops/tables/cli/1/\w+\.parquet: cannot be ") as caught:
            step(run)
        assert "check the store" in str(caught.value)
        assert SECRET not in str(caught.value)
