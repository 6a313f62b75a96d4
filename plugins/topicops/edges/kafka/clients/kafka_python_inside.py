"""Connections to named brokers, which confluent-kafka cannot make: by the inner parts of kafka-python.

Its connection manager is private, and this is the only module that uses it. A test names the release in which these
parts were checked; the other tests of this module run against real brokers.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError
from kafka.errors import IncompatibleBrokerVersion
from kafka.errors import KafkaError as KafkaPythonError
from kafka.net.compat import KafkaNetClient
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from topicops.edges.connections.client_properties import KAFKA_PYTHON
from topicops.edges.connections.tokens import token_source
from topicops.edges.kafka.clients.requests import refusal_of, settings_request
from topicops.edges.kafka.clients.settings import LIMIT, kafka_python_settings, unusable, wait_all
from topicops.edges.threads import run_in_thread
from topicops.model.errors import CertificateError, ClusterError, ClusterUnreachableError, LoginRefusedError
from topicops.model.ports import Unoffered
from topicops.model.printable import address
from topicops.model.waits import waiting_for

_EXPECTED = re.compile(r"expected (\d+)")


def other_identity(answers: Sequence[Any], cluster_id: str | None) -> str:
    """Return who answers instead of the broker that was asked, by ``cluster_id``; empty: itself, or it does not say.

    The answers are about its settings and its cluster; None for one that did not come. A reader that lacks
    DescribeConfigs gets no number, so that its brokers' addresses are believed.

    Source: kafka.server.ConfigHelper#describeConfigs (3.9), AdminManager before 2.7: a broker refuses with
    INVALID_REQUEST a question about the settings of another broker's id, and names its own.
    """
    settings, metadata = answers
    if cluster_id is not None and metadata is not None and metadata.cluster_id not in (None, cluster_id):
        return f"a broker of cluster {metadata.cluster_id}"
    if settings is None or settings.results[0].error_code != KafkaError.INVALID_REQUEST:
        return ""
    own = _EXPECTED.search(settings.results[0].error_message or "")
    return f"broker {own[1]}" if own else "another broker"


MOST_IN_FLIGHT = 100
"""Requests without an answer to one broker, before kafka-python refuses more: questions to a slow broker add up."""
FIRST_ANSWER_S = 6.0
"""Seconds for the first answer, with connection and login, while the distance to the brokers is not known."""
TRIPS_A_REQUEST = 12
"""Most answers, one after another, for one request over a new connection, with TLS and a login."""
TRIPS_A_QUESTION = 40
"""Most answers for a question of many requests, such as which groups use a topic."""
LONGEST_PATIENCE_S = 60.0
POLL_S = 0.001
"""Seconds between two checks of the connections; most answers come within a few of these."""
GRACE_S = 1.0
"""Seconds that a question may take beyond its deadline, because of kafka-python's own work."""
LATE = "gave no answer in time"
REFUSABLE = frozenset({"DescribeConfigs", "DescribeLogDirs", "ListPartitionReassignments"})
"""Requests about the whole cluster that a plan and verify can do without."""


async def _nothing() -> None:
    """Do nothing: who waits for it knows that kafka-python's own thread runs."""


class BrokerConnections:
    """Requests to brokers that the caller names, which confluent-kafka cannot send; one connection a broker.

    Where the brokers are far, each wait is longer: it follows the time of the first answer.
    """

    def __init__(
        self, properties: Mapping[str, str], *, request_timeout_s: float = 5.0, is_managed: bool = False
    ) -> None:
        settings = kafka_python_settings(properties)
        self._tokens = token_source(properties)
        # It logs an ERROR for each refused connection, and at DEBUG whole requests with passwords.
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self._request_timeout_s, self._is_managed = request_timeout_s, is_managed
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
        self._manager: Any = self._net_client._manager  # noqa: SLF001 - see the module
        self._answer_s: float | None = None
        """Seconds that one answer over an open connection took; None means not measured."""
        self._offered: dict[Any, Mapping[int, int]] = {}
        """The last version of each request by API key, as each broker said when its connection began."""
        self._identified: dict[int, Any] = {}
        """Connections whose broker was asked for its identity, by broker."""
        self._cluster_id: str | None = None
        self._net_client._net.start()  # noqa: SLF001
        # A loop that is told to end before its thread has begun runs on, and whoever ended it waits for ever (3.0.12).
        self._manager.run(_nothing)

    def brokers(self) -> dict[int, str]:
        """Return ``host:port`` of each broker by id, as the first broker that answers gives them.

        Raises ``ConnectionSecurityError``, as far as kafka-python says so, or ``ClusterUnreachableError``; for a token
        that cannot be had, as ``TokenSource.token``.
        """
        _ = self._tokens and self._tokens.token()
        known = [*self.known(), *(broker.node_id for broker in self._manager.cluster.bootstrap_brokers())]
        first_s = min(3 * self._request_timeout_s, FIRST_ANSWER_S) if self._answer_s is None else 0.0
        timeout_s = max(first_s, self.patience_s(self._request_timeout_s))
        answers = self.ask({node: MetadataRequest(topics=[]) for node in known}, timeout_s=timeout_s, enough=1)
        found = {node: a for node, a in answers.items() if not isinstance(a, str) and a.brokers}
        if not found:
            raise _no_answer(sorted(set(map(str, answers.values()))))
        node, answer = next(iter(found.items()))
        if self._answer_s is None:
            began = time.monotonic()
            self.ask({node: MetadataRequest(topics=[])}, timeout_s=self._request_timeout_s)
            self._answer_s = time.monotonic() - began
        self._manager.cluster.update_metadata(answer)
        self._cluster_id = self._cluster_id or answer.cluster_id
        return {broker.node_id: address(broker.host, broker.port) for broker in answer.brokers}

    def cluster_id(self) -> str | None:
        """Return the id of the cluster, as the first answer gave it; None where the brokers have none.

        Raises ``ClusterError`` where no broker gives an answer.
        """
        if self._cluster_id is None:
            self.brokers()
        return self._cluster_id

    def answer_s(self) -> float:
        """Return how long one answer takes. Raises ``ClusterError`` where no broker gives one."""
        if self._answer_s is None:
            self.brokers()
        return self._answer_s or 0.0

    def patience_s(self, least_s: float, *, round_trips: int = TRIPS_A_REQUEST) -> float:
        """Say how long to wait for so many answers in a row: ``least_s``, or longer if the brokers are far."""
        return max(least_s, min(round_trips * (self._answer_s or 0.0), LONGEST_PATIENCE_S))

    def controller(self) -> int:
        """Return the id of the controller, as the brokers know it. Raises ``ClusterUnreachableError``."""
        controller = self.controller_or_none()
        if controller is None:
            raise ClusterUnreachableError("the brokers know no controller; wait for its election and try again")
        return controller

    def controller_or_none(self) -> int | None:
        """Do as ``controller``; None while the brokers know none. Raises ``ClusterUnreachableError``."""
        self.brokers()
        controller = self._manager.cluster.controller
        return None if controller is None else int(controller.node_id)

    def known(self) -> list[int]:
        """Return the ids of the brokers whose addresses an earlier answer had."""
        return [broker.node_id for broker in self._manager.cluster.brokers()]

    def ask(
        self, requests: Mapping[Any, Any], *, timeout_s: float | None = None, enough: int | None = None
    ) -> dict[Any, Any]:
        """Ask brokers at the same time; give each one's answer, or a sentence where none came within ``timeout_s``.

        A request that its broker does not offer is not sent; the sentence is an ``Unoffered`` then, and in a managed
        cluster also where the broker refuses one of ``REFUSABLE``, because nobody can grant the right. A sentence also
        takes the place of the answer of another broker than the one that was asked, unless ``enough`` is given.

        Args:
            requests: By broker id; no two of them the same object.
            timeout_s: For all of them together.
            enough: Stop waiting after so many answers, of anybody.
        """
        try:
            _ = self._tokens and self._tokens.token()  # here, because kafka-python's own thread must not wait for it
        except ClusterError as error:
            return dict.fromkeys(requests, f"cannot be asked: {error}")
        limit_s = timeout_s or self.patience_s(self._request_timeout_s)
        deadline = time.monotonic() + limit_s
        with waiting_for("the brokers' answers", limit_s=limit_s):
            # In a thread of its own: kafka-python's thread cannot look at the deadline while it looks a name up.
            answers = run_in_thread(lambda: self._manager.run(self._gather, requests, deadline, enough))
            wait_all([answers], limit_s + GRACE_S)
        return answers.result() if answers.done() else dict.fromkeys(requests, LATE)

    def offers(self, broker: int, request: Any, version: int = 0) -> bool:
        """Return whether a broker takes this version of a request or a later one, by its own ApiVersions answer.

        Raises ``ClusterUnreachableError`` where it gives no such answer, so that nothing is known.
        """
        offered = self.offered([broker])[broker]
        if isinstance(offered, str):
            raise ClusterUnreachableError(f"broker {broker} {offered}")
        return offered.get(int(request.API_KEY), -1) >= version

    def offered(self, brokers: Iterable[int], *, timeout_s: float | None = None) -> dict[int, Mapping[int, int] | str]:
        """Return the last version of each request that a broker takes, by API key; a sentence if it does not answer."""
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
            node: others.get(node) or self._answer_or_problem(future, requests[node])
            for node, future in futures.items()
        }

    def _answer_or_problem(self, future: Any, request: Any) -> Any:
        found, name = _answer_or_problem(future, request), request.name.removesuffix("Request")
        if self._is_managed and name in REFUSABLE and (refusal := refusal_of(found)):
            return Unoffered(f"refuses {name}: {refusal}")
        return found

    def _identify(self, broker: int, deadline: float) -> Sequence[Any]:
        """Ask over a new connection who answers there; nothing where that is known."""
        if broker in self._identified and self._identified[broker] is self._manager._conns.get(broker):  # noqa: SLF001
            return ()
        requests = settings_request(broker, ["broker.id"]), MetadataRequest(topics=[])
        return [self._send(broker, request, deadline) for request in requests]

    def _other_identity(self, broker: int, proof: Sequence[Any]) -> str:
        """Return a sentence if another broker answers at its address; empty: itself, or nobody."""
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


class Reconnecting:
    """Connections as ``BrokerConnections``, which are made when they are asked for first, and anew after ``close``."""

    def __init__(
        self, properties: Mapping[str, str], *, request_timeout_s: float = 5.0, is_managed: bool = False
    ) -> None:
        self._properties, self._request_timeout_s, self._is_managed = properties, request_timeout_s, is_managed
        self.current: BrokerConnections | None = None

    def __call__(self) -> BrokerConnections:
        if self.current is None:
            self.current = BrokerConnections(
                self._properties, request_timeout_s=self._request_timeout_s, is_managed=self._is_managed
            )
        return self.current

    def close(self) -> None:
        if self.current is not None:
            self.current.close()
        self.current = None


def _may_stop_waiting(futures: Any, enough: int) -> bool:
    """Return whether there are enough answers, or no request is open."""
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
    """Return the error's class and text. Kafka-python puts the class, and a useless number, into the text too."""
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
