"""The lease in ZooKeeper: the right to change one cluster, held by one session at a time.

It is an ephemeral znode: ZooKeeper removes it when the process that holds it ends. Plain ``create`` calls make it: a
call that makes parents would make the chroot too, and a mistyped address would look like a new, empty cluster.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import NoReturn, Self

import msgspec
from kazoo.exceptions import InvalidACLError, NodeExistsError
from kazoo.security import ACL, Id, make_acl

from topicops.edges.connections.lookup import ZooKeeperAddress
from topicops.edges.home.file_lease import holder_text, this_process
from topicops.edges.zookeeper.session import Znode, ZooKeeperSession
from topicops.model.errors import (
    ClusterError,
    ClusterUnreachableError,
    LeaseHeldError,
    LeaseLostError,
    LoginRefusedError,
    StrayLeaseError,
    TopicopsError,
    WrongTargetError,
)
from topicops.model.ports import ServerTime
from topicops.model.specs.spellings import time_of_ms
from topicops.model.waits import waiting_for

logger = logging.getLogger(__name__)

ROOT = "/topicops"
LEASE = f"{ROOT}/lease"
CLUSTER_ID = "/cluster/id"
ALL_RIGHTS = 31
OWN = (ACL(ALL_RIGHTS, Id("auth", "")), make_acl("world", "anyone", read=True))
"""All rights for the identity that the session logged in as; everyone may read who holds the lease."""
NO_SESSION = (0, -(1 << 63))
"""``ephemeralOwner`` of a persistent znode and of a container: no end of a session removes them."""
LONGEST_WATCH_S = 2.0
"""Most seconds that a waiting run relies on the watch before it reads the lease again."""


def is_stray(lease: Znode) -> bool:
    """Return whether the znode belongs to no session: another hand made it, or a backup brought it back."""
    return lease.stat.ephemeralOwner in NO_SESSION


class ZooKeeperLease:
    """Fills ``model.ports.Lease``; a context manager that has the lease, or raises on entering.

    Args:
        address: Or only its hosts, ``host:port,host:port/chroot``.
        run: The run that asks, ``<dag id or cli>/<run id>``.
        operation: What the run does with it.
        timeout_s: Session timeout: how long ZooKeeper keeps the lease of a process that no longer answers.
        lock_timeout_s: How long to wait for another holder.
        interrupted: Once true, it is waited for no longer.

    Raises:
        LeaseHeldError: On entering: another run held it for all of ``lock_timeout_s``.
        StrayLeaseError: On entering: the znode belongs to no session; waiting does not help.
        WrongTargetError: On entering: no Kafka cluster under this chroot; nothing was created.
        ClusterError: On entering: ZooKeeper cannot be reached, or does not let us write below ``/topicops``.
    """

    def __init__(
        self,
        address: ZooKeeperAddress | str,
        *,
        run: str,
        operation: str,
        timeout_s: float = 15.0,
        lock_timeout_s: float = 0.0,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        if isinstance(address, str):
            address = ZooKeeperAddress(hosts=address)
        self.session = ZooKeeperSession(address, timeout_s=timeout_s)
        self._acl = OWN if address.user or (address.tls and address.tls.certificate_file) else None
        self._holder = this_process(run=run, operation=operation)
        self._lock_timeout_s = lock_timeout_s
        self._interrupted = interrupted
        self._session_id: int | None = None
        self._written_between = (0.0, 0.0)
        """Times by ``time.monotonic`` before the request that wrote the znode, and after its answer."""
        self._lost: str = ""

    def __enter__(self) -> Self:
        self.session.__enter__()
        try:
            self._session_id = self.session.session_id
            self._make_root()
            self._acquire()
        except BaseException:
            self.session.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def confirm(self) -> None:
        """Read the znode and compare its owner with our session. Raises ``LeaseLostError``; a lost lease stays lost.

        When the connection is lost, this waits for the next one, at most the session timeout, and then for its answers.
        """
        if self._lost:
            raise LeaseLostError(self._lost)
        try:
            with self.session.waiting(3 * self.session.timeout_s):
                znode = self._read_when_connected()
        except ClusterError as error:
            self._lose(f"it cannot be read: {error}", error)
        if znode is None:
            self._lose("its znode is gone")
        if znode.stat.ephemeralOwner != self._session_id:
            self._lose(f"{holder_text(znode.data)} has it now")

    def zxid(self) -> int | None:
        """Return the newest ZooKeeper transaction that this session has seen."""
        return self.session.zxid

    def server_time(self) -> ServerTime | None:
        """Return when ZooKeeper's leader wrote the znode, by its clock; None means: gone, or has no calendar time.

        Source: org.apache.zookeeper.server.PrepRequestProcessor (3.8): the leader stamps each transaction.
        """
        znode = self.session.get(LEASE)
        if znode is None:
            return None
        asked_at, answered_at = self._written_between
        at = time_of_ms(znode.stat.ctime)
        return None if at is None else ServerTime(server="ZooKeeper", at=at, asked_at=asked_at, answered_at=answered_at)

    def _read_when_connected(self) -> Znode | None:
        deadline = time.monotonic() + self.session.timeout_s
        while True:
            if self.session.is_lost or not self.session.wait_connected(max(0.0, deadline - time.monotonic())):
                raise ClusterUnreachableError(f"the session with ZooKeeper at {self.session.hosts} has ended")
            try:
                # Synced: a server that is behind would still show a lease that was removed.
                return self.session.get_synced(LEASE)
            except ClusterUnreachableError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(0.05)  # the connection broke under the request: wait for the next one

    def _lose(self, why: str, cause: Exception | None = None) -> NoReturn:
        self._lost = (
            f"the lease {self.session.hosts}{LEASE} is no longer ours: {why}; "
            "nothing more is sent: check what was done, then run it again"
        )
        raise LeaseLostError(self._lost) from cause

    def _make_root(self) -> None:
        """Make ``/topicops`` unless it exists: an administrator may have made it, and not let us ``create`` it."""
        if self.session.get(CLUSTER_ID) is None:
            raise WrongTargetError(
                f"{self.session.hosts}: there is no {CLUSTER_ID} here: wrong chroot {self.session.chroot or '/'!r}? "
                "Nothing was created; compare with the brokers' zookeeper.connect"
            )
        if self.session.get(ROOT) is not None:
            return
        try:
            self._create(ROOT, b"", ephemeral=False)
        except ClusterError as error:
            raise ClusterError(
                f"{error}; an administrator can make it once: "
                f"zookeeper-shell HOST:PORT create {self.session.chroot}{ROOT}, with rights to create and delete below"
            ) from error

    def _acquire(self) -> None:
        asked_at = time.monotonic()
        deadline = asked_at + self._lock_timeout_s
        if released := self._taken_or_watched(asked_at, deadline):
            with waiting_for("the lease, which another run holds", limit_s=deadline - time.monotonic()):
                while released:
                    released.wait(min(deadline - time.monotonic(), LONGEST_WATCH_S))
                    released = self._taken_or_watched(asked_at, deadline)
        logger.info("lease taken hosts=%s run=%s", self.session.hosts, self._holder.run)

    def _taken_or_watched(self, asked_at: float, deadline: float) -> threading.Event | None:
        """Return None if the lease is ours; else the event that its release sets, until ``deadline``."""
        entry = msgspec.json.encode(self._holder)
        while not self._create_lease(entry):
            released = threading.Event()
            watched = self.session.client.get_async(LEASE, watch=lambda _, event=released: event.set())
            holder = self.session.wait_for_znode(LEASE, watched)
            if holder is None:
                continue
            if holder.stat.ephemeralOwner == self._session_id:  # our own create, whose answer was lost
                self._written_between = (asked_at, time.monotonic())
                return None
            if is_stray(holder):
                raise StrayLeaseError(
                    f"{self.session.hosts}{LEASE} is no lease: it belongs to no session, and will not go by itself; "
                    f"remove it: zookeeper-shell HOST:PORT delete {self.session.chroot}{LEASE}"
                )
            if time.monotonic() >= deadline or self._interrupted():
                raise LeaseHeldError(
                    f"the lease {self.session.hosts}{LEASE} is held by {holder_text(holder.data)}; wait until it ends, "
                    "or give --lock-timeout. The lease of a run that died ends when its ZooKeeper session times out"
                )
            return released
        return None

    def _create_lease(self, entry: bytes) -> bool:
        asked_at = time.monotonic()
        is_made = self._create(LEASE, entry, ephemeral=True)
        self._written_between = (asked_at, time.monotonic())
        return is_made

    def _create(self, path: str, data: bytes, *, ephemeral: bool) -> bool:
        """Return whether this made the znode; False if it exists already. Never makes a parent."""
        try:
            pending = self.session.client.create_async(path, data, acl=self._acl, ephemeral=ephemeral)
            made = self.session.wait_for(path, pending)
        except TopicopsError as error:
            if isinstance(error.__cause__, NodeExistsError):
                return False
            if isinstance(error.__cause__, InvalidACLError):
                raise LoginRefusedError(
                    f"{self.session.hosts}: ZooKeeper gives this connection no identity, so {path} cannot be "
                    "protected; let it ask for client certificates (ssl.clientAuth), or take ours out of the connection"
                ) from error
            raise
        if made is None:
            raise WrongTargetError(f"{self.session.hosts}: {path} has no parent: wrong chroot? Nothing was created")
        return True
