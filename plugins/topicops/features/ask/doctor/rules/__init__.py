"""Every rule of ``doctor`` in its order, and what all of them say about one cluster.

A new rule is one method of a class below, in the place where a person would check it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from topicops.features.ask.doctor.findings import (
    NO_ZOOKEEPER_HERE,
    DoctorReport,
    Finding,
    NotReadError,
    Rule,
    Severity,
    rules_of,
)
from topicops.features.ask.doctor.rules.cluster import ConnectionRules, SettingsRules
from topicops.features.ask.doctor.rules.metadata import TopicRules
from topicops.features.ask.doctor.rules.moves import MoveRules
from topicops.features.ask.doctor.values import DoctorFacts, KafkaFacts, KafkaRole
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.printable import plural, printable

T = TypeVar("T")
LEASE = {True: "may hold the lease", False: "may not hold the lease", None: "not known whether it may hold the lease"}
RULES: Sequence[Rule] = rules_of(ConnectionRules, SettingsRules, TopicRules, MoveRules)


def examine(facts: DoctorFacts) -> DoctorReport:
    """Apply every rule whose areas were read; of equal findings, those of earlier rules come first."""
    found, not_applied = list[Finding](), list[str]()
    for rule in RULES:
        try:
            found += [replace(finding, id=rule.id) for finding in rule.check(facts)]
        except NotReadError:
            not_applied.append(rule.id)
    applied, said = len(RULES) - len(not_applied), dict(sentences(facts))
    if not_applied and not facts.unread and facts.environment.spec.cluster.source == "kafka":
        said["zookeeper"] = f"{NO_ZOOKEEPER_HERE} {plural(len(not_applied), 'rule')} about it do not count here"
    return DoctorReport(
        environment=facts.environment.name,
        facts=said,
        findings=tuple(sorted(found, key=lambda finding: list(Severity).index(finding.severity))),
        rules_applied=applied,
        rules_not_applied=tuple(not_applied),
    )


def sentences(facts: DoctorFacts) -> Iterator[tuple[str, str]]:
    """Yield a subject and its sentence; an area that was not read is left out."""
    live, zookeeper, kafka, other = facts.snapshot, facts.zookeeper, facts.kafka, facts.other_cluster_id
    if other is not None:
        yield "mode", f"cluster {printable(other)}, which is not the environment's; its topics were not read"
    if live is not None:
        yield "mode", _mode(live)
        partitions = sum(topic.partitions for topic in live.topics.values())
        yield "topics", f"{len(live.topics)} with {plural(partitions, 'partition')}"
    if zookeeper is not None:
        servers = (
            f"{s.version or 'unknown version'} {s.mode or 'unknown mode'} at {s.address}" for s in zookeeper.servers
        )
        bulk = "many znodes in one request" if zookeeper.knows_multi_read else "one request a znode"
        yield "zookeeper", f"{_joined(servers)}; reads {bulk}"
        untold = zookeeper.identities is None and "not known: servers before 3.7 do not report it"
        yield "zookeeper identity", untold or _joined(zookeeper.identities or ()) or "none"
        reads = "does not read all that a plan needs" if live is None else "reads all that a plan needs"
        reads = reads if other is None else "not looked at what a plan needs"
        created = "" if zookeeper.has_lease_root else ", which the first apply creates"
        yield "zookeeper rights", f"{reads}; {LEASE[zookeeper.may_hold_lease]} in /topicops{created}"
    if kafka is not None:
        releases = {b: broker.release.shown if broker.release else "an unknown version" for b, broker in kafka.by_id}
        yield "brokers", "; ".join(f"{_joined(b)} run {release}" for release, b in _grouped(releases).items())
        yield "kafka identity", _by_text(kafka.principals)
        yield "kafka rights", _rights(kafka)


def _mode(live: ClusterSnapshot) -> str:
    if live.source == "kafka":
        return f"cluster {live.cluster_id}, read through its brokers"
    controller = "no controller" if live.controller_id is None else f"controller {live.controller_id}"
    place = f"cluster {live.cluster_id}, managed by ZooKeeper below {live.chroot or '/'}"
    return f"{place}; {controller}, epoch {live.controller_epoch}"


def _rights(kafka: KafkaFacts) -> str:
    if all(broker.settings.get("authorizer.class.name") == "" for broker in kafka.brokers.values()):
        return "any client may do everything: the brokers have no authorizer"
    return _by_text(
        {
            role: "not known" if rights is None else f"{_joined(sorted(rights)) or 'nothing'} on the cluster"
            for role, rights in kafka.operations.items()
        }
    )


def _by_text(found: Mapping[KafkaRole, str]) -> str:
    """Return ``reader, applier: anonymous; deleter: User:ops``."""
    return "; ".join(f"{_joined(roles)}: {text}" for text, roles in _grouped(found).items())


def _grouped(found: Mapping[T, str]) -> Mapping[str, list[T]]:
    grouped: dict[str, list[T]] = defaultdict(list)
    for key, text in found.items():
        grouped[text].append(key)
    return grouped


def _joined(found: Iterable[object]) -> str:
    return ", ".join(map(str, found))
