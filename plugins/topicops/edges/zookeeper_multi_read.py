"""Many znodes in one request: ``multiRead``, which kazoo lacks, and pipelined reads for servers before 3.6.

Source: org.apache.zookeeper.ZooDefs.OpCode#multiRead (22), MultiOperationRecord and MultiResponse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from kazoo.exceptions import EXCEPTIONS, NoNodeError
from kazoo.protocol.serialization import (
    GetData,
    MultiHeader,
    int_struct,
    multiheader_struct,
    read_buffer,
    stat_struct,
)
from kazoo.protocol.states import ZnodeStat

from topicops.edges.zookeeper_session import Znode, ZooKeeperSession, refused
from topicops.model.errors import ClusterError
from topicops.model.printable import printable

MOST_A_BATCH = 100
FIRST_BATCH = 50
REPLY_BYTES = 750_000
"""What a batch's reply should weigh: bigger ones hold up other clients, smaller ones waste round trips."""
PIPELINE_WINDOW = 200
"""Requests in flight on the way of one request a znode."""

_END = multiheader_struct.pack(-1, True, -1)
_ERROR = -1


class MultiRead:
    """The request, in the form kazoo's connection sends: ``type``, ``serialize``, ``deserialize``."""

    type: ClassVar[int] = 22

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        """With the chroot: what goes through ``_call`` is sent as it stands."""

    def serialize(self) -> bytes:
        head = bytes(MultiHeader(GetData.type, False, -1).serialize())
        asked = b"".join(head + bytes(GetData(path, None).serialize()) for path in self.paths)
        return asked + bytes(_END)

    def deserialize(self, reply: bytes, offset: int) -> tuple[list[Znode | int], int]:
        """Give a znode or an error code for each path, in order, and how many bytes the reply had."""
        start = offset
        found: list[Znode | int] = []
        while True:
            kind, done, _ = multiheader_struct.unpack_from(reply, offset)
            offset += multiheader_struct.size
            if done:
                return found, offset - start
            if kind == _ERROR:
                found.append(int_struct.unpack_from(reply, offset)[0])
                offset += int_struct.size
                continue
            data, offset = read_buffer(reply, offset)
            found.append(Znode(data, ZnodeStat._make(stat_struct.unpack_from(reply, offset))))
            offset += stat_struct.size


def read_batched(
    session: ZooKeeperSession, paths: Sequence[str], *, request: type[MultiRead] = MultiRead
) -> list[Znode | None]:
    """Every znode in the order of ``paths``, None where there is none; one batch in flight, bounded by reply bytes.

    Raises:
        UnknownRequestError: The server does not know multiRead.
        ClusterError: As ``ZooKeeperSession.settle``; a refusal names its own znode.

    """
    found: list[Znode | None] = []
    size = FIRST_BATCH
    while len(found) < len(paths):
        batch = paths[len(found) : len(found) + size]
        answers, reply_bytes = _call(session, request, batch)
        if len(answers) != len(batch):
            raise ClusterError(f"{session.hosts}: {batch[0]}: {len(batch)} znodes asked, {len(answers)} answered")
        found.extend(_znode_or_none(session, path, answer) for path, answer in zip(batch, answers, strict=True))
        size = next_batch_size(entries=len(batch), reply_bytes=reply_bytes)
    return found


def next_batch_size(*, entries: int, reply_bytes: int) -> int:
    """How many znodes to ask for next, taking them to be as big as the last ones."""
    return max(1, min(MOST_A_BATCH, REPLY_BYTES * entries // max(1, reply_bytes)))


def read_pipelined(session: ZooKeeperSession, paths: Sequence[str]) -> list[Znode | None]:
    """Do what ``read_batched`` does, with one request a znode and a window of them in flight."""
    found: list[Znode | None] = []
    for start in range(0, len(paths), PIPELINE_WINDOW):
        window = paths[start : start + PIPELINE_WINDOW]
        pending = [session.client.get_async(path) for path in window]
        found.extend(session.settle_znode(path, result) for path, result in zip(window, pending, strict=True))
    return found


def _call(session: ZooKeeperSession, request: type[MultiRead], batch: Sequence[str]) -> tuple[list[Znode | int], int]:
    """Send one batch. The one place that uses kazoo's private ``_call``."""
    pending = session.client.handler.async_result()
    send: Callable[[Any, Any], object] = session.client._call  # noqa: SLF001 - kazoo has no public way to add a request
    send(request([session.chroot + path for path in batch]), pending)
    answers: tuple[list[Znode | int], int] | None = session.settle(batch[0], pending)
    if answers is None:
        raise ClusterError(f"{session.hosts}: {batch[0]}: ZooKeeper refused the whole batch with NoNode")
    return answers


def _znode_or_none(session: ZooKeeperSession, path: str, answer: Znode | int) -> Znode | None:
    if isinstance(answer, Znode):
        return answer
    if answer == NoNodeError.code:
        return None
    raise refused(f"{session.hosts}: {printable(path)}", EXCEPTIONS[answer]())
