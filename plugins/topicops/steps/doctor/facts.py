"""What topicops can read and do on a cluster, one sentence each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from topicops.model.cluster.doctor_facts import DoctorFacts, KafkaFacts, KafkaRole, ZooKeeperFacts
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.printable import printable
from topicops.model.release import BRIDGE, NO_ZOOKEEPER, OLDEST_CLIENT

JAVA_OF_BROKERS = 17
"""The oldest Java that runs brokers without ZooKeeper (KIP-1013)."""


def sentences_of(facts: DoctorFacts) -> dict[str, str]:
    """Sentences by subject; an area that was not read is left out."""
    return dict(_sentences(facts))


def migration_sentences(facts: DoctorFacts) -> dict[str, str]:
    """What is there now, the way to KRaft, and which ids its controllers may not have."""
    now = sentences_of(facts)
    return {subject: now[subject] for subject in ("mode", "topics", "brokers") if subject in now} | dict(_way(facts))


def _way(facts: DoctorFacts) -> Iterator[tuple[str, str]]:
    if facts.kafka is not None:
        releases = {broker.release for broker in facts.kafka.brokers.values() if broker.release is not None}
        upgrade = f"upgrade to {BRIDGE}, " if releases and min(releases) < BRIDGE else ""
        yield (
            "way",
            f"{upgrade}migrate with {BRIDGE}, then upgrade to {NO_ZOOKEEPER} or later: its brokers need Java "
            f"{JAVA_OF_BROKERS}, and its clients are {OLDEST_CLIENT} or later",
        )
    if facts.snapshot is not None:
        yield "controllers", f"need a node.id that no broker has: not {_ids(sorted(facts.snapshot.brokers))}"


def _sentences(facts: DoctorFacts) -> Iterator[tuple[str, str]]:
    live, zookeeper, kafka = facts.snapshot, facts.zookeeper, facts.kafka
    other = facts.other_cluster_id
    if other is not None:
        yield "mode", f"cluster {printable(other)}, which is not the environment's; its topics were not read"
    if live is not None:
        yield "mode", _mode(live)
        yield "topics", f"{len(live.topics)} with {sum(topic.partitions for topic in live.topics.values())} partitions"
    if zookeeper is not None:
        yield "zookeeper", _servers(zookeeper)
        yield "zookeeper identity", _identity(zookeeper)
        yield "zookeeper rights", _lease(zookeeper, reading=_reading(facts))
    if kafka is not None:
        yield "brokers", _brokers(kafka)
        yield "kafka identity", _by_role(kafka.principals)
        yield "kafka rights", _rights(kafka)


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


def _identity(zookeeper: ZooKeeperFacts) -> str:
    if zookeeper.identities is None:
        return "not known: servers before 3.7 do not report it"
    return ", ".join(zookeeper.identities) or "none"


def _reading(facts: DoctorFacts) -> str:
    if facts.other_cluster_id is not None:
        return "not looked at what a plan needs"
    return "does not read all that a plan needs" if facts.snapshot is None else "reads all that a plan needs"


def _lease(zookeeper: ZooKeeperFacts, *, reading: str) -> str:
    lease = {
        True: "may hold the lease",
        False: "may not hold the lease",
        None: "not known whether it may hold the lease",
    }
    place = "in /topicops" if zookeeper.has_lease_root else "in /topicops, which the first apply creates"
    return f"{reading}; {lease[zookeeper.may_hold_lease]} {place}"


def _brokers(kafka: KafkaFacts) -> str:
    brokers_by_release: dict[str, list[int]] = defaultdict(list)
    for b, broker in sorted(kafka.brokers.items()):
        brokers_by_release[broker.release.shown if broker.release else "an unknown version"].append(b)
    return "; ".join(f"{_ids(brokers)} run {release}" for release, brokers in brokers_by_release.items())


def _rights(kafka: KafkaFacts) -> str:
    if all(broker.settings.get("authorizer.class.name") == "" for broker in kafka.brokers.values()):
        return "any client may do everything: the brokers have no authorizer"
    return _by_role({role: _operations(found) for role, found in kafka.operations.items()})


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))


def _by_role(found: Mapping[KafkaRole, str]) -> str:
    """``reader and applier anonymous, deleter User:ops``."""
    roles: dict[str, list[str]] = defaultdict(list)
    for role, text in found.items():
        roles[text].append(role)
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in roles.items())


def _operations(found: frozenset[str] | None) -> str:
    return "not known" if found is None else f"{', '.join(sorted(found)) or 'nothing'} on the cluster"
