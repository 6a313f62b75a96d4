"""Connections as teams have them, on real brokers: what no run needs is no problem, and the rest is found at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import NewTopic

from fixtures.cluster import running
from fixtures.live import cluster_spec, create_topics, look, remove_topics
from fixtures.workspace import Workspace
from topicops import cli
from topicops_local.cluster import LocalCluster
from topicops_local.processes import free_port

OF_CONSUMERS = {
    "group.id": "group_1",
    "security.protocol": "PLAINTEXT",
    "enable.auto.commit": False,
    "auto.offset.reset": "beginning",
    "client.dns.lookup": "use_all_dns_ips",
    "retries": 5,
    "retry.backoff.ms": 100,
    "message.max.bytes": 1000012,
    "statistics.interval.ms": 1000,
    "error_cb": "jobs.on_error",
}
UNSECURED = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "enable.sasl.oauthbearer.unsecure.jwt": True,
    "sasl.oauthbearer.config": "principal=admin",
}
BY_KERBEROS = {"security.protocol": "SASL_PLAINTEXT", "sasl.kerberos.keytab": "/etc/kafka/client.keytab"}
OF_JAVA = {"sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required;"}
NO_FILE = {"security.protocol": "SSL", "ssl.ca.location": "/nowhere.pem"}


@pytest.fixture
def live(workspace: Workspace, local_cluster: LocalCluster) -> Iterator[Workspace]:
    workspace.cluster = cluster_spec(local_cluster)
    yield workspace
    remove_topics(local_cluster, [name for name in look(local_cluster).topics if name.startswith("conn.")])


def connect(
    monkeypatch: pytest.MonkeyPatch, workspace: Workspace, role: str, cluster: LocalCluster, extra: Mapping[str, object]
) -> None:
    """Give one role a connection of its own."""
    written = {"bootstrap.servers": cluster.bootstrap_servers, **extra}
    monkeypatch.setenv(f"AIRFLOW_CONN_{role.upper()}", json.dumps({"conn_type": "kafka", "extra": written}))
    kafka = dict(workspace.cluster["kafka"])  # type: ignore[call-overload]  # it is a mapping
    workspace.cluster = {**workspace.cluster, "kafka": {**kafka, role: role}}


def test_the_connection_that_consumers_use_serves_the_whole_loop(
    live: Workspace, local_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, live, "connection", local_cluster, OF_CONSUMERS)
    live.topic("conn.orders")
    planned, created, again = live.plan(), live.apply(), live.run("verify", "plan.json")
    live.tombstone("conn.orders")
    live.policy = {"restsFor": "0s"}
    live.plan()
    deleted = live.approve()

    assert planned.status == 0, planned.err
    assert created.status == 0, created.out + created.err
    assert "Applied and verified: 1 done." in created.out
    assert again.status == 0, again.out + again.err
    assert deleted.status == 0, deleted.out + deleted.err
    assert "conn.orders" not in look(local_cluster).topics


@pytest.mark.parametrize(
    ("role", "extra", "said"),
    [
        pytest.param("connection", UNSECURED, "OAUTHBEARER needs a place that gives tokens", id="reader"),
        pytest.param("applier", UNSECURED, "are recognised by their names", id="applier"),
        pytest.param("deleter", UNSECURED, "write sasl.oauthbearer.method: oidc, or a function", id="deleter"),
        pytest.param("deleter", BY_KERBEROS, "GSSAPI (with sasl.kerberos.keytab): Kerberos", id="Kerberos"),
        pytest.param("deleter", OF_JAVA, "write its user and password as sasl.username", id="Java"),
        pytest.param("deleter", NO_FILE, "ssl.ca.location: the client refuses it", id="no file"),
    ],
)
def test_nothing_is_sent_where_one_connection_of_the_plan_cannot_be_used(
    live: Workspace,
    local_cluster: LocalCluster,
    monkeypatch: pytest.MonkeyPatch,
    role: str,
    extra: Mapping[str, object],
    said: str,
) -> None:
    create_topics(local_cluster.bootstrap_servers, NewTopic("conn.old", 1, 3))
    live.policy = {"restsFor": "0s"}
    live.tombstone("conn.old")
    live.topic("conn.new")
    planned = live.plan()
    before = look(local_cluster).topics.keys()
    connect(monkeypatch, live, role, local_cluster, extra)

    applied = live.approve()

    assert planned.status == 0, planned.out + planned.err
    assert applied.status == 1, applied.out + applied.err
    assert f"cluster.kafka.{role}" in applied.err
    assert said in applied.err
    assert look(local_cluster).topics.keys() == before
    assert not (live.folder / "home/audit").exists()


@pytest.mark.parametrize("command", ["plan", "verify", "doctor"])
def test_a_login_that_cannot_be_used_is_one_error_before_anything_else(
    live: Workspace, local_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    live.topic("conn.new")
    connect(monkeypatch, live, "connection", local_cluster, BY_KERBEROS)

    ended = live.run(command, "--environment", "local")

    assert ended.status == 1, ended.out + ended.err
    assert (ended.out + ended.err).count("Kerberos is not supported") == 1


def test_init_takes_the_listeners_without_tls_and_login_whatever_they_are_called(
    fast_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    port, others = free_port(), free_port()
    home = fast_folder / "listeners"
    named = f"REPLICATION://127.0.0.1:{others},CLIENT://127.0.0.1:{port}"
    listeners = {
        "listeners": named,
        "advertised.listeners": named,
        "listener.security.protocol.map": "REPLICATION:PLAINTEXT,CLIENT:PLAINTEXT",
        "inter.broker.listener.name": "REPLICATION",
    }
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOPICOPS_HOME", raising=False)
    with running(home, brokers=1, broker_ports=[port], broker_properties=listeners) as cluster:
        status = cli.run(["init", "--zookeeper", str(cluster.zookeeper_hosts), "--name", "prod", "--owner", "me"])

    assert status == 0, capsys.readouterr().err
    written = yaml.safe_load((tmp_path / "topics/environments/prod.yaml").read_text(encoding="utf-8"))
    assert written["spec"]["cluster"]["kafka"] == {"bootstrapServers": f"127.0.0.1:{port}"}
