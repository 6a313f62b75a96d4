"""Finds out why a server's port cannot be used, over a plain socket: clients report every cause as a time-out."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from topicops.model.errors import CertificateError, ClusterError, ClusterUnreachableError
from topicops.model.printable import printable

PATIENCE_S = 1.5
"""The longest wait for each step of one server's answer."""


class PortProblem(NamedTuple):
    kind: type[ClusterError]
    text: str


def port_problems(
    servers: Sequence[tuple[str, int]], examine: Callable[[str, int], PortProblem | None]
) -> list[PortProblem]:
    """Examine all servers at the same time; those to be fixed in the connection come before those that are down."""
    with ThreadPoolExecutor(max_workers=max(1, len(servers))) as pool:
        answers = pool.map(lambda server: examine(server[0], server[1]), servers)
        found = [finding for finding in answers if finding is not None]
    return sorted(found, key=lambda finding: finding.kind is ClusterUnreachableError)


def error_of(found: Sequence[PortProblem], before: str) -> ClusterError:
    """Return all problems in one sentence, as an error of the first one's kind."""
    return found[0].kind(before + "; ".join(dict.fromkeys(finding.text for finding in found)))


def opened(host: str, port: int, context: ssl.SSLContext | None) -> socket.socket:
    """Open a connection, with TLS if there is a context. Raises ``OSError``, of which ``ssl.SSLError`` is one."""
    try:
        connection = socket.create_connection((host, port), timeout=PATIENCE_S)
    except (OverflowError, UnicodeError) as error:
        raise OSError(0, "no host and port can be written like this") from error
    if context is None:
        return connection
    try:
        return context.wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise


CLOSED = "it closes the connection without an answer"
OTHER_SERVER = "Or is this the port of another server?"


def untrusted(where: str, error: ssl.SSLCertVerificationError, authorities: str) -> PortProblem:
    return PortProblem(
        CertificateError,
        f"{where}: its certificate is not trusted: {error.verify_message}; "
        f"compare {authorities} of the connection, and the host with the names in the certificate",
    )


def speaks_tls(host: str, port: int) -> bool:
    """Return whether the server answers a TLS handshake, if only with an alert; no data is sent."""
    try:
        opened(host, port, unverified_tls()).close()
    except ssl.SSLError as error:
        return is_alert(error)
    except OSError:
        return False
    return True


def verified_tls(*, ca_file: str | None = None, ca_pem: str | None = None) -> ssl.SSLContext:
    """Return a context that checks the server's chain and host name, by the system's authorities if none is given.

    ``ca_file`` may be a folder of certificates, as OpenSSL's ``c_rehash`` makes it. Raises ``OSError`` where it cannot
    be read, or holds no certificate. It takes the certificates that librdkafka takes: from Python 3.13 on, the default
    refuses an authority that does not name its key usage, as many companies' own do not.
    """
    folder = ca_file if ca_file and Path(ca_file).is_dir() else None
    context = ssl.create_default_context(cafile=None if folder else ca_file, capath=folder, cadata=ca_pem)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def unverified_tls() -> ssl.SSLContext:
    """TLS that checks no certificate: only for answers that are not secret and only change a message."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def is_alert(error: OSError | None) -> bool:
    return isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "")


def reason_of(error: OSError | None) -> str:
    """Return why there is no answer; None means that the server closed the connection."""
    if error is None or isinstance(error, BrokenPipeError | ConnectionResetError | ConnectionAbortedError):
        return CLOSED
    if isinstance(error, TimeoutError):
        return "no answer"
    return printable(error.strerror or str(error))
