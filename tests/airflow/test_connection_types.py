"""Connections as Airflow stores them, read as a run reads them."""

from __future__ import annotations

import json
import socket
from contextlib import closing

import pytest
from airflow.providers_manager import ProvidersManager

from topicops.edges.connections.lookup import (
    CALLBACK_ALLOWLIST,
    ZOOKEEPER_FIELDS,
    Tls,
    ZooKeeperAddress,
    from_environment,
)
from topicops.model.errors import UsageError
from topicops.on_airflow.connections import ZooKeeperHook, from_airflow


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {
        "conn_type": "zookeeper",
        "host": "zk1:2181,zk2:2181",
        "login": "topicops",
        "password": "not-for-eyes",
        "extra": {"chroot": "/kafka", "tls": True, "ca_file": "/etc/kafka/ca.pem"},
    }
    monkeypatch.setenv("AIRFLOW_CONN_ZOOKEEPER_TEST", json.dumps(fields))


def test_airflow_offers_the_zookeeper_type_with_its_fields() -> None:
    manager = ProvidersManager()
    assert "topicops" in manager.providers
    assert manager.hooks["zookeeper"] is not None
    widgets = manager.connection_form_widgets
    assert {f"extra__zookeeper__{field}" for field in ZOOKEEPER_FIELDS} <= set(widgets)
    assert manager.field_behaviours["zookeeper"]["relabeling"] == {"host": "Hosts"}


@pytest.mark.usefixtures("connection", "airflow_database")
def test_a_connection_reads_the_same_with_and_without_airflow() -> None:
    assert from_airflow("zookeeper_test") == from_environment("zookeeper_test")
    assert "not-for-eyes" not in repr(from_airflow("zookeeper_test"))


@pytest.mark.usefixtures("connection", "airflow_database")
def test_the_functions_that_airflow_allows_are_those_of_its_kafka_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CALLBACK_ALLOWLIST, "jobs.login, other.login")
    assert from_airflow("zookeeper_test").callbacks == "jobs.login, other.login"
    monkeypatch.delenv(CALLBACK_ALLOWLIST)
    assert from_airflow("zookeeper_test").callbacks == ""


@pytest.mark.usefixtures("airflow_database")
def test_an_unknown_connection_is_named_with_the_variable_that_would_set_it() -> None:
    with pytest.raises(UsageError, match="AIRFLOW_CONN_NO_SUCH_ONE"):
        from_airflow("no_such_one")


@pytest.mark.usefixtures("connection", "airflow_database")
def test_the_hook_puts_the_address_together() -> None:
    assert ZooKeeperHook("zookeeper_test").address() == ZooKeeperAddress(
        hosts="zk1:2181,zk2:2181/kafka", user="topicops", password="not-for-eyes", tls=Tls(ca_file="/etc/kafka/ca.pem")
    )


@pytest.mark.usefixtures("airflow_database")
def test_the_test_button_answers_with_a_sentence_when_nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("AIRFLOW_CONN_NOBODY", json.dumps({"conn_type": "zookeeper", "host": f"127.0.0.1:{port}"}))
    works, sentence = ZooKeeperHook("nobody").test_connection()
    assert not works
    assert f"127.0.0.1:{port}" in sentence
