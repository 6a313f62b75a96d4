"""Rules about how topicops reaches a cluster, and what it may do there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.model.cluster.doctor_facts import Area, DoctorFacts, Finding, KafkaRole, Severity
from topicops.model.codes import Code
from topicops.model.specs.environment import Environment
from topicops.steps.doctor.rule import kafka_of, listed, live_of, zookeeper_of

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
    "brokers": "correct cluster.kafka in the environment, or start the brokers",
}


def zookeeper_is_read(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    yield from _unread(facts, "zookeeper")


def the_snapshot_is_whole(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    yield from _unread(facts, "snapshot")


def brokers_are_asked(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    yield from _unread(facts, "brokers")


def servers_report_their_version(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    silent = [server for server in zookeeper_of(facts).servers if server.version is None]
    if silent:
        places = tuple(server.address for server in silent)
        message = f"ZooKeeper at {listed(f'{server.address} {server.problem}' for server in silent)}"
        fix = "start the server, take it out of the connection, or list srvr in its 4lw.commands.whitelist"
        yield Finding(Severity.NOTICE, message, fix, places=places)


def servers_are_alike(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    servers = [server for server in zookeeper_of(facts).servers if server.version is not None]
    if len({server.version for server in servers}) > 1:
        places = tuple(f"{server.address} {server.version}" for server in servers)
        fix = "bring all servers to one version"
        yield Finding(Severity.WARNING, f"ZooKeeper servers differ in version: {listed(places)}", fix, places=places)


def servers_take_writes(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = tuple(server.address for server in zookeeper_of(facts).servers if server.mode == "read-only")
    if places:
        message = f"ZooKeeper at {listed(places)} is read-only: it has lost its quorum, so its data may be old"
        yield Finding(Severity.ERROR, message, "start the other servers of the ensemble", Code.READ_ONLY_SERVER, places)


def many_znodes_are_read_at_once(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    if not zookeeper_of(facts).knows_multi_read:
        message = (
            "the ZooKeeper server does not support multiRead: each znode needs a request, so a snapshot takes longer"
        )
        yield Finding(Severity.NOTICE, message, "nothing must be done; ZooKeeper answers it since its own release 3.6")


def the_lease_belongs_to_a_session(facts: DoctorFacts, environment: Environment) -> Iterator[Finding]:
    path = zookeeper_of(facts).stray_lease
    if path and environment.spec.cluster.lease == "zookeeper":
        message = f"{path} is no lease: it belongs to no session, and every apply takes it for a held one"
        yield Finding(
            Severity.ERROR, message, f"remove it: zookeeper-shell HOST:PORT delete {path}", Code.STRAY_LEASE, (path,)
        )


def the_lease_may_be_held(facts: DoctorFacts, environment: Environment) -> Iterator[Finding]:
    """Without the lease, ``apply`` sends nothing."""
    zookeeper = zookeeper_of(facts)
    if environment.spec.cluster.lease != "zookeeper" or zookeeper.may_hold_lease is not False:
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
    yield Finding(Severity.ERROR, message, fix, Code.MISSING_RIGHT, (path,))


def passwords_are_hidden(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    roles = kafka_of(facts).readable_passwords
    if roles:
        message = f"a password is sent without TLS, and anybody on the way can read it: {listed(roles)}"
        fix = "write security.protocol: SASL_SSL in the connection, or use SCRAM"
        yield Finding(Severity.WARNING, message, fix, Code.READABLE_PASSWORD, roles)


def roles_may_do_their_part(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    kafka = kafka_of(facts)
    lacking = {
        role: sorted(NEEDED_OPERATIONS[role] - operations)
        for role, operations in kafka.operations.items()
        if operations is not None and NEEDED_OPERATIONS[role] - operations
    }
    if lacking:
        places = tuple(f"{role} ({kafka.principals[role]}): {', '.join(names)}" for role, names in lacking.items())
        message = f"a role may lack rights on the cluster: {listed(places)}"
        fix = "grant them on the cluster, or make sure that they are granted for each topic in git"
        yield Finding(Severity.WARNING, message, fix, Code.MISSING_RIGHT, places)


def topics_may_be_changed(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """For the topics that git names."""
    places = tuple(
        f"{topic}: {role} lacks {', '.join(sorted(lacking))}"
        for role, operations_by_topic in kafka_of(facts).topic_operations.items()
        for topic, operations in operations_by_topic.items()
        if (lacking := NEEDED_TOPIC_OPERATIONS[role] - operations)
    )
    if places:
        message = f"rights that a change of these topics needs are missing: {listed(places)}"
        yield Finding(
            Severity.WARNING,
            message,
            "grant them on the topics, or on a prefix of their names",
            Code.MISSING_RIGHT,
            places,
        )


def the_reader_only_reads(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """Applies when the reader has an identity of its own and the brokers have an authorizer."""
    kafka = kafka_of(facts)
    is_open = all(not broker.settings.get("authorizer.class.name") for broker in kafka.brokers.values())
    if is_open or kafka.principals["reader"] == kafka.principals["applier"]:
        return
    excessive = tuple(sorted(CHANGING_OPERATIONS & (kafka.operations["reader"] or frozenset())))
    if excessive:
        message = f"the reader ({kafka.principals['reader']}) may do more to the cluster than read: {listed(excessive)}"
        yield Finding(
            Severity.NOTICE,
            message,
            "take these rights away: only the applier sends changes",
            Code.EXCESSIVE_RIGHT,
            excessive,
        )


def addresses_name_one_cluster(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    by_snapshot, by_brokers = live_of(facts).cluster_id, kafka_of(facts).cluster_id
    if by_snapshot != by_brokers:
        message = f"the bootstrap servers belong to cluster {by_brokers}, ZooKeeper to {by_snapshot}"
        yield Finding(Severity.ERROR, message, "correct one of the two addresses", Code.WRONG_CLUSTER)


def _unread(facts: DoctorFacts, area: Area) -> Iterator[Finding]:
    if area in facts.unread:
        reason = facts.unread[area]
        yield Finding(Severity.ERROR, reason.message, FIX_BY_AREA[area], reason.code)
