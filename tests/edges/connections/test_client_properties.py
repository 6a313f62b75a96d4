"""Which properties of a connection both Kafka clients are given, which none, and which are refused with a way out."""

from __future__ import annotations

import ctypes
import re
import sys
from itertools import combinations
from pathlib import Path
from types import ModuleType, SimpleNamespace

import confluent_kafka
import msgspec
import pytest

from topicops.edges.connections import client_properties as kinds
from topicops.edges.connections.client_properties import is_ignored, problems, used
from topicops.edges.connections.lookup import kafka_properties
from topicops.model.errors import UsageError
from topicops.model.ports import ConnectionFields
from topicops.model.specs.environment import Environment, EnvironmentSpec

SERVERS = {"bootstrap.servers": "b1:9092"}
LOGIN = {**SERVERS, "security.protocol": "SASL_SSL"}
USER = {"sasl.username": "u", "sasl.password": "s3cret"}
URL = "sasl.oauthbearer.token.endpoint.url"
TOKENS = {
    **LOGIN,
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "topicops",
    "sasl.oauthbearer.client.secret": "s3cret",
    URL: "https://idp.example/token",
}
MSK = "b-1.demo.abcde1.c2.kafka.eu-west-1.amazonaws.com:9098"
MSK_SERVERLESS = "boot-abcde1.c2.kafka-serverless.us-east-1.amazonaws.com:9098"
MSK_CHINA = "b-1.demo.abcde1.c2.kafka.cn-north-1.amazonaws.com.cn:9098,b-2:9098"
GOOGLE = "bootstrap.demo.europe-west1.managedkafka.project.cloud.goog:9092"
ALL_KINDS = {
    "both": kinds.KAFKA_PYTHON.keys(),
    "TLS": kinds.TLS,
    "librdkafka alone": kinds.LIBRDKAFKA_ALONE,
    "tokens": kinds.TOKENS,
    "Kerberos": kinds.KERBEROS,
    "consumers": kinds.CONSUMERS,
    "producers": kinds.PRODUCERS,
    "tuning": kinds.TUNING,
    "refused": kinds.INSTEAD.keys(),
}


@pytest.fixture(scope="module")
def scopes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """C, P or * by name, as the installed librdkafka lists its properties itself."""
    [library] = (Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs").glob("librdkafka*")
    c, file = ctypes.CDLL(None), tmp_path_factory.mktemp("librdkafka") / "list"
    c.fopen.restype, c.fclose.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    show = ctypes.CDLL(str(library)).rd_kafka_conf_properties_show
    show.argtypes = [ctypes.c_void_p]
    stream = c.fopen(str(file).encode(), b"w")
    show(stream)
    c.fclose(stream)
    return dict(re.findall(r"^([a-z_.]+) +\| +([CP*]) +\|", file.read_text(), flags=re.MULTILINE))


def test_every_property_of_librdkafka_is_of_one_kind(scopes: dict[str, str]) -> None:
    assert len(scopes) > 180
    assert scopes.keys() - kinds.KNOWN == set()
    assert [(one, other) for one, other in combinations(ALL_KINDS, 2) if ALL_KINDS[one] & ALL_KINDS[other]] == []


def test_properties_of_consumers_and_producers_are_those_of_librdkafkas_list(scopes: dict[str, str]) -> None:
    for letter, names in (("C", kinds.CONSUMERS), ("P", kinds.PRODUCERS)):
        assert {name for name, scope in scopes.items() if scope == letter} == names & scopes.keys()


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param({"group.id": "g", "enable.auto.commit": False, "auto.offset.reset": "beginning"}, id="consumers"),
        pytest.param({"group.id": "g", "session.timeout.ms": 45000, "isolation.level": "x"}, id="more of consumers"),
        pytest.param({"acks": "all", "linger.ms": 5, "compression.type": "zstd", "retries": 9}, id="producers"),
        pytest.param({"retry.backoff.ms": 9, "message.max.bytes": 1, "statistics.interval.ms": 9}, id="tuning"),
        pytest.param({"error_cb": "jobs.on_error", "debug": "all", "log_level": 7}, id="logs and callbacks"),
        pytest.param({"topic.blacklist": "^orders"}, id="hides topics"),
        pytest.param({"default.topic.config": {"acks": 1}, "topic.acks": "1"}, id="configs of topics"),
        pytest.param({"sasl.kerberos.service.name": "kafka"}, id="Kerberos without a login"),
        pytest.param({"sasl.oauthbearer.method": "oidc"}, id="tokens without a login"),
    ],
)
def test_what_no_request_of_a_run_needs_is_given_to_no_client(extra: dict[str, object]) -> None:
    assert properties_of({**SERVERS, **extra}) == SERVERS


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param({"client.dns.lookup": "use_all_dns_ips", "socket.timeout.ms": "9000"}, id="network"),
        pytest.param({**LOGIN, **USER, "sasl.mechanism": "SCRAM-SHA-512", "ssl.ca.location": "/ca"}, id="login"),
        pytest.param({**LOGIN, **USER, "sasl.mechanisms": "PLAIN", "ssl.ca.pem": "x"}, id="its other name"),
        pytest.param({"security.protocol": "SSL", "ssl.certificate.pem": "x", "ssl.key.pem": "y"}, id="TLS"),
        pytest.param(TOKENS, id="tokens of OIDC"),
        pytest.param({**TOKENS, "https.ca.location": "/ca", "sasl.oauthbearer.extensions": "a=b"}, id="more of OIDC"),
    ],
)
def test_what_counts_is_given_to_both(extra: dict[str, object]) -> None:
    assert properties_of({**SERVERS, **extra}) == {**SERVERS, **extra}


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        pytest.param({"sasl.jaas.config": "s3cret"}, "write its user and password as sasl.username", id="JAAS"),
        pytest.param({"ssl.truststore.location": "/s3cret"}, "name it as ssl.ca.location", id="trust store"),
        pytest.param({"ssl.truststore.password": "s3cret"}, "ssl.ca.location has no password", id="its password"),
        pytest.param({"ssl.keystore.location": "/s3cret"}, "as ssl.certificate.location and", id="key store"),
        pytest.param({"ssl.engine.id": "s3cret"}, "no counterpart in the second client", id="engine"),
        pytest.param({"security.protocl": "s3cret"}, "did you mean security.protocol?", id="slip of the pen"),
        pytest.param({"sasl.user": "s3cret"}, "did you mean sasl.username?", id="half a name"),
        pytest.param({"colour": "s3cret"}, "colour is no property of librdkafka: take it out", id="no property"),
        pytest.param(
            {**TOKENS, "sasl.oauthbearer.method": "default"}, "OAUTHBEARER needs a place that gives", id="no place"
        ),
        pytest.param({**TOKENS, "sasl.oauthbearer.client.id": ""}, "oidc needs sasl.oauthbearer.client.id", id="no id"),
        pytest.param(
            {**TOKENS, "sasl.oauthbearer.client.secret": None}, "oidc needs sasl.oauthbearer.client.s", id="no secret"
        ),
        pytest.param({**TOKENS, URL: "https://u:s3cret@idp/"}, "as https://host/path without a login", id="URL: login"),
        pytest.param({**TOKENS, URL: "ftp://s3cret/"}, "oidc needs sasl.oauthbearer.token.endpoint.url", id="URL: FTP"),
        pytest.param({**TOKENS, URL: "https://s3cret:99999/"}, "oidc needs sasl.oauthbearer.token", id="URL: port"),
        pytest.param({**TOKENS, "sasl.oauthbearer.extensions": "auth=s3cret"}, "must be name=value", id="extension"),
        pytest.param(
            {**TOKENS, "sasl.oauthbearer.grant.type": "s3cret"}, "grant.type must be client_credentials", id="grant"
        ),
        pytest.param(
            {**TOKENS, "sasl.oauthbearer.assertion.file": "/s3cret"}, "assertion.file is not supported", id="assertion"
        ),
        pytest.param(
            {**LOGIN, "sasl.mechanism": "OAUTHBEARER", "enable.sasl.oauthbearer.unsecure.jwt": True},
            "write sasl.oauthbearer.method: oidc, or a function as oauth_cb",
            id="no signature",
        ),
        pytest.param({**TOKENS, "oauth_cb": "s3cret"}, "add its path to AIRFLOW__APACHE_KAFKA__C", id="callback"),
        pytest.param({**LOGIN, "sasl.mechanism": "AWS_MSK_IAM"}, "write OAUTHBEARER, and the servers' own", id="IAM"),
        pytest.param(
            {**LOGIN, "sasl.mechanism": "GSSAPI", "sasl.kerberos.keytab": "/s3cret", "sasl.kerberos.principal": "p"},
            "sasl.mechanism GSSAPI (with sasl.kerberos.keytab, sasl.kerberos.principal): Kerberos is not supported",
            id="Kerberos",
        ),
        pytest.param(LOGIN, "sasl.mechanism is not written, which means GSSAPI: Kerberos", id="no mechanism"),
        pytest.param({**LOGIN, "sasl.mechanism": "s3cret"}, "none that both clients have", id="another mechanism"),
        pytest.param({**LOGIN, "sasl.mechanism": "scram-sha-256"}, "none that both clients", id="in small letters"),
        pytest.param(
            {**LOGIN, "sasl.mechanism": "PLAIN", "sasl.username": "s3cret"},
            "PLAIN needs both sasl.username and sasl.password",
            id="no password",
        ),
        pytest.param(
            {**LOGIN, **USER, "sasl.mechanism": "PLAIN", "sasl.mechanisms": "SCRAM-SHA-256"},
            "sasl.mechanism and sasl.mechanisms are two names for one property",
            id="two mechanisms",
        ),
        pytest.param({"bootstrap.servers": "s3cret:abc"}, "bootstrap.servers must be host:port", id="no port"),
        pytest.param({"bootstrap.servers": "b1:9092,s3cret:"}, "bootstrap.servers must be", id="half a port"),
        pytest.param({"bootstrap.servers": "[::1"}, "bootstrap.servers must be host:port", id="half an address"),
        pytest.param({"bootstrap.servers": " , "}, "bootstrap.servers must be host:port", id="no server"),
    ],
)
def test_what_cannot_be_used_is_one_error_with_a_way_out_and_no_value(extra: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        properties_of({**SERVERS, **extra})

    assert "connection 'k' cannot be used: " in str(caught.value)
    assert said in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "kind"),
    [
        pytest.param({}, "oidc", id="OIDC"),
        pytest.param({"oauth_cb": "jobs.login"}, "callable", id="a function goes before OIDC"),
        pytest.param({"bootstrap.servers": MSK}, "msk-iam", id="MSK goes before OIDC"),
        pytest.param({"bootstrap.servers": MSK_SERVERLESS}, "msk-iam", id="MSK Serverless"),
        pytest.param({"bootstrap.servers": MSK_CHINA}, "msk-iam", id="MSK in China"),
        pytest.param({"bootstrap.servers": f"{MSK}.evil.example:1"}, "oidc", id="a name that only begins as MSK's"),
        pytest.param({"bootstrap.servers": MSK, "oauth_cb": "jobs.login"}, "callable", id="a function goes before MSK"),
        pytest.param({"bootstrap.servers": GOOGLE, "oauth_cb": "jobs.login"}, "google", id="Google goes before all"),
        pytest.param({"sasl.mechanism": "PLAIN", "bootstrap.servers": MSK}, None, id="no token"),
        pytest.param({"security.protocol": "SSL", "bootstrap.servers": MSK}, None, id="no login"),
    ],
)
def test_tokens_come_from_where_airflows_provider_takes_them(
    extra: dict[str, str], kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {**SERVERS, **TOKENS, **extra}
    for name in GOOGLES_PROVIDER:
        module = ModuleType(name)
        vars(module)["ManagedKafkaHook"] = lambda: SimpleNamespace(get_confluent_token="google")
        monkeypatch.setitem(sys.modules, name, module)
    assert kinds.token_kind(properties) == kind
    assert _kind_of_airflow(properties) == kind


def _kind_of_airflow(properties: dict[str, str]) -> str | None:
    """Return what the provider's own hook adds to these properties, where librdkafka would use it."""
    from airflow.providers.apache.kafka.hooks import base

    class Hook(base.KafkaBaseHook):
        def get_connection(self, _: str) -> SimpleNamespace:
            return SimpleNamespace(extra_dejson=dict(properties))

        def _resolve_callbacks(self, config: dict[str, object]) -> None:
            pass

    config = Hook()._build_config()
    mechanism = config.get("sasl.mechanism")
    if mechanism != "OAUTHBEARER" or not config["security.protocol"].startswith("SASL"):
        return None
    found = config.get("oauth_cb", "oidc")
    return {"jobs.login": "callable", "google": "google", "oidc": "oidc"}.get(str(found), "msk-iam")


def test_all_that_cannot_be_used_is_named_at_once() -> None:
    found = list(
        problems({**LOGIN, "sasl.mechanism": "AWS_MSK_IAM", "sasl.jaas.config": "x", "ssl.truststore.type": "x"})
    )

    assert [sentence.split()[0] for sentence in found] == ["sasl.mechanism", "sasl.jaas.config", "ssl.truststore.type"]


def test_no_property_of_a_login_or_of_tls_is_ignored() -> None:
    assert [name for name in kinds.KNOWN if is_ignored(name) and name.startswith(("sasl", "ssl", "security"))] == []
    assert used(dict.fromkeys(kinds.TLS, "x")).keys() == kinds.TLS


GOOGLES_PROVIDER = (
    "airflow.providers.google",
    "airflow.providers.google.cloud",
    "airflow.providers.google.cloud.hooks",
    "airflow.providers.google.cloud.hooks.managed_kafka",
)
"""Modules that the hook imports, which are not installed here."""


def properties_of(extra: dict[str, object]) -> dict[str, str]:
    spec = msgspec.convert({"cluster": {"class": "sandbox", "kafka": {"connection": "k"}}}, EnvironmentSpec)
    environment = Environment(name="local", spec=spec, file="topics/environments/local.yaml")
    return kafka_properties(environment, "reader", lambda _: ConnectionFields(conn_type="kafka", extra=extra))
