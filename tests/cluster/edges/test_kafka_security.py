"""A broker with TLS and SASL: the client comes in, or its error has the reason."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from fakes.changes import create_topic
from fixtures.certificates import Authority, Identity
from fixtures.cluster import running
from fixtures.live import new_admin
from topicops.edges.kafka.admin import KafkaAdmin
from topicops.edges.kafka.clients.confluent import require_clients
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.edges.kafka.questions.broker_views import BrokerViews
from topicops.model.errors import (
    CertificateError,
    ClusterError,
    ClusterUnreachableError,
    ConnectionSecurityError,
    LoginRefusedError,
    UsageError,
)
from topicops.model.ports import AnswerKind, BrokerView
from topicops_local.cluster import LocalCluster
from topicops_local.processes import free_port

USER, PASSWORD = "topicops", "s3cret-pa55"
KEY_PASSWORD = "s3cret-k3y"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredBroker:
    """Its certificate is for ``localhost``, not for ``127.0.0.1``; it wants no certificate of clients."""

    cluster: LocalCluster
    ports: Mapping[str, int]
    """By security protocol."""
    ca: Authority
    other_ca: Authority

    def properties(self, protocol: str, *, at: str = "", **more: str) -> dict[str, str]:
        """What a connection holds for a client that speaks ``protocol``, to the port of ``at`` where it is given."""
        given = {"bootstrap.servers": f"localhost:{self.ports[at or protocol]}", "security.protocol": protocol}
        if "SSL" in protocol.split("_"):
            given["ssl.ca.location"] = str(self.ca.certificate)
        if protocol.startswith("SASL"):
            given |= {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": USER, "sasl.password": PASSWORD}
        return given | {name.replace("_", "."): value for name, value in more.items()}


@pytest.fixture(scope="module")
def secured_broker(fast_folder: Path) -> Iterator[SecuredBroker]:
    home = fast_folder / "secured-broker"
    ca, other_ca = Authority.found(home / "ca", "ca"), Authority.found(home / "other-ca", "other-ca")
    ports: dict[str, int] = {}
    for protocol in PROTOCOLS:
        ports[protocol] = free_port(frozenset(ports.values()))
    own = ca.issue("broker", subject_alt_name="DNS:localhost")
    with running(
        home, brokers=1, broker_ports=[ports["PLAINTEXT"]], broker_properties=_properties(ports, own, ca)
    ) as cluster:
        _add_user(cluster.bootstrap_servers)
        yield SecuredBroker(cluster=cluster, ports=ports, ca=ca, other_ca=other_ca)


def _properties(ports: Mapping[str, int], own: Identity, ca: Authority) -> dict[str, str]:
    return {
        "listeners": ",".join(f"{protocol}://127.0.0.1:{port}" for protocol, port in ports.items()),
        "advertised.listeners": ",".join(f"{protocol}://localhost:{port}" for protocol, port in ports.items()),
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        **{
            f"listener.name.{listener}.scram-sha-256.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            )
            for listener in ("sasl_plaintext", "sasl_ssl")
        },
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own.both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(ca.certificate),
    }


def _add_user(bootstrap_servers: str) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    client = new_admin(bootstrap_servers)
    [added] = client.alter_user_scram_credentials(
        [UserScramCredentialUpsertion(USER, info, PASSWORD.encode())]
    ).values()
    added.result(timeout=30)


WRONG_PASSWORD = "wr0ng-pa55"


def error_of(properties: dict[str, str]) -> ClusterError:
    with pytest.raises(ClusterError) as caught:
        KafkaAdmin(properties, request_timeout_s=4.0).cluster_id()
    assert not any(secret in f"{caught.value!r} {caught.value.__cause__!r}" for secret in (PASSWORD, WRONG_PASSWORD))
    return caught.value


def assert_told(error: ClusterError, kind: type[ClusterError], *words: str) -> None:
    assert type(error) is kind, error
    for word in words:
        assert word in str(error)


# --- who may come in --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_both_clients_come_in_by_each_security_protocol(secured_broker: SecuredBroker, protocol: str) -> None:
    properties = secured_broker.properties(protocol)
    views, questions = BrokerViews(properties), BrokerQuestions(properties)
    try:
        assert KafkaAdmin(properties).cluster_id() == secured_broker.cluster.cluster_id
        assert isinstance(views.views([1], [])[1], BrokerView)
        assert questions.broker_defaults() is not None
    finally:
        views.close()
        questions.close()


def test_both_clients_take_texts_in_place_of_files(secured_broker: SecuredBroker) -> None:
    own = secured_broker.ca.issue("client", key_password=KEY_PASSWORD)
    texts = {
        "ssl.ca.pem": secured_broker.ca.certificate.read_text(),
        "ssl.certificate.pem": own.certificate.read_text(),
        "ssl.key.pem": own.key.read_text(),
        "ssl.key.password": KEY_PASSWORD,
    }
    properties = {**secured_broker.properties("SASL_SSL"), **texts}
    del properties["ssl.ca.location"]
    views = BrokerViews(properties)
    try:
        require_clients(properties)
        assert KafkaAdmin(properties).cluster_id() == secured_broker.cluster.cluster_id
        assert isinstance(views.views([1], [])[1], BrokerView)
    finally:
        views.close()


def test_both_clients_do_without_a_check_of_the_broker(secured_broker: SecuredBroker) -> None:
    unchecked = secured_broker.properties(
        "SSL",
        bootstrap_servers=f"127.0.0.1:{secured_broker.ports['SSL']}",
        ssl_ca_location=str(secured_broker.other_ca.certificate),
    ) | {"enable.ssl.certificate.verification": "false"}
    views = BrokerViews(unchecked)
    try:
        assert KafkaAdmin(unchecked).cluster_id() == secured_broker.cluster.cluster_id
        assert isinstance(views.views([1], [])[1], BrokerView)
    finally:
        views.close()


def test_a_topic_is_made_over_tls_and_a_login(secured_broker: SecuredBroker) -> None:
    admin = KafkaAdmin(secured_broker.properties("SASL_SSL"))
    [answer] = admin.create([create_topic("secured", [1])])
    assert answer.kind is AnswerKind.ACCEPTED, answer


# --- who may not ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        pytest.param({"sasl_password": WRONG_PASSWORD}, "check sasl.username and sasl.password", id="password"),
        pytest.param({"sasl_username": "nobody"}, "check sasl.username and sasl.password", id="user"),
        pytest.param({"sasl_mechanism": "PLAIN"}, "it takes SCRAM-SHA-256; sasl.mechanism is PLAIN", id="mechanism"),
    ],
)
def test_a_wrong_login_is_told_as_one(secured_broker: SecuredBroker, wrong: dict[str, str], said: str) -> None:
    assert_told(error_of(secured_broker.properties("SASL_SSL", **wrong)), LoginRefusedError, said)


@pytest.mark.parametrize(
    ("protocol", "at", "kind", "said"),
    [
        pytest.param("PLAINTEXT", "SASL_PLAINTEXT", LoginRefusedError, "it wants a login (SCRAM-SHA-256)", id="login"),
        pytest.param("SSL", "SASL_SSL", LoginRefusedError, "it wants a login (SCRAM-SHA-256)", id="login over TLS"),
        pytest.param("SASL_SSL", "SSL", ConnectionSecurityError, "it takes no login", id="no login over TLS"),
        pytest.param("SASL_PLAINTEXT", "SASL_SSL", ConnectionSecurityError, "it accepts only TLS", id="TLS"),
        pytest.param("SSL", "PLAINTEXT", ConnectionSecurityError, "it speaks no TLS", id="no TLS"),
    ],
)
def test_the_port_of_another_security_protocol_is_told_as_one(
    secured_broker: SecuredBroker, protocol: str, at: str, kind: type[ClusterError], said: str
) -> None:
    error = error_of(secured_broker.properties(protocol, at=at))
    assert_told(error, kind, f"localhost:{secured_broker.ports[at]}: {said}", f"security.protocol is {protocol}")


def test_a_broker_of_another_authority_is_told_as_one(secured_broker: SecuredBroker) -> None:
    error = error_of(secured_broker.properties("SSL", ssl_ca_location=str(secured_broker.other_ca.certificate)))
    assert_told(error, CertificateError, "unable to get local issuer certificate", "ssl.ca.location")


def test_a_certificate_for_another_name_is_told_as_one(secured_broker: SecuredBroker) -> None:
    error = error_of(secured_broker.properties("SSL", bootstrap_servers=f"127.0.0.1:{secured_broker.ports['SSL']}"))
    assert_told(error, CertificateError, "not valid for '127.0.0.1'")


def test_a_missing_authority_is_bad_usage_at_once(secured_broker: SecuredBroker) -> None:
    with pytest.raises(UsageError, match=r"ssl\.ca\.location: the client refuses it"):
        KafkaAdmin(secured_broker.properties("SSL", ssl_ca_location="/nowhere.pem")).cluster_id()


def test_servers_that_cannot_be_reached_are_told_one_by_one(secured_broker: SecuredBroker) -> None:
    port = free_port()
    error = error_of(secured_broker.properties("SSL", bootstrap_servers=f"127.0.0.1:{port},nowhere.invalid:9092"))
    assert_told(error, ClusterUnreachableError, f"127.0.0.1:{port}: Connection refused", "nowhere.invalid:9092: ")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        # It meets either the answer or the end of the connection, whichever comes first.
        pytest.param(
            {"sasl_password": WRONG_PASSWORD}, "invalid credentials|a refused login and a port", id="password"
        ),
        pytest.param({"ssl_ca_location": "other"}, "CERTIFICATE_VERIFY_FAILED", id="authority"),
    ],
)
def test_the_second_client_tells_what_it_knows(secured_broker: SecuredBroker, wrong: dict[str, str], said: str) -> None:
    more = {k: str(secured_broker.other_ca.certificate) if v == "other" else v for k, v in wrong.items()}
    views = BrokerViews(secured_broker.properties("SASL_SSL", **more))
    try:
        [sentence] = views.views([1], []).values()
    finally:
        views.close()
    assert isinstance(sentence, str)
    assert re.search(said, sentence)
    assert WRONG_PASSWORD not in sentence
