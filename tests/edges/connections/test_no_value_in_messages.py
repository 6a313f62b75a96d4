"""No message contains a value of a connection but its addresses: each field holds a secret once, and is misused."""

from __future__ import annotations

import json
import socket
import traceback
from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import product
from typing import Any

import msgspec
import pytest

from topicops.edges.connections.client_properties import INSTEAD, KERBEROS, TOKENS, USED
from topicops.edges.connections.lookup import (
    ADDRESSES,
    TLS_FIELDS,
    ZooKeeperAddress,
    from_environment,
    kafka_properties,
    principal_of,
    zookeeper_address,
)
from topicops.edges.kafka.clients.confluent import Confluent, require_clients
from topicops.edges.kafka.clients.diagnosis import diagnosis
from topicops.edges.kafka.clients.settings import without_values
from topicops.edges.zookeeper.session import ZooKeeperSession
from topicops.model.errors import TopicopsError
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Environment, EnvironmentSpec

SECRET = "hunter2SECRET"
IDENTITIES = {"sasl.username", "ssl.certificate.location"}
"""What a message names as the principal that lacks a right."""
PROPERTIES = sorted({*USED, *INSTEAD, *KERBEROS, *TOKENS})


@pytest.fixture
def nobody() -> str:
    """Return an address of this host where nothing listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    return f"127.0.0.1:{port}"


def environment(**cluster: object) -> Environment:
    spec = msgspec.convert({"cluster": {"class": "sandbox", **cluster}}, EnvironmentSpec)
    places = ("cluster.zookeeper.hosts", "cluster.kafka.bootstrapServers")
    file = "topics/environments/local.yaml"
    return Environment(name="local", spec=spec, file=file, locations={place: Location(file, 7) for place in places})


def everything_said(work: Callable[[], object]) -> str:
    """The traceback of the error, with all its causes; empty if there is none. Only a typed error is let through."""
    try:
        work()
    except TopicopsError as error:
        return "".join(traceback.format_exception(error, limit=0, chain=True))
    return ""


def ask_kafka(written: Mapping[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that a run does with a Kafka connection before a broker has answered."""
    monkeypatch.setenv("AIRFLOW_CONN_MARKED", json.dumps({"conn_type": "kafka", "extra": dict(written)}))
    properties = kafka_properties(environment(kafka={"connection": "marked"}), "reader")
    if not IDENTITIES & properties.keys():
        assert SECRET not in principal_of(properties)
    require_clients(properties)
    client = Confluent(properties, patience_s=0.2)
    client.client()
    assert SECRET not in str([problem.text for problem in diagnosis(properties)])
    raise client.failure("nobody answers")


def is_shown(name: str, value: str) -> bool:
    """An address is named in messages, so that a person knows which server they are about; a login in it is not."""
    return name in ADDRESSES and "@" not in value


VALUES = (SECRET, f"x={SECRET} y=1", f"user:{SECRET}@host:9092")


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_of_kafka_shows_no_value(name: str, nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    login = {"sasl.username": "u", "sasl.password": "p"}
    values = [value for value in VALUES if not is_shown(name, value)]
    protocols = [("SASL_PLAINTEXT", "OAUTHBEARER"), ("SASL_SSL", "PLAIN"), ("SASL_SSL", "GSSAPI")]
    # Tokens come from nobody, so that a wrong value of a property is met in each place that could give them.
    of_tokens = {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": f"http://{nobody}/"}
    of_tokens |= {f"sasl.oauthbearer.client.{part}": SECRET for part in ("id", "secret")}
    for value, (protocol, mechanism) in product(values, protocols):
        asked = {"bootstrap.servers": nobody, "security.protocol": protocol, "sasl.mechanism": mechanism}
        more = of_tokens if mechanism == "OAUTHBEARER" else login
        whole = {**asked, **more, name: value}

        said = everything_said(lambda whole=whole: ask_kafka(whole, monkeypatch))

        assert said
        assert SECRET not in said, (protocol, said)


def test_a_value_in_an_error_of_the_client_is_masked() -> None:
    properties = {"sasl.password": SECRET, "bootstrap.servers": "b1.example:9092", "security.protocol": "SASL_SSL"}

    text = without_values(f"b1.example:9092: SASL_SSL {SECRET} refused", properties)

    assert text == "b1.example:9092: SASL_SSL *** refused"


FIELDS = ("conn_type", "host", "port", "login", "password", "schema", "extra")
FOREIGN: dict[str, Any] = {
    "text": SECRET,
    "a list": [SECRET],
    "an object": {SECRET: SECRET},
    "deep": json.loads('{"a":' * 500 + f'"{SECRET}"' + "}" * 500),
    "a login": f"user:{SECRET}@zk1:2181",
    "a chroot": f"/{SECRET}",
}


ALL_FIELDS = (*FIELDS, *(f"extra.{field}" for field in (*TLS_FIELDS, "chroot", "tls", "other")))


def is_named(name: str, kind: str) -> bool:
    """Messages name the address and the chroot, and the fields of the extra."""
    is_address = name in ("host", "schema", "extra.chroot") and kind in ("text", "a chroot")
    return is_address or (name == "extra" and kind == "an object")


def test_a_field_of_zookeeper_shows_no_value(nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [pair for pair in product(ALL_FIELDS, FOREIGN) if not is_named(*pair)]
    said = {pair: said_of_zookeeper(*pair, nobody, monkeypatch) for pair in pairs}
    assert {pair: text for pair, text in said.items() if SECRET in text} == {}
    assert {name for (name, _), text in said.items() if not text} <= {"conn_type", "login", "password", "schema"}


def said_of_zookeeper(name: str, kind: str, nobody: str, monkeypatch: pytest.MonkeyPatch) -> str:
    written: dict[str, Any] = {
        "conn_type": "zookeeper",
        "host": nobody,
        "login": "u",
        "password": "p",
        "extra": {"tls": True},
    }
    field, _, below = name.partition(".")
    if below:
        written["extra"] = {**written["extra"], below: FOREIGN[kind]}
    else:
        written[field] = FOREIGN[kind]
    monkeypatch.setenv("AIRFLOW_CONN_MARKED", json.dumps(written))
    return everything_said(ask_zookeeper)


def ask_zookeeper() -> ZooKeeperAddress:
    address = zookeeper_address(environment(zookeeper={"connection": "marked"}))
    with ZooKeeperSession(address, timeout_s=0.2):
        return address


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param('{"port": [2181]}', "port is no number", id="a list for a port"),
        pytest.param('{"port": 1e400}', "port is no number", id="a number without end"),
        pytest.param(f'{{"port": {"9" * 5000}}}', "neither a connection as JSON", id="5,000 digits"),
        pytest.param('{"port": 70000}', "port is no number", id="a port that there is not"),
        pytest.param('{"port": true}', "port is no number", id="true for a port"),
        pytest.param('{"host": ["zk1"]}', "host is no text", id="a list for a host"),
        pytest.param('{"extra": 5}', "extra is no JSON object", id="a number for an extra"),
        pytest.param('{"extra": "5"}', "extra is no JSON object", id="a number in the text of an extra"),
        pytest.param(f'{{"extra": {"[" * 50_000 + "]" * 50_000}}}', "neither a connection as JSON", id="a deep extra"),
        pytest.param(json.dumps({"extra": "[" * 50_000}), "extra is no JSON object", id="a deep text of an extra"),
        pytest.param("[" * 50_000, "neither a connection as JSON", id="deep"),
        pytest.param('{"a":' * 50_000, "neither a connection as JSON", id="deep objects"),
    ],
)
def test_a_foreign_value_is_a_sentence(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MARKED", text)

    assert said in everything_said(lambda: from_environment("marked"))


@pytest.mark.parametrize(
    "cluster", [{"zookeeper": {"hosts": "u:p@zk1:2181"}}, {"kafka": {"bootstrapServers": "u:p@b1:9092"}}]
)
def test_a_login_among_the_addresses_of_a_file_is_refused(cluster: dict[str, object]) -> None:
    asked = environment(**cluster)

    said = everything_said(
        lambda: zookeeper_address(asked) if "zookeeper" in cluster else kafka_properties(asked, "reader")
    )

    assert "topics/environments/local.yaml" in said
    assert "has an @; write host:port" in said
    assert "u:p" not in said
