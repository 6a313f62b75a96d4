"""Brokers of some releases that grant each identity its own part and no more."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from fixtures.changes_by_identity import (
    PARTS,
    assert_each_did_its_part,
    assert_each_right_is_named,
    changes_are_due,
    plan_of_the_reader_alone,
)
from fixtures.cluster import running
from fixtures.guarded_broker import PASSWORDS, GuardedBroker, grant
from fixtures.kafka_releases import GUARDED, Brokers, reader_of, spec_of, wanted_brokers
from fixtures.live import until, zookeeper
from fixtures.release_table import Cell
from fixtures.workspace import Workspace
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.release import Release
from topicops_local.cluster import LocalCluster
from topicops_local.processes import free_port
from topicops_local.state import read_state

ITERATIONS = 4096
NEW_AUTHORIZER = Release(2, 4)
"""From here on ``AclAuthorizer`` replaces ``SimpleAclAuthorizer``; with KRaft there is another."""


@dataclass(frozen=True, kw_only=True)
class GuardedRelease(GuardedBroker):
    """As ``GuardedBroker``, of any release."""

    mechanism = "SCRAM-SHA-256"
    brokers: Brokers

    @classmethod
    @contextmanager
    def running(cls, brokers: Brokers, home: Path) -> Iterator[GuardedRelease]:
        """The broker with its users and their rights; it is gone afterwards."""
        with running(home, kafka=brokers.kafka, kraft=brokers.kraft, brokers=1) as cluster:
            port = free_port()
            cluster.stop_broker(1)
            cluster.start_broker(1, broker_properties=_properties(brokers, cluster, port))
            guarded = cls(brokers=brokers, cluster=cluster, port=port)
            guarded._add_users()
            grant(guarded.admin)
            until(lambda: all(map(guarded._may_log_in, PASSWORDS)))
            yield guarded

    def cluster_spec(self) -> dict[str, object]:
        return spec_of(self.brokers, self.cluster)

    def look(self) -> ClusterSnapshot:
        with reader_of(self.brokers, self.cluster) as reader:
            return reader.snapshot(states=True)

    def _add_users(self) -> None:
        if self.brokers.kraft:
            info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, ITERATIONS)
            wanted = [UserScramCredentialUpsertion(u, info, password.encode()) for u, password in PASSWORDS.items()]
            for future in self.admin.alter_user_scram_credentials(wanted).values():
                future.result(60)
            return
        with zookeeper(self.cluster) as client:
            for user, password in PASSWORDS.items():
                value = json.dumps({"version": 1, "config": {self.mechanism: _credential(password)}})
                client.create(f"/config/users/{user}", value.encode(), makepath=True)
                notice = json.dumps({"version": 2, "entity_path": f"users/{user}"})
                client.create("/config/changes/config_change_", notice.encode(), sequence=True)

    def _may_log_in(self, user: str) -> bool:
        """Return whether the broker has heard of the user."""
        client = AdminClient({**self.properties(user), "log_level": "0"})
        try:
            return bool(client.list_topics(timeout=2))
        except KafkaException:
            return False


def _credential(password: str) -> str:
    """Return the form in which brokers keep a password in ZooKeeper.

    Source: org.apache.kafka.common.security.scram.internals.ScramCredentialUtils#credentialToString.
    """
    salt = b"salt of the tests"
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    named = {"salt": salt, "stored_key": stored, "server_key": server}
    encoded = ",".join(f"{name}={base64.b64encode(value).decode()}" for name, value in named.items())
    return f"{encoded},iterations={ITERATIONS}"


def _properties(brokers: Brokers, cluster: LocalCluster, login_port: int) -> dict[str, str]:
    state = read_state(cluster.folder)
    assert state is not None
    own = f"PLAINTEXT://127.0.0.1:{cluster.broker_ports[1]}"
    login = f"SASL_PLAINTEXT://127.0.0.1:{login_port}"
    controller = f",CONTROLLER://127.0.0.1:{state.brokers[0].controller_port}" if brokers.kraft else ""
    protocols = {name: name for name in ("PLAINTEXT", "SASL_PLAINTEXT")} | (
        {"CONTROLLER": "PLAINTEXT"} if brokers.kraft else {}
    )
    return {
        "listeners": f"{own},{login}{controller}",
        "advertised.listeners": f"{own},{login}",
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "sasl.enabled.mechanisms": GuardedRelease.mechanism,
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "authorizer.class.name": _authorizer(brokers),
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "false",
    }


def _authorizer(brokers: Brokers) -> str:
    if brokers.kraft:
        return "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    if brokers.release < NEW_AUTHORIZER:
        return "kafka.security.auth.SimpleAclAuthorizer"
    return "kafka.security.authorizer.AclAuthorizer"


pytestmark = pytest.mark.soak


@pytest.fixture(scope="module", params=wanted_brokers(*GUARDED))
def broker(request: pytest.FixtureRequest, fast_folder: Path) -> Iterator[GuardedRelease]:
    brokers: Brokers = request.param
    with GuardedRelease.running(brokers, fast_folder / f"guarded-{brokers.name}") as guarded:
        yield guarded


@pytest.fixture
def cell(broker: GuardedRelease, record_property: Callable[[str, object], None]) -> Cell:
    return Cell(record_property)


@pytest.fixture
def guarded(broker: GuardedRelease, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    with changes_are_due(broker, workspace, monkeypatch) as prepared:
        yield prepared


def test_each_identity_does_its_own_part(
    guarded: Workspace, broker: GuardedRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plan_of_the_reader_alone(guarded, broker, monkeypatch)
    applied = guarded.apply()

    assert_each_did_its_part(guarded, broker, planned, applied)


def test_an_identity_that_may_change_nothing_is_told_each_right_that_it_lacks(
    guarded: Workspace, broker: GuardedRelease, cell: Cell
) -> None:
    guarded.cluster = broker.spec(**{**PARTS, "applier": "reader"})
    guarded.plan()
    before = broker.topics

    applied = guarded.apply()

    assert_each_right_is_named(applied)
    assert broker.topics == before
    cell.refused("TOP804")


def test_groups_that_brokers_may_hide_from_the_reader_count_as_unread(
    guarded: Workspace, broker: GuardedRelease
) -> None:
    committed = ConsumerGroupTopicPartitions("hidden", [TopicPartition("owned.going", 0, 0)])
    # The first commit on a cluster may find no coordinator: its topic is made for it.
    until(lambda: is_committed(broker, committed))

    groups = {}
    for user in ("reader", "deaf"):
        with closing(BrokerQuestions(broker.properties(user), timeout_s=15.0)) as questions:
            groups[user] = questions.activity(["owned.going"])["owned.going"].groups

    assert groups == {"reader": ("hidden",), "deaf": None}


def test_in_a_managed_cluster_rights_on_topics_are_enough_and_what_is_refused_is_named(
    guarded: Workspace, broker: GuardedRelease
) -> None:
    if not broker.brokers.kraft:
        pytest.skip("the brokers are read without ZooKeeper, and topics need ids")
    spec = broker.spec(**{**PARTS, "connection": "deaf"})
    guarded.cluster = spec
    as_ones_own = guarded.plan()
    guarded.cluster = {**spec, "kind": "managed"}
    planned, applied = guarded.plan(), guarded.apply()

    refusal = "CLUSTER_AUTHORIZATION_FAILED (31)"
    assert (as_ones_own.status, planned.status) == (1, 0), planned.err
    assert refusal in as_ones_own.err
    for request in ("DescribeConfigs", "DescribeLogDirs", "DescribeQuorum", "ListPartitionReassignments"):
        assert f"{request}: {refusal}" in planned.out, planned.out
    assert planned.out.count("not checked: ") == 1
    assert "Applied in part: 3 done, 1 refused" in applied.out, applied.out + applied.err
    assert "owned.going delete: refused: its consumer groups cannot be read (TOP437)" in applied.out
    assert "owned.going" in broker.topics


def is_committed(broker: GuardedRelease, committed: ConsumerGroupTopicPartitions) -> bool:
    answer = broker.admin.alter_consumer_group_offsets([committed])[committed.group_id].result(60)
    return not answer.topic_partitions[0].error
