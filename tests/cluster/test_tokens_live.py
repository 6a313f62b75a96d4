"""The whole loop on brokers that want a token for each login."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from confluent_kafka import KafkaException
from kafka.protocol.metadata import MetadataRequest

from fixtures.token_brokers import TokenBroker, token_broker
from fixtures.token_server import SECRET, token_server
from fixtures.workspace import Workspace
from topicops.edges.connections import tokens
from topicops.edges.connections.lookup import CALLBACK_ALLOWLIST
from topicops.edges.connections.tokens import RENEWED_AT
from topicops.edges.kafka.clients.confluent import Confluent
from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.model.errors import ClusterError

SHORT_S = 12.0
"""Life of a token here: a loop needs several. Librdkafka looks once a second whether it needs a new one."""


@pytest.fixture(scope="module", params=[pytest.param(True, id="KRaft"), pytest.param(False, id="ZooKeeper")])
def broker(request: pytest.FixtureRequest, fast_folder: Path) -> Iterator[TokenBroker]:
    home = fast_folder / f"tokens-{request.param}"
    with (
        token_server(lifetime_s=SHORT_S) as server,
        token_broker(home, server, kraft=request.param, session_s=60) as found,
    ):
        yield found


@pytest.fixture
def live(broker: TokenBroker, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("AIRFLOW_CONN_BY_TOKEN", json.dumps({"conn_type": "kafka", "extra": broker.properties}))
    workspace.cluster = broker.spec()
    workspace.policy = {"unattended": "destructive", "restsFor": "0s"}
    return workspace


def test_the_loop_logs_in_by_token(live: Workspace, broker: TokenBroker) -> None:
    live.topic("tok.orders", replicationFactor=1)
    planned, created = live.plan(), live.apply()
    again = live.run("verify", "plan.json")
    next((live.folder / "topics").rglob("tok.orders.yaml")).unlink()
    imported = live.run("import", "--environment", "local", "--owner", "team-tests")
    nothing = live.plan("--detailed-exitcode")
    next((live.folder / "topics").rglob("tok.orders.yaml")).unlink()
    live.topic("tok.orders", replicationFactor=1, partitions=2, configs={"retention.ms": "2h"})
    drift = live.run("drift", "--environment", "local", "--detailed-exitcode")
    live.plan()
    changed = live.apply()
    doctor = live.run("doctor", "--environment", "local")
    live.tombstone("tok.orders")
    live.plan()
    deleted = live.apply()

    assert planned.status == 0, planned.out + planned.err
    for ended in (created, again, imported, nothing, changed, deleted):
        assert ended.status == 0, ended.out + ended.err
    assert drift.status == 2, drift.out + drift.err
    assert "User:topicops-service, by token (oidc)" in doctor.out
    audit = (live.folder / "home/audit/local.jsonl").read_text(encoding="utf-8").splitlines()
    assert {line.get("principal") for line in map(json.loads, audit)} >= {"User:topicops-service"}
    said = "".join(
        ended.out + ended.err for ended in (planned, created, again, imported, changed, drift, doctor, deleted)
    )
    files = b"".join(path.read_bytes() for path in live.folder.rglob("*") if path.is_file())
    for secret in (SECRET, *broker.server.given):
        assert secret not in said
        assert secret.encode() not in files
    assert len(broker.server.given) > 1


@dataclass
class Counts:
    requests: int = 0
    errors: list[str] = field(default_factory=list)


@pytest.mark.parametrize(
    ("token_s", "run_s"),
    [
        pytest.param(SHORT_S, 30.0, id="30 s"),
        pytest.param(60.0, 300.0, id="5 min", marks=[pytest.mark.soak, pytest.mark.timeout(500)]),
    ],
)
def test_no_request_fails_because_a_token_ends(
    broker: TokenBroker, token_s: float, run_s: float, record_property: Callable[[str, object], None]
) -> None:
    """The broker ends each connection whose token has expired; both clients keep theirs by logging in anew."""
    broker.server.lifetime_s = token_s
    tokens._shared.cache_clear()
    counts = {"confluent-kafka": Counts(), "kafka-python": Counts()}
    # Clients of the tests before may still log in; only those of this one ask for this scope.
    properties = {**broker.properties, "sasl.oauthbearer.scope": "counted"}
    ends_at = time.monotonic() + run_s
    confluent = Confluent(properties)
    with closing(BrokerConnections(properties)) as connections:
        [node] = connections.brokers()
        connections.ask({node: MetadataRequest(topics=[])})
        first = connections._manager._conns[node]
        while time.monotonic() < ends_at:
            counts["confluent-kafka"].requests += 1
            try:
                confluent.client().describe_cluster(request_timeout=5).result(6)
            except (KafkaException, ClusterError) as error:
                counts["confluent-kafka"].errors.append(str(error))
            counts["kafka-python"].requests += 1
            [answer] = connections.ask({node: MetadataRequest(topics=None)}).values()
            if isinstance(answer, str):
                counts["kafka-python"].errors.append(answer)
            time.sleep(0.05)
        last = connections._manager._conns[node]
    fetched = sum(form.get("scope") == "counted" for form in broker.server.asked)
    broker.server.lifetime_s = SHORT_S
    record_property("tokens", fetched)
    for client, count in counts.items():
        record_property(client, f"{count.requests} requests, {len(count.errors)} errors")

    assert {client: count.errors for client, count in counts.items()} == {client: [] for client in counts}
    assert confluent.recent_errors() == ""
    assert first is last, "kafka-python connected anew"
    assert run_s / token_s <= fetched <= 1 + run_s / (RENEWED_AT * token_s)


def test_a_function_logs_in_too(live: Workspace, broker: TokenBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    module = ModuleType("jobs_of_this_team")
    vars(module)["login"] = lambda text: (
        asked.append(text) or (broker.server.token(sub="by-function"), time.time() + 12)
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    extra = {name: text for name, text in broker.properties.items() if not name.startswith("sasl.oauthbearer")}
    extra |= {"oauth_cb": "jobs_of_this_team.login", "sasl.oauthbearer.config": "realm=us"}
    monkeypatch.setenv("AIRFLOW_CONN_BY_TOKEN", json.dumps({"conn_type": "kafka", "extra": extra}))
    refused = live.run("doctor", "--environment", "local")
    monkeypatch.setenv(CALLBACK_ALLOWLIST, "other.login, jobs_of_this_team.login")
    allowed = live.run("doctor", "--environment", "local")

    assert refused.status == 1, refused.out + refused.err
    assert f"oauth_cb names a function that is not allowed: add its path to {CALLBACK_ALLOWLIST}" in refused.out
    assert "User:by-function, by token (callable)" in allowed.out, allowed.out + allowed.err
    assert {*asked} == {"realm=us"}


@pytest.mark.parametrize("command", ["plan", "verify", "doctor"])
def test_a_token_that_the_brokers_refuse_is_one_error(live: Workspace, broker: TokenBroker, command: str) -> None:
    if command != "doctor" and not broker.cluster.status().kraft:
        pytest.skip("it asks ZooKeeper alone where no topic is live")
    tokens._shared.cache_clear()
    live.topic("tok.orders", replicationFactor=1)
    broker.server.claims = {"aud": "another"}
    ended = live.run(command, "--environment", "local")
    broker.server.claims = {}
    tokens._shared.cache_clear()

    assert ended.status == 1, ended.out + ended.err
    said = ended.out + ended.err
    assert "Traceback" not in said
    assert not [token for token in broker.server.given if token in said]
    assert "what the brokers want of a token" in said
