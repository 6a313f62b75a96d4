"""A server from before multiRead hangs up on it, and is read all the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.exceptions import UnimplementedError

from fixtures import znode_tree
from fixtures.zookeeper import ZooKeeperServer, start_zookeeper
from topicops.edges.zookeeper.lease import ZooKeeperLease
from topicops.edges.zookeeper.multi_read import PIPELINE_WINDOW, read_batched, read_pipelined
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.edges.zookeeper.session import UnknownRequestError, ZooKeeperSession
from topicops.features.ask.doctor.edges.zookeeper import zookeeper_facts
from topicops.features.shared.java import pyspark_jars
from topicops_local.jars import JarSet, jars_of
from topicops_local.processes import stop

VERSION = "3.5.10"
_SUMS = {
    "zookeeper": "6e464f38311feafa64c1759ba70c99a8df7c5fa73015566106472dbeae9f91a2",
    "zookeeper-jute": "edc31093829ab70f082456d0baecf1eade3f3d6f4dc81c1d3a1e04ed2920086d",
}
JARS = JarSet(
    f"ZooKeeper {VERSION}",
    {f"org/apache/zookeeper/{name}/{VERSION}/{name}-{VERSION}.jar": digest for name, digest in _SUMS.items()},
)
_LOGGING = ("slf4j-api-*", "log4j-slf4j2-impl-*", "log4j-api-*", "log4j-core-*")


@pytest.fixture(scope="session")
def old_zookeeper(fast_folder: Path) -> Iterator[ZooKeeperServer]:
    logging = [jar for pattern in _LOGGING for jar in sorted(pyspark_jars().glob(f"{pattern}.jar"))]
    server = start_zookeeper(
        fast_folder / "old-zookeeper", jars=[*jars_of(JARS), *logging], flags=["-Dzookeeper.jmx.log4j.disable=true"]
    )
    try:
        yield server
    finally:
        stop([server.process], grace_s=2.0)


TOPICS = {f"topic-{number}": {0: [1, 2], 1: [2, 3]} for number in range(PIPELINE_WINDOW)}


@pytest.fixture(scope="module")
def hosts(old_zookeeper: ZooKeeperServer) -> Iterator[str]:
    """Yield a cluster whose topics need more than one window of requests."""
    with znode_tree.laid_below(old_zookeeper.hosts, TOPICS, timeout_s=10) as hosts:
        yield hosts


def test_the_server_is_an_old_one_and_hangs_up_on_the_bulk_request(hosts: str, old_zookeeper: ZooKeeperServer) -> None:
    assert f"Zookeeper version: {VERSION}" in old_zookeeper.srvr()
    with ZooKeeperSession(hosts) as session:
        before = session.session_id
        with pytest.raises(UnknownRequestError) as caught:
            read_batched(session, ["/cluster/id"])
        assert isinstance(caught.value.__cause__, UnimplementedError)
        assert session.reconnected()
        assert session.session_id == before


def test_its_snapshot_is_whole(hosts: str) -> None:
    with ZooKeeperReader(hosts) as reader:
        live = reader.snapshot(states=True)
    assert (live.cluster_id, live.controller_id, sorted(live.brokers)) == (znode_tree.CLUSTER_ID, 1, [1, 2, 3])
    assert {name: dict(topic.assignment) for name, topic in live.topics.items()} == {
        name: {p: tuple(brokers) for p, brokers in assignment.items()} for name, assignment in TOPICS.items()
    }
    assert all(topic.overrides == {"retention.ms": "1000"} for topic in live.topics.values())
    assert all([state.leader for state in (topic.states or {}).values()] == [1, 2] for topic in live.topics.values())
    assert not any(topic.unstable for topic in live.topics.values())


def test_its_traces_are_whole(hosts: str) -> None:
    with ZooKeeperReader(hosts) as reader:
        found = reader.traces(["topic-0", "nothing"], states=True)
    assert found["nothing"].is_gone
    assert found["topic-0"].live is not None
    assert found["topic-0"].live.partitions == 2


def test_what_is_not_there_is_told_from_what_is(hosts: str) -> None:
    with ZooKeeperSession(hosts) as session:
        found = read_pipelined(session, ["/cluster/id", "/nothing", "/brokers/topics/topic-1"])
    assert [znode is None for znode in found] == [False, True, False]


def test_it_is_not_asked_for_identities_since_it_would_hang_up_now_or_later(hosts: str) -> None:
    with ZooKeeperReader(hosts) as reader:
        seen: list[str] = []
        reader.session.client.add_listener(seen.append)
        found = zookeeper_facts(reader)

    assert [server.version for server in found.servers] == [VERSION]
    assert (found.identities, found.topics_without_config) == (None, ())
    assert "SUSPENDED" not in seen


def test_it_holds_a_lease(hosts: str) -> None:
    with ZooKeeperLease(hosts, run="cli/1", operation="apply") as lease:
        lease.confirm()
