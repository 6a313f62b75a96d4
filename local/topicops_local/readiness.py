"""Whether a server is ready: two small requests over a socket, without a client library and its threads.

A broker registers in ZooKeeper before its port opens, so only an answer from its own port proves that it is up.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from topicops.model.errors import LocalClusterError

HANGS_S = 900.0
"""A server that lives, and has not done for so long what it was asked for, hangs.

One that ends is seen at once, so this is not short: a slow machine takes minutes for what others do in seconds.
"""
_POLL_S = 0.05
_METADATA = 3
_VERSION = 1
_MAX_ANSWER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """What one broker knows of its cluster."""

    brokers: frozenset[int]
    controller: int
    """Id of the controller; -1 means not known."""


def ask_broker(port: int, *, timeout_s: float = 1.0) -> BrokerAnswer | None:
    """Metadata without topics from the plaintext listener on 127.0.0.1; None when it does not answer in time.

    Source: MetadataRequest.json and MetadataResponse.json, version 1.
    """
    client = b"topicops"
    body = struct.pack(f">hhih{len(client)}si", _METADATA, _VERSION, 1, len(client), client, 0)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            (size,) = struct.unpack(">i", _receive(connection, 4))
            return _decode(_receive(connection, min(size, _MAX_ANSWER_BYTES)))
    except (OSError, EOFError, struct.error):
        return None


def zookeeper_answers(port: int, *, timeout_s: float = 1.0) -> bool:
    """Return whether a ZooKeeper on 127.0.0.1 serves requests; every server allows the command ``srvr``."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
            connection.sendall(b"srvr")
            answer = b""
            while chunk := connection.recv(4096):
                answer += chunk
    except OSError:
        return False
    return b"Mode: " in answer


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        if not (chunk := connection.recv(size - len(received))):
            raise EOFError
        received += chunk
    return bytes(received)


def _decode(answer: bytes) -> BrokerAnswer:
    """Correlation id; brokers (id, host, port, rack); controller. A text follows its length, which is -1 for null."""
    (count,) = struct.unpack_from(">i", answer, 4)
    offset, brokers = 8, set()
    for _ in range(count):
        (broker,) = struct.unpack_from(">i", answer, offset)
        brokers.add(broker)
        offset = _after_text(answer, _after_text(answer, offset + 4) + 4)
    (controller,) = struct.unpack_from(">i", answer, offset)
    return BrokerAnswer(frozenset(brokers), controller)


def _after_text(answer: bytes, offset: int) -> int:
    (length,) = struct.unpack_from(">h", answer, offset)
    return int(offset + 2 + max(length, 0))


def wait_until_ready(
    missing: Callable[[], str | None],
    roles: Sequence[str],
    *,
    timeout_s: float,
    is_alive: Callable[[str], bool],
    log_end: Callable[[str], str],
    progress: Callable[[str], None],
) -> None:
    """Wait until ``missing`` returns None; each new reason that it returns is shown.

    Raises:
        LocalClusterError: The time is over, or the server of a role has ended; with the end of its log.
    """
    deadline = time.monotonic() + timeout_s
    shown = None
    while reason := missing():
        for role in roles:
            if not is_alive(role):
                raise LocalClusterError(f"{role} ended while it started.\n{log_end(role)}")
        if time.monotonic() > deadline:
            logs = "\n".join(map(log_end, roles))
            raise LocalClusterError(f"after {timeout_s:.0f} s: {reason}.\n{logs}")
        if reason != shown:
            progress(reason)
            shown = reason
        time.sleep(_POLL_S)
