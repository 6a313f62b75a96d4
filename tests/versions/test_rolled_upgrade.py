"""Three brokers move from one Kafka to the next, one broker at a time, while topics are planned and applied."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from fixtures.cluster import running
from fixtures.endless_loop import EndlessLoop
from fixtures.live import cluster_spec, look
from fixtures.summaries import UPGRADE
from fixtures.workspace import Workspace
from topicops_local.cluster import LocalCluster

RELEASES = ("2.5.1", "2.8.2", "3.9.2")
PROTOCOL = "inter.broker.protocol.version"
SIDE_BY_SIDE_S = 5.0
"""How long topics are applied to a broker that came back, before the next one stops."""
KNOWN = re.compile(r"TOP\d{3}|deletes run only when all before succeeded")
"""A code, or a sentence that sends the reader to another refusal of the same run."""
NAMES = re.compile(r"loop-\d+|127\.0\.0\.1:\d+|\b\d+\b")


@pytest.fixture
def cluster(fast_folder: Path) -> Iterator[LocalCluster]:
    with running(fast_folder / "rolled-cluster", kafka=RELEASES[0]) as cluster:
        yield cluster


def release(version: str) -> str:
    return version.rpartition(".")[0]


def roll(cluster: LocalCluster, kafka: str, protocol: str) -> None:
    """Restart each broker with that Kafka and protocol, one after the other."""
    for broker in cluster.broker_ports:
        cluster.stop_broker(broker)
        cluster.start_broker(broker, kafka=kafka, broker_properties={PROTOCOL: protocol})
        time.sleep(SIDE_BY_SIDE_S)


def live_topics(cluster: LocalCluster) -> dict[str, tuple[int, str | None]]:
    topics = look(cluster).topics.values()
    return {topic.name: (topic.partitions, topic.overrides.get("retention.ms")) for topic in topics}


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_nothing_is_lost_in_a_rolled_upgrade_and_each_refusal_is_a_clear_word(
    cluster: LocalCluster, workspace: Workspace, record_property: Callable[[str, object], None]
) -> None:
    workspace.cluster = cluster_spec(cluster) | {"kafkaVersion": release(RELEASES[0])}
    workspace.policy, workspace.limits = {"unattended": "destructive"}, {"expansionFactor": 10}
    workspace.write_environment()
    loop = EndlessLoop(workspace, seed=7)
    ends = []
    for before, after in pairwise(RELEASES):
        started = time.monotonic()
        with loop.running():
            cluster.stop_zookeeper()
            cluster.start_zookeeper(kafka=after)
            roll(cluster, after, release(before))
            roll(cluster, after, release(after))
        loop.settle()
        assert live_topics(cluster) == loop.wanted
        ends.append((after, round(time.monotonic() - started), loop.done, len(loop.wanted)))

    unclear = [word for word in loop.words if not KNOWN.search(word.text)]
    seen = Counter((word.kind, NAMES.sub("_", word.text)[:200]) for word in loop.words)
    for kafka, seconds, done, topics in ends:
        record_property(UPGRADE, f"to {kafka}: {seconds} s, {done} changes so far, {topics} topics")
    for (kind, text), count in sorted(seen.items()):
        record_property(UPGRADE, f"{count} {kind}: {text}")
    assert set(cluster.versions.values()) == {RELEASES[-1]}
    assert loop.done > 50
    assert unclear == []
    other = [word for word in loop.words if "TOP606" in word.text or " V03: " in word.text]
    assert not other, "a topic that got its id is still the same topic"
