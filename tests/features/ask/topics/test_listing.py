"""Topics through Kafka's filters: the definitions, and what is printed."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from fakes.builders import live_topic, partition_state, snapshot
from topicops.features.ask.topics.listing import (
    FILTERS,
    Listing,
    list_topics,
    topics_summary,
    topics_table,
    topics_text,
    topics_ways,
)
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.json_types import json_text
from topicops.model.specs.desired import DesiredTopic, Lifecycle
from topicops.model.specs.diagnostics import Location

MIN_ISR = "min.insync.replicas"


def one(*isr: int, leader: int | None = None, min_isr: int = 1, adding: tuple[int, ...] = ()) -> LiveTopic:
    """Return ``orders`` with one partition on brokers 1 and 2, and on those that are being added."""
    return live_topic(
        "orders",
        assignment={0: (1, 2, *adding)},
        adding={0: adding},
        overrides={MIN_ISR: str(min_isr)},
        states={0: partition_state(isr, leader=leader)},
    )


def asked(topic: LiveTopic, *names: str, deleting: bool = False) -> Listing:
    live = snapshot(topic, deleting={topic.name: 5} if deleting else {})
    return list_topics(live, names, environment="local", managed={})


def matching(topic: LiveTopic) -> set[str]:
    return {name for name in FILTERS if asked(topic, name).topics}


@pytest.mark.parametrize(
    ("topic", "filters"),
    [
        pytest.param(one(1, 2), set(), id="healthy"),
        pytest.param(one(1), {"under-replicated", "at-min-isr"}, id="one replica is missing"),
        pytest.param(one(1, 2, min_isr=2), {"at-min-isr"}, id="at the minimum"),
        pytest.param(one(1, min_isr=2), {"under-replicated", "under-min-isr"}, id="below the minimum"),
        pytest.param(one(1, 2, adding=(3,)), set(), id="a replica that is being added is not missed"),
        pytest.param(one(1, 2, leader=-1), {"under-min-isr", "unavailable"}, id="no leader"),
        pytest.param(one(1, 2, leader=9), {"under-min-isr", "unavailable"}, id="a leader that is not registered"),
        pytest.param(
            live_topic("orders", assignment={0: (1,)}, states={}),
            {"under-replicated", "under-min-isr", "unavailable"},
            id="no state",
        ),
    ],
)
def test_a_partition_is_what_kafka_calls_it(topic: LiveTopic, filters: set[str]) -> None:
    assert matching(topic) == filters


def test_without_an_override_the_brokers_default_counts() -> None:
    topic = live_topic("orders", assignment={0: (1, 2)}, states={0: partition_state([1, 2])})
    live = snapshot(topic, broker_defaults={MIN_ISR: "2"})

    listing = list_topics(live, ["at-min-isr"], environment="l", managed={})

    assert (len(listing.topics), listing.knows_broker_defaults) == (1, True)


def test_a_topic_that_goes_has_no_partitions_to_filter() -> None:
    assert asked(one(1, leader=-1), "unavailable", deleting=True).topics == ()


def test_a_topic_that_goes_is_listed_as_such() -> None:
    assert topics_text(asked(one(1), deleting=True)).endswith("\tMarkedForDeletion: true")


def test_lines_of_topics_are_kafkas() -> None:
    topic = live_topic("orders", 2, topic_id="A" * 22, overrides={"b": "2", "a": "1\x1b"})

    listing = list_topics(snapshot(topic), (), environment="local", managed={"orders": None})

    cells = [
        "Topic: orders",
        f"TopicId: {'A' * 22}",
        "PartitionCount: 2",
        "ReplicationFactor: 3",
        "Configs: a=1\\x1b,b=2",
    ]
    assert topics_text(listing) == "\t".join(cells)
    assert topics_summary(listing) == "1 of 1 topic"


def test_lines_of_partitions_are_kafkas() -> None:
    gone = asked(one(2, leader=-1), "unavailable")
    moving = asked(one(1, adding=(3,)), "under-replicated")

    assert topics_text(gone) == "\tTopic: orders\tPartition: 0\tLeader: none\tReplicas: 1,2\tIsr: 2"
    assert topics_text(moving).endswith("\tReplicas: 1,2,3\tIsr: 1\tAdding Replicas: 3\tRemoving Replicas: ")
    assert topics_summary(gone) == "1 of 1 topic, 1 partition"


def test_the_table_has_owner_file_and_state() -> None:
    web = DesiredTopic(name="web", owner="team-web", location=Location("topics/web/web.yaml", 3), partitions=2)
    gone = replace(web, name="gone", lifecycle=Lifecycle.ABSENT)
    names = ("bad", "gone", "other", "web", "weg")
    live = snapshot(*(live_topic(name, 2) for name in names), deleting={"weg": 5})
    managed = {"bad": None, "web": web, "gone": gone}

    listing = list_topics(live, (), environment="local", managed=managed)

    rows = [re.split("  +", line) for line in topics_table(listing).splitlines()]
    assert rows == [
        ["topic", "owner", "file", "state", "partitions", "replicas"],
        ["bad", "-", "-", "bad file", "2", "3"],
        ["gone", "team-web", "topics/web/web.yaml", "absent", "2", "3"],
        ["other", "-", "-", "unmanaged", "2", "3"],
        ["web", "team-web", "topics/web/web.yaml", "present", "2", "3"],
        ["weg", "-", "-", "being deleted", "2", "3"],
    ]
    named = list_topics(live, (), environment="local", managed=managed, name="we[a-c]")
    assert [topic.name for topic in named.topics] == ["web"]
    assert json.loads(json_text(named))["topics"][0]["file"] == "topics/web/web.yaml"


def test_all_filters_that_are_asked_for_must_hold() -> None:
    assert asked(one(1, min_isr=2), "under-replicated", "at-min-isr").topics == ()


def test_topics_are_narrowed_to_those_with_overrides_and_without_a_file() -> None:
    topics = [live_topic(name, overrides={"a": "1"} if name != "plain" else {}) for name in ("ours", "plain", "theirs")]

    wanted = ["with-overrides", "unmanaged"]
    listing = list_topics(snapshot(*topics), wanted, environment="local", managed={"ours": None})

    assert [topic.name for topic in listing.topics] == ["theirs"]


@pytest.mark.parametrize(
    ("wanted", "listed"),
    [([], ["acme.a", "acme.b"]), (["unmanaged"], ["acme.b"]), (["unavailable"], ["acme.a", "acme.b", "other"])],
)
def test_topics_without_the_environments_prefix_are_listed_where_their_partitions_are_asked_for(
    wanted: list[str], listed: list[str]
) -> None:
    topics = [live_topic(name, states={0: partition_state((1,), leader=-1)}) for name in ("acme.a", "acme.b", "other")]
    listing = list_topics(snapshot(*topics), wanted, environment="acme", managed={"acme.a": None}, prefix="acme.")
    assert [topic.name for topic in listing.topics] == listed


def test_the_json_has_partitions_only_where_they_were_filtered() -> None:
    plain = list_topics(snapshot(live_topic("orders")), (), environment="local", managed={})
    filtered = asked(one(1, min_isr=1), "at-min-isr")

    assert json.loads(json_text(plain))["topics"][0]["matching_partitions"] is None
    assert json.loads(json_text(plain))["knows_broker_defaults"] is None
    assert json.loads(json_text(filtered))["topics"][0]["matching_partitions"] == [
        {"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1], "adding": [], "removing": [], "min_isr": 1}
    ]


def test_a_listed_topic_that_is_not_healthy_has_the_command_that_says_why() -> None:
    ways = ["topicops why orders --environment local"]
    lagging = asked(one(1), "under-replicated")
    assert topics_ways(lagging) == ways
    assert json.loads(json_text(lagging))["topics"][0]["why"] == ways[0]
    assert topics_ways(asked(one(1, leader=-1), "unavailable")) == ways


def test_a_topic_at_its_minimum_is_healthy_and_has_no_such_command() -> None:
    at_minimum = asked(one(1, 2, min_isr=2), "at-min-isr")
    assert (len(at_minimum.topics), topics_ways(at_minimum)) == (1, [])
    assert json.loads(json_text(at_minimum))["topics"][0]["why"] is None
    unfiltered = list_topics(snapshot(live_topic("orders")), (), environment="local", managed={})
    assert topics_ways(unfiltered) == []
