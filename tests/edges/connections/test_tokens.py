"""A login's tokens: one source for both clients, renewed in time; what cannot be had is one error without a secret."""

from __future__ import annotations

import base64
import hmac
import json
import logging
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from fixtures.certificates import Authority
from fixtures.token_server import CLIENT, SECRET, TokenServer, token_server
from topicops.edges.connections import tokens
from topicops.edges.connections.lookup import principal_of
from topicops.edges.connections.tokens import RENEWED_AT, TOLD, Token, TokenSource, token_source
from topicops.edges.kafka.clients.confluent import Confluent, require_clients
from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.clients.settings import confluent_settings, kafka_python_settings
from topicops.model.errors import (
    CertificateError,
    ClusterError,
    ClusterUnreachableError,
    LoginRefusedError,
    MissingExtraError,
    TopicopsError,
    UsageError,
)
from topicops_local.processes import free_port

SERVERS = {"bootstrap.servers": "127.0.0.1:1"}
PLANTED = "pl4nted-t0ken-value"


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with token_server() as found:
        yield found


@pytest.fixture(autouse=True)
def no_source_of_another_test() -> None:
    tokens._shared.cache_clear()


def source_of(properties: dict[str, str]) -> TokenSource:
    source = token_source({**SERVERS, **properties})
    assert source is not None
    return source


def said_by(work: Callable[[], object]) -> tuple[TopicopsError, str]:
    """The error, and all that a traceback, a log or a page could show of it and of the errors before it."""
    with pytest.raises(TopicopsError) as caught:
        work()
    chain: list[BaseException] = [caught.value]
    while before := chain[-1].__cause__ or chain[-1].__context__:
        chain.append(before)
    told = "".join(traceback.format_exception(caught.value))
    return caught.value, told + "".join(f"{error!r} {error.args} {vars(error)}" for error in chain)


# --- one source -------------------------------------------------------------------------------------------------------


def test_both_clients_of_equal_properties_share_one_token(server: TokenServer) -> None:
    properties = {**SERVERS, **server.properties(sasl_oauthbearer_extensions="team=a, tier=b")}
    value, ends, principal, extensions = confluent_settings(properties)["oauth_cb"](None)
    provider: Any = kafka_python_settings(dict(properties))["sasl_oauth_token_provider"]

    assert [value] == server.given == [provider.token()]
    assert extensions == provider.extensions() == {"team": "a", "tier": "b"}
    assert principal == "topicops-service"
    assert 40 < ends - time.time() <= 60 * TOLD
    [form] = server.asked
    assert (form["grant_type"], form["scope"]) == ("client_credentials", "kafka all")


def test_librdkafka_is_given_no_secret_of_the_login(server: TokenServer) -> None:
    assert SECRET not in str(confluent_settings({**SERVERS, **server.properties()}))


def test_another_secret_is_another_source(server: TokenServer) -> None:
    source = source_of(server.properties())
    assert source_of(server.properties()) is source
    assert source_of(server.properties() | {"sasl.oauthbearer.client.secret": "new"}) is not source


def test_the_clients_other_names_for_id_and_secret_serve_too(server: TokenServer) -> None:
    of_librdkafka = {
        name.replace("oauthbearer.client.", "oauthbearer.client.credentials.client."): text
        for name, text in server.properties().items()
    }
    assert source_of(of_librdkafka).token().value == server.given[0]


def test_two_threads_that_ask_at_once_cause_one_request(server: TokenServer) -> None:
    source = source_of(server.properties())
    threads = [threading.Thread(target=source.token) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.asked) == 1


# --- renewal ----------------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.fetched = 0
        self.fails = False

    def fetch(self) -> Token:
        if self.fails:
            raise ClusterUnreachableError("nobody")
        self.fetched += 1
        return Token(value=f"t{self.fetched}", expires_at=self.now + 60)

    def __call__(self) -> float:
        return self.now


def test_a_token_is_replaced_before_a_client_asks_because_of_its_end() -> None:
    clock = Clock()
    source = TokenSource("it", clock.fetch, clock=clock)
    seen = []
    for _ in range(24):
        seen.append(source.token())
        assert seen[-1].expires_at - clock.now >= 60 * (1 - RENEWED_AT)
        clock.now += 5
    assert RENEWED_AT < 0.8 * TOLD, "librdkafka asks for the next token after 80 % of what it is told"
    assert clock.fetched == 4


def test_a_token_serves_to_its_end_where_no_other_is_given_and_no_longer() -> None:
    clock = Clock()
    source = TokenSource("it", clock.fetch, clock=clock)
    first = source.token()
    clock.fails = True
    clock.now += 59
    assert source.token() is first
    clock.now += 2
    with pytest.raises(ClusterUnreachableError, match="nobody"):
        source.token()
    clock.fails = False
    clock.now += tokens.PAUSE_S
    assert source.token().value == "t2"


# --- what goes wrong at the endpoint ----------------------------------------------------------------------------------


def answering(server: TokenServer, status: int, said: object) -> None:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    server.answer = lambda: (status, body)


@pytest.mark.parametrize(
    ("status", "said", "kind", "words"),
    [
        pytest.param(401, {"error": "invalid_client"}, LoginRefusedError, "HTTP 401, invalid_client; check", id="401"),
        pytest.param(400, {"error": PLANTED}, LoginRefusedError, "HTTP 400; check sasl.oauthbearer", id="400"),
        pytest.param(302, b"", ClusterUnreachableError, "gives no token: HTTP 302", id="elsewhere"),
        pytest.param(503, PLANTED.encode(), ClusterUnreachableError, "gives no token: HTTP 503", id="503"),
        pytest.param(429, b"", ClusterUnreachableError, "gives no token: HTTP 429", id="too often"),
        pytest.param(200, PLANTED.encode(), ClusterError, "no JSON object with an access_token", id="garbage"),
        pytest.param(200, b"[" * 99_999, ClusterError, "no JSON object with an access_token", id="deep"),
        pytest.param(200, b" " * 999_999, ClusterError, "no JSON object with an access_token", id="long"),
        pytest.param(200, {"id_token": PLANTED}, ClusterError, "no JSON object with an access_token", id="no token"),
        pytest.param(200, {"access_token": [PLANTED]}, ClusterError, "no JSON object with an access", id="a list"),
        pytest.param(200, {"access_token": PLANTED}, LoginRefusedError, "gives a token without an end", id="no end"),
        pytest.param(
            200, {"access_token": PLANTED, "expires_in": -1}, LoginRefusedError, "a token that has expired", id="over"
        ),
        pytest.param(
            200, {"access_token": PLANTED, "expires_in": 1e300}, LoginRefusedError, "no time in seconds", id="no time"
        ),
        pytest.param(
            200,
            {"access_token": f"{PLANTED}\x01auth=x", "expires_in": 60},
            LoginRefusedError,
            "that no token",
            id="\\x01",
        ),
    ],
)
def test_an_endpoint_that_gives_no_token_is_one_error_with_its_address(
    server: TokenServer, status: int, said: object, kind: type[TopicopsError], words: str
) -> None:
    answering(server, status, said)
    properties = {**SERVERS, **server.properties()}

    error, told = said_by(lambda: require_clients(properties))

    assert type(error) is kind
    assert f"the token endpoint {server.url.removeprefix('http://')} gives " in str(error)
    assert words in str(error)
    for secret in (PLANTED, SECRET, CLIENT):
        assert secret not in told


def test_a_wrong_secret_is_a_refused_login(server: TokenServer) -> None:
    wrong = server.properties() | {"sasl.oauthbearer.client.secret": "an0ther-s3cret"}
    error, told = said_by(source_of(wrong).token)
    assert type(error) is LoginRefusedError
    assert "an0ther-s3cret" not in told


def test_an_end_in_the_token_counts_where_it_comes_first(server: TokenServer) -> None:
    answering(server, 200, {"access_token": server.token(exp=time.time() + 20), "expires_in": "300"})
    assert source_of(server.properties()).token().expires_at == pytest.approx(time.time() + 20, abs=2)


def test_a_token_that_shows_nothing_has_no_name(server: TokenServer) -> None:
    answering(server, 200, {"access_token": "opaque", "expires_in": 60})
    properties = {**SERVERS, **server.properties()}
    assert source_of(properties).token().value == "opaque"
    assert principal_of(properties) == "by token (oidc)"


@pytest.mark.parametrize(
    ("claims", "more", "shown"),
    [
        pytest.param({"sub": "svc"}, {}, "User:svc", id="sub"),
        pytest.param({"azp": "svc-2"}, {"sasl.oauthbearer.sub.claim.name": "azp"}, "User:svc-2", id="another claim"),
        pytest.param({"sub": "svc\n\x1b[31m"}, {}, "User:svc\\n\\x1b[31m", id="control characters"),
        pytest.param({"sub": ["svc"]}, {}, "by token (oidc)", id="no text"),
    ],
)
def test_the_principal_is_the_name_in_the_token(
    server: TokenServer, claims: dict[str, object], more: dict[str, str], shown: str
) -> None:
    server.claims = claims
    properties = {**SERVERS, **server.properties(), **more}
    assert principal_of(properties) == "by token (oidc)"
    source_of(properties).token()
    assert principal_of(properties) == shown


def test_an_endpoint_that_is_down_is_named(server: TokenServer) -> None:
    down = f"127.0.0.1:{free_port()}"
    error, _ = said_by(source_of(server.properties(sasl_oauthbearer_token_endpoint_url=f"http://{down}/t")).token)
    assert type(error) is ClusterUnreachableError
    assert str(error) == f"the token endpoint {down}: Connection refused"


def test_an_endpoint_that_says_nothing_ends_in_time(server: TokenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "FETCH_S", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/t"
        error, _ = said_by(source_of(server.properties(sasl_oauthbearer_token_endpoint_url=url)).token)
    assert type(error) is ClusterUnreachableError
    assert str(error).endswith(("no answer", "gives no token within 2 s"))


def test_an_endpoint_that_drips_ends_in_time(server: TokenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "FETCH_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as slow:

        def drip() -> None:
            connection, _ = slow.accept()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            with connection, suppress(OSError):
                for _ in range(40):
                    connection.sendall(b" ")
                    time.sleep(0.05)

        threading.Thread(target=drip, daemon=True).start()
        url = f"http://127.0.0.1:{slow.getsockname()[1]}/t"
        error, _ = said_by(source_of(server.properties(sasl_oauthbearer_token_endpoint_url=url)).token)
    assert "gives no token" in str(error)


def test_a_failure_is_not_asked_for_again_at_once(server: TokenServer) -> None:
    answering(server, 503, b"")
    source = source_of(server.properties())
    for _ in range(5):
        said_by(source.token)
    assert len(server.asked) == 1


def test_an_endpoint_with_tls_is_checked(tmp_path: Path) -> None:
    ca, other = Authority.found(tmp_path / "ca", "ca"), Authority.found(tmp_path / "other", "other")
    own = ca.issue("idp", subject_alt_name="DNS:localhost")
    with token_server(certificate=own.certificate, key_file=own.key) as server:
        trusted = server.properties(https_ca_location=str(ca.certificate))
        as_text = server.properties(https_ca_pem=ca.certificate.read_text())
        untrusted = server.properties(https_ca_location=str(other.certificate))
        nowhere = server.properties(https_ca_location="/nowhere.pem")
        by_address = trusted | {
            "sasl.oauthbearer.token.endpoint.url": f"{server.url.replace('localhost', '127.0.0.1')}/t"
        }

        assert source_of(trusted).token().value == server.given[0]
        assert source_of(as_text).token().value == server.given[1]
        for words, wrong in {"local issuer": untrusted, "not valid for '127.0.0.1'": by_address}.items():
            error, _ = said_by(source_of(wrong).token)
            assert type(error) is CertificateError
            assert words in str(error)
        with pytest.raises(UsageError, match=r"https\.ca\.location or https\.ca\.pem"):
            source_of(nowhere).token()


# --- the clients without a token --------------------------------------------------------------------------------------


def test_the_clients_say_why_there_is_no_token(server: TokenServer) -> None:
    answering(server, 503, b"")
    properties = {**SERVERS, **server.properties()}
    began = time.monotonic()
    for work in (Confluent(properties).client, lambda: Confluent(properties).failure("it failed")):
        try:
            error = work()
        except ClusterError as raised:
            error = raised
        assert type(error) is ClusterUnreachableError
        assert str(error).endswith("gives no token: HTTP 503")
    connections = BrokerConnections(properties)
    try:
        [sentence] = connections.ask({1: object()}).values()
        assert sentence.startswith("cannot be asked: the token endpoint 127.0.0.1:")
        with pytest.raises(ClusterUnreachableError, match="HTTP 503"):
            connections.brokers()
    finally:
        connections.close()
    assert time.monotonic() - began < 8, "librdkafka's own client waits 10 s for a token"


# --- a function of one's own ------------------------------------------------------------------------------------------


def callable_properties(monkeypatch: pytest.MonkeyPatch, give: Callable[[str | None], object]) -> dict[str, str]:
    module = ModuleType("jobs_of_a_team")
    vars(module)["login"] = give
    monkeypatch.setitem(sys.modules, module.__name__, module)
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    return {**login, "oauth_cb": "jobs_of_a_team.login", "sasl.oauthbearer.config": "realm=us"}


@pytest.mark.parametrize(
    ("more", "principal"),
    [pytest.param((), "by token (callable)", id="two"), pytest.param(("alice", {"a": "b"}), "User:alice", id="four")],
)
def test_a_function_is_called_as_librdkafka_calls_it(
    monkeypatch: pytest.MonkeyPatch, more: tuple[object, ...], principal: str
) -> None:
    asked = []
    ends = time.time() + 60
    properties = callable_properties(monkeypatch, lambda text: asked.append(text) or (PLANTED, ends, *more))
    found = source_of(properties).for_librdkafka(None)

    assert found == (PLANTED, pytest.approx(time.time() + 60 * TOLD, abs=2), *(more or ("", {})))
    assert asked == ["realm=us"]
    assert principal_of({**SERVERS, **properties}) == principal


def raises(_: str | None) -> object:
    raise RuntimeError(PLANTED)


@pytest.mark.parametrize(
    ("give", "words"),
    [
        pytest.param(raises, "the function of oauth_cb gives no token: it ended with RuntimeError", id="error"),
        pytest.param(lambda _: None, "returns no (token, seconds since 1970", id="nothing"),
        pytest.param(lambda _: (PLANTED,), "returns no (token, seconds since 1970", id="no end"),
        pytest.param(lambda _: (PLANTED, "soon"), "returns no (token, seconds since 1970", id="a text for an end"),
        pytest.param(lambda _: (PLANTED, time.time() * 1000), "no time in seconds since 1970", id="milliseconds"),
        pytest.param(lambda _: (PLANTED, float("nan")), "no time in seconds since 1970", id="no number"),
        pytest.param(lambda _: (PLANTED, 1), "gives a token that has expired", id="over"),
        pytest.param(lambda _: (f"{PLANTED} ", time.time() + 60), "characters that no token may have", id="a blank"),
    ],
)
def test_a_function_that_gives_no_token_is_one_error(
    monkeypatch: pytest.MonkeyPatch, give: Callable[[str | None], object], words: str
) -> None:
    error, told = said_by(source_of(callable_properties(monkeypatch, give)).token)
    assert type(error) is LoginRefusedError
    assert words in str(error)
    assert PLANTED not in told


def test_a_function_that_hangs_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "FETCH_S", 0.2)
    error, _ = said_by(source_of(callable_properties(monkeypatch, lambda _: time.sleep(2))).token)
    assert str(error) == "the function of oauth_cb gives no token within 0.2 s"


def test_a_function_that_is_not_there_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = callable_properties(monkeypatch, raises) | {"oauth_cb": "nowhere_at_all.login"}
    error, _ = said_by(source_of(properties).token)
    assert str(error).endswith("it ended with ModuleNotFoundError")


# --- clouds -----------------------------------------------------------------------------------------------------------

MSK = {
    "bootstrap.servers": "b-1.demo.abcde1.c2.kafka.eu-west-1.amazonaws.com:9098",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
}
GOOGLE = {**MSK, "bootstrap.servers": "bootstrap.demo.europe-west1.managedkafka.project.cloud.goog:9092"}


@pytest.mark.parametrize(
    ("properties", "module", "extra"),
    [
        pytest.param(MSK, "aws_msk_iam_sasl_signer", "aws", id="MSK"),
        pytest.param(GOOGLE, "google.auth", "google", id="Google"),
    ],
)
def test_a_missing_extra_is_named(
    properties: dict[str, str], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'topicops\[{extra}\]'"):
        require_clients(properties)


def test_msk_is_given_a_signed_request_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: README of aws-msk-iam-sasl-signer-python; AWS's Signature Version 4, signed query."""
    identity, key = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    for name, text in {"ACCESS_KEY_ID": identity, "SECRET_ACCESS_KEY": key, "EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", text)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)

    token = source_of(MSK).token()

    url = urlsplit(base64.urlsafe_b64decode(token.value + "=" * (-len(token.value) % 4)).decode())
    query = dict(parse_qsl(url.query))
    asked = url.scheme, url.netloc, query["Action"]
    assert asked == ("https", "kafka.eu-west-1.amazonaws.com", "kafka-cluster:Connect")
    at = query["X-Amz-Date"]
    scope = f"{at[:8]}/eu-west-1/kafka-cluster/aws4_request"
    assert query["X-Amz-Credential"] == f"{identity}/{scope}"
    signed = "&".join(
        f"{name}={quote(query[name], safe='')}"
        for name in sorted(query)
        if name not in ("X-Amz-Signature", "User-Agent")
    )
    request = f"GET\n/\n{signed}\nhost:{url.netloc}\n\nhost\n{sha256(b'').hexdigest()}"
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    signer = f"AWS4{key}".encode()
    for part in scope.split("/"):
        signer = hmac.digest(signer, part.encode(), "sha256")
    assert query["X-Amz-Signature"] == hmac.new(signer, text.encode(), "sha256").hexdigest()
    assert token.expires_at == datetime.strptime(f"{at}+0000", "%Y%m%dT%H%M%SZ%z").timestamp() + 900
    assert principal_of(MSK) == "by token (msk-iam)"


def test_a_host_without_an_identity_of_aws_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    error, _ = said_by(source_of(MSK).token)
    assert type(error) is LoginRefusedError
    assert "the signer of Amazon MSK gives no token" in str(error)


def of_service_account(server: TokenServer, folder: Path) -> Path:
    key = server.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    file = folder / "account.json"
    written = {
        "type": "service_account",
        "client_email": "topicops@project.iam.gserviceaccount.com",
        "private_key": key,
        "private_key_id": "1",
        "token_uri": f"{server.url}/token",
    }
    file.write_text(json.dumps(written), encoding="utf-8")
    return file


def test_google_is_given_an_access_token_in_the_form_of_a_jwt(
    server: TokenServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source: airflow.providers.google.cloud.hooks.managed_kafka.ManagedKafkaTokenProvider (22.8.0)."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(of_service_account(server, tmp_path)))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project")
    answering(server, 200, {"access_token": "ya29.access", "expires_in": 3600})

    token = source_of(GOOGLE).token()

    header, claims, access = (base64.urlsafe_b64decode(f"{part}==") for part in token.value.split("."))
    said = json.loads(claims)
    assert json.loads(header) == {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
    assert access == b"ya29.access"
    assert (said["iss"], said["scope"]) == ("Google", "kafka")
    assert said["sub"] == token.principal == "topicops@project.iam.gserviceaccount.com"
    assert said["exp"] == token.expires_at == pytest.approx(time.time() + 3600, abs=10)
    assert principal_of(GOOGLE) == f"User:{token.principal}"


def test_a_key_that_google_refuses_is_one_error(
    server: TokenServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(of_service_account(server, tmp_path)))
    answering(server, 400, {"error": "invalid_grant", "error_description": PLANTED})
    error, told = said_by(source_of(GOOGLE).token)
    assert type(error) is LoginRefusedError
    assert "Google's login gives no token: it ended with RefreshError" in str(error)
    assert PLANTED not in told
    assert "PRIVATE KEY" not in told


@pytest.mark.parametrize("login", ["oidc", "msk-iam"])
def test_no_log_and_no_repr_has_a_token_or_a_secret(
    server: TokenServer, login: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PLANTED)
    source = source_of(MSK if login == "msk-iam" else server.properties())
    token = source.token()
    Confluent({**SERVERS, **server.properties()}).client()

    shown = caplog.text + repr(source) + repr(token) + repr(vars(source))
    url = base64.urlsafe_b64decode(f"{token.value}==").decode() if login == "msk-iam" else ""
    signature = dict(parse_qsl(urlsplit(url).query)).get("X-Amz-Signature", token.value)
    for secret in (token.value, signature, SECRET, PLANTED, base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()):
        assert secret not in shown
