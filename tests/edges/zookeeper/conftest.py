"""A chroot in which a cluster without topics lies."""

import pytest
from kazoo.client import KazooClient

from fixtures import znode_tree
from fixtures.zookeeper import Chroot


@pytest.fixture
def laid(chroot: Chroot) -> Chroot:
    znode_tree.lay(chroot.client, znode_tree.BASE)
    return chroot


@pytest.fixture
def hosts(laid: Chroot) -> str:
    return laid.hosts


@pytest.fixture
def cluster(laid: Chroot) -> KazooClient:
    """A client that plays Kafka: it changes the tree."""
    return laid.client
