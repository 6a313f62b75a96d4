"""Every rule of ``doctor`` in its order, and what all of them say about one cluster.

A new rule is one method of a class below, in the place where a person would check it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topicops.features.doctor import migration
from topicops.features.doctor.connection import ConnectionRules
from topicops.features.doctor.findings import NOTICE, DoctorReport, Finding, NotReadError, Rule, Severity, rules_of
from topicops.features.doctor.metadata import TopicRules
from topicops.features.doctor.settings import SettingsRules
from topicops.features.doctor.text import migration_sentences, sentences
from topicops.features.doctor.values import DoctorFacts

RULES: Sequence[Rule] = rules_of(ConnectionRules, SettingsRules, TopicRules)
MIGRATION_RULES: Sequence[Rule] = rules_of(migration.MigrationRules)


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
    found, not_applied = list[Finding](), list[str]()
    for rule in rules:
        try:
            found += [replace(finding, id=rule.id) for finding in rule.check(facts)]
        except NotReadError:
            not_applied.append(rule.id)
    return DoctorReport(
        environment=facts.environment.name,
        facts=dict(sentences(facts)),
        findings=tuple(sorted(found, key=lambda finding: list(Severity).index(finding.severity))),
        rules_applied=len(rules) - len(not_applied),
        rules_not_applied=tuple(not_applied),
    )
