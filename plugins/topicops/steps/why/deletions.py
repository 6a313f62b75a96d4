"""Why a deletion does not end. Source: ``controller.deletion``, kafka.controller.TopicDeletionManager."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from topicops.model.release import DELETES_NEVER_LED
from topicops.model.why_facts import Cause, CauseKind, WhyFacts
from topicops.steps.verifying.observation import partition_names
from topicops.steps.why.wording import (
    are,
    at,
    brokers_text,
    config_path,
    marker_path,
    read_from,
    remove_all,
    topic_path,
    unregistered,
    zookeeper_shell,
)

BY_HAND = "if that broker never comes back: remove the topic's znodes, and have a new controller elected"


def waits_for_brokers(facts: WhyFacts) -> Iterator[Cause]:
    """A replica on a broker that is not registered cannot be deleted, so the topic is ineligible."""
    if not facts.is_deleting or facts.live is None:
        return
    held: defaultdict[int, list[int]] = defaultdict(list)
    for p, row in facts.live.assignment.items():
        for broker in unregistered(facts, row):
            held[broker].append(p)
    marked = facts.times.marker if facts.times else None
    for broker, partitions in sorted(held.items()):
        verb = "has" if len(partitions) == 1 else "have"
        yield Cause(
            id="deletion-waits-for-broker",
            kind=CauseKind.WAITS,
            message=f"the deletion, asked for{at(marked)}, cannot finish: {partition_names(partitions)} {verb} "
            f"a replica on broker {broker}, which is not registered",
            way_out=f"it goes on by itself when broker {broker} is back, also with an empty disk; {BY_HAND}",
            commands=by_hand(facts),
            caution=f"if broker {broker} comes back after the commands, it still has the logs on its disk",
            read_from=read_from(facts, marker_path(facts), topic_path(facts), "/brokers/ids"),
        )


def never_led_and_old(facts: WhyFacts) -> Iterator[Cause]:
    """Before 2.0 the controller cannot delete a partition that never had a leader."""
    if not facts.is_deleting or facts.live is None or facts.release >= DELETES_NEVER_LED:
        return
    never_led = sorted(facts.live.assignment.keys() - facts.states.keys())
    if never_led:
        yield Cause(
            id="deletion-of-never-led",
            kind=CauseKind.STUCK,
            message=f"the deletion cannot finish: {partition_names(never_led)} never had a leader, "
            f"and a controller of Kafka {facts.release} cannot delete such a partition",
            way_out="remove the topic's znodes, and have a new controller elected",
            commands=by_hand(facts),
            read_from=read_from(facts, marker_path(facts), f"{topic_path(facts)}/partitions"),
        )


def waits_for_a_move(facts: WhyFacts) -> Iterator[Cause]:
    """A reassignment that a new controller found running holds a deletion up until it ends."""
    if facts.is_deleting and facts.traces is not None and facts.traces.is_reassigning:
        yield Cause(
            id="deletion-waits-for-move",
            kind=CauseKind.WAITS,
            message="the deletion may wait for a reassignment of the topic, which runs",
            way_out="it goes on when the reassignment has ended; see the cause of that below, if it does not end",
            read_from=read_from(facts, marker_path(facts), topic_path(facts), "/admin/reassign_partitions"),
        )


def runs(facts: WhyFacts) -> Iterator[Cause]:
    """Nothing holds it up: brokers delete the logs, or a controller has not read the marker yet."""
    if not facts.is_deleting or any(waits_for_brokers(facts)) or any(never_led_and_old(facts)):
        return
    marked = facts.times.marker if facts.times else None
    silent = [broker for broker, view in facts.views.items() if isinstance(view, str)]
    wait = f"; {brokers_text(silent)} {are(silent)} registered and gives no answer" if silent else ""
    yield Cause(
        id="deletion-runs",
        kind=CauseKind.WAITS,
        message=f"the deletion runs, asked for{at(marked)}{wait}",
        way_out="it ends within seconds, unless a broker does not answer: then restart that broker",
        read_from=read_from(facts, marker_path(facts)),
    )


def by_hand(facts: WhyFacts) -> tuple[str, ...]:
    """The znodes in the order in which the controller would remove them, then the controller's own."""
    if facts.times is None:
        return ()
    return (
        remove_all(facts, topic_path(facts)),
        remove_all(facts, config_path(facts)),
        zookeeper_shell(facts, "delete", marker_path(facts)),
        zookeeper_shell(facts, "delete", "/controller"),
    )
