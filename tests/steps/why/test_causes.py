"""Each cause that `why` can name, from facts that have it, and none from those of a healthy topic."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from topicops.model.cluster.snapshot import LiveTopic, PartitionState, TopicTraces
from topicops.model.ports import BrokerLogs, BrokerView, PartitionView
from topicops.model.release import Release, Releases
from topicops.model.why_facts import Cause, CauseKind, TopicTimes, WhyFacts
from topicops.steps.why import RULES, causes
from topicops.testing.builders import live_topic, partition_state

ROWS = {0: (1, 2, 3), 1: (2, 3, 1)}
NOON = 1_714_564_800_000
"""2024-05-01 12:00 UTC."""


def topic(
    states: dict[int, PartitionState] | None = None, *, rows: dict[int, tuple[int, ...]] = ROWS, **overrides: str
) -> LiveTopic:
    """Healthy, unless states are given; ``_`` stands for ``.`` in the names of configs."""
    configs = {name.replace("_", "."): value for name, value in overrides.items()}
    found = {p: partition_state(row) for p, row in rows.items()} if states is None else states
    return live_topic("orders", assignment=rows, states=found, overrides=configs)


def view(live: LiveTopic) -> BrokerView:
    states = live.states or {}
    partitions = {
        p: PartitionView(leader=states[p].leader, replicas=row, isr=states[p].isr)
        for p, row in live.assignment.items()
        if p in states
    }
    return BrokerView(
        topics={live.name: partitions}, brokers=frozenset({1, 2, 3}), topic_ids={live.name: live.topic_id or ""}
    )


def facts(live: LiveTopic | None = None, *, brokers: frozenset[int] = frozenset({1, 2, 3}), **traces: bool) -> WhyFacts:
    live = topic() if live is None else live
    found = {"has_config_znode": True, "is_deleting": False, **traces}
    return WhyFacts(
        topic="orders",
        source="zookeeper",
        traces=TopicTraces(live=live, **found),
        times=TopicTimes(
            config=NOON, marker=NOON, states=dict.fromkeys(live.assignment, NOON), is_config_told=True, controller=1
        ),
        brokers=brokers,
        controller_id=1,
        views=dict.fromkeys(sorted(brokers), view(live)),
        releases=Releases(Release(3, 9), Release(3, 9)),
        bootstrap_servers="b1:9092",
        zookeeper_hosts="z1:2181/kafka",
    )


def absent(found: WhyFacts) -> WhyFacts:
    """Without the topic in ZooKeeper."""
    assert found.traces is not None
    return replace(found, traces=replace(found.traces, live=None))


def times(found: WhyFacts, **changed: object) -> WhyFacts:
    assert found.times is not None
    return replace(found, times=replace(found.times, **changed))  # type: ignore[arg-type]


def old(found: WhyFacts, major: int, minor: int) -> WhyFacts:
    release = Release(major, minor)
    return replace(found, releases=Releases(release, release))


def moving(broker: int) -> LiveTopic:
    rows = {0: (1, 2, 3, broker)}
    return replace(topic({0: partition_state((1, 2, 3))}, rows=rows), adding={0: (broker,)})


BEHIND = {0: partition_state((1, 2)), 1: partition_state((2, 1))}
LEADERLESS = {0: partition_state((2,), leader=-1), 1: partition_state((3, 1))}
CASES: dict[str, Callable[[], WhyFacts]] = {
    "unreadable-znode": lambda: replace(facts(), traces=None, undecodable="/brokers/topics/orders is no JSON"),
    "no-controller": lambda: times(replace(facts(), controller_id=7), controller=7),
    "znode-removed": lambda: absent(facts()),
    "no-topic": lambda: replace(absent(facts()), views={}),
    "deletion-waits-for-broker": lambda: facts(brokers=frozenset({1, 3}), is_deleting=True),
    "deletion-of-never-led": lambda: old(facts(topic({}), is_deleting=True), 1, 1),
    "deletion-waits-for-move": lambda: facts(moving(2), is_deleting=True),
    "deletion-runs": lambda: facts(is_deleting=True),
    "no-leader": lambda: facts(topic(LEADERLESS), brokers=frozenset({1, 3})),
    "no-election": lambda: facts(topic(LEADERLESS)),
    "no-state": lambda: facts(topic({1: partition_state((2, 3, 1))})),
    "move-waits-for-broker": lambda: facts(moving(9)),
    "move-runs": lambda: facts(moving(4), brokers=frozenset({1, 2, 3, 4})),
    "not-in-sync": lambda: facts(topic(BEHIND)),
    "below-min-isr": lambda: facts(topic(BEHIND, min_insync_replicas="3")),
    "config-not-in-force": lambda: times(facts(topic(retention_ms="1000")), is_config_told=False),
    "config-invalid": lambda: facts(topic(retention_ms="soon")),
    "min-isr-above-replicas": lambda: old(facts(topic(min_insync_replicas="4")), 3, 6),
    "unknown-to-broker": lambda: replace(
        facts(), views={**facts().views, 2: BrokerView(topics={}, brokers=frozenset({1, 2, 3}))}
    ),
    "other-topic-id": lambda: replace(
        facts(), views={**facts().views, 2: replace(view(topic()), topic_ids={"orders": "B" * 22})}
    ),
    "log-not-served": lambda: replace(
        facts(), logs={2: BrokerLogs(held={}, idle={"orders": frozenset({1})}, unread={"orders": {0: "X (103)"}})}
    ),
    "silent-broker": lambda: replace(facts(), views={**facts().views, 2: "broker 2 gave no answer within 3 s"}),
    "not-preferred": lambda: facts(topic({0: partition_state((1, 2, 3), leader=2), 1: partition_state((2, 3, 1))})),
}


def by_id(found: WhyFacts) -> dict[str, Cause]:
    return {cause.id: cause for cause in causes(found)}


def test_a_healthy_topic_has_no_cause() -> None:
    assert causes(facts()) == ()


@pytest.mark.parametrize("cause", CASES)
def test_each_cause_is_found_where_it_is_so(cause: str) -> None:
    found = by_id(CASES[cause]())
    assert cause in found
    assert found[cause].message
    assert found[cause].way_out
    assert found[cause].read_from


def test_each_cause_that_a_rule_can_name_has_a_case() -> None:
    folder = Path(__file__).parents[3] / "plugins/topicops/steps/why"
    written = {name for file in folder.glob("*.py") for name in re.findall(r'id="([a-z-]+)"', file.read_text())}
    assert written == CASES.keys()


def test_every_rule_finds_something_in_one_of_the_cases() -> None:
    silent = {rule.__name__ for rule in RULES if not any(any(rule(case())) for case in CASES.values())}
    assert silent == set()


def test_the_gravest_comes_first() -> None:
    found = causes(facts(topic(BEHIND, retention_ms="soon")))
    assert [cause.kind for cause in found] == [CauseKind.STUCK, CauseKind.WAITS]


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        pytest.param(
            "deletion-waits-for-broker",
            "the deletion, asked for since 2024-05-01 12:00 UTC, cannot finish: partitions 0, 1 have a replica on "
            "broker 2, which is not registered",
            id="deletion",
        ),
        pytest.param(
            "no-leader",
            "partition 0 has no leader since 2024-05-01 12:00 UTC: it waits for broker 2, last in its ISR; "
            "brokers 1, 3 live, but not in sync",
            id="leader",
        ),
        pytest.param(
            "not-in-sync",
            "broker 3 is not in the ISR of partitions 0, 1 since 2024-05-01 12:00 UTC: it is registered and answers, "
            "but does not copy as fast as the leader writes",
            id="follower",
        ),
        pytest.param(
            "move-waits-for-broker",
            "the reassignment of partition 0 cannot end: broker 9 is not registered, and until it ends, brokers refuse "
            "more partitions with REASSIGNMENT_IN_PROGRESS (60)",
            id="move",
        ),
    ],
)
def test_a_message_says_what_waits_for_what_and_since_when(cause: str, message: str) -> None:
    assert by_id(CASES[cause]())[cause].message == message


def test_an_unclean_election_is_offered_with_its_price_where_another_replica_lives() -> None:
    cause = by_id(CASES["no-leader"]())["no-leader"]
    assert cause.commands == (
        "kafka-leader-election.sh --bootstrap-server b1:9092 --election-type unclean --topic orders --partition 0",
    )
    assert cause.caution == "an unclean election loses every record that broker 1 did not copy in time"


def test_without_another_live_replica_no_election_is_offered() -> None:
    alone = {0: partition_state((2,), leader=-1)}
    cause = by_id(facts(topic(alone, rows={0: (2,)}), brokers=frozenset({1, 3})))["no-leader"]
    assert cause.commands == ()
    assert cause.way_out == "it is led again by itself when it is back"


@pytest.mark.parametrize(("release", "word"), [((2, 3), "rmr"), ((2, 4), "deleteall")])
def test_znodes_are_removed_with_the_word_of_the_zookeeper_that_comes_with_the_release(
    release: tuple[int, int], word: str
) -> None:
    cause = by_id(old(CASES["deletion-waits-for-broker"](), *release))["deletion-waits-for-broker"]
    assert cause.commands[0] == f"zookeeper-shell.sh z1:2181/kafka {word} /brokers/topics/orders"


def test_brokers_with_a_login_get_their_file_of_client_properties() -> None:
    cause = by_id(replace(CASES["no-leader"](), command_config=True))["no-leader"]
    assert "--command-config client.properties" in cause.commands[0]


def test_without_zookeeper_no_znode_is_named() -> None:
    found = causes(replace(CASES["not-in-sync"](), times=None, source="kafka"))
    assert not any(place.startswith("/") for cause in found for place in cause.read_from if cause.id != "silent-broker")


def test_a_topic_name_is_quoted_for_the_shell() -> None:
    odd = replace(CASES["no-leader"](), topic="a;b")
    assert "'a;b'" in by_id(odd)["no-leader"].commands[0]
