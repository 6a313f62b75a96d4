"""Rules about the settings of servers and brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.model.abilities import ABILITIES
from topicops.model.cluster.broker_defaults import DefaultOnBrokers, brokers_text, default_of
from topicops.model.cluster.doctor_facts import DoctorFacts, Finding, Severity
from topicops.model.codes import Code
from topicops.model.release import OLDEST
from topicops.model.specs.broker_settings import setting_in_force, topic_defaults
from topicops.model.specs.environment import Environment
from topicops.model.specs.topic_config import TOPIC_CONFIGS
from topicops.steps.doctor.rule import kafka_of, listed, live_of, zookeeper_of
from topicops.steps.log_directories import ASK_AGAIN, REPAIR, failed_by_broker

PROTOCOL = "inter.broker.protocol.version"
CLOCK_TOLERANCE_MS = 10_000
"""On a busy machine, seconds may pass between a time stamp and the write that carries it."""


def no_migration_is_prepared(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """A migration that has begun needs no rule: then there is no snapshot."""
    if zookeeper_of(facts).migration == "prepared":
        message = "/migration exists: a migration to KRaft is prepared, and every broker will be restarted for it"
        fix = "finish or cancel the migration before large applies; once it starts, use source: kafka"
        yield Finding(Severity.WARNING, message, fix, Code.KRAFT, ("/migration",))


def features_are_readable(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    problem = zookeeper_of(facts).feature_problem
    if problem:
        fix = "save its data, then remove it with zookeeper-shell; the next controller writes it again"
        yield Finding(Severity.ERROR, problem.partition(";")[0], fix, places=("/feature",))


def clocks_agree(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """Each broker is compared with ZooKeeper by its registration; this host writes none, so only when it is behind.

    A KRaft controller tells its time to everybody.
    """
    if facts.clock_difference:
        message, fix = facts.clock_difference.removesuffix(f" ({Code.CLOCK_SKEW})"), "repair time synchronisation there"
        yield Finding(Severity.WARNING, message, fix, Code.CLOCK_SKEW)
    zookeeper = facts.zookeeper
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
    if off:
        message = f"clocks differ from ZooKeeper's: {listed(off)}"
        fix = "repair time synchronisation there; a broker's clock is compared again after it restarts"
        yield Finding(Severity.WARNING, message, fix, Code.CLOCK_SKEW, tuple(off))


def a_production_home_is_set(facts: DoctorFacts, environment: Environment) -> Iterator[Finding]:
    if environment.spec.cluster.cluster_class == "production" and not facts.home_is_set:
        message = (
            "TOPICOPS_HOME is not set: each copy of the repository has an audit log, journals and a topic count of "
            "its own"
        )
        fix = "set TOPICOPS_HOME to one folder for everybody who changes this cluster"
        yield Finding(Severity.WARNING, message, fix)


def spark_starts_from_its_archive(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    if facts.spark_starts_slowly:
        message = "Spark has no class archive on this machine: each start takes twice the work"
        yield Finding(Severity.NOTICE, message, "run `topicops spark archive` once; in an image when it is built")


def a_controller_is_elected(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    live = live_of(facts)
    if live.source == "zookeeper" and live.controller_id is None:
        fix = "wait for the election; if none happens, read the brokers' controller logs"
        yield Finding(Severity.ERROR, "no controller is elected: no topic can be changed", fix, Code.NO_CONTROLLER)


def enough_brokers_live(facts: DoctorFacts, environment: Environment) -> Iterator[Finding]:
    live, needed = len(live_of(facts).brokers), environment.spec.cluster.min_live_brokers
    if live < needed:
        message = f"{live} brokers are registered, {environment.place_of('cluster.minLiveBrokers')} requires {needed}"
        yield Finding(Severity.ERROR, message, "start the missing brokers", Code.FEW_BROKERS)


def all_brokers_have_a_rack_or_none(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """Under KRaft, brokers without a rack count as one rack and Kafka refuses nothing."""
    racks = live_of(facts).racks if live_of(facts).source == "zookeeper" else {}
    without = tuple(f"broker {broker}" for broker, rack in sorted(racks.items()) if rack is None)
    if without and len(without) < len(racks):
        message = (
            f"{listed(without)} without a rack while others have one: Kafka refuses to create and to expand topics"
        )
        yield Finding(Severity.ERROR, message, "give every broker a broker.rack, or none", Code.MIXED_RACKS, without)


def brokers_are_alike(facts: DoctorFacts, environment: Environment) -> Iterator[Finding]:
    """Brokers have one release and one inter-broker protocol, and the environment names that release."""
    brokers = kafka_of(facts).brokers
    releases = {b: broker.release for b, broker in sorted(brokers.items()) if broker.release is not None}
    if old := tuple(f"broker {b} {release}" for b, release in releases.items() if release < OLDEST):
        message = f"topicops supports Kafka {OLDEST} and later: {listed(old)}"
        yield Finding(Severity.ERROR, message, "upgrade these brokers", Code.OLD_BROKERS, old)
    protocols = {b: brokers[b].settings[PROTOCOL] for b in releases if PROTOCOL in brokers[b].settings}
    if len(set(releases.values())) > 1 or len(set(protocols.values())) > 1:
        places = tuple(
            f"broker {b} {release.shown} (protocol {protocols.get(b, 'not known')})" for b, release in releases.items()
        )
        fix = "finish the upgrade: configs that only some brokers know are refused by the others"
        yield Finding(Severity.WARNING, f"brokers differ in version: {listed(places)}", fix, places=places)
    written = environment.spec.cluster.release
    others = tuple(f"broker {b} {release.shown}" for b, release in releases.items() if not release.may_be(written))
    if others:
        message = f"{environment.place_of('cluster.kafkaVersion')}, says {written}; {listed(others)}"
        fix = "write the brokers' version: it decides which configs a topic may have"
        yield Finding(Severity.WARNING, message, fix, places=others)


def brokers_offer_what_is_needed(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """A notice where the release has no such request yet; a warning where somebody has left it out."""
    brokers = kafka_of(facts).brokers
    told: set[tuple[str, int]] = set()
    for ability in ABILITIES:
        lacking = [b for b, broker in sorted(brokers.items()) if ability in broker.missing]
        new = tuple(f"broker {b}" for b in lacking if (ability.request, b) not in told)
        told |= {(ability.request, b) for b in lacking}
        if new:
            is_old = all((brokers[b].release or OLDEST) < ability.since for b in lacking)
            message = f"{listed(new)} without {ability}: {ability.cost}"
            fix = f"ask who runs the brokers for it: Kafka's own brokers offer it since {ability.since}"
            yield Finding(Severity.NOTICE if is_old else Severity.WARNING, message, fix, Code.REQUEST_NOT_OFFERED, new)


def brokers_report_their_settings(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    silent = {b: broker.problem for b, broker in sorted(kafka_of(facts).brokers.items()) if broker.problem}
    if silent:
        message = listed(f"broker {b} {problem}" for b, problem in silent.items())
        fix = "restart a broker that hangs; let the reader DescribeConfigs on the cluster"
        yield Finding(Severity.WARNING, message, fix, places=tuple(f"broker {b}" for b in silent))


def log_directories_work(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    told = {b: broker.log_directories for b, broker in kafka_of(facts).brokers.items()}
    failed = failed_by_broker(told)
    if places := tuple(f"broker {b}: {path}" for b, paths in failed.items() for path in paths):
        message = f"a log directory has failed, and its replicas are neither served nor deleted: {listed(places)}"
        yield Finding(
            Severity.ERROR,
            message,
            f"{REPAIR}; first see whether a partition has no other replica in sync (topicops why)",
            Code.FAILED_LOG_DIRECTORY,
            places,
        )
    if unknown := tuple(told_text for _, told_text in sorted(told.items()) if isinstance(told_text, str)):
        message = f"whether a log directory has failed is not known: {listed(unknown)}"
        yield Finding(Severity.WARNING, message, ASK_AGAIN.partition(" (")[0], Code.MISSING_RIGHT, unknown)


def defaults_of_topics_are_alike(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """A topic without an override lives by the settings of the broker that leads it; a broker may have its own."""
    settings = {b: broker.settings for b, broker in kafka_of(facts).brokers.items() if broker.settings}
    defaults = {b: topic_defaults(found) for b, found in settings.items()}
    places = tuple(
        f"{config}: {', '.join(_setting_text(config, row, settings) for row in rows)}"
        for config in sorted(TOPIC_CONFIGS)
        if len(rows := default_of(config, defaults, settings)) > 1
    )
    if places:
        message = f"a topic without an override lives by other values on other brokers: {listed(places)}"
        fix = (
            "give all brokers the same settings, in their files and by kafka-configs --entity-type brokers; until "
            "then set these configs on the topics that depend on them"
        )
        yield Finding(Severity.WARNING, message, fix, places=places)


def _setting_text(config: str, row: DefaultOnBrokers, settings: Mapping[int, Mapping[str, str]]) -> str:
    """``log.retention.hours=168 on broker 1``; where a broker has no such setting, Kafka's own default."""
    found = settings[row.brokers[0]]
    name = setting_in_force(config, found)
    return f"{f'{name}={found[name]}' if name else row.text} on {brokers_text(row.brokers)}"


def topics_are_not_created_by_accident(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = _with_setting(facts, "auto.create.topics.enable", "true")
    if places:
        message = f"any client creates a topic by asking for it: auto.create.topics.enable=true on {listed(places)}"
        fix = "set auto.create.topics.enable=false and restart the broker"
        yield Finding(Severity.WARNING, message, fix, Code.AUTO_CREATE, places)


def topics_can_be_deleted(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = _with_setting(facts, "delete.topic.enable", "false")
    if places:
        message = f"topics cannot be deleted where the controller has delete.topic.enable=false: {listed(places)}"
        fix = "set delete.topic.enable=true and restart the broker, or write no tombstone"
        yield Finding(Severity.WARNING, message, fix, Code.DELETION_DISABLED, places)


def _with_setting(facts: DoctorFacts, name: str, value: str) -> tuple[str, ...]:
    brokers = sorted(kafka_of(facts).brokers.items())
    return tuple(f"broker {b}" for b, broker in brokers if broker.settings.get(name, "").lower() == value)


def _seconds(milliseconds: int) -> str:
    return f"{'+' if milliseconds > 0 else '-'}{abs(milliseconds) // 1000} s"
