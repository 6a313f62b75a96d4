"""What a connection holds in secret is on Airflow's own mask once a task has asked for the connection."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from airflow.sdk._shared.secrets_masker import _secrets_masker, redact

from topicops.on_airflow.connections import from_airflow, mask_settings

pytestmark = pytest.mark.usefixtures("airflow_database", "empty_mask")

KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASCBKcwggSjAgEAAoIBAQ\n-----END PRIVATE KEY-----"


@pytest.fixture
def empty_mask() -> Iterator[None]:
    _secrets_masker().reset_masker()
    yield
    _secrets_masker().reset_masker()


@pytest.mark.parametrize(
    ("fields", "secret"),
    [
        pytest.param({"conn_type": "zookeeper", "password": "zk-pa55word"}, "zk-pa55word", id="ZooKeeper's password"),
        pytest.param({"conn_type": "zookeeper", "extra": {"key_password": "k3y-pa55"}}, "k3y-pa55", id="of its key"),
        pytest.param({"conn_type": "kafka", "extra": {"sasl.password": "s4sl-pa55"}}, "s4sl-pa55", id="SASL's"),
        pytest.param({"conn_type": "kafka", "extra": {"sasl.password": 48151623}}, "48151623", id="as a number"),
        pytest.param({"conn_type": "kafka", "extra": {"ssl.key.password": "t1s-pa55"}}, "t1s-pa55", id="TLS's"),
        pytest.param(
            {"conn_type": "kafka", "extra": {"sasl.oauthbearer.client.secret": "0auth-s3cret"}},
            "0auth-s3cret",
            id="OAuth's",
        ),
        pytest.param(
            {"conn_type": "kafka", "extra": {"sasl.oauthbearer.config": "principal=us scope=all"}},
            "principal=us scope=all",
            id="OAuth's other",
        ),
        pytest.param(
            {"conn_type": "kafka", "extra": {"sasl.jaas.config": "PlainLoginModule required password=j4as-pa55;"}},
            "PlainLoginModule required password=j4as-pa55;",
            id="of a Java client",
        ),
        pytest.param({"conn_type": "kafka", "extra": {"ssl.key.pem": KEY}}, KEY, id="a key in the connection"),
        pytest.param({"conn_type": "kafka", "extra": {"ssl.key.pem": KEY}}, KEY.splitlines()[1], id="a line of it"),
        pytest.param(
            {"conn_type": "spark_connect", "password": "c0nnect-t0ken"}, "c0nnect-t0ken", id="Connect's token"
        ),
        pytest.param(
            {"conn_type": "spark", "extra": {"spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net": "4zure-k3y"}},
            "4zure-k3y",
            id="a store's key",
        ),
    ],
)
def test_a_secret_is_masked_once_its_connection_was_asked_for(
    fields: dict[str, object], secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MASKED", json.dumps({"host": "localhost:2181", **fields}))
    line = f"broker said: {secret}; try again"
    assert redact(line) == line

    from_airflow("masked")

    masked = str(redact(line))
    assert masked.startswith("broker said: ***")
    assert [part for part in secret.splitlines() if part in masked] == []


@pytest.mark.parametrize(
    ("extra", "messages"),
    [
        pytest.param({}, 0, id="without secrets of other names"),
        pytest.param({"ssl.key.pem": KEY, "sasl.jaas.config": "a b=c;", "sasl.password": 48151623}, 1, id="with three"),
    ],
)
def test_the_worker_is_told_of_all_secrets_of_a_connection_at_once(
    extra: dict[str, object], messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr("topicops.on_airflow.connections.mask_secret", told.append)
    monkeypatch.setenv("AIRFLOW_CONN_MASKED", json.dumps({"conn_type": "kafka", "extra": extra}))
    from_airflow("masked")
    assert len(told) == messages


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("TOPICOPS_SPARK", "sc://localhost:15002/;token=c0nnect-t0ken"),
        ("TOPICOPS_SPARK_CONF", '{"spark.hadoop.fs.s3a.secret.key": "c0nnect-t0ken"}'),
    ],
)
def test_a_secret_of_a_variable_is_masked_before_a_task_does_anything(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)

    mask_settings()

    assert redact("Spark said: c0nnect-t0ken") == "Spark said: ***"


def test_what_is_no_secret_stays_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = {
        "bootstrap.servers": "kafka1.example:9092",
        "sasl.username": "topicops-reader",
        "socket.timeout.ms": 60000,
    }
    monkeypatch.setenv("AIRFLOW_CONN_MASKED", json.dumps({"conn_type": "kafka", "extra": servers}))

    from_airflow("masked")

    line = "kafka1.example:9092: topicops-reader waited 60 ms"
    assert redact(line) == line
