"""One kazoo session: every wait ends, every error is translated and names its znode.

The reader and the lease hold one each. Nothing here retries a request: who asks again must know why.
"""

from __future__ import annotations

import logging
import re
import select
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
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
from puresasl import SASLProtocolException

from topicops.edges.connections.lookup import ZooKeeperAddress
from topicops.edges.connections.port_probe import error_of
from topicops.edges.zookeeper.diagnosis import diagnosis, tls_context
from topicops.edges.zookeeper.sasl import sasl_options
from topicops.model.errors import ClusterError, ClusterUnreachableError, LoginRefusedError, UsageError
from topicops.model.printable import printable

logger = logging.getLogger(__name__)

# kazoo's objects are untyped; Any stays in this module and in what sends requests through it.
AsyncResult = Any

_STAMPS = struct.Struct("!qqqqi")
"""How a stat begins: czxid, mzxid, ctime, mtime, version."""


class Znode(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Data and stat as they lie in a server's answer: taken out when asked for, since most of a stat never is."""

    answer: bytes
    start: int
    """Where the data begins, behind its length."""
    end: int
    """Where the data ends and the stat begins."""

    @classmethod
    def of(cls, data: bytes | None, stat: ZnodeStat) -> Self:
        """Make one of what kazoo has taken apart."""
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
        """The change that created it."""
        return cast("int", _STAMPS.unpack_from(self.answer, self.end)[0])

    @property
    def mzxid(self) -> int:
        """The newest change of its data."""
        return cast("int", _STAMPS.unpack_from(self.answer, self.end)[1])

    @property
    def mtime(self) -> int:
        """When that was; ms since 1970 by the server's clock."""
        return cast("int", _STAMPS.unpack_from(self.answer, self.end)[3])

    @property
    def version(self) -> int:
        """How often its data changed."""
        return cast("int", _STAMPS.unpack_from(self.answer, self.end)[4])

    @property
    def stat(self) -> ZnodeStat:
        return ZnodeStat._make(stat_struct.unpack_from(self.answer, self.end))


class Offspring(NamedTuple):
    """Equal as long as no child comes or goes."""

    children: int
    zxid: int
    """Of the transaction in which the last one came or went."""


class UnknownRequestError(ClusterError):
    """The server does not know this kind of request, and has closed the connection."""


class ConnectionLostError(ClusterUnreachableError):
    """The connection ended before the answer came; the session may live on, and a read may be asked again."""


class ZooKeeperSession:
    """A session; a context manager.

    Args:
        address: Or only its hosts, ``host:port,host:port/chroot``, for a server that is open to all.
        timeout_s: The session timeout asked for, and the longest wait for the connection and for each answer.

    Raises:
        UsageError: The hosts cannot be read.
        ConnectionSecurityError: A file of the address cannot be used; or on entering: no server lets this client in.
        ClusterUnreachableError: On entering: no server answered in time; the text holds the cause, server by server.

    """

    def __init__(self, address: ZooKeeperAddress | str, *, timeout_s: float = 10.0) -> None:
        if isinstance(address, str):
            address = ZooKeeperAddress(hosts=address)
        self.hosts = shown(address.hosts)
        """For messages; what stands before an ``@`` is left out."""
        self.timeout_s = timeout_s
        self._last_words = _LastWords()
        self._connected = threading.Event()
        self._answered = threading.Event()
        """A server has given a session, or refused one."""
        self._is_lost = False
        self._has_login = address.user is not None
        self._context = tls_context(address.tls) if address.tls else None
        self._handler = _Handler(self._context)
        self.client = self._new_client(address)

    def _new_client(self, address: ZooKeeperAddress) -> Any:
        # A logger of its own: the cause of a failed connection stands only in kazoo's log, and two sessions
        # of one process must not read each other's.
        log = logging.Logger("kazoo.client", logging.WARNING)
        log.addHandler(self._last_words)
        retry = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0, "deadline": self.timeout_s}
        try:
            client = KazooClient(
                address.hosts,
                timeout=self.timeout_s,
                logger=log,
                connection_retry=retry,
                command_retry={"max_tries": 0},
                handler=self._handler,
                sasl_options=sasl_options(address.user, address.password) if address.user else None,
            )
        except ValueError as error:
            message = f"ZooKeeper hosts {self.hosts!r}: {error}; write host:port,host:port/chroot"
            raise UsageError(message) from error
        client.add_listener(self._note_state)
        return client

    def __enter__(self) -> Self:
        # Not start(): on a chroot it asks a question that has no timeout.
        self.client.start_async()
        answered = self._answered.wait(self.timeout_s)
        if not answered or (self._is_lost and self.client.client_state != KeeperState.AUTH_FAILED):
            self.close()
            raise self._unreachable()
        if self._has_login:
            self._prove_login()
        return self

    def _unreachable(self) -> ClusterError:
        within = f"ZooKeeper at {self.hosts} cannot be reached within {self.timeout_s:g} s"
        if ended_by := self._last_words.refusal:
            return refused(self.hosts, ended_by)
        if found := diagnosis(self.client.hosts, self._context):
            return error_of(found, f"{within}: ")
        cause = self._last_words.text or "no server answered"
        return ClusterUnreachableError(f"{within}: {cause}; check the address, that it runs, and the network")

    def _prove_login(self) -> None:
        """A login that is refused looks like a connection until the first request."""
        try:
            self.settle("/", self.client.exists_async("/"))
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the session; its ephemeral znodes go with it. Never raises: there is nothing left to do about it."""
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
        """The newest change that the server had applied at its last answer; later reads see it too."""
        zxid: int = self.client.last_zxid
        return zxid

    @property
    def is_lost(self) -> bool:
        """Whether a session has ended since this was opened; a later one is another session."""
        return self._is_lost

    def wait_connected(self, timeout_s: float) -> bool:
        return self._connected.wait(timeout_s)

    def get(self, path: str) -> Znode | None:
        return self.settle_znode(path, self.client.get_async(path))

    def get_synced(self, path: str) -> Znode | None:
        """As ``sync`` and ``get``, in one wait: a server answers a session's requests in their order."""
        synced, found = self.client.sync_async("/"), self.client.get_async(path)
        self.settle("/", synced)
        return self.settle_znode(path, found)

    def children(self, path: str) -> tuple[str, ...] | None:
        """List the names below, sorted; None where there is no such znode."""
        # With the stat, which nobody needs here: a server keeps that answer ready, and the one without it does not.
        found = self.settle(path, self.client.get_children_async(path, include_data=True))
        return None if found is None else tuple(sorted(found[0]))

    def offspring(self, path: str) -> Offspring | None:
        """How many children a znode has, and since when these: an answer that costs a server nothing."""
        stat: ZnodeStat | None = self.settle(path, self.client.exists_async(path))
        return None if stat is None else Offspring(stat.numChildren, stat.pzxid)

    def sync(self) -> None:
        """Let the server that answers catch up with its leader, so that what was written before is read."""
        self.settle("/", self.client.sync_async("/"))

    def settle(self, path: str, pending: AsyncResult) -> Any:
        """Wait for the answer to a request on ``path``; None where there is no such znode.

        Raises:
            ClusterUnreachableError: No answer in time, or the connection or session was lost.
            ConnectionLostError: It was the connection.
            UnknownRequestError: The server is too old for it.
            ClusterError: Every other refusal.

        """
        try:
            return pending.get(timeout=self.timeout_s)
        except NoNodeError:
            return None
        except (KazooException, KazooTimeoutError) as error:
            raise self.failure(path, error) from error

    def failure(self, path: str, error: KazooException | KazooTimeoutError) -> ClusterError:
        """What ``settle`` raises where a request on ``path`` ends so."""
        where = f"{self.hosts}: {printable(path)}"
        if isinstance(error, KazooTimeoutError):
            return ClusterUnreachableError(
                f"{where}: no answer within {self.timeout_s:g} s; is ZooKeeper overloaded, or without a quorum?"
            )
        if isinstance(error, ConnectionLoss | SessionExpiredError):
            return self._lost(where, error)
        if isinstance(error, UnimplementedError):
            return UnknownRequestError(f"{where}: the server does not know this request")
        # What the loop ended with knows more than what its requests are given.
        return refused(where, self._last_words.refusal or error)

    def do_when_idle(self, work: Callable[[], object]) -> None:
        """Let kazoo's thread do it as soon as it would wait. Only for that thread; an error would end it."""
        self._handler.waiting.append(work)

    def do_what_waits(self) -> None:
        """Do now what ``do_when_idle`` was given. Only for kazoo's thread."""
        self._handler.do_what_waits()

    def settle_znode(self, path: str, pending: AsyncResult) -> Znode | None:
        """As ``settle``, for a request that answers data and stat."""
        found = self.settle(path, pending)
        return None if found is None else Znode.of(*found)

    def _lost(self, where: str, error: KazooException) -> ClusterError:
        if self._is_lost and self._last_words.refusal:
            return refused(where, self._last_words.refusal)
        cause = f" ({self._last_words.text})" if self._last_words.text else ""
        kind = ConnectionLostError if isinstance(error, ConnectionLoss) else ClusterUnreachableError
        return kind(f"{where}: {type(error).__name__}{cause}: the connection to ZooKeeper was lost; run it again")

    def reconnected(self) -> bool:
        """Wait until a request is answered again, at most ``timeout_s``."""
        deadline = time.monotonic() + self.timeout_s
        while (left := deadline - time.monotonic()) > 0:
            if not self.wait_connected(left):
                return False
            try:
                self.client.exists_async("/").get(timeout=left)
            except (ConnectionLoss, SessionExpiredError):
                time.sleep(0.02)  # kazoo has not noticed yet that the connection is closed
            except (KazooException, KazooTimeoutError) as error:
                logger.debug("after reconnecting: %r", error)
                return not isinstance(error, KazooTimeoutError)
            else:
                return True
        return False

    def _note_state(self, state: str) -> None:
        """Kazoo's own thread calls this: it must not wait for anything."""
        if state == KazooState.CONNECTED:
            self._connected.set()
        else:
            self._connected.clear()
        if state == KazooState.LOST:
            self._is_lost = True
        self._answered.set()


def shown(hosts: str) -> str:
    return re.sub(r"[^,/@]*@", "", printable(hosts))


def refused(where: str, error: KazooException) -> ClusterError:
    """What a person reads when ZooKeeper refuses, as the kind of error that it is."""
    if isinstance(error, NoAuthError):
        return ClusterError(f"{where}: not allowed (NoAuth); let this identity read the znode, or log in as another")
    if isinstance(error, AuthFailedError):
        why = f"AuthFailed: {error.__cause__}" if isinstance(error.__cause__, SASLProtocolException) else "AuthFailed"
        return LoginRefusedError(f"{where}: the login was refused ({why}); check login and password of the connection")
    if isinstance(error, SessionClosedRequireSaslError):
        return LoginRefusedError(
            f"{where}: the server wants a login, and got none that it takes; check login and password of the connection"
        )
    return ClusterError(f"{where}: ZooKeeper answered {type(error).__name__} {error}".rstrip())


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo is untyped
    """Makes the connections and the threads of one client.

    kazoo's own TLS would trust the system's authorities beside ours, and an error that ends its thread would be
    printed as a traceback. Its own ``select`` makes and closes an epoll object each time, six times a request.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._context = context
        self.waiting: deque[Callable[[], object]] = deque()

    def select(
        self,
        readers: Sequence[socket.socket],
        writers: Sequence[socket.socket],
        _: object,
        timeout: float | None = None,
    ) -> tuple[list[socket.socket], list[socket.socket], list[socket.socket]]:
        """Wait for what can be read and what can be written; before that, do what waits for a moment like this."""
        poll = select.poll()
        for connection in readers:
            poll.register(connection, select.POLLIN)
        for connection in writers:
            poll.register(connection, select.POLLOUT)
        ready = dict(poll.poll(0)) if self.waiting else {}
        if not ready:
            self.do_what_waits()
            ready = dict(poll.poll(None if timeout is None else timeout * 1000))
        # Whatever is wrong with a connection, reading or writing will tell.
        return [r for r in readers if r.fileno() in ready], [w for w in writers if w.fileno() in ready], []

    def do_what_waits(self) -> None:
        while self.waiting:
            self.waiting.popleft()()

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
            except Exception as error:  # noqa: BLE001 - whatever it is, the session's state tells that it has ended
                logger.debug("a thread of the ZooKeeper client ended: %r", error)

        thread: threading.Thread = super().spawn(run)
        return thread


class _LastWords(logging.Handler):
    """Keeps kazoo's last warning; passes each on as DEBUG, since our own error will carry the one that matters."""

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
        if message not in _EMPTY_WORDS:
            self.text = printable(message)
        logger.debug("kazoo: %s", message)


_EMPTY_WORDS = frozenset(
    {"Transition to CONNECTING", "Failed connecting to Zookeeper within the connection retry policy."}
)
"""Lines that follow a failure and say nothing about its cause."""
