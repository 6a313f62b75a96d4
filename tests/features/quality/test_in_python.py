"""The rules judged without Spark, in runs of a DAG over a simulated cluster; ``tests/edges/spark`` has each rule."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fakes import builders
from fixtures.simulated import Simulated
from topicops.features.quality import judging
from topicops.features.quality.in_python import judge_rows
from topicops.features.quality.rows import rows_after
from topicops.features.quality.rules import AFTER, BEFORE, Afterwards
from topicops.flow import single_steps
from topicops.flow.engines import PYTHON
from topicops.flow.runs.kept import load_facts
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.model.errors import TopicopsError
from topicops.model.runs.results import QualityReport


@pytest.fixture
def run(simulated: Simulated) -> EnvironmentRun:
    simulated.workspace.topic("orders")
    simulated.workspace.write_environment()
    simulated.cluster.put_topic("orders", (1, 2, 3))
    run = open_run(environment="local", topics=Path("topics"), group="topic_pipeline_local", run_id="1")
    single_steps.validate(run, as_tables=True)
    single_steps.snapshot(run, states=True)
    return run


def results(report: QualityReport) -> dict[str, tuple[bool, int]]:
    return {result.rule: (result.success, result.rows_checked) for result in report.results}


@pytest.mark.slow  # Great Expectations takes seconds to be imported
def test_a_run_is_judged_and_its_facts_are_counted_without_spark(
    run: EnvironmentRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "topicops.features.quality.edges.in_spark", None)  # no import of it succeeds

    with judging.beside(run, PYTHON):
        before = judging.before(run, PYTHON)
        after = judging.after(run, PYTHON)

    assert list(results(before)) == [rule.id for rule in BEFORE]
    assert list(results(after)) == [rule.id for rule in AFTER]
    assert results(before)["Q01"] == (True, 1)
    assert results(after)["Q11"] == (True, 1)
    facts = load_facts(run, "after")
    assert facts is not None
    assert sum(load.replicas for load in facts.load if load.broker) == 3


def test_rows_that_were_lost_between_reading_and_judging_are_an_error() -> None:
    live = builders.snapshot(builders.live_topic("orders", states={0: builders.partition_state((1, 2, 3))}))
    with pytest.raises(TopicopsError, match="quality rule Q11: 3 of 4 rows were checked"):
        judge_rows(AFTER, lambda: rows_after(live, Afterwards(managed=())), {"partition": 4})
