"""Connections as Airflow keeps them in the environment, and what a message may say of one that cannot be used."""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from topicops.edges.connections.client_properties import has_readable_password
from topicops.edges.connections.lookup import (
    KAFKA_EXAMPLE,
    ZOOKEEPER_EXAMPLE,
    Role,
    Tls,
    ZooKeeperAddress,
    from_environment,
    kafka_properties,
    zookeeper_address,
)
from topicops.flow.runs.access import Access
from topicops.model.errors import UsageError
from topicops.model.ports import ConnectionFields
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Environment, EnvironmentSpec, Policy

FILE = "topics/environments/prod-eu.yaml"
SECRET = "s3cret"


def environment(**cluster: object) -> Environment:
    spec = msgspec.convert({"cluster": {"class": "production", **cluster}}, EnvironmentSpec)
    paths = (
        "cluster.zookeeper.connection",
        "cluster.kafka.connection",
        "cluster.kafka.applier",
        "cluster.kafka.deleter",
    )
    locations = {path: Location(FILE, line) for line, path in enumerate(paths, start=7)}
    return Environment(name="prod-eu", spec=spec, file=FILE, locations=locations)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        pytest.param(
            '{"conn_type": "zookeeper", "host": "z1:2181,z2:2181", "extra": {"chroot": "/kafka"}}',
            "z1:2181,z2:2181/kafka",
            id="JSON",
        ),
        pytest.param(
            '{"conn_type": "zookeeper", "host": "z1:2181", "extra": "{\\"chroot\\": \\"kafka/\\"}"}',
            "z1:2181/kafka",
            id="extra as text",
        ),
        pytest.param('{"conn_type": "zookeeper", "host": "z1:2181"}', "z1:2181", id="no chroot"),
        pytest.param('{"conn_type": "zookeeper", "host": "z1", "port": 2182}', "z1:2182", id="port by itself"),
        pytest.param(
            '{"conn_type": "zookeeper", "host": "::1", "port": 2182}', "[::1]:2182", id="IPv6, port by itself"
        ),
        pytest.param('{"conn_type": "zookeeper", "host": "[::1]", "port": 2182}', "[::1]:2182", id="in brackets"),
        pytest.param('{"host": "fd00::2/kafka"}', "[fd00::2]/kafka", id="IPv6 without a port"),
        pytest.param('{"host": "[::1]:2181,[::2]:2181"}', "[::1]:2181,[::2]:2181", id="two of IPv6"),
        pytest.param("zookeeper://[::1]:2181/kafka", "[::1]:2181/kafka", id="URI of IPv6"),
        pytest.param("zookeeper://[::1]/kafka", "[::1]/kafka", id="URI of IPv6 without a port"),
        pytest.param('{"conn_type": "zookeeper", "host": "z1:2181/kafka"}', "z1:2181/kafka", id="chroot in the host"),
        pytest.param('{"host": "z1:2181", "extra": {"chroot": "/"}}', "z1:2181", id="root as chroot"),
        pytest.param("zookeeper://z1%3A2181%2Cz2%3A2181/?chroot=%2Fkafka", "z1:2181,z2:2181/kafka", id="URI"),
        pytest.param("zookeeper://z1:2181/?chroot=%2Fkafka", "z1:2181/kafka", id="URI with a port"),
        pytest.param(
            "zookeeper://z1:2181/?__extra__=%7B%22chroot%22%3A%20%22%2Fa%2Fb%22%7D",
            "z1:2181/a/b",
            id="URI, extra as JSON",
        ),
        pytest.param("zookeeper://z1:2181/kafka", "z1:2181/kafka", id="path of a URI"),
        pytest.param("zookeeper://z1:2181/a%2Fb", "z1:2181/a/b", id="path of two parts, as Airflow writes it"),
        pytest.param("zookeeper://z1:2181/", "z1:2181", id="root as the path of a URI"),
        pytest.param("zookeeper://z1:2181/kafka?chroot=/kafka", "z1:2181/kafka", id="twice the same"),
        pytest.param('{"host": "z1:2181", "schema": "kafka"}', "z1:2181/kafka", id="schema in JSON"),
    ],
)
def test_zookeeper_hosts_come_from_a_connection(monkeypatch: pytest.MonkeyPatch, text: str, hosts: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_ZK_PROD", text)

    assert zookeeper_address(environment(zookeeper={"connection": "zk_prod"})) == ZooKeeperAddress(hosts=hosts)


def test_addresses_in_the_environment_file_need_no_connection() -> None:
    direct = environment(zookeeper={"hosts": "z1:2181/kafka"}, kafka={"bootstrapServers": "b1:9092"})

    assert zookeeper_address(direct).hosts == "z1:2181/kafka"
    assert kafka_properties(direct, "applier") == {"bootstrap.servers": "b1:9092"}


@pytest.mark.parametrize(
    ("kafka", "role", "connection_id"),
    [
        pytest.param({"connection": "r"}, "reader", "r", id="reader"),
        pytest.param({"connection": "r"}, "applier", "r", id="applier defaults to the reader's"),
        pytest.param({"connection": "r", "applier": "a"}, "applier", "a", id="applier"),
        pytest.param({"connection": "r", "applier": "a"}, "deleter", "r", id="deleter defaults to the reader's"),
        pytest.param({"connection": "r", "applier": "a", "deleter": "d"}, "deleter", "d", id="deleter"),
        pytest.param({"connection": "r", "applier": "a", "deleter": "d"}, "reader", "r", id="reader among three"),
    ],
)
def test_each_role_has_its_own_connection(kafka: dict[str, str], role: Role, connection_id: str) -> None:
    def source(asked: str) -> ConnectionFields:
        return ConnectionFields(conn_type="kafka", extra={"bootstrap.servers": f"{asked}:9092"})

    found = kafka_properties(environment(kafka=kafka), role, source)

    assert found == {"bootstrap.servers": f"{connection_id}:9092"}


def test_kafka_properties_are_librdkafkas_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {
        "bootstrap.servers": "b1:9092",
        "socket.timeout.ms": 5000,
        "socket.keepalive.enable": True,
        "sasl.password": SECRET,
        "sasl.username": None,
    }
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_PROD", json.dumps({"conn_type": "kafka", "extra": extra}))

    found = kafka_properties(environment(kafka={"connection": "kafka_prod"}), "reader")

    assert found == {
        "bootstrap.servers": "b1:9092",
        "socket.timeout.ms": "5000",
        "socket.keepalive.enable": "true",
        "sasl.password": SECRET,
    }


def test_written_bootstrap_servers_fill_in_for_a_connection_without() -> None:
    both = environment(kafka={"connection": "k", "bootstrapServers": "b1:9092"})

    found = kafka_properties(
        both, "reader", lambda _: ConnectionFields(conn_type="kafka", extra={"security.protocol": "SSL"})
    )

    assert found == {"bootstrap.servers": "b1:9092", "security.protocol": "SSL"}


def test_a_login_goes_to_the_servers_of_its_own_connection_only() -> None:
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.password": SECRET}
    elsewhere = environment(kafka={"connection": "k", "bootstrapServers": "collector.example:9092"})

    with pytest.raises(UsageError) as refused:
        kafka_properties(elsewhere, "reader", lambda _: ConnectionFields(conn_type="kafka", extra=login))

    assert f"{FILE}:8: connection 'k' has a login (sasl.mechanism, sasl.password) and no bootstrap.servers" in str(
        refused.value
    )
    assert SECRET not in str(refused.value)


def test_servers_of_a_connection_win_over_written_ones() -> None:
    login = {"bootstrap.servers": "b1:9092", "sasl.password": SECRET}
    both = environment(kafka={"connection": "k", "bootstrapServers": "collector.example:9092"})

    assert kafka_properties(both, "reader", lambda _: ConnectionFields(conn_type="kafka", extra=login)) == login


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(None, ["'kafka_prod' is not known", "AIRFLOW_CONN_KAFKA_PROD"], id="not set"),
        pytest.param("  ", ["'kafka_prod' is not known", "AIRFLOW_CONN_KAFKA_PROD"], id="blank"),
        pytest.param(f'{{"extra": {SECRET}', ["AIRFLOW_CONN_KAFKA_PROD is neither"], id="broken JSON"),
        pytest.param(
            f'{{"extra": "{SECRET}"}}',
            ["extra is no JSON object", "AIRFLOW_CONN_KAFKA_PROD"],
            id="extra that is no JSON",
        ),
        pytest.param(
            f'{{"extra": ["{SECRET}"]}}',
            ["extra is no JSON object", "AIRFLOW_CONN_KAFKA_PROD"],
            id="extra that is a list",
        ),
        pytest.param(
            f'{{"port": "{SECRET}"}}',
            ["port is no number from 1 to 65535", "AIRFLOW_CONN_KAFKA_PROD"],
            id="port that is no number",
        ),
        pytest.param(SECRET, ["AIRFLOW_CONN_KAFKA_PROD is neither"], id="neither JSON nor URI"),
        pytest.param(f"kafka://h:{SECRET}/", ["AIRFLOW_CONN_KAFKA_PROD is neither"], id="URI with a broken port"),
        pytest.param(f'{{"extra": {{"sasl.password": "{SECRET}"}}}}', ["no bootstrap.servers"], id="no servers"),
        pytest.param(
            f'{{"extra": {{"bootstrap.servers": "b", "oauth": "{SECRET}"}}}}',
            ["oauth is no property"],
            id="no property",
        ),
        pytest.param(
            f'{{"extra": {{"bootstrap.servers": "b", "x": ["{SECRET}"]}}}}', ["property x"], id="nested property"
        ),
    ],
)
def test_unusable_connection_is_named_with_its_place_and_no_value(
    monkeypatch: pytest.MonkeyPatch, text: str | None, said: list[str]
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_PROD", raising=False)
    if text is not None:
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_PROD", text)

    with pytest.raises(UsageError) as caught:
        kafka_properties(environment(kafka={"connection": "r", "applier": "kafka_prod"}), "applier")

    for words in [f"cluster.kafka.applier, {FILE}:9: ", *said]:
        assert words in str(caught.value)
    assert SECRET not in _everything_said(caught.value)


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        pytest.param({}, f"{FILE}: cluster.zookeeper names neither", id="nothing"),
        pytest.param({"zookeeper": {}}, f"{FILE}: cluster.zookeeper names neither", id="neither"),
        pytest.param({"zookeeper": {"connection": "zk"}}, f"cluster.zookeeper.connection, {FILE}:7: ", id="not set"),
    ],
)
def test_zookeeper_that_is_nowhere_is_told_with_its_place(cluster: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        zookeeper_address(environment(**cluster))

    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"host": ""}, "has no host", id="no host"),
        pytest.param({"host": "z/a", "extra": {"chroot": "/b"}}, "different chroots in .*keep one", id="two chroots"),
        pytest.param({"host": "z", "schema": "a", "extra": {"chroot": "/b"}}, "different chroots in", id="of schema"),
        pytest.param({"host": "z/a", "schema": "b"}, "different chroots in", id="host and schema"),
    ],
)
def test_zookeeper_connection_that_says_too_little_or_too_much(fields: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        zookeeper_address(
            environment(zookeeper={"connection": "zk"}),
            lambda _: ConnectionFields(conn_type="zookeeper", **fields),  # type: ignore[arg-type]
        )


SECURED = ZooKeeperAddress(
    hosts="z1:2182",
    user="topicops",
    password=SECRET,
    tls=Tls(ca_file="/ca.pem", certificate_file="/own.pem", key_file="/own.key", key_password=SECRET),
)
TLS_EXTRA = {
    "tls": True,
    "ca_file": "/ca.pem",
    "certificate_file": "/own.pem",
    "key_file": "/own.key",
    "key_password": SECRET,
}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            json.dumps({"host": "z1:2182", "login": "topicops", "password": SECRET, "extra": TLS_EXTRA}), id="JSON"
        ),
        pytest.param(
            f"zookeeper://topicops:{SECRET}@z1:2182/?tls=true&ca_file=%2Fca.pem&certificate_file=%2Fown.pem"
            f"&key_file=%2Fown.key&key_password={SECRET}",
            id="URI",
        ),
    ],
)
def test_login_and_tls_of_zookeeper_come_from_its_connection(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_ZK", text)

    found = zookeeper_address(environment(zookeeper={"connection": "zk"}))

    assert found == SECURED
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"login": "u"}, "has a login alone", id="login without password"),
        pytest.param({"password": SECRET}, "has a password alone", id="password without login"),
        pytest.param(
            {"extra": {"ca_file": "/ca.pem"}}, "has ca_file in its extra, and no tls: true", id="forgotten tls"
        ),
        pytest.param({"extra": {"tls": SECRET}}, "has a tls in its extra that is neither", id="tls that is no boolean"),
        pytest.param({"extra": {"tls": True, "key_file": "k"}}, "one of certificate_file and key_file", id="key alone"),
        pytest.param({"extra": {"use_ssl": SECRET}}, "has use_ssl in its extra; known are chroot, tls", id="unknown"),
    ],
)
def test_zookeeper_security_that_is_half_written_is_told_with_its_place_and_no_value(
    fields: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        zookeeper_address(
            environment(zookeeper={"connection": "zk"}),
            lambda _: ConnectionFields(conn_type="zookeeper", host="z1:2182", **fields),  # type: ignore[arg-type]
        )

    assert f"cluster.zookeeper.connection, {FILE}:7: connection 'zk' " in str(caught.value)
    assert said in str(caught.value)
    assert SECRET not in _everything_said(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("ssl.endpoint.identification.algorithm", "none"), ("enable.ssl.certificate.verification", False)],
)
def test_brokers_of_a_production_cluster_are_always_checked(name: str, value: object) -> None:
    def source(_: str) -> ConnectionFields:
        return ConnectionFields(conn_type="kafka", extra={"bootstrap.servers": "b1:9093", name: value})

    with pytest.raises(UsageError, match=f"'k' has {name} that is not"):
        kafka_properties(environment(kafka={"connection": "k"}), "reader", source)
    assert name in kafka_properties(environment(kafka={"connection": "k"}, **{"class": "sandbox"}), "reader", source)


READABLE: Mapping[str, object] = {
    "bootstrap.servers": "b1:9092",
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "ops",
    "sasl.password": SECRET,
}


@pytest.mark.parametrize(
    ("more", "is_readable"),
    [
        ({}, True),
        ({"sasl.mechanism": None, "sasl.mechanisms": "PLAIN"}, True),
        ({"security.protocol": "SASL_SSL"}, False),
        ({"sasl.mechanism": "SCRAM-SHA-512"}, False),
    ],
    ids=str,
)
def test_a_production_login_does_not_send_its_password_in_the_open(
    more: Mapping[str, object], is_readable: bool
) -> None:
    def source(_: str) -> ConnectionFields:
        return ConnectionFields(conn_type="kafka", extra={**READABLE, **more})

    production = environment(kafka={"connection": "k"})
    allowed = replace(
        production, spec=msgspec.structs.replace(production.spec, policy=Policy(readable_passwords="allow"))
    )
    if is_readable:
        with pytest.raises(UsageError, match=r"'k' sends its password without TLS \(TOP812\)") as caught:
            kafka_properties(production, "reader", source)
        assert "policy.readablePasswords, by default" in str(caught.value)
        assert SECRET not in _everything_said(caught.value)
    else:
        assert kafka_properties(production, "reader", source)
    properties = kafka_properties(allowed, "reader", source)
    assert has_readable_password(properties) is is_readable
    assert kafka_properties(environment(kafka={"connection": "k"}, **{"class": "sandbox"}), "reader", source)

    access = Access(environment=allowed, run="r", home=Path(), connections=source)
    said = list(access.login_notes())
    assert len(said) == (4 if is_readable else 0)
    assert all("without TLS" in line and SECRET not in line for line in said)


def test_kafka_that_is_nowhere_is_told() -> None:
    with pytest.raises(UsageError, match=r"cluster\.kafka names neither bootstrapServers nor a connection"):
        kafka_properties(environment(), "reader")


def test_connection_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "extra": {"sasl.password": SECRET}}))

    assert SECRET not in repr(from_environment("k"))


def _everything_said(error: BaseException | None) -> str:
    """Return the texts of an error and of all that it drags along."""
    if error is None:
        return ""
    context = None if error.__suppress_context__ else error.__context__
    return f"{error!r} {_everything_said(error.__cause__)} {_everything_said(context)}"


@pytest.mark.parametrize(
    ("endpoint", "example"),
    [
        ({"zookeeper": {"connection": "zk_prod"}}, ZOOKEEPER_EXAMPLE),
        ({"kafka": {"connection": "zk_prod"}}, KAFKA_EXAMPLE),
    ],
    ids=["ZooKeeper", "Kafka"],
)
def test_an_unknown_connection_is_answered_with_a_line_to_paste_that_works(
    endpoint: dict[str, object], example: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> object:
        found = environment(**endpoint)
        return zookeeper_address(found) if "zookeeper" in endpoint else kafka_properties(found, "reader")

    with pytest.raises(UsageError, match="set the variable AIRFLOW_CONN_ZK_PROD, as in:") as error:
        read()

    name, _, text = str(error.value).partition("export ")[2].partition("=")
    monkeypatch.setenv(name, shlex.split(text)[0])
    assert json.loads(shlex.split(text)[0]) == example
    assert read()


OIDC: Mapping[str, object] = {
    "bootstrap.servers": "b1:9093",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "topicops",
    "sasl.oauthbearer.client.secret": SECRET,
    "sasl.oauthbearer.token.endpoint.url": "http://login.example/token",
}


def test_a_production_login_does_not_send_its_secret_for_tokens_in_the_open() -> None:
    def source(url: str) -> Callable[[str], ConnectionFields]:
        fields = ConnectionFields(
            conn_type="kafka", extra={**OIDC, "sasl.oauthbearer.token.endpoint.url": f"{url}://login.example/token"}
        )
        return lambda _: fields

    production = environment(kafka={"connection": "k"})
    allowed = replace(
        production, spec=msgspec.structs.replace(production.spec, policy=Policy(readable_passwords="allow"))
    )
    said = r"'k' sends its secret without TLS \(TOP812\): write https:// for the token endpoint; or allow it"
    for written in ("http", "HTTP"):
        with pytest.raises(UsageError, match=said) as caught:
            kafka_properties(production, "reader", source(written))
        assert SECRET not in _everything_said(caught.value)
    assert has_readable_password(kafka_properties(allowed, "reader", source("http")))
    assert not has_readable_password(kafka_properties(production, "reader", source("https")))


@pytest.mark.parametrize(
    ("allowlist", "is_allowed"),
    [
        pytest.param("", False, id="nothing is allowed"),
        pytest.param(" other.login , jobs.login,", True, id="one of two"),
        pytest.param("jobs", False, id="its module alone"),
        pytest.param("jobs.login.more", False, id="a longer path"),
    ],
)
def test_a_function_is_called_where_airflows_own_list_names_it(
    allowlist: str, is_allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source: KafkaBaseHook#_resolve_callbacks of Airflow's Kafka provider (2.1.0)."""
    extra = {"oauth_cb": "jobs.login", **OIDC}
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "extra": extra}))
    monkeypatch.setenv("AIRFLOW__APACHE_KAFKA__CALLBACK_ALLOWLIST", allowlist)
    if is_allowed:
        assert kafka_properties(environment(kafka={"connection": "k"}), "reader")["oauth_cb"] == "jobs.login"
    else:
        with pytest.raises(
            UsageError, match="oauth_cb names a function that is not allowed: add its path to AIRFLOW__"
        ):
            kafka_properties(environment(kafka={"connection": "k"}), "reader")


def test_a_list_in_the_connection_itself_allows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    written = {"conn_type": "kafka", "callbacks": "jobs.login", "extra": {"oauth_cb": "jobs.login", **OIDC}}
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps(written))
    with pytest.raises(UsageError, match="oauth_cb names a function that is not allowed"):
        kafka_properties(environment(kafka={"connection": "k"}), "reader")


def test_an_id_that_is_no_name_of_a_variable_gives_no_line_to_paste() -> None:
    with pytest.raises(UsageError) as error:
        zookeeper_address(environment(zookeeper={"connection": "x'; reboot; '"}))
    assert "export" not in str(error.value)
