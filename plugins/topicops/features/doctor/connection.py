"""Rules about this machine, about how topicops reaches a cluster, and what it may do there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.features.doctor.findings import ERROR, NOTICE, WARNING, Finding, Rules, found, listed
from topicops.features.doctor.values import Area, KafkaRole
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


class ConnectionRules(Rules):
    def zookeeper(self) -> Iterator[Finding]:
        return self._is_read("zookeeper")

    def snapshot(self) -> Iterator[Finding]:
        return self._is_read("snapshot")

    def undecodable_znode(self) -> Iterator[Finding]:
        """Read only when there is no snapshot, because a snapshot stops at the first such znode."""
        undecodable = self.session.undecodable
        fix = undecodable[0].partition("; ")[2] if undecodable else ""
        places = (sentence.partition(";")[0] for sentence in undecodable)
        return found(ERROR, "znodes that cannot be read:", places, fix or "find out which program wrote it")

    def brokers(self) -> Iterator[Finding]:
        return self._is_read("kafka")

    def silent_server(self) -> Iterator[Finding]:
        silent = [server for server in self.session.servers if server.version is None]
        if silent:
            message = f"ZooKeeper at {listed(f'{server.address} {server.problem}' for server in silent)}"
            fix = "start the server, take it out of the connection, or list srvr in its 4lw.commands.whitelist"
            yield Finding(NOTICE, message, fix, places=tuple(server.address for server in silent))

    def server_versions(self) -> Iterator[Finding]:
        servers = [server for server in self.session.servers if server.version is not None]
        differ = len({server.version for server in servers}) > 1
        places = (f"{server.address} {server.version}" for server in servers if differ)
        return found(WARNING, "ZooKeeper servers differ in version:", places, "bring all servers to one version")

    def read_only_server(self) -> Iterator[Finding]:
        places = tuple(server.address for server in self.session.servers if server.mode == "read-only")
        if places:
            message = f"ZooKeeper at {listed(places)} is read-only: it has lost its quorum, so its data may be old"
            yield Finding(ERROR, message, "start the other servers of the ensemble", Code.READ_ONLY_SERVER, places)

    def multi_read(self) -> Iterator[Finding]:
        message = (
            "the ZooKeeper server does not support multiRead: each znode needs a request, so a snapshot takes longer"
        )
        if not self.session.knows_multi_read:
            yield Finding(NOTICE, message, "nothing must be done; ZooKeeper answers it since its own release 3.6")

    def lease_right(self) -> Iterator[Finding]:
        """Without the lease, ``apply`` sends nothing."""
        zookeeper = self.session
        if self.environment.spec.cluster.lease != "zookeeper" or zookeeper.may_hold_lease is not False:
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

    def stray_lease(self) -> Iterator[Finding]:
        path = self.session.stray_lease
        if path and self.environment.spec.cluster.lease == "zookeeper":
            message = f"{path} is no lease: it belongs to no session, and every apply takes it for a held one"
            yield Finding(
                ERROR, message, f"remove it: zookeeper-shell HOST:PORT delete {path}", Code.STRAY_LEASE, (path,)
            )

    def unset_home(self) -> Iterator[Finding]:
        if self.environment.spec.cluster.cluster_class == "production" and not self.facts.home_is_set:
            message = (
                "TOPICOPS_HOME is not set: each copy of the repository has an audit log, journals and a topic count of "
                "its own"
            )
            yield Finding(WARNING, message, "set TOPICOPS_HOME to one folder for everybody who changes this cluster")

    def spark_archive(self) -> Iterator[Finding]:
        if self.facts.spark_starts_slowly:
            message = "Spark has no class archive on this machine: each start takes twice the work"
            yield Finding(NOTICE, message, "run `topicops spark archive` once; in an image when it is built")

    def readable_password(self) -> Iterator[Finding]:
        message = "a password is sent without TLS, and anybody on the way can read it:"
        fix = "write security.protocol: SASL_SSL in the connection, or use SCRAM"
        return found(WARNING, message, self.kafka.readable_passwords, fix, Code.READABLE_PASSWORD)

    def kafka_rights(self) -> Iterator[Finding]:
        kafka = self.kafka
        places = (
            f"{role} ({kafka.principals[role]}): {', '.join(sorted(lacking))}"
            for role, operations in kafka.operations.items()
            if operations is not None and (lacking := NEEDED_OPERATIONS[role] - operations)
        )
        fix = "grant them on the cluster, or make sure that they are granted for each topic in git"
        return found(WARNING, "a role may lack rights on the cluster:", places, fix, Code.MISSING_RIGHT)

    def topic_rights(self) -> Iterator[Finding]:
        """For the topics that git names."""
        places = (
            f"{topic}: {role} lacks {', '.join(sorted(lacking))}"
            for role, operations_by_topic in self.kafka.topic_operations.items()
            for topic, operations in operations_by_topic.items()
            if (lacking := NEEDED_TOPIC_OPERATIONS[role] - operations)
        )
        message = "rights that a change of these topics needs are missing:"
        fix = "grant them on the topics, or on a prefix of their names"
        return found(WARNING, message, places, fix, Code.MISSING_RIGHT)

    def excessive_rights(self) -> Iterator[Finding]:
        """Applies when the reader has an identity of its own and the brokers have an authorizer."""
        kafka = self.kafka
        reader = kafka.principals["reader"]
        is_open = all(not broker.settings.get("authorizer.class.name") for broker in kafka.brokers.values())
        if not is_open and reader != kafka.principals["applier"]:
            excessive = sorted(CHANGING_OPERATIONS & (kafka.operations["reader"] or frozenset()))
            message = f"the reader ({reader}) may do more to the cluster than read:"
            fix = "take these rights away: only the applier sends changes"
            yield from found(NOTICE, message, excessive, fix, Code.EXCESSIVE_RIGHT)

    def wrong_cluster(self) -> Iterator[Finding]:
        by_snapshot, by_brokers = self.live.cluster_id, self.kafka.cluster_id
        if by_snapshot != by_brokers:
            message = f"the bootstrap servers belong to cluster {by_brokers}, ZooKeeper to {by_snapshot}"
            yield Finding(ERROR, message, "correct one of the two addresses", Code.WRONG_CLUSTER)

    def _is_read(self, area: Area) -> Iterator[Finding]:
        if reason := self.facts.unread.get(area):
            yield Finding(ERROR, str(reason), FIX_BY_AREA[area], reason.code)
