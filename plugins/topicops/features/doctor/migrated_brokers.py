"""Rules for a migration to KRaft, about the brokers: their release, and settings that must change on the way.

Source: kafka.server.KafkaConfig#validateValues (3.4 to 3.9, 4.0).
"""

from __future__ import annotations

from collections.abc import Iterator

from topicops.features.doctor.settings import PROTOCOL
from topicops.features.doctor.values import (
    ERROR,
    GONE_SETTINGS,
    NOTICE,
    WARNING,
    BrokerFacts,
    DoctorFacts,
    Finding,
    needed,
)
from topicops.features.doctor.wording import found
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

ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
OLD_AUTHORIZER = "kafka.security.auth.SimpleAclAuthorizer"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def brokers_run_one_release(facts: DoctorFacts) -> Iterator[Finding]:
    releases = needed(facts.kafka).releases
    places = (f"broker {b} {release.shown}" for b, release in releases.items() if len(set(releases.values())) > 1)
    return found(ERROR, "brokers run different releases:", places, "finish the upgrade, then run this again")


def the_release_can_migrate(facts: DoctorFacts) -> Iterator[Finding]:
    old = {b: release for b, release in needed(facts.kafka).releases.items() if release < BRIDGE}
    severity, message = WARNING, f"{BRIDGE} is the release to migrate with, because it has every correction:"
    if min(old.values(), default=BRIDGE) < MIGRATES:
        severity, message = ERROR, f"only {MIGRATES} and later can migrate, and {BRIDGE} is the one to do it with:"
    fix = f"upgrade the brokers one by one to {BRIDGE}, then raise {PROTOCOL} to {BRIDGE} on each of them"
    return found(severity, message, (f"broker {b} {release}" for b, release in old.items()), fix)


def the_release_takes_all_along(facts: DoctorFacts) -> Iterator[Finding]:
    kafka, kept = needed(facts.kafka), needed(facts.migration)
    brokers, oldest = kafka.brokers.values(), min(kafka.releases.values(), default=BRIDGE)
    used = (
        ("ACLs", MIGRATES_USERS, any(broker.settings.get("authorizer.class.name") for broker in brokers)),
        ("SCRAM users", MIGRATES_USERS, bool(kept.scram_users)),
        ("delegation tokens", MIGRATES_TOKENS, kept.delegation_tokens > 0),
        ("brokers with several log.dirs", MIGRATES_LOG_DIRS, any(_log_dirs(broker) > 1 for broker in brokers)),
    )
    places = (f"{name} (from {since} on)" for name, since, is_used in used if is_used and oldest < since)
    message = f"this cluster has what a migration with {oldest} does not take along:"
    return found(ERROR, message, places, f"upgrade the brokers to {BRIDGE} first")


def the_protocol_is_the_releases_own(facts: DoctorFacts) -> Iterator[Finding]:
    kafka = needed(facts.kafka)
    places = (
        f"broker {b} {release.shown} (protocol {protocol})"
        for b, release in kafka.releases.items()
        if (protocol := kafka.brokers[b].settings.get(PROTOCOL)) is not None and Release.parse(protocol) != release
    )
    fix = "set it to the release that all brokers run, and restart them one by one; do not change it later on"
    return found(ERROR, f"{PROTOCOL} is not the brokers' own release:", places, fix)


def broker_ids_are_written(facts: DoctorFacts) -> Iterator[Finding]:
    places = needed(facts.kafka).where("broker.id", "-1")
    fix = "write the id from meta.properties in the log directory as broker.id, and restart the broker"
    return found(ERROR, "generated broker ids cannot migrate: broker.id is not set on", places, fix)


def controllers_have_ids_of_their_own(facts: DoctorFacts) -> Iterator[Finding]:
    brokers = needed(facts.kafka).brokers
    voters = {voter for broker in brokers.values() for voter in _voters(broker)}
    places = (f"node {b}" for b in sorted(voters & brokers.keys()))
    fix = "give each KRaft controller a node.id that no broker has, and correct controller.quorum.voters"
    return found(ERROR, "controller.quorum.voters names ids that brokers have:", places, fix)


def no_listener_is_for_the_controller_alone(facts: DoctorFacts) -> Iterator[Finding]:
    set_by = [b for b, broker in needed(facts.kafka).by_id if broker.settings.get("control.plane.listener.name")]
    message = "a KRaft broker does not start with control.plane.listener.name, which is set on"
    fix = "take it out of server.properties, at the latest when the broker restarts with KRaft"
    return found(WARNING, message, (f"broker {b}" for b in set_by), fix)


def the_authorizer_works_without_zookeeper(facts: DoctorFacts) -> Iterator[Finding]:
    where = needed(facts.kafka).where
    if places := where("authorizer.class.name", OLD_AUTHORIZER):
        message = f"{OLD_AUTHORIZER} is gone since Kafka {NO_OLD_AUTHORIZER}:"
        fix = f"set authorizer.class.name={ACL_AUTHORIZER} with the restart that upgrades a broker; its ACLs stay"
        return found(WARNING, message, places, fix)
    message = f"{ACL_AUTHORIZER} reads ZooKeeper, and KRaft brokers cannot use it:"
    fix = f"give controllers {STANDARD_AUTHORIZER} now, and each broker when it restarts with KRaft"
    return found(NOTICE, message, where("authorizer.class.name", ACL_AUTHORIZER), fix)


def settings_outlast_zookeeper(facts: DoctorFacts) -> Iterator[Finding]:
    places = (
        f"broker {b} ({name}{f', now {now}' if now else ''})"
        for b, broker in needed(facts.kafka).by_id
        for name, now in GONE_SETTINGS.items()
        if name in broker.written
    )
    message = f"Kafka {NO_ZOOKEEPER} ignores settings that brokers have:"
    return found(WARNING, message, places, "take them out, or write the setting that takes their place")


def segments_are_large_enough(facts: DoctorFacts) -> Iterator[Finding]:
    """Source: kafka.server.KafkaConfig of 4.0; topics may have smaller ones until 4.1."""
    places = (
        f"broker {b} ({text}: {problem})"
        for b, broker in needed(facts.kafka).by_id
        if (text := broker.settings.get("log.segment.bytes")) is not None
        and (problem := value_problem("segment.bytes", text, NEWEST))
    )
    message = f"brokers of {NO_ZOOKEEPER} and later do not start with this log.segment.bytes:"
    return found(WARNING, message, places, "change it before the upgrade")


def _log_dirs(broker: BrokerFacts) -> int:
    written = broker.settings.get("log.dirs") or broker.settings.get("log.dir", "")
    return sum(bool(folder.strip()) for folder in written.split(","))


def _voters(broker: BrokerFacts) -> Iterator[int]:
    """The ids of ``1@host:port,2@host:port``."""
    for voter in broker.settings.get("controller.quorum.voters", "").split(","):
        text = voter.partition("@")[0].strip()
        if text.isascii() and text.isdecimal() and len(text) < 11:
            yield int(text)
