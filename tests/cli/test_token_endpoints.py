"""What a command says of a token endpoint that gives no token: one error with its place, soon, and without a secret."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from fixtures.token_server import CLIENT, SECRET, TokenServer, token_server
from fixtures.workspace import Workspace
from topicops.edges.connections import tokens
from topicops_local.processes import free_port

PLANTED = "pl4nted-t0ken-value"


@pytest.fixture
def server() -> Iterator[TokenServer]:
    tokens._shared.cache_clear()
    with token_server() as found:
        yield found


def down(server: TokenServer) -> str:
    return f"http://127.0.0.1:{free_port()}/token"


def garbage(server: TokenServer) -> None:
    server.answer = lambda: (200, PLANTED.encode())


def refusing(server: TokenServer) -> None:
    server.answer = lambda: (401, json.dumps({"error": "invalid_client", "error_description": PLANTED}).encode())


def expired(server: TokenServer) -> None:
    server.claims = {"exp": time.time() - 1}


def endless(server: TokenServer) -> None:
    server.answer = lambda: (200, json.dumps({"access_token": PLANTED}).encode())


@pytest.fixture
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield f"http://127.0.0.1:{found.getsockname()[1]}/token"


@pytest.mark.parametrize("command", ["plan", "verify", "doctor"])
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        pytest.param(down, "Connection refused", id="down"),
        pytest.param(None, "", id="silent"),
        pytest.param(garbage, "no JSON object with an access_token", id="garbage"),
        pytest.param(refusing, "HTTP 401, invalid_client", id="401"),
        pytest.param(expired, "a token that has expired", id="expired"),
        pytest.param(endless, "a token without an end", id="without an end"),
    ],
)
def test_a_command_ends_with_one_error(
    workspace: Workspace,
    server: TokenServer,
    silent: str,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[TokenServer], str | None] | None,
    words: str,
    command: str,
) -> None:
    monkeypatch.setattr(tokens, "FETCH_S", 2.0)
    url = silent if spoil is None else spoil(server)
    extra = {"bootstrap.servers": "127.0.0.1:1", **server.properties()}
    extra |= {"sasl.oauthbearer.token.endpoint.url": url} if url else {}
    monkeypatch.setenv("AIRFLOW_CONN_BY_TOKEN", json.dumps({"conn_type": "kafka", "extra": extra}))
    workspace.cluster = {"class": "sandbox", "source": "kafka", "lease": "file", "kafka": {"connection": "by_token"}}
    workspace.topic("orders")
    began = time.monotonic()

    ended = workspace.run(command, "--environment", "local")

    said = ended.out + ended.err
    assert ended.status == 1, said
    assert time.monotonic() - began < 20
    assert re.search(r"local\.yaml:\d+: the token endpoint 127\.0\.0\.1:\d+", said)
    assert words in said
    assert "Traceback" not in said
    for secret in (PLANTED, SECRET, CLIENT, *server.given):
        assert secret not in said
