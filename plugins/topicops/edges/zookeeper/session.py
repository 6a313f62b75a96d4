"""One kazoo session: every wait has a timeout, every error is translated and names its znode.

The reader and the lease have one each. Nothing here repeats a request: only the caller knows whether that is safe.
"""

from __future__ import annotations

import logging
import select
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Self, cast

import msgspec
from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NoNodeError,
    SessionClosedRequireSaslError,
    SessionExpiredError,
    UnimplementedError,
)
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.serialization import int_struct, stat_struct
from kazoo.protocol.states import KazooState, KeeperState, ZnodeStat

from topicops.edges.connections.lookup import ZooKeeperAddress
from topicops.edges.connections.port_probe import error_of
from topicops.edges.zookeeper.diagnosis import diagnosis, tls_context
from topicops.model.errors import ClusterError, ClusterUnreachableError, LoginRefusedError, UsageError
from topicops.model.printable import printable
from topicops.model.waits import waiting_for

logger = logging.getLogger(__name__)


class KazooHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo is untyped
    """Makes the connections and the threads of one client.

    kazoo's own TLS would also trust the system's authorities, and kazoo prints the error that ends its thread as a
    traceback. Its ``select`` makes and closes an epoll object each time, six times a request.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._context = context
        self.idle_work: deque[Callable[[], object]] = deque()
        """Work for the thread that waits for answers, while it has none."""

    def select(
        self,
        readers: Sequence[socket.socket],
        writers: Sequence[socket.socket],
        _: object,
        timeout: float | None = None,
    ) -> tuple[list[socket.socket], list[socket.socket], list[socket.socket]]:
        """Wait until a connection can be read or written; before that, do the work that was kept for an idle moment."""
        poll = select.poll()
        for connection in readers:
            poll.register(connection, select.POLLIN)
        for connection in writers:
            poll.register(connection, select.POLLOUT)
        ready = dict(poll.poll(0)) if self.idle_work else {}
        if not ready:
            self.do_idle_work()
            ready = dict(poll.poll(None if timeout is None else timeout * 1000))
        # A broken connection counts as both: reading or writing raises its error.
        return [r for r in readers if r.fileno() in ready], [w for w in writers if w.fileno() in ready], []

    def do_idle_work(self) -> None:
        while self.idle_work:
            self.idle_work.popleft()()

    def create_connection(self, *, address: tuple[str, int], hostname: str, timeout: float, **_: object) -> Any:
        connection = socket.create_connection(address, timeout)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._context.wrap_socket(connection, server_hostname=hostname) if self._context else connection
        except BaseException:
            connection.close()
            raise

    def spawn(self, func: Callable[..., object], *args: object, **kwargs: object) -> threading.Thread:
        def run() -> None:
            try:
                func(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - for every error alike, the session's state shows its end
                logger.debug("a thread of the ZooKeeper client ended: %r", error)

        thread: threading.Thread = super().spawn(run)
        return thread


class KazooLog(logging.Handler):
    """Keeps kazoo's last warning, and logs each at DEBUG: the error that we raise contains the last one."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""
        self.refusal: KazooException | None = None
        """The refused login that ended kazoo's loop."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        for error in (record.exc_info and record.exc_info[1], *(record.args or ())):
            if isinstance(error, AuthFailedError | SessionClosedRequireSaslError):
                self.refusal = error
        if record.exc_info and record.exc_info[1]:
            message = f"{message}: {record.exc_info[1]}"
        if message not in _WITHOUT_CAUSE:
            self.text = printable(message)
        logger.debug("kazoo: %s", message)


_WITHOUT_CAUSE = frozenset(
    {"Transition to CONNECTING", "Failed connecting to Zookeeper within the connection retry policy."}
)
"""Lines that follow a failure and do not contain its cause."""


# kazoo's objects are untyped; Any stays in this module and in what sends requests through it.
AsyncResult = Any

_STAMPS = struct.Struct("!qqqqi")
"""Form of the first part of a stat: czxid, mzxid, ctime, mtime, version."""


class Znode(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Data and stat as bytes of the server's answer, decoded on access: most fields of a stat are never read."""

    answer: bytes
    start: int
    """Position where the data begins, after its length."""
    end: int
    """Position where the data ends and the stat begins."""

    @classmethod
    def of(cls, data: bytes | None, stat: ZnodeStat) -> Self:
        """Make one from data and stat as kazoo decodes them."""
        length = int_struct.pack(-1 if data is None else len(data))
        answer = length + (data or b"") + stat_struct.pack(*stat)
        return cls(answer, len(length), len(answer) - stat_struct.size)

    @property
    def data(self) -> bytes | None:
        if self.start == self.end and int_struct.unpack_from(self.answer, self.start - int_struct.size)[0] < 0:
            return None
        return self.answer[self.start : self.end]

    @property
    def czxid(self) -> int:
        """The transaction that created it."""
        return cast("int", _STAMPS.unpack_from(self.answer, self.end)[0])

    @property
    def mzxid(self) -> int:
        """The transaction that last changed its data."""
        return cast("int", _STAMPS.unpack_from(self.answer, self.end)[1])

    @property
    def mtime(self) -> int:
        """When that was; ms since 1970, by the server's clock."""
        return cast("int", _STAMPS.unpack_from(self.answer, self.end)[3])

    @property
    def version(self) -> int:
        """How often its data changed."""
        return cast("int", _STAMPS.unpack_from(self.answer, self.end)[4])

    @property
    def stat(self) -> ZnodeStat:
        return ZnodeStat._make(stat_struct.unpack_from(self.answer, self.end))


class ChildrenVersion(NamedTuple):
    """Equal as long as no child is created or deleted."""

    children: int
    zxid: int
    """The transaction that last created or deleted a child."""


class UnknownRequestError(ClusterError):
    """The server does not know this kind of request, and has closed the connection."""


class ConnectionLostError(ClusterUnreachableError):
    """The connection ended before the answer; the session may live on, and a read may be repeated."""


def _login(address: ZooKeeperAddress) -> dict[str, str] | None:
    if not address.user:
        return None
    from topicops.edges.zookeeper.digest import sasl_options

    return sasl_options(address.user, address.password)


class ZooKeeperSession:
    """A session; a context manager. ``timeout_s`` is the session timeout, and the longest wait for each answer.

    Raises:
        UsageError: The hosts cannot be read.
        ConnectionSecurityError: A file of the address cannot be used; or on entering: no server lets this client in.
        ClusterUnreachableError: On entering: no server answered in time; the text has the cause for each server.
    """

    def __init__(self, address: ZooKeeperAddress | str, *, timeout_s: float = 10.0) -> None:
        if isinstance(address, str):
            address = ZooKeeperAddress(hosts=address)
        self.hosts = shown(address.hosts)
        """Hosts for messages; a user before an ``@`` is left out."""
        self.timeout_s = timeout_s
        self._kazoo_log = KazooLog()
        self._connected = threading.Event()
        self._answered = threading.Event()
        """A server has given a session, or refused one."""
        self.is_lost = False
        """Whether the session has ended; after a reconnection it is another session."""
        self._has_login = address.user is not None
        self._context = tls_context(address.tls) if address.tls else None
        self.handler = KazooHandler(self._context)
        """Handler; its idle work is for kazoo's thread alone, which an error would end."""
        self.client = self._new_client(address)

    def _new_client(self, address: ZooKeeperAddress) -> Any:
        # The cause of a failed connection is only in kazoo's log; each session has a logger of its own, so that two
        # sessions of one process do not mix their causes.
        log = logging.Logger("kazoo.client", logging.WARNING)
        log.addHandler(self._kazoo_log)
        retry = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0, "deadline": self.timeout_s}
        try:
            client = KazooClient(
                address.hosts,
                timeout=self.timeout_s,
                logger=log,
                connection_retry=retry,
                command_retry={"max_tries": 0},
                handler=self.handler,
                sasl_options=_login(address),
            )
        except ValueError:
            # The error of kazoo contains a part of the hosts.
            raise UsageError("the ZooKeeper hosts cannot be read; write host:port,host:port/chroot") from None
        client.add_listener(self._note_state)
        return client

    def __enter__(self) -> Self:
        # Not start(): with a chroot it sends a request that has no timeout.
        self.client.start_async()
        with self.waiting(self.timeout_s):
            answered = self._answered.wait(self.timeout_s)
        if not answered or (self.is_lost and self.client.client_state != KeeperState.AUTH_FAILED):
            self.close()
            raise self._unreachable()
        if self._has_login:  # a login that is refused looks like a connection until the first request
            try:
                self.wait_for("/", self.client.exists_async("/"))
            except BaseException:
                self.close()
                raise
        return self

    def _unreachable(self) -> ClusterError:
        within = f"ZooKeeper at {self.hosts} cannot be reached within {self.timeout_s:g} s"
        if ended_by := self._kazoo_log.refusal:
            return refused(self.hosts, ended_by)
        if found := diagnosis(self.client.hosts, self._context):
            return error_of(found, f"{within}: ")
        cause = self._kazoo_log.text or "no server answered"
        return ClusterUnreachableError(f"{within}: {cause}; check the address, that it runs, and the network")

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session, and with it its ephemeral znodes. Never raises: the caller could do nothing about it."""
        # kazoo first ends what it is doing: at most one attempt to connect, and then to open the session.
        with waiting_for(f"the end of the session with ZooKeeper at {self.hosts}", limit_s=2 * self.timeout_s):
            try:
                self.client.stop()
                self.client.close()
            except (KazooException, OSError) as error:
                logger.debug("closing the ZooKeeper session: %r", error)

    @property
    def chroot(self) -> str:
        """``/kafka``, or empty for the root."""
        return self.client.chroot or ""

    @property
    def session_id(self) -> int | None:
        """None while there is no session."""
        return self.client.client_id[0] if self.client.client_id else None

    @property
    def zxid(self) -> int:
        """The newest transaction that the server had applied at its last answer; later reads see it too."""
        return cast("int", self.client.last_zxid)

    def waiting(self, limit_s: float) -> AbstractContextManager[None]:
        """Have the block said as one wait for this ZooKeeper, whatever it asks for."""
        return waiting_for(f"an answer of ZooKeeper at {self.hosts}", limit_s=limit_s)

    def wait_connected(self, timeout_s: float) -> bool:
        with self.waiting(timeout_s):
            return self._connected.wait(timeout_s)

    def get(self, path: str) -> Znode | None:
        return self.wait_for_znode(path, self.client.get_async(path))

    def get_synced(self, path: str) -> Znode | None:
        """Do ``sync`` and ``get`` in one wait: a server answers a session's requests in order."""
        synced, found = self.client.sync_async("/"), self.client.get_async(path)
        with self.waiting(2 * self.timeout_s):
            self.wait_for("/", synced)
            return self.wait_for_znode(path, found)

    def children(self, path: str) -> tuple[str, ...] | None:
        """List the names below, sorted; None if there is no such znode."""
        # With the stat, which is not used: a server caches that answer, and not the one without the stat.
        found = self.wait_for(path, self.client.get_children_async(path, include_data=True))
        return None if found is None else tuple(sorted(found[0]))

    def children_version(self, path: str) -> ChildrenVersion | None:
        """Return how many children a znode has, and since when: an answer that costs a server almost nothing."""
        stat: ZnodeStat | None = self.wait_for(path, self.client.exists_async(path))
        return None if stat is None else ChildrenVersion(stat.numChildren, stat.pzxid)

    def sync(self) -> None:
        """Have the server catch up with its leader, so that later reads see everything written before."""
        self.wait_for("/", self.client.sync_async("/"))

    def wait_for(self, path: str, pending: AsyncResult) -> Any:
        """Wait for the answer to a request on ``path``; None if there is no such znode.

        Raises ``ClusterUnreachableError`` without an answer in time and when the session was lost,
        ``ConnectionLostError`` when only the connection was, ``UnknownRequestError`` by an old server, and
        ``ClusterError`` for every other refusal.
        """
        try:
            with self.waiting(self.timeout_s):
                return pending.get(timeout=self.timeout_s)
        except NoNodeError:
            return None
        except (KazooException, KazooTimeoutError) as error:
            raise self.failure(path, error) from error

    def failure(self, path: str, error: KazooException | KazooTimeoutError) -> ClusterError:
        """Return the error that ``wait_for`` raises when a request on ``path`` fails with ``error``."""
        where = f"{self.hosts}: {printable(path)}"
        if isinstance(error, KazooTimeoutError):
            return ClusterUnreachableError(
                f"{where}: no answer within {self.timeout_s:g} s; is ZooKeeper overloaded, or without a quorum?"
            )
        if isinstance(error, ConnectionLoss | SessionExpiredError):
            if self.is_lost and self._kazoo_log.refusal:
                return refused(where, self._kazoo_log.refusal)
            cause = f" ({self._kazoo_log.text})" if self._kazoo_log.text else ""
            kind = ConnectionLostError if isinstance(error, ConnectionLoss) else ClusterUnreachableError
            return kind(f"{where}: {type(error).__name__}{cause}: the connection to ZooKeeper was lost; run it again")
        if isinstance(error, UnimplementedError):
            return UnknownRequestError(f"{where}: the server does not know this request")
        # The error that ended kazoo's loop explains more than the error of the request.
        return refused(where, self._kazoo_log.refusal or error)

    def wait_for_znode(self, path: str, pending: AsyncResult) -> Znode | None:
        """Wait as ``wait_for``, for a request whose answer is data and stat."""
        found = self.wait_for(path, pending)
        return None if found is None else Znode.of(*found)

    def reconnected(self) -> bool:
        """Wait for a connection and then for an answer, at most ``timeout_s`` for each; False if none comes.

        Raises ``LoginRefusedError``.
        """
        deadline = time.monotonic() + self.timeout_s
        with self.waiting(2 * self.timeout_s):
            while (left := deadline - time.monotonic()) > 0 and self.wait_connected(left):
                try:
                    self.client.exists_async("/").get(timeout=left)
                except (ConnectionLoss, SessionExpiredError):
                    time.sleep(0.02)  # kazoo has not noticed yet that the connection is closed
                except (AuthFailedError, SessionClosedRequireSaslError) as error:
                    raise refused(self.hosts, error) from error
                except (KazooException, KazooTimeoutError) as error:
                    logger.debug("after reconnecting: %r", error)
                    return not isinstance(error, KazooTimeoutError)
                else:
                    return True
        return False

    def _note_state(self, state: str) -> None:
        """Note a change of the connection. Kazoo's thread calls this: it must not wait for anything."""
        if state == KazooState.CONNECTED:
            self._connected.set()
        else:
            self._connected.clear()
        if state == KazooState.LOST:
            self.is_lost = True
        self._answered.set()


def shown(hosts: str) -> str:
    """Return the hosts without what stands before an ``@``, which no host has: it may be a password."""
    return printable(hosts.rpartition("@")[2])


def refused(where: str, error: KazooException) -> ClusterError:
    if isinstance(error, NoAuthError):
        return ClusterError(f"{where}: not allowed (NoAuth); let this identity read the znode, or log in as another")
    if isinstance(error, AuthFailedError):
        by_sasl = type(error.__cause__).__name__ == "SASLProtocolException"  # of pure-sasl, which may be missing
        why = f"AuthFailed: {error.__cause__}" if by_sasl else "AuthFailed"
        return LoginRefusedError(f"{where}: the login was refused ({why}); check login and password of the connection")
    if isinstance(error, SessionClosedRequireSaslError):
        return LoginRefusedError(
            f"{where}: the server wants a login, and accepted none; check login and password of the connection"
        )
    return ClusterError(f"{where}: ZooKeeper answered {type(error).__name__} {error}".rstrip())
