"""Every rule of ``why`` in its order, and the causes that they find in facts that were read before.

A new cause is one function and one line in ``RULES``. The rules follow Kafka's controller, as ``controller`` models it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from topicops.features.ask.why import brokers, leaders, operations
from topicops.features.ask.why.values import Cause, TopicTimes, WhyFacts
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic


class Rule(NamedTuple):
    id: str
    check: Callable[[WhyFacts], Iterator[Cause]]
    """Function that yields causes without an id: ``causes`` sets it."""
    takes_snapshot: bool = False
    """Whether it needs neither an answer of a broker nor its release."""


RULES = (
    Rule("unreadable-znode", brokers.unreadable_znodes),
    Rule("no-broker-answers", brokers.no_broker_answers),
    Rule("no-controller", brokers.no_controller, takes_snapshot=True),
    Rule("znode-removed", brokers.znode_removed),
    Rule("no-topic", brokers.no_topic),
    Rule("deletion-waits-for-broker", operations.waits_for_brokers, takes_snapshot=True),
    Rule("deletion-waits-for-disk", leaders.deletion_waits_for_disk),
    Rule("deletion-of-never-led", operations.never_led_and_old),
    Rule("deletion-waits-for-move", operations.waits_for_a_move, takes_snapshot=True),
    Rule("deletion-runs", operations.deletion_runs, takes_snapshot=True),
    Rule("failed-log-directory", leaders.failed_log_directory),
    Rule("no-leader", leaders.no_leader, takes_snapshot=True),
    Rule("no-election", leaders.no_election, takes_snapshot=True),
    Rule("no-state", leaders.no_state, takes_snapshot=True),
    Rule("move-waits-for-broker", operations.waits_for_new_replicas, takes_snapshot=True),
    Rule("move-runs", operations.move_runs, takes_snapshot=True),
    Rule("move-ends-without-broker", operations.ends_without_broker),
    Rule("not-in-sync", leaders.not_in_sync, takes_snapshot=True),
    Rule("below-min-isr", leaders.below_min_isr, takes_snapshot=True),
    Rule("config-not-in-force", brokers.not_in_force),
    Rule("config-invalid", brokers.refused_by_brokers),
    Rule("min-isr-above-replicas", brokers.min_isr_cannot_be_met),
    Rule("unknown-to-broker", brokers.unknown_to_brokers),
    Rule("other-topic-id", brokers.other_topic_id),
    Rule("log-not-served", brokers.log_not_served),
    Rule("stray-log", brokers.stray_logs),
    Rule("silent-broker", brokers.silent_brokers),
    Rule("not-preferred", leaders.not_preferred),
)
"""Rules in the order in which a person would fix them."""


def causes(facts: WhyFacts) -> tuple[Cause, ...]:
    """Return what is wrong with the topic, in the order of ``RULES``; empty means that nothing is."""
    return tuple(replace(cause, id=rule.id) for rule in RULES for cause in rule.check(facts))


def causes_as_read(live: ClusterSnapshot, topic: LiveTopic) -> list[tuple[str, str]]:
    """Return what was wrong with a topic of the snapshot ``live``, each with what ends it; nothing is read.

    Without last resorts and commands: some cannot be taken back, and the cluster may have changed since.
    """
    facts = WhyFacts(
        topic=topic.name,
        has_zookeeper=live.source == "zookeeper",
        traces=replace(live, topics={topic.name: topic}).traces(topic.name),
        times=TopicTimes(controller=live.controller_id) if live.source == "zookeeper" else None,
        brokers=frozenset(live.brokers),
        controller_id=live.controller_id,
        broker_defaults=live.broker_defaults,
        releases=live.releases,
    )
    return [(cause.message, cause.way_out) for rule in RULES if rule.takes_snapshot for cause in rule.check(facts)]
