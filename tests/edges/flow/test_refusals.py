"""Worlds that must not be touched: one clear sentence, the right exit status, and nothing changed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from fixtures.live import tree_of
from fixtures.workspace import Ended, Workspace
from fixtures.znode_tree import BASE, CLUSTER_ID, lay
from fixtures.zookeeper import Chroot

OTHER_ID = "x9ZkQ0mVTh2c7nUeYw1aBg"
NO_BROKERS = {path: data for path, data in BASE.items() if not path.startswith("/brokers/ids/")} | {"/brokers/ids": ""}


def assert_one_sentence(ended: Ended, status: int, *words: str) -> None:
    said = [line for line in ended.err.splitlines() if line.startswith("topicops: ")]
    assert (ended.status, len(said)) == (status, 1), ended.err
    assert "Traceback" not in ended.err
    assert [word for word in words if word not in said[0]] == []
    assert ended.out == ""


@pytest.mark.parametrize(
    ("znodes", "path", "cluster_id", "status", "words"),
    [
        pytest.param(
            BASE, "", OTHER_ID, 8, ("TOP504", OTHER_ID, CLUSTER_ID, "environments/local.yaml:"), id="another cluster"
        ),
        pytest.param(BASE, "/kafak", CLUSTER_ID, 8, ("/kafak", "chroot"), id="a wrong chroot"),
        pytest.param(NO_BROKERS, "", CLUSTER_ID, 1, ("broker",), id="no broker"),
    ],
)
def test_a_world_that_must_not_be_planned_on_is_refused_and_left_as_it_is(
    workspace: Workspace, chroot: Chroot, znodes: Mapping[str, str], path: str, cluster_id: str, status: int,
    words: tuple[str, ...],
) -> None:  # fmt: skip
    lay(chroot.client, znodes)
    workspace.aim(f"{chroot.hosts}{path}", cluster_id=cluster_id)
    workspace.topic("orders")
    before = tree_of(chroot.client)

    ended = workspace.plan()

    assert_one_sentence(ended, status, *words)
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
