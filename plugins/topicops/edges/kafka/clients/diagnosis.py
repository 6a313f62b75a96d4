"""Why no broker answers: connects to each bootstrap server, and to the addresses that brokers advertise.

Librdkafka reports a refused port, an untrusted certificate and the wrong kind of port all as a timeout, or not at all.
A client sends its requests to the advertised addresses. The bootstrap address may work all the same, as through a
port-forward; clients then try the others for minutes.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from topicops.edges.connections.lookup import MECHANISMS
from topicops.edges.connections.port_probe import (
    CLOSED,
    PortProblem,
    error_of,
    opened,
    other_server,
    port_problems,
    reason_of,
    speaks_tls,
    unverified_tls,
)
from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.clients.settings import LIMIT, PROTOCOLS, trusting, wait_all
from topicops.edges.threads import run_in_thread
from topicops.model.errors import (
    CertificateError,
    ClusterError,
    ClusterUnreachableError,
    ConnectionSecurityError,
    LoginRefusedError,
)
from topicops.model.printable import address, printable

SASL_HANDSHAKE = 17
NOT_A_SASL_PORT = 34
"""Error of a listener without SASL that gets a handshake: ILLEGAL_SASL_STATE."""
_MAX_ANSWER_BYTES = 4096
ADVERTISED_S = 8.0
"""Seconds that the addresses are tried, all at once; resolving a name has no time limit of its own."""
SHOWN = 3
"""Number of brokers that a message names."""
WAY_OUT = "Name a listener whose addresses are reachable from here, or run inside that network"


def diagnosis(properties: Mapping[str, str]) -> list[PortProblem]:
    """List a problem for each bootstrap server that has one; those that can be fixed here come first.

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
    """Return the problem of a port that takes connections, and gives no answer of Kafka's."""
    if other := other_server(host, port):
        text = f"{other} answers here, not a Kafka broker; name a broker's port, by default 9092"
        return PortProblem(ConnectionSecurityError, f"{address(host, port)}: {text}")
    reason = reason_of(error)
    doubt = LIMIT if reason == CLOSED else "; does the broker hang, or is this the port of another server?"
    return PortProblem(ClusterUnreachableError, f"{address(host, port)}: it takes connections: {reason}{doubt}")


def _distrusted(host: str, port: int, properties: Mapping[str, str]) -> PortProblem | None:
    """Return the problem of the broker's certificate, from Python: librdkafka has one sentence for all problems."""
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
    """SASL mechanisms that the port takes, none where it takes no login; None means not known. Raises ``OSError``.

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


class Unreachable(NamedTuple):
    text: str
    is_unresolved: bool
    """The host's name is not known here."""


def address_problem(addresses: Mapping[int, str]) -> str:
    """Say why no request can be relied on: a name is not known here, or no address answers; else empty.

    Some brokers that take no connection are a normal fault, which only their own partitions feel.
    """
    tries = {broker: run_in_thread(partial(_problem, address)) for broker, address in addresses.items()}
    wait_all(list(tries.values()), ADVERTISED_S)
    late = Unreachable(f"cannot resolve or reach within {ADVERTISED_S:g} s", is_unresolved=True)
    all_found = {broker: future.result() if future.done() else late for broker, future in tries.items()}
    found = {broker: problem for broker, problem in all_found.items() if problem is not None}
    unresolved = {broker: problem for broker, problem in found.items() if problem.is_unresolved}
    named = found if found and len(found) == len(addresses) else unresolved
    if not named:
        return ""
    first = [f"broker {b} advertises {printable(addresses[b])}, which this host {named[b].text}" for b in sorted(named)]
    more = f"; {len(first) - SHOWN} more brokers" if len(first) > SHOWN else ""
    return f"{'; '.join(first[:SHOWN])}{more}; the bootstrap address works. {WAY_OUT}"


def require_reachable(connections: Sequence[Mapping[str, str]]) -> None:
    """Raise ``ClusterUnreachableError`` where this host cannot use the addresses that brokers advertise."""
    for properties in connections:
        with closing(BrokerConnections(properties)) as brokers:
            reachable_brokers(brokers, properties)


def reachable_brokers(connections: BrokerConnections, properties: Mapping[str, str]) -> dict[int, str]:
    """Return ``host:port`` of each broker by id, of which a request can be relied on. Raises ``ClusterError``."""
    addresses = answering_brokers(connections, properties)
    if problem := address_problem(addresses):
        raise ClusterUnreachableError(problem)
    return addresses


def answering_brokers(connections: BrokerConnections, properties: Mapping[str, str]) -> dict[int, str]:
    """Return ``host:port`` of each broker by id. Raises ``ClusterError`` with the cause at each bootstrap server."""
    try:
        return connections.brokers()
    except ClusterError as error:
        if found := diagnosis(properties):
            raise error_of(found, "no broker answers: ") from error
        raise


def _problem(address: str) -> Unreachable | None:
    host, _, port = address.rpartition(":")
    try:
        opened(host.strip("[]"), int(port), None).close()
    except socket.gaierror:
        return Unreachable("cannot resolve", is_unresolved=True)
    except (OSError, ValueError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "no port"
        return Unreachable(f"cannot reach: {reason}", is_unresolved=False)
    return None
