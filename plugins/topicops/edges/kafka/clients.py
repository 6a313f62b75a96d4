"""Kafka clients, made alike: confluent-kafka's, and kafka-python's connections to named brokers.

Both take librdkafka's property names. Neither ever lets a broker create a topic that was only asked about.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, ThrottleEvent
from confluent_kafka.admin import AdminClient
from kafka.errors import KafkaError as KafkaPythonError
from kafka.net.compat import KafkaNetClient
from kafka.protocol.metadata import MetadataRequest

from topicops.edges.connections.port_probe import error_of
from topicops.edges.kafka.diagnosis import diagnosis
from topicops.model.errors import (
    CertificateError,
    ClusterError,
    ClusterUnreachableError,
    LoginRefusedError,
    UsageError,
)

T = TypeVar("T")

CLIENT_ID = "topicops"
MIN_RECONNECT_BACKOFF_MS = 100
"""A client that asks a dead broker again without a pause asks it hundreds of thousands of times a minute."""
PATIENCE_S = 3.0
LOOK_S = 0.001
"""How often it is asked whether brokers have answered; most do within a few of these."""
LAST_WORDS = 3
"""How many of the client's own complaints a message repeats."""

TRANSLATED: Mapping[str, str] = {
    "bootstrap.servers": "bootstrap_servers",
    "metadata.broker.list": "bootstrap_servers",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.password": "sasl_plain_password",
    "sasl.username": "sasl_plain_username",
    "security.protocol": "security_protocol",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.endpoint.identification.algorithm": "ssl_check_hostname",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
"""Librdkafka's property to kafka-python's; the order of neither matters."""

ONLY_LIBRDKAFKA = frozenset(
    {
        "allow.auto.create.topics",
        "api.version.request",
        "api.version.request.timeout.ms",
        "broker.address.family",
        "broker.address.ttl",
        "client.id",
        "connections.max.idle.ms",
        "debug",
        "log.connection.close",
        "log_level",
        "metadata.max.age.ms",
        "request.timeout.ms",
        "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable",
        "socket.max.fails",
        "socket.nagle.disable",
        "socket.timeout.ms",
        "statistics.interval.ms",
        "topic.metadata.refresh.interval.ms",
    }
)
"""How librdkafka runs, not whom it reaches or as whom: left out for kafka-python."""


_AFTER = re.compile(r" \(after \d+ms in state \w+[^)]*\)$")
"""What makes one complaint look like many."""
REFUSALS: Mapping[int, type[ClusterError]] = {
    KafkaError._AUTHENTICATION: LoginRefusedError,  # noqa: SLF001 - librdkafka's own codes are written so
    KafkaError._SSL: CertificateError,  # noqa: SLF001
}
"""What librdkafka tells its error callback alone, whatever its call ends with."""


class Confluent:
    """One confluent-kafka AdminClient, made at the first call and anew after the transport failed.

    A client that was connected to a broker which stopped may go on asking that broker; a fresh one works at once.

    Args:
        patience_s: How long one broker may take to answer at all before the client turns to the next.
    """

    def __init__(self, properties: Mapping[str, str], *, patience_s: float = PATIENCE_S) -> None:
        self._properties = dict(properties)
        self._patience_s = patience_s
        self._client: AdminClient | None = None
        self._last_words: deque[str] = deque(maxlen=LAST_WORDS)
        self._heard: set[int] = set()
        self._throttled_until = 0.0

    def client(self) -> AdminClient:
        """The client. Raises ``UsageError`` for a property that librdkafka does not take."""
        if self._client is None:
            self._last_words.clear()
            self._heard.clear()
            self._client = self._made()
        return self._client

    def discard(self) -> None:
        """Let the client go; the next call gets a fresh one."""
        self._client = None

    def throttle_left_s(self) -> float:
        """How long a quota still keeps these brokers from reading the next request; 0 without one."""
        if self._client is not None:
            self._client.poll(0)
        return max(0.0, self._throttled_until - time.monotonic())

    def last_words(self) -> str:
        """What the client itself complained about, for the end of a message; empty when it was silent."""
        if self._client is not None:
            self._client.poll(0)  # error callbacks run only in here
        return "; ".join(dict.fromkeys(self._last_words))

    def is_refused(self) -> bool:
        """Whether a login or a certificate was refused: then no answer will come, however long one waits."""
        self.last_words()
        return bool(self._heard & REFUSALS.keys())

    def failure(self, text: str) -> ClusterError:
        """Why a call of this client came to nothing, as the kind of error that it is; ``text`` comes first.

        Asks each bootstrap server, which can take some seconds: for calls after which one gives up.
        """
        words = self.last_words()
        kind = next((kind for code, kind in REFUSALS.items() if code in self._heard), ClusterUnreachableError)
        found = diagnosis(self._properties)
        if found and (found[0].kind is not ClusterUnreachableError or kind is ClusterUnreachableError):
            return error_of(found, f"{text}: ")
        remedy = "; check sasl.username and sasl.password of the connection" if kind is LoginRefusedError else ""
        return kind(f"{text}; last heard: {words or 'nothing'}{remedy}")

    def _made(self) -> AdminClient:
        try:
            return AdminClient(
                confluent_settings(self._properties, patience_s=self._patience_s)
                | {"error_cb": self._hear, "throttle_cb": self._note_throttle}
            )
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            raise UsageError(f"the Kafka connection cannot be used: {reason.str()}") from error

    def _note_throttle(self, event: ThrottleEvent) -> None:
        self._throttled_until = max(self._throttled_until, time.monotonic() + event.throttle_time)

    def _hear(self, error: KafkaError) -> None:
        self._heard.add(error.code())
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - it says nothing that is not known
            self._last_words.append(f"{error.name()}: {_AFTER.sub('', error.str())}")


class BrokerConnections:
    """Requests to brokers of one's own choice, which confluent-kafka lacks.

    The one place that reaches into kafka-python's connection manager. That is private, so the version is pinned and
    the tests of this module run against real brokers. One connection a broker, kept.
    """

    def __init__(self, properties: Mapping[str, str], *, request_timeout_s: float = 5.0) -> None:
        settings = kafka_python_settings(properties)
        _silence_kafka_python()
        self._request_timeout_s = request_timeout_s
        self._net_client: Any = KafkaNetClient(request_timeout_ms=int(request_timeout_s * 1000), **settings)
        self._manager: Any = self._net_client._manager  # noqa: SLF001 - see the class
        self._net_client._net.start()  # noqa: SLF001

    def brokers(self) -> dict[int, str]:
        """``host:port`` of each broker by id, as the brokers that were reached tell it.

        Raises:
            ConnectionSecurityError: none lets this identity in, or none is trusted, as far as kafka-python tells.
            ClusterUnreachableError: none of those that are known answers.
        """
        known = [*self._known(), *self._bootstrap_ids()]
        answers = self.ask({node: MetadataRequest(topics=[]) for node in known}, enough=1)
        found = [answer for answer in answers.values() if not isinstance(answer, str) and answer.brokers]
        if not found:
            raise _no_answer(sorted(set(map(str, answers.values()))))
        self._manager.cluster.update_metadata(found[0])
        return {broker.node_id: f"{broker.host}:{broker.port}" for broker in found[0].brokers}

    def controller(self) -> int:
        """Id of the broker that the others take for the controller. Raises ``ClusterUnreachableError``."""
        controller = self.elected()
        if controller is None:
            raise ClusterUnreachableError("the brokers know no controller; wait for its election and try again")
        return controller

    def has_heard_of(self, broker: int) -> bool:
        """Whether an earlier answer told where it is."""
        return broker in self._known()

    def elected(self) -> int | None:
        """As ``controller``; None while they know none. Raises ``ClusterUnreachableError`` when no broker answers."""
        self.brokers()
        controller = self._manager.cluster.controller
        return None if controller is None else int(controller.node_id)

    def ask(
        self, requests: Mapping[Any, Any], *, timeout_s: float | None = None, enough: int | None = None
    ) -> dict[Any, Any]:
        """Each broker's answer, all asked at once; a sentence where none came within ``timeout_s``.

        Args:
            requests: By broker id; no two of them the same object.
            timeout_s: For all of them together.
            enough: Stop waiting after so many answers.
        """
        deadline = time.monotonic() + (timeout_s or self._request_timeout_s)
        answers: dict[Any, Any] = self._manager.run(self._gather, requests, deadline, enough or len(requests))
        return answers

    def close(self) -> None:
        with contextlib.suppress(KafkaPythonError, OSError, RuntimeError):
            self._manager.close()
            self._net_client._net.close()  # noqa: SLF001

    async def _gather(self, requests: Mapping[Any, Any], deadline: float, enough: int) -> dict[Any, Any]:
        """Runs on kafka-python's own thread."""
        futures = {node: self._sent(node, request, deadline) for node, request in requests.items()}
        while time.monotonic() < deadline and not _is_enough(futures.values(), enough):
            await self._net_client._net.sleep(LOOK_S)  # noqa: SLF001
        return {node: _answer_or_sentence(future) for node, future in futures.items()}

    def _sent(self, node: Any, request: Any, deadline: float) -> Any:
        timeout_ms = max(1.0, (deadline - time.monotonic()) * 1000)
        try:
            return self._manager.send(request, node_id=node, request_timeout_ms=timeout_ms)
        except KafkaPythonError as error:
            return error

    def _known(self) -> list[int]:
        return [broker.node_id for broker in self._manager.cluster.brokers()]

    def _bootstrap_ids(self) -> list[str]:
        return [broker.node_id for broker in self._manager.cluster.bootstrap_brokers()]


def confluent_settings(properties: Mapping[str, str], *, patience_s: float = PATIENCE_S) -> dict[str, Any]:
    """Librdkafka's settings: what the connection says, and what this tool insists on."""
    backoff_ms = max(MIN_RECONNECT_BACKOFF_MS, _whole(properties, "reconnect.backoff.ms"))
    return {
        # It starts with one broker picked at random, and one that is stopped accepts connections all the same.
        "api.version.request.timeout.ms": int(patience_s * 1000),
        **properties,
        "client.id": CLIENT_ID,
        # With librdkafka the metadata request that names a topic creates it where brokers allow that.
        "allow.auto.create.topics": "false",
        "reconnect.backoff.ms": backoff_ms,
        "reconnect.backoff.max.ms": max(backoff_ms, _whole(properties, "reconnect.backoff.max.ms", default=1000)),
        # What it would print to stderr comes through error_cb, into the message.
        "log_level": 0,
    }


def kafka_python_settings(properties: Mapping[str, str]) -> dict[str, object]:
    """kafka-python's settings with the meaning of librdkafka's ``properties``.

    Raises:
        UsageError: a property has no counterpart; it names all of them, no value.
    """
    foreign = sorted(
        name for name in properties if name not in ONLY_LIBRDKAFKA and not _is_translated(name, properties)
    )
    if foreign:
        raise UsageError(
            "deleting topics by id and asking single brokers use kafka-python, which has no counterpart of "
            f"{', '.join(foreign)}; use another way to authenticate, or take it out of the connection"
        )
    settings: dict[str, object] = {"reconnect_backoff_max_ms": 1000}
    settings |= {TRANSLATED[name]: _translated(name, properties[name]) for name in properties if name in TRANSLATED}
    backoff_ms = max(MIN_RECONNECT_BACKOFF_MS, _whole(properties, "reconnect.backoff.ms"))
    return settings | {"client_id": CLIENT_ID, "reconnect_backoff_ms": backoff_ms}


class Deadline:
    """A point in time that several calls share."""

    def __init__(self, timeout_s: float) -> None:
        self._at = time.monotonic() + timeout_s

    @property
    def left_s(self) -> float:
        """Seconds that are left; never nothing, since librdkafka takes that for no limit."""
        return max(0.01, self._at - time.monotonic())

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._at


def settled(futures: Sequence[Future[Any]], timeout_s: float) -> bool:
    """Wait until all are done, or ``timeout_s`` is over: librdkafka's own timeouts are not always kept."""
    return not wait(futures, timeout=max(0.0, timeout_s)).not_done


def in_background(work: Callable[[], T]) -> Future[T]:
    """Let another thread do it; one that nobody waits for any more keeps no process from ending."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def _is_translated(name: str, properties: Mapping[str, str]) -> bool:
    if name == "enable.ssl.certificate.verification":
        return properties[name].lower() == "true"
    return name in TRANSLATED or name in ONLY_LIBRDKAFKA


def _translated(name: str, text: str) -> object:
    match name:
        case "bootstrap.servers" | "metadata.broker.list":
            return [server.strip().rpartition("://")[2] for server in text.split(",") if server.strip()]
        case "security.protocol":
            return text.upper()
        case "ssl.endpoint.identification.algorithm":
            return text.lower() == "https"
        case _ if name.endswith(".ms"):
            return _whole({name: text}, name)
        case _:
            return text


def _whole(properties: Mapping[str, str], name: str, *, default: int = MIN_RECONNECT_BACKOFF_MS) -> int:
    text = properties.get(name, str(default))
    if not text.strip().isdecimal():
        raise UsageError(f"the Kafka connection cannot be used: {name} must be a whole number")
    return int(text)


def _is_enough(futures: Any, enough: int) -> bool:
    """Enough answers, or nothing left to wait for."""
    done = [future for future in futures if isinstance(future, Exception) or future.is_done]
    answered = sum(not isinstance(future, Exception) and future.succeeded() for future in done)
    return answered >= enough or len(done) == len(futures)


def _answer_or_sentence(future: Any) -> Any:
    if not isinstance(future, Exception) and not future.is_done:
        return "gave no answer in time"
    if not isinstance(future, Exception) and future.succeeded():
        return future.value
    error = future if isinstance(future, Exception) else future.exception
    return f"cannot be asked: {type(error).__name__}: {error}"


def _no_answer(sentences: Sequence[str]) -> ClusterError:
    text = "no broker answers: " + "; ".join(sentences)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return CertificateError(text)
    if any(name in text for name in ("SaslAuthenticationFailed", "IllegalSaslState", "UnsupportedSaslMechanism")):
        return LoginRefusedError(text)
    hint = "; so looks a refused login too, and a port of another security.protocol" if "disconnected" in text else ""
    return ClusterUnreachableError(text + hint)


def _silence_kafka_python() -> None:
    # It logs an ERROR for each refused connection, and at DEBUG whole requests, passwords included.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
