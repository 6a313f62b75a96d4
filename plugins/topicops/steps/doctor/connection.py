"""Rules about how the tool reaches a cluster, and what it may do there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.model.cluster.doctor_facts import Area, DoctorFacts, KafkaRole, Severity
from topicops.model.specs.environment import Environment
from topicops.steps.doctor.rule import Trouble, kafka_of, listed, live_of, zookeeper_of

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
    "snapshot": "do what the message says; no plan is made before",
    "brokers": "correct cluster.kafka in the environment, or start the brokers",
}


def zookeeper_is_read(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    yield from _problem(examined, "zookeeper")


def the_snapshot_is_whole(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    yield from _problem(examined, "snapshot")


def brokers_are_asked(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    yield from _problem(examined, "brokers")


def servers_tell_of_themselves(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    silent = [server for server in zookeeper_of(examined).servers if server.version is None]
    if silent:
        places = tuple(server.address for server in silent)
        message = f"ZooKeeper at {listed(f'{server.address} {server.problem}' for server in silent)}"
        fix = "start the server, take it out of the connection, or list srvr in its 4lw.commands.whitelist"
        yield Trouble(Severity.NOTICE, message, fix, places=places)


def servers_are_alike(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    servers = [server for server in zookeeper_of(examined).servers if server.version is not None]
    if len({server.version for server in servers}) > 1:
        places = tuple(f"{server.address} {server.version}" for server in servers)
        fix = "bring all servers to one version"
        yield Trouble(Severity.WARNING, f"ZooKeeper servers differ in version: {listed(places)}", fix, places=places)


def servers_take_writes(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    places = tuple(server.address for server in zookeeper_of(examined).servers if server.mode == "read-only")
    if places:
        message = f"ZooKeeper at {listed(places)} is read-only: it has lost its quorum, and what it shows may be old"
        yield Trouble(Severity.ERROR, message, "start the other servers of the ensemble", "TOP802", places)


def many_znodes_are_read_at_once(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    if not zookeeper_of(examined).knows_multi_read:
        message = "the ZooKeeper server does not know multiRead: each znode is a request, and a snapshot takes longer"
        yield Trouble(Severity.NOTICE, message, "update ZooKeeper to 3.6 or later")


def the_lease_may_be_held(examined: DoctorFacts, environment: Environment) -> Iterator[Trouble]:
    """Without it ``apply`` sends nothing."""
    facts = zookeeper_of(examined)
    if environment.spec.cluster.lease != "zookeeper" or facts.may_hold_lease is not False:
        return
    path = f"{facts.chroot}/topicops"
    who = (facts.identities or ("SCHEME:ID",))[-1]
    who = f"{who}:HASH" if who.startswith("digest:") else who
    if facts.has_lease_root:
        message = f"this identity ({who}) may not create the lease below {path}"
        fix = f"let an administrator run: zookeeper-shell HOST:PORT setAcl {path} {who}:cdr"
    else:
        message = f"{path} does not stand, and this identity ({who}) may not create it: apply cannot take its lease"
        fix = f"let an administrator run once: zookeeper-shell HOST:PORT create {path} '' {who}:cdr"
    yield Trouble(Severity.ERROR, message, fix, "TOP804", (path,))


def roles_may_do_their_part(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    kafka = kafka_of(examined)
    lacking = {
        role: sorted(NEEDED_OPERATIONS[role] - operations)
        for role, operations in kafka.operations.items()
        if operations is not None and NEEDED_OPERATIONS[role] - operations
    }
    if lacking:
        places = tuple(f"{role} ({kafka.principals[role]}): {', '.join(names)}" for role, names in lacking.items())
        message = f"Kafka does not grant on the cluster what a role may need: {listed(places)}"
        fix = "grant it on the cluster, or make sure that it is granted for each topic that git names"
        yield Trouble(Severity.WARNING, message, fix, "TOP804", places)


def topics_may_be_changed(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    """Of the topics that git names: all but those that are held back by a missing right on the cluster."""
    places = tuple(
        f"{topic}: {role} lacks {', '.join(sorted(lacking))}"
        for role, operations_by_topic in kafka_of(examined).topic_operations.items()
        for topic, operations in operations_by_topic.items()
        if (lacking := NEEDED_TOPIC_OPERATIONS[role] - operations)
    )
    if places:
        message = f"Kafka does not grant what a change of these topics needs: {listed(places)}"
        yield Trouble(Severity.WARNING, message, "grant it on the topics, or on a prefix of theirs", "TOP804", places)


def the_reader_only_reads(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    """Of use where the reader has an identity of its own, and brokers that ask for rights."""
    kafka = kafka_of(examined)
    is_open = all(not facts.settings.get("authorizer.class.name") for facts in kafka.brokers.values())
    if is_open or kafka.principals["reader"] == kafka.principals["applier"]:
        return
    excessive = tuple(sorted(CHANGING_OPERATIONS & (kafka.operations["reader"] or frozenset())))
    if excessive:
        message = f"the reader ({kafka.principals['reader']}) may do more to the cluster than read: {listed(excessive)}"
        yield Trouble(
            Severity.NOTICE, message, "take these rights from it: only the applier sends", "TOP804", excessive
        )


def both_sides_are_one_cluster(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    by_snapshot, by_brokers = live_of(examined).cluster_id, kafka_of(examined).cluster_id
    if by_snapshot != by_brokers:
        message = f"the bootstrap servers belong to cluster {by_brokers}, ZooKeeper to {by_snapshot}"
        yield Trouble(Severity.ERROR, message, "correct one of the two addresses", "TOP504")


def _problem(examined: DoctorFacts, area: Area) -> Iterator[Trouble]:
    problem = examined.problems.get(area)
    if problem is not None:
        yield Trouble(Severity.ERROR, problem.message, FIX_BY_AREA[area], problem.code)
