"""Where Spark runs, and with which settings: ``TOPICOPS_SPARK`` and the variables beside it, or a connection.

A token or a password in one of them is in no message: messages have the address alone, and ``without_secrets`` masks
what Spark itself writes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote, unquote

from topicops.model.errors import UsageError
from topicops.model.json_types import json_errors
from topicops.model.ports import ConnectionFields, ConnectionSource
from topicops.model.printable import address, bracketed, printable

SETTING = "TOPICOPS_SPARK"
MEMORY_SETTING = "TOPICOPS_SPARK_MEMORY"
CONF_SETTING = "TOPICOPS_SPARK_CONF"
DEFAULT = "local[*]"
DEFAULT_MEMORY = "1g"
BY_CONNECTION = "connection:"

SparkKind = Literal["local", "cluster", "connect"]
_KINDS: Mapping[SparkKind, re.Pattern[str]] = {
    "local": re.compile(r"local(\[(\d+|\*)(,\d+)?\])?"),
    "cluster": re.compile(r"local-cluster\[\d+,\d+,\d+\]|spark://.+|yarn|k8s://.+"),
    "connect": re.compile(r"sc://.+"),
}
_FORMS = "local[*], local[N], spark://…, yarn, k8s://…, sc://… or connection:<id>"
_HOST = r"(?:[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?"
_ADDRESS = re.compile(rf"((?:[a-z0-9+.-]{{1,12}}://){{1,2}})({_HOST}(?:,{_HOST})*)([/;?#].*)?", re.DOTALL)
"""Schemes, hosts, and the rest, which may hold secrets."""
_HARMLESS = frozenset({"use_ssl", "user_id", "user_agent"})
"""Parameters of Spark Connect that messages show."""
_MEMORY = re.compile(r"[1-9]\d*[kmgtKMGT]b?")
_SECRET_NAME = re.compile(r"secret|passw|token|credential|key|authorization", re.IGNORECASE)
"""More than Spark's own ``spark.redaction.regex``, which does not know Azure's account keys."""
_MASK = "***"
_SHORTEST_SECRET = 4
"""Masking a shorter text would make messages unreadable."""

_EXTRAS: Mapping[str, str] = {
    "queue": "spark.yarn.queue",
    "namespace": "spark.kubernetes.namespace",
    "principal": "spark.kerberos.principal",
    "keytab": "spark.kerberos.keytab",
}
"""Names in the extra of a connection of Airflow's type ``spark``, as Spark names them.

Source: apache-airflow-providers-apache-spark, SparkSubmitHook (6.3).
"""
_OF_SPARK_SUBMIT_ALONE = frozenset({"spark-binary", "spark-home", "deploy-mode"})
"""They say how ``spark-submit`` starts a program; topicops is the driver itself."""
_PORTS: Mapping[str, int] = {"sc": 15002, "spark": 7077}

_secrets: set[str] = set()
"""All secret texts of the places that this process has used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPlace:
    """Where Spark runs, and the settings that it is given; ``repr`` leaves out what may be secret."""

    kind: SparkKind
    named: str
    """Place as messages name it: ``TOPICOPS_SPARK=sc://host:15002/;token=***``."""
    address: str = field(repr=False)
    """A master of Spark, or the address of a Connect server."""
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    memory: str | None = None
    """Memory of the driver's heap; None means that it is not given."""
    servers: Sequence[tuple[str, int]] = ()
    """Host and port of each master of Spark, or of the Connect server; none for other cluster managers."""


def spark_place(setting: str | None, connections: ConnectionSource) -> SparkPlace:
    """Return where Spark runs: at ``setting``, else at ``TOPICOPS_SPARK``, else on this machine.

    Raises ``UsageError`` for a setting that cannot be used; the text shows no value that may be secret.
    """
    written = setting or os.environ.get(SETTING, "").strip() or DEFAULT
    conf, memory = _given_conf(), os.environ.get(MEMORY_SETTING, "").strip()
    if memory and not _MEMORY.fullmatch(memory):
        raise UsageError(f"{MEMORY_SETTING}={printable(memory)}: write a number and k, m or g, for example 4g")
    if not written.startswith(BY_CONNECTION):
        remember_secrets(conf)
        return _place(f"{SETTING}={masked(written)}", written, conf, memory or None)
    connection_id = written.removeprefix(BY_CONNECTION)
    if not re.fullmatch(r"[\w.-]+", connection_id):
        raise UsageError(
            f"{SETTING} names no connection after {BY_CONNECTION}; write its id, as in connection:spark_default"
        )
    place = f"{SETTING}={written}"
    try:
        fields = connections(connection_id)
        address, own = _address_of(fields), _conf_of(fields)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None
    conf = {**own, **conf}
    remember_secrets(conf)
    _secrets.update(_ways_to_write(fields.password))
    return _place(f"{place} ({masked(address)})", address, conf, memory or None)


def spark_kind(address: str) -> SparkKind | None:
    """Return the kind of Spark that an address names; None means that it has no form that is known."""
    return next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(address)), None)


def masked(address: str) -> str:
    """Mask what may be secret in an address: a login, and all parameters except known harmless ones."""
    if "://" not in address and spark_kind(address):
        return address
    found = None if "@" in address else _ADDRESS.fullmatch(address)
    if found is None:
        return f"{_MASK} (not shown: it may hold a secret)"
    return found[1] + found[2] + "".join(map(_masked_parameter, _parameters(found[3] or "")))


def without_secrets(text: str) -> str:
    """Return the text with ``***`` for each secret of the places that this process has used."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, _MASK)
    return text


def secrets_of_settings() -> Sequence[str]:
    """Return the secret texts in the variables, for a log that can mask them."""
    conf = _given_conf()
    named = [value for name, value in conf.items() if _SECRET_NAME.search(name)]
    return sorted({*_secrets_of_address(os.environ.get(SETTING, "")), *named})


def remember_secrets(conf: Mapping[str, str]) -> None:
    """Have ``without_secrets`` mask each value whose name sounds secret."""
    for name, value in conf.items():
        if _SECRET_NAME.search(name):
            _secrets.update(_ways_to_write(value))


def _place(named: str, address: str, conf: Mapping[str, str], memory: str | None) -> SparkPlace:
    _secrets.update(_secrets_of_address(address))
    kind = spark_kind(address)
    if kind is None:
        raise UsageError(f"{named}: write {_FORMS}")
    if "@" in _hosts(address):
        raise UsageError(f"{named}: the address has an @; write host:port, and give a login in a connection")
    try:
        servers = tuple(_servers(address))
    except ValueError:
        raise UsageError(f"{named}: a port is no number from 1 to 65535; correct it") from None
    return SparkPlace(kind=kind, named=named, address=address, conf=conf, memory=memory, servers=servers)


def _given_conf() -> dict[str, str]:
    text = os.environ.get(CONF_SETTING, "").strip()
    try:
        with json_errors():
            written = json.loads(text) if text else {}
    except ValueError:
        written = None
    if not isinstance(written, dict):
        raise UsageError(f'{CONF_SETTING} is no JSON object; write {{"spark.executor.memory": "2g"}}')
    foreign = [name for name in written if not name.startswith("spark.")]
    if foreign:
        raise UsageError(f"{CONF_SETTING} has {', '.join(map(printable, foreign))}; names of Spark begin with spark.")
    return {name: _conf_text(name, value, CONF_SETTING) for name, value in written.items()}


def _conf_text(name: str, value: object, place: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise UsageError(f"{place}: {printable(name)} must be text, a number or a boolean; correct it")


def _address_of(connection: ConnectionFields) -> str:
    """Raises ``UsageError``; its text continues after the place."""
    if connection.conn_type == "spark_connect":
        return _connect_address_of(connection)
    if connection.conn_type != "spark":
        raise UsageError("the connection is of neither type, spark or spark_connect; make it one of them")
    if not connection.host:
        raise UsageError("the connection has no host; give it spark://host, k8s://https://host, yarn or local[*]")
    address = _with_port(connection.host, connection.port)
    return address if "://" in address or spark_kind(address) else f"spark://{address}"


def _with_port(host: str, port: int | None) -> str:
    return bracketed(host) if port is None else address(host, port)


def _connect_address_of(connection: ConnectionFields) -> str:
    """Return the address. Source: apache-airflow-providers-apache-spark, SparkConnectHook#get_connection_url (6.3)."""
    host = connection.host.removeprefix("sc://").rstrip("/")
    if not host:
        raise UsageError("the connection has no host; give it the Connect server's")
    address = _with_port(host, connection.port)
    use_ssl = connection.extra.get("use_ssl")
    given = {
        "user_id": connection.login,
        "token": connection.password,
        "use_ssl": "" if use_ssl is None else _conf_text("use_ssl", use_ssl, "the connection's extra").lower(),
    }
    parameters = (f"{name}={quote(text, safe='')}" for name, text in given.items() if text)
    return "sc://" + ";".join([f"{address}/", *parameters])


def _conf_of(connection: ConnectionFields) -> dict[str, str]:
    """Return the extra as settings of Spark. An unknown one is refused: it may be there to make the connection safe."""
    known = {"use_ssl"} if connection.conn_type == "spark_connect" else {*_EXTRAS, *_OF_SPARK_SUBMIT_ALONE}
    unknown = sorted(name for name in connection.extra if name not in known and not name.startswith("spark."))
    if unknown:
        raise UsageError(
            f"the connection has {', '.join(map(printable, unknown))} in its extra; known are Spark's own settings, "
            f"which begin with spark., and {', '.join(sorted(known))}"
        )
    return {
        _EXTRAS.get(name, name): _conf_text(name, value, "the connection's extra")
        for name, value in connection.extra.items()
        if value is not None and name not in _OF_SPARK_SUBMIT_ALONE and name != "use_ssl"
    }


def _servers(address: str) -> Iterator[tuple[str, int]]:
    """Raises ``ValueError`` for a port that is no number from 1 to 65535."""
    default = _PORTS.get(address.partition("://")[0])
    if default is None:
        return
    for server in _hosts(address).split(","):
        host, port = re.fullmatch(r"(.*?)(?::([^\]]*))?", server).groups()  # type: ignore[union-attr]  # it fits any text
        number = default if port is None else int(port)
        if not 0 < number < 1 << 16:
            raise ValueError(number)
        yield host.strip("[]"), number


def _hosts(address: str) -> str:
    """Return what stands between the schemes and the first path or parameter."""
    return _parameters(re.sub(r"^(?:[a-zA-Z0-9+.-]+://){1,2}", "", address))[0]


def _parameters(text: str) -> Sequence[str]:
    """Return the text in parts: what comes first, and then each with the sign before it."""
    return re.split(r"(?=[/;?#])", text)


def _masked_parameter(part: str) -> str:
    name = part[1:].partition("=")[0]
    if len(part) <= 1 or (part[0] == ";" and name in _HARMLESS):
        return part
    return f"{part[0]}{'token=' if name == 'token' else ''}{_MASK}"


def _secrets_of_address(address: str) -> Iterator[str]:
    """Yield all that ``masked`` leaves out, in each way in which Spark may write it."""
    hosts, *parameters = _parameters(address.partition("://")[2])
    for part in parameters:
        name, _, value = part[1:].partition("=")
        if name not in _HARMLESS:
            yield from _ways_to_write(value or name)
    if "@" in hosts:
        yield from _ways_to_write(hosts.rpartition("@")[0])


def _ways_to_write(secret: str) -> Iterator[str]:
    if len(secret) >= _SHORTEST_SECRET:
        yield from (secret, unquote(secret), quote(secret), quote(secret, safe=""))
