"""A managed cluster: real brokers behind a service that places replicas and refuses what services refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import pytest
import yaml
from confluent_kafka import KafkaError
from confluent_kafka.admin import NewTopic

from fixtures.live import create_topics, new_admin, spec_by_brokers, until
from fixtures.managed_service import EVERYTHING, ManagedService
from fixtures.proxy import BrokerProxies
from fixtures.workspace import Ended, Workspace
from topicops.edges.kafka.reader import KafkaReader
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.specs import vendors
from topicops.model.specs.vendors import Vendor
from topicops_local.cluster import LocalCluster

REFUSED = "CLUSTER_AUTHORIZATION_FAILED (31)"
NOTHING: Mapping[int, int] = {}
LOG_DIRECTORIES, REASSIGNMENTS, QUORUM = 35, 46, 55
"""Source: org.apache.kafka.common.protocol.ApiKeys."""
ONE_BY_ONE = [pytest.param({name: code}, id=name) for name, code in EVERYTHING.items()]
Behind = Callable[..., AbstractContextManager[ManagedService]]


@pytest.fixture
def live(kraft_cluster: LocalCluster, workspace: Workspace) -> Iterator[Workspace]:
    workspace.cluster = {**spec_by_brokers(kraft_cluster), "kind": "managed"}
    workspace.policy = {"unattended": "destructive", "restsFor": "0s"}
    workspace.verify = {"leaders": "15s", "isr": "15s", "metadata": "5s"}
    yield workspace
    if topics := sorted(topics_of(kraft_cluster)):
        admin = new_admin(kraft_cluster.bootstrap_servers)
        for future in admin.delete_topics(topics).values():
            future.result(30)
        until(lambda: not topics_of(kraft_cluster))


@pytest.fixture
def behind(live: Workspace, kraft_cluster: LocalCluster) -> Behind:
    @contextmanager
    def behind(service: ManagedService, lacking: Mapping[int, int] = NOTHING) -> Iterator[ManagedService]:
        ports = sorted(kraft_cluster.broker_ports.values())
        with BrokerProxies(ports, service=service, lacking=lambda _: lacking) as proxies:
            live.cluster["kafka"] = {"bootstrapServers": proxies.bootstrap_servers}
            yield service

    return behind


def topics_of(cluster: LocalCluster) -> Mapping[str, LiveTopic]:
    with KafkaReader({"bootstrap.servers": cluster.bootstrap_servers}) as reader:
        found = reader.snapshot(states=True).topics
    return {name: topic for name, topic in found.items() if not name.startswith("__")}


def whole(ended: Ended) -> str:
    return ended.out + ended.err


@pytest.mark.parametrize(
    "refused", [pytest.param({}, id="nothing"), *ONE_BY_ONE, pytest.param(EVERYTHING, id="all together")]
)
def test_the_whole_loop_where_the_brokers_place_replicas_and_refuse_what_is_of_the_whole_cluster(
    live: Workspace, behind: Behind, kraft_cluster: LocalCluster, refused: Mapping[str, int]
) -> None:
    create_topics(kraft_cluster.bootstrap_servers, NewTopic("grows", 1, 3), NewTopic("goes", 1, 3))
    live.topic("new", partitions=4, configs={"min.insync.replicas": "2"})
    live.topic("grows", partitions=3, configs={"retention.ms": "3h"})
    live.tombstone("goes")
    with behind(ManagedService(refused=refused)) as service:
        planned, applied = live.plan(), live.apply()
        verified = live.run("verify", "--environment", "local", "--format", "json")
        again = live.plan("--detailed-exitcode")

    assert "placed by the brokers" in planned.out, whole(planned)
    groups_are_read = "ListGroups" not in refused
    assert applied.status == (0 if groups_are_read else 6), whole(applied)
    found = topics_of(kraft_cluster)
    assert ("goes" in found) is not groups_are_read
    assert {name: (found[name].partitions, found[name].replication_factors) for name in ("new", "grows")} == {
        "new": (4, {3}),
        "grows": (3, {3}),
    }
    assert {*service.asked} == {"CreateTopics by counts", "CreatePartitions by counts"}
    assert verified.status == 0, whole(verified)
    unseen = sorted(refused.keys() - {"DescribeCluster"})  # nothing asks for that one
    assert planned.out.count("not checked: ") == bool(unseen)
    assert all(f"{name}: " in planned.out and REFUSED in planned.out for name in unseen), planned.out
    checks = {c["message"] for c in json.loads(verified.out)["checks"] if c["verdict"] == "not checked"}
    seen_by_verify = {"DescribeConfigs", "DescribeLogDirs", "ListPartitionReassignments"} & {*refused}
    assert {name for name in EVERYTHING for message in checks if f"({name}: {REFUSED}" in message} == seen_by_verify
    assert again.status == (0 if groups_are_read else 2), whole(again)


def test_requests_that_the_brokers_leave_out_are_named_as_those_that_they_refuse(
    live: Workspace, behind: Behind, kraft_cluster: LocalCluster
) -> None:
    create_topics(kraft_cluster.bootstrap_servers, NewTopic("goes", 1, 3))
    live.topic("new", configs={"min.insync.replicas": "2"})
    live.tombstone("goes")
    with behind(ManagedService(), dict.fromkeys((LOG_DIRECTORIES, REASSIGNMENTS, QUORUM), -1)):
        planned, applied = live.plan(), live.apply()

    assert "offers no ListPartitionReassignments" in planned.out, whole(planned)
    assert "does not offer DescribeLogDirs" in planned.out
    assert "of a ZooKeeper cluster" not in planned.out
    assert applied.status == 0, whole(applied)
    assert "not checked: log directories (broker 1 offers no DescribeLogDirs" in applied.out
    assert "not checked: reassignments (offers no ListPartitionReassignments): 1 topic" in applied.out
    assert {*topics_of(kraft_cluster)} == {"new"}


@pytest.mark.parametrize(
    ("own", "changed", "vendor"),
    [
        pytest.param(
            {"confluent.value.schema.validation": "true", "confluent.placement.constraints": ""},
            {"confluent.value.schema.validation": False},
            "Confluent",
            id="Confluent",
        ),
        pytest.param(
            {"redpanda.remote.read": "true", "write.caching": "false", "retention.local.target.ms": "86400000"},
            {"retention.local.target.ms": "2d"},
            "Redpanda",
            id="Redpanda",
        ),
        pytest.param({"diskless.enable": "true"}, {"diskless.enable": False}, "Aiven", id="Aiven"),
    ],
)
def test_configs_of_a_vendor_are_imported_planned_to_nothing_and_changed_with_a_note(
    live: Workspace,
    behind: Behind,
    kraft_cluster: LocalCluster,
    own: Mapping[str, str],
    changed: Mapping[str, object],
    vendor: str,
) -> None:
    create_topics(kraft_cluster.bootstrap_servers, NewTopic("theirs", 1, 3, config={"retention.ms": "7200000"}))
    with behind(ManagedService(refused=EVERYTHING, configs={"theirs": own})) as service:
        imported = live.run("import", "--environment", "local", "--owner", "team-tests")
        planned = live.plan("--detailed-exitcode")
        drifted = live.run("drift", "--environment", "local", "--detailed-exitcode")
        [file] = (live.folder / "topics").rglob("theirs.yaml")
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
        written = {**document["spec"]["configs"]}
        document["spec"]["configs"] = {**written, **changed}
        file.write_text(yaml.safe_dump(document), encoding="utf-8")
        changing, applied = live.plan(), live.apply()

    assert imported.status == 0, whole(imported)
    assert {*written} == {*own, "retention.ms"}, file.read_text(encoding="utf-8")
    assert planned.status == 0, whole(planned)
    assert "No changes." in planned.out
    assert drifted.status == 0, whole(drifted)
    [name] = changed
    assert f"note: {name} is a config of {vendor}" in changing.out, whole(changing)
    assert applied.status == 0, whole(applied)
    assert [*service.changed] == [name]


@pytest.mark.parametrize(
    ("kind", "replicas", "said"),
    [
        pytest.param(
            "own",
            3,
            "POLICY_VIOLATION (44): replicas are placed by the service; the brokers refuse this CreateTopics, which "
            "names the brokers of each replica: where a service runs them, write cluster.kind: managed",
            id="replicas that the plan places",
        ),
        pytest.param(
            "managed",
            2,
            "INVALID_REPLICATION_FACTOR (38): replicas are placed by the service; the brokers refuse this CreateTopics "
            "with replication factor 2",
            id="another replication factor than the only one",
        ),
    ],
)
def test_what_the_service_never_takes_is_told_with_the_request_before_anything_is_sent(
    live: Workspace, behind: Behind, kraft_cluster: LocalCluster, kind: str, replicas: int, said: str
) -> None:
    live.cluster["kind"] = kind
    live.topic("new", replicationFactor=replicas)
    with behind(ManagedService(factor=3)):
        planned, applied = live.plan(), live.apply()

    assert planned.status == 0, whole(planned)
    assert applied.status == 1, whole(applied)
    assert f"the brokers' dry run answered {said}; nothing was sent" in applied.err
    assert "new" not in topics_of(kraft_cluster)


def test_a_managed_cluster_that_is_written_as_ones_own_is_an_error_that_names_the_right(
    live: Workspace, behind: Behind
) -> None:
    live.cluster["kind"] = "own"
    with behind(ManagedService(refused=EVERYTHING)):
        planned = live.plan()

    assert planned.status == 1
    assert f"{REFUSED}" in planned.err, whole(planned)


@pytest.mark.parametrize("code", [KafkaError.UNSUPPORTED_VERSION, KafkaError.POLICY_VIOLATION])
@pytest.mark.parametrize("kind", ["own", "managed"])
def test_doctor_names_each_request_that_is_refused_and_its_answer(
    live: Workspace, behind: Behind, code: int, kind: str
) -> None:
    live.cluster["kind"] = kind
    with behind(ManagedService(refused=dict.fromkeys(EVERYTHING, code))):
        ended = live.run("doctor", "--environment", "local", "--format", "json")

    findings = json.loads(ended.out)["findings"]
    refused = {each["message"]: each["severity"] for each in findings if each["id"] == "refused-request"}
    name, asked = f"{KafkaError(code).name()} ({code})", sorted(EVERYTHING.keys() - {"DescribeCluster"})
    severity = "notice" if kind == "managed" else "warning"
    assert refused == {f"a request is refused: {request}: {name} on brokers 1, 2, 3": severity for request in asked}
    assert ended.status == (0 if kind == "managed" else 1), whole(ended)
    assert any(each["id"] == "silent-broker" for each in findings) is (kind == "own")


def test_init_knows_a_service_by_the_names_of_its_brokers_and_reads_what_it_lets_read(
    workspace: Workspace, kraft_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Vendor(vendor="Here", hosts=("127.0.0.1",), prefixes=(), configs={})
    ports = sorted(kraft_cluster.broker_ports.values())
    with BrokerProxies(ports, service=ManagedService(refused=EVERYTHING)) as proxies:
        servers = ("--name", "prod", "--bootstrap-servers", proxies.bootstrap_servers)
        refused = workspace.run("init", *servers)
        monkeypatch.setattr(vendors, "VENDORS", (ours,))
        known = workspace.run("init", *servers)

    assert refused.status == 1
    assert REFUSED in refused.err
    assert known.status == 0, whole(known)
    written = (workspace.folder / "topics/environments/prod.yaml").read_text(encoding="utf-8")
    assert "    kind: managed  # Here runs the brokers, which place the replicas\n" in written
