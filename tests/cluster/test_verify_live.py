"""Verify on three real brokers that die, pause, and hold what somebody wrote into ZooKeeper by hand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient
from kazoo.protocol.states import ZnodeStat

from fakes.changes import configure_topic, plan_of
from fixtures.cluster import running
from fixtures.live import cluster_spec, create_topics, look, new_admin, until, zookeeper
from fixtures.workspace import Workspace
from topicops.edges.kafka.admin import KafkaAdmin
from topicops.edges.kafka.questions.broker_views import BrokerViews
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.flow.runs.access import PORT_WRAPPERS, PortWrappers
from topicops.model.plans.changes import Change, DeleteTopic
from topicops.model.plans.plan import Plan
from topicops.model.ports import Answer, Clock, TopicAdmin
from topicops.model.runs.results import Check, Outcome, OutcomeStatus
from topicops.model.specs.environment import Verify
from topicops.steps.verifying.verify import FIRST_WAIT_S, verify
from topicops_local.cluster import LocalCluster

NOBODY = 9
"""No broker has this id."""
TOUCHED_BY_HAND = ("nameless", "removed", "remade")


@pytest.fixture(scope="module")
def cluster(fast_folder: Path) -> Iterator[LocalCluster]:
    """One of this module's own, whose ISRs shrink soon and whose topics any producer may bring back."""
    hasty = {"replica.lag.time.max.ms": "1000", "replica.fetch.wait.max.ms": "200", "auto.create.topics.enable": "true"}
    with running(fast_folder / "verify-cluster", broker_properties=hasty) as cluster:
        make(cluster, TOUCHED_BY_HAND, [1, 2, 3], [2, 3, 1], [3, 1, 2])
        yield cluster


@pytest.fixture
def live(cluster: LocalCluster, workspace: Workspace) -> Workspace:
    """Return a workspace in which deletes have one second."""
    workspace.cluster = cluster_spec(cluster)
    workspace.verify = {"deletes": "1s", "leaders": "5s", "metadata": "5s"}
    workspace.policy |= {"unattended": "destructive", "deleteActive": "allow"}
    return workspace


def make(cluster: LocalCluster, names: Sequence[str], *rows: list[int]) -> None:
    """Topics that are led everywhere."""
    new = [NewTopic(name, len(rows), replica_assignment=list(rows)) for name in names]
    create_topics(cluster.bootstrap_servers, *new)
    until(lambda: all(len(look(cluster).topics[name].states or {}) == len(rows) for name in names))


# --- deletes and brokers that are not there -------------------------------------------------------------------------


def not_the_controller(cluster: LocalCluster) -> int:
    controller = look(cluster).controller_id
    return next(broker for broker in sorted(cluster.broker_ports, reverse=True) if broker != controller)


@pytest.mark.soak
def test_a_delete_waits_for_the_broker_that_died_under_it_and_is_healthy_once_that_is_back(
    live: Workspace, cluster: LocalCluster
) -> None:
    broker = not_the_controller(cluster)
    make(cluster, ["going", "staying"], [1, 2, 3], [2, 3, 1])
    live.tombstone("going")
    live.plan()

    with gone_from_zookeeper_once_marked(cluster, broker, "going"), killed_before_a_delete(cluster, broker):
        applied = live.apply("--format", "json")
    live.tombstone("staying")
    planned = live.run("plan", "--environment", "local", "--engine", "python", "--out", "later.json")
    cluster.start_broker(broker)
    until(lambda: "going" not in look(cluster).topics)
    verified = live.run("verify", "plan.json", "--environment", "local")

    assert applied.status == 7, applied.out + applied.err
    (found,) = json.loads(applied.out)["checks"]
    assert (found["id"], found["verdict"]) == ("V17", "converging")
    assert found["message"].endswith(f"waits for broker {broker}")
    assert planned.status == 0, planned.err
    plan = json.loads(Path("later.json").read_text(encoding="utf-8"))
    blocked = {b["topic"]: b["reasons"][0] for b in plan["blocked"]}
    assert f"replicas on broker {broker} cannot" in blocked["staying"]
    assert verified.status == 0, verified.out


@contextmanager
def killed_before_a_delete(cluster: LocalCluster, broker: int) -> Iterator[None]:
    """The broker dies after apply has asked it, and right before the request leaves."""

    def wrapped(admin: TopicAdmin) -> TopicAdmin:
        send = admin.delete

        def delete(change: DeleteTopic) -> Answer:
            cluster.kill(broker)
            return send(change)

        admin.delete = delete  # type: ignore[method-assign]
        return admin

    token = PORT_WRAPPERS.set(PortWrappers(admin=wrapped))
    try:
        yield
    finally:
        PORT_WRAPPERS.reset(token)


@contextmanager
def gone_from_zookeeper_once_marked(cluster: LocalCluster, broker: int, topic: str) -> Iterator[None]:
    """End the session of a dead broker as soon as the topic is marked for deletion, which takes seconds else."""

    def wait_and_end() -> None:
        with zookeeper(cluster) as client:
            until(lambda: client.exists(f"/admin/delete_topics/{topic}") is not None)
            client.delete(f"/brokers/ids/{broker}")

    ending = threading.Thread(target=wait_and_end)
    ending.start()
    try:
        yield
    finally:
        ending.join()


# --- a broker that comes and goes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """How one verify ended."""

    at: float
    """Seconds since 1970, as ``IsrHistory`` has them."""
    unhealthy: tuple[Check, ...]


@dataclass(frozen=True)
class IsrChange:
    """One write of a state znode."""

    at: float
    """By ZooKeeper's clock, to the ms; seconds."""
    members: frozenset[int]


class IsrHistory:
    """The ISRs of one topic over time, as ZooKeeper was told of them; leaders hear of it later."""

    def __init__(self, client: KazooClient, topic: str, partitions: int) -> None:
        self._changes: dict[int, list[IsrChange]] = {p: [] for p in range(partitions)}
        for p in range(partitions):
            client.DataWatch(f"/brokers/topics/{topic}/partitions/{p}/state", partial(self._note, p))

    def _note(self, partition: int, data: bytes, stat: ZnodeStat) -> None:
        change = IsrChange(stat.mtime / 1000, frozenset(json.loads(data)["isr"]))
        self._changes[partition].append(change)

    @property
    def shrinks(self) -> int:
        return sum(len(change.members) < 3 for changes in self._changes.values() for change in changes)

    def incomplete(self, start: float, end: float) -> list[str]:
        """Return partitions with an ISR that was not whole at some moment between the two."""
        return [
            f"partition {p}: {sorted(change.members)} at {change.at:.3f}"
            for p, changes in self._changes.items()
            for change, until_then in zip(changes, [*(later.at for later in changes[1:]), inf], strict=True)
            if len(change.members) < 3 and change.at < end and until_then > start
        ]


@contextmanager
def flapping(cluster: LocalCluster, broker: int, *, first_s: float, period_s: float = 2.0) -> Iterator[None]:
    """The broker stands still every other period, from ``first_s`` on; it runs when this is left."""
    over = threading.Event()

    def flap() -> None:
        over.wait(first_s)
        while not over.is_set():
            cluster.pause(broker)
            over.wait(period_s)
            cluster.resume(broker)
            over.wait(period_s)

    thread = threading.Thread(target=flap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def written_to(cluster: LocalCluster, topic: str, partitions: int) -> Iterator[None]:
    """Somebody writes to all partitions all the time: an ISR shrinks only where there is something to catch up with."""
    over = threading.Event()
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "1", "log_level": 0})

    def write() -> None:
        while not over.wait(0.02):
            for p in range(partitions):
                producer.produce(topic, b"x", partition=p)
            producer.poll(0)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        producer.purge()


def verified(cluster: LocalCluster, change: Change) -> Verdict:
    """Verify one change that was made; with deadlines that a broker's pauses do not outlive."""
    plan = replace_target(plan_of(change), cluster)
    with (
        ZooKeeperReader(cluster.zookeeper_hosts) as reader,
        closing(BrokerViews({"bootstrap.servers": cluster.bootstrap_servers}, timeout_s=1.0)) as metadata,
    ):
        checks = verify(plan, [as_done(plan)], reader=reader, metadata=metadata, deadlines=Verify(), clock=Clock())
        at = time.time()
    return Verdict(at, tuple(check for check in checks if not check.is_healthy))


def replace_target(plan: Plan, cluster: LocalCluster) -> Plan:
    """Return the same plan for this cluster."""
    target = replace(plan.target, cluster_id=cluster.cluster_id)
    return replace(plan, change_set=replace(plan.change_set, target=target))


def as_done(plan: Plan) -> Outcome:
    (gated,) = plan.changes
    change = gated.change
    return Outcome(topic=change.topic, action=change.action, digest=gated.digest, status=OutcomeStatus.DONE)


@pytest.mark.parametrize("runs", [pytest.param(2, id="twice"), pytest.param(20, id="20 times", marks=pytest.mark.soak)])
def test_a_broker_that_comes_and_goes_is_never_called_healthy_too_early(cluster: LocalCluster, runs: int) -> None:
    topic = f"flapping-{runs}"
    make(cluster, [topic], [1, 2, 3], [2, 3, 1], [3, 1, 2])
    broker, verdicts = not_the_controller(cluster), []
    with (
        zookeeper(cluster) as client,
        written_to(cluster, topic, 3),
        closing(KafkaAdmin({"bootstrap.servers": cluster.bootstrap_servers})) as admin,
    ):
        history = IsrHistory(client, topic, 3)
        for run in range(runs):
            change = configure_topic(look(cluster).topics[topic], {"retention.ms": str(3_600_000 + run)})
            admin.configure([change])
            # The first pause falls between the two looks that every verify takes, each time a bit later.
            with flapping(cluster, broker, first_s=FIRST_WAIT_S * run / runs):
                verdicts.append(verified(cluster, change))

    assert history.shrinks >= runs, "the broker's pauses did not show in the ISRs"
    assert [v.unhealthy for v in verdicts if v.unhealthy] == []
    assert [early for v in verdicts if (early := history.incomplete(v.at - FIRST_WAIT_S, v.at))] == []


# --- names that come back -------------------------------------------------------------------------------------------


def test_a_topic_that_a_producer_brings_back_is_told_at_once(live: Workspace, cluster: LocalCluster) -> None:
    make(cluster, ["written"], [1, 2, 3])
    live.tombstone("written")
    live.plan()

    with written_to(cluster, "written", 1):
        applied = live.apply("--format", "json")

    (found,) = json.loads(applied.out)["checks"]
    assert (applied.status, found["id"], found["verdict"], found["code"]) == (7, "V17", "failed", "TOP607")


# --- topic znodes that somebody wrote by hand -----------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """What ``verify`` and ``doctor`` said of the same cluster."""

    by_verify: dict[str, dict[str, str]]
    """Messages by topic and check."""
    by_doctor: dict[str, list[str]]
    """Places by finding."""


def seen(workspace: Workspace) -> Seen:
    verify_ended = workspace.run("verify", "--environment", "local", "--format", "json")
    checks: dict[str, dict[str, str]] = {}
    for check in json.loads(verify_ended.out)["checks"]:
        if check["verdict"] != "healthy":
            checks.setdefault(check["topic"], {})[check["id"]] = check["message"]
    doctor_ended = workspace.run("doctor", "--environment", "local", "--format", "json")
    findings = {finding["id"]: finding["places"] for finding in json.loads(doctor_ended.out)["findings"]}
    return Seen(checks, findings)


def write_by_hand(client: KazooClient) -> None:
    """The rows of Kafka's topic znode that brokers take, or let stand, without falling over."""
    rows = {
        "hand.made": {"0": [1, 2, 3]},
        "half-unknown": {"0": [1, NOBODY, 2]},
        "unknown": {"0": [NOBODY]},
        "gaps": {"0": [1, 2], "5": [2, 3]},
        "twice": {"0": [1, 1, 2]},
        "unequal": {"0": [1, 2], "1": [3]},
        "hand_made": {"0": [1, 2, 3]},
        "empty-row": {"0": [1, 2], "1": []},
    }
    for name, partitions in rows.items():
        client.create(f"/brokers/topics/{name}", json.dumps({"version": 1, "partitions": partitions}).encode())
    client.create("/brokers/topics/braces", b"{}")
    client.create("/brokers/topics/no-json", b"neither JSON nor anything")


def take_id_out(client: KazooClient, topic: str) -> None:
    path = f"/brokers/topics/{topic}"
    found = json.loads(client.get(path)[0])
    del found["topic_id"]
    client.set(path, json.dumps(found).encode())


def topic_id(client: KazooClient, topic: str) -> str | None:
    """None until the controller has written one, over whatever stands there."""
    try:
        found: str | None = json.loads(client.get(f"/brokers/topics/{topic}")[0]).get("topic_id")
    except ValueError:
        return None
    return found


def move_controller(client: KazooClient) -> None:
    before = client.get("/controller_epoch")[0]
    client.delete("/controller")
    until(lambda: client.get("/controller_epoch")[0] != before and client.exists("/controller") is not None)


@pytest.fixture(scope="module")
def odd(cluster: LocalCluster) -> LocalCluster:
    """The cluster after a hand has been in its znodes."""
    # A test before may have done it: a leader epoch must come that needs no broker to go.
    if has_first_leaders(cluster, "nameless"):
        restart(cluster, not_the_controller(cluster), wait_for="nameless")
    with zookeeper(cluster) as client:
        write_by_hand(client)
        take_id_out(client, "nameless")
        for name in ("removed", "remade"):
            client.delete(f"/brokers/topics/{name}", recursive=True)
        until(lambda: all(topic_id(client, name) for name in ("hand.made", "braces", "no-json", "empty-row")))
        client.create("/brokers/topics/remade", json.dumps({"version": 1, "partitions": {"0": [1, 2, 3]}}).encode())
    return cluster


def restart(cluster: LocalCluster, broker: int, *, wait_for: str) -> None:
    """It comes back into every ISR of a topic on all brokers, and leads nothing."""
    cluster.stop_broker(broker)
    cluster.start_broker(broker)
    until(lambda: all(len(state.isr) == 3 for state in (look(cluster).topics[wait_for].states or {}).values()))


HAND_MADE: tuple[tuple[str, str, str, str], ...] = (
    ("hand.made", "doctor", "missing-config", "hand.made"),
    ("half-unknown", "verify", "V08", "partition 0 lacks broker 9"),
    ("unknown", "verify", "V06", "partition 0 has no state yet: replicas [9]"),
    ("gaps", "verify", "V02", "partition ids are not 0 to 1: [0, 5]"),
    ("twice", "verify", "V02", "partition 0 has replicas [1, 1, 2]"),
    ("empty-row", "verify", "V02", "partition 1 has replicas []"),
    ("unequal", "verify", "V02", "different replication factors: [1, 2]"),
    ("hand_made", "doctor", "colliding-names", "hand.made and hand_made"),
    ("braces", "verify", "V02", "it has no partitions"),
    ("no-json", "verify", "V02", "it has no partitions"),
    ("nameless", "verify", "V03", "ZooKeeper by none"),
    ("removed", "verify", "V14", "serve it, and there is no such topic in ZooKeeper"),
    ("remade", "verify", "V03", "knows it by topic id"),
)
"""Topic, who sees it, as what, and in which words."""


def test_each_topic_that_a_hand_made_is_seen(odd: LocalCluster, live: Workspace) -> None:
    found = seen(live)

    assert [row for row in HAND_MADE if not is_seen(found, *row)] == []


def is_seen(found: Seen, topic: str, who: str, where: str, words: str) -> bool:
    if who == "doctor":
        return any(words in place for place in found.by_doctor.get(where, ()))
    return words in found.by_verify.get(topic, {}).get(where, "")


def test_another_topic_id_than_the_brokers_logs_have_is_seen_though_zookeeper_and_metadata_agree(
    odd: LocalCluster, live: Workspace
) -> None:
    with zookeeper(odd) as client:
        move_controller(client)
        until(lambda: topic_id(client, "nameless") is not None)
    elect_first_replicas(odd, "nameless")

    found = seen(live)

    assert [*found.by_verify["nameless"]] == ["V16"]
    assert "cannot read its log: " in found.by_verify["nameless"]["V16"]
    assert [where for where, places in found.by_doctor.items() if "nameless" in " ".join(places)] == []


def elect_first_replicas(cluster: LocalCluster, topic: str) -> None:
    """By Kafka's own election, which gives new leader epochs and leaves the ISRs alone."""
    partitions = [TopicPartition(topic, p) for p in look(cluster).topics[topic].assignment]

    def is_elected() -> bool:
        # Whoever was the controller a moment ago may not answer: each try is a new client's.
        admin = new_admin(cluster.bootstrap_servers, socket_timeout_ms="5000")
        with suppress(KafkaException, TimeoutError):
            admin.elect_leaders(ElectionType.PREFERRED, partitions).result(5)
        return has_first_leaders(cluster, topic)

    until(is_elected, timeout_s=120)


def has_first_leaders(cluster: LocalCluster, topic: str) -> bool:
    found = look(cluster).topics[topic]
    return all(state.leader == found.assignment[p][0] for p, state in (found.states or {}).items())


def test_what_was_wrong_before_the_run_is_named_as_old_and_does_not_fail_it(odd: LocalCluster, live: Workspace) -> None:
    live.topic("half-unknown", partitions=1, configs={"retention.ms": "2h"})
    live.plan()

    applied = live.apply("--format", "json")

    told = json.loads(applied.out)
    assert (applied.status, [outcome["status"] for outcome in told["outcomes"]]) == (0, ["done"]), applied.out
    (found,) = (check for check in told["checks"] if check["verdict"] != "healthy")
    assert (found["id"], found["verdict"]) == ("V08", "pre-existing")
    assert "broker 9 not live (so before the run)" in found["message"]
