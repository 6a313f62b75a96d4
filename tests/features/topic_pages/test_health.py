"""Why a topic is not healthy, in the words of its page."""

from __future__ import annotations

from fakes import builders
from fakes.builders import live_topic, partition_state
from fixtures.topic_index import a_cluster, lagging
from topicops.features.topic_pages.on_airflow.topic_page import health_lines


def test_the_reasons_name_the_broker_that_is_not_registered() -> None:
    live = a_cluster()
    assert list(health_lines(live, live.topics["shop.items"])) == [
        "Partition 0: broker 3 (not registered) is not in the ISR."
    ]
    (line,) = health_lines(live, live.topics["pay.bills"])
    assert line == "Partition 0: no leader, so nobody can read or write: broker 3, its leader, is not registered."


def test_the_reasons_tell_a_slow_broker_from_a_dead_one_and_name_the_gravest_first() -> None:
    topic = live_topic(
        "a",
        assignment={0: (1, 2, 3), 1: (1, 2, 3)},
        overrides={"min.insync.replicas": "2"},
        states={0: partition_state([1]), 1: partition_state([], leader=-1)},
    )
    found = list(health_lines(builders.snapshot(topic), topic))
    assert found[0].startswith("Partition 1: no leader, so nobody can read or write: no replica in sync is alive")
    assert found[1].startswith("Partition 0: 1 in sync where min.insync.replicas asks for 2")
    assert found[2] == "Partition 0: broker 2, broker 3 (registered, and behind) are not in the ISR."


def test_nothing_is_wrong_with_a_healthy_topic() -> None:
    live = a_cluster()
    assert not list(health_lines(live, live.topics["shop.orders"]))
    assert list(health_lines(live, lagging("b")))
