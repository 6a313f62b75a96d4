"""What each broker offers, by its own ApiVersions answer, and which release it so shows."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from kafka.protocol.admin import DescribeLogDirsRequest
from kafka.protocol.metadata import MetadataRequest

from fixtures.proxy import BrokerProxies
from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.model.errors import ClusterUnreachableError
from topicops.model.release import USUAL
from topicops_local.cluster import LocalCluster

LACKING = {1: {35: -1, 1: 12, 2: 6}, 2: {3: 8}}
"""By broker: one without DescribeLogDirs that looks older than the others; one with Metadata up to version 8."""


@pytest.mark.parametrize("first", [1, 2, 3])
def test_each_broker_speaks_for_itself_whichever_of_them_answered_first(
    local_cluster: LocalCluster, first: int
) -> None:
    ports = local_cluster.broker_ports
    brokers = sorted(ports)
    with BrokerProxies([ports[b] for b in brokers], lacking=lambda place: LACKING.get(brokers[place], {})) as proxies:
        properties = {"bootstrap.servers": proxies.proxies[brokers.index(first)].hosts}
        with closing(BrokerConnections(properties)) as connections:
            known = connections.brokers()
            found = {b: connections.offers(b, DescribeLogDirsRequest) for b in brokers}
            ids = {b: connections.offers(b, MetadataRequest, 10) for b in brokers}
            replies = connections.ask({b: DescribeLogDirsRequest(topics=[]) for b in brokers})

    assert known.keys() == {*brokers}
    assert found == {1: False, 2: True, 3: True}
    assert ids == {1: True, 2: False, 3: True}
    assert {broker for broker, reply in replies.items() if isinstance(reply, str)} == {1}


def test_what_a_silent_broker_offers_is_not_known(local_cluster: LocalCluster) -> None:
    properties = {"bootstrap.servers": local_cluster.bootstrap_servers}
    local_cluster.pause(3)
    try:
        with closing(BrokerConnections(properties, request_timeout_s=1.0)) as connections:
            connections.brokers()
            with pytest.raises(ClusterUnreachableError, match="broker 3 gave no answer in time"):
                connections.offers(3, MetadataRequest)
    finally:
        local_cluster.resume(3)


def test_a_silent_broker_delays_the_answer_of_the_others_by_two_seconds_a_question(local_cluster: LocalCluster) -> None:
    properties = {"bootstrap.servers": local_cluster.bootstrap_servers}
    local_cluster.pause(3)
    try:
        with closing(BrokerQuestions(properties, timeout_s=30.0)) as questions:
            started = time.monotonic()
            releases = questions.releases()
            seconds = time.monotonic() - started
    finally:
        local_cluster.resume(3)

    assert releases == (USUAL, USUAL)
    assert seconds < 8, f"{seconds:.1f} s"
