"""What the simulated cluster does when brokers stand still."""

from __future__ import annotations

import pytest

from topicops.testing.simulation.cluster import SimulatedCluster
from topicops.testing.simulation.world import World


@pytest.fixture
def cluster() -> SimulatedCluster:
    """At rest; broker 1 has the controller."""
    found = SimulatedCluster(World(1), choose=min)
    found.heal()
    return found


def test_a_cluster_whose_brokers_all_stood_still_gets_a_controller_when_one_goes_on(cluster: SimulatedCluster) -> None:
    for broker in cluster.brokers:
        cluster.stand_still(broker)
    cluster.fail_over()
    cluster.world.pass_time(1.0)
    assert cluster.controller is None

    cluster.go_on(2)
    cluster.world.pass_time(1.0)

    assert cluster.controller is not None
    assert cluster.controller.broker == 2
