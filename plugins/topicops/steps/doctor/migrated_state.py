"""Rules for a migration to KRaft, about what is in ZooKeeper: what stops the copy, and what it leaves behind.

Source: kafka.zk.migration and org.apache.kafka.metadata.migration.KRaftMigrationDriver (3.9).
"""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.cluster.doctor_facts import DoctorFacts, Finding, MigrationFacts, Severity
from topicops.model.codes import Code
from topicops.model.release import BRIDGE
from topicops.model.specs.environment import Environment
from topicops.steps.doctor import metadata
from topicops.steps.doctor.rule import listed, live_of, zookeeper_of

MIGRATION_SWITCH = "zookeeper.metadata.migration.enable"


def is_migrating(facts: DoctorFacts) -> bool:
    """Whether a KRaft controller rules, and brokers are in migration mode."""
    if facts.migration is None or facts.migration.kraft_controller is None or facts.kafka is None:
        return False
    return any(broker.settings.get(MIGRATION_SWITCH) == "true" for broker in facts.kafka.brokers.values())


def is_left_over(facts: DoctorFacts) -> bool:
    """Whether ZooKeeper has the marks of a migration that brokers know nothing of, or that no controller leads."""
    if facts.zookeeper is None or facts.migration is None or facts.kafka is None or is_migrating(facts):
        return False
    return facts.zookeeper.migration == "begun" or facts.migration.kraft_controller is not None


def no_migration_is_left_over(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """A new controller would take the old copy for its own, and copy nothing.

    Source: ZkMigrationLeadershipState#initialZkMigrationComplete.
    """
    if not is_left_over(facts):
        return
    places = tuple(
        path
        for path, is_there in (
            ("/controller", migration_of(facts).kraft_controller is not None),
            ("/migration", zookeeper_of(facts).migration != "none"),
        )
        if is_there
    )
    message = f"left over from an earlier migration: {listed(places)}; the next one would copy nothing"
    deletes = " and ".join(f"delete {path}" for path in places)
    fix = f"make sure that no KRaft controller runs, then in zookeeper-shell, one right after the other: {deletes}"
    yield Finding(Severity.ERROR, message, fix, Code.LEFT_OVER_MIGRATION, places)


def a_prepared_migration_is_meant(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    if zookeeper_of(facts).migration == "prepared" and not is_left_over(facts):
        message = "/migration exists: a KRaft controller was started for a migration, and waits for the brokers"
        fix = "go on if that is what you do; else stop the controllers, then delete /migration in zookeeper-shell"
        yield Finding(Severity.NOTICE, message, fix, Code.KRAFT, ("/migration",))


def no_deletion_is_pending(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """Source: ZkTopicMigrationClient#iterateTopics."""
    places = tuple(sorted(live_of(facts).deleting))
    if places:
        message = f"topics marked for deletion are not copied, and brokers remove their records: {listed(places)}"
        fix = "let the deletions end, and start the brokers that they wait for; topicops doctor names them"
        yield Finding(Severity.ERROR, message, fix, Code.BEING_DELETED, places)


def every_partition_has_a_state(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """Source: ZkTopicMigrationClient#iterateTopics: leader and ISR of a partition without a state are assumed."""
    places = metadata.partitions_without_state(live_of(facts))
    if places:
        message = f"partitions without a state would be copied as if all their replicas were in sync: {listed(places)}"
        fix = "start a broker of its assignment; if there is none, remove its znodes and move the controller"
        yield Finding(Severity.ERROR, message, fix, Code.NO_STATE, places)


def every_topic_has_an_id(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """Source: ZkTopicMigrationClient#iterateTopics, where ``topicIdOpt.get`` raises."""
    places = tuple(name for name, topic in sorted(live_of(facts).topics.items()) if topic.topic_id is None)
    if places:
        message = f"the copy stops at a topic without a topic id: {listed(places)}"
        fix = (
            f"raise inter.broker.protocol.version to {BRIDGE} on all brokers: the controller that is elected then "
            "writes the ids; write an id that brokers have already (kafka-topics --describe) back into the znode"
        )
        yield Finding(Severity.ERROR, message, fix, places=places)


def assigned_brokers_can_register(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """Source: KRaftMigrationDriver#areZkBrokersReadyForMigration."""
    missing = metadata.topics_by_missing_broker(live_of(facts))
    if missing:
        places = tuple(f"broker {broker} ({listed(sorted(topics))})" for broker, topics in sorted(missing.items()))
        message = (
            f"the migration waits for ever for brokers that assignments name and that do not run: {listed(places)}"
        )
        fix = "start the broker, or move its replicas to another one with kafka-reassign-partitions"
        yield Finding(Severity.ERROR, message, fix, Code.UNKNOWN_BROKER, places)


def no_reassignment_runs(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """A KRaft controller does not read ``/admin/reassign_partitions``."""
    live = live_of(facts)
    places = tuple(
        f"{name} (asked for in /admin/reassign_partitions)" if name in live.reassigning else name
        for name in sorted({t.name for t in live.topics.values() if t.is_reassigning} | live.reassigning)
    )
    if places:
        message = f"replicas are being moved, and what waits in /admin/reassign_partitions is lost: {listed(places)}"
        fix = f"wait until it has ended; {metadata.way_to_cancel(facts)}"
        yield Finding(Severity.WARNING, message, fix, Code.REASSIGNMENT_RUNS, places)


def no_election_waits(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    path = migration_of(facts).election
    if path:
        message = f"{path} waits, and a KRaft controller does not read it"
        fix = f"delete {path} in zookeeper-shell; ask for preferred leaders with kafka-leader-election"
        yield Finding(Severity.WARNING, message, fix, places=(path,))


def every_config_has_a_topic(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = tuple(f"/config/topics/{name}" for name in sorted(live_of(facts).orphan_configs))
    if places:
        message = f"config znodes without a topic are not copied: {listed(places)}"
        yield Finding(Severity.WARNING, message, "delete them in zookeeper-shell", places=places)


def every_config_is_copied(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = migration_of(facts).unknown_configs
    if places:
        message = f"Kafka does not know these znodes, and a migration does not copy them: {listed(places)}"
        fix = "find out which program wrote them, and where it will keep them; delete them in zookeeper-shell"
        yield Finding(Severity.WARNING, message, fix, places=places)


def quotas_are_numbers(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """Source: ZkConfigMigrationClient#iterateClientQuotas."""
    places = migration_of(facts).broken_quotas
    if places:
        message = f"quotas and settings that stop the copy, or get lost in it: {listed(places)}"
        yield Finding(Severity.ERROR, message, "set them again, or remove them, with kafka-configs", places=places)


def secrets_can_be_decoded(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """Source: kafka.server.ControllerServer, which copies them undecoded where it has no secret."""
    places = migration_of(facts).encrypted
    if places:
        message = f"settings of brokers are stored encrypted: {listed(places)}"
        fix = "give each KRaft controller the brokers' password.encoder.secret for the time of the migration"
        yield Finding(Severity.NOTICE, message, fix, places=places)


def every_znode_may_be_read(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = migration_of(facts).hidden
    if places:
        message = f"this identity may not read these znodes, so they were not examined: {listed(places)}"
        fix = "run this once with the brokers' own ZooKeeper login"
        yield Finding(Severity.WARNING, message, fix, Code.MISSING_RIGHT, places)


def migration_of(facts: DoctorFacts) -> MigrationFacts:
    if facts.migration is None:
        raise ValueError("the rule needs what a migration reads")
    return facts.migration
