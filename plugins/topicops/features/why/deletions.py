"""Why a deletion does not end. Source: kafka.controller.TopicDeletionManager."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.features.why.brokers import no_controller
from topicops.features.why.replicas import deletion_waits_for_disk
from topicops.features.why.values import STUCK, WAITS, Cause, TopicTimes, WhyFacts
from topicops.features.why.wording import are, grouped, when
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import STUCK_AFTER_MS
from topicops.model.release import DELETES_NEVER_LED
from topicops.steps.verifying.observation import partition_names

BY_HAND = "remove the topic's znodes, and have a new controller elected"


def waits_for_brokers(facts: WhyFacts) -> Iterator[Cause]:
    """A replica on a broker that is not registered cannot be deleted, so the topic is ineligible."""
    rows = facts.live.assignment.items() if facts.live and facts.is_deleting else ()
    commands = _by_hand(facts)
    for broker, partitions in grouped((broker, p) for p, row in rows for broker in facts.unregistered(row)):
        yield Cause(
            WAITS,
            f"the deletion asked for{when('at', facts.times.marker if facts.times else None)} cannot finish: "
            f"{partition_names(partitions)} {'have' if partitions[1:] else 'has'} a replica on broker {broker}, which "
            "is not registered",
            f"it goes on by itself when broker {broker} is back, also with an empty disk",
            facts.read_from(facts.marker_path, facts.topic_path, "/brokers/ids"),
            commands,
            f"if broker {broker} comes back after the commands, it still has the logs on its disk" if commands else "",
            BY_HAND if commands else "",
        )


def never_led_and_old(facts: WhyFacts) -> Iterator[Cause]:
    """Before 2.0 the controller cannot delete a partition that never had a leader."""
    if not facts.is_deleting or facts.live is None or facts.release >= DELETES_NEVER_LED:
        return
    if never_led := sorted(facts.live.assignment.keys() - facts.states.keys()):
        yield Cause(
            STUCK,
            f"the deletion cannot finish: {partition_names(never_led)} never had a leader, "
            f"and a controller of Kafka {facts.release} cannot delete such a partition",
            BY_HAND,
            facts.read_from(facts.marker_path, f"{facts.topic_path}/partitions"),
            _by_hand(facts),
        )


def waits_for_a_move(facts: WhyFacts) -> Iterator[Cause]:
    """A reassignment that a new controller found running holds a deletion up until it ends."""
    if facts.is_deleting and facts.traces is not None and facts.traces.is_reassigning:
        yield Cause(
            WAITS,
            "the deletion may wait for a reassignment of the topic, which runs",
            "it goes on when the reassignment has ended; see the cause of that below, if it does not end",
            facts.read_from(facts.marker_path, facts.topic_path, "/admin/reassign_partitions"),
        )


def runs(facts: WhyFacts) -> Iterator[Cause]:
    """Nothing that was read holds it up: brokers delete the logs, or a controller has not read the marker yet."""
    held_up = (waits_for_brokers, deletion_waits_for_disk, never_led_and_old, waits_for_a_move, no_controller)
    if not facts.is_deleting or any(any(rule(facts)) for rule in held_up):
        return
    times = facts.times or TopicTimes()
    is_old = times.now is not None and times.marker is not None and times.now - times.marker >= STUCK_AFTER_MS
    message = f"the deletion asked for{when('at', times.marker)} runs"
    if is_old:
        way_out = (
            "look for a failed log directory in the logs of the topic's brokers, then in the log of the controller"
        )
    else:
        unread = [broker for broker, logs in facts.logs.items() if isinstance(logs, str)]
        untold = f", unless a log directory of {brokers_text(unread)} has failed, which is not known" if unread else ""
        way_out = f"it ends within seconds{untold}"
    if silent := sorted(facts.silent) if facts.views else []:
        gives = "give" if silent[1:] else "gives"
        message = f"{message}; {brokers_text(silent)} {are(silent)} registered and {gives} no answer"
        way_out = "restart the broker that gives no answer"
    if is_old:
        message = f"{message}, and should be over: it takes seconds"
    yield Cause(STUCK if is_old else WAITS, message, way_out, facts.read_from(facts.marker_path))


def _by_hand(facts: WhyFacts) -> tuple[str, ...]:
    """The znodes in the order in which the controller would remove them, then the controller's own."""
    if not facts.has_zookeeper:
        return ()
    topic_and_config = (facts.remove_all(path) for path in (facts.topic_path, facts.config_path))
    return (*topic_and_config, facts.zookeeper_shell("delete", facts.marker_path), *facts.new_controller())
