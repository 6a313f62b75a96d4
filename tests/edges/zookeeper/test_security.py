"""Whoever may not come in is told why: login, certificate, kind of port and dead port are different errors."""

import json
import socket
import ssl
import sys
from contextlib import closing

import pytest
from kazoo.security import make_acl

from fixtures import znode_tree
from fixtures.proxy import Fate, Relay, Strike, Strikes, zookeeper_proxy
from fixtures.secured_zookeeper import KEY_PASSWORD, PASSWORD, USER, SecuredZooKeeper
from fixtures.workspace import Workspace
from fixtures.zookeeper import Chroot, ZooKeeperServer
from topicops.edges.connections.lookup import Tls, ZooKeeperAddress
from topicops.edges.zookeeper.lease import ZooKeeperLease
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.edges.zookeeper.session import ZooKeeperSession
from topicops.model.errors import (
    CertificateError,
    ClusterError,
    ClusterUnreachableError,
    ConnectionSecurityError,
    LoginRefusedError,
    MissingExtraError,
)

WRONG_PASSWORD = "wr0ng-pa55"
SECRETS = (PASSWORD, KEY_PASSWORD, WRONG_PASSWORD)


def login(hosts: str, *, password: str = PASSWORD, user: str = USER, tls: Tls | None = None) -> ZooKeeperAddress:
    return ZooKeeperAddress(hosts=hosts, user=user, password=password, tls=tls)


def trusting(zookeeper: SecuredZooKeeper) -> Tls:
    return Tls(ca_file=str(zookeeper.ca.certificate))


def with_certificate(zookeeper: SecuredZooKeeper) -> Tls:
    return Tls(
        ca_file=str(zookeeper.ca.certificate),
        certificate_file=str(zookeeper.client.certificate),
        key_file=str(zookeeper.client.key),
        key_password=KEY_PASSWORD,
    )


def with_foreign_certificate(zookeeper: SecuredZooKeeper) -> Tls:
    return Tls(
        ca_file=str(zookeeper.ca.certificate),
        certificate_file=str(zookeeper.foreign_client.certificate),
        key_file=str(zookeeper.foreign_client.key),
    )


def error_on_entering(address: ZooKeeperAddress, *, timeout_s: float = 1) -> ClusterError:
    with pytest.raises(ClusterError) as caught:
        ZooKeeperReader(address, timeout_s=timeout_s).__enter__()
    return caught.value


def everything_said(error: BaseException | None) -> str:
    if error is None:
        return ""
    return f"{error!r} {everything_said(error.__cause__)} {everything_said(error.__context__)}"


def assert_told(error: ClusterError, kind: type[ClusterError], *words: str) -> None:
    assert type(error) is kind, error
    for word in words:
        assert word in str(error)
    assert not any(secret in everything_said(error) for secret in SECRETS)


# --- who may come in --------------------------------------------------------------------------------------------------


def test_a_login_reads_the_cluster(secured_zookeeper: SecuredZooKeeper) -> None:
    with ZooKeeperReader(login(secured_zookeeper.plain)) as reader:
        assert reader.snapshot(states=True).cluster_id == znode_tree.CLUSTER_ID


def test_tls_with_our_own_authority_reads_the_cluster(secured_zookeeper: SecuredZooKeeper) -> None:
    address = ZooKeeperAddress(hosts=secured_zookeeper.secure, tls=trusting(secured_zookeeper))
    with ZooKeeperReader(address) as reader:
        assert isinstance(reader.session.client._connection._socket, ssl.SSLSocket)
        assert reader.snapshot().cluster_id == znode_tree.CLUSTER_ID


def test_a_certificate_and_a_login_satisfy_a_server_that_wants_both(strict_zookeeper: SecuredZooKeeper) -> None:
    address = login(strict_zookeeper.secure, tls=with_certificate(strict_zookeeper))
    with ZooKeeperLease(address, run="cli/1", operation="apply") as lease, ZooKeeperReader(address) as reader:
        lease.confirm()
        assert reader.snapshot().cluster_id == znode_tree.CLUSTER_ID


def test_a_znode_that_only_a_login_may_read_is_read_with_it_and_named_without(
    secured_zookeeper: SecuredZooKeeper,
) -> None:
    address = login(secured_zookeeper.plain)
    with ZooKeeperSession(address) as session:
        path = "/brokers/topics/closed"
        session.client.create(path, znode_tree.topic({0: [1]}).encode(), acl=[make_acl("sasl", USER, all=True)])
        try:
            with ZooKeeperReader(address) as reader:
                assert list(reader.snapshot().topics) == ["closed"]
            with (
                ZooKeeperReader(secured_zookeeper.plain) as reader,
                pytest.raises(ClusterError, match="/brokers/topics/closed: not allowed"),
            ):
                reader.snapshot()
        finally:
            session.client.delete(path)


def test_a_broken_connection_logs_in_again(secured_zookeeper: SecuredZooKeeper) -> None:
    with Relay(secured_zookeeper.server.hosts) as relay, ZooKeeperSession(login(f"{relay.hosts}/kafka")) as session:
        relay.cut()
        assert session.reconnected()
        session.client.create("/mine", acl=[make_acl("sasl", USER, all=True)])
        assert session.get("/mine") is not None
        session.client.delete("/mine")


# --- who may not ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "password"),
    [pytest.param(USER, WRONG_PASSWORD, id="wrong password"), pytest.param("nobody", PASSWORD, id="wrong user")],
)
@pytest.mark.parametrize("fixture", ["secured_zookeeper", "strict_zookeeper"])
def test_a_wrong_login_is_told_as_one(
    request: pytest.FixtureRequest, fixture: str, user: str, password: str, capfd: pytest.CaptureFixture[str]
) -> None:
    zookeeper: SecuredZooKeeper = request.getfixturevalue(fixture)
    error = error_on_entering(login(zookeeper.plain, user=user, password=password), timeout_s=10)
    assert_told(error, LoginRefusedError, zookeeper.plain, "check login and password")
    assert "Traceback" not in capfd.readouterr().err


def test_a_server_that_wants_a_login_says_so(strict_zookeeper: SecuredZooKeeper) -> None:
    error = error_on_entering(ZooKeeperAddress(hosts=strict_zookeeper.plain), timeout_s=10)
    assert_told(error, LoginRefusedError, "the server wants a login")


def test_a_server_that_wants_a_login_says_so_after_a_lost_connection_too(strict_zookeeper: SecuredZooKeeper) -> None:
    strikes = Strikes(Strike("multiRead", Fate.CUT_BEFORE))
    with zookeeper_proxy(strict_zookeeper.server.hosts, strikes) as proxy:
        error = error_on_entering(ZooKeeperAddress(hosts=f"{proxy.hosts}/kafka"), timeout_s=10)
    assert len(strikes.done) == 1
    assert_told(error, LoginRefusedError, "the server wants a login")


def test_a_login_at_a_server_without_logins_ends_at_once(zookeeper: ZooKeeperServer, chroot: Chroot) -> None:
    error = error_on_entering(login(chroot.hosts), timeout_s=10)
    assert_told(error, LoginRefusedError, "the server takes no SASL login")
    # kazoo alone would ask again and again, and each question is a line in the server's log.
    assert zookeeper.log.read_text().count("saslServer is null") <= 2


@pytest.mark.parametrize(
    ("ca", "said"),
    [
        pytest.param("other_ca", "unable to get local issuer certificate", id="another authority"),
        pytest.param(None, "unable to get local issuer certificate", id="the system's authorities alone"),
    ],
)
def test_a_server_that_is_not_trusted_is_told_as_one(
    secured_zookeeper: SecuredZooKeeper, ca: str | None, said: str
) -> None:
    tls = Tls(ca_file=str(getattr(secured_zookeeper, ca).certificate)) if ca else Tls()
    error = error_on_entering(login(secured_zookeeper.secure, tls=tls))
    assert_told(error, CertificateError, f"localhost:{secured_zookeeper.secure_port}", said, "ca_file")


def test_a_certificate_for_another_name_is_told_as_one(secured_zookeeper: SecuredZooKeeper) -> None:
    error = error_on_entering(login(secured_zookeeper.secure_by_address, tls=trusting(secured_zookeeper)))
    assert_told(error, CertificateError, "not valid for '127.0.0.1'", "names in the certificate")


@pytest.mark.parametrize(
    "own", [pytest.param(trusting, id="no certificate"), pytest.param(with_foreign_certificate, id="a foreign one")]
)
def test_our_certificate_that_the_server_does_not_take_is_told_as_one(
    strict_zookeeper: SecuredZooKeeper, own: object
) -> None:
    assert callable(own)
    error = error_on_entering(login(strict_zookeeper.secure, tls=own(strict_zookeeper)))
    assert_told(error, CertificateError, "it closed the connection because of our certificate", "certificate_file")


def test_plain_text_on_a_tls_port_is_told_as_one(secured_zookeeper: SecuredZooKeeper) -> None:
    error = error_on_entering(login(secured_zookeeper.secure))
    assert_told(error, ConnectionSecurityError, "it accepts only TLS; set tls: true")


@pytest.mark.parametrize("fixture", ["secured_zookeeper", "zookeeper"])
def test_tls_on_a_plain_port_is_told_as_one(
    request: pytest.FixtureRequest, fixture: str, secured_zookeeper: SecuredZooKeeper
) -> None:
    found = request.getfixturevalue(fixture)
    server: ZooKeeperServer = found.server if isinstance(found, SecuredZooKeeper) else found
    error = error_on_entering(ZooKeeperAddress(hosts=server.hosts, tls=trusting(secured_zookeeper)))
    assert_told(error, ConnectionSecurityError, "it speaks no TLS")


@pytest.mark.parametrize("tls", [pytest.param(None, id="plain"), pytest.param(Tls(), id="TLS")])
def test_servers_that_cannot_be_reached_are_told_one_by_one(tls: Tls | None) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    error = error_on_entering(login(f"127.0.0.1:{port},nowhere.invalid:2181", tls=tls))
    assert_told(error, ClusterUnreachableError, f"127.0.0.1:{port}: Connection refused", "nowhere.invalid:2181: ")


def test_what_must_be_mended_is_told_before_servers_that_are_only_down(secured_zookeeper: SecuredZooKeeper) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    hosts = f"127.0.0.1:{port},{secured_zookeeper.secure}"
    error = error_on_entering(ZooKeeperAddress(hosts=hosts, tls=Tls()))
    assert_told(error, CertificateError, "Connection refused", "its certificate is not trusted")


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "certificate", "key", "password"),
    [
        pytest.param("key_password", "client", "client", None, id="an encrypted key without its password"),
        pytest.param("key_password", "client", "client", WRONG_PASSWORD, id="a wrong password"),
        pytest.param("key_file", "client", "foreign_client", None, id="the key of another certificate"),
        pytest.param("certificate_file", "nowhere", "client", KEY_PASSWORD, id="no such file"),
    ],
)
def test_files_that_cannot_be_used_are_named_and_nobody_is_asked_for_a_password(
    secured_zookeeper: SecuredZooKeeper, field: str, certificate: str, key: str, password: str | None
) -> None:
    own = getattr(secured_zookeeper, certificate, None)
    tls = Tls(
        certificate_file=str(own.certificate) if own else "/nowhere.pem",
        key_file=str(getattr(secured_zookeeper, key).key),
        key_password=password,
    )
    error = error_on_entering(login("localhost:1", tls=tls))
    assert_told(error, ConnectionSecurityError, field)
    assert str(tls.key_file) not in str(error)


def test_a_login_without_the_package_that_it_needs_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "puresasl", None)
    monkeypatch.delitem(sys.modules, "topicops.edges.zookeeper.digest", raising=False)
    with pytest.raises(MissingExtraError, match=r"run pip install 'topicops\[zookeeper-sasl\]'$"):
        ZooKeeperSession(ZooKeeperAddress(hosts="localhost:1", user=USER, password=PASSWORD))
    ZooKeeperSession(ZooKeeperAddress(hosts="localhost:1")).close()


def test_a_missing_authority_is_named() -> None:
    error = error_on_entering(login("localhost:1", tls=Tls(ca_file="/nowhere/ca.pem")))
    assert_told(error, ConnectionSecurityError, "ca_file", "No such file")


# --- from a command ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("password", "status", "said"),
    [
        pytest.param(WRONG_PASSWORD, 1, "the login was refused", id="wrong password"),
        pytest.param(PASSWORD, 0, "", id="right password"),
    ],
)
def test_a_command_logs_in_with_its_connection_and_shows_no_secret(
    secured_zookeeper: SecuredZooKeeper,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    password: str,
    status: int,
    said: str,
) -> None:
    connection = {
        "conn_type": "zookeeper",
        "host": secured_zookeeper.secure,
        "login": USER,
        "password": password,
        "extra": {"tls": True, "ca_file": str(secured_zookeeper.ca.certificate)},
    }
    monkeypatch.setenv("AIRFLOW_CONN_ZK_SECURED", json.dumps(connection))
    workspace.cluster = {**workspace.cluster, "id": znode_tree.CLUSTER_ID, "zookeeper": {"connection": "zk_secured"}}
    workspace.topic("orders")

    ended = workspace.plan()

    assert ended.status == status, ended.err
    assert said in ended.err
    assert "Traceback" not in ended.err
    written = "".join(file.read_text(errors="replace") for file in workspace.folder.rglob("*") if file.is_file())
    assert not any(secret in ended.out + ended.err + written for secret in SECRETS)
