"""Why no session came about: each server is asked one question, over a connection of our own.

kazoo reports a refused port, an untrusted certificate, a missing one and the wrong kind of port all as a time-out.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable, Sequence

from topicops.edges.connections.lookup import Tls
from topicops.edges.connections.port_probe import Finding, findings, is_alert, opened, speaks_tls, words_of
from topicops.model.errors import CertificateError, ClusterUnreachableError, ConnectionSecurityError
from topicops.model.printable import printable

QUESTION = b"srvr"
"""The one word that every server allows; even where it is forbidden, a server says so."""


def diagnosis(servers: Sequence[tuple[str, int]], context: ssl.SSLContext | None) -> list[Finding]:
    """One finding for each server that has something wrong; those to be mended here come first.

    Args:
        servers: Host, as the connection names it, and port.
        context: How TLS is spoken; None: in plain text.

    """
    return findings(servers, lambda host, port: _examine(host, port, context))


def tls_context(tls: Tls) -> ssl.SSLContext:
    """How TLS is spoken: the server's chain and host name are checked, and no older version than 1.2 is taken.

    Raises:
        ConnectionSecurityError: A file cannot be used; the text names the field.

    """
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise _unusable("ca_file", tls.ca_file, error) from error
    if tls.certificate_file is None:
        return context
    try:
        # Never None: OpenSSL would ask a person on the terminal.
        context.load_cert_chain(tls.certificate_file, tls.key_file, password=tls.key_password or "")
    except (OSError, ssl.SSLError, ValueError) as error:
        files = f"{tls.certificate_file}, {tls.key_file}"
        raise _unusable("certificate_file, key_file or key_password", files, error) from error
    return context


def _unusable(field: str, file: str | None, error: Exception) -> ConnectionSecurityError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ConnectionSecurityError(
        f"{field} of the ZooKeeper connection cannot be used: {printable(file or '')}: {printable(reason)}; "
        "name files in PEM form that this user may read, and the key's password where it has one"
    )


def _examine(host: str, port: int, context: ssl.SSLContext | None) -> Finding | None:
    where = f"{host}:{port}"
    try:
        answer = _answer(host, port, context)
    except ssl.SSLCertVerificationError as error:
        return Finding(
            CertificateError,
            f"{where}: its certificate is not trusted: {error.verify_message}; "
            "compare ca_file of the connection, and the host with the names in the certificate",
        )
    except OSError as error:
        return _after_failure(host, port, context, error)
    if not answer:
        return _after_failure(host, port, context, None)
    if b"not currently serving" in answer:
        return Finding(ClusterUnreachableError, f"{where}: it runs and serves nobody: its ensemble has no quorum")
    return None


def _after_failure(host: str, port: int, context: ssl.SSLContext | None, error: OSError | None) -> Finding:
    """Tell by a second question what a failed one means; ``error`` None: the server hung up without a word."""
    where = f"{host}:{port}"
    if isinstance(error, ssl.SSLError) and is_alert(error):
        return _refused_certificate(where, f" ({error.reason})")
    if context is None and speaks_tls(host, port):
        return Finding(
            ConnectionSecurityError, f"{where}: it speaks TLS alone; set tls: true in the connection's extra"
        )
    if context is not None and _speaks_plainly(host, port):
        return Finding(
            ConnectionSecurityError,
            f"{where}: it speaks no TLS; name the server's secure port, or take tls out of the connection",
        )
    hung_up = error is None or isinstance(error, ssl.SSLError | ConnectionError)
    if context is not None and hung_up and speaks_tls(host, port):
        return _refused_certificate(where, "")
    return Finding(ClusterUnreachableError, f"{where}: {words_of(error)}")


def _refused_certificate(where: str, reason: str) -> Finding:
    return Finding(
        CertificateError,
        f"{where}: it hung up on our certificate, or for want of one{reason}; "
        "give the connection a certificate_file and key_file that the server trusts",
    )


def _speaks_plainly(host: str, port: int) -> bool:
    try:
        return bool(_answer(host, port, None))
    except OSError:
        return False


def _answer(host: str, port: int, context: ssl.SSLContext | None) -> bytes:
    with opened(host, port, context) as connection:
        connection.sendall(QUESTION)
        return b"".join(_chunks(connection))


def _chunks(connection: socket.socket) -> Iterable[bytes]:
    while chunk := connection.recv(4096):
        yield chunk
