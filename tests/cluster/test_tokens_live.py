"""The whole loop on brokers that want a token for each login."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.token_brokers import TokenBroker, token_broker
from fixtures.token_server import SECRET, token_server
from fixtures.workspace import Workspace

SHORT_S = 6.0
"""Life of a token here: a loop needs several."""


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
    live.topic("tok.orders", replicationFactor=1, partitions=2, configs={"retention.ms": "2h"})
    drift = live.run("drift", "--environment", "local", "--detailed-exitcode")
    live.plan()
    changed = live.apply()
    doctor = live.run("doctor", "--environment", "local")
    live.tombstone("tok.orders")
    live.plan()
    deleted = live.apply()

    assert planned.status == 0, planned.out + planned.err
    for ended in (created, again, changed, deleted):
        assert ended.status == 0, ended.out + ended.err
    assert drift.status == 2, drift.out + drift.err
    assert "User:topicops-service, by token (oidc)" in doctor.out
    audit = (live.folder / "home/audit/local.jsonl").read_text(encoding="utf-8").splitlines()
    assert {line.get("principal") for line in map(json.loads, audit)} >= {"User:topicops-service"}
    said = "".join(ended.out + ended.err for ended in (planned, created, again, changed, drift, doctor, deleted))
    files = b"".join(path.read_bytes() for path in live.folder.rglob("*") if path.is_file())
    for secret in (SECRET, *broker.server.given):
        assert secret not in said
        assert secret.encode() not in files
    assert len(broker.server.given) > 2
