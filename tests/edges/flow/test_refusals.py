"""Worlds that must not be touched: one clear sentence, the right exit status, and nothing changed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fixtures.live import tree_of
from fixtures.workspace import Ended, Workspace
from fixtures.znode_tree import BASE, CLUSTER_ID, lay
from fixtures.zookeeper import Chroot

NO_BROKERS = {path: data for path, data in BASE.items() if not path.startswith("/brokers/ids/")} | {"/brokers/ids": ""}


def assert_one_sentence(ended: Ended, status: int, *words: str) -> None:
    said = [line for line in ended.err.splitlines() if line.startswith("topicops: ")]
    assert (ended.status, len(said)) == (status, 1), ended.err
    assert "Traceback" not in ended.err
    assert [word for word in words if word not in said[0]] == []
    assert ended.out == ""


def test_another_cluster_id_is_refused_with_both_ids(workspace: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, BASE)
    workspace.aim(chroot.hosts, cluster_id="x9ZkQ0mVTh2c7nUeYw1aBg")
    workspace.topic("orders")
    before = tree_of(chroot.client)

    ended = workspace.plan()

    assert_one_sentence(ended, 8, "TOP504", "x9ZkQ0mVTh2c7nUeYw1aBg", CLUSTER_ID, "environments/local.yaml:")
    assert tree_of(chroot.client) == before


def test_a_wrong_chroot_is_no_empty_cluster(workspace: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, BASE)
    workspace.aim(f"{chroot.hosts}/kafak")
    workspace.topic("orders")
    before = tree_of(chroot.client)

    ended = workspace.plan()

    assert_one_sentence(ended, 8, "/kafak", "chroot")
    assert tree_of(chroot.client) == before


@pytest.mark.usefixtures("impatient")
def test_a_zookeeper_that_is_down_is_named(workspace: Workspace) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        workspace.aim(f"{address}/kafka")
        workspace.topic("orders")

        ended = workspace.plan()

    assert_one_sentence(ended, 1, address)


def test_a_cluster_without_a_broker_is_not_planned_on(workspace: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, NO_BROKERS)
    workspace.aim(chroot.hosts)
    workspace.topic("orders")
    before = tree_of(chroot.client)

    ended = workspace.plan()

    assert_one_sentence(ended, 1, "broker")
    assert tree_of(chroot.client) == before


@contextmanager
def counted_connections() -> Iterator[tuple[str, list[object]]]:
    """The address of a server that notes who connects."""
    came: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()

        def accept() -> None:
            while True:
                connection, peer = server.accept()
                connection.close()
                if came_from_us := peer != farewell.get("name"):
                    came.append(came_from_us)
                else:
                    return

        farewell: dict[str, object] = {}
        listener = threading.Thread(target=accept)
        listener.start()
        try:
            yield f"{address[0]}:{address[1]}", came
        finally:
            with socket.socket() as last:
                last.bind(("127.0.0.1", 0))
                farewell["name"] = last.getsockname()
                last.connect(address)
                listener.join(10)


def test_bad_specs_are_all_told_and_no_connection_is_opened(workspace: Workspace) -> None:
    workspace.topic("not a name")
    workspace.topic("unknown.field", retention="7d")
    workspace.topic("wrong.type", partitions=["six"])
    with counted_connections() as (address, came):
        workspace.cluster = {
            "class": "sandbox",
            "zookeeper": {"hosts": f"{address}/kafka"},
            "kafka": {"bootstrapServers": address},
        }

        ended = workspace.plan()

    assert ended.status == 1
    assert came == []
    for file, code in (("not a name", "TOP116"), ("unknown.field", "TOP201"), ("wrong.type", "TOP203")):
        assert [x for x in ended.err.splitlines() if f"tests/{file}.yaml:" in x and code in x], ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("arguments", [("plan", "--environment", "nowhere"), ("apply", "missing.json"), ("fly",)])
def test_bad_usage_is_one_clear_line(workspace: Workspace, arguments: tuple[str, ...]) -> None:
    ended = workspace.run(*arguments)

    assert_one_sentence(ended, 1)
