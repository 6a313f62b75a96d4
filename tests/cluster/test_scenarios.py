"""The shared scenarios against real brokers, so that what the fake cluster does is what Kafka does."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from fixtures.live import remove_topics
from topicops.edges.kafka.admin import KafkaAdmin
from topicops.edges.local.cluster import LocalCluster
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.testing.scenarios import SCENARIOS, ClusterUnderTest


@pytest.fixture
def cluster(local_cluster: LocalCluster) -> Iterator[ClusterUnderTest]:
    """Three brokers, under a prefix of its own; what the scenario leaves there is removed."""
    prefix = f"scenario-{uuid.uuid4().hex[:8]}"
    admin = KafkaAdmin({"bootstrap.servers": local_cluster.bootstrap_servers})
    with ZooKeeperReader(local_cluster.zookeeper_hosts) as reader:
        yield ClusterUnderTest(reader=reader, admin=admin, brokers=(1, 2, 3), eventually=eventually, prefix=prefix)
        left = [topic for topic in reader.snapshot().topics if topic.startswith(f"{prefix}.")]
    admin.close()
    remove_topics(local_cluster, left)


def eventually(question: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not (held := question()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return held


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_real_brokers_do_what_the_scenarios_say(
    scenario: Callable[[ClusterUnderTest], None], cluster: ClusterUnderTest
) -> None:
    scenario(cluster)
