"""Where a cluster is: an environment's addresses, or its connections looked up as Airflow does, without Airflow."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from topicops.model.environment import Environment, KafkaEndpoint, ZooKeeperEndpoint
from topicops.model.errors import UsageError

VARIABLE_PREFIX = "AIRFLOW_CONN_"
BOOTSTRAP_SERVERS = "bootstrap.servers"

Role = Literal["reader", "applier", "deleter"]
"""Who talks to the brokers: each may have its own identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFields:
    """What a connection says of an address; its secrets are in ``extra``, which no repr shows."""

    conn_type: str
    host: str = ""
    port: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict, repr=False)


ConnectionSource = Callable[[str], ConnectionFields]
"""Finds a connection by its id. Raises ``UsageError``, without a value in its text, when there is none."""


def from_environment(connection_id: str) -> ConnectionFields:
    """The connection of the variable ``AIRFLOW_CONN_<ID>``, as JSON or as a URI.

    Raises:
        UsageError: the variable is not set or cannot be read; the text never shows what it holds.
    Source: airflow.secrets.base_secrets.BaseSecretsBackend#deserialize_connection (3.3).
    """
    variable = VARIABLE_PREFIX + connection_id.upper()
    text = os.environ.get(variable, "").strip()
    if not text:
        raise UsageError(f"connection {connection_id!r} is not known; set the variable {variable}")
    try:
        return _from_json(text) if text.startswith("{") else _from_uri(text)
    except ValueError:
        # The parser's error carries the text, and with it a password: it must not travel on as the cause.
        raise UsageError(
            f"connection {connection_id!r}: the variable {variable} is neither a connection as JSON nor a URI"
        ) from None


def zookeeper_hosts(environment: Environment, source: ConnectionSource = from_environment) -> str:
    """``host:port,host:port/chroot`` of an environment's ZooKeeper.

    Raises:
        UsageError: it names none, or its connection cannot be used.
    """
    endpoint = environment.spec.cluster.zookeeper or ZooKeeperEndpoint()
    if endpoint.hosts:
        return endpoint.hosts
    if not endpoint.connection:
        raise UsageError(f"{environment.file}: cluster.zookeeper names neither hosts nor a connection; add one of them")
    place = environment.place_of("cluster.zookeeper.connection")
    connection = _found(endpoint.connection, place, source)
    if not connection.host:
        raise UsageError(f"{place}: connection {endpoint.connection!r} has no host; give it host:port,host:port")
    return _with_chroot(connection, place=place, connection_id=endpoint.connection)


def kafka_properties(
    environment: Environment, role: Role, source: ConnectionSource = from_environment
) -> dict[str, str]:
    """Librdkafka's properties for one role, ``bootstrap.servers`` among them.

    Raises:
        UsageError: the environment names no brokers, or the connection cannot be used.
    """
    endpoint = environment.spec.cluster.kafka or KafkaEndpoint()
    written, connection_id = _connection_of(endpoint, role)
    if connection_id is None:
        return {BOOTSTRAP_SERVERS: _bootstrap_servers(environment, endpoint)}
    place = environment.place_of(f"cluster.kafka.{written}")
    extra = _found(connection_id, place, source).extra
    properties = {name: _property_text(name, value, place) for name, value in extra.items() if value is not None}
    if endpoint.bootstrap_servers:
        properties.setdefault(BOOTSTRAP_SERVERS, endpoint.bootstrap_servers)
    if not properties.get(BOOTSTRAP_SERVERS):
        raise UsageError(f"{place}: connection {connection_id!r} has no {BOOTSTRAP_SERVERS}; add it to its extra")
    return properties


def _connection_of(endpoint: KafkaEndpoint, role: Role) -> tuple[str, str | None]:
    """The field that decides, and the connection id in it."""
    if role == "applier" and endpoint.applier:
        return "applier", endpoint.applier
    if role == "deleter" and endpoint.deleter:
        return "deleter", endpoint.deleter
    return "connection", endpoint.connection


def _bootstrap_servers(environment: Environment, endpoint: KafkaEndpoint) -> str:
    if endpoint.bootstrap_servers:
        return endpoint.bootstrap_servers
    raise UsageError(
        f"{environment.file}: cluster.kafka names neither bootstrapServers nor a connection; add one of them"
    )


def _found(connection_id: str, place: str, source: ConnectionSource) -> ConnectionFields:
    try:
        return source(connection_id)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error


def _with_chroot(connection: ConnectionFields, *, place: str, connection_id: str) -> str:
    hosts, slash, path = connection.host.partition("/")
    if connection.port is not None and ":" not in hosts.rpartition("]")[2]:
        hosts = f"{hosts}:{connection.port}"
    in_host = f"/{path.strip('/')}" if slash and path.strip("/") else ""
    written = str(connection.extra.get("chroot") or "").strip("/")
    in_extra = f"/{written}" if written else ""
    if in_host and in_extra and in_host != in_extra:
        raise UsageError(
            f"{place}: connection {connection_id!r} has the chroot {in_extra} in its extra and {in_host} in its host; "
            "keep one"
        )
    return hosts + (in_host or in_extra)


def _property_text(name: str, value: object, place: str) -> str:
    """A property as librdkafka writes it; callbacks and nested values have no such form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float) and not name.endswith("_cb"):
        return str(value)
    raise UsageError(f"{place}: property {name} of the connection must be text, a number or a boolean; take it out")


def _from_json(text: str) -> ConnectionFields:
    written = _object(text)
    extra = written.get("extra") or {}
    return ConnectionFields(
        conn_type=str(written.get("conn_type") or ""),
        host=str(written.get("host") or ""),
        port=int(written["port"]) if written.get("port") else None,
        extra=_object(extra) if isinstance(extra, str) else dict(extra),
    )


def _from_uri(text: str) -> ConnectionFields:
    parts = urlsplit(text)
    if not parts.scheme or "://" not in text:
        raise ValueError(parts.scheme)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return ConnectionFields(
        conn_type=parts.scheme.replace("-", "_"),
        host=unquote(parts.hostname or ""),
        port=parts.port,
        extra=_object(query["__extra__"]) if "__extra__" in query else query,
    )


def _object(text: str) -> dict[str, Any]:
    """``Any`` because that is what JSON holds; each value is looked at where it is used."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(type(value))  # noqa: TRY004 - one kind of error for all that cannot be read
    return value
