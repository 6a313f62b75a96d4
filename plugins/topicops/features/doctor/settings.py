"""Rules about the settings of servers and brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.features.doctor.findings import ERROR, NOTICE, WARNING, Finding, Rules, found, listed
from topicops.model.cluster.broker_defaults import DefaultOnBrokers, brokers_text, default_of
from topicops.model.codes import Code
from topicops.model.release import ABILITIES, OLDEST
from topicops.model.specs.broker_settings import setting_in_force, topic_defaults
from topicops.model.specs.topic_config import TOPIC_CONFIGS
from topicops.steps.before_deletes import ASK_AGAIN, REPAIR, failed_by_broker

PROTOCOL = "inter.broker.protocol.version"
CLOCK_TOLERANCE_MS = 10_000
"""On a busy machine, seconds may pass between a time stamp and the write that carries it."""


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

    def silent_broker(self) -> Iterator[Finding]:
        silent = {f"broker {b}": broker.problem for b, broker in self.kafka.by_id if broker.problem}
        if silent:
            message = listed(f"{broker} {problem}" for broker, problem in silent.items())
            fix = "restart a broker that hangs; let the reader DescribeConfigs on the cluster"
            yield Finding(WARNING, message, fix, places=tuple(silent))

    def failed_disk(self) -> Iterator[Finding]:
        told = {b: broker.log_directories for b, broker in self.kafka.by_id}
        failed = (f"broker {b}: {path}" for b, paths in failed_by_broker(told).items() for path in paths)
        message = "a log directory has failed, and its replicas are neither served nor deleted:"
        fix = f"{REPAIR}; first see whether a partition has no other replica in sync (topicops why)"
        yield from found(ERROR, message, failed, fix, Code.FAILED_LOG_DIRECTORY)
        unknown = (sentence for sentence in told.values() if isinstance(sentence, str))
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
    """``log.retention.hours=168 on broker 1``; where a broker has no such setting, Kafka's own default."""
    by_name = settings[row.brokers[0]]
    name = setting_in_force(config, by_name)
    return f"{f'{name}={by_name[name]}' if name else row.text} on {brokers_text(row.brokers)}"


def _seconds(milliseconds: int) -> str:
    return f"{'+' if milliseconds > 0 else '-'}{abs(milliseconds) // 1000} s"
