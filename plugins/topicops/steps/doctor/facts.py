"""What ``doctor`` can see and do, one sentence each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from topicops.model.cluster.doctor_facts import DoctorFacts, KafkaFacts, KafkaRole, ZooKeeperFacts
from topicops.model.cluster.snapshot import ClusterSnapshot


def facts_of(examined: DoctorFacts) -> dict[str, str]:
    """Sentences by what they are about; an area that was not read is left out."""
    return dict(_facts(examined))


def _facts(examined: DoctorFacts) -> Iterator[tuple[str, str]]:
    live, zookeeper, kafka = examined.snapshot, examined.zookeeper, examined.kafka
    if live is not None:
        yield "mode", _mode(live)
        yield "topics", f"{len(live.topics)} with {sum(topic.partitions for topic in live.topics.values())} partitions"
    if zookeeper is not None:
        yield "zookeeper", _servers(zookeeper)
        yield "zookeeper identity", _identity(zookeeper)
        yield "zookeeper rights", _lease(zookeeper, reads_all=live is not None)
    if kafka is not None:
        yield "brokers", _brokers(kafka)
        yield "kafka identity", _by_role(kafka.principals)
        yield "kafka rights", _rights(kafka)


def _mode(live: ClusterSnapshot) -> str:
    if live.source == "kafka":
        return f"cluster {live.cluster_id}, read through its brokers"
    controller = "no controller" if live.controller_id is None else f"controller {live.controller_id}"
    place = f"cluster {live.cluster_id}, ruled by ZooKeeper below {live.chroot or '/'}"
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
        return "not told by servers before 3.7"
    return ", ".join(zookeeper.identities) or "none"


def _lease(zookeeper: ZooKeeperFacts, *, reads_all: bool) -> str:
    lease = {
        True: "may hold the lease",
        False: "may not hold the lease",
        None: "cannot tell whether the lease may be held",
    }
    place = "in /topicops" if zookeeper.has_lease_root else "in /topicops, which the first apply makes"
    reading = "reads all that a plan needs" if reads_all else "does not read all that a plan needs"
    return f"{reading}; {lease[zookeeper.may_hold_lease]} {place}"


def _brokers(kafka: KafkaFacts) -> str:
    brokers_by_release: dict[str, list[int]] = defaultdict(list)
    for broker, facts in sorted(kafka.brokers.items()):
        brokers_by_release[facts.release or "an unknown version"].append(broker)
    return "; ".join(f"{_ids(brokers)} run {release}" for release, brokers in brokers_by_release.items())


def _rights(kafka: KafkaFacts) -> str:
    if all(facts.settings.get("authorizer.class.name") == "" for facts in kafka.brokers.values()):
        return "everybody may do everything: the brokers have no authorizer"
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
    return "not told" if found is None else f"{', '.join(sorted(found)) or 'nothing'} on the cluster"
