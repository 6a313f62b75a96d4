"""Librdkafka's properties by what they are to the two Kafka clients of a run: used, ignored, or refused.

A property counts until a table of ``client_properties.json`` says that it does not. Both clients get only what counts,
so that neither connects in a way that the other one cannot.

Source: librdkafka's own list (``rd_kafka_conf_properties_show``, 2.16), in which C is a consumer's and P a producer's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from topicops.model.printable import printable

_TABLE: Mapping[str, Any] = json.loads(Path(__file__).with_name("client_properties.json").read_bytes())
KAFKA_PYTHON: Mapping[str, str] = _TABLE["kafka_python"]
"""The name that kafka-python has for a property."""
TLS = frozenset[str](_TABLE["tls"])
"""TLS settings that both clients need; kafka-python takes them as one Python object."""
LIBRDKAFKA_ALONE = frozenset[str](_TABLE["librdkafka_alone"])
"""Settings of how librdkafka connects. Kafka-python has its own times, and tries each address of a host."""
TOKENS = frozenset[str](_TABLE["tokens"])
"""Settings for a login by token. They mean nothing without one."""
KERBEROS = frozenset[str](_TABLE["kerberos"])
"""Settings for a login by Kerberos. They mean nothing without one."""
CONSUMERS = frozenset[str](_TABLE["consumers"])
PRODUCERS = frozenset[str](_TABLE["producers"])
TUNING = frozenset[str](_TABLE["tuning"])
"""Buffers, repetitions, logs and callbacks, and what a run sets itself. ``topic.blacklist`` would hide topics."""
IGNORED = CONSUMERS | PRODUCERS | TUNING
INSTEAD: Mapping[str, str] = _TABLE["instead"]
"""Advice for each property that cannot be used; the text continues after its name."""

MECHANISM = ("sasl.mechanism", "sasl.mechanisms")
"""Librdkafka has both names for it."""
_SERVER = re.compile(r"([a-z0-9_]+://)?(\[[0-9a-f:.%]+\]|[^\s:\[\]/]+)(:[0-9]{1,5})?", re.IGNORECASE)
OAUTHBEARER = "OAUTHBEARER"
LOGINS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", OAUTHBEARER)
"""The SASL mechanisms that both clients have."""
TokenKind = Literal["google", "callable", "msk-iam", "oidc"]
_MSK = re.compile(
    r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?(?::[0-9]+)?(?=$|[,\s])", re.IGNORECASE
)
"""Servers of Amazon MSK, with their region. Source: as ``token_kind``."""
_EXTENSION = re.compile(r"\s*(?!auth=)([A-Za-z]+)=([\x21-\x7e]+)\s*")
"""Source: RFC 7628, section 3.1."""
BY_KERBEROS = "GSSAPI"
"""SASL mechanism of Kerberos, and librdkafka's default if none is written."""
_WAYS_IN = f"what works is {', '.join(LOGINS)}, or a client certificate (ssl.certificate.location, ssl.key.location)"

USED = frozenset({*KAFKA_PYTHON, *TLS, *LIBRDKAFKA_ALONE})
KNOWN = frozenset({*USED, *TOKENS, *KERBEROS, *IGNORED, *INSTEAD})


def is_ignored(name: str) -> bool:
    """Whether no client is given this property, whatever its value; ``topic.acks`` is librdkafka's for ``acks``."""
    return name in IGNORED or name.removeprefix("topic.") in CONSUMERS | PRODUCERS


def used(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what both clients are given of a connection in which nothing is refused."""
    names = USED | TOKENS if token_kind(properties) else USED
    return {name: text for name, text in properties.items() if name in names}


def token_kind(properties: Mapping[str, str]) -> TokenKind | None:
    """Return where the tokens of this login come from; None for another login, and for one without a place.

    Librdkafka too takes a function before its own ``oidc``.
    Source: airflow.providers.apache.kafka.hooks.base.KafkaBaseHook#_build_config (2.1.0).
    """
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms")
    if mechanism != OAUTHBEARER or not properties.get("security.protocol", "").lower().startswith("sasl"):
        return None
    servers = properties.get("bootstrap.servers", "")
    if "cloud.goog" in servers and "managedkafka" in servers:
        return "google"
    if "oauth_cb" in properties:
        return "callable"
    if _MSK.search(servers):
        return "msk-iam"
    return "oidc" if properties.get("sasl.oauthbearer.method", "").lower() == "oidc" else None


def msk_region(properties: Mapping[str, str]) -> str:
    """Return the region in the servers' names; empty for others."""
    found = _MSK.search(properties.get("bootstrap.servers", ""))
    return found[1].lower() if found else ""


def token_extensions(properties: Mapping[str, str]) -> dict[str, str] | None:
    """Return the extensions that are sent with a token; None if they cannot be used."""
    written = [part for part in properties.get("sasl.oauthbearer.extensions", "").split(",") if part.strip()]
    found = [(match[1], match[2]) for part in written if (match := _EXTENSION.fullmatch(part))]
    return dict(found) if len(found) == len(written) else None


def problems(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each property that counts and cannot be used, without its value."""
    for name in ("bootstrap.servers", "metadata.broker.list"):
        # Other values librdkafka or kafka-python would read as another server, or as none.
        servers = [server.strip() for server in properties.get(name, "").split(",") if server.strip()]
        if name in properties and not (servers and all(map(_SERVER.fullmatch, servers))):
            yield f"{name} must be host:port, or several with commas between them"
    yield from _login_problems(properties)
    for name in sorted(properties):
        if name in INSTEAD:
            yield f"{name} {INSTEAD[name]}"
        elif name not in KNOWN and not is_ignored(name):
            nearest = get_close_matches(name, sorted(KNOWN), n=1, cutoff=0.8)
            meant = f": did you mean {nearest[0]}?" if nearest else ": take it out"
            yield f"{printable(name)} is no property of librdkafka{meant}"


def _login_problems(properties: Mapping[str, str]) -> Iterator[str]:
    if not properties.get("security.protocol", "").lower().startswith("sasl"):
        return
    written = next((name for name in MECHANISM if properties.get(name)), None)
    mechanism = properties[written] if written else BY_KERBEROS
    if mechanism == OAUTHBEARER:
        yield from _token_problems(properties)
    elif mechanism == "AWS_MSK_IAM":
        yield f"{written} AWS_MSK_IAM is none of librdkafka's: write OAUTHBEARER, and the servers' own names"
    elif mechanism == BY_KERBEROS:
        which = f"{written} GSSAPI" if written else "sasl.mechanism is not written, which means GSSAPI"
        more = f" (with {', '.join(found)})" if (found := sorted(KERBEROS & properties.keys())) else ""
        yield (
            f"{which}{more}: Kerberos is not supported, because the confluent-kafka of PyPI is "
            f"built without it; {_WAYS_IN}"
        )
    elif mechanism not in LOGINS:
        yield f"{written} is none that both clients have; {_WAYS_IN}"
    elif not (properties.get("sasl.username") and properties.get("sasl.password")):
        yield f"{mechanism} needs both sasl.username and sasl.password"
    if len({properties[name] for name in MECHANISM if properties.get(name)}) > 1:
        yield "sasl.mechanism and sasl.mechanisms are two names for one property: write one of them"


def _token_problems(properties: Mapping[str, str]) -> Iterator[str]:
    kind = token_kind(properties)
    if kind is None:
        yield (
            "OAUTHBEARER needs a place that gives tokens: write sasl.oauthbearer.method: oidc, or a function as "
            "oauth_cb; servers of Amazon MSK and of Google are recognised by their names"
        )
    if kind != "oidc":
        return
    for part in ("id", "secret"):
        name, other = (f"sasl.oauthbearer.client.{more}{part}" for more in ("", "credentials.client."))
        if not (properties.get(name) or properties.get(other)):
            yield f"oidc needs {name}"
    if not _is_endpoint(properties.get("sasl.oauthbearer.token.endpoint.url", "")):
        yield "oidc needs sasl.oauthbearer.token.endpoint.url, as https://host/path without a login"
    if token_extensions(properties) is None:
        yield "sasl.oauthbearer.extensions must be name=value, or several with commas between them"
    if properties.get("sasl.oauthbearer.grant.type", "client_credentials") != "client_credentials":
        yield "sasl.oauthbearer.grant.type must be client_credentials, or name a function as oauth_cb"
    for name in sorted(properties):
        if name.startswith(("sasl.oauthbearer.assertion.", "sasl.oauthbearer.metadata.")):
            yield f"{name} is not supported: write client.id and client.secret, or name a function as oauth_cb"


def _is_endpoint(text: str) -> bool:
    try:
        url = urlsplit(text)
        has_port = url.port != 0
    except ValueError:
        return False
    is_plain = text.isascii() and text.isprintable() and not {" ", "@"} & set(text)
    return url.scheme in ("http", "https") and bool(url.hostname) and has_port and is_plain


def has_readable_endpoint(properties: Mapping[str, str]) -> bool:
    """Return whether the client's secret is sent to a token endpoint without TLS."""
    url = properties.get("sasl.oauthbearer.token.endpoint.url", "")
    return token_kind(properties) == "oidc" and url.lower().startswith("http:")


def has_readable_password(properties: Mapping[str, str]) -> bool:
    """Return whether the login sends its password, token or secret readable, over a connection without TLS.

    SCRAM and Kerberos send none. Without a mechanism librdkafka takes GSSAPI.
    """
    mechanism = (properties.get("sasl.mechanisms") or properties.get("sasl.mechanism") or "").upper()
    is_hidden = mechanism in ("", BY_KERBEROS) or mechanism.startswith("SCRAM-")
    is_plain = properties.get("security.protocol", "").upper() == "SASL_PLAINTEXT"
    return (is_plain and not is_hidden) or has_readable_endpoint(properties)
