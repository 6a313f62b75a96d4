"""A run's facts, and the comparison that is made once for each snapshot; by the plain engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.resting_cluster import RestingCluster
from fixtures.plan_bytes import cluster, planned, standing_in, write_topics
from topicops.flow import single_steps
from topicops.flow.runs.kept import load_facts
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.errors import ArtifactError
from topicops.model.runs.facts import DRIFT_CLASSES


@pytest.fixture
def live() -> Iterator[RestingCluster]:
    found = cluster(1)
    with standing_in(found):
        yield found


@pytest.fixture
def run(live: RestingCluster, tmp_path: Path) -> EnvironmentRun:
    write_topics(tmp_path)
    return planned(tmp_path, "python", "python", 1)


def test_a_plan_s_facts_count_the_topics_that_differ(run: EnvironmentRun) -> None:
    facts, delta = load_facts(run, "before"), run.read_delta()

    assert facts is not None
    for name in DRIFT_CLASSES:
        assert sum(owned.topics for owned in facts.classes if owned.topic_class is name) == delta.counts[name]


def test_a_comparison_is_not_repeated_until_the_cluster_is_read_anew(run: EnvironmentRun, live: RestingCluster) -> None:
    kept = single_steps.diff_once(run)["counts"]
    live.put_topic("new.topic", (1, 2))

    assert single_steps.diff_once(run)["counts"] == kept

    single_steps.snapshot(run, states=True)
    with pytest.raises(ArtifactError, match=r"delta\.json: missing"):
        run.read_delta()
    assert single_steps.diff_once(run)["counts"] != kept
