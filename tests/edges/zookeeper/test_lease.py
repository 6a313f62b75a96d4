"""One run at a time may change a cluster, and it knows when it no longer may."""

import json
import threading

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import make_acl, make_digest_acl

from fixtures import znode_tree
from fixtures.proxy import Relay
from fixtures.secured_zookeeper import KEY_PASSWORD, PASSWORD, USER, SecuredZooKeeper
from fixtures.zookeeper import Chroot, ZooKeeperServer
from topicops.edges.connections.lookup import Tls, ZooKeeperAddress
from topicops.edges.zookeeper.lease import LEASE, ROOT, ZooKeeperLease
from topicops.model.errors import (
    ClusterError,
    ClusterUnreachableError,
    LeaseHeldError,
    LeaseLostError,
    LoginRefusedError,
    StrayLeaseError,
    WrongTargetError,
)


def lease(hosts: str, *, run: str = "cli/1", timeout_s: float = 10, lock_timeout_s: float = 0) -> ZooKeeperLease:
    return ZooKeeperLease(
        hosts, run=run, operation="apply plan 3f9c", timeout_s=timeout_s, lock_timeout_s=lock_timeout_s
    )


def test_a_lease_is_an_ephemeral_znode_that_names_its_holder_and_goes_with_it(hosts: str, cluster: KazooClient) -> None:
    with lease(hosts) as held:
        held.confirm()
        data, stat = cluster.get(LEASE)
        assert stat.ephemeralOwner == held.session.session_id
        entry = json.loads(data)
        assert sorted(entry) == ["host", "operation", "pid", "run", "since", "version"]
        assert (entry["run"], entry["operation"]) == ("cli/1", "apply plan 3f9c")
    assert cluster.exists(LEASE) is None


def test_a_lease_is_confirmed_by_a_server_that_has_caught_up(hosts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is behind would show a lease that was removed, and taken by another run, since."""
    with lease(hosts) as held:
        asked: list[str] = []
        for name in ("sync_async", "get_async", "exists_async"):
            original = getattr(held.session.client, name)
            monkeypatch.setattr(
                held.session.client, name, lambda path, *rest, n=name, o=original: (asked.append(n), o(path, *rest))[1]
            )
        held.confirm()
    assert asked == ["sync_async", "get_async"]


def test_a_znode_of_no_session_is_no_lease_and_waiting_for_it_is_not_advised(hosts: str, cluster: KazooClient) -> None:
    cluster.create(LEASE, b"{}", makepath=True)

    with pytest.raises(StrayLeaseError, match=f"no lease.* remove it: .* delete .*{LEASE}") as caught:
        lease(hosts, lock_timeout_s=60).__enter__()

    assert caught.value.code == "TOP808"
    assert "wait" not in str(caught.value)
    cluster.delete(LEASE)
    with lease(hosts) as held:
        held.confirm()


def test_a_second_run_is_told_who_holds_the_lease(hosts: str) -> None:
    with lease(hosts, run="nightly/7") as first:
        with pytest.raises(LeaseHeldError, match=r"nightly/7 .*apply plan 3f9c.*host .*since .*topicops \d"):
            lease(hosts).__enter__()
        first.confirm()


def test_a_run_that_may_wait_gets_the_lease_when_it_is_given_up(hosts: str) -> None:
    confirmed = threading.Event()

    def wait_for_it() -> None:
        with lease(hosts, run="second", lock_timeout_s=60) as second:
            second.confirm()
            confirmed.set()

    waiting = threading.Thread(target=wait_for_it)
    with lease(hosts, run="first"):
        waiting.start()
        assert not confirmed.is_set()
    waiting.join(timeout=60)
    assert confirmed.is_set()


def test_a_run_that_waited_in_vain_is_told_so(hosts: str) -> None:
    with lease(hosts, run="first"), pytest.raises(LeaseHeldError, match="run first"):
        lease(hosts, lock_timeout_s=0.3).__enter__()


def test_a_holder_whose_entry_cannot_be_read_still_holds_it(hosts: str, cluster: KazooClient) -> None:
    cluster.create(ROOT)
    cluster.create(LEASE, b"\xff\x1b[31m", ephemeral=True)
    with pytest.raises(LeaseHeldError, match="cannot be read") as caught:
        lease(hosts).__enter__()
    assert str(caught.value).isprintable()


def test_a_removed_lease_is_lost_for_good(hosts: str, cluster: KazooClient) -> None:
    with lease(hosts) as held:
        owner = held.session.session_id
        cluster.delete(LEASE)
        with pytest.raises(LeaseLostError, match="gone"):
            held.confirm()
        held.session.client.create(LEASE, b"", ephemeral=True)
        assert cluster.get(LEASE)[1].ephemeralOwner == owner
        with pytest.raises(LeaseLostError, match="gone"):
            held.confirm()


def test_a_lease_that_another_session_took_is_lost_whatever_the_client_believes(
    hosts: str, cluster: KazooClient
) -> None:
    with lease(hosts) as held:
        cluster.delete(LEASE)
        with lease(hosts, run="thief/1") as other:
            with pytest.raises(LeaseLostError, match="thief/1"):
                held.confirm()
            other.confirm()


def test_an_expired_session_loses_the_lease(hosts: str) -> None:
    with lease(hosts) as held:
        znode_tree.end_session(held.session.client)
        with pytest.raises(LeaseLostError):
            held.confirm()


def test_a_broken_connection_pauses_and_the_lease_is_still_ours(zookeeper: ZooKeeperServer, hosts: str) -> None:
    with Relay(zookeeper.hosts) as relay, lease(relay.hosts + hosts.removeprefix(zookeeper.hosts)) as held:
        owner = held.session.session_id
        relay.cut()
        held.confirm()
        assert held.session.session_id == owner


def test_a_connection_that_stays_away_loses_the_lease_in_bounded_time(
    zookeeper: ZooKeeperServer, chroot: Chroot, hosts: str
) -> None:
    with Relay(zookeeper.hosts) as relay, lease(relay.hosts + chroot.path, timeout_s=2) as held:
        relay.close()
        with pytest.raises(LeaseLostError, match="no longer ours"):
            held.confirm()


@pytest.mark.parametrize("typed", ["/nowhere", "/no/where"])
def test_a_mistyped_chroot_is_a_wrong_target_and_nothing_is_created(
    hosts: str, cluster: KazooClient, typed: str
) -> None:
    before = sorted(cluster.get_children("/"))
    with pytest.raises(WrongTargetError, match="Nothing was created"):
        lease(hosts + typed).__enter__()
    assert sorted(cluster.get_children("/")) == before


def test_a_chroot_without_a_cluster_is_a_wrong_target_and_nothing_is_created(hosts: str, cluster: KazooClient) -> None:
    cluster.create("/empty")
    with pytest.raises(WrongTargetError, match="Nothing was created"):
        lease(f"{hosts}/empty").__enter__()
    assert cluster.get_children("/empty") == []


def test_a_root_that_may_not_be_made_is_an_error_with_the_command_for_an_administrator(
    hosts: str, cluster: KazooClient
) -> None:
    cluster.set_acls("/", [make_acl("world", "anyone", read=True)])
    with pytest.raises(ClusterError, match=f"create .*{ROOT}"):
        lease(hosts).__enter__()


def test_a_root_made_by_an_administrator_is_used_where_the_chroot_may_not_be_written(
    hosts: str, cluster: KazooClient
) -> None:
    cluster.create(ROOT)
    cluster.set_acls("/", [make_acl("world", "anyone", read=True)])
    with lease(hosts) as held:
        held.confirm()


def test_a_root_that_may_not_be_written_gives_no_lease(hosts: str, cluster: KazooClient) -> None:
    cluster.create(ROOT, acl=[make_digest_acl("admin", "password", all=True), make_acl("world", "anyone", read=True)])
    with pytest.raises(ClusterError, match=f"{LEASE}: not allowed"):
        lease(hosts).__enter__()


def test_no_zookeeper_gives_no_lease(zookeeper: ZooKeeperServer) -> None:
    with Relay(zookeeper.hosts) as relay:
        relay.close()
        with pytest.raises(ClusterUnreachableError):
            lease(relay.hosts, timeout_s=1).__enter__()


# --- an identity of its own -------------------------------------------------------------------------------------------


def rights(zookeeper: SecuredZooKeeper, path: str) -> list[tuple[str, str, list[str]]]:
    client = KazooClient(zookeeper.plain)
    client.start()
    try:
        return [(acl.id.scheme, acl.id.id, acl.acl_list) for acl in client.get_acls(path)[0]]
    finally:
        client.stop()
        client.close()


def test_a_lease_taken_with_a_login_is_nobody_elses_to_remove(secured_zookeeper: SecuredZooKeeper) -> None:
    address = ZooKeeperAddress(hosts=secured_zookeeper.plain, user=USER, password=PASSWORD)
    with ZooKeeperLease(address, run="cli/1", operation="apply") as held:
        held.confirm()
        for path in (ROOT, LEASE):
            assert rights(secured_zookeeper, path) == [("sasl", USER, ["ALL"]), ("world", "anyone", ["READ"])]
        with pytest.raises(ClusterError, match="not allowed"):
            lease(secured_zookeeper.plain).__enter__()
        stranger = KazooClient(secured_zookeeper.plain)
        stranger.start()
        with pytest.raises(NoAuthError):
            stranger.delete(ROOT, recursive=True)
        stranger.stop()
        stranger.close()


def test_a_certificate_that_the_server_does_not_ask_for_is_no_identity(secured_zookeeper: SecuredZooKeeper) -> None:
    tls = Tls(
        ca_file=str(secured_zookeeper.ca.certificate),
        certificate_file=str(secured_zookeeper.client.certificate),
        key_file=str(secured_zookeeper.client.key),
        key_password=KEY_PASSWORD,
    )
    with pytest.raises(LoginRefusedError, match="ZooKeeper gives this connection no identity"):
        ZooKeeperLease(
            ZooKeeperAddress(hosts=secured_zookeeper.secure, tls=tls), run="cli/1", operation="apply"
        ).__enter__()
