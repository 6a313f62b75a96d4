"""Two Kafka clients with the same settings: confluent-kafka's, and kafka-python's connections to named brokers.

Both take librdkafka's property names. Neither lets a broker create a topic because of a question about it.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import re
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, ThrottleEvent
from confluent_kafka.admin import AdminClient
from kafka.errors import IncompatibleBrokerVersion
from kafka.errors import KafkaError as KafkaPythonError
from kafka.net.compat import KafkaNetClient
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from topicops.edges.connections.client_properties import KAFKA_PYTHON
from topicops.edges.connections.lookup import ADDRESSES, MECHANISMS
from topicops.edges.connections.port_probe import error_of
from topicops.edges.kafka.diagnosis import LIMIT, PROTOCOLS, diagnosis
from topicops.edges.kafka.identity import identity_requests, other_identity
from topicops.edges.kafka.tls import tls_context
from topicops.edges.threads import run_in_thread
from topicops.model.addresses import address
from topicops.model.errors import (
    CertificateError,
    ClusterError,
    ClusterUnreachableError,
    LoginRefusedError,
    UsageError,
)
from topicops.model.ports import Unoffered
from topicops.model.specs.topic_config import LONGEST_NUMBER
from topicops.model.waits import waiting_for

T = TypeVar("T")

CLIENT_ID = "topicops"
MIN_RECONNECT_BACKOFF_MS = 100
"""Without a pause a client connects to a dead broker hundreds of thousands of times a minute."""
PATIENCE_S = 3.0
MOST_IN_FLIGHT = 100
"""Requests without an answer to one broker, before kafka-python refuses more: questions to a slow broker add up."""
FIRST_ANSWER_S = 6.0
"""How long the first answer may take, with a connection and a login, while it is not known how far the brokers are."""
TRIPS_A_REQUEST = 12
"""So many answers, one after another, are the most for one request over a new connection, with TLS and a login."""
TRIPS_A_QUESTION = 40
"""So many are the most for a question of many requests, such as who uses a topic."""
LONGEST_PATIENCE_S = 60.0
POLL_S = 0.001
GRACE_S = 1.0
"""How much longer than its deadline a question may take, because of kafka-python's own work."""
LATE = "gave no answer in time"
"""How often connections are checked for answers; most come within a few of these."""
ERRORS_KEPT = 3
"""How many of the client's own errors a message repeats."""

_AFTER = re.compile(r" \(after \d+ms in state [^()]*\)$")
"""A part of librdkafka's error texts that differs each time."""
REFUSALS: Mapping[int, type[ClusterError]] = {
    KafkaError._AUTHENTICATION: LoginRefusedError,  # noqa: SLF001 - librdkafka's own codes are written so
    KafkaError._SSL: CertificateError,  # noqa: SLF001
}
"""Errors that librdkafka gives to its error callback only: the call itself ends with a timeout."""


class _Reports:
    """What a client reported by itself. It does not know the client, which so ends as soon as nobody holds it."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self.recent_errors: deque[str] = deque(maxlen=ERRORS_KEPT)
        self.error_codes: set[int] = set()
        self.throttled_until = 0.0

    def clear(self) -> None:
        self.recent_errors.clear()
        self.error_codes.clear()

    def note_throttle(self, event: ThrottleEvent) -> None:
        self.throttled_until = max(self.throttled_until, time.monotonic() + event.throttle_time)

    def note_error(self, error: KafkaError) -> None:
        self.error_codes.add(error.code())
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - it adds nothing to the errors before it
            text = without_values(_AFTER.sub("", error.str()), self._properties)
            self.recent_errors.append(f"{error.name()}: {text}")


class Confluent:
    """One confluent-kafka AdminClient, created at the first call and again after the transport failed.

    A client may keep asking a broker that has stopped; a new client works at once.

    Args:
        patience_s: How long one broker may take to answer at all before the client turns to the next.
    """

    def __init__(self, properties: Mapping[str, str], *, patience_s: float = PATIENCE_S) -> None:
        self._properties = dict(properties)
        self.patience_s = patience_s
        self._client: AdminClient | None = None
        self._reports = _Reports(self._properties)

    def client(self) -> AdminClient:
        """The client. Raises ``UsageError`` for a property that librdkafka does not take."""
        if self._client is None:
            self._reports.clear()
            self._client = self._new_client()
        return self._client

    def discard(self) -> None:
        """Drop the client; the next call creates a new one."""
        self._client = None

    def throttle_left_s(self) -> float:
        """How long a quota still delays the next request; 0 without one."""
        if self._client is not None:
            self._client.poll(0)
        return max(0.0, self._reports.throttled_until - time.monotonic())

    def recent_errors(self) -> str:
        """The errors that the client itself reported, for the end of a message; empty without any."""
        if self._client is not None:
            self._client.poll(0)  # error callbacks run only in here
        return "; ".join(dict.fromkeys(self._reports.recent_errors))

    def is_refused(self) -> bool:
        """Whether a login or a certificate was refused: then no answer will come."""
        self.recent_errors()
        return bool(self._reports.error_codes & REFUSALS.keys())

    def failure(self, text: str) -> ClusterError:
        """The error for a call of this client that failed for good, of the fitting class; ``text`` begins its message.

        Connects to each bootstrap server to find the reason, which can take some seconds.
        """
        reported = self.recent_errors()
        kind = next(
            (kind for code, kind in REFUSALS.items() if code in self._reports.error_codes), ClusterUnreachableError
        )
        found = diagnosis(self._properties)
        if found and (found[0].kind is not ClusterUnreachableError or kind is ClusterUnreachableError):
            return error_of(found, f"{text}: ")
        remedy = "; check sasl.username and sasl.password of the connection" if kind is LoginRefusedError else ""
        return kind(f"{text}; the client reported: {reported or 'no error'}{remedy}")

    def _new_client(self) -> AdminClient:
        try:
            return AdminClient(
                confluent_settings(self._properties, patience_s=self.patience_s)
                | {"error_cb": self._reports.note_error, "throttle_cb": self._reports.note_throttle}
            )
        except KafkaException as error:
            raise unusable(self._properties, error.args[0].str()) from None  # the cause contains values


class BrokerConnections:
    """Requests to brokers that the caller names, which confluent-kafka cannot send; one connection a broker.

    Where the brokers are far, each wait is longer: it follows the time of the first answer.

    The only place that uses kafka-python's connection manager. It is private, so the version is pinned, and the tests
    of this module run against real brokers.
    """

    def __init__(self, properties: Mapping[str, str], *, request_timeout_s: float = 5.0) -> None:
        settings = kafka_python_settings(properties)
        # It logs an ERROR for each refused connection, and at DEBUG whole requests with passwords.
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self._request_timeout_s = request_timeout_s
        try:
            self._net_client: Any = KafkaNetClient(
                request_timeout_ms=int(request_timeout_s * 1000),
                max_in_flight_requests_per_connection=MOST_IN_FLIGHT,
                **settings,
            )
        except (AssertionError, OSError, TypeError, ValueError, KafkaPythonError) as error:
            if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                raise
            names = {name: other for name, other in KAFKA_PYTHON.items() if other in str(error)}
            raise unusable(properties, " ".join(names)) from None  # the cause contains values
        self._manager: Any = self._net_client._manager  # noqa: SLF001 - see the class
        self._answer_s: float | None = None
        """How long one answer over an open connection took; None: not measured."""
        self._offered: dict[Any, Mapping[int, int]] = {}
        """The last version of each request by API key, as each broker said when its connection began."""
        self._identified: dict[int, Any] = {}
        """The connections of which it was asked who answers, by broker."""
        self._cluster_id: str | None = None
        self._net_client._net.start()  # noqa: SLF001
        # A loop that is told to end before its thread has begun runs on, and whoever ended it waits for ever (3.0.12).
        self._manager.run(_begun)

    def brokers(self) -> dict[int, str]:
        """``host:port`` of each broker by id, as the first broker that answers gives them.

        Raises:
            ConnectionSecurityError: Every broker refuses this identity, or none is trusted, if kafka-python says so.
            ClusterUnreachableError: None of the known brokers answers.
        """
        known = [*self._known(), *(broker.node_id for broker in self._manager.cluster.bootstrap_brokers())]
        first_s = min(3 * self._request_timeout_s, FIRST_ANSWER_S) if self._answer_s is None else 0.0
        timeout_s = max(first_s, self.patience_s(self._request_timeout_s))
        answers = self.ask({node: MetadataRequest(topics=[]) for node in known}, timeout_s=timeout_s, enough=1)
        found = {node: a for node, a in answers.items() if not isinstance(a, str) and a.brokers}
        if not found:
            raise _no_answer(sorted(set(map(str, answers.values()))))
        node, answer = next(iter(found.items()))
        if self._answer_s is None:
            self._answer_s = self._measured_s(node)
        self._manager.cluster.update_metadata(answer)
        self._cluster_id = self._cluster_id or answer.cluster_id
        return {broker.node_id: address(broker.host, broker.port) for broker in answer.brokers}

    def answer_s(self) -> float:
        """How long one answer takes. Raises ``ClusterError`` where no broker gives one."""
        if self._answer_s is None:
            self.brokers()
        return self._answer_s or 0.0

    def patience_s(self, least_s: float, *, round_trips: int = TRIPS_A_REQUEST) -> float:
        """How long to wait for so many answers, one after another: ``least_s``, or longer where the brokers are far."""
        return max(least_s, min(round_trips * (self._answer_s or 0.0), LONGEST_PATIENCE_S))

    def _measured_s(self, node: Any) -> float:
        began = time.monotonic()
        self.ask({node: MetadataRequest(topics=[])}, timeout_s=self._request_timeout_s)
        return time.monotonic() - began

    def controller(self) -> int:
        """Id of the controller, as the brokers know it. Raises ``ClusterUnreachableError``."""
        controller = self.controller_or_none()
        if controller is None:
            raise ClusterUnreachableError("the brokers know no controller; wait for its election and try again")
        return controller

    def knows_address_of(self, broker: int) -> bool:
        """Whether an earlier answer had the broker's address."""
        return broker in self._known()

    def controller_or_none(self) -> int | None:
        """As ``controller``; None while the brokers know none. Raises ``ClusterUnreachableError``."""
        self.brokers()
        controller = self._manager.cluster.controller
        return None if controller is None else int(controller.node_id)

    def ask(
        self, requests: Mapping[Any, Any], *, timeout_s: float | None = None, enough: int | None = None
    ) -> dict[Any, Any]:
        """Ask brokers at the same time; give each one's answer, or a sentence where none came within ``timeout_s``.

        A request that its broker does not offer is not sent; the sentence is an ``Unoffered`` then.
        A sentence also takes the place of an answer that another broker than the one that was asked has given, unless
        ``enough`` says that anybody's answer will do.

        Args:
            requests: By broker id; no two of them the same object.
            timeout_s: For all of them together.
            enough: Stop waiting after so many answers.
        """
        limit_s = timeout_s or self.patience_s(self._request_timeout_s)
        deadline = time.monotonic() + limit_s
        with waiting_for("the brokers' answers", limit_s=limit_s):
            # In a thread of its own: kafka-python's thread cannot look at the deadline while it looks a name up.
            answers = run_in_thread(lambda: self._manager.run(self._gather, requests, deadline, enough))
            wait_all([answers], limit_s + GRACE_S)
        return answers.result() if answers.done() else dict.fromkeys(requests, LATE)

    def offers(self, broker: int, request: Any, version: int = 0) -> bool:
        """Whether a broker takes this version of a request or a later one, by its own ApiVersions answer.

        Raises:
            ClusterUnreachableError: The broker gives no such answer, so that nothing is known.
        """
        offered = self.offered([broker])[broker]
        if isinstance(offered, str):
            raise ClusterUnreachableError(f"broker {broker} {offered}")
        return offered.get(int(request.API_KEY), -1) >= version

    def offered(self, brokers: Iterable[int], *, timeout_s: float | None = None) -> dict[int, Mapping[int, int] | str]:
        """The last version of each request that a broker takes, by API key; a sentence where it does not answer."""
        # Version 0, because brokers before 2.0 answer a later one with an error and no list.
        asked = {broker: ApiVersionsRequest(version=0) for broker in brokers if broker not in self._offered}
        answers = self.ask(asked, timeout_s=timeout_s) if asked else {}
        return {b: self._offered.get(b) or str(answers.get(b, "gave no list of its requests")) for b in brokers}

    def close(self) -> None:
        net = self._net_client._net  # noqa: SLF001
        thread = net._io_thread  # noqa: SLF001
        with contextlib.suppress(KafkaPythonError, OSError, RuntimeError):
            self._manager.close()
            net.stop(timeout_ms=GRACE_S * 1000)
            if not (thread and thread.is_alive()):  # else it looks a name up, and ends when it has the answer
                net.close()

    async def _gather(self, requests: Mapping[Any, Any], deadline: float, enough: int | None) -> dict[Any, Any]:
        """Runs on kafka-python's own thread."""
        asked = [node for node in requests if isinstance(node, int)] if enough is None else []
        # A broker answers in the order of the requests: whoever answers has said who it is.
        proofs = {node: self._identify(node, deadline) for node in asked}
        futures = {node: self._send(node, request, deadline) for node, request in requests.items()}
        while time.monotonic() < deadline and not _may_stop_waiting(futures.values(), enough or len(requests)):
            await self._net_client._net.sleep(POLL_S)  # noqa: SLF001
        found = {node: self._other_identity(node, proof) for node, proof in proofs.items() if proof}
        others = {node: other for node, other in found.items() if other}
        self._offered |= {b: offered for b in asked if b not in others and (offered := self._offered_by(b))}
        return {
            node: others.get(node) or _answer_or_problem(future, requests[node]) for node, future in futures.items()
        }

    def _identify(self, broker: int, deadline: float) -> Sequence[Any]:
        """Ask over a new connection who answers there; nothing where that is known."""
        if broker in self._identified and self._identified[broker] is self._manager._conns.get(broker):  # noqa: SLF001
            return ()
        return [self._send(broker, request, deadline) for request in identity_requests(broker)]

    def _other_identity(self, broker: int, proof: Sequence[Any]) -> str:
        """A sentence if another broker answers at its address; empty: itself, or nobody."""
        succeeded = [not isinstance(future, Exception) and future.is_done and future.succeeded() for future in proof]
        answers = [future.value if good else None for future, good in zip(proof, succeeded, strict=True)]
        if other := other_identity(answers, self._cluster_id):
            node = self._manager.cluster.broker_metadata(broker)
            where = address(node.host, node.port) if node else "its address"
            return f"does not answer itself: {where} leads to {other}; correct the proxy or the address translation"
        if all(succeeded):
            self._identified[broker] = self._manager._conns.get(broker)  # noqa: SLF001
        return ""

    def _offered_by(self, node: Any) -> dict[int, int]:
        connection = self._manager._conns.get(node)  # noqa: SLF001
        versions = connection and connection.broker_version_data
        return {key: last for key, (_, last) in versions.api_versions.items()} if versions else {}

    def _send(self, node: Any, request: Any, deadline: float) -> Any:
        timeout_ms = max(1.0, (deadline - time.monotonic()) * 1000)
        # Otherwise a new connection believes that its broker takes what the first broker takes.
        self._manager.broker_version_data = None
        try:
            return self._manager.send(request, node_id=node, request_timeout_ms=timeout_ms)
        except KafkaPythonError as error:
            return error

    def _known(self) -> list[int]:
        return [broker.node_id for broker in self._manager.cluster.brokers()]


async def _begun() -> None:
    """Does nothing: who waits for it knows that kafka-python's own thread runs."""


def confluent_settings(properties: Mapping[str, str], *, patience_s: float = PATIENCE_S) -> dict[str, Any]:
    """Librdkafka's settings: those of the connection, and those that this tool needs."""
    backoff_ms = max(MIN_RECONNECT_BACKOFF_MS, _integer(properties, "reconnect.backoff.ms"))
    return {
        # Librdkafka starts with a random broker, and a stopped process still accepts connections.
        "api.version.request.timeout.ms": int(patience_s * 1000),
        **properties,
        "client.id": CLIENT_ID,
        # Otherwise a metadata request that names a topic creates it, where the brokers allow that.
        "allow.auto.create.topics": "false",
        "reconnect.backoff.ms": backoff_ms,
        "reconnect.backoff.max.ms": max(backoff_ms, _integer(properties, "reconnect.backoff.max.ms", default=1000)),
        # Nothing to stderr: error_cb gets the same errors for the message.
        "log_level": 0,
    }


def require_clients(properties: Mapping[str, str]) -> None:
    """Make both clients of a connection, and ask no broker anything.

    Raises:
        UsageError: One of the clients refuses a property.
    """
    Confluent({name: text for name, text in properties.items() if name not in ADDRESSES}).client()
    BrokerConnections(properties).close()


def kafka_python_settings(properties: Mapping[str, str]) -> dict[str, object]:
    """kafka-python's settings with the meaning of librdkafka's ``properties``.

    Raises:
        UsageError: A file of TLS cannot be used; the message names the property, but no value.
    """
    settings: dict[str, object] = {"reconnect_backoff_max_ms": 1000}
    settings |= {
        KAFKA_PYTHON[name]: _translated(name, text) for name, text in properties.items() if name in KAFKA_PYTHON
    }
    if str(settings.get("security_protocol")).endswith("SSL"):
        settings["ssl_context"] = tls_context(properties)
    backoff_ms = max(MIN_RECONNECT_BACKOFF_MS, _integer(properties, "reconnect.backoff.ms"))
    return settings | {"client_id": CLIENT_ID, "reconnect_backoff_ms": backoff_ms}


_WORD = re.compile(r"[\w.]+")
_WHY: Mapping[str, str] = {
    "No such configuration property": "it is no property of librdkafka",
    "Invalid value": "it has a value that librdkafka does not take",
    "outside allowed range": "its number is too low or too high",
    "No such file": "there is no such file",
}


_SHORTEST_SECRET = 6
"""In characters. A shorter value may be a part of many words of a message, and would make it unreadable."""
_SHOWN = frozenset({*MECHANISMS, *PROTOCOLS})


def without_values(text: str, properties: Mapping[str, str]) -> str:
    """An error of the client without values of properties; addresses stay.

    Librdkafka repeats the end of ``sasl.oauthbearer.config`` from where it no longer understands it.
    """
    for name in properties:
        if name.startswith("sasl.oauthbearer."):
            before, found, _ = text.partition(name)
            text = f"{before}{found} cannot be used" if found else text
    for name, value in properties.items():
        if name not in ADDRESSES and value not in _SHOWN and len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "***")
    return text


def unusable(properties: Mapping[str, str], reason: str) -> UsageError:
    """The error for a client's refusal of a connection: the properties that ``reason`` names, and no value of one."""
    named = sorted(properties.keys() & {word.strip(".") for word in _WORD.findall(reason)})
    why = next((why for words, why in _WHY.items() if words in reason), "the client refuses it")
    which = f"{', '.join(named)}: {why}" if named else "the client refuses its properties, and names none of them"
    return UsageError(f"the Kafka connection cannot be used: {which}; correct it in the extra of the connection")


class Deadline:
    """A point in time that several calls share."""

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
    """``NAME (code): message`` for an error of Kafka's."""
    if isinstance(error, KafkaException) and isinstance(error.args[0], KafkaError):
        reason = error.args[0]
        return f"{named(reason.code())}: {reason.str()}"
    return str(error) or "no answer within the deadline"


def named(code: int) -> str:
    """``NAME (code)``."""
    return f"{KafkaError(code).name()} ({code})"


def _translated(name: str, text: str) -> object:
    match name:
        case "bootstrap.servers" | "metadata.broker.list":
            return [server.strip().rpartition("://")[2] for server in text.split(",") if server.strip()]
        case "security.protocol":
            return text.upper()
        case _ if name.endswith(".ms"):
            return _integer({name: text}, name)
        case _:
            return text


def _integer(properties: Mapping[str, str], name: str, *, default: int = MIN_RECONNECT_BACKOFF_MS) -> int:
    text = properties.get(name, str(default))
    if not text.strip().isdecimal() or len(text) > LONGEST_NUMBER:
        raise UsageError(f"the Kafka connection cannot be used: {name} must be a whole number")
    return int(text)


def _may_stop_waiting(futures: Any, enough: int) -> bool:
    """Whether there are enough answers, or no request is open."""
    done = [future for future in futures if isinstance(future, Exception) or future.is_done]
    answered = sum(not isinstance(future, Exception) and future.succeeded() for future in done)
    return answered >= enough or len(done) == len(futures)


def _answer_or_problem(future: Any, request: Any) -> Any:
    if not isinstance(future, Exception) and not future.is_done:
        return LATE
    if not isinstance(future, Exception) and future.succeeded():
        return future.value
    error = future if isinstance(future, Exception) else future.exception
    if isinstance(error, IncompatibleBrokerVersion):
        version = request._min_version  # noqa: SLF001 - kafka-python has no other name for it
        which = f" of version {version} or later" if version else ""
        return Unoffered(f"offers no {request.name.removesuffix('Request')}{which}")
    doubt = LIMIT if "socket disconnected" in str(error) else ""
    return f"cannot be asked: {_in_words(error)}{doubt}"


def _in_words(error: BaseException) -> str:
    """The error's class and text. Kafka-python puts the class, and a number that says nothing, into the text too."""
    name = type(error).__name__
    text = re.sub(r"^\[Error \d+\] ", "", str(error)).removeprefix(name).lstrip(": ")
    return f"{name}: {text}" if text and not text.isdecimal() else name


def _no_answer(sentences: Sequence[str]) -> ClusterError:
    text = "no broker answers: " + "; ".join(sentences)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return CertificateError(text)
    if any(name in text for name in ("SaslAuthenticationFailed", "IllegalSaslState", "UnsupportedSaslMechanism")):
        return LoginRefusedError(text)
    hint = "; a refused login and a port of another security.protocol look the same" if "disconnected" in text else ""
    return ClusterUnreachableError(text + hint)
