"""What the played cluster does beside what the scenarios and Kafka's own tests hold it to."""

from __future__ import annotations

import pytest

from fakes.controller.context import ControllerSettings
from fakes.controller.played_cluster import PlayedCluster
from fakes.controller.znodes import TopicPartition, Znodes
from topicops.model.cluster.health import UNCLEAN_ELECTION
from topicops.model.release import Release


@pytest.mark.parametrize(
    ("release", "leader"),
    [
        pytest.param(Release(2, 0), -1, id="2.0 waits for the next election"),
        pytest.param(Release(2, 1), 3, id="2.1 elects at once"),
    ],
)
def test_a_topic_that_allows_unclean_elections_is_led_by_a_replica_outside_of_its_isr(
    release: Release, leader: int
) -> None:
    cluster = PlayedCluster(
        Znodes(brokers=dict.fromkeys((1, 2, 3), 1), controller=1), settings=ControllerSettings(release=release)
    )
    cluster.create("orders", {0: (2, 3)}, {})
    cluster.stop([3])
    cluster.slow.add(3)
    cluster.start(3, epoch=2)
    cluster.stop([2])

    cluster.configure("orders", {UNCLEAN_ELECTION: "true"})

    assert cluster.znodes.states[TopicPartition("orders", 0)].leader == leader
