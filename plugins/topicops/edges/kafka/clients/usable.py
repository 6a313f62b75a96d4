"""Whether both clients can use a connection."""

from __future__ import annotations

from collections.abc import Mapping

from topicops.edges.connections.lookup import ADDRESSES
from topicops.edges.kafka.clients.broker_connections import BrokerConnections
from topicops.edges.kafka.clients.confluent import Confluent


def require_clients(properties: Mapping[str, str]) -> None:
    """Make both clients of a connection, and ask no broker anything.

    Raises:
        UsageError: One of the clients refuses a property.
    """
    Confluent({name: text for name, text in properties.items() if name not in ADDRESSES}).client()
    BrokerConnections(properties).close()
