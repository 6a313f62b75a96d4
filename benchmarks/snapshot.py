"""The spec snapshot against what everybody writes first: kazoo's ``get``, znode by znode.

Both sides have their session before the clock starts. The loop fetches each znode once and decodes nothing; the
snapshot looks at each topic twice, decodes it, and vouches for brokers and controller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kazoo.client import KazooClient

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side, timed
from benchmarks.lone_zookeeper import connected, lay_cluster, lone_zookeeper
from topicops.edges.zookeeper.reader import CONFIGS, TOPICS, ZooKeeperReader

LOOP = "kazoo get loop"
SNAPSHOT = "ZooKeeperReader.snapshot()"
LARGE = 10_000


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with lone_zookeeper() as server, connected(server) as client:
        lay_cluster(client, "/kafka", topics)
        with connected(f"{server}/kafka") as loop, ZooKeeperReader(f"{server}/kafka") as reader:
            found = (len(read_by_loop(loop)), len(reader.snapshot().topics))
            if found != (2 * topics, topics):
                raise BenchmarkError(f"the loop read {found[0]} znodes, the snapshot {found[1]} topics of {topics}")
            yield {LOOP: timed(lambda: read_by_loop(loop)), SNAPSHOT: timed(reader.snapshot)}


def read_by_loop(client: KazooClient) -> list[bytes]:
    return [client.get(f"{parent}/{name}")[0] for parent in (TOPICS, CONFIGS) for name in client.get_children(parent)]


def comparisons(topics: int) -> Sequence[Comparison]:
    """The goal falls below 10,000 topics, where what a snapshot costs but once weighs more."""
    return (
        Comparison(
            id=f"get-loop-to-snapshot-{topics}-topics",
            numerator=LOOP,
            denominator=SNAPSHOT,
            goal=40 if topics >= LARGE else 20,
            better="higher",
        ),
    )


BENCHMARK = Benchmark(name="snapshot", topics=2_000, rounds=9, comparisons=comparisons, sides=sides)
