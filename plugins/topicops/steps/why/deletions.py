"""Why a deletion does not end. Source: ``controller.deletion``, kafka.controller.TopicDeletionManager."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from topicops.model.cluster.snapshot import STUCK_AFTER_MS
from topicops.model.release import DELETES_NEVER_LED
from topicops.model.why_facts import Cause, CauseKind, TopicTimes, WhyFacts
from topicops.steps.verifying.observation import partition_names
from topicops.steps.why.control import no_controller
from topicops.steps.why.disks import deletion_waits_for_disk
from topicops.steps.why.wording import (
    are,
    at,
    brokers_text,
    config_path,
    marker_path,
    new_controller,
    read_from,
    remove_all,
    topic_path,
    unregistered,
    zookeeper_shell,
)

BY_HAND = "remove the topic's znodes, and have a new controller elected"


def waits_for_brokers(facts: WhyFacts) -> Iterator[Cause]:
    """A replica on a broker that is not registered cannot be deleted, so the topic is ineligible."""
    if not facts.is_deleting or facts.live is None:
        return
    held: defaultdict[int, list[int]] = defaultdict(list)
    for p, row in facts.live.assignment.items():
        for broker in unregistered(facts, row):
            held[broker].append(p)
    marked = facts.times.marker if facts.times else None
    commands = by_hand(facts)
    for broker, partitions in sorted(held.items()):
        verb = "has" if len(partitions) == 1 else "have"
        yield Cause(
            id="deletion-waits-for-broker",
            kind=CauseKind.WAITS,
            message=f"the deletion asked for{at(marked)} cannot finish: {partition_names(partitions)} {verb} "
            f"a replica on broker {broker}, which is not registered",
            way_out=f"it goes on by itself when broker {broker} is back, also with an empty disk",
            last_resort=BY_HAND if commands else "",
            commands=commands,
            caution=f"if broker {broker} comes back after the commands, it still has the logs on its disk"
            if commands
            else "",
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
            way_out=BY_HAND,
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
    """Nothing that was read holds it up: brokers delete the logs, or a controller has not read the marker yet."""
    held_up = (waits_for_brokers, deletion_waits_for_disk, never_led_and_old, waits_for_a_move, no_controller)
    if not facts.is_deleting or any(any(rule(facts)) for rule in held_up):
        return
    times = facts.times or TopicTimes()
    is_old = times.now is not None and times.marker is not None and times.now - times.marker >= STUCK_AFTER_MS
    silent = sorted(facts.silent) if facts.views else []
    unread = [broker for broker, logs in facts.logs.items() if isinstance(logs, str)]
    untold = f", unless a log directory of {brokers_text(unread)} has failed, which is not known" if unread else ""
    answers = f"; {brokers_text(silent)} {are(silent)} registered and {'give' if silent[1:] else 'gives'} no answer"
    yield Cause(
        id="deletion-runs",
        kind=CauseKind.STUCK if is_old else CauseKind.WAITS,
        message=f"the deletion asked for{at(times.marker)} runs{answers if silent else ''}"
        + (", and should be over: it takes seconds" if is_old else ""),
        way_out="restart the broker that gives no answer"
        if silent
        else "look for a failed log directory in the logs of the topic's brokers, then in the log of the controller"
        if is_old
        else f"it ends within seconds{untold}",
        read_from=read_from(facts, marker_path(facts)),
    )


def by_hand(facts: WhyFacts) -> tuple[str, ...]:
    """The znodes in the order in which the controller would remove them, then the controller's own."""
    if not facts.has_zookeeper:
        return ()
    return (
        remove_all(facts, topic_path(facts)),
        remove_all(facts, config_path(facts)),
        zookeeper_shell(facts, "delete", marker_path(facts)),
        *new_controller(facts),
    )
