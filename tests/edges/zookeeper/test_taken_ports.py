"""The servers of the tests start although another process takes a port that was free a moment ago."""

import socket
from pathlib import Path

import pytest

from fixtures import zookeeper
from fixtures.zookeeper import start_zookeeper
from topicops_local.processes import free_port, stop

NETTY = {"serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory"}
"""A secure port needs it. The other case runs on ZooKeeper's default, whose error is another one."""


@pytest.mark.parametrize("which", ["client", pytest.param("secure", marks=pytest.mark.soak)])
def test_a_server_whose_port_is_taken_starts_on_another_one(
    which: str, fast_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        given = iter([taken] if which == "client" else [free_port(), taken])
        monkeypatch.setattr(zookeeper, "free_port", lambda busy=frozenset(): next(given, None) or free_port(busy))
        is_secure = which == "secure"
        server = start_zookeeper(fast_folder / f"taken-{which}", extra=NETTY if is_secure else {}, is_secure=is_secure)
        stop([server.process], grace_s=2.0)
    assert taken not in (server.port, server.secure_port)
