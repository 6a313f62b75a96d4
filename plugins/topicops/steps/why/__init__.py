"""``why``: name the causes of a topic's state, by rules over facts that were read before, and the way out of each.

A new cause is one function and one line in ``RULES``. The rules follow Kafka's controller, as ``controller`` models it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from topicops.model.why_facts import Cause, CauseKind, WhyFacts
from topicops.steps.why import configs, control, deletions, leaders, moves, replicas, views

RULES: tuple[Callable[[WhyFacts], Iterator[Cause]], ...] = (
    control.unreadable_znode,
    control.no_controller,
    control.no_such_topic,
    deletions.waits_for_brokers,
    deletions.never_led_and_old,
    deletions.waits_for_a_move,
    deletions.runs,
    leaders.no_leader,
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


def causes(facts: WhyFacts) -> tuple[Cause, ...]:
    """What is wrong with the topic, the gravest first; empty: nothing is."""
    found = [cause for rule in RULES for cause in rule(facts)]
    return tuple(sorted(found, key=lambda cause: list(CauseKind).index(cause.kind)))
