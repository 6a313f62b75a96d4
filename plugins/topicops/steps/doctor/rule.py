"""What a rule of ``doctor`` is, and how it words what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from topicops.model.cluster.doctor_facts import Area, DoctorFacts, KafkaFacts, Severity, ZooKeeperFacts
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.printable import printable
from topicops.model.specs.environment import Environment

NAMED = 3
"""How many places a sentence names; the rest is counted."""


class Trouble(NamedTuple):
    severity: Severity
    message: str
    fix: str
    code: str | None = None
    places: tuple[str, ...] = ()


class Rule(NamedTuple):
    id: str
    needs: tuple[Area, ...]
    """Without one of these it is not asked."""
    look: Callable[[DoctorFacts, Environment], Iterator[Trouble]]


def listed(places: Iterable[str]) -> str:
    """``a, b, c and 4 more``."""
    found = tuple(places)
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(map(printable, found[:NAMED])) + more


def live_of(examined: DoctorFacts) -> ClusterSnapshot:
    if examined.snapshot is None:
        raise ValueError("the rule needs the snapshot")
    return examined.snapshot


def zookeeper_of(examined: DoctorFacts) -> ZooKeeperFacts:
    if examined.zookeeper is None:
        raise ValueError("the rule needs ZooKeeper")
    return examined.zookeeper


def kafka_of(examined: DoctorFacts) -> KafkaFacts:
    if examined.kafka is None:
        raise ValueError("the rule needs the brokers")
    return examined.kafka
