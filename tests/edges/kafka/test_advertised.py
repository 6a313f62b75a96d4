"""Which addresses stop a run: names that nobody knows here, or no address at all; one dead broker stops nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from topicops.edges.kafka.clients.diagnosis import address_problem, diagnosis
from topicops.edges.zookeeper.diagnosis import diagnosis as zookeeper_diagnosis

DEAD = "127.0.0.1:1"
UNKNOWN = "kafka-3.kafka-headless.invalid:9092"


@pytest.fixture
def closing_server() -> Iterator[int]:
    """The port of a server that ends each connection at once, as one does whose limit of connections is reached."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                server.accept()[0].close()
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def test_one_dead_broker_of_three_stops_nothing(closing_server: int) -> None:
    alive = f"127.0.0.1:{closing_server}"

    assert address_problem({1: alive, 2: DEAD, 3: alive}) == ""


def test_one_name_that_is_not_known_here_is_a_problem(closing_server: int) -> None:
    alive = f"127.0.0.1:{closing_server}"

    problem = address_problem({1: alive, 2: DEAD, 3: UNKNOWN})

    assert problem.startswith(f"broker 3 advertises {UNKNOWN}, which this host cannot resolve; the bootstrap address")


def test_addresses_of_which_none_answers_are_a_problem() -> None:
    problem = address_problem({5: DEAD, 12: DEAD})

    assert f"broker 5 advertises {DEAD}, which this host cannot reach: Connection refused" in problem
    assert "broker 12 advertises" in problem


def test_a_server_that_ends_each_connection_may_have_a_limit(closing_server: int) -> None:
    kafka = diagnosis({"bootstrap.servers": f"127.0.0.1:{closing_server}"})
    zookeeper = zookeeper_diagnosis([("127.0.0.1", closing_server)], None)

    assert "limit of connections of one address (max.connections.per.ip)?" in kafka[0].text
    assert "limit of connections of one address (maxClientCnxns)?" in zookeeper[0].text
