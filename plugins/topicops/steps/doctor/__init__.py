"""``doctor``: find what is wrong with a cluster, by rules over facts that were read before.

A new rule is one function and one line in ``RULES``. May be imported from anywhere above ``steps``; uses no outside
system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topicops.model.cluster.doctor_facts import Area, DoctorFacts, DoctorReport
from topicops.model.specs.environment import Environment
from topicops.steps.doctor import connection, metadata, settings
from topicops.steps.doctor.facts import sentences_of
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
    Rule("kafka-rights", ("brokers",), connection.roles_may_do_their_part),
    Rule("topic-rights", ("brokers",), connection.topics_may_be_changed),
    Rule("excessive-rights", ("brokers",), connection.the_reader_only_reads),
    Rule("wrong-cluster", ("snapshot", "brokers"), connection.addresses_name_one_cluster),
    Rule("migration", ("zookeeper",), settings.no_migration_is_prepared),
    Rule("feature-znode", ("zookeeper",), settings.features_are_readable),
    Rule("clock-skew", ("zookeeper",), settings.clocks_agree),
    Rule("no-controller", ("snapshot",), settings.a_controller_is_elected),
    Rule("few-brokers", ("snapshot",), settings.enough_brokers_live),
    Rule("mixed-racks", ("snapshot",), settings.all_brokers_have_a_rack_or_none),
    Rule("broker-versions", ("brokers",), settings.brokers_are_alike),
    Rule("silent-broker", ("brokers",), settings.brokers_report_their_settings),
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


def examine(facts: DoctorFacts, environment: Environment) -> DoctorReport:
    """Apply every rule whose areas were read; findings come in the order of the rules."""
    applied = [rule for rule in RULES if all(_is_read(facts, area) for area in rule.needs)]
    found = [replace(finding, id=rule.id) for rule in applied for finding in rule.check(facts, environment)]
    return DoctorReport(
        environment=environment.name,
        facts=sentences_of(facts),
        findings=tuple(found),
        rules_applied=len(applied),
        rules_not_applied=tuple(rule.id for rule in RULES if rule not in applied),
    )


def _is_read(facts: DoctorFacts, area: Area) -> bool:
    return {"zookeeper": facts.zookeeper, "snapshot": facts.snapshot, "brokers": facts.kafka}[area] is not None
