"""The shared scenarios against real brokers, so that what the cluster of tests does is what Kafka does."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from fakes.scenarios import SCENARIOS, ClusterUnderTest
from fixtures.live import remove_topics
from fixtures.real_scenarios import under_test
from topicops_local.cluster import LocalCluster


@pytest.fixture
def cluster(local_cluster: LocalCluster) -> Iterator[ClusterUnderTest]:
    """Three brokers, under a prefix of its own; what the scenario leaves there is removed."""
    prefix = f"scenario-{uuid.uuid4().hex[:8]}"
    with under_test(local_cluster, prefix=prefix) as cluster:
        yield cluster
        left = [topic for topic in cluster.reader.snapshot().topics if topic.startswith(f"{prefix}.")]
    remove_topics(local_cluster, left)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_real_brokers_do_what_the_scenarios_say(
    scenario: Callable[[ClusterUnderTest], None], cluster: ClusterUnderTest
) -> None:
    scenario(cluster)
