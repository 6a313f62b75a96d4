"""Rules about this machine, how topicops reaches the servers, what it may do there, and what their settings are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.features.ask.doctor.findings import ERROR, NOTICE, WARNING, Finding, Rules, found, listed
from topicops.features.ask.doctor.values import Area, BrokerFacts, KafkaRole
from topicops.model.cluster.broker_defaults import DefaultOnBrokers, brokers_text, default_of
from topicops.model.codes import Code
from topicops.model.release import ABILITIES, OLDEST
from topicops.model.specs.broker_settings import PROTOCOL, setting_in_force, topic_defaults
from topicops.model.specs.topic_config import TOPIC_CONFIGS
from topicops.steps.before_deletes import ASK_AGAIN, REPAIR, failed_by_broker

NEEDED_OPERATIONS: Mapping[KafkaRole, frozenset[str]] = {
    "reader": frozenset({"DESCRIBE"}),
    "applier": frozenset({"DESCRIBE", "CREATE"}),
    "mover": frozenset({"DESCRIBE", "ALTER", "ALTER_CONFIGS"}),
    "deleter": frozenset({"DESCRIBE"}),
}
"""Operations on the cluster by role; CREATE may be given for a prefix of names instead."""
CHANGING_OPERATIONS = frozenset({"ALTER", "ALTER_CONFIGS", "CLUSTER_ACTION", "CREATE", "DELETE"})
NEEDED_TOPIC_OPERATIONS: Mapping[KafkaRole, frozenset[str]] = {
    "reader": frozenset({"DESCRIBE"}),
    "applier": frozenset({"DESCRIBE", "ALTER", "ALTER_CONFIGS"}),
    "mover": frozenset({"DESCRIBE", "ALTER_CONFIGS"}),
    "deleter": frozenset({"DESCRIBE", "DELETE"}),
}
CLOCK_TOLERANCE_MS = 10_000
"""Tolerance for the clock: on a busy machine, seconds may pass between a time stamp and the write that carries it."""
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
            yield Finding(NOTICE, message, "you need do nothing; ZooKeeper answers it since its own release 3.6")

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

    def unusable_home(self) -> Iterator[Finding]:
        if problem := self.facts.home_problem:
            fix = "correct TOPICOPS_HOME, its login or the rights of the bucket: no run can begin"
            yield Finding(ERROR, f"the home cannot be used: {problem}", fix)

    def readable_password(self) -> Iterator[Finding]:
        message = "a password, or a secret for tokens, is sent without TLS, and anybody on the way can read it:"
        fix = "write security.protocol: SASL_SSL and https:// in the connection, or use SCRAM"
        return found(WARNING, message, self.kafka.readable_passwords, fix, Code.READABLE_PASSWORD)

    def kafka_rights(self) -> Iterator[Finding]:
        kafka = self.kafka
        places = (
            f"{role} ({kafka.principals[role]}): {', '.join(sorted(lacking))}"
            for role, operations in kafka.operations.items()
            if operations is not None and (lacking := NEEDED_OPERATIONS[role] - operations)
        )
        fix = (
            "grant them on the cluster; all but those of a mover may be granted for each topic in git instead: make "
            "sure that they are"
        )
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
            fix = "take these rights away: only the other roles send changes"
            yield from found(NOTICE, message, excessive, fix, Code.EXCESSIVE_RIGHT)

    def wrong_cluster(self) -> Iterator[Finding]:
        by_snapshot, by_brokers = self.live.cluster_id, self.kafka.cluster_id
        if by_snapshot != by_brokers:
            message = f"the bootstrap servers belong to cluster {by_brokers}, ZooKeeper to {by_snapshot}"
            yield Finding(ERROR, message, "correct one of the two addresses", Code.WRONG_CLUSTER)

    def _is_read(self, area: Area) -> Iterator[Finding]:
        if reason := self.facts.unread.get(area):
            yield Finding(ERROR, str(reason), FIX_BY_AREA[area], reason.code)


class SettingsRules(Rules):
    def migration(self) -> Iterator[Finding]:
        """A migration that has begun needs no rule: then there is no snapshot."""
        if self.session.migration == "prepared":
            message = "/migration exists: a migration to KRaft is prepared, and every broker will be restarted for it"
            fix = "finish or cancel the migration before large applies; once it starts, use source: kafka"
            yield Finding(WARNING, message, fix, Code.KRAFT, ("/migration",))

    def feature_znode(self) -> Iterator[Finding]:
        if problem := self.session.feature_problem:
            fix = "save its data, then remove it with zookeeper-shell; the next controller writes it again"
            yield Finding(ERROR, problem.partition(";")[0], fix, places=("/feature",))

    def clock_skew(self) -> Iterator[Finding]:
        """Each broker is compared with ZooKeeper by its registration; this host writes none, so only when it is behind.

        A KRaft controller tells its time to everybody.
        """
        if self.facts.clock_difference:
            message = self.facts.clock_difference.removesuffix(f" ({Code.CLOCK_SKEW})")
            yield Finding(WARNING, message, "repair time synchronisation there", Code.CLOCK_SKEW)
        zookeeper = self.facts.zookeeper
        if zookeeper is None:
            return
        off = [
            f"broker {broker} by {_seconds(ahead_ms)}"
            for broker, ahead_ms in sorted(zookeeper.clocks_ahead_ms.items())
            if abs(ahead_ms) > CLOCK_TOLERANCE_MS
        ]
        behind_ms = zookeeper.newest_stamp_ms - zookeeper.read_at_ms
        if behind_ms > CLOCK_TOLERANCE_MS:
            off.append(f"this host by {_seconds(-behind_ms)} or more")
        fix = "repair time synchronisation there; a broker's clock is compared again after it restarts"
        yield from found(WARNING, "clocks differ from ZooKeeper's:", off, fix, Code.CLOCK_SKEW)

    def no_controller(self) -> Iterator[Finding]:
        live = self.live
        if live.source == "zookeeper" and live.controller_id is None:
            fix = "wait for the election; if none happens, read the brokers' controller logs"
            yield Finding(ERROR, "no controller is elected: no topic can be changed", fix, Code.NO_CONTROLLER)

    def few_brokers(self) -> Iterator[Finding]:
        live, least = len(self.live.brokers), self.environment.spec.cluster.min_live_brokers
        if live < least:
            place = self.environment.place_of("cluster.minLiveBrokers")
            message = f"{live} brokers are registered, {place} requires {least}"
            yield Finding(ERROR, message, "start the missing brokers", Code.FEW_BROKERS)

    def mixed_racks(self) -> Iterator[Finding]:
        """Under KRaft, brokers without a rack count as one rack and Kafka refuses nothing."""
        live = self.live
        without = tuple(f"broker {broker}" for broker, rack in sorted(live.racks.items()) if rack is None)
        message = (
            f"{listed(without)} without a rack while others have one: Kafka refuses to create and to expand topics"
        )
        if live.source == "zookeeper" and 0 < len(without) < len(live.racks):
            yield Finding(ERROR, message, "give every broker a broker.rack, or none", Code.MIXED_RACKS, without)

    def broker_versions(self) -> Iterator[Finding]:
        """Brokers have one release and one inter-broker protocol, and the environment names that release."""
        kafka, environment = self.kafka, self.environment
        releases, written = kafka.releases, environment.spec.cluster.release
        old = (f"broker {b} {release}" for b, release in releases.items() if release < OLDEST)
        message = f"topicops supports Kafka {OLDEST} and later:"
        yield from found(ERROR, message, old, "upgrade these brokers", Code.OLD_BROKERS)
        settings = {b: kafka.brokers[b].settings for b in releases}
        protocols = {b: by_name[PROTOCOL] for b, by_name in settings.items() if PROTOCOL in by_name}
        if len(set(releases.values())) > 1 or len(set(protocols.values())) > 1:
            places = [
                f"broker {b} {release.shown} (protocol {protocols.get(b, 'not known')})"
                for b, release in releases.items()
            ]
            fix = "finish the upgrade: configs that only some brokers know are refused by the others"
            yield from found(WARNING, "brokers differ in version:", places, fix)
        others = (f"broker {b} {release.shown}" for b, release in releases.items() if not release.may_be(written))
        message = f"{environment.place_of('cluster.kafkaVersion')}, says {written};"
        yield from found(
            WARNING, message, others, "write the brokers' version: it decides which configs a topic may have"
        )

    def missing_request(self) -> Iterator[Finding]:
        """A notice where the release has no such request yet; a warning where somebody has left it out."""
        brokers = self.kafka.brokers
        told: set[tuple[str, int]] = set()
        for ability in ABILITIES:
            lacking = [b for b, broker in sorted(brokers.items()) if ability in broker.missing]
            new = tuple(f"broker {b}" for b in lacking if (ability.request, b) not in told)
            told |= {(ability.request, b) for b in lacking}
            if new:
                is_old = all((brokers[b].release or OLDEST) < ability.since for b in lacking)
                message = f"{listed(new)} without {ability}: {ability.cost}"
                fix = f"ask who runs the brokers for it: Kafka's own brokers offer it since {ability.since}"
                yield Finding(NOTICE if is_old else WARNING, message, fix, Code.REQUEST_NOT_OFFERED, new)

    def refused_request(self) -> Iterator[Finding]:
        """In a managed cluster nothing can be done about it, and runs name what they did not check."""
        refusing: dict[str, list[int]] = {}
        for broker, facts in self.kafka.by_id:
            for request, error in facts.refused.items():
                refusing.setdefault(f"{request}: {error}", []).append(broker)
        right = "give the reader Describe and DescribeConfigs on the cluster"
        fix = f"{right}; where a service runs the brokers, write cluster.kind: managed"
        severity, fix = (NOTICE, "you need do nothing") if self.is_managed else (WARNING, fix)
        for refusal, brokers in sorted(refusing.items()):
            places = tuple(f"broker {broker}" for broker in brokers)
            message = f"a request is refused: {refusal} on {brokers_text(brokers)}"
            yield Finding(severity, message, fix, Code.MISSING_RIGHT, places)

    def managed(self) -> Iterator[Finding]:
        if self.kafka.vendor and not self.is_managed:
            message = f"{self.kafka.vendor} runs these brokers, as their names say, and cluster.kind is own"
            yield Finding(WARNING, message, "write cluster.kind: managed: the brokers place replicas there")

    def silent_broker(self) -> Iterator[Finding]:
        silent = {f"broker {b}": broker.problem for b, broker in self.kafka.by_id if self._is_odd(broker)}
        if silent:
            message = listed(f"{broker} {problem}" for broker, problem in silent.items())
            fix = "restart a broker that hangs; let the reader DescribeConfigs on the cluster"
            yield Finding(WARNING, message, fix, places=tuple(silent))

    def _is_odd(self, broker: BrokerFacts) -> bool:
        return bool(broker.problem) and not (self.is_managed and "DescribeConfigs" in broker.refused)

    def failed_disk(self) -> Iterator[Finding]:
        told = {b: broker.log_directories for b, broker in self.kafka.by_id}
        failed = (f"broker {b}: {path}" for b, paths in failed_by_broker(told).items() for path in paths)
        message = "a log directory has failed, and its replicas are neither served nor deleted:"
        fix = f"{REPAIR}; first see whether a partition has no other replica in sync (topicops why)"
        yield from found(ERROR, message, failed, fix, Code.FAILED_LOG_DIRECTORY)
        refused = {b for b, broker in self.kafka.by_id if self.is_managed and "DescribeLogDirs" in broker.refused}
        unknown = (sentence for b, sentence in told.items() if isinstance(sentence, str) and b not in refused)
        message, fix = "whether a log directory has failed is not known:", ASK_AGAIN.partition(" (")[0]
        yield from found(WARNING, message, unknown, fix, Code.MISSING_RIGHT)

    def different_defaults(self) -> Iterator[Finding]:
        """A topic without an override lives by the settings of the broker that leads it; a broker may have its own."""
        settings = {b: broker.settings for b, broker in self.kafka.by_id if broker.settings}
        defaults = {b: topic_defaults(by_name) for b, by_name in settings.items()}
        places = (
            f"{config}: {', '.join(_setting_text(config, row, settings) for row in rows)}"
            for config in sorted(TOPIC_CONFIGS)
            if len(rows := default_of(config, defaults, settings)) > 1
        )
        fix = (
            "give all brokers the same settings, in their files and by kafka-configs --entity-type brokers; until "
            "then set these configs on the topics that depend on them"
        )
        return found(WARNING, "a topic without an override lives by other values on other brokers:", places, fix)

    def auto_create(self) -> Iterator[Finding]:
        places = self.kafka.where("auto.create.topics.enable", "true")
        message = "any client creates a topic by asking for it: auto.create.topics.enable=true on"
        fix = "set auto.create.topics.enable=false and restart the broker"
        return found(WARNING, message, places, fix, Code.AUTO_CREATE)

    def topic_deletion(self) -> Iterator[Finding]:
        places = self.kafka.where("delete.topic.enable", "false")
        message = "topics cannot be deleted where the controller has delete.topic.enable=false:"
        fix = "set delete.topic.enable=true and restart the broker, or write no tombstone"
        return found(WARNING, message, places, fix, Code.DELETION_DISABLED)


def _setting_text(config: str, row: DefaultOnBrokers, settings: Mapping[int, Mapping[str, str]]) -> str:
    """Return ``log.retention.hours=168 on broker 1``; where a broker has no such setting, Kafka's own default."""
    by_name = settings[row.brokers[0]]
    name = setting_in_force(config, by_name)
    return f"{f'{name}={by_name[name]}' if name else row.text} on {brokers_text(row.brokers)}"


def _seconds(milliseconds: int) -> str:
    return f"{'+' if milliseconds > 0 else '-'}{abs(milliseconds) // 1000} s"
