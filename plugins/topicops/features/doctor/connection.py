"""Rules about how topicops reaches a cluster, and what it may do there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.features.doctor.values import (
    ERROR,
    NOTICE,
    WARNING,
    Area,
    DoctorFacts,
    Finding,
    KafkaRole,
    found,
    listed,
    needed,
)
from topicops.model.codes import Code

NEEDED_OPERATIONS: Mapping[KafkaRole, frozenset[str]] = {
    "reader": frozenset({"DESCRIBE"}),
    "applier": frozenset({"DESCRIBE", "CREATE"}),
    "deleter": frozenset({"DESCRIBE"}),
}
"""On the cluster; CREATE may be given for a prefix of names instead."""
CHANGING_OPERATIONS = frozenset({"ALTER", "ALTER_CONFIGS", "CLUSTER_ACTION", "CREATE", "DELETE"})
NEEDED_TOPIC_OPERATIONS: Mapping[KafkaRole, frozenset[str]] = {
    "reader": frozenset({"DESCRIBE"}),
    "applier": frozenset({"DESCRIBE", "ALTER", "ALTER_CONFIGS"}),
    "deleter": frozenset({"DESCRIBE", "DELETE"}),
}
FIX_BY_AREA: Mapping[Area, str] = {
    "zookeeper": "correct cluster.zookeeper in the environment, or the connection",
    "snapshot": "do what the message says; without a snapshot there is no plan",
    "kafka": "correct cluster.kafka in the environment, or start the brokers",
}


def is_read(area: Area, facts: DoctorFacts) -> Iterator[Finding]:
    if reason := facts.unread.get(area):
        yield Finding(ERROR, str(reason), FIX_BY_AREA[area], reason.code)


def servers_report_their_version(facts: DoctorFacts) -> Iterator[Finding]:
    silent = [server for server in needed(facts.zookeeper).servers if server.version is None]
    if silent:
        message = f"ZooKeeper at {listed(f'{server.address} {server.problem}' for server in silent)}"
        fix = "start the server, take it out of the connection, or list srvr in its 4lw.commands.whitelist"
        yield Finding(NOTICE, message, fix, places=tuple(server.address for server in silent))


def servers_are_alike(facts: DoctorFacts) -> Iterator[Finding]:
    servers = [server for server in needed(facts.zookeeper).servers if server.version is not None]
    differ = len({server.version for server in servers}) > 1
    places = (f"{server.address} {server.version}" for server in servers if differ)
    return found(WARNING, "ZooKeeper servers differ in version:", places, "bring all servers to one version")


def servers_take_writes(facts: DoctorFacts) -> Iterator[Finding]:
    places = tuple(server.address for server in needed(facts.zookeeper).servers if server.mode == "read-only")
    if places:
        message = f"ZooKeeper at {listed(places)} is read-only: it has lost its quorum, so its data may be old"
        yield Finding(ERROR, message, "start the other servers of the ensemble", Code.READ_ONLY_SERVER, places)


def many_znodes_are_read_at_once(facts: DoctorFacts) -> Iterator[Finding]:
    message = "the ZooKeeper server does not support multiRead: each znode needs a request, so a snapshot takes longer"
    if not needed(facts.zookeeper).knows_multi_read:
        yield Finding(NOTICE, message, "nothing must be done; ZooKeeper answers it since its own release 3.6")


def the_lease_belongs_to_a_session(facts: DoctorFacts) -> Iterator[Finding]:
    path = needed(facts.zookeeper).stray_lease
    if path and facts.environment.spec.cluster.lease == "zookeeper":
        message = f"{path} is no lease: it belongs to no session, and every apply takes it for a held one"
        yield Finding(ERROR, message, f"remove it: zookeeper-shell HOST:PORT delete {path}", Code.STRAY_LEASE, (path,))


def the_lease_may_be_held(facts: DoctorFacts) -> Iterator[Finding]:
    """Without the lease, ``apply`` sends nothing."""
    zookeeper = needed(facts.zookeeper)
    if facts.environment.spec.cluster.lease != "zookeeper" or zookeeper.may_hold_lease is not False:
        return
    path = f"{zookeeper.chroot}/topicops"
    who = (zookeeper.identities or ("SCHEME:ID",))[-1]
    who = f"{who}:HASH" if who.startswith("digest:") else who
    if zookeeper.has_lease_root:
        message = f"this identity ({who}) may not create the lease below {path}"
        fix = f"let an administrator run: zookeeper-shell HOST:PORT setAcl {path} {who}:cdr"
    else:
        message = f"{path} does not exist, and this identity ({who}) may not create it: apply cannot take its lease"
        fix = f"let an administrator run once: zookeeper-shell HOST:PORT create {path} '' {who}:cdr"
    yield Finding(ERROR, message, fix, Code.MISSING_RIGHT, (path,))


def passwords_are_hidden(facts: DoctorFacts) -> Iterator[Finding]:
    message = "a password is sent without TLS, and anybody on the way can read it:"
    fix = "write security.protocol: SASL_SSL in the connection, or use SCRAM"
    return found(WARNING, message, needed(facts.kafka).readable_passwords, fix, Code.READABLE_PASSWORD)


def roles_may_do_their_part(facts: DoctorFacts) -> Iterator[Finding]:
    kafka = needed(facts.kafka)
    places = (
        f"{role} ({kafka.principals[role]}): {', '.join(sorted(lacking))}"
        for role, operations in kafka.operations.items()
        if operations is not None and (lacking := NEEDED_OPERATIONS[role] - operations)
    )
    fix = "grant them on the cluster, or make sure that they are granted for each topic in git"
    return found(WARNING, "a role may lack rights on the cluster:", places, fix, Code.MISSING_RIGHT)


def topics_may_be_changed(facts: DoctorFacts) -> Iterator[Finding]:
    """For the topics that git names."""
    places = (
        f"{topic}: {role} lacks {', '.join(sorted(lacking))}"
        for role, operations_by_topic in needed(facts.kafka).topic_operations.items()
        for topic, operations in operations_by_topic.items()
        if (lacking := NEEDED_TOPIC_OPERATIONS[role] - operations)
    )
    message = "rights that a change of these topics needs are missing:"
    fix = "grant them on the topics, or on a prefix of their names"
    return found(WARNING, message, places, fix, Code.MISSING_RIGHT)


def the_reader_only_reads(facts: DoctorFacts) -> Iterator[Finding]:
    """Applies when the reader has an identity of its own and the brokers have an authorizer."""
    kafka = needed(facts.kafka)
    reader = kafka.principals["reader"]
    is_open = all(not broker.settings.get("authorizer.class.name") for broker in kafka.brokers.values())
    if not is_open and reader != kafka.principals["applier"]:
        excessive = sorted(CHANGING_OPERATIONS & (kafka.operations["reader"] or frozenset()))
        message = f"the reader ({reader}) may do more to the cluster than read:"
        fix = "take these rights away: only the applier sends changes"
        yield from found(NOTICE, message, excessive, fix, Code.EXCESSIVE_RIGHT)


def addresses_name_one_cluster(facts: DoctorFacts) -> Iterator[Finding]:
    by_snapshot, by_brokers = needed(facts.snapshot).cluster_id, needed(facts.kafka).cluster_id
    if by_snapshot != by_brokers:
        message = f"the bootstrap servers belong to cluster {by_brokers}, ZooKeeper to {by_snapshot}"
        yield Finding(ERROR, message, "correct one of the two addresses", Code.WRONG_CLUSTER)
