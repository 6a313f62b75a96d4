"""Settings and TLS of both Kafka clients from one connection, and the words for their errors.

Both take librdkafka's property names. Neither lets a broker create a topic because of a question about it.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.oauth import AbstractTokenProvider, SaslMechanismOAuth

from topicops.edges.connections.client_properties import KAFKA_PYTHON, OAUTHBEARER, TOKENS
from topicops.edges.connections.lookup import ADDRESSES, MECHANISMS
from topicops.edges.connections.port_probe import verified_tls
from topicops.edges.connections.tokens import TokenSource, token_source
from topicops.model.errors import CertificateError, ClusterError, LoginRefusedError, UsageError
from topicops.model.specs.topic_config import LONGEST_NUMBER

CLIENT_ID = "topicops"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MIN_RECONNECT_BACKOFF_MS = 100
"""Pause without which a client connects to a dead broker hundreds of thousands of times a minute."""
PATIENCE_S = 3.0
REFUSALS: Mapping[int, type[ClusterError]] = {
    KafkaError._AUTHENTICATION: LoginRefusedError,  # noqa: SLF001 - librdkafka's own codes are written so
    KafkaError._SSL: CertificateError,  # noqa: SLF001
}
"""Errors that librdkafka gives to its error callback only: the call itself ends with a timeout."""
IF_REFUSED = "check what the brokers want of a token (issuer, audience, claims), and their clocks"
LIMIT = "; has it reached a limit of connections of one address (max.connections.per.ip)?"
"""Question that a message adds when the broker closes a connection at once."""


def confluent_settings(properties: Mapping[str, str], *, patience_s: float = PATIENCE_S) -> dict[str, Any]:
    """Return librdkafka's settings: those of the connection, and those that this tool needs."""
    source = token_source(properties)
    backoff_ms = max(MIN_RECONNECT_BACKOFF_MS, whole_number(properties, "reconnect.backoff.ms"))
    return {
        # Librdkafka starts with a random broker, and a stopped process still accepts connections.
        "api.version.request.timeout.ms": int(patience_s * 1000),
        **{name: text for name, text in properties.items() if name not in TOKENS},
        **({"oauth_cb": source.for_librdkafka} if source else {}),
        "client.id": CLIENT_ID,
        # Otherwise a metadata request that names a topic creates it, where the brokers allow that.
        "allow.auto.create.topics": "false",
        "reconnect.backoff.ms": backoff_ms,
        "reconnect.backoff.max.ms": max(backoff_ms, whole_number(properties, "reconnect.backoff.max.ms", default=1000)),
        # Nothing to stderr: error_cb gets the same errors for the message.
        "log_level": 0,
    }


def kafka_python_settings(properties: Mapping[str, str]) -> dict[str, object]:
    """kafka-python's settings of librdkafka's ``properties``. Raises ``UsageError`` as ``tls_context``."""
    settings: dict[str, object] = {"reconnect_backoff_max_ms": 1000}
    settings |= {
        KAFKA_PYTHON[name]: _translated(name, text) for name, text in properties.items() if name in KAFKA_PYTHON
    }
    if source := token_source(properties):
        settings["sasl_oauth_token_provider"] = _TokenProvider(source)
    if str(settings.get("security_protocol")).endswith("SSL"):
        settings["ssl_context"] = tls_context(properties)
    backoff_ms = max(MIN_RECONNECT_BACKOFF_MS, whole_number(properties, "reconnect.backoff.ms"))
    return settings | {"client_id": CLIENT_ID, "reconnect_backoff_ms": backoff_ms}


class _TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python is untyped
    def __init__(self, source: TokenSource) -> None:
        self._source = source

    def token(self) -> str:
        return self._source.token().value

    def extensions(self) -> dict[str, str]:
        return dict(self._source.token().extensions)


class _TokenLogin(SaslMechanismOAuth):  # type: ignore[misc]  # kafka-python is untyped
    def receive(self, auth_bytes: bytes) -> None:
        if auth_bytes:  # kafka-python answers, and then reports no more than the end of the connection
            raise SaslAuthenticationFailedError(f"the broker refuses the token; {IF_REFUSED}")
        super().receive(auth_bytes)


register_sasl_mechanism(OAUTHBEARER, _TokenLogin, overwrite=True)


OWN_CERTIFICATE = ("certificate.location", "certificate.pem", "key.location", "key.pem", "key.password")
_WORD = re.compile(r"[\w.]+")
_WHY: Mapping[str, str] = {
    "No such configuration property": "it is no property of librdkafka",
    "Invalid value": "it has a value that librdkafka does not take",
    "outside allowed range": "its number is too low or too high",
    "No such file": "there is no such file",
}


_SHORTEST_SECRET = 6
"""Characters of the shortest secret that is hidden. A shorter one may be part of many words of a message."""
_SHOWN = frozenset({*MECHANISMS, *PROTOCOLS})


def without_values(text: str, properties: Mapping[str, str]) -> str:
    """Return an error of the client without values of properties; addresses stay."""
    for name, value in properties.items():
        if name not in ADDRESSES and value not in _SHOWN and len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "***")
    return text


def unusable(properties: Mapping[str, str], reason: str) -> UsageError:
    """Return the error for a client's refusal of a connection: the properties in ``reason``, without values."""
    named = sorted(properties.keys() & {word.strip(".") for word in _WORD.findall(reason)})
    why = next((why for words, why in _WHY.items() if words in reason), "the client refuses it")
    which = f"{', '.join(named)}: {why}" if named else "the client refuses its properties, and names none of them"
    return UsageError(f"the Kafka connection cannot be used: {which}; correct it in the extra of the connection")


class Deadline:
    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._at = time.monotonic() + timeout_s

    @property
    def left_s(self) -> float:
        """Seconds that are left; never 0, since librdkafka takes that for no limit."""
        return max(0.01, self._at - time.monotonic())

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._at


def wait_all(futures: Sequence[Future[Any]], timeout_s: float) -> bool:
    """Wait until all are done or ``timeout_s`` is over; librdkafka does not always keep its own timeouts."""
    return not wait(futures, timeout=max(0.0, timeout_s)).not_done


def error_text(error: BaseException) -> str:
    """Return ``NAME (code): message`` for an error of Kafka's."""
    if isinstance(error, KafkaException) and isinstance(error.args[0], KafkaError):
        reason = error.args[0]
        return f"{named(reason.code())}: {reason.str()}"
    return str(error) or "no answer within the deadline"


def named(code: int) -> str:
    """Return ``NAME (code)``."""
    return f"{KafkaError(code).name()} ({code})"


def _translated(name: str, text: str) -> object:
    match name:
        case "bootstrap.servers" | "metadata.broker.list":
            return [server.strip().rpartition("://")[2] for server in text.split(",") if server.strip()]
        case "security.protocol":
            return text.upper()
        case _ if name.endswith(".ms"):
            return whole_number({name: text}, name)
        case _:
            return text


def whole_number(properties: Mapping[str, str], name: str, *, default: int = MIN_RECONNECT_BACKOFF_MS) -> int:
    text = properties.get(name, str(default))
    if not text.strip().isdecimal() or len(text) > LONGEST_NUMBER:
        raise UsageError(f"the Kafka connection cannot be used: {name} must be a whole number")
    return int(text)


def tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """TLS with the authorities, the certificate and the checks that ``properties`` ask for.

    Raises ``UsageError`` for a file or a text that cannot be used; it names the properties, and no value.
    """
    with _naming(properties, "ssl.ca.location", "ssl.ca.pem"):
        context = trusting(properties)
    own = (f"ssl.{part}" for part in OWN_CERTIFICATE)
    with _naming(properties, *own), _file_of("certificate", properties) as file, _file_of("key", properties) as key:
        if file:
            # Never None: OpenSSL would ask for the password on the terminal.
            context.load_cert_chain(file, key, properties.get("ssl.key.password", ""))
    with _naming(properties, "ssl.crl.location"):
        if revoked := properties.get("ssl.crl.location"):
            context.load_verify_locations(revoked)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    with _naming(properties, "ssl.cipher.suites"):
        if ciphers := properties.get("ssl.cipher.suites"):
            context.set_ciphers(ciphers)
    return context


def trusting(properties: Mapping[str, str]) -> ssl.SSLContext:
    """TLS that checks the broker as ``properties`` ask. Raises ``OSError`` for authorities that cannot be read."""
    location = properties.get("ssl.ca.location")  # "probe": the system's authorities, as where nothing is written
    context = verified_tls(ca_file=None if location == "probe" else location, ca_pem=properties.get("ssl.ca.pem"))
    # Librdkafka has several words for each; only those that surely switch a check off do so here.
    is_checked = properties.get("enable.ssl.certificate.verification", "").strip().lower() not in ("false", "f", "0")
    by_name = properties.get("ssl.endpoint.identification.algorithm", "").strip().lower() != "none"
    context.check_hostname = is_checked and by_name
    context.verify_mode = ssl.CERT_REQUIRED if is_checked else ssl.CERT_NONE
    return context


@contextmanager
def _file_of(part: str, properties: Mapping[str, str]) -> Iterator[str | None]:
    """Give the named file, or one for the text, which only this user can read and which is gone afterwards.

    Python reads certificate and key from files only.
    """
    text = properties.get(f"ssl.{part}.pem")
    if text is None:
        yield properties.get(f"ssl.{part}.location")
        return
    with NamedTemporaryFile("w") as file:
        file.write(text)
        file.flush()
        yield file.name


@contextmanager
def _naming(properties: Mapping[str, str], *names: str) -> Iterator[None]:
    """Turn an error into one that names those of the properties that are written."""
    try:
        yield
    except (OSError, ValueError) as error:
        written = ", ".join(name for name in names if name in properties)
        reason = error.strerror if isinstance(error, OSError) and error.errno and error.strerror else "cannot be used"
        raise UsageError(
            f"the Kafka connection cannot be used: {written}: {reason}; correct it in the extra of the connection"
        ) from None  # the cause contains values
