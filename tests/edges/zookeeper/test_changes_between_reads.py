"""Changes while a snapshot is read: every topic is as it was before, or as after.

Each kind of change comes before each single request; and the cluster changes as fast as it can.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from kazoo.client import KazooClient, TransactionRequest

from fixtures import znode_tree
from fixtures.churn import churn, generation
from fixtures.proxy import Fate, Strike, Strikes, zookeeper_proxy
from fixtures.single_reader import SingleReader
from fixtures.zookeeper import Chroot
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.model.cluster.snapshot import ClusterSnapshot

TOPICS = {f"topic-{number}": {0: (1, 2), 1: (2, 3)} for number in range(3)}
MOVED = "topic-1"
OPENING = 2
"""Requests before a reader has anything to read."""
FEWEST = 10
"""Requests of any snapshot."""


def create(client: KazooClient) -> None:
    znode_tree.lay_topics(client, {"topic-11": {0: (3, 1)}}, retention_ms="1")


def delete(client: KazooClient) -> None:
    client.delete(f"/brokers/topics/{MOVED}", recursive=True)
    client.delete(f"/config/topics/{MOVED}")


def expand(client: KazooClient) -> None:
    client.set(f"/brokers/topics/{MOVED}", znode_tree.topic({**TOPICS[MOVED], 2: (3, 1)}).encode())


def configure(client: KazooClient) -> None:
    client.set(f"/config/topics/{MOVED}", znode_tree.config(retention_ms="2").encode())


def expand_and_configure(client: KazooClient) -> None:
    both: TransactionRequest = client.transaction()
    both.set_data(f"/brokers/topics/{MOVED}", znode_tree.topic({**TOPICS[MOVED], 2: (3, 1)}).encode())
    both.set_data(f"/config/topics/{MOVED}", znode_tree.config(retention_ms="2").encode())
    assert not any(isinstance(result, Exception) for result in both.commit())


def snapshot(hosts: str) -> ClusterSnapshot:
    with ZooKeeperReader(hosts) as reader:
        return reader.snapshot()


def reset(client: KazooClient) -> None:
    for folder in ("/brokers/topics", "/config/topics"):
        for name in client.get_children(folder):
            client.delete(f"{folder}/{name}", recursive=True)
    znode_tree.lay_topics(client, TOPICS, retention_ms="1")


@pytest.mark.parametrize(
    "change",
    [
        create,
        delete,
        *(pytest.param(change, marks=pytest.mark.soak) for change in (expand, configure, expand_and_configure)),
    ],
)
def test_a_change_between_any_two_reads_leaves_no_topic_half_old(
    chroot: Chroot, change: Callable[[KazooClient], None]
) -> None:
    znode_tree.lay(chroot.client, znode_tree.BASE)
    server, _, path = chroot.hosts.partition("/")
    number = 0
    while True:
        number += 1
        reset(chroot.client)
        before = snapshot(chroot.hosts)
        strikes = Strikes(Strike("", Fate.PASS, OPENING + number, before=lambda: change(chroot.client)))
        with zookeeper_proxy(server, strikes) as proxy:
            seen = snapshot(f"{proxy.hosts}/{path}")
        after = snapshot(chroot.hosts)
        if not strikes.done or strikes.done[0].startswith("close"):
            break

        for name in before.topics.keys() | after.topics.keys() | seen.topics.keys():
            assert seen.topics.get(name) in (before.topics.get(name), after.topics.get(name)), (number, name)
        assert not any(topic.unstable for topic in seen.topics.values())
    assert number > FEWEST


def test_no_topic_is_torn_where_each_znode_is_a_request_and_the_change_comes_between(
    chroot: Chroot, monkeypatch: pytest.MonkeyPatch
) -> None:
    znode_tree.lay(chroot.client, znode_tree.BASE)
    reset(chroot.client)
    changed: list[str] = []
    with SingleReader(chroot.hosts) as reader:
        client = reader.session.client
        get_async = client.get_async

        def get_behind_a_change(path: str) -> object:
            if path == f"/config/topics/{MOVED}" and not changed:
                changed.append(path)
                client.sync_async("/").get()  # the topic's own znode is answered before
                expand_and_configure(chroot.client)
            return get_async(path)

        monkeypatch.setattr(client, "get_async", get_behind_a_change)
        seen = reader.snapshot()
    assert changed != []
    assert seen.topics[MOVED] == snapshot(chroot.hosts).topics[MOVED]


log = logging.getLogger(__name__)

BUSY = [f"busy-{number}" for number in range(20)]
CALM = [f"calm-{number}" for number in range(20)]
HANGING_S = 30.0


@dataclass(slots=True)
class Tally:
    snapshots: int = 0
    unstable: int = 0
    """Snapshots with a topic that is marked."""
    longest_s: float = 0.0
    torn: list[str] = field(default_factory=list)
    generations: set[int] = field(default_factory=set)
    unstable_topics: set[str] = field(default_factory=set)

    def add(self, live: ClusterSnapshot, seconds: float) -> None:
        self.snapshots += 1
        self.longest_s = max(self.longest_s, seconds)
        marked = {name for name, topic in live.topics.items() if topic.unstable}
        self.unstable += bool(marked)
        self.unstable_topics |= marked
        for name, topic in live.topics.items():
            number = topic.assignment[0][0]
            self.generations.add(number)
            if name not in marked and topic.overrides != {"retention.ms": str(number)}:
                self.torn.append(f"{name}: replica {number}, {topic.overrides}")


@pytest.mark.parametrize("writes_per_s", [200, pytest.param(1000, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("reader_kind", "snapshots"),
    [
        pytest.param(ZooKeeperReader, 20, id="in bulk"),
        pytest.param(SingleReader, 10, id="one by one"),
        pytest.param(ZooKeeperReader, 10_000, id="in bulk, many", marks=pytest.mark.soak),
        pytest.param(SingleReader, 1_500, id="one by one, many", marks=pytest.mark.soak),
    ],
)
def test_no_topic_is_torn_while_topic_and_config_change_together(
    chroot: Chroot, reader_kind: type[ZooKeeperReader], writes_per_s: int, snapshots: int
) -> None:
    znode_tree.lay(chroot.client, znode_tree.BASE)
    for name in BUSY + CALM:
        znode_tree.lay(chroot.client, generation(0, name))
    # One topic takes half of all writes: what never rests must be marked, or be whole all the same.
    hot = [name for busy in BUSY[1:] for name in (BUSY[0], busy)]
    tally = Tally()
    with churn(chroot.hosts, hot, writes_per_s=writes_per_s) as failed, reader_kind(chroot.hosts) as reader:
        started = time.monotonic()
        while tally.snapshots < snapshots:
            begun = time.monotonic()
            live = reader.snapshot()
            tally.add(live, time.monotonic() - begun)
            assert sorted(live.topics) == sorted(BUSY + CALM)
        written_per_s = max(tally.generations) / (time.monotonic() - started)
    assert not failed.is_set()
    log.info(
        "%s: %d snapshots at %.0f of %d writes/s: %d torn, %d with an unstable topic, longest %.0f ms",
        reader_kind.__name__, tally.snapshots, written_per_s, writes_per_s, len(tally.torn), tally.unstable,
        tally.longest_s * 1000,
    )  # fmt: skip
    assert tally.torn == []
    assert len(tally.generations) > snapshots / 10, "the writer did not write while the snapshots were taken"
    assert not tally.unstable_topics & set(CALM)
    assert tally.longest_s < HANGING_S
