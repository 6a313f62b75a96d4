"""The start of a local cluster on a machine that is busy."""

from __future__ import annotations

from typing import NoReturn, cast

from kazoo.client import KazooClient
from kazoo.exceptions import SessionExpiredError

from topicops_local.cluster import LocalCluster


class Expired:
    """A client whose session has just ended."""

    def get_children(self, _: str) -> NoReturn:
        raise SessionExpiredError


def test_a_session_that_ends_while_brokers_start_is_waited_for_like_all_else() -> None:
    cluster = object.__new__(LocalCluster)

    missing = cluster._not_ready(cast("KazooClient", Expired()), {1})

    assert missing == "the session with ZooKeeper has ended; a new one begins"
