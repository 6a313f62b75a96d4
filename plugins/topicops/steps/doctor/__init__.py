"""``doctor``: find what is wrong with a cluster, by rules over facts that were read before.

A new rule is one function and one line in ``RULES``, or in ``MIGRATION_RULES`` for what stands in the way of a
migration to KRaft. May be imported from anywhere above ``steps``; uses no outside system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topicops.model.cluster.doctor_facts import Area, DoctorFacts, DoctorReport
from topicops.model.specs.environment import Environment
from topicops.steps.doctor import connection, metadata, migrated_brokers, migrated_state, migrated_topics, settings
from topicops.steps.doctor.facts import migration_sentences, sentences_of
from topicops.steps.doctor.migrated_state import is_left_over, is_migrating
from topicops.steps.doctor.rule import Rule

RULES: Sequence[Rule] = (
    Rule("zookeeper", (), connection.zookeeper_is_read),
    Rule("snapshot", (), connection.the_snapshot_is_whole),
    Rule("undecodable-znode", ("zookeeper",), metadata.znodes_are_readable),
    Rule("brokers", (), connection.brokers_are_asked),
    Rule("silent-server", ("zookeeper",), connection.servers_report_their_version),
    Rule("server-versions", ("zookeeper",), connection.servers_are_alike),
    Rule("read-only-server", ("zookeeper",), connection.servers_take_writes),
    Rule("multi-read", ("zookeeper",), connection.many_znodes_are_read_at_once),
    Rule("lease-right", ("zookeeper",), connection.the_lease_may_be_held),
    Rule("stray-lease", ("zookeeper",), connection.the_lease_belongs_to_a_session),
    Rule("unset-home", (), settings.a_production_home_is_set),
    Rule("spark-archive", (), settings.spark_starts_from_its_archive),
    Rule("readable-password", ("brokers",), connection.passwords_are_hidden),
    Rule("kafka-rights", ("brokers",), connection.roles_may_do_their_part),
    Rule("topic-rights", ("brokers",), connection.topics_may_be_changed),
    Rule("excessive-rights", ("brokers",), connection.the_reader_only_reads),
    Rule("wrong-cluster", ("snapshot", "brokers"), connection.addresses_name_one_cluster),
    Rule("migration", ("zookeeper",), settings.no_migration_is_prepared),
    Rule("feature-znode", ("zookeeper",), settings.features_are_readable),
    Rule("clock-skew", (), settings.clocks_agree),
    Rule("no-controller", ("snapshot",), settings.a_controller_is_elected),
    Rule("few-brokers", ("snapshot",), settings.enough_brokers_live),
    Rule("mixed-racks", ("snapshot",), settings.all_brokers_have_a_rack_or_none),
    Rule("broker-versions", ("brokers",), settings.brokers_are_alike),
    Rule("missing-request", ("brokers",), settings.brokers_offer_what_is_needed),
    Rule("silent-broker", ("brokers",), settings.brokers_report_their_settings),
    Rule("failed-disk", ("brokers",), settings.log_directories_work),
    Rule("different-defaults", ("brokers",), settings.defaults_of_topics_are_alike),
    Rule("auto-create", ("brokers",), settings.topics_are_not_created_by_accident),
    Rule("topic-deletion", ("brokers",), settings.topics_can_be_deleted),
    Rule("unregistered-broker", ("snapshot",), metadata.assigned_brokers_are_registered),
    Rule("missing-state", ("snapshot",), metadata.partitions_have_a_state),
    Rule("no-leader", ("snapshot",), metadata.partitions_have_a_leader),
    Rule("isr-outside-replicas", ("snapshot",), metadata.isrs_are_replicas),
    Rule("uneven-replication", ("snapshot",), metadata.replication_is_even),
    Rule("partition-gaps", ("snapshot",), metadata.partition_ids_have_no_gaps),
    Rule("missing-topic-id", ("snapshot",), metadata.topics_have_an_id),
    Rule("colliding-names", ("snapshot",), metadata.names_do_not_collide),
    Rule("orphan-config", ("snapshot",), metadata.configs_have_a_topic),
    Rule("missing-config", ("zookeeper",), metadata.topics_have_a_config),
    Rule("stuck-deletion", ("snapshot",), metadata.deletions_end),
    Rule("reassignment", ("snapshot",), metadata.nothing_is_reassigned),
    Rule("leftover-throttle", ("snapshot",), metadata.throttles_are_gone),
    Rule("wide-znode", ("snapshot",), metadata.znodes_are_small),
    Rule("unstable-topics", ("snapshot",), metadata.topics_are_stable),
)
"""In the order in which a person would check."""


MIGRATION_RULES: Sequence[Rule] = (
    Rule("zookeeper", (), connection.zookeeper_is_read),
    Rule("snapshot", (), connection.the_snapshot_is_whole),
    Rule("undecodable-znode", ("zookeeper",), metadata.znodes_are_readable),
    Rule("brokers", (), connection.brokers_are_asked),
    Rule("wrong-cluster", ("snapshot", "brokers"), connection.addresses_name_one_cluster),
    Rule("silent-broker", ("brokers",), settings.brokers_report_their_settings),
    Rule("hidden-znodes", ("migration",), migrated_state.every_znode_may_be_read),
    Rule("left-over-migration", ("zookeeper", "brokers", "migration"), migrated_state.no_migration_is_left_over),
    Rule("prepared-migration", ("zookeeper", "brokers", "migration"), migrated_state.a_prepared_migration_is_meant),
    Rule("mixed-releases", ("brokers",), migrated_brokers.brokers_run_one_release),
    Rule("old-release", ("brokers",), migrated_brokers.the_release_can_migrate),
    Rule("left-behind", ("brokers", "migration"), migrated_brokers.the_release_takes_all_along),
    Rule("old-protocol", ("brokers",), migrated_brokers.the_protocol_is_the_releases_own),
    Rule("generated-ids", ("brokers",), migrated_brokers.broker_ids_are_written),
    Rule("controller-ids", ("brokers",), migrated_brokers.controllers_have_ids_of_their_own),
    Rule("no-controller", ("snapshot",), settings.a_controller_is_elected),
    Rule("unregistered-broker", ("snapshot",), migrated_state.assigned_brokers_can_register),
    Rule("pending-deletion", ("snapshot",), migrated_state.no_deletion_is_pending),
    Rule("missing-state", ("snapshot",), migrated_state.every_partition_has_a_state),
    Rule("missing-topic-id", ("snapshot",), migrated_state.every_topic_has_an_id),
    Rule("reassignment", ("snapshot",), migrated_state.no_reassignment_runs),
    Rule("waiting-election", ("migration",), migrated_state.no_election_waits),
    Rule("orphan-config", ("snapshot",), migrated_state.every_config_has_a_topic),
    Rule("unknown-config", ("migration",), migrated_state.every_config_is_copied),
    Rule("broken-quota", ("migration",), migrated_state.quotas_are_numbers),
    Rule("encrypted-settings", ("migration",), migrated_state.secrets_can_be_decoded),
    Rule("control-plane", ("brokers",), migrated_brokers.no_listener_is_for_the_controller_alone),
    Rule("zookeeper-authorizer", ("brokers",), migrated_brokers.the_authorizer_works_without_zookeeper),
    Rule("gone-settings", ("brokers",), migrated_brokers.settings_outlast_zookeeper),
    Rule("small-segments", ("brokers",), migrated_brokers.segments_are_large_enough),
    Rule("gone-overrides", ("snapshot",), migrated_topics.overrides_outlast_zookeeper),
    Rule("refused-overrides", ("snapshot",), migrated_topics.values_outlast_zookeeper),
)
"""Of ``doctor --for-kraft``: what can be read first, then the releases, what is copied, and what 4.x refuses."""


def examine(facts: DoctorFacts, environment: Environment) -> DoctorReport:
    """Apply every rule whose areas were read; findings come in the order of the rules."""
    return _applied(RULES, facts, environment)


def examine_for_kraft(facts: DoctorFacts, environment: Environment) -> DoctorReport:
    """What stands in the way of a migration from ZooKeeper to KRaft; nothing once it has begun."""
    if is_migrating(facts):
        return kraft_report(
            environment.name,
            "the migration has begun: a KRaft controller rules, and ZooKeeper is only a copy; go on with it, and write "
            "source: kafka",
        )
    if is_left_over(facts):
        # Its reason is not that KRaft rules: left-over-migration says what it is.
        facts = replace(facts, unread={area: why for area, why in facts.unread.items() if area != "snapshot"})
    report = _applied(MIGRATION_RULES, facts, environment)
    return replace(
        report, facts=migration_sentences(facts), when_clean="Nothing stands in the way of a migration to KRaft"
    )


def kraft_report(environment: str, sentence: str) -> DoctorReport:
    """The report on a cluster that needs no rule, because KRaft rules it."""
    return DoctorReport(
        environment=environment,
        facts={"mode": sentence},
        findings=(),
        rules_applied=0,
        rules_not_applied=(),
        when_clean="Nothing to examine",
    )


def _applied(rules: Sequence[Rule], facts: DoctorFacts, environment: Environment) -> DoctorReport:
    applied = [rule for rule in rules if all(_is_read(facts, area) for area in rule.needs)]
    found = [replace(finding, id=rule.id) for rule in applied for finding in rule.check(facts, environment)]
    return DoctorReport(
        environment=environment.name,
        facts=sentences_of(facts),
        findings=tuple(found),
        rules_applied=len(applied),
        rules_not_applied=tuple(rule.id for rule in rules if rule not in applied),
    )


def _is_read(facts: DoctorFacts, area: Area) -> bool:
    match area:
        case "zookeeper":
            return facts.zookeeper is not None
        case "snapshot":
            return facts.snapshot is not None
        case "brokers":
            return facts.kafka is not None
        case "migration":
            return facts.migration is not None
