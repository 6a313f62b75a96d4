"""A server that is cut off goes on serving what it knows: nobody may take that for the cluster of now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest
from kazoo.client import KazooClient

from fakes.changes import configure_topic, plan_of, sandbox
from fakes.fake_ports import FakeAuditLog, FakeJournal, FakeLease
from fakes.resting_cluster import RestingCluster
from fixtures import znode_tree
from fixtures.ensemble import SERVERS, Ensemble, Network
from fixtures.live import until
from topicops.edges.zookeeper.lease import ZooKeeperLease
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.model.errors import ClusterUnreachableError
from topicops.model.plans.changes import Change
from topicops.model.ports import ApplyPorts, Clock, Lease
from topicops.model.runs.results import Outcome, OutcomeStatus
from topicops.steps.applying.apply import apply

pytestmark = pytest.mark.soak
ELECTION_S = 60.0
UNHEARD = "no answer within 2 s|the connection to ZooKeeper was lost"
"""What becomes of a ``sync`` that the leader never hears of; a ping waits behind it."""
OLD, NEW = "1000", "2000"
Parted = tuple[Ensemble, Network]


@pytest.fixture(scope="module")
def cluster(parted: Parted) -> str:
    with znode_tree.laid_below(parted[0].hosts, {"orders": {0: (1, 2)}, "stock": {0: (2, 1)}}, timeout_s=30) as hosts:
        return hosts


@pytest.fixture
def servers(parted: Parted, cluster: str) -> Iterator[Parted]:
    """Their network is whole again after the test."""
    yield parted
    parted[1].mend()
    parted[0].leader()


def hosts(ensemble: Ensemble, *numbers: int) -> str:
    return ",".join(ensemble.servers[number].hosts for number in numbers) + "/kafka"


def another_hand_configures(topic: str, through: str) -> None:
    client = KazooClient(through)
    client.start(timeout=ELECTION_S)
    client.set(f"/config/topics/{topic}", znode_tree.config(retention_ms=NEW).encode())
    client.stop()
    client.close()


def shown(reader: ZooKeeperReader, topic: str) -> str:
    """Return the override as the reader's server has it, without asking any other."""
    znode = reader.session.get(f"/config/topics/{topic}")
    assert znode is not None
    return NEW if NEW.encode() in (znode.data or b"") else OLD


def change_of(reader: ZooKeeperReader, topic: str) -> Change:
    live = reader.traces([topic])[topic].live
    assert live is not None
    return configure_topic(live, {"retention.ms": "3000"})


def applied(change: Change, reader: ZooKeeperReader, lease: Lease) -> tuple[Outcome, RestingCluster]:
    brokers = RestingCluster()
    [outcome] = apply(
        plan_of(change),
        ApplyPorts(
            reader=reader, admin=brokers, lease=lease, journal=FakeJournal(), audit=FakeAuditLog(), questions=None
        ),
        environment=sandbox(),
        clock=Clock(),
    )
    return outcome, brokers


def leave_behind(ensemble: Ensemble, network: Network, old: int, others: Sequence[int]) -> None:
    """Have the others elect one of them, while ``old`` goes on leading.

    One of them is killed meanwhile: it would tell the other one that it still follows, and both would go on with that.
    """
    network.hold(old, *others)
    ensemble.kill(others[0])
    network.drop_followers(old)
    until(lambda: others[1] not in ensemble.modes(), timeout_s=ELECTION_S)
    ensemble.servers[others[0]] = ensemble.start(others[0])
    until(lambda: sorted(ensemble.modes().values()) == ["follower", "leader", "leader"], timeout_s=ELECTION_S)


def test_a_follower_that_is_cut_off_from_its_leader_is_not_believed(servers: Parted) -> None:
    ensemble, network = servers
    leader = ensemble.leader()
    follower = next(number for number in SERVERS if number != leader)
    with ZooKeeperReader(hosts(ensemble, follower), timeout_s=2) as reader:
        change = change_of(reader, "orders")
        network.hold(follower, leader)
        another_hand_configures("orders", through=hosts(ensemble, leader))

        assert shown(reader, "orders") == OLD, "the follower was to lag"
        with pytest.raises(ClusterUnreachableError, match=UNHEARD):
            reader.snapshot()
        outcome, brokers = applied(change, reader, FakeLease())

    assert (outcome.status, outcome.sent, brokers.requests) == (OutcomeStatus.NOT_SENT, False, [])
    assert re.search(UNHEARD, outcome.message)
    network.mend()
    ensemble.leader()
    with ZooKeeperReader(hosts(ensemble, follower)) as reader:
        assert reader.snapshot().topics["orders"].overrides == {"retention.ms": NEW}


def test_a_leader_that_does_not_know_of_the_next_one_is_not_believed(servers: Parted) -> None:
    ensemble, network = servers
    old = ensemble.leader()
    others = [number for number in SERVERS if number != old]
    with ZooKeeperReader(hosts(ensemble, old), timeout_s=2) as reader:
        change = change_of(reader, "stock")
        leave_behind(ensemble, network, old, others)
        with ZooKeeperLease(hosts(ensemble, *others), run="cli/1", operation="apply") as lease:
            another_hand_configures("stock", through=hosts(ensemble, *others))

            assert reader.snapshot().topics["stock"].overrides == {"retention.ms": OLD}, "it was to answer all the same"
            reader.catch_up_with(lease)
            with pytest.raises(ClusterUnreachableError, match="has not heard of the newest changes"):
                reader.snapshot()
            outcome, brokers = applied(change, reader, lease)

    assert (outcome.status, outcome.sent, brokers.requests) == (OutcomeStatus.NOT_SENT, False, [])
    assert "has not heard of the newest changes" in outcome.message
