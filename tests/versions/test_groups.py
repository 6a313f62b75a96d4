"""Groups of each type that a release of Kafka has, and of one that none has yet, at work on topics to be deleted."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from fixtures.cluster import running
from fixtures.group_members import console_share_consumer, consumer, join_streams_group, share_consumer
from fixtures.live import create_topics, new_admin, spec_by_brokers, until
from fixtures.workspace import Ended, Workspace
from topicops.edges.kafka.clients import kafka_python_inside
from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.clients.settings import Deadline
from topicops.edges.kafka.questions import group_requests
from topicops.edges.kafka.questions.consumer_groups import ConsumerGroups
from topicops_local.cluster import LocalCluster
from topicops_local.jars import kafka_jars

OLDER, NEWEST = "4.0.2", "4.4.0"
ONE_BROKER = {"share.coordinator.state.topic.replication.factor": "1", "share.coordinator.state.topic.min.isr": "1"}
PREVIEW = {
    "unstable.api.versions.enable": "true",
    "group.coordinator.rebalance.protocols": "classic,consumer,share",
    "group.share.enable": "true",
}
"""Of share groups, in 4.0."""


@pytest.fixture(scope="module", params=[pytest.param(OLDER, marks=pytest.mark.soak), NEWEST])
def cluster(request: pytest.FixtureRequest, fast_folder: Path) -> Iterator[LocalCluster]:
    kafka: str = request.param
    properties = {**ONE_BROKER, **(PREVIEW if kafka == OLDER else {})}
    with running(
        fast_folder / f"groups-{kafka}", brokers=1, kafka=kafka, kraft=True, broker_properties=properties
    ) as cluster:
        yield cluster


@pytest.fixture
def kafka(cluster: LocalCluster) -> str:
    return cluster.folder.parent.name.rpartition("-")[2]


@pytest.fixture
def live(cluster: LocalCluster, workspace: Workspace) -> Workspace:
    workspace.cluster = spec_by_brokers(cluster)
    workspace.policy |= {"unattended": "destructive"}
    return workspace


def planned(live: Workspace, cluster: LocalCluster, *names: str) -> None:
    """Make these topics, and a plan that deletes them all."""
    create_topics(cluster.bootstrap_servers, *[NewTopic(name, 1, 1) for name in names])
    for name in names:
        live.tombstone(name)
    ended = live.plan()
    assert f"{len(names)} to delete; 0 blocked" in ended.out, ended.out + ended.err


def topics_of(cluster: LocalCluster, prefix: str) -> set[str]:
    found = new_admin(cluster.bootstrap_servers).list_topics(timeout=30).topics
    return {name for name in found if name.startswith(prefix)}


def blocked(live: Workspace) -> Mapping[str, str]:
    """The reason by topic, as a plan has it for which the brokers answered in time."""
    plan: dict[str, Any] = {}

    def is_complete() -> bool:
        ended = live.plan()
        plan.update(json.loads((live.folder / "plan.json").read_text(encoding="utf-8")))
        return "could not be read" not in ended.out

    until(is_complete)
    assert {code for row in plan["blocked"] for code in row["codes"]} <= {"TOP410"}
    return {row["topic"]: row["reasons"][0] for row in plan["blocked"]}


def said(ended: Ended) -> str:
    return ended.out + ended.err


def test_topics_that_groups_read_stay_and_a_topic_that_none_reads_goes(
    live: Workspace, cluster: LocalCluster, kafka: str, tmp_path: Path
) -> None:
    servers = cluster.bootstrap_servers
    names = ["read.classic", "read.modern", "read.by.pattern"]
    names += ["read.shared", "read.streamed", "read.state"] if kafka == NEWEST else []
    planned(live, cluster, *names, "read.by.nobody")

    with ExitStack() as members:
        members.enter_context(consumer(servers, "classic", "read.classic"))
        members.enter_context(consumer(servers, "modern", "read.modern", protocol="consumer"))
        members.enter_context(consumer(servers, "pattern", r"^read\.by\.p.*", protocol="consumer"))
        if kafka == NEWEST:
            members.enter_context(share_consumer(servers, "shared", "read.shared"))
            join_streams_group(kafka, servers, "streamed", ["read.streamed", "read.state"], folder=tmp_path)
        applied = live.apply()
        reasons = blocked(live)

    assert topics_of(cluster, "read.") == {*names}, said(applied)
    assert applied.status == 6, said(applied)
    assert reasons.keys() == {*names}
    assert reasons["read.classic"] == "consumer groups use it: classic (Stable, no commits)"
    assert reasons["read.modern"] == "consumer groups use it: modern (consumer, Stable, no commits)"
    assert reasons["read.by.pattern"] == "consumer groups use it: pattern (consumer, Stable, no commits)"
    if kafka == NEWEST:
        assert reasons["read.shared"] == "consumer groups use it: shared (share, Stable, no commits)"
        assert re.fullmatch(r"consumer groups use it: streamed \(streams, \w+, no commits\)", reasons["read.streamed"])
        assert re.fullmatch(r"consumer groups use it: streamed \(streams, \w+, no commits\)", reasons["read.state"])
    for reason in reasons.values():
        assert reason.partition(" (")[0] in said(applied)


def test_a_share_group_that_began_a_topic_and_left_stands_behind_its_records(
    live: Workspace, cluster: LocalCluster, kafka: str
) -> None:
    if kafka == OLDER:
        pytest.skip("tells no start offsets")
    servers = cluster.bootstrap_servers
    planned(live, cluster, "began.once", "began.never")
    producer = Producer({"bootstrap.servers": servers})
    with share_consumer(servers, "began", "began.once") as sharing:

        def has_one() -> bool:
            producer.produce("began.once", b"value")
            producer.flush(30)
            return bool(sharing.poll(0.5))

        until(has_one)
    producer.produce("began.once", b"later")
    assert producer.flush(30) == 0

    reasons = blocked(live)

    assert reasons.keys() == {"began.once"}
    assert re.fullmatch(r"consumer groups use it: began \(share, Empty, lag [1-9]\d*\)", reasons["began.once"])


class LaterBrokers(BrokerConnections):
    """Connections to brokers that have one more type of groups."""

    def ask(self, requests: Mapping[Any, Any], **settings: Any) -> dict[Any, Any]:
        answers = super().ask(requests, **settings)
        for answer in answers.values():
            for group in getattr(answer, "groups", ()):
                if group.group_id == "later" and hasattr(group, "group_type"):
                    group.group_type, group.protocol_type = "quorum", "future"
        return answers


def test_a_group_of_a_type_that_does_not_exist_yet_keeps_every_topic(
    live: Workspace, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_python_inside, "BrokerConnections", LaterBrokers)
    planned(live, cluster, "later.read", "later.other")

    with consumer(cluster.bootstrap_servers, "later", "later.read"):
        applied = live.apply()
        reasons = blocked(live)

    assert topics_of(cluster, "later.") == {"later.read", "later.other"}, said(applied)
    reason = "group later of type quorum cannot be read: its type is not known"
    assert reasons == {"later.read": reason, "later.other": reason}
    assert reason in said(applied)


def test_a_share_group_that_its_brokers_do_not_describe_keeps_every_topic(
    live: Workspace, cluster: LocalCluster, kafka: str
) -> None:
    """The last test of its cluster: the group stays."""
    if kafka == NEWEST:
        pytest.skip("describes it")
    planned(live, cluster, "preview.shared", "preview.other")
    with (
        console_share_consumer(kafka, cluster.bootstrap_servers, "workers", "preview.shared"),
        closing(BrokerConnections({"bootstrap.servers": cluster.bootstrap_servers})) as connections,
    ):
        until(lambda: "workers" in ConsumerGroups(connections, Deadline(20.0)).on(["preview.shared"])["preview.shared"])
        applied = live.apply()
        reasons = blocked(live)

    assert topics_of(cluster, "preview.") == {"preview.shared", "preview.other"}, said(applied)
    reason = "group workers of type share cannot be read: broker 1 does not tell all that it uses"
    assert reasons == {"preview.shared": reason, "preview.other": reason}
    assert reason in said(applied)


MESSAGES = [name for name in vars(group_requests) if name.endswith(("Request", "Response"))]


@pytest.mark.parametrize("message", MESSAGES)
def test_our_definition_of_a_message_is_kafkas(message: str) -> None:
    [clients] = [jar for jar in kafka_jars(NEWEST) if jar.name.startswith("kafka-clients-")]
    with zipfile.ZipFile(clients) as jar:
        text = jar.read(f"common/message/{message}.json").decode()
    kafkas = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    ours = json.loads((Path(group_requests.__file__).parent / f"{message}.json").read_text(encoding="utf-8"))
    last = int(ours["validVersions"].rpartition("-")[2])

    assert fields_until(last, ours) == fields_until(last, kafkas)
    assert last <= int(kafkas["validVersions"].rpartition("-")[2])


def fields_until(last: int, definition: Any) -> Any:
    """Without what people read, and without fields of later versions."""
    if isinstance(definition, list):
        return [fields_until(last, of) for of in definition if int(str(of.get("versions", "0"))[0]) <= last]
    if isinstance(definition, dict):
        left_out = ("about", "entityType", "listeners", "validVersions")
        kept = {name: fields_until(last, value) for name, value in definition.items() if name not in left_out}
        return {name: value for name, value in kept.items() if value != []}
    return definition
