"""What a rule of ``doctor`` is, and helpers for its sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from topicops.model.cluster.doctor_facts import Area, DoctorFacts, Finding, KafkaFacts, ZooKeeperFacts
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.printable import printable
from topicops.model.specs.environment import Environment
from topicops.steps.why_commands import why_command

NAMED = 3
"""How many places a sentence names; it counts the rest."""


class Rule(NamedTuple):
    id: str
    needs: tuple[Area, ...]
    """The rule is applied only when all of these were read."""
    check: Callable[[DoctorFacts, Environment], Iterator[Finding]]
    """Yields findings without an id: ``examine`` sets it."""


def listed(places: Iterable[str]) -> str:
    """``a, b, c and 4 more``."""
    found = tuple(places)
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(map(printable, found[:NAMED])) + more


def with_why(fix: str, topic: str, environment: Environment) -> str:
    """The fix, and the command that says why this topic, the first of those that are named, is as it is."""
    return f"{fix}; to see all causes: {why_command(topic, environment.name)}"


def live_of(facts: DoctorFacts) -> ClusterSnapshot:
    if facts.snapshot is None:
        raise ValueError("the rule needs the snapshot")
    return facts.snapshot


def zookeeper_of(facts: DoctorFacts) -> ZooKeeperFacts:
    if facts.zookeeper is None:
        raise ValueError("the rule needs ZooKeeper")
    return facts.zookeeper


def kafka_of(facts: DoctorFacts) -> KafkaFacts:
    if facts.kafka is None:
        raise ValueError("the rule needs the brokers")
    return facts.kafka
