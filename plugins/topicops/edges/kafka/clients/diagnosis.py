"""Why no broker answers: connects to each bootstrap server and examines it.

Librdkafka reports a refused port, an untrusted certificate and the wrong kind of port all as a timeout, or not at all.
"""

from __future__ import annotations

import ssl
import struct
from collections.abc import Mapping

from topicops.edges.connections.lookup import MECHANISMS
from topicops.edges.connections.port_probe import (
    CLOSED,
    PortProblem,
    opened,
    other_server,
    port_problems,
    reason_of,
    speaks_tls,
    unverified_tls,
)
from topicops.edges.kafka.clients.tls import trusting
from topicops.model.errors import CertificateError, ClusterUnreachableError, ConnectionSecurityError, LoginRefusedError
from topicops.model.printable import address, printable

SASL_HANDSHAKE = 17
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
NOT_A_SASL_PORT = 34
"""ILLEGAL_SASL_STATE: the answer of a listener without SASL to a handshake."""
_MAX_ANSWER_BYTES = 4096
LIMIT = "; has it reached a limit of connections of one address (max.connections.per.ip)?"
"""What a connection may mean that the broker closes at once."""


def diagnosis(properties: Mapping[str, str]) -> list[PortProblem]:
    """One problem for each bootstrap server that has one; those that can be fixed here come first.

    A wrong password is not found: only the client itself logs in.
    """
    return port_problems(_servers(properties), lambda host, port: _examine(host, port, properties))


def _servers(properties: Mapping[str, str]) -> list[tuple[str, int]]:
    text = properties.get("bootstrap.servers") or properties.get("metadata.broker.list") or ""
    written = [server.strip().rpartition("://")[2] for server in text.split(",") if server.strip()]
    split = [
        server.rpartition(":") if ":" in server.rpartition("]")[2] else (server, ":", "9092") for server in written
    ]
    return [(host.strip("[]"), int(port)) for host, _, port in split if port.isdecimal() and len(port) <= 5]


def _examine(host: str, port: int, properties: Mapping[str, str]) -> PortProblem | None:
    where = address(host, port)
    protocol = _protocol(properties)
    try:
        opened(host, port, None).close()
    except OSError as error:
        return PortProblem(ClusterUnreachableError, f"{where}: {reason_of(error)}")
    has_tls = speaks_tls(host, port)
    if has_tls != protocol.endswith("SSL"):
        speaks = "it accepts only TLS" if has_tls else "it speaks no TLS"
        return PortProblem(ConnectionSecurityError, f"{where}: {speaks}; security.protocol is {protocol}")
    if has_tls and (distrusted := _distrusted(host, port, properties)):
        return distrusted
    try:
        mechanisms = _mechanisms(host, port, unverified_tls() if has_tls else None)
    except OSError as error:
        return None if has_tls else _not_kafka(host, port, error)
    return None if mechanisms is None else _login_problem(where, mechanisms, properties)


def _not_kafka(host: str, port: int, error: OSError) -> PortProblem:
    """The problem of a port that takes connections, and gives no answer of Kafka's."""
    if other := other_server(host, port):
        text = f"{other} answers here, not a Kafka broker; name a broker's port, by default 9092"
        return PortProblem(ConnectionSecurityError, f"{address(host, port)}: {text}")
    reason = reason_of(error)
    doubt = LIMIT if reason == CLOSED else "; does the broker hang, or is this the port of another server?"
    return PortProblem(ClusterUnreachableError, f"{address(host, port)}: it takes connections: {reason}{doubt}")


def _distrusted(host: str, port: int, properties: Mapping[str, str]) -> PortProblem | None:
    """The problem of the broker's certificate, from Python: librdkafka has one sentence for all problems."""
    try:
        opened(host, port, trusting(properties)).close()
    except ssl.SSLCertVerificationError as error:
        return PortProblem(
            CertificateError,
            f"{address(host, port)}: its certificate is not trusted: {error.verify_message}; "
            "compare ssl.ca.location of the connection, and the host with the names in the certificate",
        )
    except (OSError, TypeError, ValueError):
        return None  # another problem, or a file that librdkafka names itself
    return None


def _login_problem(where: str, mechanisms: tuple[str, ...], properties: Mapping[str, str]) -> PortProblem | None:
    protocol = _protocol(properties)
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or "GSSAPI"
    offered = ", ".join(map(printable, mechanisms))
    wants_login = protocol.startswith("SASL")
    if mechanisms and not wants_login:
        return PortProblem(LoginRefusedError, f"{where}: it wants a login ({offered}); security.protocol is {protocol}")
    if wants_login and not mechanisms:
        return PortProblem(ConnectionSecurityError, f"{where}: it takes no login; security.protocol is {protocol}")
    if wants_login and mechanism not in mechanisms:
        return PortProblem(
            LoginRefusedError,
            f"{where}: it takes {offered}; sasl.mechanism is {mechanism if mechanism in MECHANISMS else 'another'}",
        )
    return None


def _protocol(properties: Mapping[str, str]) -> str:
    written = properties.get("security.protocol", "PLAINTEXT").upper()
    return written if written in PROTOCOLS else "PLAINTEXT"


def _mechanisms(host: str, port: int, context: ssl.SSLContext | None) -> tuple[str, ...] | None:
    """SASL mechanisms that the port takes, none where it takes no login; None: not known. Raises ``OSError``.

    The question carries no secret. Source: SaslHandshakeRequest.json and SaslHandshakeResponse.json, version 1.
    """
    client, nonsense = b"topicops", b"NONE"
    body = struct.pack(
        f">hhih{len(client)}sh{len(nonsense)}s", SASL_HANDSHAKE, 1, 1, len(client), client, len(nonsense), nonsense
    )
    with opened(host, port, context) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body)
        answer = connection.recv(_MAX_ANSWER_BYTES)
    if not answer:
        raise ConnectionResetError
    if answer[4:8] != b"\0\0\0\1":  # the number of the question
        raise OSError(0, "its answer is none of Kafka's")
    try:
        return _decoded(answer)
    except (struct.error, UnicodeDecodeError):
        return None


def _decoded(answer: bytes) -> tuple[str, ...]:
    """Read, after size and correlation id, an error code, and texts with their length before them."""
    error, count = struct.unpack_from(">hi", answer, 8)
    if error == NOT_A_SASL_PORT:
        return ()
    offset, found = 14, []
    for _ in range(count):
        (length,) = struct.unpack_from(">h", answer, offset)
        found.append(struct.unpack_from(f"{length}s", answer, offset + 2)[0].decode("ascii"))
        offset += 2 + length
    return tuple(found)
