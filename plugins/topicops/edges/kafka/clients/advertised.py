"""Whether this host reaches the addresses that brokers advertise: a client sends its requests there.

The bootstrap address may work all the same, as through a port-forward. Clients then try the others for minutes.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from topicops.edges.connections.port_probe import error_of, opened, reason_of
from topicops.edges.kafka.clients.broker_connections import BrokerConnections
from topicops.edges.kafka.clients.diagnosis import diagnosis
from topicops.edges.kafka.clients.settings import wait_all
from topicops.edges.threads import run_in_thread
from topicops.model.errors import ClusterError, ClusterUnreachableError
from topicops.model.printable import printable

ADVERTISED_S = 8.0
"""How long the addresses are tried, all at the same time; resolving a name has no time limit of its own."""
SHOWN = 3
"""How many brokers a message names."""
WAY_OUT = "Name a listener whose addresses are reachable from here, or run inside that network"


class Unreachable(NamedTuple):
    """Why this host does not reach one address."""

    text: str
    is_unresolved: bool
    """The host's name is not known here."""


def unreachable(addresses: Mapping[int, str]) -> dict[int, Unreachable]:
    """The brokers whose advertised ``host:port`` cannot be resolved, or takes no connection."""
    tries = {broker: run_in_thread(partial(_problem, address)) for broker, address in addresses.items()}
    wait_all(list(tries.values()), ADVERTISED_S)
    late = Unreachable(f"cannot resolve or reach within {ADVERTISED_S:g} s", is_unresolved=True)
    found = {broker: future.result() if future.done() else late for broker, future in tries.items()}
    return {broker: problem for broker, problem in found.items() if problem is not None}


def address_problem(addresses: Mapping[int, str], *, works: str = "; the bootstrap address works") -> str:
    """Why no request can be relied on: a name is not known here, or no address answers; empty where neither is so.

    Some brokers that take no connection are a normal fault, which only their own partitions feel.
    """
    found = unreachable(addresses)
    unresolved = {broker: problem for broker, problem in found.items() if problem.is_unresolved}
    named = found if found and len(found) == len(addresses) else unresolved
    if not named:
        return ""
    first = [f"broker {b} advertises {printable(addresses[b])}, which this host {named[b].text}" for b in sorted(named)]
    more = f"; {len(first) - SHOWN} more brokers" if len(first) > SHOWN else ""
    return f"{'; '.join(first[:SHOWN])}{more}{works}. {WAY_OUT}"


def require_reachable(connections: Sequence[Mapping[str, str]]) -> None:
    """Raise ``ClusterUnreachableError`` where this host cannot use the addresses that brokers advertise.

    Args:
        connections: Librdkafka's properties, once each.
    """
    for properties in connections:
        with closing(BrokerConnections(properties)) as brokers:
            reachable_brokers(brokers, properties)


def reachable_brokers(connections: BrokerConnections, properties: Mapping[str, str]) -> dict[int, str]:
    """``host:port`` of each broker by id, of which a request can be relied on.

    Raises:
        ClusterError: As ``answering_brokers``; or ``address_problem`` has one.
    """
    addresses = answering_brokers(connections, properties)
    if problem := address_problem(addresses):
        raise ClusterUnreachableError(problem)
    return addresses


def answering_brokers(connections: BrokerConnections, properties: Mapping[str, str]) -> dict[int, str]:
    """``host:port`` of each broker by id. Raises ``ClusterError`` with the cause at each bootstrap server."""
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
