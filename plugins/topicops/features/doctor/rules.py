"""Every rule of ``doctor`` in its order, and what all of them say about one cluster.

A new rule is one function and one line in ``RULES``, or in ``MIGRATION_RULES`` for what stands in the way of a
migration to KRaft.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from topicops.features.doctor import connection, metadata, migration, settings
from topicops.features.doctor.text import migration_sentences, sentences
from topicops.features.doctor.values import NOTICE, Area, DoctorFacts, DoctorReport, Finding, Severity


class Rule(NamedTuple):
    id: str
    needs: tuple[Area, ...]
    """Areas without which the rule is not applied."""
    check: Callable[[DoctorFacts], Iterator[Finding]]
    """Function that yields findings without an id: ``examine`` sets it."""


READING: Sequence[Rule] = (
    Rule("zookeeper", (), partial(connection.is_read, "zookeeper")),
    Rule("snapshot", (), partial(connection.is_read, "snapshot")),
    Rule("undecodable-znode", ("zookeeper",), metadata.znodes_are_readable),
    Rule("brokers", (), partial(connection.is_read, "kafka")),
)
RULES: Sequence[Rule] = (
    *READING,
    Rule("silent-server", ("zookeeper",), connection.servers_report_their_version),
    Rule("server-versions", ("zookeeper",), connection.servers_are_alike),
    Rule("read-only-server", ("zookeeper",), connection.servers_take_writes),
    Rule("multi-read", ("zookeeper",), connection.many_znodes_are_read_at_once),
    Rule("lease-right", ("zookeeper",), connection.the_lease_may_be_held),
    Rule("stray-lease", ("zookeeper",), connection.the_lease_belongs_to_a_session),
    Rule("unset-home", (), settings.a_production_home_is_set),
    Rule("spark-archive", (), settings.spark_starts_from_its_archive),
    Rule("readable-password", ("kafka",), connection.passwords_are_hidden),
    Rule("kafka-rights", ("kafka",), connection.roles_may_do_their_part),
    Rule("topic-rights", ("kafka",), connection.topics_may_be_changed),
    Rule("excessive-rights", ("kafka",), connection.the_reader_only_reads),
    Rule("wrong-cluster", ("snapshot", "kafka"), connection.addresses_name_one_cluster),
    Rule("migration", ("zookeeper",), settings.no_migration_is_prepared),
    Rule("feature-znode", ("zookeeper",), settings.features_are_readable),
    Rule("clock-skew", (), settings.clocks_agree),
    Rule("no-controller", ("snapshot",), settings.a_controller_is_elected),
    Rule("few-brokers", ("snapshot",), settings.enough_brokers_live),
    Rule("mixed-racks", ("snapshot",), settings.all_brokers_have_a_rack_or_none),
    Rule("broker-versions", ("kafka",), settings.brokers_are_alike),
    Rule("missing-request", ("kafka",), settings.brokers_offer_what_is_needed),
    Rule("silent-broker", ("kafka",), settings.brokers_report_their_settings),
    Rule("failed-disk", ("kafka",), settings.log_directories_work),
    Rule("different-defaults", ("kafka",), settings.defaults_of_topics_are_alike),
    Rule("auto-create", ("kafka",), settings.topics_are_not_created_by_accident),
    Rule("topic-deletion", ("kafka",), settings.topics_can_be_deleted),
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
    *READING,
    Rule("wrong-cluster", ("snapshot", "kafka"), connection.addresses_name_one_cluster),
    Rule("silent-broker", ("kafka",), settings.brokers_report_their_settings),
    Rule("hidden-znodes", ("migration",), migration.every_znode_may_be_read),
    Rule("left-over-migration", ("zookeeper", "kafka", "migration"), migration.no_migration_is_left_over),
    Rule("prepared-migration", ("zookeeper", "kafka", "migration"), migration.a_prepared_migration_is_meant),
    Rule("mixed-releases", ("kafka",), migration.brokers_run_one_release),
    Rule("old-release", ("kafka",), migration.the_release_can_migrate),
    Rule("left-behind", ("kafka", "migration"), migration.the_release_takes_all_along),
    Rule("old-protocol", ("kafka",), migration.the_protocol_is_the_releases_own),
    Rule("generated-ids", ("kafka",), migration.broker_ids_are_written),
    Rule("controller-ids", ("kafka",), migration.controllers_have_ids_of_their_own),
    Rule("no-controller", ("snapshot",), settings.a_controller_is_elected),
    Rule("unregistered-broker", ("snapshot",), migration.assigned_brokers_can_register),
    Rule("pending-deletion", ("snapshot",), migration.no_deletion_is_pending),
    Rule("missing-state", ("snapshot",), migration.every_partition_has_a_state),
    Rule("missing-topic-id", ("snapshot",), migration.every_topic_has_an_id),
    Rule("reassignment", ("snapshot",), migration.no_reassignment_runs),
    Rule("waiting-election", ("migration",), migration.no_election_waits),
    Rule("orphan-config", ("snapshot",), migration.every_config_has_a_topic),
    Rule("unknown-config", ("migration",), migration.every_config_is_copied),
    Rule("broken-quota", ("migration",), migration.quotas_are_numbers),
    Rule("encrypted-settings", ("migration",), migration.secrets_can_be_decoded),
    Rule("control-plane", ("kafka",), migration.no_listener_is_for_the_controller_alone),
    Rule("zookeeper-authorizer", ("kafka",), migration.the_authorizer_works_without_zookeeper),
    Rule("gone-settings", ("kafka",), migration.settings_outlast_zookeeper),
    Rule("small-segments", ("kafka",), migration.segments_are_large_enough),
    Rule("gone-overrides", ("snapshot",), migration.overrides_outlast_zookeeper),
    Rule("refused-overrides", ("snapshot",), migration.values_outlast_zookeeper),
)
"""Of ``doctor --for-kraft``: what can be read first, then the releases, what is copied, and what 4.x refuses."""


def examine(facts: DoctorFacts) -> DoctorReport:
    """Apply every rule whose areas were read; of equal findings, those of earlier rules come first."""
    return _applied(RULES, facts)


def examine_for_kraft(facts: DoctorFacts) -> DoctorReport:
    """What stands in the way of a migration from ZooKeeper to KRaft; nothing once it has begun."""
    if migration.is_migrating(facts):
        return kraft_report(
            facts.environment.name,
            "the migration has begun: a KRaft controller rules, and ZooKeeper is only a copy; go on with it, and write "
            "source: kafka",
        )
    if migration.is_left_over(facts):
        # Its reason is not that KRaft rules: left-over-migration says what it is.
        facts = replace(facts, unread={area: why for area, why in facts.unread.items() if area != "snapshot"})
    report = _applied(MIGRATION_RULES, facts)
    is_clean = not report.rules_not_applied and all(finding.severity is NOTICE for finding in report.findings)
    verdict = "Nothing stands in the way of a migration to KRaft" if is_clean else ""
    return replace(report, facts=dict(migration_sentences(facts)), verdict=verdict)


def kraft_report(environment: str, sentence: str) -> DoctorReport:
    """The report on a cluster that needs no rule, because KRaft rules it."""
    return DoctorReport(environment=environment, facts={"mode": sentence}, verdict="Nothing to examine")


def _applied(rules: Sequence[Rule], facts: DoctorFacts) -> DoctorReport:
    applied = [rule for rule in rules if all(getattr(facts, area) is not None for area in rule.needs)]
    found = [replace(finding, id=rule.id) for rule in applied for finding in rule.check(facts)]
    return DoctorReport(
        environment=facts.environment.name,
        facts=dict(sentences(facts)),
        findings=tuple(sorted(found, key=lambda finding: list(Severity).index(finding.severity))),
        rules_applied=len(applied),
        rules_not_applied=tuple(rule.id for rule in rules if rule not in applied),
    )
