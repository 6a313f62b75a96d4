"""Rules for a migration to KRaft, about overrides of topics that brokers without ZooKeeper refuse.

KRaft brokers check all overrides of a topic with each change of one, so a refused one stops every later change.
Source: org.apache.kafka.storage.internals.log.LogConfig#validate (4.0, 4.4).
"""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.cluster.doctor_facts import DoctorFacts, Finding, Severity
from topicops.model.release import NEWEST, NO_ZOOKEEPER
from topicops.model.specs.environment import Environment
from topicops.model.specs.topic_config import TOPIC_CONFIGS
from topicops.steps.doctor.rule import listed, live_of

GONE_CONFIGS = frozenset(name for name, config in TOPIC_CONFIGS.items() if config.removed_in is not None)
LEAST_SEGMENT_BYTES = 1 << 20


def overrides_outlast_zookeeper(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = tuple(
        f"{topic.name} ({name})"
        for topic in sorted(live_of(facts).topics.values(), key=lambda topic: topic.name)
        for name in sorted(GONE_CONFIGS & topic.overrides.keys())
    )
    if places:
        message = f"Kafka {NO_ZOOKEEPER} knows no such topic config, and refuses every change of it: {listed(places)}"
        fix = "take it out of the topic's file, with its exception, and apply; of a topic without file: kafka-configs"
        yield Finding(Severity.WARNING, message, fix, "TOP314", places)


def values_outlast_zookeeper(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = tuple(
        f"{name} (segment.bytes {topic.overrides['segment.bytes']})"
        for name, topic in sorted(live_of(facts).topics.items())
        if _is_small(topic.overrides.get("segment.bytes", ""))
    )
    if places:
        message = f"Kafka {NEWEST} refuses these values: {listed(places)}"
        yield Finding(Severity.WARNING, message, "change the values before that upgrade", "TOP306", places)


def _is_small(text: str) -> bool:
    return text.isdecimal() and int(text) < LEAST_SEGMENT_BYTES
