"""Many znodes in one request: ``multiRead``, which kazoo lacks, and pipelined reads for servers before 3.6.

Source: org.apache.zookeeper.ZooDefs.OpCode#multiRead (22), MultiOperationRecord and MultiResponse.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

from kazoo.exceptions import EXCEPTIONS, KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.serialization import GetData, MultiHeader, int_struct, multiheader_struct, stat_struct

from topicops.edges.zookeeper.session import Znode, ZooKeeperSession, refused
from topicops.model.errors import ClusterError
from topicops.model.printable import printable

MOST_A_BATCH = 100
FIRST_BATCH = 50
REPLY_BYTES = 750_000
"""Size of a batch's reply: bigger ones delay other clients, smaller ones waste round trips."""
PIPELINE_WINDOW = 200
"""Requests in flight when each znode is one request."""

_ASK = bytes(MultiHeader(GetData.type, False, -1).serialize())
_NO_WATCH = b"\0"
_END = bytes(multiheader_struct.pack(-1, True, -1))
_ERROR = -1
_ENTRY = struct.Struct("!i5xi")
"""Kind, and the data's length or the error code; the flag for the end and the second error code are skipped."""

Reply = tuple[bytes, int]
"""The bytes that came, and where in them the answers begin."""
Meanwhile = Callable[[Sequence[Znode | None]], object]


class MultiRead:
    """The request, in the form kazoo's connection sends: ``type``, ``serialize``, ``deserialize``."""

    type: ClassVar[int] = 22

    def __init__(self, asked: Sequence[bytes]) -> None:
        self.asked = asked
        """Request, as ``request_parts`` gives it."""

    def serialize(self) -> bytes:
        return b"".join((*self.asked, _END))

    def deserialize(self, reply: bytes, offset: int) -> Reply:
        """Leave the reply as it is: kazoo can send the next request before this one is parsed."""
        return reply, offset


def request_parts(paths: Sequence[str], *, chroot: str) -> list[bytes]:
    """Make one part of the request for each znode. The chroot is added here: kazoo's ``_call`` does not."""
    return [_head(len(whole := (chroot + path).encode())) + whole + _NO_WATCH for path in paths]


def parse_reply(reply: Reply, *, count: int) -> tuple[list[Znode | None], dict[int, int]]:
    """Return a znode or None for each of the ``count`` that were asked for, in order; and the error code of each None.

    Raises ``ValueError`` where the reply holds more, fewer, or something else.
    """
    data, start = reply
    found: list[Znode | None] = []
    errors = {}
    # This loop runs once for each znode, a million times in a large cluster: so bound methods and no helper.
    entry, behind, stat, keep = _ENTRY.unpack_from, _ENTRY.size, stat_struct.size, found.append
    try:
        for _ in range(count):
            kind, length = entry(data, start)
            start += behind
            if kind == _ERROR:
                errors[len(found)] = length
                keep(None)
                continue
            end = start + length if length > 0 else start
            keep(Znode(data, start, end))
            start = end + stat
    except struct.error as error:
        raise ValueError(f"{count} znodes asked, {len(found)} answered") from error
    if data[start:] != _END:
        raise ValueError(f"{count} znodes asked, and something else answered")
    return found, errors


def read_batched(
    session: ZooKeeperSession,
    paths: Sequence[str],
    *,
    request: type[MultiRead] = MultiRead,
    meanwhile: Meanwhile = lambda _: None,
) -> list[Znode | None]:
    """Read every znode, in the order of ``paths``; None for a missing one. One batch is in flight at a time.

    ``meanwhile`` is called after each batch with all znodes so far, while the next batch is in flight. Raises
    ``UnknownRequestError`` where the server does not know multiRead, else as ``wait_for``; a refusal names its znode.
    """
    return _BulkRead(session, paths, request, meanwhile).result() if paths else []


def next_batch_size(*, entries: int, reply_bytes: int) -> int:
    """Return how many znodes to ask for next, if they are as big as the last ones."""
    return max(1, min(MOST_A_BATCH, REPLY_BYTES * entries // max(1, reply_bytes)))


def read_pipelined(
    session: ZooKeeperSession, paths: Sequence[str], *, meanwhile: Meanwhile = lambda _: None
) -> list[Znode | None]:
    """Do what ``read_batched`` does, with one request a znode and a window of them in flight."""
    found: list[Znode | None] = []
    for start in range(0, len(paths), PIPELINE_WINDOW):
        window = paths[start : start + PIPELINE_WINDOW]
        pending = [session.client.get_async(path) for path in window]
        found.extend(session.wait_for_znode(path, result) for path, result in zip(window, pending, strict=True))
        meanwhile(found)
    return found


@cache
def _head(length: int) -> bytes:
    """Return the bytes before a path of that many bytes."""
    return _ASK + bytes(int_struct.pack(length))


class _BulkRead:
    """One bulk read. It runs on kazoo's thread, reply by reply, and the caller waits for the last reply.

    Handing each reply over to another thread would cost more than parsing it. The next batch is sent before the
    last reply is parsed, so that server and client work at the same time. For kazoo, this object is the asynchronous
    result of each request.
    """

    def __init__(
        self, session: ZooKeeperSession, paths: Sequence[str], request: type[MultiRead], meanwhile: Meanwhile
    ) -> None:
        self._session = session
        self._meanwhile = meanwhile
        self._paths = paths
        self._request = request
        self._ready = request_parts(paths[: FIRST_BATCH + MOST_A_BATCH], chroot=session.chroot)
        """The parts to send next: enough for the biggest batch, since they are made before its size is known."""
        self._sent = 0
        self._in_flight = 0
        self._found: list[Znode | None] = []
        self._heard = time.monotonic()
        self._ended = threading.Event()
        self._error: Exception | None = None

    def result(self) -> list[Znode | None]:
        try:
            self._send(FIRST_BATCH)
            while not self._ended.wait(left := self._heard + self._session.timeout_s - time.monotonic()):
                if left <= 0:
                    raise self._session.failure(self._path_in_flight, KazooTimeoutError())
        finally:
            self._ended.set()
        if isinstance(self._error, KazooException):
            raise self._session.failure(self._path_in_flight, self._error) from self._error
        if self._error:
            raise self._error
        return self._found

    def set(self, reply: Reply) -> None:
        """Take the reply to the last request. kazoo calls this on its thread, which an error would end."""
        if self._ended.is_set():
            return
        try:
            self._take(reply)
        except Exception as error:  # noqa: BLE001 - every error is raised again where the caller waits
            self.set_exception(error)

    def set_exception(self, error: Exception) -> None:
        """Give up. kazoo calls this, on any thread, for a request that is refused or lost."""
        self._error = error
        self._ended.set()

    def _take(self, reply: Reply) -> None:
        self._heard = time.monotonic()
        self._session.handler.do_idle_work()
        first, count = self._sent - self._in_flight, self._in_flight
        self._send(next_batch_size(entries=count, reply_bytes=len(reply[0])))
        self._session.handler.idle_work.append(lambda: self._keep(reply, self._paths[first : first + count]))

    def _send(self, size: int) -> None:
        """Send the next batch, if there is one. The one place that uses kazoo's private ``_call``."""
        batch = self._ready[:size]
        del self._ready[:size]
        self._in_flight = len(batch)
        self._sent += len(batch)
        send: Callable[[Any, Any], object] = self._session.client._call  # noqa: SLF001 - kazoo has no public way
        if batch:
            send(self._request(batch), self)

    def _keep(self, reply: Reply, asked: Sequence[str]) -> None:
        try:
            self._found.extend(self._znodes(reply, asked))
            due = self._sent + len(self._ready)
            self._ready += request_parts(self._paths[due : self._sent + MOST_A_BATCH], chroot=self._session.chroot)
            self._meanwhile(self._found)
        except Exception as error:  # noqa: BLE001 - as in set
            self.set_exception(error)
        if not self._in_flight:
            self._ended.set()

    def _znodes(self, reply: Reply, asked: Sequence[str]) -> list[Znode | None]:
        hosts = self._session.hosts
        try:
            found, errors = parse_reply(reply, count=len(asked))
        except ValueError as error:
            raise ClusterError(f"{hosts}: {printable(asked[0])}: {error}") from error
        for place, code in errors.items():
            if code != NoNodeError.code:
                raise refused(f"{hosts}: {printable(asked[place])}", EXCEPTIONS[code]())
        return found

    @property
    def _path_in_flight(self) -> str:
        return self._paths[min(self._sent - self._in_flight, len(self._paths) - 1)]
