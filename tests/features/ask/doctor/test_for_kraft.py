"""Each rule of ``doctor --for-kraft``: what it finds, and that a cluster that is ready gives it nothing to find."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fakes.builders import THREE_BROKERS, partition_state
from fixtures.doctor_facts import (
    BROKER,
    KAFKA,
    SETTINGS,
    ZOOKEEPER,
    broker_2,
    healthy,
    healthy_topic,
    ids_of,
    one_row,
    without,
    world,
    zookeeper,
)
from topicops.features.ask.doctor.commands import doctor_text
from topicops.features.ask.doctor.findings import Severity
from topicops.features.ask.doctor.rules import MIGRATION_RULES, examine_for_kraft, kraft_report
from topicops.features.ask.doctor.values import GONE_SETTINGS, BrokerFacts, DoctorFacts, KafkaFacts, MigrationFacts
from topicops.model.errors import UnsupportedTargetError
from topicops.model.json_types import json_text
from topicops.model.release import BRIDGE, Release

MIGRATION_MODE = {"zookeeper.metadata.migration.enable": "true"}


def with_topic(**fields: Any) -> DoctorFacts:
    return world(healthy_topic(**fields))


def kept(**fields: Any) -> DoctorFacts:
    """With something in ZooKeeper that only a migration looks at."""
    return healthy(migration=MigrationFacts(**fields))


def all_brokers(*, written: str = "", release: Release = BRIDGE, **settings: str) -> KafkaFacts:
    """Brokers with these settings, ``_`` for each dot, in addition; or of another release, with its own protocol."""
    changed = {name.replace("_", "."): value for name, value in settings.items()}
    protocol = {"inter.broker.protocol.version": f"{release}-IV0"}
    broker = BrokerFacts(
        release=release, settings=SETTINGS | protocol | changed, written=frozenset(filter(None, [written]))
    )
    return replace(KAFKA, brokers=dict.fromkeys(THREE_BROKERS, broker))


def set_to(**settings: str) -> DoctorFacts:
    return healthy(kafka=all_brokers(**settings))


FAULTS: Mapping[str, tuple[DoctorFacts, Severity, str | None, str]] = {
    "zookeeper": (without("zookeeper"), Severity.ERROR, "TOP504", "it does not answer"),
    "snapshot": (without("snapshot"), Severity.ERROR, "TOP504", "it does not answer"),
    "undecodable-znode": (
        zookeeper(undecodable=("/brokers/topics/a: holds no data; repair it",)),
        Severity.ERROR, None, "/brokers/topics/a: holds no data",
    ),
    "brokers": (without("kafka"), Severity.ERROR, "TOP504", "it does not answer"),
    "wrong-cluster": (healthy(kafka=replace(KAFKA, cluster_id="another")), Severity.ERROR, "TOP504", "another"),
    "silent-broker": (broker_2(problem="hangs"), Severity.WARNING, None, "broker 2 hangs"),
    "hidden-znodes": (
        kept(hidden=("/config/users",)), Severity.WARNING, "TOP804", "may not read these znodes, so they were not",
    ),
    "left-over-migration": (
        zookeeper(migration="begun"), Severity.ERROR, "TOP814",
        "earlier migration: /migration;",
    ),
    "prepared-migration": (
        zookeeper(migration="prepared"), Severity.NOTICE, "TOP801", "waits for the brokers",
    ),
    "mixed-releases": (
        broker_2(release=Release(4, 0), settings=SETTINGS | {"inter.broker.protocol.version": "4.0-IV0"}),
        Severity.ERROR, None, "broker 1 3.9, broker 2 4.0",
    ),
    "old-release": (
        healthy(kafka=all_brokers(release=Release(2, 5))), Severity.ERROR, None, "only 3.4 and later can migrate",
    ),
    "left-behind": (
        healthy(migration=MigrationFacts(scram_users=("ann",)), kafka=all_brokers(release=Release(3, 4))),
        Severity.ERROR, None, "SCRAM users (from 3.5 on)",
    ),
    "old-protocol": (
        set_to(inter_broker_protocol_version="2.8-IV1"), Severity.ERROR, None, "broker 1 3.9 (protocol 2.8-IV1)",
    ),
    "generated-ids": (set_to(broker_id="-1"), Severity.ERROR, None, "not set on broker 1, broker 2, broker 3"),
    "controller-ids": (
        set_to(controller_quorum_voters="2@a:9093, 3000@b:9093"), Severity.ERROR, None, "ids that brokers have: node 2",
    ),
    "no-controller": (world(controller_id=None), Severity.ERROR, "TOP432", "no controller"),
    "unregistered-broker": (
        world(one_row(1, 9, states={0: partition_state([1])})), Severity.ERROR, "TOP611",
        "brokers that are not registered: broker 9 (orders)",
    ),
    "pending-deletion": (
        world(healthy_topic(), deleting={"orders": 1_000}), Severity.ERROR, "TOP418", "are not copied, and brokers",
    ),
    "missing-state": (
        with_topic(states={0: partition_state([1])}), Severity.ERROR, "TOP612", "ever led: orders-1, orders-2",
    ),
    "missing-topic-id": (with_topic(topic_id=None), Severity.ERROR, None, "without a topic id: orders"),
    "reassignment": (
        world(healthy_topic(adding={0: (3,)}), reassigning=frozenset({"gone"})), Severity.WARNING, "TOP419",
        "gone (no such topic), orders",
    ),
    "waiting-election": (
        kept(election="/admin/preferred_replica_election"), Severity.WARNING, None, "preferred_replica_election waits",
    ),
    "orphan-config": (
        world(orphan_configs=frozenset({"ghost"})), Severity.WARNING, None, "created by hand: ghost",
    ),
    "unknown-config": (kept(unknown_configs=("/config/mine",)), Severity.WARNING, None, "copy them: /config/mine"),
    "broken-quota": (
        kept(broken_quotas=("/config/clients/a: x is y, which is no number",)), Severity.ERROR, None, "x is y",
    ),
    "encrypted-settings": (
        kept(encrypted=("/config/brokers/1 (ssl.key.password)",)), Severity.NOTICE, None, "ssl.key.password",
    ),
    "control-plane": (
        set_to(control_plane_listener_name="CP"), Severity.WARNING, None, "does not start with control.plane",
    ),
    "zookeeper-authorizer": (
        set_to(authorizer_class_name="kafka.security.authorizer.AclAuthorizer"), Severity.NOTICE, None,
        "KRaft brokers cannot use it",
    ),
    "gone-settings": (
        healthy(kafka=all_brokers(written="log.message.format.version")), Severity.WARNING, None,
        "broker 1 (log.message.format.version)",
    ),
    "small-segments": (set_to(log_segment_bytes="1000"), Severity.WARNING, None, "broker 1 (1000: "),
    "gone-overrides": (
        with_topic(overrides={"message.format.version": "2.8"}), Severity.WARNING, "TOP314",
        "orders (message.format.version)",
    ),
    "refused-overrides": (
        with_topic(overrides={"segment.bytes": "1000"}), Severity.WARNING, "TOP306", "orders (segment.bytes 1000",
    ),
}  # fmt: skip
"""What each rule is shown, and what it then says."""
BOTH_FIND = {"left-behind": "old-release"}
"""A release that leaves something behind is an old one, too."""


def test_every_rule_has_a_case_that_it_finds() -> None:
    assert list(FAULTS) == [rule.id for rule in MIGRATION_RULES]


@pytest.mark.parametrize("rule", FAULTS)
def test_what_stands_in_the_way_is_found_by_its_rule_alone(rule: str) -> None:
    facts, severity, code, words = FAULTS[rule]

    [finding] = [finding for finding in examine_for_kraft(facts).findings if finding.id != BOTH_FIND.get(rule)]

    assert (finding.id, finding.severity, finding.code) == (rule, severity, code)
    assert words in finding.message
    assert finding.fix


def test_where_nothing_stands_in_the_way_the_report_says_so_with_the_way_to_go() -> None:
    report = examine_for_kraft(healthy())

    assert (report.findings, report.rules_not_applied, report.has_errors) == ((), (), False)
    assert doctor_text(report).splitlines()[-1] == (
        f"Nothing stands in the way of a migration to KRaft; {len(MIGRATION_RULES)} rules applied."
    )
    assert report.facts["way"].startswith("migrate with 3.9, then upgrade to 4.0 or later")
    assert report.facts["controllers"] == "need a node.id that no broker has: not 1, 2, 3"


def test_a_notice_does_not_stand_in_the_way_and_a_warning_does() -> None:
    noticed, warned = (
        examine_for_kraft(FAULTS["zookeeper-authorizer"][0]),
        examine_for_kraft(FAULTS["control-plane"][0]),
    )

    assert "Nothing stands in the way of a migration to KRaft, 1 notice; " in doctor_text(noticed)
    assert "Nothing stands" not in doctor_text(warned)


def test_what_could_not_be_read_is_said_and_nothing_is_called_clean() -> None:
    report = examine_for_kraft(without("zookeeper"))

    assert "hidden-znodes" not in report.rules_not_applied
    assert "left-over-migration" in report.rules_not_applied
    assert "Nothing stands" not in doctor_text(report)
    assert json.loads(json_text(report))["rules_not_applied"] == list(report.rules_not_applied)


def test_an_old_cluster_is_led_over_the_last_release_with_zookeeper() -> None:
    report = examine_for_kraft(healthy(kafka=all_brokers(release=Release(2, 5))))

    assert report.facts["way"].startswith("upgrade to 3.9, migrate with 3.9, then upgrade to 4.0 or later")
    assert "Java 17" in report.facts["way"]
    assert report.findings[0].fix == (
        "upgrade the brokers one by one to 3.9, then raise inter.broker.protocol.version to 3.9 on each of them"
    )


def test_a_release_that_can_migrate_and_is_not_the_last_one_is_a_warning() -> None:
    [finding] = examine_for_kraft(healthy(kafka=all_brokers(release=Release(3, 7)))).findings

    assert (finding.id, finding.severity) == ("old-release", Severity.WARNING)
    assert "3.9 is the release to migrate with" in finding.message


@pytest.mark.parametrize(
    ("release", "part", "left_behind"),
    [
        pytest.param("3.4", {"scram_users": ("ann",)}, "SCRAM users (from 3.5 on)", id="SCRAM in 3.4"),
        pytest.param("3.5", {"scram_users": ("ann",)}, "", id="SCRAM in 3.5"),
        pytest.param("3.5", {"delegation_tokens": 2}, "delegation tokens (from 3.6 on)", id="tokens in 3.5"),
        pytest.param("3.6", {"delegation_tokens": 2}, "", id="tokens in 3.6"),
        pytest.param("3.4", {"authorizer.class.name": "x"}, "ACLs (from 3.5 on)", id="ACLs in 3.4"),
        pytest.param("3.5", {"authorizer.class.name": "x"}, "", id="ACLs in 3.5"),
        pytest.param("3.6", {"log.dirs": "/a,/b"}, "brokers with several log.dirs (from 3.7 on)", id="two dirs in 3.6"),
        pytest.param("3.7", {"log.dirs": "/a,/b"}, "", id="two dirs in 3.7"),
    ],
)
def test_what_a_release_cannot_take_along_is_named_up_to_the_release_that_can(
    release: str, part: dict[str, Any], left_behind: str
) -> None:
    parsed = Release.parse(release)
    assert parsed is not None
    settings = {name.replace(".", "_"): value for name, value in part.items() if "." in name}
    kept_there = {name: value for name, value in part.items() if "." not in name}

    report = examine_for_kraft(
        healthy(kafka=all_brokers(release=parsed, **settings), migration=MigrationFacts(**kept_there))
    )

    assert [f.places for f in report.findings if f.id == "left-behind"] == ([(left_behind,)] if left_behind else [])


def test_a_migration_that_has_begun_is_one_sentence_and_no_finding() -> None:
    facts = healthy(
        snapshot=None,
        zookeeper=replace(ZOOKEEPER, migration="begun"),
        migration=MigrationFacts(kraft_controller=3000),
        kafka=replace(KAFKA, brokers={1: replace(BROKER, settings=SETTINGS | MIGRATION_MODE)}),
        unread={"snapshot": UnsupportedTargetError("a KRaft controller rules")},
    )

    report = examine_for_kraft(facts)

    assert (report.findings, report.has_errors) == ((), False)
    assert "the migration has begun" in doctor_text(report)
    assert "source: kafka" in report.facts["mode"]


def test_marks_of_a_migration_that_no_broker_knows_of_are_left_over_and_no_reason_to_use_the_brokers() -> None:
    facts = healthy(
        snapshot=None,
        zookeeper=replace(ZOOKEEPER, migration="begun"),
        migration=MigrationFacts(kraft_controller=3000),
        unread={"snapshot": UnsupportedTargetError("a KRaft controller rules; set source: kafka")},
    )

    [finding] = examine_for_kraft(facts).findings

    assert (finding.id, finding.places) == ("left-over-migration", ("/controller", "/migration"))
    assert "delete /controller and delete /migration" in finding.fix


def test_under_kraft_the_report_is_one_sentence() -> None:
    report = kraft_report("prod", "the brokers run with KRaft already")

    assert doctor_text(report).splitlines() == [
        "mode  the brokers run with KRaft already", "Nothing to examine; 0 rules applied.",
    ]  # fmt: skip
    assert not report.has_errors


def test_the_old_authorizer_is_a_warning_because_brokers_of_the_bridge_lack_it() -> None:
    [finding] = examine_for_kraft(set_to(authorizer_class_name="kafka.security.auth.SimpleAclAuthorizer")).findings

    assert (finding.id, finding.severity) == ("zookeeper-authorizer", Severity.WARNING)
    assert "gone since Kafka 3.0" in finding.message


@pytest.mark.parametrize("setting", GONE_SETTINGS)
def test_a_gone_setting_is_found_where_somebody_wrote_it_and_not_as_a_default(setting: str) -> None:
    default = set_to(**{setting.replace(".", "_"): "1"})
    [finding] = examine_for_kraft(healthy(kafka=all_brokers(written=setting))).findings

    assert examine_for_kraft(default).findings == ()
    assert (finding.id, len(finding.places)) == ("gone-settings", 3)
    assert GONE_SETTINGS[setting] in finding.places[0]


def test_a_topic_that_is_being_deleted_may_lack_states() -> None:
    going = world(healthy_topic(states={}), deleting={"orders": 1_000})

    assert ids_of(examine_for_kraft(going)) == ["pending-deletion"]
