"""Rules for a migration to KRaft, about overrides of topics that brokers without ZooKeeper refuse.

KRaft brokers check all overrides of a topic with each change of one, so a refused one stops every later change.
Source: org.apache.kafka.controller.ConfigurationControlManager#validateAlterConfig (4.0).
"""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.cluster.doctor_facts import DoctorFacts, Finding, Severity
from topicops.model.codes import Code
from topicops.model.release import NEWEST, NO_ZOOKEEPER
from topicops.model.specs.config_checks import value_problem
from topicops.model.specs.environment import Environment
from topicops.model.specs.topic_config import TOPIC_CONFIGS, configs_of
from topicops.steps.doctor.rule import listed, live_of


def overrides_outlast_zookeeper(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    gone = TOPIC_CONFIGS.keys() - configs_of(NEWEST).keys()
    places = tuple(
        f"{topic} ({name})"
        for topic, live in sorted(live_of(facts).topics.items())
        for name in sorted(gone & live.overrides.keys())
    )
    if places:
        message = f"Kafka {NO_ZOOKEEPER} knows no such topic config, and refuses every change of it: {listed(places)}"
        fix = "take it out of the topic's file, with its exception, and apply; of a topic without file: kafka-configs"
        yield Finding(Severity.WARNING, message, fix, Code.UNUSABLE_CONFIG, places)


def values_outlast_zookeeper(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = tuple(
        f"{topic} ({name} {text}: {problem})"
        for topic, live in sorted(live_of(facts).topics.items())
        for name, text in sorted(live.overrides.items())
        if (problem := value_problem(name, text, NEWEST))
    )
    if places:
        message = f"Kafka {NEWEST} refuses these values: {listed(places)}"
        yield Finding(Severity.WARNING, message, "change the values before that upgrade", Code.INVALID_CONFIG, places)
