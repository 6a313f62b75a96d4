"""What a rehearsal foretells, against what a real cluster shows after the same changes and the same loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from fakes.builders import partition_state
from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic
from fixtures.cluster import running
from fixtures.live import cluster_spec, look, lose, remove_topics, until
from fixtures.workspace import Workspace
from topicops.edges.kafka.admin import KafkaAdmin
from topicops.features.rehearse.played import Effect, Rehearsal, rehearse
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.ports import Answer, AnswerKind
from topicops_local.cluster import LocalCluster

pytestmark = pytest.mark.cluster
BROKERS = (1, 2, 3)
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 21))]
SESSION_MS = "18000"
Seen = dict[str, dict[int, tuple[int | None, frozenset[int]]]]
"""Leader and ISR, by topic and partition; of brokers that live."""


@pytest.fixture(scope="module")
def cluster(fast_folder: Path) -> Iterator[LocalCluster]:
    """One of its own, since brokers of it are killed."""
    settings = {"zookeeper.session.timeout.ms": SESSION_MS, "auto.leader.rebalance.enable": "false"}
    with running(fast_folder / "rehearsed", broker_properties=settings) as cluster:
        yield cluster


@pytest.mark.parametrize("seed", SEEDS)
def test_leaders_isrs_and_stuck_deletes_are_as_rehearsed(cluster: LocalCluster, seed: int) -> None:
    chance = Random(seed)
    with closing(KafkaAdmin({"bootstrap.servers": cluster.bootstrap_servers})) as admin:
        for name in (f"r{seed}.{index}" for index in range(6)):
            send(admin, some_topic(chance, name))
        until(lambda: is_at_rest(look(cluster), BROKERS))
        before = look(cluster)
        changes = list(some_changes(chance, before, seed))
        lost = chance.choice([broker for broker in BROKERS if broker != before.controller_id])
        step = chance.randint(0, len(changes))
        foretold = rehearse(before, changes, environment="local", lost=[lost], step=step)
        try:
            for change in changes[:step]:
                assert send(admin, change).kind is AnswerKind.ACCEPTED
            until(lambda: is_at_rest(look(cluster), BROKERS) and not look(cluster).deleting)
            lose(cluster, lost)
            unsent = [*foretold.with_effect(Effect.HANGS), *foretold.with_effect(Effect.REFUSED)]
            left = [change for change in changes[step:] if change.topic in {one.topic for one in unsent}]
            for change in changes[step:]:
                if change not in left:
                    assert send(admin, change).kind is not AnswerKind.FAILED
            until(lambda: is_at_rest(look(cluster), set(BROKERS) - {lost}))
            after = look(cluster)
            # Apply would not send these: deletes that wait for the lost broker, and partitions that Kafka refuses.
            answers = [(change, send(admin, change)) for change in left if not isinstance(change, CreateTopic)]
            until(lambda: is_at_rest(look(cluster), set(BROKERS) - {lost}))
            stuck = {*look(cluster).deleting}
        finally:
            cluster.start_broker(lost)
            until(lambda: is_at_rest(look(cluster), BROKERS))
            remove_topics(cluster, [name for name in look(cluster).topics if name.startswith("r")])

    assert seen(after) == {**untouched(before, changes, lost), **told(foretold)}
    assert (after.deleting, stuck) == ({}, {change.topic for change in foretold.with_effect(Effect.HANGS)})
    refused = {change.topic for change in foretold.with_effect(Effect.REFUSED) if change.action == "expand"}
    assert {change.topic for change, answer in answers if answer.kind is AnswerKind.FAILED} == refused


def some_topic(chance: Random, name: str) -> CreateTopic:
    factor = chance.randint(1, 3)
    rows = [tuple(chance.sample(BROKERS, factor)) for _ in range(chance.randint(1, 4))]
    configs = {"min.insync.replicas": "2"} if factor > 1 and chance.random() < 0.5 else {}
    if chance.random() < 0.2:
        configs["unclean.leader.election.enable"] = "true"
    return create_topic(name, *rows, configs=configs)


def some_changes(chance: Random, live: ClusterSnapshot, seed: int) -> Iterator[Change]:
    """In the order of a plan: creates, expansions, configs, deletes; each topic once."""
    names = sorted(name for name in live.topics if name.startswith(f"r{seed}."))
    chance.shuffle(names)
    for index in range(2):
        yield some_topic(chance, f"r{seed}.new{index}")
    for name in names[:2]:
        topic = live.topics[name]
        factor = len(topic.assignment[0])
        yield expand_topic(topic, *[tuple(chance.sample(BROKERS, factor)) for _ in range(chance.randint(1, 3))])
    yield configure_topic(live.topics[names[2]], {"min.insync.replicas": "1"})
    for name in names[3:5]:
        yield delete_topic(live.topics[name])


def send(admin: KafkaAdmin, change: Change) -> Answer:
    """Return the request alone, without the checks of apply."""
    match change:
        case CreateTopic():
            return admin.create([change])[0]
        case ExpandTopic():
            return admin.expand([change])[0]
        case ConfigureTopic():
            return admin.configure([change])[0]
        case DeleteTopic():
            return admin.delete(change)


def is_at_rest(live: ClusterSnapshot, brokers: Sequence[int] | set[int]) -> bool:
    """Return whether every state names only live brokers as far as it can, and all live replicas are in sync."""
    if set(live.brokers) != set(brokers):
        return False
    return all(is_settled(topic, live) for name, topic in live.topics.items() if name not in live.deleting) and all(
        not alive_topic(live.topics[name], live) for name in live.deleting if name in live.topics
    )


def is_settled(topic: LiveTopic, live: ClusterSnapshot) -> bool:
    states = topic.states or {}
    for p, row in topic.assignment.items():
        there = {broker for broker in row if broker in live.brokers}
        state = states.get(p)
        if state is None:
            if there:
                return False
        elif state.leader in live.brokers:
            if set(state.isr) != there:
                return False
        elif state.leader != -1 or there & set(state.isr):
            return False
    return True


def alive_topic(topic: LiveTopic, live: ClusterSnapshot) -> bool:
    """Return whether a topic that is marked for deletion is still led, or could be gone by now."""
    states = (topic.states or {}).values()
    holders = {broker for row in topic.assignment.values() for broker in row}
    return any(state.leader != -1 for state in states) or holders <= live.brokers.keys()


def seen(live: ClusterSnapshot) -> Seen:
    none = partition_state(())
    return {
        name: {
            p: (
                state.leader if state.leader in live.brokers else None,
                frozenset(broker for broker in state.isr if broker in live.brokers),
            )
            for p in topic.assignment
            for state in [(topic.states or {}).get(p, none)]
        }
        for name, topic in live.topics.items()
        if name not in live.deleting
    }


def told(found: Rehearsal) -> Seen:
    return {
        topic.topic: {row.partition: (row.leader, frozenset(row.isr)) for row in topic.partitions}
        for topic in found.topics
        if topic.partitions
    }


def untouched(before: ClusterSnapshot, changes: Sequence[Change], lost: int) -> Seen:
    """Return topics that no change names, by a rehearsal that names them without changing them."""
    others = [before.topics[name] for name in before.topics.keys() - {change.topic for change in changes}]
    nothing = [configure_topic(topic, {}) for topic in others]
    return told(rehearse(before, nothing, environment="local", lost=[lost]))


def test_the_command_reads_the_live_cluster(cluster: LocalCluster, workspace: Workspace) -> None:
    workspace.cluster = cluster_spec(cluster)
    workspace.topic("rehearsed.new", partitions=3, replicationFactor=2)
    workspace.plan()

    ended = workspace.run("rehearse", "plan.json", "--without-broker", "2")
    racks = workspace.run("rehearse", "--environment", "local", "--without-rack", "r9")

    assert ended.status == 0, ended.err
    assert "1 change; broker 2 (r2) is lost after them" in ended.out
    assert "0 offline (0 before)" in ended.out
    assert racks.status != 0
    assert "no live broker is on rack r9; racks: " in racks.err
