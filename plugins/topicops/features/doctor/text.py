"""What ``doctor`` prints: what topicops can read and do on a cluster, one sentence each, then each finding."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from topicops.features.doctor.findings import DoctorReport, Severity
from topicops.features.doctor.values import DoctorFacts, KafkaFacts, KafkaRole, ZooKeeperFacts
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.printable import plural, printable
from topicops.model.release import BRIDGE, NO_ZOOKEEPER, OLDEST_CLIENT

T = TypeVar("T")
JAVA_OF_BROKERS = 17
"""The oldest Java that runs brokers without ZooKeeper (KIP-1013)."""
LEASE = {True: "may hold the lease", False: "may not hold the lease", None: "not known whether it may hold the lease"}


def doctor_text(report: DoctorReport) -> str:
    """Facts first, then a line for each finding with its fix, then the counts."""
    return "\n".join(map(printable, _lines(report)))


def _lines(report: DoctorReport) -> Iterator[str]:
    width = max(map(len, report.facts), default=0)
    for about, sentence in report.facts.items():
        yield f"{about:<{width}}  {sentence}"
    for finding in report.findings:
        code = f" {finding.code}" if finding.code else ""
        yield f"{finding.severity}{code} [{finding.id}]: {finding.message}; fix: {finding.fix}"
    if report.rules_not_applied:
        yield f"not applied, because something they need is missing: {', '.join(report.rules_not_applied)}"
    counts = {severity: sum(f.severity is severity for f in report.findings) for severity in Severity}
    words = [plural(count, severity) for severity, count in counts.items() if count]
    said = ", ".join(filter(None, [report.verdict, *words])) or "Nothing found"
    yield f"{said}; {plural(report.rules_applied, 'rule')} applied."


def sentences(facts: DoctorFacts) -> Iterator[tuple[str, str]]:
    """Yield a subject and its sentence; an area that was not read is left out."""
    live, zookeeper, kafka, other = facts.snapshot, facts.zookeeper, facts.kafka, facts.other_cluster_id
    if other is not None:
        yield "mode", f"cluster {printable(other)}, which is not the environment's; its topics were not read"
    if live is not None:
        yield "mode", _mode(live)
        yield "topics", f"{len(live.topics)} with {sum(topic.partitions for topic in live.topics.values())} partitions"
    if zookeeper is not None:
        yield "zookeeper", _servers(zookeeper)
        untold = zookeeper.identities is None and "not known: servers before 3.7 do not report it"
        yield "zookeeper identity", untold or _joined(zookeeper.identities or ()) or "none"
        reads = "does not read all that a plan needs" if live is None else "reads all that a plan needs"
        reads = reads if other is None else "not looked at what a plan needs"
        created = "" if zookeeper.has_lease_root else ", which the first apply creates"
        yield "zookeeper rights", f"{reads}; {LEASE[zookeeper.may_hold_lease]} in /topicops{created}"
    if kafka is not None:
        releases = {b: broker.release.shown if broker.release else "an unknown version" for b, broker in kafka.by_id}
        yield "brokers", "; ".join(f"{_joined(b)} run {release}" for release, b in _by_text(releases).items())
        yield "kafka identity", _by_role(kafka.principals)
        yield "kafka rights", _rights(kafka)


def migration_sentences(facts: DoctorFacts) -> Iterator[tuple[str, str]]:
    """Yield what is there now, the way to KRaft, and which ids its controllers may not have."""
    yield from (each for each in sentences(facts) if each[0] in ("mode", "topics", "brokers"))
    if facts.kafka is not None:
        upgrade = f"upgrade to {BRIDGE}, " if min(facts.kafka.releases.values(), default=BRIDGE) < BRIDGE else ""
        yield (
            "way",
            f"{upgrade}migrate with {BRIDGE}, then upgrade to {NO_ZOOKEEPER} or later: its brokers need Java "
            f"{JAVA_OF_BROKERS}, and its clients are {OLDEST_CLIENT} or later",
        )
    if facts.snapshot is not None:
        yield "controllers", f"need a node.id that no broker has: not {_joined(sorted(facts.snapshot.brokers))}"


def _mode(live: ClusterSnapshot) -> str:
    if live.source == "kafka":
        return f"cluster {live.cluster_id}, read through its brokers"
    controller = "no controller" if live.controller_id is None else f"controller {live.controller_id}"
    place = f"cluster {live.cluster_id}, managed by ZooKeeper below {live.chroot or '/'}"
    return f"{place}; {controller}, epoch {live.controller_epoch}"


def _servers(zookeeper: ZooKeeperFacts) -> str:
    servers = [
        f"{server.version or 'unknown version'} {server.mode or 'unknown mode'} at {server.address}"
        for server in zookeeper.servers
    ]
    bulk = "many znodes in one request" if zookeeper.knows_multi_read else "one request a znode"
    return f"{', '.join(servers)}; reads {bulk}"


def _rights(kafka: KafkaFacts) -> str:
    if all(broker.settings.get("authorizer.class.name") == "" for broker in kafka.brokers.values()):
        return "any client may do everything: the brokers have no authorizer"
    return _by_role({role: _operations(found) for role, found in kafka.operations.items()})


def _operations(found: frozenset[str] | None) -> str:
    return "not known" if found is None else f"{', '.join(sorted(found)) or 'nothing'} on the cluster"


def _by_role(found: Mapping[KafkaRole, str]) -> str:
    """``reader, applier: anonymous; deleter: User:ops``."""
    return "; ".join(f"{_joined(roles)}: {text}" for text, roles in _by_text(found).items())


def _by_text(found: Mapping[T, str]) -> Mapping[str, list[T]]:
    grouped: dict[str, list[T]] = defaultdict(list)
    for key, text in found.items():
        grouped[text].append(key)
    return grouped


def _joined(found: Iterable[object]) -> str:
    return ", ".join(map(str, found))
