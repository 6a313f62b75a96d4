"""What a kazoo client runs on: its threads and connections, and the log that holds the cause of a failure."""

from __future__ import annotations

import logging
import select
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.exceptions import AuthFailedError, KazooException, SessionClosedRequireSaslError
from kazoo.handlers.threading import SequentialThreadingHandler

from topicops.model.printable import printable

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
        """What the thread that waits for answers does when none is there."""

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
