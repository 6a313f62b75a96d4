"""Why a deletion or a reassignment does not end, and what it stops meanwhile.

Source: kafka.controller.TopicDeletionManager, kafka.controller.KafkaController.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from topicops.features.ask.why.brokers import no_controller
from topicops.features.ask.why.leaders import deletion_waits_for_disk
from topicops.features.ask.why.values import NOTE, STUCK, WAITS, Cause, TopicTimes, WhyFacts, are, grouped
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import STUCK_AFTER_MS
from topicops.model.release import (
    AWAITS_ADDED_AGAIN,
    AWAITS_WHOLE_TARGET,
    CANCELS_MOVES,
    DELETES_NEVER_LED,
    KRAFT,
    MISSES_MOVES,
    NO_ZOOKEEPER,
    REASSIGNMENTS_IN_TOPICS,
)
from topicops.steps.verifying.observation import partition_names

REFUSED = "until it ends, brokers refuse more partitions with REASSIGNMENT_IN_PROGRESS (60)"
BY_HAND = "remove the topic's znodes, and have a new controller elected"


def waits_for_brokers(facts: WhyFacts) -> Iterator[Cause]:
    """A replica on a broker that is not registered cannot be deleted, so the topic is ineligible."""
    rows = facts.live.assignment.items() if facts.live and facts.is_deleting else ()
    commands = _by_hand(facts)
    for broker, partitions in grouped((broker, p) for p, row in rows for broker in facts.unregistered(row)):
        yield Cause(
            WAITS,
            f"{facts.asked_for} cannot finish: {partition_names(partitions)} {'have' if partitions[1:] else 'has'} a "
            f"replica on broker {broker}, which is not registered",
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


def deletion_runs(facts: WhyFacts) -> Iterator[Cause]:
    """Nothing that was read holds it up: brokers delete the logs, or a controller has not read the marker yet."""
    held_up = (waits_for_brokers, deletion_waits_for_disk, never_led_and_old, waits_for_a_move, no_controller)
    if not facts.is_deleting or any(any(rule(facts)) for rule in held_up):
        return
    times = facts.times or TopicTimes()
    is_old = times.now is not None and times.marker is not None and times.now - times.marker >= STUCK_AFTER_MS
    message = f"{facts.asked_for} runs"
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
    """Return the znodes in the order in which the controller would remove them, then the controller's own."""
    if not facts.has_zookeeper:
        return ()
    topic_and_config = (facts.remove_all(path) for path in (facts.topic_path, facts.config_path))
    return (*topic_and_config, facts.zookeeper_shell("delete", facts.marker_path), *facts.new_controller())


def waits_for_new_replicas(facts: WhyFacts) -> Iterator[Cause]:
    """The target is complete only when each of its replicas is in sync."""
    missing = ((tuple(facts.unregistered(awaited)), p) for p, awaited in _awaited(facts).items())
    for dead, partitions in grouped((brokers, p) for brokers, p in missing if brokers):
        safe, unsafe = _by_safety(facts, partitions)
        commands = _move_back(facts, safe) if safe else ()
        if commands and facts.own_move is not None:
            commands = (_ours(facts, "--cancel", facts.topic),)
        way_out = f"it goes on by itself when {brokers_text(dead)} {are(dead)} there"
        if unsafe:
            way_out += (
                f"; do not move {partition_names(unsafe)} back before a replica of before the move is in sync on a "
                "live broker: until then the move back can leave no leader"
            )
        yield Cause(
            STUCK,
            f"the reassignment of {partition_names(partitions)} cannot end: {brokers_text(dead)} {are(dead)} "
            f"not registered, and {REFUSED}",
            way_out,
            facts.read_from(facts.topic_path, "/admin/reassign_partitions", "/brokers/ids"),
            commands,
            _price(facts) if commands and facts.own_move is None else "",
            "move the replicas back to where they were" if commands else "",
        )


def move_runs(facts: WhyFacts) -> Iterator[Cause]:
    """New replicas copy what the topic holds; a throttle makes that slow. Moves of ours may wait before they begin."""
    if copying := [p for p, awaited in _awaited(facts).items() if not facts.unregistered(awaited)]:
        message = f"{partition_names(copying)}: a reassignment runs, its new replicas are not in sync yet; {REFUSED}"
        way_out = "it ends when they have copied all; if nothing moves, look for a throttle that is too low"
        if facts.own_move is not None:
            message = "; ".join([message, *(note.rstrip(".") for note in facts.own_move)])
            way_out = f"{way_out}; how far it is, by topicops, whose move it is: {_ours(facts)}"
        yield Cause(WAITS, message, way_out, facts.read_from(facts.topic_path, *facts.state_paths(copying)))
    elif facts.own_move and not _targets(facts):
        message = "; ".join(["replicas of it are to move, and wait", *(note.rstrip(".") for note in facts.own_move)])
        way_out = f"do what the sentences say; topicops then moves them, and shows how far they are: {_ours(facts)}"
        yield Cause(WAITS, message, way_out, ("the record of moves, in TOPICOPS_HOME",))


def ends_without_broker(facts: WhyFacts) -> Iterator[Cause]:
    """Some releases do not wait for a replica of the target that stays, and the partition then misses it."""
    if _awaits_all(facts):
        return
    gone = ((tuple(facts.unregistered(set(target) - _added(facts, p))), p) for p, target in _targets(facts).items())
    for dead, partitions in grouped((brokers, p) for brokers, p in gone if brokers):
        yield Cause(
            NOTE,
            f"the reassignment of {partition_names(partitions)} will end without {brokers_text(dead)}, which "
            f"{are(dead)} not registered: Kafka {facts.release} waits for the added replicas alone, and the ISR stays "
            "incomplete",
            f"start {brokers_text(dead)}, before the broker that the replicas leave is taken away",
            facts.read_from(facts.topic_path, "/brokers/ids"),
        )


def _targets(facts: WhyFacts) -> Mapping[int, tuple[int, ...]]:
    """Return where partitions of the topic move, by id."""
    if facts.live is None:
        return {}
    live, asked = facts.live, facts.times.targets if facts.times else {}
    targets = {p: target for p, target in asked.items() if p in live.assignment}
    targets |= {p: live.target_assignment[p] for p in live.assignment if live.adding.get(p) or live.removing.get(p)}
    return dict(sorted(targets.items()))


def _awaited(facts: WhyFacts) -> Mapping[int, list[int]]:
    """Return brokers that the move waits for, because they are not in sync yet, by partition that moves."""
    waits_for_all = _awaits_all(facts)
    return {
        p: [b for b in target if b not in facts.isr(p) and (waits_for_all or b in _added(facts, p))]
        for p, target in _targets(facts).items()
    }


def _awaits_all(facts: WhyFacts) -> bool:
    """Return whether the move waits for replicas that do not move, too, so that a dead one of these holds it up."""
    return facts.has_zookeeper or facts.release < KRAFT or AWAITS_WHOLE_TARGET <= facts.release < AWAITS_ADDED_AGAIN


def _added(facts: WhyFacts, p: int) -> set[int]:
    return set(facts.live.adding.get(p, ())) if facts.live else set()


def _ours(facts: WhyFacts, *words: str) -> str:
    return shlex.join(["topicops", "moves", *words, "--environment", facts.environment])


def _by_safety(facts: WhyFacts, partitions: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the partitions that have a live replica of before the move in sync, and the others.

    A ZooKeeper controller takes replicas out of a partition that then has no leader any more, not even when the
    brokers of before are back (KAFKA-14424). Seen on 3.9.2; KRaft refuses that.
    """
    safe = [p for p in partitions if facts.brokers & set(_origin(facts, p)) & set(facts.isr(p))]
    return safe, [p for p in partitions if p not in safe]


def _move_back(facts: WhyFacts, partitions: Sequence[int]) -> tuple[str, ...]:
    """Reassign to the replicas of before with ZooKeeper, and cancel with KRaft, which forgets what was before.

    Not with ``--cancel`` where that is not needed: that of 3.7 to 3.9 finds no move that only adds replicas. Before 2.4
    a controller forgets a move whose znode is gone only when another one is elected, and the topic keeps the replicas
    of both sides: so they are moved back then. Seen on brokers of 1.0.2.
    """
    name = f"move-back-{facts.topic}.json"
    rows = {p: {"replicas": list(_origin(facts, p))} for p in partitions}
    file, words = facts.partitions_file(name, rows, version=1), ("--reassignment-json-file", name, "--execute")
    if not facts.has_zookeeper:
        cancel = ("--reassignment-json-file", name, "--cancel", "--preserve-throttles")
        return (file, facts.kafka_tool("kafka-reassign-partitions", *cancel))
    if facts.release >= REASSIGNMENTS_IN_TOPICS:
        return (file, facts.kafka_tool("kafka-reassign-partitions", *words, "--additional"))
    forgotten = (facts.zookeeper_shell("delete", "/admin/reassign_partitions"), *facts.new_controller())
    return *forgotten, file, facts.kafka_tool("kafka-reassign-partitions", *words, since=REASSIGNMENTS_IN_TOPICS)


def _price(facts: WhyFacts) -> str:
    if not facts.has_zookeeper and MISSES_MOVES <= facts.release < NO_ZOOKEEPER:
        return (
            f"use the tool of Kafka {NO_ZOOKEEPER} or later: that of {facts.release} overlooks a move that only adds "
            "replicas, and says that none is active; what the new replicas have copied is removed"
        )
    if facts.release >= CANCELS_MOVES:
        return "what the new replicas have copied is removed"
    if facts.release >= REASSIGNMENTS_IN_TOPICS:
        return f"use the tool of Kafka {CANCELS_MOVES} or later; that of {facts.release} cannot change a move that runs"
    return "the first command drops all moves that run, those of other topics too; compare the file with what you know"


def _origin(facts: WhyFacts, p: int) -> tuple[int, ...]:
    """Return the replicas of before the move.

    Before 2.4 the znode does not tell: the topic has the replicas of both sides. Those that are not in the target were
    there before; then, up to as many as the target has, those in sync. A replica that never was in sync was not.
    """
    row, target = facts.row(p), _targets(facts)[p]
    if facts.release >= REASSIGNMENTS_IN_TOPICS and facts.live:
        return tuple(broker for broker in row if broker not in facts.live.adding.get(p, ()))
    in_sync = facts.states[p].isr if p in facts.states else ()
    likely = sorted(row, key=lambda broker: (broker in target, broker not in in_sync))
    origin = [broker for broker in likely[: len(target)] if broker not in target or broker in in_sync]
    return tuple(broker for broker in row if broker in origin)
