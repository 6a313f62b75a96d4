"""A new check of verify is one function and one line in ``RULES``: its result is seen without another change."""

from collections.abc import Iterator

import pytest

from fakes.resting_cluster import RestingCluster
from topicops.model.codes import Code
from topicops.model.runs.results import Check, Verdict
from topicops.steps.reporting.run_report import RunReport, report_json, report_text
from topicops.steps.verifying import checks
from topicops.steps.verifying.checks import RULES
from topicops.steps.verifying.observation import Finding, Observation
from topicops.steps.verifying.verify import verify_cluster


def few_partitions(observation: Observation) -> Iterator[Finding]:
    """A topic has two partitions or more."""
    if observation.present.partitions < 2:
        yield Finding(Code.V17, Verdict.DEGRADED, "has one partition", Code.NO_LEADER)


@pytest.fixture
def new_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "RULES", {**RULES, (Code.V17, "source"): few_partitions})


@pytest.mark.usefixtures("new_check")
def test_a_new_check_is_seen_in_the_results_and_in_the_report() -> None:
    cluster = RestingCluster()
    cluster.put_topic("one", (1, 2))
    cluster.put_topic("two", (1, 2), (2, 3))

    found = verify_cluster(cluster.snapshot(states=True), cluster)

    assert [check for check in found if check.id is Code.V17] == [
        Check(id=Code.V17, topic="one", verdict=Verdict.DEGRADED, message="has one partition", code=Code.NO_LEADER),
        Check(id=Code.V17, topic="two", verdict=Verdict.HEALTHY),
    ]
    report = RunReport(environment="local", checks=found)
    assert "degraded: topic.one V17: has one partition (TOP601)" in report_text(report)
    assert "V17" in str(report_json(report).checks)
