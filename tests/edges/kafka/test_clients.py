"""What both Kafka clients are given, and what each error code means."""

import socket
import ssl
import threading
import time
import weakref
from concurrent.futures import Future
from contextlib import closing
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from confluent_kafka import KafkaError
from kafka import errors
from kafka.net.selector import NetworkSelector

from topicops.edges.kafka.admin import cluster_id_of
from topicops.edges.kafka.answers import (
    CONTROLLER_CODES,
    FAILED_CODES,
    LOCAL_FAILED_CODES,
    RETRY_CODES,
    UNNAMED_CODES,
    answer_kind,
)
from topicops.edges.kafka.clients.confluent import Confluent, require_clients
from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections, _answer_or_problem, other_identity
from topicops.edges.kafka.clients.requests import metadata_request
from topicops.edges.kafka.clients.settings import confluent_settings, kafka_python_settings
from topicops.flow.runs.access import TAKEN_SERVERS
from topicops.model.errors import ClusterUnreachableError, UsageError
from topicops.model.memory import gc_paused
from topicops.model.ports import AnswerKind
from topicops.model.specs.broker_settings import topic_defaults
from topicops.model.specs.topic_config import TOPIC_CONFIGS

KNOWN_CODES = {
    code: name for name in dir(KafkaError) if name.isupper() and isinstance(code := getattr(KafkaError, name), int)
}
UNCLEAR_CODES = frozenset(
    {
        KafkaError.UNKNOWN,  # thrown anywhere between the first znode and the last
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.STALE_BROKER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
    }
)
LOCAL_UNCLEAR_CODES = frozenset(range(-199, -136)) - LOCAL_FAILED_CODES
"""Librdkafka's other codes: they do not say what became of the request."""

FOREIGN_CODES = frozenset(
    {*range(1, 3), 4, 6, *range(9, 11), 12, *range(18, 29), 32, 43, *range(45, 54), 59}
    | {*range(61, 72), *range(74, 77), 78, 79, 81, 82, 87, 88, 90, *range(93, 97)}
    | {*range(110, 114), *range(117, 129), *range(130, 134)}
)
"""Answers to producers, consumers, groups, transactions, tokens, features and voters: never to our requests."""
TABLES = (
    FAILED_CODES, FOREIGN_CODES, RETRY_CODES, UNCLEAR_CODES, CONTROLLER_CODES, LOCAL_FAILED_CODES, LOCAL_UNCLEAR_CODES,
)  # fmt: skip


def test_every_code_that_the_client_knows_has_been_thought_of() -> None:
    mapped = frozenset({KafkaError.NO_ERROR}).union(*TABLES)

    assert len(KNOWN_CODES) >= 170
    assert {name for code, name in KNOWN_CODES.items() if code not in mapped} == set()


def test_no_code_means_two_things() -> None:
    assert len(frozenset().union(*TABLES)) == sum(map(len, TABLES))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        pytest.param(0, AnswerKind.ACCEPTED, id="no error"),
        pytest.param(-1, AnswerKind.UNCLEAR, id="unknown server error"),
        pytest.param(3, AnswerKind.FAILED, id="unknown topic: gone or going"),
        pytest.param(7, AnswerKind.UNCLEAR, id="request timed out"),
        pytest.param(17, AnswerKind.FAILED, id="bad name or collision"),
        pytest.param(29, AnswerKind.FAILED, id="topic authorization"),
        pytest.param(31, AnswerKind.FAILED, id="cluster authorization"),
        pytest.param(36, AnswerKind.FAILED, id="exists already"),
        pytest.param(37, AnswerKind.FAILED, id="has that many partitions already"),
        pytest.param(38, AnswerKind.FAILED, id="replication factor"),
        pytest.param(40, AnswerKind.FAILED, id="config"),
        pytest.param(41, AnswerKind.CONTROLLER_MOVED, id="not controller: the next one may finish it"),
        pytest.param(44, AnswerKind.FAILED, id="policy"),
        pytest.param(56, AnswerKind.UNCLEAR, id="a broker's directory failed"),
        pytest.param(60, AnswerKind.RETRY, id="reassignment in progress"),
        pytest.param(73, AnswerKind.FAILED, id="deletion disabled"),
        pytest.param(89, AnswerKind.RETRY, id="quota"),
        pytest.param(39, AnswerKind.FAILED, id="assignment"),
        pytest.param(42, AnswerKind.FAILED, id="invalid request, or deletion disabled with an old version"),
        pytest.param(80, AnswerKind.FAILED, id="preferred leader not available"),
        pytest.param(83, AnswerKind.FAILED, id="eligible leaders not available"),
        pytest.param(84, AnswerKind.FAILED, id="election not needed"),
        pytest.param(85, AnswerKind.FAILED, id="no reassignment in progress"),
        pytest.param(103, AnswerKind.FAILED, id="inconsistent topic id: replaced"),
        pytest.param(100, AnswerKind.FAILED, id="unknown topic id: deleted already, or replaced"),
        pytest.param(KafkaError._TRANSPORT, AnswerKind.UNCLEAR, id="connection lost"),
        pytest.param(KafkaError._TIMED_OUT, AnswerKind.UNCLEAR, id="client's own timeout"),
        pytest.param(KafkaError._INVALID_ARG, AnswerKind.FAILED, id="refused by the client"),
        pytest.param(31999, AnswerKind.UNCLEAR, id="a code of the future"),
    ],
)
def test_an_error_code_means_what_it_says(code: int, kind: AnswerKind) -> None:
    assert answer_kind(code) is kind


def test_the_numbers_of_codes_that_an_older_client_has_no_name_for_are_kafkas() -> None:
    named = {name: getattr(KafkaError, name) for name in UNNAMED_CODES if hasattr(KafkaError, name)}
    assert named in (UNNAMED_CODES, {}), "the newest client names them"


def test_both_clients_get_the_same_meaning() -> None:
    settings = kafka_python_settings(
        {
            "bootstrap.servers": "a:1, b:2",
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "SCRAM-SHA-256",
            "sasl.username": "u",
            "sasl.password": "p",
            "client.dns.lookup": "resolve_canonical_bootstrap_servers_only",
            "socket.timeout.ms": "5000",
            "reconnect.backoff.ms": "10",
        }
    )

    assert settings == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "u",
        "sasl_plain_password": "p",
        "client_dns_lookup": "resolve_canonical_bootstrap_servers_only",
        "reconnect_backoff_ms": 100,
        "reconnect_backoff_max_ms": 1000,
        "client_id": "topicops",
    }


@pytest.mark.parametrize(
    ("more", "checks"),
    [
        pytest.param({}, (ssl.CERT_REQUIRED, True), id="as it is"),
        pytest.param({"ssl.ca.location": "probe"}, (ssl.CERT_REQUIRED, True), id="the system's authorities"),
        pytest.param({"ssl.endpoint.identification.algorithm": "none"}, (ssl.CERT_REQUIRED, False), id="any host name"),
        pytest.param({"enable.ssl.certificate.verification": "false"}, (ssl.CERT_NONE, False), id="any certificate"),
        pytest.param({"enable.ssl.certificate.verification": "1"}, (ssl.CERT_REQUIRED, True), id="1 is true"),
        pytest.param({"enable.ssl.certificate.verification": " T"}, (ssl.CERT_REQUIRED, True), id="T is true"),
        pytest.param({"ssl.endpoint.identification.algorithm": " https"}, (ssl.CERT_REQUIRED, True), id="blank"),
    ],
)
def test_kafka_python_checks_the_brokers_as_librdkafka_does(
    more: dict[str, str], checks: tuple[ssl.VerifyMode, bool]
) -> None:
    settings = kafka_python_settings({"bootstrap.servers": "a:1", "security.protocol": "ssl", **more})

    context = settings["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert (context.verify_mode, context.check_hostname) == checks


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        pytest.param({"security.protocol": "tls"}, "security.protocol: it has a value that", id="protocol"),
        pytest.param({"client.dns.lookup": "all"}, "client.dns.lookup: it has a value that", id="way to look up"),
        pytest.param({"socket.timeout.ms": "1"}, "socket.timeout.ms: its number is too low or too high", id="number"),
        pytest.param({"reconnect.backoff.ms": "x"}, "reconnect.backoff.ms must be a whole number", id="no number"),
        pytest.param({"security.protocol": "SSL", "ssl.ca.location": "/no.pem"}, "ssl.ca.location: ", id="no file"),
        pytest.param({"security.protocol": "SSL", "ssl.ca.pem": "s3cret"}, "ssl.ca.pem: ", id="no PEM"),
        pytest.param(
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u"},
            "sasl.username: ",
            id="no password",
        ),
    ],
)
def test_a_value_that_a_client_refuses_is_found_before_a_broker_is_asked(properties: dict[str, str], said: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.setblocking(False)
        with pytest.raises(UsageError) as caught:
            require_clients({"bootstrap.servers": f"127.0.0.1:{server.getsockname()[1]}", **properties})
        with pytest.raises(BlockingIOError):
            server.accept()

    assert said in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_both_clients_are_made_without_a_connection_to_a_broker() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.setblocking(False)
        require_clients({"bootstrap.servers": f"127.0.0.1:{server.getsockname()[1]}"})
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    ("servers", "are_taken"),
    [
        *((servers, True) for servers in ("a:1", "127.0.0.1:99999", "-.:00000,b.c-d:9092", "0:0")),
        *((servers, False) for servers in ("", "a", "a:b", "[::1]:1", "a b:1", "u@a:1", "ssl://a:1", "a:1,", ":1")),
    ],
)
def test_addresses_that_each_client_takes_are_known_without_a_client(servers: str, are_taken: bool) -> None:
    assert (TAKEN_SERVERS.fullmatch(servers) is not None) == are_taken
    if are_taken:
        require_clients({"bootstrap.servers": servers})


def test_names_that_take_long_to_look_up_hold_up_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object) -> NoReturn:
        time.sleep(4)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    servers = ",".join(f"kafka-{n}.invalid:9092" for n in range(4))
    connections = BrokerConnections({"bootstrap.servers": servers}, request_timeout_s=0.5)
    monkeypatch.setattr(socket, "getaddrinfo", slow)
    began = time.monotonic()
    with pytest.raises(ClusterUnreachableError, match="gave no answer in time"):
        connections.brokers()
    connections.close()

    assert time.monotonic() - began < 8  # one after the other, the names alone take 16 s


def test_clients_that_asked_nothing_are_closed_at_once_although_their_thread_begins_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = NetworkSelector.run_forever

    def begin_late(self: NetworkSelector) -> None:
        time.sleep(0.3)
        begin(self)

    monkeypatch.setattr(NetworkSelector, "run_forever", begin_late)
    checking = threading.Thread(target=require_clients, args=[{"bootstrap.servers": "127.0.0.1:1"}], daemon=True)
    checking.start()
    checking.join(20)

    assert not checking.is_alive()


def test_a_connection_cannot_turn_topic_creation_by_asking_on() -> None:
    settings = confluent_settings({"bootstrap.servers": "a:1", "allow.auto.create.topics": "true", "client.id": "x"})

    assert (settings["allow.auto.create.topics"], settings["client.id"]) == ("false", "topicops")
    assert metadata_request(["t"]).allow_auto_topic_creation is False


@pytest.mark.parametrize(
    ("name", "settings", "value"),
    [
        pytest.param("retention.ms", {"log.retention.hours": "168"}, "604800000", id="hours"),
        pytest.param(
            "retention.ms", {"log.retention.hours": "168", "log.retention.minutes": "2"}, "120000", id="minutes"
        ),
        pytest.param("retention.ms", {"log.retention.minutes": "2", "log.retention.ms": "5"}, "5", id="ms wins"),
        pytest.param("retention.ms", {"log.retention.hours": "-1"}, "-1", id="no limit, in hours"),
        pytest.param("segment.ms", {"log.roll.hours": "2"}, "7200000", id="roll hours"),
        pytest.param("max.message.bytes", {"message.max.bytes": "7"}, "7", id="another name"),
        pytest.param("min.insync.replicas", {"min.insync.replicas": "2"}, "2", id="the same name"),
        pytest.param("remote.storage.enable", {}, "false", id="no broker setting at all"),
        pytest.param("flush.ms", {"log.flush.scheduler.interval.ms": "9"}, "9", id="second synonym"),
        pytest.param(
            "message.timestamp.before.max.ms",
            {"log.message.timestamp.before.max.ms": str(2**63 - 1), "log.message.timestamp.difference.max.ms": "4"},
            "4",
            id="the older limit holds",
        ),
    ],
)
def test_a_brokers_settings_become_topic_defaults(name: str, settings: dict[str, str], value: str) -> None:
    assert topic_defaults(settings)[name] == value


def test_every_topic_config_has_a_default() -> None:
    assert topic_defaults({}).keys() == TOPIC_CONFIGS.keys()


def test_a_client_ends_as_soon_as_nobody_holds_it() -> None:
    """Each one holds threads and a slot of the process, of which there are a thousand; the collector may be paused."""
    with gc_paused():
        confluent = Confluent({"bootstrap.servers": "127.0.0.1:1"})
        held = weakref.ref(confluent.client())
        assert held() is not None
        confluent = None  # type: ignore[assignment]
        assert held() is None


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.KafkaConnectionError("Handshake failed"), "KafkaConnectionError: Handshake failed"),
        (errors.IllegalSaslStateError(34), "IllegalSaslStateError"),
        (errors.IllegalSaslStateError(), "IllegalSaslStateError"),
        (FileNotFoundError(2, "No such file", "/ca.pem"), "FileNotFoundError: [Errno 2] No such file: '/ca.pem'"),
    ],
    ids=str,
)
def test_an_error_of_a_request_names_its_class_once(error: Exception, said: str) -> None:
    assert _answer_or_problem(error, None) == f"cannot be asked: {said}"


def test_the_inner_parts_of_kafka_python_were_checked_in_its_installed_release() -> None:
    """After an upgrade: read `KafkaNetClient` and its manager anew, run `make test-cluster`, name the release here."""
    assert version("kafka-python") == "3.0.12"


INVALID, REFUSED = KafkaError.INVALID_REQUEST, KafkaError.CLUSTER_AUTHORIZATION_FAILED
OWN_ID = "Unexpected broker id, expected 1 or empty string, but received 2"


def settings(error_code: int = 0, error_message: str = "") -> Any:
    return SimpleNamespace(results=[SimpleNamespace(error_code=error_code, error_message=error_message)])


def metadata(cluster_id: str | None) -> Any:
    return SimpleNamespace(cluster_id=cluster_id)


@pytest.mark.parametrize(
    ("answers", "other"),
    [
        pytest.param((settings(), metadata("ours")), "", id="itself"),
        pytest.param((settings(INVALID, OWN_ID), metadata("ours")), "broker 1", id="another broker"),
        pytest.param((settings(INVALID), metadata("ours")), "another broker", id="another broker without a number"),
        pytest.param((settings(), metadata("theirs")), "a broker of cluster theirs", id="the same id elsewhere"),
        pytest.param((settings(REFUSED), metadata("ours")), "", id="it does not tell this reader"),
        pytest.param((None, None), "", id="no answer"),
        pytest.param((settings(), metadata(None)), "", id="a cluster without an id"),
    ],
)
def test_another_broker_or_cluster_that_answers_is_named(answers: tuple[Any, Any], other: str) -> None:
    assert other_identity(answers, "ours") == other


def test_a_client_without_a_question_for_the_cluster_id_describes_the_cluster() -> None:
    described: Future[SimpleNamespace] = Future()
    described.set_result(SimpleNamespace(cluster_id="of the description"))
    asked = []
    old = SimpleNamespace(describe_cluster=lambda **options: asked.append(options) or described)
    new = SimpleNamespace(cluster_id=lambda timeout: f"asked within {timeout} s")
    assert cluster_id_of(old, timeout_s=1.0) == "of the description"
    assert asked == [{"request_timeout": 1.0}]
    assert cluster_id_of(new, timeout_s=1.0) == "asked within 1.0 s"
