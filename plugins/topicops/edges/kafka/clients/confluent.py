"""The client of confluent-kafka: changes, and the questions that any broker answers."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, ThrottleEvent
from confluent_kafka.admin import AdminClient

from topicops.edges.connections.client_properties import TOKENS
from topicops.edges.connections.lookup import ADDRESSES
from topicops.edges.connections.port_probe import error_of
from topicops.edges.connections.tokens import token_source
from topicops.edges.kafka.clients.diagnosis import diagnosis
from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.clients.settings import (
    IF_REFUSED,
    PATIENCE_S,
    REFUSALS,
    confluent_settings,
    unusable,
    without_values,
)
from topicops.model.errors import ClusterError, ClusterUnreachableError, LoginRefusedError

ERRORS_KEPT = 3
"""Number of the client's own errors that a message repeats."""

_AFTER = re.compile(r" \(after \d+ms in state [^()]*\)$")
"""A part of librdkafka's error texts that differs each time."""


class _Reports:
    """Reports of a client. The object does not hold the client, so that the client can end."""

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
    """One AdminClient, made at the first call, and again after a failure: it may keep asking a broker that has stopped.

    Args:
        patience_s: How long one broker may take to answer at all before the client turns to the next.
    """

    def __init__(self, properties: Mapping[str, str], *, patience_s: float = PATIENCE_S) -> None:
        self.properties = dict(properties)
        self.patience_s = patience_s
        self._client: AdminClient | None = None
        self._reports = _Reports(self.properties)

    def client(self) -> AdminClient:
        """Return the client. Raises ``UsageError`` for a property that librdkafka does not take.

        With a login by token, making it takes a second; raises ``ClusterError`` where there is no token.
        """
        if self._client is None:
            if source := token_source(self.properties):
                source.token()  # without one librdkafka's client takes 10 s, and does not say why
            self._reports.clear()
            callbacks = {"error_cb": self._reports.note_error, "throttle_cb": self._reports.note_throttle}
            try:
                self._client = AdminClient(confluent_settings(self.properties, patience_s=self.patience_s) | callbacks)
            except KafkaException as error:
                raise unusable(self.properties, error.args[0].str()) from None  # the cause contains values
        return self._client

    def discard(self) -> None:
        """Drop the client; the next call creates a new one."""
        self._client = None

    def throttle_left_s(self) -> float:
        """Return how long a quota still delays the next request; 0 without one."""
        if self._client is not None:
            self._client.poll(0)
        return max(0.0, self._reports.throttled_until - time.monotonic())

    def recent_errors(self) -> str:
        """Return the errors that the client itself reported, for the end of a message; empty without any."""
        if self._client is not None:
            self._client.poll(0)  # error callbacks run only in here
        return "; ".join(dict.fromkeys(self._reports.recent_errors))

    def is_refused(self) -> bool:
        """Return whether a login or a certificate was refused: then no answer will come."""
        self.recent_errors()
        return bool(self._reports.error_codes & REFUSALS.keys())

    def failure(self, text: str) -> ClusterError:
        """Return the error for a call that failed for good, of the fitting class; ``text`` begins its message.

        It connects to each bootstrap server to find the reason, which can take some seconds.
        """
        reported, source = self.recent_errors(), token_source(self.properties)
        try:
            _ = source and source.token()
        except ClusterError as error:
            return type(error)(f"{text}: {error}")
        kind = next(
            (kind for code, kind in REFUSALS.items() if code in self._reports.error_codes), ClusterUnreachableError
        )
        found = diagnosis(self.properties)
        if found and (found[0].kind is not ClusterUnreachableError or kind is ClusterUnreachableError):
            return error_of(found, f"{text}: ")
        check = IF_REFUSED if source else "check sasl.username and sasl.password of the connection"
        remedy = f"; {check}" if kind is LoginRefusedError else ""
        return kind(f"{text}; the client reported: {reported or 'no error'}{remedy}")


def require_clients(properties: Mapping[str, str]) -> None:
    """Make both clients of a connection, and ask no broker. Raises ``UsageError`` where one refuses a property.

    Where it logs in by token, gets one. Raises ``ClusterError`` or ``MissingExtraError`` where there is none.
    """
    if source := token_source(properties):
        source.token()
    Confluent({name: text for name, text in properties.items() if name not in ADDRESSES | TOKENS}).client()
    BrokerConnections(properties).close()
