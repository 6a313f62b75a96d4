"""Rules for a migration to KRaft: what stops the copy or is lost in it, and what brokers of 4.x refuse.

Source: kafka.zk.migration, org.apache.kafka.metadata.migration.KRaftMigrationDriver (3.9), and
kafka.server.KafkaConfig#validateValues (3.4 to 3.9, 4.0).
"""

from __future__ import annotations

from collections.abc import Iterator

from topicops.features.ask.doctor.findings import ERROR, NOTICE, WARNING, Finding, found, listed
from topicops.features.ask.doctor.rules.cluster import ConnectionRules, SettingsRules
from topicops.features.ask.doctor.rules.metadata import TopicRules
from topicops.features.ask.doctor.values import GONE_SETTINGS, DoctorFacts
from topicops.model.codes import Code
from topicops.model.release import (
    BRIDGE,
    MIGRATES,
    MIGRATES_LOG_DIRS,
    MIGRATES_TOKENS,
    MIGRATES_USERS,
    NEWEST,
    NO_OLD_AUTHORIZER,
    NO_ZOOKEEPER,
    Release,
)
from topicops.model.specs.broker_settings import PROTOCOL
from topicops.model.specs.config_checks import value_problem
from topicops.model.specs.topic_config import TOPIC_CONFIGS, configs_of

MIGRATION_SWITCH = "zookeeper.metadata.migration.enable"
ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
OLD_AUTHORIZER = "kafka.security.auth.SimpleAclAuthorizer"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def is_migrating(facts: DoctorFacts) -> bool:
    """Return whether a KRaft controller rules, and brokers are in migration mode."""
    if facts.migration is None or facts.migration.kraft_controller is None or facts.kafka is None:
        return False
    return any(broker.settings.get(MIGRATION_SWITCH) == "true" for broker in facts.kafka.brokers.values())


def is_left_over(facts: DoctorFacts) -> bool:
    """Return whether ZooKeeper has marks of a migration that brokers do not know, or that no controller leads."""
    if facts.zookeeper is None or facts.migration is None or facts.kafka is None or is_migrating(facts):
        return False
    return facts.zookeeper.migration == "begun" or facts.migration.kraft_controller is not None


class MigrationRules(ConnectionRules, SettingsRules, TopicRules):
    zookeeper, snapshot = ConnectionRules.zookeeper, ConnectionRules.snapshot
    undecodable_znode, brokers = ConnectionRules.undecodable_znode, ConnectionRules.brokers
    wrong_cluster = ConnectionRules.wrong_cluster
    silent_broker = SettingsRules.silent_broker

    def hidden_znodes(self) -> Iterator[Finding]:
        message = "this identity may not read these znodes, so they were not examined:"
        fix = "run this once with the brokers' own ZooKeeper login"
        return found(WARNING, message, self.copied.hidden, fix, Code.MISSING_RIGHT)

    def left_over_migration(self) -> Iterator[Finding]:
        """A new controller would take the old copy for its own, and copy nothing.

        Source: ZkMigrationLeadershipState#initialZkMigrationComplete.
        """
        if not self._is_left_over:
            return
        controller = ("/controller",) if self.copied.kraft_controller is not None else ()
        places = (*controller, *(("/migration",) if self.session.migration != "none" else ()))
        message = f"left over from an earlier migration: {listed(places)}; the next one would copy nothing"
        deletes = " and ".join(f"delete {path}" for path in places)
        fix = f"make sure that no KRaft controller runs, then in zookeeper-shell, one right after the other: {deletes}"
        yield Finding(ERROR, message, fix, Code.LEFT_OVER_MIGRATION, places)

    def prepared_migration(self) -> Iterator[Finding]:
        if not self._is_left_over and self.session.migration == "prepared":
            message = "/migration exists: a KRaft controller was started for a migration, and waits for the brokers"
            fix = "go on if that is what you do; else stop the controllers, then delete /migration in zookeeper-shell"
            yield Finding(NOTICE, message, fix, Code.KRAFT, ("/migration",))

    def mixed_releases(self) -> Iterator[Finding]:
        releases = self.kafka.releases
        places = (f"broker {b} {release.shown}" for b, release in releases.items() if len(set(releases.values())) > 1)
        return found(ERROR, "brokers run different releases:", places, "finish the upgrade, then run this again")

    def old_release(self) -> Iterator[Finding]:
        old = {b: release for b, release in self.kafka.releases.items() if release < BRIDGE}
        severity, message = WARNING, f"{BRIDGE} is the release to migrate with, because it has every correction:"
        if min(old.values(), default=BRIDGE) < MIGRATES:
            severity, message = ERROR, f"only {MIGRATES} and later can migrate, and {BRIDGE} is the one to do it with:"
        fix = f"upgrade the brokers one by one to {BRIDGE}, then raise {PROTOCOL} to {BRIDGE} on each of them"
        return found(severity, message, (f"broker {b} {release}" for b, release in old.items()), fix)

    def left_behind(self) -> Iterator[Finding]:
        kafka, kept = self.kafka, self.copied
        brokers, oldest = kafka.brokers.values(), min(kafka.releases.values(), default=BRIDGE)
        log_dirs = [b.settings.get("log.dirs") or b.settings.get("log.dir", "") for b in brokers]
        used = (
            ("ACLs", MIGRATES_USERS, any(broker.settings.get("authorizer.class.name") for broker in brokers)),
            ("SCRAM users", MIGRATES_USERS, bool(kept.scram_users)),
            ("delegation tokens", MIGRATES_TOKENS, kept.delegation_tokens > 0),
            ("brokers with several log.dirs", MIGRATES_LOG_DIRS, any("," in folders for folders in log_dirs)),
        )
        places = (f"{name} (from {since} on)" for name, since, is_used in used if is_used and oldest < since)
        message = f"this cluster has what a migration with {oldest} does not take along:"
        return found(ERROR, message, places, f"upgrade the brokers to {BRIDGE} first")

    def old_protocol(self) -> Iterator[Finding]:
        kafka = self.kafka
        places = (
            f"broker {b} {release.shown} (protocol {protocol})"
            for b, release in kafka.releases.items()
            if (protocol := kafka.brokers[b].settings.get(PROTOCOL)) is not None and Release.parse(protocol) != release
        )
        fix = "set it to the release that all brokers run, and restart them one by one; do not change it later on"
        return found(ERROR, f"{PROTOCOL} is not the brokers' own release:", places, fix)

    def generated_ids(self) -> Iterator[Finding]:
        places = self.kafka.where("broker.id", "-1")
        fix = "write the id from meta.properties in the log directory as broker.id, and restart the broker"
        return found(ERROR, "generated broker ids cannot migrate: broker.id is not set on", places, fix)

    def controller_ids(self) -> Iterator[Finding]:
        brokers = self.kafka.brokers
        written = [broker.settings.get("controller.quorum.voters", "") for broker in brokers.values()]
        voters = {voter.partition("@")[0].strip() for text in written for voter in text.split(",")}
        places = (f"node {b}" for b in sorted(brokers) if str(b) in voters)
        fix = "give each KRaft controller a node.id that no broker has, and correct controller.quorum.voters"
        return found(ERROR, "controller.quorum.voters names ids that brokers have:", places, fix)

    no_controller = SettingsRules.no_controller

    unregistered_broker = TopicRules.unregistered_broker

    def pending_deletion(self) -> Iterator[Finding]:
        """Source: ZkTopicMigrationClient#iterateTopics."""
        message = "topics marked for deletion are not copied, and brokers remove their records:"
        fix = "let the deletions end, and start the brokers that they wait for; topicops doctor names them"
        return found(ERROR, message, sorted(self.live.deleting), fix, Code.BEING_DELETED)

    missing_state = TopicRules.missing_state

    def missing_topic_id(self) -> Iterator[Finding]:
        """Source: ZkTopicMigrationClient#iterateTopics, where ``topicIdOpt.get`` raises."""
        places = (name for name, topic in sorted(self.live.topics.items()) if topic.topic_id is None)
        fix = (
            f"raise inter.broker.protocol.version to {BRIDGE} on all brokers: the controller that is elected then "
            "writes the ids; write an id that brokers have already (kafka-topics --describe) back into the znode"
        )
        return found(ERROR, "the copy stops at a topic without a topic id:", places, fix)

    reassignment = TopicRules.reassignment

    def waiting_election(self) -> Iterator[Finding]:
        if path := self.copied.election:
            fix = f"delete {path} in zookeeper-shell; ask for preferred leaders with kafka-leader-election"
            yield Finding(WARNING, f"{path} waits, and a KRaft controller does not read it", fix, places=(path,))

    orphan_config = TopicRules.orphan_config

    def unknown_config(self) -> Iterator[Finding]:
        message = "Kafka does not know these znodes, and a migration does not copy them:"
        fix = "find out which program wrote them, and where it will keep them; delete them in zookeeper-shell"
        return found(WARNING, message, self.copied.unknown_configs, fix)

    def broken_quota(self) -> Iterator[Finding]:
        """Source: ZkConfigMigrationClient#iterateClientQuotas."""
        message = "quotas and settings that stop the copy, or get lost in it:"
        fix = "set them again, or remove them, with kafka-configs"
        return found(ERROR, message, self.copied.broken_quotas, fix)

    def encrypted_settings(self) -> Iterator[Finding]:
        """Source: kafka.server.ControllerServer, which copies them undecoded where it has no secret."""
        message = "settings of brokers are stored encrypted:"
        fix = "give each KRaft controller the brokers' password.encoder.secret for the time of the migration"
        return found(NOTICE, message, self.copied.encrypted, fix)

    def control_plane(self) -> Iterator[Finding]:
        set_by = [b for b, broker in self.kafka.by_id if broker.settings.get("control.plane.listener.name")]
        message = "a KRaft broker does not start with control.plane.listener.name, which is set on"
        fix = "take it out of server.properties, at the latest when the broker restarts with KRaft"
        return found(WARNING, message, (f"broker {b}" for b in set_by), fix)

    def zookeeper_authorizer(self) -> Iterator[Finding]:
        where = self.kafka.where
        if places := where("authorizer.class.name", OLD_AUTHORIZER):
            message = f"{OLD_AUTHORIZER} is gone since Kafka {NO_OLD_AUTHORIZER}:"
            fix = f"set authorizer.class.name={ACL_AUTHORIZER} with the restart that upgrades a broker; its ACLs stay"
            return found(WARNING, message, places, fix)
        message = f"{ACL_AUTHORIZER} reads ZooKeeper, and KRaft brokers cannot use it:"
        fix = f"give controllers {STANDARD_AUTHORIZER} now, and each broker when it restarts with KRaft"
        return found(NOTICE, message, where("authorizer.class.name", ACL_AUTHORIZER), fix)

    def gone_settings(self) -> Iterator[Finding]:
        places = (
            f"broker {b} ({name}{f', now {now}' if now else ''})"
            for b, broker in self.kafka.by_id
            for name, now in GONE_SETTINGS.items()
            if name in broker.written
        )
        message = f"Kafka {NO_ZOOKEEPER} ignores settings that brokers have:"
        return found(WARNING, message, places, "take them out, or write the setting that takes their place")

    def small_segments(self) -> Iterator[Finding]:
        """Source: kafka.server.KafkaConfig of 4.0; topics may have smaller ones until 4.1."""
        places = (
            f"broker {b} ({text}: {problem})"
            for b, broker in self.kafka.by_id
            if (text := broker.settings.get("log.segment.bytes")) is not None
            and (problem := value_problem("segment.bytes", text, NEWEST))
        )
        message = f"brokers of {NO_ZOOKEEPER} and later do not start with this log.segment.bytes:"
        return found(WARNING, message, places, "change it before the upgrade")

    def gone_overrides(self) -> Iterator[Finding]:
        """KRaft brokers check all overrides of a topic with each change of one: a refused one stops every later change.

        Source: org.apache.kafka.controller.ConfigurationControlManager#validateAlterConfig (4.0).
        """
        gone = TOPIC_CONFIGS.keys() - configs_of(NEWEST).keys()
        places = (
            f"{topic} ({name})"
            for topic, live in sorted(self.live.topics.items())
            for name in sorted(gone & live.overrides.keys())
        )
        message = f"Kafka {NO_ZOOKEEPER} knows no such topic config, and refuses every change of it:"
        fix = "take it out of the topic's file, with its exception, and apply; of a topic without file: kafka-configs"
        return found(WARNING, message, places, fix, Code.UNUSABLE_CONFIG)

    def refused_overrides(self) -> Iterator[Finding]:
        places = (
            f"{topic} ({name} {text}: {problem})"
            for topic, live in sorted(self.live.topics.items())
            for name, text in sorted(live.overrides.items())
            if (problem := value_problem(name, text, NEWEST))
        )
        message = f"Kafka {NEWEST} refuses these values:"
        return found(WARNING, message, places, "change the values before that upgrade", Code.INVALID_CONFIG)

    @property
    def _is_left_over(self) -> bool:
        """Whether there are marks of an earlier migration. Raises ``NotReadError`` where that is not known."""
        return all((self.session, self.kafka, self.copied)) and is_left_over(self.facts)
