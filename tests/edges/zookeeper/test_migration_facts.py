"""What ``doctor --for-kraft`` reads from a real ZooKeeper: what a migration copies, and what it cannot."""

from __future__ import annotations

import pytest
from kazoo.security import make_acl

from fixtures.znode_tree import config, lay
from fixtures.zookeeper import Chroot
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.features.ask.doctor.edges.migration import migration_facts
from topicops.features.ask.doctor.values import MigrationFacts
from topicops.model.errors import UndecodableZnodeError

SCRAM = '{"version":1,"config":{"SCRAM-SHA-512":"salt=x,stored_key=y,server_key=z,iterations=4096"}}'


def facts(chroot: Chroot) -> MigrationFacts:
    with ZooKeeperReader(chroot.hosts) as reader:
        return migration_facts(reader)


def test_a_usual_cluster_has_nothing_that_a_migration_needs_to_know(laid: Chroot) -> None:
    usual = {f"/config/{kind}": "" for kind in ("topics", "clients", "users", "brokers", "changes", "ips")}
    lay(laid.client, {**usual, "/config/brokers/<default>": config(log_cleaner_threads="2")})

    assert facts(laid) == MigrationFacts()


def test_quotas_that_are_numbers_are_copied_and_others_are_named(laid: Chroot) -> None:
    lay(
        laid.client,
        {
            "/config/clients/fine": config(consumer_byte_rate="1048576"),
            "/config/clients/odd": '{"version":1,"config":{"consumer_byte_rate":"fast"}}',
            "/config/users/ann": SCRAM,
            "/config/users/ann/clients/app": '{"version":1,"config":{"request_percentage":"lots"}}',
            "/config/ips/10.0.0.1": "{}",
        },
    )

    found = facts(laid)

    assert found.scram_users == ("ann",)
    assert [problem.partition(":")[0] for problem in found.broken_quotas] == [
        "/config/ips/10.0.0.1",
        "/config/users/ann/clients/app",
        "/config/clients/odd",
    ]
    assert "consumer_byte_rate is fast, which is no number" in found.broken_quotas[2]


def test_encrypted_settings_tokens_unknown_configs_and_a_waiting_election_are_named(laid: Chroot) -> None:
    lay(
        laid.client,
        {
            "/config/brokers/1": config(ssl_key_password="secret", log_cleaner_threads="2"),
            "/config/mine/x": "",
            "/delegation_token/tokens/a": "{}",
            "/admin/preferred_replica_election": '{"version":1,"partitions":[]}',
        },
    )

    found = facts(laid)

    assert found.encrypted == ("/config/brokers/1 (ssl.key.password)",)
    assert "secret" not in repr(found).replace("password", "")
    assert (found.unknown_configs, found.delegation_tokens) == (("/config/mine",), 1)
    assert found.election == "/admin/preferred_replica_election"


def test_znodes_that_may_not_be_read_are_named_and_the_rest_is_read(laid: Chroot) -> None:
    lay(laid.client, {"/config/users/ann": SCRAM, "/config/mine": ""})
    laid.client.set_acls("/config/users/ann", [make_acl("digest", "other:x", all=True)])

    found = facts(laid)

    assert (found.hidden, found.unknown_configs) == (("/config/users/ann",), ("/config/mine",))


@pytest.mark.parametrize(("epoch", "holder"), [("-1", None), ("3", 3000)])
def test_a_kraft_controller_is_told_from_a_broker(laid: Chroot, epoch: str, holder: int | None) -> None:
    data = f'{{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":{epoch}}}'
    lay(laid.client, {"/controller": data})

    assert facts(laid).kraft_controller == holder


def test_a_controller_znode_that_cannot_be_read_is_no_controller_of_anybody(laid: Chroot) -> None:
    lay(laid.client, {"/controller": "[]"})

    with pytest.raises(UndecodableZnodeError):
        facts(laid)
