"""Rules for a migration to KRaft, about the brokers: their release, and settings that must change on the way.

Source: kafka.server.KafkaConfig#validateValues (3.4 to 3.9, 4.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from topicops.model.cluster.doctor_facts import GONE_SETTINGS, BrokerFacts, DoctorFacts, Finding, Severity
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
from topicops.model.specs.config_checks import value_problem
from topicops.model.specs.environment import Environment
from topicops.steps.doctor.migrated_state import migration_of
from topicops.steps.doctor.rule import kafka_of, listed
from topicops.steps.doctor.settings import PROTOCOL

ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
OLD_AUTHORIZER = "kafka.security.auth.SimpleAclAuthorizer"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def brokers_run_one_release(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    releases = _releases(facts)
    if len(set(releases.values())) > 1:
        places = tuple(f"broker {b} {release.shown}" for b, release in releases.items())
        message = f"brokers run different releases: {listed(places)}"
        yield Finding(Severity.ERROR, message, "finish the upgrade, then run this again", places=places)


def the_release_can_migrate(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    old = {b: release for b, release in _releases(facts).items() if release < BRIDGE}
    if not old:
        return
    places = tuple(f"broker {b} {release}" for b, release in old.items())
    fix = f"upgrade the brokers one by one to {BRIDGE}, then raise {PROTOCOL} to {BRIDGE} on each of them"
    if min(old.values()) < MIGRATES:
        message = f"only {MIGRATES} and later can migrate, and {BRIDGE} is the one to do it with: {listed(places)}"
        yield Finding(Severity.ERROR, message, fix, places=places)
    else:
        message = f"{BRIDGE} is the release to migrate with, because it has every correction: {listed(places)}"
        yield Finding(Severity.WARNING, message, fix, places=places)


def the_release_takes_all_along(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    releases, found = _releases(facts), migration_of(facts)
    oldest = min(releases.values(), default=BRIDGE)
    brokers = kafka_of(facts).brokers
    used = {
        f"ACLs (from {MIGRATES_USERS} on)": oldest < MIGRATES_USERS and any(map(_authorizer, brokers.values())),
        f"SCRAM users (from {MIGRATES_USERS} on)": oldest < MIGRATES_USERS and bool(found.scram_users),
        f"delegation tokens (from {MIGRATES_TOKENS} on)": oldest < MIGRATES_TOKENS and found.delegation_tokens > 0,
        f"brokers with several log.dirs (from {MIGRATES_LOG_DIRS} on)": oldest < MIGRATES_LOG_DIRS
        and any(_log_dirs(broker) > 1 for broker in brokers.values()),
    }
    places = tuple(name for name, is_used in used.items() if is_used)
    if places:
        message = f"this cluster has what a migration with {oldest} does not take along: {listed(places)}"
        yield Finding(Severity.ERROR, message, f"upgrade the brokers to {BRIDGE} first", places=places)


def the_protocol_is_the_releases_own(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = tuple(
        f"broker {b} {release.shown} (protocol {protocol})"
        for b, release in _releases(facts).items()
        if (protocol := kafka_of(facts).brokers[b].settings.get(PROTOCOL)) is not None
        and Release.parse(protocol) != release
    )
    if places:
        message = f"{PROTOCOL} is not the brokers' own release: {listed(places)}"
        fix = "set it to the release that all brokers run, and restart them one by one; do not change it later on"
        yield Finding(Severity.ERROR, message, fix, places=places)


def broker_ids_are_written(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = _where(facts, lambda broker: broker.settings.get("broker.id") == "-1")
    if places:
        message = f"generated broker ids cannot migrate: broker.id is not set on {listed(places)}"
        fix = "write the id from meta.properties in the log directory as broker.id, and restart the broker"
        yield Finding(Severity.ERROR, message, fix, places=places)


def controllers_have_ids_of_their_own(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    brokers = kafka_of(facts).brokers
    voters = {voter for broker in brokers.values() for voter in _voters(broker)}
    places = tuple(f"node {b}" for b in sorted(voters & brokers.keys()))
    if places:
        message = f"controller.quorum.voters names ids that brokers have: {listed(places)}"
        fix = "give each KRaft controller a node.id that no broker has, and correct controller.quorum.voters"
        yield Finding(Severity.ERROR, message, fix, places=places)


def no_listener_is_for_the_controller_alone(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = _where(facts, lambda broker: bool(broker.settings.get("control.plane.listener.name")))
    if places:
        message = f"a KRaft broker does not start with control.plane.listener.name, which is set on {listed(places)}"
        fix = "take it out of server.properties, at the latest when the broker restarts with KRaft"
        yield Finding(Severity.WARNING, message, fix, places=places)


def the_authorizer_works_without_zookeeper(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    if places := _where(facts, lambda broker: _authorizer(broker) == OLD_AUTHORIZER):
        message = f"{OLD_AUTHORIZER} is gone since Kafka {NO_OLD_AUTHORIZER}: {listed(places)}"
        fix = f"set authorizer.class.name={ACL_AUTHORIZER} with the restart that upgrades a broker; its ACLs stay"
        yield Finding(Severity.WARNING, message, fix, places=places)
    elif places := _where(facts, lambda broker: _authorizer(broker) == ACL_AUTHORIZER):
        message = f"{ACL_AUTHORIZER} reads ZooKeeper, and KRaft brokers cannot use it: {listed(places)}"
        fix = f"give controllers {STANDARD_AUTHORIZER} now, and each broker when it restarts with KRaft"
        yield Finding(Severity.NOTICE, message, fix, places=places)


def settings_outlast_zookeeper(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = tuple(
        f"broker {b} ({name}{f', now {now}' if now else ''})"
        for b, broker in sorted(kafka_of(facts).brokers.items())
        for name, now in GONE_SETTINGS.items()
        if name in broker.written
    )
    if places:
        message = f"Kafka {NO_ZOOKEEPER} ignores settings that brokers have: {listed(places)}"
        fix = "take them out, or write the setting that takes their place"
        yield Finding(Severity.WARNING, message, fix, places=places)


def segments_are_large_enough(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    """Source: kafka.server.KafkaConfig of 4.0; topics may have smaller ones until 4.1."""
    places = tuple(
        f"broker {b} ({text}: {problem})"
        for b, broker in sorted(kafka_of(facts).brokers.items())
        if (text := broker.settings.get("log.segment.bytes")) is not None
        and (problem := value_problem("segment.bytes", text, NEWEST))
    )
    if places:
        message = f"brokers of {NO_ZOOKEEPER} and later do not start with this log.segment.bytes: {listed(places)}"
        yield Finding(Severity.WARNING, message, "change it before the upgrade", places=places)


def _where(facts: DoctorFacts, is_so: Callable[[BrokerFacts], bool]) -> tuple[str, ...]:
    return tuple(f"broker {b}" for b, broker in sorted(kafka_of(facts).brokers.items()) if is_so(broker))


def _releases(facts: DoctorFacts) -> Mapping[int, Release]:
    brokers = sorted(kafka_of(facts).brokers.items())
    return {b: broker.release for b, broker in brokers if broker.release is not None}


def _authorizer(broker: BrokerFacts) -> str:
    return broker.settings.get("authorizer.class.name", "")


def _log_dirs(broker: BrokerFacts) -> int:
    written = broker.settings.get("log.dirs") or broker.settings.get("log.dir", "")
    return sum(bool(folder.strip()) for folder in written.split(","))


def _voters(broker: BrokerFacts) -> Iterator[int]:
    """The ids of ``1@host:port,2@host:port``."""
    for voter in broker.settings.get("controller.quorum.voters", "").split(","):
        text = voter.partition("@")[0].strip()
        if text.isascii() and text.isdecimal() and len(text) < 11:
            yield int(text)
