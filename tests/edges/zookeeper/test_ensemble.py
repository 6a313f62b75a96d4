"""A leader that dies while the cluster is read, or is cut off: the snapshot is whole and fresh, or there is none."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from fixtures import znode_tree
from fixtures.ensemble import SERVERS, Ensemble
from topicops.edges.zookeeper.lease import LEASE, ZooKeeperLease
from topicops.edges.zookeeper.reader import TopicReading, ZooKeeperReader
from topicops.edges.zookeeper.session import ZooKeeperSession
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ClusterUnreachableError
from topicops.model.ports import TopicSink

log = logging.getLogger(__name__)

TOPICS = {f"topic-{number}": {0: (1, 2), 1: (2, 3), 2: (3, 1)} for number in range(300)}
RECOVERY_S = 30.0


@pytest.fixture(scope="module")
def hosts(ensemble: Ensemble) -> Iterator[str]:
    with znode_tree.laid_below(ensemble.hosts, TOPICS, timeout_s=30) as hosts:
        yield hosts


class KillingReader(ZooKeeperReader):
    """Has the leader killed in the middle of its first look at the topics."""

    def __init__(self, hosts: str, ensemble: Ensemble, *, after_s: float) -> None:
        super().__init__(hosts)
        self._ensemble = ensemble
        self._after_s = after_s
        self._killer: threading.Thread | None = None
        self.beginnings = 0

    def _snapshot(self, sink: TopicSink, *, states: bool) -> ClusterSnapshot:
        self.beginnings += 1
        return super()._snapshot(sink, states=states)

    def _read_topics(self, names: Sequence[str], *, states: bool) -> dict[str, TopicReading]:
        if self._killer is None:
            leader = self._ensemble.leader()
            self._killer = threading.Thread(target=self._kill, args=(leader,))
            self._killer.start()
        return super()._read_topics(names, states=states)

    def _kill(self, leader: int) -> None:
        time.sleep(self._after_s)
        self._ensemble.kill(leader)

    def wait_for_kill(self) -> None:
        assert self._killer is not None
        self._killer.join()


def assert_whole(live: ClusterSnapshot) -> None:
    assert (live.cluster_id, sorted(live.brokers), live.controller_id) == (znode_tree.CLUSTER_ID, [1, 2, 3], 1)
    assert {name: dict(topic.assignment) for name, topic in live.topics.items()} == TOPICS
    assert all(topic.overrides == {"retention.ms": "1000"} for topic in live.topics.values())
    assert all(sorted(topic.states or {}) == [0, 1, 2] for topic in live.topics.values())
    assert not any(topic.unstable for topic in live.topics.values())


def snapshot_when_it_can_be_taken(hosts: str) -> ClusterSnapshot:
    deadline = time.monotonic() + RECOVERY_S
    while True:
        try:
            with ZooKeeperReader(hosts) as reader:
                return reader.snapshot(states=True)
        except ClusterUnreachableError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def outcome_of_a_kill(ensemble: Ensemble, hosts: str, *, after_s: float) -> str:
    """``whole``, ``read anew`` or ``refused``; anything else fails here. The ensemble is complete again afterwards."""
    ensemble.leader()
    with KillingReader(hosts, ensemble, after_s=after_s) as reader:
        try:
            assert_whole(reader.snapshot(states=True))
            outcome = "whole" if reader.beginnings == 1 else "read anew"
        except ClusterUnreachableError:
            outcome = "refused"
        reader.wait_for_kill()
    [dead] = [number for number in SERVERS if not ensemble.servers[number].process.alive]
    assert_whole(snapshot_when_it_can_be_taken(hosts))
    ensemble.restart(dead)
    return outcome


def test_an_ensemble_is_read_the_same_through_its_leader_and_its_followers(ensemble: Ensemble, hosts: str) -> None:
    leader = ensemble.leader()
    assert sorted(ensemble.modes().values()) == ["follower", "follower", "leader"]
    through = {}
    for number in SERVERS:
        with ZooKeeperReader(f"{ensemble.servers[number].hosts}/kafka") as reader:
            through[number] = reader.snapshot(states=True)
            assert_whole(through[number])
    assert all(live == through[leader] for live in through.values())


def test_a_leader_killed_while_reading_leaves_a_whole_snapshot_or_none(ensemble: Ensemble, hosts: str) -> None:
    assert outcome_of_a_kill(ensemble, hosts, after_s=0.01) in ("whole", "read anew", "refused")


@pytest.mark.soak
def test_a_leader_killed_twenty_times_leaves_no_part_of_a_snapshot(ensemble: Ensemble, hosts: str) -> None:
    outcomes = Counter(outcome_of_a_kill(ensemble, hosts, after_s=number * 0.005) for number in range(20))
    log.info("a leader killed 20 times: %s", dict(outcomes))
    assert outcomes.total() == 20
    assert outcomes["whole"] < 20, "no kill met a reader"


def test_a_lease_lives_through_the_death_of_the_leader(ensemble: Ensemble, hosts: str) -> None:
    with ZooKeeperLease(hosts, run="cli/1", operation="apply") as lease:
        dead = ensemble.leader()
        ensemble.kill(dead)
        try:
            lease.confirm()
            assert lease.session.get(LEASE) is not None
        finally:
            ensemble.restart(dead)


def test_one_of_three_serves_nobody_and_says_so(ensemble: Ensemble, hosts: str) -> None:
    left = ensemble.leader()
    dead = [number for number in SERVERS if number != left]
    try:
        for number in dead:
            ensemble.kill(number)
        while left in ensemble.modes():
            time.sleep(0.05)
        with pytest.raises(ClusterUnreachableError, match="its ensemble has no quorum") as caught:
            ZooKeeperSession(hosts, timeout_s=1).__enter__()
        assert str(caught.value).count("Connection refused") == len(dead)
    finally:
        for number in dead:
            ensemble.servers[number] = ensemble.start(number)
        ensemble.leader()
