"""What ``doctor`` reads from a real ZooKeeper: servers, identity, rights, clocks; and that it reads only."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from kazoo.security import ACL, make_acl

from fixtures.secured_zookeeper import PASSWORD, USER, SecuredZooKeeper
from fixtures.znode_tree import config, lay, state, topic
from fixtures.zookeeper import Chroot, ZooKeeperServer
from topicops.edges.connections.lookup import Tls, ZooKeeperAddress
from topicops.edges.zookeeper.diagnosis import tls_context
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.edges.zookeeper.session import ZooKeeperSession
from topicops.features.ask.doctor.edges.zookeeper import WhoAmI, identities_of, undecodable_znodes, zookeeper_facts
from topicops.features.ask.doctor.values import ZooKeeperFacts

OTHER_USER = "digest", "other:x"


def facts(chroot: Chroot, *, hosts: str | None = None) -> ZooKeeperFacts:
    with ZooKeeperReader(hosts or chroot.hosts) as reader:
        return zookeeper_facts(reader)


def test_a_server_tells_version_mode_and_as_whom_it_sees_us(laid: Chroot, zookeeper: ZooKeeperServer) -> None:
    found = facts(laid)

    [server] = found.servers
    assert (server.address, server.mode, server.problem) == (zookeeper.hosts, "standalone", "")
    assert (server.version or "").startswith("3.")
    assert (found.identities, found.knows_multi_read, found.chroot) == (("ip:127.0.0.1",), True, laid.path)
    assert (found.migration, found.feature_problem) == ("none", "")


def test_a_lease_that_belongs_to_no_session_is_seen_and_a_real_one_is_not(laid: Chroot) -> None:
    laid.client.create("/topicops/lease", ephemeral=True, makepath=True)
    of_a_session = facts(laid).stray_lease
    laid.client.delete("/topicops/lease")
    laid.client.create("/topicops/lease")

    assert (of_a_session, facts(laid).stray_lease) == ("", f"{laid.path}/topicops/lease")


def test_a_server_of_the_connection_that_is_away_says_why(laid: Chroot, zookeeper: ZooKeeperServer) -> None:
    found = facts(laid, hosts=f"127.0.0.1:1,{zookeeper.hosts}{laid.path}")

    problems = {server.address: server.problem for server in found.servers}
    assert "does not answer" in problems["127.0.0.1:1"]
    assert problems[zookeeper.hosts] == ""


def test_a_login_is_told_and_servers_are_asked_over_tls_too(secured_zookeeper: SecuredZooKeeper) -> None:
    tls = Tls(ca_file=str(secured_zookeeper.ca.certificate))
    address = ZooKeeperAddress(hosts=secured_zookeeper.secure, user=USER, password=PASSWORD, tls=tls)

    with ZooKeeperReader(address) as reader:
        found = zookeeper_facts(reader, tls=tls_context(tls))

    assert f"sasl:{USER}" in (found.identities or ())
    assert [(server.mode, server.problem) for server in found.servers] == [("standalone", "")]
    assert PASSWORD not in repr(found)


class FutureRequest(WhoAmI):
    """One that no server knows, as ``whoAmI`` is to servers before 3.7."""

    type = 999


def test_a_server_that_does_not_know_the_request_tells_no_identity_and_the_session_goes_on(laid: Chroot) -> None:
    with ZooKeeperSession(laid.hosts) as session:
        before = session.session_id

        assert identities_of(session, request=FutureRequest) is None
        assert session.get("/cluster/id") is not None
        assert session.session_id == before


@pytest.mark.parametrize(
    ("acl", "may"),
    [
        pytest.param([make_acl("world", "anyone", all=True)], True, id="open"),
        pytest.param([make_acl("ip", "127.0.0.1", read=True, create=True)], True, id="ours"),
        pytest.param([make_acl("world", "anyone", read=True)], False, id="to read only"),
        pytest.param(
            [make_acl("world", "anyone", read=True), make_acl(*OTHER_USER, create=True)], False, id="another's"
        ),
        pytest.param([make_acl(*OTHER_USER, all=True)], None, id="not to be looked at"),
    ],
)
def test_the_right_to_the_lease_is_told_from_the_acl(laid: Chroot, acl: list[ACL], may: bool | None) -> None:
    # Below the root, and not at /topicops itself: an ACL without read would hide the znode too.
    laid.client.set_acls("/", acl)

    found = facts(laid)

    assert (found.may_hold_lease, found.has_lease_root) == (may, False)


def test_an_existing_lease_folder_decides_by_its_own_acl(laid: Chroot) -> None:
    laid.client.create("/topicops", b"", acl=[make_acl("world", "anyone", read=True)])

    found = facts(laid)

    assert (found.may_hold_lease, found.has_lease_root) == (False, True)


def test_clocks_are_compared_by_what_a_broker_and_zookeeper_wrote_of_one_moment(laid: Chroot) -> None:
    now_ms = time.time_ns() // 1_000_000
    for broker, ahead_ms in ((1, 0), (2, 90_000), (3, -90_000)):
        write_timestamp(laid, broker, str(now_ms + ahead_ms))

    ahead = facts(laid).clocks_ahead_ms

    assert abs(ahead[1]) < 10_000
    assert abs(ahead[2] - 90_000) < 10_000
    assert abs(ahead[3] + 90_000) < 10_000


def test_a_registration_without_a_time_is_left_out(laid: Chroot) -> None:
    write_timestamp(laid, 2, "soon")
    laid.client.set("/brokers/ids/3", b"\xff")

    assert set(facts(laid).clocks_ahead_ms) == {1}


def write_timestamp(chroot: Chroot, broker: int, text: str) -> None:
    path = f"/brokers/ids/{broker}"
    held: dict[str, Any] = json.loads(chroot.client.get(path)[0])
    chroot.client.set(path, json.dumps(held | {"timestamp": text}).encode())


@pytest.mark.parametrize(
    ("epoch", "migration"), [pytest.param(-1, "prepared", id="prepared"), pytest.param(4, "begun", id="begun")]
)
def test_a_migration_is_told_by_its_epochs(laid: Chroot, epoch: int, migration: str) -> None:
    numbers = ("kraft_controller_id", "kraft_controller_epoch", "kraft_metadata_offset", "kraft_metadata_epoch")
    lay(laid.client, {"/migration": json.dumps({"version": 0, **dict.fromkeys(numbers, epoch)})})

    assert facts(laid).migration == migration


def test_every_undecodable_znode_is_named_and_not_the_first_alone(laid: Chroot) -> None:
    whole = {
        "/brokers/topics/fine": topic({0: [1]}),
        "/brokers/topics/fine/partitions/0/state": state(1, [1]),
        "/config/topics/fine": config(),
    }
    lay(laid.client, whole)
    with ZooKeeperReader(laid.hosts) as reader:
        assert undecodable_znodes(reader) == ()

    broken = {
        "/brokers/topics/empty": "",
        "/brokers/topics/list": "[]",
        "/brokers/topics/fine/partitions/0/state": "{}",
        "/config/topics/fine": '{"version":1,"config":{"retention.ms":1}}',
    }
    lay(laid.client, broken)
    with ZooKeeperReader(laid.hosts) as reader:
        found = undecodable_znodes(reader)

    assert sorted(sentence.partition(":")[0] for sentence in found) == sorted(broken)
    assert "no broker can be Kafka's controller" in found[0]


def test_a_broken_znode_of_features_says_what_to_do(laid: Chroot) -> None:
    lay(laid.client, {"/feature": '{"version":2,"status":1,"features":{"metadata.version":{"max_version_level":7}}}'})
    assert facts(laid).feature_problem == ""

    laid.client.set("/feature", b"")
    broken = facts(laid)

    assert "/feature: holds no data" in broken.feature_problem
