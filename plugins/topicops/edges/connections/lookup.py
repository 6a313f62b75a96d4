"""Addresses and identities for a cluster, from an environment or from its connections.

Connections are found as Airflow finds them, without Airflow. No message shows a value of one: it may be a secret.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from topicops.edges.connections.client_properties import (
    BY_KERBEROS,
    LOGINS,
    has_readable_endpoint,
    has_readable_password,
    is_ignored,
    problems,
    token_kind,
    used,
)
from topicops.model.codes import Code
from topicops.model.errors import UnknownConnectionError, UsageError
from topicops.model.json_types import json_errors
from topicops.model.ports import ConnectionFields, ConnectionSource
from topicops.model.printable import bracketed, printable
from topicops.model.specs.environment import Environment, KafkaEndpoint, ZooKeeperEndpoint

VARIABLE_PREFIX = "AIRFLOW_CONN_"
CALLBACK_ALLOWLIST = "AIRFLOW__APACHE_KAFKA__CALLBACK_ALLOWLIST"
"""Variable with dotted paths of functions that ``oauth_cb`` may name, with commas; Airflow's own name for it."""
CONNECTIONS = "TOPICOPS_CONNECTIONS"
"""Variable with lines ``AIRFLOW_CONN_<ID>=<JSON or URI>``: one secret of a CI job for all connections."""
BOOTSTRAP_SERVERS = "bootstrap.servers"
ADDRESSES = frozenset({BOOTSTRAP_SERVERS, "metadata.broker.list"})

CHECKS_OF_SERVERS: Mapping[str, str] = {
    "ssl.endpoint.identification.algorithm": "https",
    "enable.ssl.certificate.verification": "true",
}
"""Librdkafka's properties that make TLS safe, with the safe value, which is also the default."""
MECHANISMS = (*LOGINS, "AWS_MSK_IAM", BY_KERBEROS)
"""Ways to log in that messages name; any other text may be a secret in the wrong field."""
TLS_FIELDS = ("ca_file", "certificate_file", "key_file", "key_password")
ZOOKEEPER_FIELDS = ("chroot", "tls", *TLS_FIELDS)
"""The only fields of a ZooKeeper connection's extra."""

ZOOKEEPER_EXAMPLE: Mapping[str, object] = {
    "conn_type": "zookeeper",
    "host": "zk1:2181,zk2:2181,zk3:2181",
    "extra": {"chroot": "/kafka"},
}
KAFKA_EXAMPLE: Mapping[str, object] = {"conn_type": "kafka", "extra": {BOOTSTRAP_SERVERS: "b1:9092,b2:9092"}}
"""Example that a message shows for an unknown connection."""

Role = Literal["reader", "applier", "mover", "deleter"]
"""Role of a client at the brokers; each role may have its own identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Files for a TLS connection; the server's chain and host name are always checked."""

    ca_file: str | None = None
    """PEM file of authorities; None means those of the system."""
    certificate_file: str | None = None
    """PEM file of our own certificate with its chain, for a server that requires one."""
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperAddress:
    hosts: str
    """``host:port,host:port/chroot``."""
    user: str | None = None
    """User for SASL with DIGEST-MD5; None means no login."""
    password: str = field(default="", repr=False)
    tls: Tls | None = None
    """TLS of the connection; None means plain text."""


def from_environment(connection_id: str) -> ConnectionFields:
    """The connection of the variable ``AIRFLOW_CONN_<ID>``, or of the line of that name in ``TOPICOPS_CONNECTIONS``.

    Raises ``UsageError`` where it is not set or cannot be read; the text never shows its value. Source:
    airflow.secrets.base_secrets.BaseSecretsBackend#deserialize_connection (3.3).
    """
    variable = VARIABLE_PREFIX + connection_id.upper()
    text = os.environ.get(variable, "").strip() or _listed(variable)
    if not text:
        raise UnknownConnectionError(f"connection {connection_id!r} is not known; set the variable {variable}")
    try:
        found = _from_json(text) if text.startswith("{") else _from_uri(text)
        return replace(found, callbacks=os.environ.get(CALLBACK_ALLOWLIST, ""))
    except _FieldError as error:
        raise UsageError(f"connection {connection_id!r}: {error} in the variable {variable}; correct it") from None
    except ValueError:
        # The parser's error contains the text, and so a password: it must not become the cause.
        raise UsageError(
            f"connection {connection_id!r}: the variable {variable} is neither a connection as JSON nor a URI"
        ) from None


def _listed(variable: str) -> str:
    """Return the value of the line with this name; empty if there is none."""
    lines = (line.partition("=") for line in os.environ.get(CONNECTIONS, "").splitlines())
    return next((value.strip() for name, _, value in lines if name.strip() == variable), "")


def zookeeper_address(environment: Environment, source: ConnectionSource = from_environment) -> ZooKeeperAddress:
    """Hosts and login of an environment's ZooKeeper. Raises ``UsageError`` where it has none that can be used."""
    endpoint = environment.spec.cluster.zookeeper or ZooKeeperEndpoint()
    if endpoint.hosts:
        _require_plain(endpoint.hosts, f"{environment.place_of('cluster.zookeeper.hosts')}: the text")
        return ZooKeeperAddress(hosts=endpoint.hosts)
    if not endpoint.connection:
        raise UsageError(f"{environment.file}: cluster.zookeeper names neither hosts nor a connection; add one of them")
    place = environment.place_of("cluster.zookeeper.connection")
    connection = _found(endpoint.connection, place, source, ZOOKEEPER_EXAMPLE)
    try:
        return _zookeeper_address(connection)
    except UsageError as error:
        raise UsageError(f"{place}: connection {endpoint.connection!r} {error}") from None


def kafka_properties(
    environment: Environment, role: Role, source: ConnectionSource = from_environment
) -> dict[str, str]:
    """Librdkafka's properties for one role, ``bootstrap.servers`` among them, without those that no client needs.

    Raises ``UsageError`` without brokers, and for properties that cannot be used: it names all, and what to write
    instead.
    """
    endpoint = environment.spec.cluster.kafka or KafkaEndpoint()
    written, connection_id = _connection_of(endpoint, role)
    if connection_id is None:
        return {BOOTSTRAP_SERVERS: _bootstrap_servers(environment, endpoint)}
    place = environment.place_of(f"cluster.kafka.{written}")
    which = f"{place}: connection {connection_id!r}"
    connection = _found(connection_id, place, source, KAFKA_EXAMPLE)
    properties = {
        name: _property_text(name, value, place)
        for name, value in connection.extra.items()
        if value is not None and not is_ignored(name)
    }
    if endpoint.bootstrap_servers and not properties.get(BOOTSTRAP_SERVERS):
        if login := sorted(name for name in properties if name.startswith("sasl.")):
            raise UsageError(
                f"{which} has a login ({', '.join(login)}) and no {BOOTSTRAP_SERVERS}; add them to its extra: "
                "a file does not choose which servers are sent a login"
            )
        properties[BOOTSTRAP_SERVERS] = endpoint.bootstrap_servers
    if not properties.get(BOOTSTRAP_SERVERS):
        raise UsageError(f"{which} has no {BOOTSTRAP_SERVERS}; add it to its extra")
    for name in ADDRESSES.intersection(properties):
        _require_plain(properties[name], f"{which}: {name}")
    is_production = environment.spec.cluster.cluster_class == "production"
    for name, checked in CHECKS_OF_SERVERS.items():  # else a false broker would go unnoticed
        if is_production and properties.get(name, checked).lower() != checked:
            raise UsageError(
                f"{which} has {name} that is not {checked}: brokers of a production cluster are checked; take it out"
            )
    if has_readable_password(properties) and environment.spec.readable_passwords == "refuse":
        at_endpoint = has_readable_endpoint(properties)
        fix = "https:// for the token endpoint" if at_endpoint else "security.protocol: SASL_SSL, or use SCRAM"
        raise UsageError(
            f"{which} sends its {'secret' if at_endpoint else 'password'} without TLS ({Code.READABLE_PASSWORD}): "
            f"write {fix}; "
            f"or allow it ({environment.place_of('policy.readablePasswords')})"
        )
    found = list(problems(properties))
    allowed = [path.strip() for path in connection.callbacks.split(",") if path.strip()]
    if token_kind(properties) == "callable" and properties["oauth_cb"] not in allowed:
        found.append(f"oauth_cb names a function that is not allowed: add its path to {CALLBACK_ALLOWLIST}")
    if found:
        raise UsageError(f"{which} cannot be used: {'; '.join(found)}")
    return used(properties)


def place_of_kafka(environment: Environment, role: Role) -> str:
    """Return where the environment says how this role reaches the brokers."""
    written, connection_id = _connection_of(environment.spec.cluster.kafka or KafkaEndpoint(), role)
    return environment.place_of(f"cluster.kafka.{written if connection_id else 'bootstrapServers'}")


def principal_of(properties: Mapping[str, str]) -> str:
    """Return the principal of the brokers, as far as it is known: ``User:alice``; a certificate's file.

    Of a token only its name is shown, once there is one; the brokers may take another of its claims.
    """
    from topicops.edges.connections.tokens import token_source

    if source := token_source(properties):
        name = source.latest and source.latest.principal
        return f"User:{printable(name)}" if name else f"by token ({token_kind(properties)})"
    if user := properties.get("sasl.username"):
        return f"User:{user}"
    if properties.get("security.protocol", "").lower().startswith("sasl"):
        mechanism = properties.get("sasl.mechanisms") or properties.get("sasl.mechanism")
        return f"by {mechanism if mechanism in MECHANISMS else 'SASL'}"
    if certificate := properties.get("ssl.certificate.location"):
        return f"by certificate {certificate}"
    return "User:ANONYMOUS"


def _require_plain(servers: str, where: str) -> None:
    """Raise ``UsageError`` for a login among the addresses: messages name addresses, and no client logs in by it."""
    if "@" in servers:
        raise UsageError(f"{where} has an @; write host:port, and give a login in the fields for it")


def _connection_of(endpoint: KafkaEndpoint, role: Role) -> tuple[str, str | None]:
    """Return the field that this role uses, and the connection id in it."""
    own = {"applier": endpoint.applier, "mover": endpoint.mover, "deleter": endpoint.deleter}.get(role)
    return (role, own) if own else ("connection", endpoint.connection)


def _bootstrap_servers(environment: Environment, endpoint: KafkaEndpoint) -> str:
    if endpoint.bootstrap_servers:
        place = environment.place_of("cluster.kafka.bootstrapServers")
        _require_plain(endpoint.bootstrap_servers, f"{place}: the text")
        return endpoint.bootstrap_servers
    raise UsageError(
        f"{environment.file}: cluster.kafka names neither bootstrapServers nor a connection; add one of them"
    )


def _found(connection_id: str, place: str, source: ConnectionSource, example: Mapping[str, object]) -> ConnectionFields:
    try:
        return source(connection_id)
    except UnknownConnectionError as error:
        variable = VARIABLE_PREFIX + connection_id.upper()
        line = f", as in: export {variable}='{json.dumps(example)}'"  # to paste
        is_name = variable.isascii() and variable.isidentifier()
        raise UsageError(f"{place}: {error}{line if is_name else ''}") from error
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error


def _zookeeper_address(connection: ConnectionFields) -> ZooKeeperAddress:
    """Raises ``UsageError``; its text continues after the connection's id."""
    if not connection.host:
        raise UsageError("has no host; give it host:port,host:port")
    # Ignoring an unknown setting could open an unsafe connection where a safe one was meant.
    if unknown := sorted(connection.extra.keys() - ZOOKEEPER_FIELDS):
        raise UsageError(
            f"has {', '.join(map(printable, unknown))} in its extra; known are {', '.join(ZOOKEEPER_FIELDS)}"
        )
    if "@" in connection.host:
        raise UsageError("has an @ in its host; write host:port, and give a login as login and password")
    if bool(connection.login) != bool(connection.password):
        raise UsageError(f"has a {'login' if connection.login else 'password'} alone; give it both, or neither")
    return ZooKeeperAddress(
        hosts=_with_chroot(connection),
        user=connection.login or None,
        password=connection.password,
        tls=_tls(connection.extra),
    )


def _with_chroot(connection: ConnectionFields) -> str:
    hosts, slash, path = connection.host.partition("/")
    hosts = bracketed(hosts)  # as Airflow gives the host of a URI
    if connection.port is not None and ":" not in hosts.rpartition("]")[2]:
        hosts = f"{hosts}:{connection.port}"
    written = {
        "its host": path.strip("/") if slash else "",
        "its path (schema)": connection.schema.strip("/"),
        "its extra": _extra_text(connection.extra, "chroot").strip("/"),
    }
    chroots = {chroot: place for place, chroot in written.items() if chroot}
    if len(chroots) > 1:
        raise UsageError(f"has different chroots in {' and '.join(chroots.values())}; keep one")
    return hosts + "".join(f"/{chroot}" for chroot in chroots)


def _tls(extra: Mapping[str, object]) -> Tls | None:
    written = {name: text for name in TLS_FIELDS if (text := _extra_text(extra, name))}
    if not _flag(extra, "tls"):
        if written:
            raise UsageError(f"has {', '.join(written)} in its extra, and no tls: true; add it, or take them out")
        return None
    tls = Tls(**written)
    if (tls.certificate_file is None) != (tls.key_file is None):
        raise UsageError("has one of certificate_file and key_file in its extra; give it both, or neither")
    return tls


def _extra_text(extra: Mapping[str, object], name: str) -> str:
    value = extra.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    raise UsageError(f"has a {name} in its extra that is no text")


def _flag(extra: Mapping[str, object], name: str) -> bool:
    """Return a boolean from JSON, or from a URI, where every value is text."""
    value = extra.get(name)
    if value in (None, "", False, "false"):
        return False
    if value in (True, "true"):
        return True
    raise UsageError(f"has a {name} in its extra that is neither true nor false")


def _property_text(name: str, value: object, place: str) -> str:
    """Return a property as text for librdkafka; nested values have no such form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise UsageError(f"{place}: property {name} of the connection must be text, a number or a boolean; take it out")


class _FieldError(ValueError):
    """A field of a connection that cannot be used; the text names it, without its value."""


def _from_json(text: str) -> ConnectionFields:
    written = _object(text)
    texts = {name: _text(written, name) for name in ("conn_type", "host", "login", "password", "schema")}
    return ConnectionFields(**texts, port=_port(written.get("port")), extra=_extra(written.get("extra")))


def _text(written: Mapping[str, object], name: str) -> str:
    value = written.get(name)
    if value is None or isinstance(value, str | int | float):
        return str(value or "")
    raise _FieldError(f"{name} is no text")


def _port(value: object) -> int | None:
    if value in (None, "", 0):
        return None
    digits = str(value) if isinstance(value, str | int) else ""
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 5 and int(digits) < 1 << 16):
        raise _FieldError("port is no number from 1 to 65535")
    return int(digits)


def _extra(value: object) -> Mapping[str, object]:
    try:
        found = _object(value) if isinstance(value, str) and value else value or {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _FieldError("extra is no JSON object")
    return found


def _from_uri(text: str) -> ConnectionFields:
    parts = urlsplit(text)
    if not parts.scheme or "://" not in text:
        raise ValueError(parts.scheme)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return ConnectionFields(
        conn_type=parts.scheme.replace("-", "_"),
        host=unquote(parts.hostname or ""),
        port=parts.port,
        login=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        schema=unquote(parts.path[1:]),
        extra=_extra(query["__extra__"]) if "__extra__" in query else query,
    )


def _object(text: str) -> dict[str, Any]:
    """Return a JSON object; ``Any`` because JSON is untyped, and each value is checked where it is used."""
    with json_errors():
        value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(type(value))  # noqa: TRY004 - one kind of error for all that cannot be read
    return value
