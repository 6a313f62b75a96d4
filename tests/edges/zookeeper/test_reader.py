"""The live cluster is read whole and settled from a real ZooKeeper, or an error says why not."""

import json
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import repeat

import msgspec
import pytest
from kazoo.client import KazooClient
from kazoo.protocol.states import ZnodeStat
from kazoo.security import make_digest_acl

from fakes.fake_ports import FakeLease
from fixtures import znode_tree
from fixtures.live import tree_of
from fixtures.proxy import Fate, Relay, Strike, Strikes, zookeeper_proxy
from fixtures.single_reader import SingleReader
from fixtures.zookeeper import ZooKeeperServer
from topicops.edges.connections.lookup import zookeeper_address
from topicops.edges.zookeeper.multi_read import (
    FIRST_BATCH,
    MOST_A_BATCH,
    REPLY_BYTES,
    Meanwhile,
    MultiRead,
    Reply,
    next_batch_size,
    read_batched,
    read_pipelined,
)
from topicops.edges.zookeeper.reader import MOST_READINGS, MOST_RESTARTS, TopicReading, ZooKeeperReader
from topicops.edges.zookeeper.session import Znode, ZooKeeperSession
from topicops.model.cluster.snapshot import Assignment, Broker, PartitionState
from topicops.model.errors import (
    ClusterError,
    ClusterUnreachableError,
    UndecodableZnodeError,
    UnsupportedTargetError,
    UsageError,
    WrongTargetError,
)
from topicops.model.specs.environment import Environment, EnvironmentSpec

ORDERS = {
    "/brokers/topics/orders": znode_tree.topic({0: [1, 2], 1: [2, 3, 1]}, removing_replicas={"1": [1]}),
    "/config/topics/orders": znode_tree.config(retention_ms="1000"),
    "/brokers/topics/orders/partitions/0/state": znode_tree.state(1, [1, 2], leader_epoch=4),
}
ROWS: Assignment = {0: (1, 2), 1: (2, 3, 1)}
"""Of orders."""
STOCK = {"/brokers/topics/stock": znode_tree.topic({0: [3]})}


class InterruptedReader(ZooKeeperReader):
    """Lets the cluster change after a share of each look at topics, as often as ``changes`` has one."""

    def __init__(
        self, hosts: str, changes: Iterator[Callable[[], object]], *, after: float = 0.5, timeout_s: float = 10
    ) -> None:
        super().__init__(hosts, timeout_s=timeout_s)
        self._after = after
        self._changes = changes
        self._is_looking = False
        self.looked_at: list[str] = []

    def _read_topics(self, names: Sequence[str], *, states: bool) -> dict[str, TopicReading]:
        self._is_looking = True
        self.looked_at.extend(names)
        return super()._read_topics(names, states=states)

    def _read(self, paths: Sequence[str], *, meanwhile: Meanwhile = lambda _: None) -> list[Znode | None]:
        if not (self._is_looking and paths):
            return super()._read(paths, meanwhile=meanwhile)
        self._is_looking = False
        before = int(len(paths) * self._after)
        first = super()._read(paths[:before])
        next(self._changes, lambda: None)()
        found = first + super()._read(paths[before:])
        meanwhile(found)
        return found


def test_a_snapshot_holds_brokers_controller_topics_and_overrides(hosts: str, cluster: KazooClient) -> None:
    znode_tree.lay(cluster, ORDERS | STOCK)
    stat = cluster.exists("/brokers/topics/orders")
    with ZooKeeperReader(hosts) as reader:
        live = reader.snapshot()
    assert (live.cluster_id, live.source) == (znode_tree.CLUSTER_ID, "zookeeper")
    assert hosts.endswith(live.chroot)
    assert (live.controller_id, live.controller_epoch) == (1, 7)
    assert live.racks == {1: "a", 2: "b", 3: "c"}
    assert sorted(live.topics) == ["orders", "stock"]
    orders = live.topics["orders"]
    assert (orders.topic_id, orders.czxid, orders.mzxid) == (znode_tree.TOPIC_ID, stat.czxid, stat.mzxid)
    assert orders.assignment == ROWS
    assert orders.removing == {1: (1,)}
    assert orders.overrides == {"retention.ms": "1000"}
    assert live.topics["stock"].overrides == {}
    assert orders.states is None
    assert not orders.unstable
    assert live.broker_defaults is None


def test_a_server_that_has_not_seen_what_the_leases_session_has_seen_is_not_believed(hosts: str) -> None:
    with ZooKeeperReader(hosts) as reader:
        reader.catch_up_with(FakeLease())
        assert reader.traces(["orders"])["orders"].live is None
        reader.catch_up_with(FakeLease(newest_zxid=2**60))
        with pytest.raises(ClusterUnreachableError, match="has not heard of the newest changes"):
            reader.traces(["orders"])


def test_a_brokers_epoch_is_the_czxid_of_its_registration(hosts: str, cluster: KazooClient) -> None:
    with ZooKeeperReader(hosts) as reader:
        found = reader.brokers()[2]
    czxid = cluster.exists("/brokers/ids/2").czxid
    assert found == Broker(
        id=2, rack="b", endpoints=("PLAINTEXT://127.0.0.1:9093",), protocols=("PLAINTEXT",), epoch=czxid
    )


@pytest.mark.parametrize(
    "connection",
    [
        pytest.param("zookeeper://[::1]:{port}{path}", id="URI"),
        pytest.param('{{"host": "::1", "port": {port}, "schema": "{path}"}}', id="host and port"),
    ],
)
def test_a_connection_may_name_an_ipv6_address(
    hosts: str, cluster: KazooClient, connection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _, path = hosts.partition("/")
    spec = msgspec.convert({"cluster": {"class": "sandbox", "zookeeper": {"connection": "zk"}}}, EnvironmentSpec)
    with Relay(server, loopback="::1") as relay:
        monkeypatch.setenv("AIRFLOW_CONN_ZK", connection.format(port=relay.port, path=f"/{path}"))
        address = zookeeper_address(Environment(name="local", spec=spec, file="local.yaml"))
        with ZooKeeperReader(address) as reader:
            assert reader.cluster_id() == znode_tree.CLUSTER_ID
    assert cluster.connected


def test_a_brokers_protocols_are_those_of_its_registration_whatever_its_listeners_are_called(
    hosts: str, cluster: KazooClient
) -> None:
    written = json.loads(znode_tree.broker(9092, "a"))
    written["endpoints"] = ["REPLICATION://127.0.0.1:9091", "CLIENT_SECURE://[::1]:9093", "CLIENT://[::1]:9092"]
    written["listener_security_protocol_map"] = {
        "REPLICATION": "PLAINTEXT",
        "CLIENT_SECURE": "SASL_SSL",
        "CLIENT": "PLAINTEXT",
    }
    znode_tree.lay(cluster, {"/brokers/ids/9": json.dumps(written)})
    with ZooKeeperReader(hosts) as reader:
        found = reader.brokers()[9]

    assert found.protocols == ("PLAINTEXT", "SASL_SSL", "PLAINTEXT")


def test_states_are_read_when_asked_for_and_a_partition_without_one_has_no_entry(
    hosts: str, cluster: KazooClient
) -> None:
    znode_tree.lay(cluster, ORDERS)
    cluster.set("/brokers/topics/orders/partitions/0/state", znode_tree.state(1, [1, 2], leader_epoch=4).encode())
    version = cluster.exists("/brokers/topics/orders/partitions/0/state").version
    with ZooKeeperReader(hosts) as reader:
        states = reader.snapshot(states=True).topics["orders"].states
    assert states == {0: PartitionState(leader=1, isr=(1, 2), leader_epoch=4, controller_epoch=1, version=version)}


def test_markers_reassignments_and_orphan_configs_are_in_the_snapshot(hosts: str, cluster: KazooClient) -> None:
    moves = [{"topic": name, "partition": 0, "replicas": [2]} for name in ("orders", "gone")]
    reassignment = {"version": 1, "partitions": moves}
    znode_tree.lay(
        cluster,
        ORDERS
        | {
            "/admin/delete_topics/old": "",
            "/admin/reassign_partitions": json.dumps(reassignment),
            "/config/topics/left": znode_tree.EMPTY_CONFIG,
        },
    )
    with ZooKeeperReader(hosts) as reader:
        live, traces = reader.snapshot(), reader.traces(["orders", "gone"])
    assert list(live.deleting) == ["old"]
    assert 0 <= live.deleting["old"] < 3_600_000
    assert live.reassigning == {"orders", "gone"}
    assert {name: found.is_reassigning for name, found in traces.items()} == {"orders": True, "gone": True}
    assert not traces["gone"].is_gone
    assert live.orphan_configs == {"left"}


def test_an_empty_cluster_with_live_brokers_is_a_snapshot_without_topics(hosts: str) -> None:
    with ZooKeeperReader(hosts) as reader:
        assert reader.snapshot().topics == {}


# --- what world is this -----------------------------------------------------------------------------------------------


def test_a_chroot_without_a_cluster_is_a_wrong_target(zookeeper: ZooKeeperServer) -> None:
    with ZooKeeperReader(zookeeper.hosts + "/nowhere") as reader, pytest.raises(WrongTargetError, match="wrong chroot"):
        reader.snapshot()


def test_no_registered_broker_is_an_error_and_not_a_wrong_target(hosts: str, cluster: KazooClient) -> None:
    cluster.delete("/brokers/ids", recursive=True)
    with ZooKeeperReader(hosts) as reader, pytest.raises(ClusterError, match="no broker is alive") as caught:
        reader.snapshot()
    assert caught.value.exit_status == 1


@pytest.mark.parametrize("path", ["/brokers/topics", "/config/topics"])
def test_a_tree_without_what_every_broker_makes_is_a_wrong_target(hosts: str, cluster: KazooClient, path: str) -> None:
    cluster.delete(path, recursive=True)
    with ZooKeeperReader(hosts) as reader, pytest.raises(WrongTargetError, match=path):
        reader.snapshot()


@pytest.mark.parametrize(
    ("path", "data"),
    [
        pytest.param(
            "/controller", '{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":5}', id="controller"
        ),
        pytest.param(
            "/migration",
            '{"version":0,"kraft_controller_id":3000,"kraft_controller_epoch":5,'
            '"kraft_metadata_offset":109,"kraft_metadata_epoch":5}',
            id="migration",
        ),
    ],
)
def test_a_kraft_controller_makes_zookeeper_a_copy_and_the_target_unsupported(
    hosts: str, cluster: KazooClient, path: str, data: str
) -> None:
    znode_tree.lay(cluster, {path: data})
    with ZooKeeperReader(hosts) as reader, pytest.raises(UnsupportedTargetError, match="source: kafka"):
        reader.snapshot()


def test_a_migration_that_is_only_prepared_changes_nothing(hosts: str, cluster: KazooClient) -> None:
    numbers = ("kraft_controller_id", "kraft_controller_epoch", "kraft_metadata_offset", "kraft_metadata_epoch")
    znode_tree.lay(cluster, {"/migration": json.dumps({"version": 0} | dict.fromkeys(numbers, -1))})
    with ZooKeeperReader(hosts) as reader:
        assert reader.snapshot().controller_id == 1


def test_a_cluster_without_a_controller_has_a_snapshot_that_says_so(hosts: str, cluster: KazooClient) -> None:
    cluster.delete("/controller")
    with ZooKeeperReader(hosts) as reader:
        assert reader.snapshot().controller_id is None


@pytest.mark.parametrize(
    ("path", "data"),
    [
        pytest.param("/brokers/topics/orders", "", id="topic without data"),
        pytest.param("/brokers/topics/orders", "{}", id="topic that Kafka would forgive"),
        pytest.param("/config/topics/orders", "not json", id="config that Kafka would forgive"),
        pytest.param("/brokers/ids/2", '{"version":0}', id="broker"),
        pytest.param("/controller", "1", id="controller"),
        pytest.param("/admin/reassign_partitions", "{", id="reassignment"),
    ],
)
def test_an_undecodable_znode_is_named_and_there_is_no_snapshot(
    hosts: str, cluster: KazooClient, path: str, data: str
) -> None:
    znode_tree.lay(cluster, ORDERS | STOCK | {path: data})
    with ZooKeeperReader(hosts) as reader, pytest.raises(UndecodableZnodeError, match=path):
        reader.snapshot()


# --- connections ------------------------------------------------------------------------------------------------------


def test_a_refused_port_is_unreachable_with_the_address_and_the_cause() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ClusterUnreachableError, match="Connection refused") as caught:
        ZooKeeperReader(f"user:secret@127.0.0.1:{port}/kafka", timeout_s=1).__enter__()
    assert f"127.0.0.1:{port}/kafka" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_server_that_never_answers_is_unreachable_within_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        reader = ZooKeeperReader(f"127.0.0.1:{silent.getsockname()[1]}", timeout_s=1)
        with pytest.raises(ClusterUnreachableError, match="within 1 s"):
            reader.__enter__()


def test_hosts_that_cannot_be_read_are_bad_usage() -> None:
    with pytest.raises(UsageError, match="host:port"):
        ZooKeeperReader("")


def test_a_connection_lost_while_reading_gives_an_error_and_no_part_of_a_snapshot(
    zookeeper: ZooKeeperServer, hosts: str, cluster: KazooClient
) -> None:
    znode_tree.lay(cluster, ORDERS)
    with Relay(zookeeper.hosts) as relay:
        chroot = hosts.removeprefix(zookeeper.hosts)
        with (
            InterruptedReader(relay.hosts + chroot, iter([relay.close]), timeout_s=2) as reader,
            pytest.raises(ClusterUnreachableError, match="/orders"),
        ):
            reader.snapshot()


@pytest.mark.parametrize(
    ("losses", "ends"),
    [
        pytest.param(MOST_RESTARTS, nullcontext(), id="and gets through"),
        pytest.param(
            MOST_RESTARTS + 1,
            pytest.raises(ClusterUnreachableError, match="/orders: ConnectionLoss"),
            id="and gives up",
        ),
    ],
)
def test_a_reading_that_loses_its_connection_begins_anew_on_the_same_session(
    hosts: str, cluster: KazooClient, losses: int, ends: AbstractContextManager[object]
) -> None:
    znode_tree.lay(cluster, ORDERS)
    server, _, chroot = hosts.partition("/")
    # Behind the one that opens the reader, each beginning reads in bulk controller, brokers and then topics.
    strikes = Strikes(*(Strike("multiRead", Fate.CUT_AFTER, 1 + 3 * number) for number in range(1, losses + 1)))
    with zookeeper_proxy(server, strikes) as proxy, InterruptedReader(f"{proxy.hosts}/{chroot}", iter([])) as reader:
        with ends:
            assert list(reader.snapshot().topics) == ["orders"]
        assert not reader.session.is_lost
    assert len(strikes.done) == losses
    assert reader.looked_at == ["orders"] * (MOST_RESTARTS + 1)


@pytest.mark.parametrize("number", range(2, 10))
def test_an_answer_that_is_lost_costs_apply_no_look(hosts: str, cluster: KazooClient, number: int) -> None:
    znode_tree.lay(cluster, ORDERS)
    server, _, chroot = hosts.partition("/")
    strikes = Strikes(Strike("", Fate.CUT_AFTER, number))  # the first opens the session
    with zookeeper_proxy(server, strikes) as proxy, ZooKeeperReader(f"{proxy.hosts}/{chroot}") as reader:
        seen = (reader.traces(["orders"]), reader.brokers(), reader.controller_epoch(), reader.controller_id())

    assert len(strikes.done) == 1
    with ZooKeeperReader(hosts) as calm:
        assert seen == (calm.traces(["orders"]), calm.brokers(), calm.controller_epoch(), calm.controller_id())


def test_a_session_that_ended_while_reading_gives_an_error(hosts: str, cluster: KazooClient) -> None:
    znode_tree.lay(cluster, ORDERS)
    changes: list[Callable[[], object]] = []
    with InterruptedReader(hosts, iter(changes)) as reader:
        changes.append(lambda: znode_tree.end_session(reader.session.client))
        with pytest.raises(ClusterUnreachableError):
            reader.snapshot()


def test_a_znode_that_may_not_be_read_is_named(hosts: str, cluster: KazooClient) -> None:
    znode_tree.lay(cluster, STOCK)
    secret = make_digest_acl("kafka", "password", all=True)
    cluster.create("/brokers/topics/orders", znode_tree.topic({0: [1]}).encode(), acl=[secret])
    for kind in (ZooKeeperReader, SingleReader):
        with kind(hosts) as reader, pytest.raises(ClusterError, match="/brokers/topics/orders: not allowed"):
            reader.snapshot()


# --- changes while reading --------------------------------------------------------------------------------------------


def test_topics_that_rest_are_looked_at_once(hosts: str, cluster: KazooClient) -> None:
    znode_tree.lay(cluster, ORDERS)
    with InterruptedReader(hosts, iter([])) as reader:
        reader.snapshot()
    assert reader.looked_at == ["orders"]


def test_a_topic_and_its_config_that_change_together_are_never_half_old(hosts: str, cluster: KazooClient) -> None:
    znode_tree.lay(cluster, ORDERS)

    def change() -> None:
        both = cluster.transaction()
        both.set_data("/brokers/topics/orders", znode_tree.topic({0: [1, 2], 1: [2, 3], 2: [3, 1]}).encode())
        both.set_data("/config/topics/orders", znode_tree.config(retention_ms="2").encode())
        both.commit()

    with InterruptedReader(hosts, iter([change])) as reader:
        orders = reader.snapshot().topics["orders"]
    assert (orders.partitions, orders.overrides, orders.unstable) == (3, {"retention.ms": "2"}, False)
    assert reader.looked_at == ["orders", "orders"]


@pytest.mark.parametrize(
    ("path", "data", "rows", "retention_ms"),
    [
        pytest.param("/brokers/topics/orders", znode_tree.topic({0: [3]}), {0: (3,)}, "1000", id="topic"),
        pytest.param("/config/topics/orders", znode_tree.config(retention_ms="2"), ROWS, "2", id="config"),
    ],
)
def test_a_znode_that_changes_during_a_look_is_read_again(
    hosts: str, cluster: KazooClient, path: str, data: str, rows: Assignment, retention_ms: str
) -> None:
    znode_tree.lay(cluster, ORDERS | STOCK)
    with InterruptedReader(hosts, iter([lambda: cluster.set(path, data.encode())])) as reader:
        orders = reader.snapshot(states=True).topics["orders"]
    assert (orders.assignment, orders.overrides, orders.unstable) == (rows, {"retention.ms": retention_ms}, False)


def test_a_topic_that_never_rests_is_marked_unstable_and_the_others_are_not(hosts: str, cluster: KazooClient) -> None:
    znode_tree.lay(cluster, ORDERS | STOCK)
    touch = lambda: cluster.set("/brokers/topics/stock", STOCK["/brokers/topics/stock"].encode())  # noqa: E731
    with InterruptedReader(hosts, repeat(touch), after=0) as reader:
        topics = reader.snapshot().topics
        traces = reader.traces(["stock"])
    assert {name: topic.unstable for name, topic in topics.items()} == {"orders": False, "stock": True}
    assert traces["stock"].live is not None
    assert traces["stock"].live.unstable


def test_looking_again_ends_after_a_bounded_number_of_looks(hosts: str, cluster: KazooClient) -> None:
    znode_tree.lay(cluster, STOCK)
    readings = []

    def touch() -> None:
        readings.append(1)
        cluster.set("/brokers/topics/stock", STOCK["/brokers/topics/stock"].encode())

    with InterruptedReader(hosts, repeat(touch), after=0) as reader:
        reader.traces(["stock"])
    assert len(readings) == 1 + MOST_READINGS


def test_topics_that_come_or_go_while_reading_are_as_at_the_end(hosts: str, cluster: KazooClient) -> None:
    znode_tree.lay(cluster, STOCK)

    def swap() -> None:
        znode_tree.lay(cluster, ORDERS)
        cluster.delete("/brokers/topics/stock")

    with InterruptedReader(hosts, iter([swap])) as reader:
        live = reader.snapshot(states=True)
    assert list(live.topics) == ["orders"]
    assert live.orphan_configs == frozenset()


@pytest.mark.parametrize(
    ("more", "lists"),
    [
        pytest.param({}, 4, id="topics rest"),
        pytest.param({"/config/topics/gone": znode_tree.config()}, 5, id="a config has no topic"),
    ],
)
def test_topics_and_configs_are_listed_no_more_often_than_needed(
    hosts: str, cluster: KazooClient, more: dict[str, str], lists: int
) -> None:
    znode_tree.lay(cluster, ORDERS | STOCK | more)
    server, _, chroot = hosts.partition("/")
    asked: list[str] = []

    def let_pass(name: str) -> Fate:
        asked.append(name)
        return Fate.PASS

    with zookeeper_proxy(server, let_pass) as proxy, ZooKeeperReader(f"{proxy.hosts}/{chroot}") as reader:
        live = reader.snapshot()

    assert (set(live.topics), live.orphan_configs) == ({"orders", "stock"}, {"gone"} if more else set())
    # The brokers twice, the topics and the deletion markers once, and the configs when they do not add up.
    # With the stat: that answer a server keeps ready.
    assert (asked.count("getChildren2"), asked.count("getChildren")) == (lists, 0)


def test_a_broker_that_registers_while_reading_is_in_the_snapshot(hosts: str, cluster: KazooClient) -> None:
    znode_tree.lay(cluster, ORDERS)
    register = lambda: znode_tree.lay(cluster, {"/brokers/ids/4": znode_tree.broker(9095, "a")})  # noqa: E731
    with InterruptedReader(hosts, iter([register])) as reader:
        assert list(reader.snapshot().brokers) == [1, 2, 3, 4]


def test_a_controller_that_never_rests_gives_an_error_and_no_snapshot(hosts: str, cluster: KazooClient) -> None:
    znode_tree.lay(cluster, ORDERS)
    epochs = (str(epoch).encode() for epoch in range(8, 1000))
    with (
        InterruptedReader(hosts, repeat(lambda: cluster.set("/controller_epoch", next(epochs)))) as reader,
        pytest.raises(ClusterError, match="controller changed"),
    ):
        reader.snapshot()


# --- traces -----------------------------------------------------------------------------------------------------------


def test_traces_have_an_entry_for_every_name_with_all_that_stands_under_it(hosts: str, cluster: KazooClient) -> None:
    leftovers = {"/config/topics/left": znode_tree.EMPTY_CONFIG, "/admin/delete_topics/marked": ""}
    znode_tree.lay(cluster, ORDERS | leftovers)
    with ZooKeeperReader(hosts) as reader:
        found = reader.traces(["orders", "left", "marked", "nothing"], states=True)
    facts = {name: (trace.live is not None, trace.has_config_znode, trace.is_deleting) for name, trace in found.items()}
    assert facts == {
        "orders": (True, True, False),
        "left": (False, True, False),
        "marked": (False, False, True),
        "nothing": (False, False, False),
    }
    assert found["nothing"].is_gone
    assert found["orders"].live is not None
    assert found["orders"].live.states is not None
    assert found["orders"].live.states[0].leader == 1


def test_the_controller_epoch_is_read_alone_and_is_zero_before_the_first_controller(
    hosts: str, cluster: KazooClient
) -> None:
    with ZooKeeperReader(hosts) as reader:
        assert reader.controller_epoch() == 7
        cluster.delete("/controller_epoch")
        assert reader.controller_epoch() == 0


# --- the ways of reading ----------------------------------------------------------------------------------------------


def test_many_znodes_in_one_request_are_what_single_requests_give(hosts: str, cluster: KazooClient) -> None:
    paths = [f"/many/{number}" for number in range(2 * MOST_A_BATCH + 7)]
    znode_tree.lay(cluster, {path: path * (number % 5) for number, path in enumerate(paths) if number % 3})
    cluster.create("/many/none", None)
    with ZooKeeperSession(hosts) as session:
        asked = [*paths, "/many/none"]
        batched = in_parts(read_batched(session, asked))
        assert batched == in_parts(session.get(path) for path in asked)
        assert batched == in_parts(read_pipelined(session, asked))
        assert read_batched(session, []) == []
    assert [znode is None for znode in batched[:4]] == [True, False, False, True]
    assert [znode and znode[0] for znode in batched[-3:]] == [b"", b"/many/206", None]


def in_parts(found: Iterable[Znode | None]) -> list[tuple[bytes | None, ZnodeStat] | None]:
    return [None if znode is None else (znode.data, znode.stat) for znode in found]


def test_one_batch_is_in_flight_and_each_is_as_big_as_the_last_reply_allows(hosts: str, cluster: KazooClient) -> None:
    wide, names = "x" * (REPLY_BYTES // 20), [f"/wide/{number:03}" for number in range(FIRST_BATCH + 60)]
    znode_tree.lay(cluster, dict.fromkeys(names, wide))
    steps: list[int] = []

    class Noted(MultiRead):
        def serialize(self) -> bytes:
            steps.append(len(self.asked))
            return super().serialize()

        def deserialize(self, reply: bytes, offset: int) -> Reply:
            steps.append(-len(self.asked))
            return super().deserialize(reply, offset)

    with ZooKeeperSession(hosts) as session:
        found = read_batched(session, names, request=Noted)
    assert [znode and znode.data for znode in found] == [wide.encode()] * len(names)
    assert steps == [step for size in (FIRST_BATCH, 19, 19, 19, 3) for step in (size, -size)]


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param(lambda reply: reply[:-20], id="cut off"),
        pytest.param(lambda reply: reply + b"more", id="something behind the end"),
        pytest.param(lambda reply: b"", id="nothing"),
    ],
)
def test_a_reply_that_holds_something_else_than_was_asked_for_is_an_error(
    hosts: str, spoilt: Callable[[bytes], bytes]
) -> None:
    class Spoilt(MultiRead):
        def deserialize(self, reply: bytes, offset: int) -> Reply:
            return super().deserialize(spoilt(reply), offset)

    with ZooKeeperSession(hosts) as session:
        with pytest.raises(ClusterError, match="/cluster/id: 2 znodes asked"):
            read_batched(session, ["/cluster/id", "/controller"], request=Spoilt)
        assert session.get("/cluster/id") is not None


def test_a_batch_that_is_not_answered_ends_the_reading_within_the_timeout(hosts: str) -> None:
    class Unanswered(MultiRead):
        """A ping's number: its answer is none to this request."""

        type = 11

    with (
        ZooKeeperSession(hosts, timeout_s=1) as session,
        pytest.raises(ClusterUnreachableError, match="/cluster/id: no answer within 1 s"),
    ):
        read_batched(session, ["/cluster/id"], request=Unanswered)


def test_a_server_that_does_not_know_the_bulk_request_is_read_to_the_same_snapshot(
    hosts: str, cluster: KazooClient
) -> None:
    znode_tree.lay(cluster, ORDERS | STOCK)
    with ZooKeeperReader(hosts) as reader, SingleReader(hosts) as old:
        assert old.snapshot(states=True) == reader.snapshot(states=True)


def test_kazoo_still_has_the_private_call_that_sends_our_request() -> None:
    assert callable(KazooClient._call), "kazoo changed: edges/zookeeper/multi_read.py sends multiRead through _call"


@pytest.mark.parametrize(
    ("entries", "reply_bytes", "size"),
    [
        pytest.param(50, 50 * 200, MOST_A_BATCH, id="small znodes: as many as allowed"),
        pytest.param(50, 50 * 97_000, REPLY_BYTES // 97_000, id="wide topics: as many as weigh enough"),
        pytest.param(1, 5_000_000, 1, id="one huge znode: never less than one"),
        pytest.param(50, 0, MOST_A_BATCH, id="nothing there"),
    ],
)
def test_batches_are_bounded_by_the_bytes_of_their_reply(entries: int, reply_bytes: int, size: int) -> None:
    assert next_batch_size(entries=entries, reply_bytes=reply_bytes) == size


def test_reading_writes_nothing(hosts: str, cluster: KazooClient) -> None:
    znode_tree.lay(cluster, ORDERS)
    before = tree_of(cluster)
    with ZooKeeperReader(hosts) as reader:
        reader.snapshot(states=True)
        reader.traces(["orders", "nothing"])
    assert tree_of(cluster) == before
