"""Why no broker answers: connects to each bootstrap server, and to the addresses that brokers advertise.

Librdkafka reports a refused port, an untrusted certificate and the wrong kind of port all as a timeout, or not at all.
A client sends its requests to the advertised addresses. The bootstrap address may work all the same, as through a
port-forward; clients then try the others for minutes.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from topicops.edges.connections.lookup import MECHANISMS
from topicops.edges.connections.port_probe import (
    CLOSED,
    OTHER_SERVER,
    PortProblem,
    error_of,
    opened,
    port_problems,
    reason_of,
    speaks_tls,
    untrusted,
)
from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.clients.settings import LIMIT, PROTOCOLS, trusting, wait_all
from topicops.edges.threads import run_in_thread
from topicops.model.errors import ClusterError, ClusterUnreachableError, ConnectionSecurityError, LoginRefusedError
from topicops.model.printable import address, printable

SASL_HANDSHAKE = b"\0\0\0\x18\0\x11\0\x01\0\0\0\x01\0\x08topicops\0\x04NONE"
"""Asks for a mechanism that there is not, and so for those that there are; it carries no secret.

Source: SaslHandshakeRequest.json and SaslHandshakeResponse.json, version 1.
"""
NOT_A_SASL_PORT = b"\0\x22"
"""Error of a listener without SASL that gets a handshake: ILLEGAL_SASL_STATE."""
_MAX_ANSWER_BYTES = 4096
_TEXT = re.compile(rb"[A-Z][A-Z0-9-]+")
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
    try:
        mechanisms = _mechanisms(host, port, trusting(properties) if has_tls else None)
    except ssl.SSLCertVerificationError as error:  # librdkafka has one sentence for all problems of certificates
        return untrusted(where, error, "ssl.ca.location")
    except (OSError, TypeError, ValueError) as error:
        if has_tls or not isinstance(error, OSError):
            return None  # another problem, or a file that librdkafka names itself
        reason = reason_of(error)
        doubt = f"{LIMIT if reason == CLOSED else '; does the broker hang?'} {OTHER_SERVER}"
        return PortProblem(ClusterUnreachableError, f"{where}: it takes connections: {reason}{doubt}")
    return _login_problem(where, mechanisms, properties)


def _login_problem(where: str, mechanisms: tuple[str, ...], properties: Mapping[str, str]) -> PortProblem | None:
    protocol = _protocol(properties)
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or "GSSAPI"
    offered, wants_login = ", ".join(mechanisms), protocol.startswith("SASL")
    if mechanisms and not wants_login:
        return PortProblem(LoginRefusedError, f"{where}: it wants a login ({offered}); security.protocol is {protocol}")
    if wants_login and not mechanisms:
        return PortProblem(ConnectionSecurityError, f"{where}: it takes no login; security.protocol is {protocol}")
    if wants_login and mechanism not in mechanisms:
        shown = mechanism if mechanism in MECHANISMS else "another"
        return PortProblem(LoginRefusedError, f"{where}: it takes {offered}; sasl.mechanism is {shown}")
    return None


def _protocol(properties: Mapping[str, str]) -> str:
    written = properties.get("security.protocol", "PLAINTEXT").upper()
    return written if written in PROTOCOLS else "PLAINTEXT"


def _mechanisms(host: str, port: int, context: ssl.SSLContext | None) -> tuple[str, ...]:
    """SASL mechanisms that the port takes, none where it takes no login. Raises ``OSError``."""
    with opened(host, port, context) as connection:
        connection.sendall(SASL_HANDSHAKE)
        answer = connection.recv(_MAX_ANSWER_BYTES)
    if not answer:
        raise ConnectionResetError
    if answer[4:8] != b"\0\0\0\1":  # the number of the question
        raise OSError(0, "its answer is none of Kafka's")
    # After size and number: an error code, a count, and texts with their lengths before them.
    return () if answer[8:10] == NOT_A_SASL_PORT else tuple(text.decode() for text in _TEXT.findall(answer, 14))


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
