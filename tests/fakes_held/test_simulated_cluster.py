"""What the simulated cluster does when brokers stand still, and which seeds are played on it.

The cluster of tests behaves as the shared scenarios say; the same ones run against real brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from fakes.changes import create_topic, delete_topic
from fakes.controller.znodes import TopicPartition
from fakes.resting_cluster import RestingCluster
from fakes.scenarios import MOVES, SCENARIOS, ClusterUnderTest
from fakes.simulation.admin import CLIENT_TIMEOUT_S, LATEST_S, Mishap, SimulatedBrokersApi
from fakes.simulation.cluster import LAG_S, SimulatedCluster
from fakes.simulation.world import World
from fixtures.simulate import main, seeds_of
from topicops.model.ports import AnswerKind
from topicops.model.release import Release

TP = TopicPartition("t", 0)
SHORT_S, LONG_S = 4.0, 10.0
"""Less than a session, and more than that."""


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


def stand_still(cluster: SimulatedCluster, broker: int, seconds: float) -> None:
    cluster.stand_still(broker)
    cluster.world.after(seconds, lambda: cluster.go_on(broker))


def test_a_controller_that_stands_still_does_nothing_until_it_goes_on(cluster: SimulatedCluster) -> None:
    stand_still(cluster, 1, SHORT_S)
    cluster.write_topic("t", {0: (2, 3)})
    cluster.world.pass_time(SHORT_S - 1)
    assert cluster.znodes.states == {}

    cluster.world.pass_time(2.0)
    assert cluster.znodes.states[TP].leader == 2
    assert (cluster.znodes.controller, cluster.znodes.controller_epoch) == (1, 1)


def test_a_controller_that_stands_still_for_too_long_is_followed_by_another_one(cluster: SimulatedCluster) -> None:
    stand_still(cluster, 1, LONG_S)
    cluster.write_topic("t", {0: (2, 3)})
    cluster.world.pass_time(LONG_S - 1)
    assert (cluster.znodes.controller, [*cluster.znodes.brokers]) == (2, [2, 3])
    assert cluster.znodes.states[TP].leader == 2

    cluster.world.pass_time(2.0)
    assert (cluster.znodes.controller, sorted(cluster.znodes.brokers)) == (2, [1, 2, 3])


def test_a_follower_that_catches_up_joins_the_isr_that_is_left_when_the_controller_goes_on() -> None:
    cluster = SimulatedCluster(World(1), racks=dict.fromkeys((1, 2, 3, 4)), choose=min)
    cluster.write_topic("t", {0: (2, 3, 4)})
    cluster.world.pass_time(1.0)
    cluster.slow_down(4)
    cluster.world.pass_time(15.0)

    stand_still(cluster, 1, SHORT_S)
    cluster.kill(3, session_s=0.0)
    cluster.speed_up(4)
    cluster.world.pass_time(SHORT_S - 1)
    assert cluster.znodes.states[TP].isr == (2, 3)
    cluster.world.pass_time(2.0)
    assert cluster.znodes.states[TP].isr == (2, 4)


def test_a_follower_that_was_late_while_the_controller_stood_still_stays_in_the_isr(cluster: SimulatedCluster) -> None:
    cluster.write_topic("t", {0: (2, 3)})
    cluster.world.pass_time(30.0)
    cluster.slow_down(3)
    cluster.world.pass_time(LAG_S - 1)
    stand_still(cluster, 1, SHORT_S)
    cluster.world.pass_time(2.0)
    cluster.speed_up(3)

    cluster.world.pass_time(30.0)
    assert cluster.znodes.states[TP].isr == (2, 3)


@pytest.mark.parametrize(
    ("seconds", "kind", "is_there"),
    [
        pytest.param(SHORT_S, AnswerKind.ACCEPTED, True, id="it goes on"),
        pytest.param(LONG_S, AnswerKind.CONTROLLER_MOVED, False, id="it is no longer the controller"),
        pytest.param(40.0, AnswerKind.UNCLEAR, False, id="the client waits no longer"),
    ],
)
def test_a_request_to_a_controller_that_stands_still_waits_for_it(
    cluster: SimulatedCluster, seconds: float, kind: AnswerKind, is_there: bool
) -> None:
    stand_still(cluster, 1, seconds)
    [answer] = SimulatedBrokersApi(cluster).send([create_topic("t", (2, 3))], by="run", mishap=Mishap.NONE)
    assert (answer.kind, cluster.world.now > SHORT_S) == (kind, True)

    cluster.world.pass_time(60.0)
    assert (cluster.live("t") is not None) == is_there


def test_a_late_request_that_comes_to_a_controller_that_stands_still_is_lost(cluster: SimulatedCluster) -> None:
    cluster.world.after(CLIENT_TIMEOUT_S, lambda: cluster.stand_still(1, session_s=None))
    cluster.world.after(CLIENT_TIMEOUT_S + LATEST_S + 1, lambda: cluster.go_on(1))
    SimulatedBrokersApi(cluster).send([create_topic("t", (2, 3))], by="run", mishap=Mishap.LATE)
    cluster.world.pass_time(60.0)
    assert cluster.live("t") is None


def test_a_broker_without_a_session_does_not_hear_of_a_deletion_before_it_is_restarted(
    cluster: SimulatedCluster,
) -> None:
    cluster.write_topic("t", {0: (1, 2)})
    cluster.world.pass_time(1.0)
    stand_still(cluster, 3, LONG_S)
    cluster.world.pass_time(LONG_S - 1)
    cluster.write_marker("t")
    cluster.world.pass_time(5.0)
    assert (cluster.live("t"), cluster.brokers[3].knows("t")) == (None, True)

    cluster.heal()
    assert not cluster.brokers[3].knows("t")


# ---- Which seeds ``make simulate`` plays ----


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("50", range(1, 51)), ("1", range(1, 2)), ("1-50000", range(1, 50_001)), ("17-17", range(17, 18))],
)
def test_a_number_is_a_count_and_two_are_the_first_and_the_last(text: str, seeds: range) -> None:
    assert seeds_of(text) == seeds


@pytest.mark.parametrize("text", ["", "0", "-5", "9-3", "all", "1-"])
def test_any_other_text_plays_nothing_and_says_how_to_write_it(text: str) -> None:
    with pytest.raises(SystemExit, match="SEEDS=50, or which, as in SEEDS=17-40"):
        seeds_of(text)


def test_a_second_word_is_refused_and_not_left_out() -> None:
    with pytest.raises(SystemExit, match="SEEDS=1-3 900-905: write how many"):
        main(["1-3", "900-905"])


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
