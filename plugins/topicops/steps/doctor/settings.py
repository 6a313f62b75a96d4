"""Rules about servers, brokers and how they are set."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.cluster.doctor_facts import DoctorFacts, Severity
from topicops.model.specs.environment import Environment
from topicops.steps.doctor.rule import Trouble, kafka_of, listed, live_of, zookeeper_of

PROTOCOL = "inter.broker.protocol.version"
CLOCK_TOLERANCE_MS = 10_000
"""Between a stamp and the write that carries it seconds may pass on a busy machine."""


def no_migration_is_prepared(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    """A migration that has begun is no finding of its own: no snapshot is made then."""
    if zookeeper_of(examined).migration == "prepared":
        message = "/migration stands: a move to KRaft is prepared, and every broker will be restarted for it"
        fix = "finish or call off the move before large applies; from its start on, use source: kafka"
        yield Trouble(Severity.WARNING, message, fix, "TOP801", ("/migration",))


def features_are_readable(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    problem = zookeeper_of(examined).feature_problem
    if problem:
        fix = "save its data, then remove it with zookeeper-shell; the next controller writes it anew"
        yield Trouble(Severity.ERROR, problem.partition(";")[0], fix, places=("/feature",))


def clocks_agree(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    """Brokers against ZooKeeper by their registrations; this host only when it is behind, since it writes nothing."""
    facts = zookeeper_of(examined)
    off = [
        f"broker {broker} by {_seconds(ahead_ms)}"
        for broker, ahead_ms in sorted(facts.clocks_ahead_ms.items())
        if abs(ahead_ms) > CLOCK_TOLERANCE_MS
    ]
    behind_ms = facts.newest_stamp_ms - facts.read_at_ms
    if behind_ms > CLOCK_TOLERANCE_MS:
        off.append(f"this host by {_seconds(-behind_ms)} or more")
    if off:
        message = f"clocks differ from ZooKeeper's: {listed(off)}"
        fix = "repair time synchronisation there; a broker's clock counts anew when it restarts"
        yield Trouble(Severity.WARNING, message, fix, "TOP807", tuple(off))


def a_controller_is_elected(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    live = live_of(examined)
    if live.source == "zookeeper" and live.controller_id is None:
        fix = "wait for the election; if none comes, look for the reason in the brokers' controller logs"
        yield Trouble(Severity.ERROR, "no controller is elected: no topic can be changed", fix, "TOP421")


def enough_brokers_live(examined: DoctorFacts, environment: Environment) -> Iterator[Trouble]:
    live, needed = len(live_of(examined).brokers), environment.spec.cluster.min_live_brokers
    if live < needed:
        message = f"{live} brokers are registered, {environment.place_of('cluster.minLiveBrokers')} asks for {needed}"
        yield Trouble(Severity.ERROR, message, "start the missing brokers", "TOP421")


def all_brokers_have_a_rack_or_none(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    """Under KRaft brokers without a rack count as one rack, and nothing is refused."""
    racks = live_of(examined).racks if live_of(examined).source == "zookeeper" else {}
    without = tuple(f"broker {broker}" for broker, rack in sorted(racks.items()) if rack is None)
    if without and len(without) < len(racks):
        message = f"{listed(without)} without a rack beside others with one: Kafka refuses to create and to expand"
        yield Trouble(Severity.ERROR, message, "give every broker a broker.rack, or none", "TOP421", without)


def brokers_are_alike(examined: DoctorFacts, environment: Environment) -> Iterator[Trouble]:
    """Releases, as far as the protocol tells, and the inter-broker protocol; and what the environment says of them."""
    brokers = {b: facts for b, facts in sorted(kafka_of(examined).brokers.items()) if facts.release is not None}
    protocols = {b: facts.settings[PROTOCOL] for b, facts in brokers.items() if PROTOCOL in facts.settings}
    if len({facts.release for facts in brokers.values()}) > 1 or len(set(protocols.values())) > 1:
        places = tuple(f"broker {b} {brokers[b].release} (protocol {protocols.get(b, 'not told')})" for b in brokers)
        fix = "finish the upgrade: configs that only some brokers know are refused by the others"
        yield Trouble(Severity.WARNING, f"brokers differ in version: {listed(places)}", fix, places=places)
    written = environment.spec.cluster.kafka_version
    others = tuple(
        f"broker {b} {facts.release}" for b, facts in brokers.items() if not _is_release(facts.release or "", written)
    )
    if others:
        message = f"{environment.place_of('cluster.kafkaVersion')}, says {written}; {listed(others)}"
        fix = "write the brokers' version: it decides which configs a topic may have"
        yield Trouble(Severity.WARNING, message, fix, places=others)


def brokers_tell_their_settings(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    silent = {broker: facts for broker, facts in sorted(kafka_of(examined).brokers.items()) if facts.problem}
    if silent:
        message = listed(f"broker {broker} {facts.problem}" for broker, facts in silent.items())
        fix = "restart a broker that hangs; let the reader DescribeConfigs on the cluster"
        yield Trouble(Severity.WARNING, message, fix, places=tuple(f"broker {broker}" for broker in silent))


def topics_are_not_made_by_accident(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    places = _with_setting(examined, "auto.create.topics.enable", "true")
    if places:
        message = f"any client can make topics by asking for them: auto.create.topics.enable=true on {listed(places)}"
        fix = "set auto.create.topics.enable=false and restart the broker"
        yield Trouble(Severity.WARNING, message, fix, "TOP806", places)


def topics_can_be_deleted(examined: DoctorFacts, _: Environment) -> Iterator[Trouble]:
    places = _with_setting(examined, "delete.topic.enable", "false")
    if places:
        message = f"topics cannot be deleted where the controller has delete.topic.enable=false: {listed(places)}"
        fix = "set delete.topic.enable=true and restart the broker, or write no tombstone"
        yield Trouble(Severity.WARNING, message, fix, "TOP805", places)


def _with_setting(examined: DoctorFacts, name: str, value: str) -> tuple[str, ...]:
    brokers = sorted(kafka_of(examined).brokers.items())
    return tuple(f"broker {broker}" for broker, facts in brokers if facts.settings.get(name, "").lower() == value)


def _is_release(release: str, written: str) -> bool:
    """``3.9`` for ``3.9`` and ``3.9.2``; below 1.0 a release has three parts."""
    return release.split(".")[:2] == written.split(".")[:2]


def _seconds(milliseconds: int) -> str:
    return f"{'+' if milliseconds > 0 else '-'}{abs(milliseconds) // 1000} s"
