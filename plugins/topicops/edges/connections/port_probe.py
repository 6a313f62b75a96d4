"""What is wrong with one server's port, found out over a connection of our own: clients report it all as a time-out."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from topicops.model.errors import ClusterError, ClusterUnreachableError
from topicops.model.printable import printable

PATIENCE_S = 1.5
"""How long one server may take for each step of its answer."""


class Finding(NamedTuple):
    """What is wrong with one server, as the kind of error that it is."""

    kind: type[ClusterError]
    text: str


def findings(servers: Sequence[tuple[str, int]], examine: Callable[[str, int], Finding | None]) -> list[Finding]:
    """Examine all at once; those that must be mended come before those that are only down."""
    with ThreadPoolExecutor(max_workers=max(1, len(servers))) as pool:
        answers = pool.map(lambda server: examine(server[0], server[1]), servers)
        found = [finding for finding in answers if finding is not None]
    return sorted(found, key=lambda finding: finding.kind is ClusterUnreachableError)


def error_of(found: Sequence[Finding], before: str) -> ClusterError:
    """All of it in one sentence, as the kind of the first."""
    return found[0].kind(before + "; ".join(dict.fromkeys(finding.text for finding in found)))


def opened(host: str, port: int, context: ssl.SSLContext | None) -> socket.socket:
    """A connection; with a context after its handshake. Raises ``OSError``, of which ``ssl.SSLError`` is one."""
    connection = socket.create_connection((host, port), timeout=PATIENCE_S)
    if context is None:
        return connection
    try:
        return context.wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise


def speaks_tls(host: str, port: int) -> bool:
    """Whether the other side answers a handshake, if only to refuse it. Nothing is sent, so nobody is trusted."""
    try:
        opened(host, port, trusting_anybody()).close()
    except ssl.SSLError as error:
        return is_alert(error)
    except OSError:
        return False
    return True


def trusting_anybody() -> ssl.SSLContext:
    """For questions whose answer is no secret, and decides nothing but the words of a message."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def is_alert(error: OSError | None) -> bool:
    """Whether the other side ended the handshake with a word of TLS."""
    return isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "")


def words_of(error: OSError | None) -> str:
    """Why there is no answer; None: the server hung up."""
    if error is None:
        return "it hangs up without a word"
    if isinstance(error, TimeoutError):
        return "no answer"
    return printable(error.strerror or str(error))
