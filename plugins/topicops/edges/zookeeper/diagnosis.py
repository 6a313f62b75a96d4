"""Finds out why a session could not be opened, with one request to each server over a plain socket.

kazoo reports a refused port, an untrusted certificate, a missing one and the wrong kind of port all as a time-out.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from topicops.edges.connections.lookup import Tls
from topicops.edges.connections.port_probe import (
    CLOSED,
    OTHER_SERVER,
    PortProblem,
    is_alert,
    opened,
    port_problems,
    reason_of,
    speaks_tls,
    untrusted,
    verified_tls,
)
from topicops.model.errors import CertificateError, ClusterUnreachableError, ConnectionSecurityError
from topicops.model.printable import address, printable

QUESTION = b"srvr"
"""The one command that every server allows by default; a server that forbids it says so."""


def diagnosis(servers: Sequence[tuple[str, int]], context: ssl.SSLContext | None) -> list[PortProblem]:
    """List a problem for each server that has one; those of the connection first. No context means plain text."""
    return port_problems(servers, lambda host, port: _examine(host, port, context))


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Return the settings for TLS: the server's chain and host name are checked, versions older than 1.2 are refused.

    Raises ``ConnectionSecurityError`` for a file that cannot be used; the text names the field.
    """
    try:
        context = verified_tls(ca_file=tls.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise _unusable("ca_file", error) from None
    if tls.certificate_file is None:
        return context
    try:
        # Never None: OpenSSL would ask for the password on the terminal.
        context.load_cert_chain(tls.certificate_file, tls.key_file, password=tls.key_password or "")
    except (OSError, ssl.SSLError, ValueError) as error:
        raise _unusable("certificate_file, key_file or key_password", error) from None
    return context


def _unusable(field: str, error: Exception) -> ConnectionSecurityError:
    """Leave out the name of the file, which is a value of the connection."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ConnectionSecurityError(
        f"{field} of the ZooKeeper connection cannot be used: {printable(reason)}; "
        "name files in PEM form that this user may read, and the key's password where it has one"
    )


def _examine(host: str, port: int, context: ssl.SSLContext | None) -> PortProblem | None:
    where = address(host, port)
    try:
        answer = _answer(host, port, context)
    except ssl.SSLCertVerificationError as error:
        return untrusted(where, error, "ca_file")
    except OSError as error:
        return _after_failure(host, port, context, error)
    if not answer:
        return _after_failure(host, port, context, None)
    if b"not currently serving" in answer:
        return PortProblem(
            ClusterUnreachableError, f"{where}: it runs but serves no client: its ensemble has no quorum"
        )
    return None


def _after_failure(host: str, port: int, context: ssl.SSLContext | None, error: OSError | None) -> PortProblem:
    """Find the cause of a failed request by a second one; ``error`` None means: the server closed the connection."""
    where, has_tls = address(host, port), is_alert(error) or speaks_tls(host, port)
    if context is None and has_tls:
        return PortProblem(
            ConnectionSecurityError, f"{where}: it accepts only TLS; set tls: true in the connection's extra"
        )
    refused = isinstance(error, ConnectionRefusedError)
    if context is not None and not refused and (error is None or isinstance(error, ssl.SSLError | ConnectionError)):
        if not has_tls:
            return PortProblem(
                ConnectionSecurityError,
                f"{where}: it speaks no TLS; name the server's secure port, or take tls out of the connection",
            )
        return PortProblem(
            CertificateError,
            f"{where}: it closed the connection because of our certificate, or because we sent none; "
            "give the connection a certificate_file and key_file that the server trusts",
        )
    reason, limit = reason_of(error), "; has it reached a limit of connections of one address (maxClientCnxns)?"
    return PortProblem(
        ClusterUnreachableError, f"{where}: {reason}{f'{limit} {OTHER_SERVER}' if reason == CLOSED else ''}"
    )


def _answer(host: str, port: int, context: ssl.SSLContext | None) -> bytes:
    with opened(host, port, context) as connection:
        connection.sendall(QUESTION)
        return b"".join(iter(lambda: connection.recv(4096), b""))
