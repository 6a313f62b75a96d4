"""Each rule of ``doctor``: what it finds, and that a clean cluster gives it nothing to find."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from fakes.builders import THREE_BROKERS, brokers, environment, healthy_states, live_topic, partition_state, snapshot
from fixtures.doctor_facts import (
    BROKER,
    KAFKA,
    SERVER,
    SETTINGS,
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
from topicops.features.ask.doctor.rules import RULES, examine
from topicops.features.ask.doctor.values import BrokerFacts, DoctorFacts, ZooKeeperServer
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, LogDirectories
from topicops.model.json_types import json_text
from topicops.model.release import LOG_DIRECTORIES, Release
from topicops.model.runs.moves import KnownMoves, TopicMoves

SECURED = {**SETTINGS, "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}


def broker_2_set(**settings: str) -> DoctorFacts:
    written = {name.replace("_", "."): value for name, value in settings.items()}
    return broker_2(settings={**SETTINGS, **written})


def in_racks(found: Mapping[int, str | None]) -> ClusterSnapshot:
    return replace(snapshot(healthy_topic()), brokers=brokers(found))


NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
LISTS = {"leader.replication.throttled.replicas": "0:1", "follower.replication.throttled.replicas": "0:3"}
ORDERS = TopicMoves(
    identity="a",
    digest="d",
    partitions={0},
    asked={0},
    targets={0: (1, 3)},
    sentence="moving 1 of 1 partition",
    entries={name: [entry] for name, entry in LISTS.items()},
)
OURS = KnownMoves(cluster_id="c", topics={"orders": ORDERS}, rates=[2], stepped_at=NOON)
"""Partition 0 of orders moves to broker 3."""
FAULTS: Mapping[str, tuple[DoctorFacts, Severity, str | None, str]] = {
    "zookeeper": (without("zookeeper"), Severity.ERROR, "TOP504", "it does not answer"),
    "snapshot": (without("snapshot"), Severity.ERROR, "TOP504", "it does not answer"),
    "undecodable-znode": (
        zookeeper(undecodable=("/brokers/topics/a: holds no data; repair it", "/brokers/topics/b: is odd; do this")),
        Severity.ERROR, None, "/brokers/topics/a: holds no data, /brokers/topics/b: is odd",
    ),
    "brokers": (without("kafka"), Severity.ERROR, "TOP504", "it does not answer"),
    "silent-server": (
        zookeeper(servers=(SERVER, ZooKeeperServer(address="zk2:2181", problem="is away"))),
        Severity.NOTICE, None, "zk2:2181 is away",
    ),
    "server-versions": (
        zookeeper(servers=(SERVER, replace(SERVER, version="3.6.3"))), Severity.WARNING, None, "zk1:2181 3.6.3",
    ),
    "read-only-server": (
        zookeeper(servers=(replace(SERVER, mode="read-only"),)), Severity.ERROR, "TOP802", "zk1:2181 is read-only",
    ),
    "multi-read": (zookeeper(knows_multi_read=False), Severity.NOTICE, None, "multiRead"),
    "lease-right": (
        zookeeper(may_hold_lease=False), Severity.ERROR, "TOP804", "sasl:topicops) may not create the lease",
    ),
    "stray-lease": (
        zookeeper(stray_lease="/kafka/topicops/lease"), Severity.ERROR, "TOP808", "/kafka/topicops/lease is no lease",
    ),
    "kafka-rights": (
        healthy(kafka=replace(KAFKA, operations={**KAFKA.operations, "applier": frozenset({"DESCRIBE"})})),
        Severity.WARNING, "TOP804", "applier (User:ops): CREATE",
    ),
    "topic-rights": (
        healthy(
            kafka=replace(
                KAFKA,
                topic_operations={
                    "applier": {"a": frozenset({"DESCRIBE", "ALTER", "ALTER_CONFIGS"}), "b": frozenset({"DESCRIBE"})},
                    "deleter": {"c": frozenset()},
                },
            )
        ),
        Severity.WARNING, "TOP804", "b: applier lacks ALTER, ALTER_CONFIGS, c: deleter lacks DELETE, DESCRIBE",
    ),
    "excessive-rights": (
        healthy(
            kafka=replace(
                KAFKA,
                brokers=dict.fromkeys(THREE_BROKERS, replace(BROKER, settings=SECURED)),
                operations={**KAFKA.operations, "reader": frozenset({"DESCRIBE", "CREATE", "ALTER"})},
            )
        ),
        Severity.NOTICE, "TOP813", "the reader (anonymous) may do more to the cluster than read: ALTER, CREATE",
    ),
    "unusable-home": (healthy(home_problem="s3://b/x: it ignores conditions"), Severity.ERROR, None, "s3://b/x: it"),
    "wrong-cluster": (healthy(kafka=replace(KAFKA, cluster_id="another")), Severity.ERROR, "TOP504", "another"),
    "migration": (zookeeper(migration="prepared"), Severity.WARNING, "TOP801", "/migration exists"),
    "feature-znode": (
        zookeeper(feature_problem="/feature: holds no data; do it"), Severity.ERROR, None, "no data",
    ),
    "clock-skew": (zookeeper(clocks_ahead_ms={1: 0, 2: 61_000}), Severity.WARNING, "TOP807", "broker 2 by +61 s"),
    "no-controller": (world(controller_id=None), Severity.ERROR, "TOP432", "no controller"),
    "mixed-racks": (
        healthy(snapshot=in_racks({1: "a", 2: None, 3: "b"})), Severity.ERROR, "TOP434", "broker 2 without a rack",
    ),
    "broker-versions": (
        broker_2_set(inter_broker_protocol_version="3.8-IV0"), Severity.WARNING, None,
        "broker 2 3.9 (protocol 3.8-IV0)",
    ),
    "missing-request": (
        broker_2(missing=(LOG_DIRECTORIES,)), Severity.WARNING, "TOP811", "broker 2 without DescribeLogDirs: verify",
    ),
    "refused-request": (
        broker_2(refused={"ListGroups": "CLUSTER_AUTHORIZATION_FAILED (31)"}), Severity.WARNING, "TOP804",
        "a request is refused: ListGroups: CLUSTER_AUTHORIZATION_FAILED (31) on broker 2",
    ),
    "managed": (
        healthy(kafka=replace(KAFKA, vendor="Aiven")), Severity.WARNING, None, "Aiven runs these brokers",
    ),
    "silent-broker": (broker_2(settings={}, problem="hangs"), Severity.WARNING, None, "broker 2 hangs"),
    "failed-disk": (
        broker_2(log_directories=LogDirectories(held={}, failed=("/data/2",))),
        Severity.ERROR, "TOP435", "neither served nor deleted: broker 2: /data/2",
    ),
    "different-defaults": (
        broker_2_set(log_retention_hours="1"), Severity.WARNING, None,
        "retention.ms: 604800000 on brokers 1, 3, log.retention.hours=1 on broker 2",
    ),
    "auto-create": (broker_2_set(auto_create_topics_enable="TRUE"), Severity.WARNING, "TOP806", "on broker 2"),
    "topic-deletion": (broker_2_set(delete_topic_enable="false"), Severity.WARNING, "TOP805", "broker 2"),
    "unregistered-broker": (world(one_row(1, 9, states={0: partition_state([1])})), Severity.ERROR, "TOP611",
        "broker 9 (orders)"),
    "missing-state": (
        world(healthy_topic(states={0: partition_state([1])})), Severity.ERROR, "TOP612", "orders-1, orders-2",
    ),
    "no-leader": (
        world(one_row(1, states={0: partition_state([1], leader=-1)})), Severity.ERROR, "TOP601", "orders-0 (ISR 1)",
    ),
    "isr-outside-replicas": (
        world(one_row(1, states={0: partition_state([1, 2])})), Severity.ERROR, "TOP610", "(ISR 1, 2, replicas 1)",
    ),
    "uneven-replication": (
        world(live_topic("orders", assignment={0: (1,), 1: (2, 3)}, states=healthy_states({0: (1,), 1: (2, 3)}))),
        Severity.WARNING, "TOP423", "orders (1, 2 replicas)",
    ),
    "partition-gaps": (
        world(live_topic("orders", assignment={0: (1,), 5: (2,)}, states=healthy_states({0: (1,), 5: (2,)}))),
        Severity.WARNING, "TOP426", "orders",
    ),
    "missing-topic-id": (world(healthy_topic(topic_id=None)), Severity.WARNING, None, "orders"),
    "colliding-names": (
        world(healthy_topic("a.b"), healthy_topic("a_b")), Severity.WARNING, "TOP417", "a.b and a_b",
    ),
    "orphan-config": (world(orphan_configs=frozenset({"ghost"})), Severity.WARNING, None, "ghost"),
    "missing-config": (zookeeper(topics_without_config=("orders",)), Severity.NOTICE, None, "orders"),
    "stuck-deletion": (
        world(healthy_topic(), deleting={"orders": 121_000}), Severity.ERROR, "TOP418", "orders (121 s)",
    ),
    "reassignment": (world(healthy_topic(adding={0: (3,)})), Severity.WARNING, "TOP419", "orders"),
    "leftover-throttle": (
        world(healthy_topic(overrides={"leader.replication.throttled.replicas": "*"})), Severity.WARNING, "TOP313",
        "orders (leader.replication.throttled.replicas)",
    ),
    "wide-znode": (
        world(healthy_topic(overrides={"follower.replication.throttled.replicas": " " * 900_000})), Severity.WARNING,
        "TOP428", "/config/topics/orders (900",
    ),
    "readable-password": (
        healthy(kafka=replace(KAFKA, readable_passwords=("reader",))), Severity.WARNING, "TOP812", "reader",
    ),
    "moves-record": (healthy(moves_problem="home/moves: damaged"), Severity.ERROR, None, "home/moves: damaged"),
    "waiting-moves": (
        healthy(moves=replace(OURS, stepped_at=NOON - timedelta(hours=2)), read_at=NOON), Severity.WARNING, None,
        "since 2026-11-29 10:00 UTC; moves or throttles are left: orders (1 partition), broker 2 (throttle rate)",
    ),
    "owed-moves": (
        healthy(moves=replace(OURS, notes=("broker 3 is down",)), read_at=NOON), Severity.NOTICE, None,
        "done for them: broker 3 is down",
    ),
    "unstable-topics": (world(healthy_topic(unstable=True)), Severity.NOTICE, None, "orders"),
}  # fmt: skip
"""What each rule is shown, and what it then says; the rules of ``OTHER_FAULTS`` need another environment."""
OTHER_FAULTS = {"few-brokers", "unset-home"}


def test_every_rule_has_a_case_that_it_finds() -> None:
    assert sorted([*FAULTS, *OTHER_FAULTS]) == sorted(rule.id for rule in RULES)


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_is_found_by_its_rule_alone(rule: str) -> None:
    examined, severity, code, words = FAULTS[rule]

    [finding] = examine(examined).findings

    assert (finding.id, finding.severity, finding.code) == (rule, severity, code)
    assert words in finding.message
    assert finding.fix


def test_nothing_is_found_where_all_is_well() -> None:
    examination = examine(healthy())

    assert (examination.findings, examination.rules_not_applied) == ((), ())
    assert examination.rules_applied == len(RULES)
    assert not examination.has_errors


def test_a_production_environment_without_a_set_home_is_found() -> None:
    facts, sandbox = healthy(home_is_set=False), environment()
    cluster = msgspec.structs.replace(sandbox.spec.cluster, cluster_class="production")
    production = replace(sandbox, spec=msgspec.structs.replace(sandbox.spec, cluster=cluster))

    [finding] = examine(replace(facts, environment=production)).findings

    assert (finding.id, finding.severity) == ("unset-home", Severity.WARNING)
    assert "TOPICOPS_HOME is not set" in finding.message
    assert examine(facts).findings == ()


def test_fewer_brokers_than_the_environment_asks_for_are_found() -> None:
    [finding] = examine(healthy(environment=environment(min_live_brokers=4))).findings

    assert (finding.id, finding.code) == ("few-brokers", "TOP433")
    assert "3 brokers are registered" in finding.message


def test_a_release_other_than_the_environments_is_found() -> None:
    older = replace(KAFKA, brokers={1: BrokerFacts(release=Release(3, 7), settings=SETTINGS)})

    [finding] = examine(healthy(kafka=older)).findings

    assert (finding.id, finding.places) == ("broker-versions", ("broker 1 3.7",))


def test_brokers_that_are_not_supported_are_an_error() -> None:
    older = replace(KAFKA, brokers={1: BrokerFacts(release=Release(0, 11), settings=SETTINGS)})

    error, warning = examine(healthy(kafka=older)).findings

    assert (error.severity, error.code, error.places) == (Severity.ERROR, "TOP810", ("broker 1 0.11",))
    assert warning.places == ("broker 1 0.11",)


def test_a_host_that_is_behind_is_found_by_stamps_of_its_future() -> None:
    behind = zookeeper(newest_stamp_ms=1_000_000, read_at_ms=900_000)

    [finding] = examine(behind).findings

    assert "this host by -100 s or more" in finding.message


def test_rules_about_zookeeper_are_no_fault_of_a_cluster_that_has_none() -> None:
    facts, without_zookeeper = replace(healthy(), zookeeper=None), environment()
    cluster = msgspec.structs.replace(without_zookeeper.spec.cluster, source="kafka")
    kraft = replace(without_zookeeper, spec=msgspec.structs.replace(without_zookeeper.spec, cluster=cluster))

    report = examine(replace(facts, environment=kraft))

    assert f"none, so {len(report.rules_not_applied)} rules about it" in report.facts["zookeeper"]
    assert "not applied" not in doctor_text(report)
    assert examine(facts).rules_not_applied


def test_rules_that_lack_what_they_need_are_named_and_the_others_look() -> None:
    fault = world(healthy_topic(topic_id=None)).snapshot

    examination = examine(DoctorFacts(environment=environment(), snapshot=fault))

    assert ids_of(examination) == ["missing-topic-id"]
    left_out, looked = set(examination.rules_not_applied), {"brokers", "clock-skew", "no-leader", "reassignment"}
    assert (
        {"stray-lease", "wrong-cluster", "silent-broker", "missing-config"}
        <= left_out
        <= {r.id for r in RULES} - looked
    )


def test_without_an_authorizer_nobody_has_too_many_rights() -> None:
    anybody = {**KAFKA.operations, "reader": frozenset({"DESCRIBE", "CREATE"})}

    assert ids_of(examine(healthy(kafka=replace(KAFKA, operations=anybody)))) == []


def test_a_young_marker_is_given_time_and_one_that_waits_for_a_dead_broker_is_not() -> None:
    young = world(healthy_topic(), deleting={"orders": 1_000})
    waiting = world(one_row(1, 9), deleting={"orders": 1_000})

    assert "stuck-deletion" not in ids_of(examine(young))
    [stuck] = [f for f in examine(waiting).findings if f.id == "stuck-deletion"]
    assert "waits for broker 9" in stuck.message


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        pytest.param(world(one_row(1, states={0: partition_state([1], leader=-1)})), "no-leader", id="no leader"),
        pytest.param(world(one_row(1, states={})), "missing-state", id="no state"),
        pytest.param(world(one_row(1, 9), deleting={"orders": 1_000}), "stuck-deletion", id="deletion"),
    ],
)
def test_the_fix_of_an_unhealthy_topic_ends_with_the_command_that_says_why(facts: DoctorFacts, rule: str) -> None:
    [finding] = [f for f in examine(facts).findings if f.id == rule]

    assert finding.fix.endswith(f"; to see all causes: topicops why orders --environment {environment().name}")


def test_a_topic_that_goes_may_have_lost_its_leaders() -> None:
    going = world(one_row(1, states={0: partition_state([1], leader=-1)}), deleting={"orders": 1_000})

    assert ids_of(examine(going)) == []


@pytest.mark.parametrize(
    ("release", "way"),
    [
        pytest.param("2.3", "Kafka 2.3 cannot cancel one that cannot end: when no other one runs, ", id="none"),
        pytest.param("2.4", "that cannot end: topicops why orders --environment local; do not use", id="why knows"),
    ],
)
def test_a_move_is_cancelled_by_what_the_oldest_broker_has(release: str, way: str) -> None:
    facts = replace(world(healthy_topic(adding={0: (3,)})), kafka=broker_2(release=Release.parse(release)).kafka)

    [finding] = [f for f in examine(facts).findings if f.id == "reassignment"]

    assert re.search(way, finding.fix)


def test_a_throttle_is_in_place_while_replicas_move() -> None:
    moving = healthy_topic(overrides={"leader.replication.throttled.replicas": "0:1"}, adding={0: (3,)})

    assert ids_of(examine(world(moving))) == ["reassignment"]


def test_a_throttle_rate_that_a_broker_hides_is_left_over_too() -> None:
    brokers = {**KAFKA.brokers, 2: replace(KAFKA.brokers[2], hidden=frozenset({"follower.replication.throttled.rate"}))}

    [finding] = examine(healthy(kafka=replace(KAFKA, brokers=brokers))).findings

    assert (finding.id, finding.places) == ("leftover-throttle", ("broker 2 (follower.replication.throttled.rate)",))


def test_a_brokers_throttle_rate_is_left_over_when_nothing_moves() -> None:
    throttled = broker_2_set(leader_replication_throttled_rate="1000").kafka
    moving = snapshot(healthy_topic(adding={0: (3,)}))

    [finding] = examine(healthy(kafka=throttled)).findings

    assert (finding.id, finding.places) == ("leftover-throttle", ("broker 2 (leader.replication.throttled.rate)",))
    assert ids_of(examine(healthy(kafka=throttled, snapshot=moving))) == ["reassignment"]


def test_moves_and_throttles_of_ours_are_no_fault() -> None:
    moving = world(healthy_topic(adding={0: (3,)}, overrides=LISTS))
    ended = world(healthy_topic(overrides=LISTS))
    rate = broker_2_set(leader_replication_throttled_rate="1000").kafka

    for found in (moving, ended):
        assert ids_of(examine(replace(found, moves=OURS, read_at=NOON, kafka=rate))) == []


@pytest.mark.parametrize(
    ("topic", "rule"),
    [
        pytest.param(healthy_topic(adding={0: (3,), 1: (3,)}), "reassignment", id="another partition"),
        pytest.param(
            healthy_topic(overrides={"leader.replication.throttled.replicas": "0:1,0:2"}),
            "leftover-throttle",
            id="entry",
        ),
        pytest.param(
            healthy_topic(overrides={"leader.replication.throttled.replicas": "*"}), "leftover-throttle", id="all"
        ),
    ],
)
def test_what_others_do_to_a_topic_of_ours_is_still_told(topic: LiveTopic, rule: str) -> None:
    assert ids_of(examine(replace(world(topic), moves=OURS, read_at=NOON))) == [rule]


def test_a_partition_that_only_waits_is_not_moved_by_us() -> None:
    waiting = replace(OURS, topics={"orders": replace(ORDERS, asked=())})
    facts = world(healthy_topic(adding={0: (3,)}))

    assert ids_of(examine(replace(facts, moves=waiting, read_at=NOON))) == ["reassignment"]


def test_a_left_throttle_is_removed_at_the_topics_first_and_nobody_elses_with_it() -> None:
    lists = {"leader.replication.throttled.replicas": "0:1", "follower.replication.throttled.replicas": "0:3"}
    rate = broker_2_set(leader_replication_throttled_rate="1000").kafka

    [finding] = examine(replace(world(healthy_topic(overrides=lists)), kafka=rate)).findings

    topics, brokers = finding.fix.partition("; without")[0].split("; then ")
    assert topics.endswith(
        "--entity-type topics --entity-name orders --delete-config "
        "leader.replication.throttled.replicas,follower.replication.throttled.replicas"
    )
    assert brokers.endswith("--entity-type brokers --entity-name 2 --delete-config leader.replication.throttled.rate")
    assert "--verify" not in finding.fix


@pytest.mark.parametrize(("operations", "lacking"), [({"DESCRIBE", "ALTER"}, "ALTER_CONFIGS"), ({"ALTER_CONFIGS"}, "")])
def test_a_mover_needs_rights_on_the_cluster_that_no_other_role_needs(operations: set[str], lacking: str) -> None:
    rights = {**KAFKA.operations, "mover": frozenset(operations | ({"DESCRIBE", "ALTER"} if not lacking else set()))}
    kafka = replace(KAFKA, operations=rights, principals={**KAFKA.principals, "mover": "User:mover"})

    found = [finding.message for finding in examine(healthy(kafka=kafka)).findings]

    assert found == ([f"a role may lack rights on the cluster: mover (User:mover): {lacking}"] if lacking else [])


def test_under_kraft_racks_may_be_mixed_and_no_broker_is_the_controller() -> None:
    live = replace(in_racks({1: "a", 2: None, 3: "b"}), source="kafka", controller_id=None)

    assert ids_of(examine(healthy(snapshot=live, zookeeper=None))) == []


def test_below_protocol_2_8_no_topic_has_an_id_and_none_is_missing() -> None:
    live = snapshot(*(replace(healthy_topic(name), topic_id=None) for name in ("a", "b")))

    assert ids_of(examine(healthy(snapshot=live))) == []


def test_many_places_are_counted_in_the_sentence_and_kept_in_the_json() -> None:
    live = replace(snapshot(healthy_topic()), orphan_configs=frozenset(f"ghost-{n}" for n in range(9)))

    examination = examine(healthy(snapshot=live))

    assert "ghost-0, ghost-1, ghost-2 and 6 more" in examination.findings[0].message
    assert len(json.loads(json_text(examination))["findings"][0]["places"]) == 9


def test_errors_come_first_and_a_line_holds_no_control_character() -> None:
    ghost = "gh\x1bost"
    live: ClusterSnapshot = replace(snapshot(healthy_topic()), orphan_configs=frozenset({ghost}), controller_id=None)

    text = doctor_text(examine(healthy(snapshot=live)))

    told = [line for line in text.splitlines() if "[" in line]
    assert told[0].startswith("error TOP432 [no-controller]: ")
    assert told[1].startswith("warning [orphan-config]: ")
    assert "\x1b" not in text
    assert text.endswith(f"1 error, 1 warning; {len(RULES)} rules applied.")


def test_a_broker_that_does_not_tell_of_its_disks_is_named() -> None:
    found = examine(broker_2(log_directories="broker 2 describes no log directory: the reader needs Describe"))
    (finding,) = [finding for finding in found.findings if finding.id == "failed-disk"]
    assert (finding.severity, finding.code) == (Severity.WARNING, "TOP804")
    assert "broker 2 describes no log directory" in finding.message
