"""``why``: name the causes of a topic's state, by rules over facts that were read before, and the way out of each.

A new cause is one function and one line in ``RULES``. The rules follow Kafka's controller, as ``controller`` models it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, TopicTraces
from topicops.model.why_facts import Cause, TopicTimes, WhyFacts
from topicops.steps.why import configs, control, deletions, disks, leaders, moves, replicas, views

RULES: tuple[Callable[[WhyFacts], Iterator[Cause]], ...] = (
    control.unreadable_znodes,
    views.no_broker_answers,
    control.no_controller,
    control.no_such_topic,
    deletions.waits_for_brokers,
    disks.deletion_waits_for_disk,
    deletions.never_led_and_old,
    deletions.waits_for_a_move,
    deletions.runs,
    disks.failed_log_directory,
    leaders.no_leader,
    leaders.no_election,
    leaders.no_state,
    moves.waits_for_new_replicas,
    moves.runs,
    replicas.not_in_sync,
    replicas.below_min_isr,
    configs.not_in_force,
    configs.refused_by_brokers,
    configs.min_isr_cannot_be_met,
    views.unknown_to_brokers,
    views.other_topic_id,
    views.log_not_served,
    views.silent_brokers,
    leaders.not_preferred,
)
"""In the order in which a person would fix them."""
OF_A_SNAPSHOT = (
    control.no_controller,
    deletions.waits_for_brokers,
    deletions.waits_for_a_move,
    deletions.runs,
    leaders.no_leader,
    leaders.no_election,
    leaders.no_state,
    moves.waits_for_new_replicas,
    moves.runs,
    replicas.not_in_sync,
    replicas.below_min_isr,
)
"""Rules that need neither an answer of a broker nor its release."""


def causes(facts: WhyFacts) -> tuple[Cause, ...]:
    """What is wrong with the topic, in the order of ``RULES``; empty: nothing is."""
    return tuple(cause for rule in RULES for cause in rule(facts))


def causes_as_read(live: ClusterSnapshot, topic: LiveTopic) -> tuple[Cause, ...]:
    """What was wrong with a topic, by a snapshot with its state alone: nothing is read.

    Without last resorts and commands: some cannot be taken back, and the cluster may have changed since.

    Args:
        live: The snapshot that the topic is of; its own topics are not looked at.
    """
    facts = WhyFacts(
        topic=topic.name,
        source=live.source,
        traces=TopicTraces(
            live=topic,
            has_config_znode=bool(topic.overrides),
            is_deleting=topic.name in live.deleting,
            is_in_reassignment=topic.name in live.reassigning,
        ),
        times=TopicTimes(controller=live.controller_id) if live.source == "zookeeper" else None,
        brokers=frozenset(live.brokers),
        controller_id=live.controller_id,
        broker_defaults=live.broker_defaults,
        releases=live.releases,
    )
    found = (cause for rule in OF_A_SNAPSHOT for cause in rule(facts))
    return tuple(replace(cause, last_resort="", commands=(), caution="") for cause in found)
