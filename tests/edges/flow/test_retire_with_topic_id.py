"""A tombstone may name the topic that it is for, by the id that it has in an environment."""

from __future__ import annotations

import pytest

from fixtures.workspace import Workspace
from fixtures.znode_tree import BASE, TOPIC_ID, lay, topic
from fixtures.zookeeper import Chroot


@pytest.fixture
def retiring(workspace: Workspace, chroot: Chroot) -> Workspace:
    workspace.aim(chroot.hosts)
    workspace.topic("orders")
    lay(chroot.client, BASE)
    return workspace


def test_the_live_topics_id_is_named(retiring: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, {"/brokers/topics/orders": topic({0: [1, 2, 3]})})

    ended = retiring.run("retire", "orders", "--reason", "Over.", "--environment", "local")

    assert ended.status == 0, ended.err
    assert retiring.path_of("orders").read_text().endswith(f"\n  topicIds:\n    local: {TOPIC_ID}\n")
    assert retiring.run("validate").status == 0


def test_a_topic_that_is_not_live_has_no_id(retiring: Workspace) -> None:
    before = retiring.path_of("orders").read_text()

    ended = retiring.run("retire", "orders", "--reason", "Over.", "--environment", "local")

    assert ended.status == 1
    assert "orders is not live in local" in ended.err
    assert retiring.path_of("orders").read_text() == before
