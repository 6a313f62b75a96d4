"""The fake cluster behaves as the shared scenarios say; the same ones run against real brokers."""

from collections.abc import Callable

import pytest

from topicops.testing.fake_cluster import FakeCluster
from topicops.testing.scenarios import SCENARIOS, ClusterUnderTest


def view_of(cluster: FakeCluster) -> ClusterUnderTest:
    return ClusterUnderTest(reader=cluster, admin=cluster, brokers=(1, 2, 3), eventually=lambda question: question())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_fake_cluster_does_what_kafka_does(scenario: Callable[[ClusterUnderTest], None]) -> None:
    scenario(view_of(FakeCluster()))
