"""The cluster of tests behaves as the shared scenarios say; the same ones run against real brokers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from fakes.changes import delete_topic
from fakes.resting_cluster import RestingCluster
from fakes.scenarios import MOVES, SCENARIOS, ClusterUnderTest
from topicops.model.release import Release


def view_of(cluster: RestingCluster) -> ClusterUnderTest:
    @contextmanager
    def moving(topic: str, replicas: Sequence[int]) -> Iterator[None]:
        before = cluster.live(topic).assignment[0]
        adding, removing = ([b for b in a if b not in c] for a, c in ((replicas, before), (before, replicas)))
        cluster.start_reassignment(topic, 0, adding=adding, removing=removing)
        yield
        cluster.end_reassignment(topic)

    return ClusterUnderTest(
        reader=cluster, admin=cluster, brokers=(1, 2, 3), eventually=lambda question: question(), moving=moving
    )


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_cluster_of_tests_does_what_kafka_does(scenario: Callable[[ClusterUnderTest], None]) -> None:
    scenario(view_of(RestingCluster()))


@pytest.mark.parametrize("scenario", MOVES, ids=lambda scenario: scenario.__name__)
def test_the_cluster_of_tests_moves_replicas_as_old_brokers_do(scenario: Callable[[ClusterUnderTest], None]) -> None:
    cluster = RestingCluster(release=Release(2, 3))

    scenario(view_of(cluster))


def test_a_delete_into_a_move_leaves_its_name_with_old_brokers() -> None:
    cluster = RestingCluster(release=Release(2, 3))
    change = delete_topic(cluster.put_topic("t", (1, 2)))
    cluster.start_reassignment("t", 0, adding=[3], removing=[1])

    cluster.delete(change)
    cluster.end_reassignment("t")

    assert cluster.traces(["t"])["t"].live is None
    assert not cluster.traces(["t"])["t"].is_gone
