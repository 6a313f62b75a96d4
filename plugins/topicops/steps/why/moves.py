"""Why a reassignment does not end, and what it stops meanwhile. Source: kafka.controller.KafkaController."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from topicops.model.release import CANCELS_MOVES, REASSIGNMENTS_IN_TOPICS
from topicops.model.why_facts import Cause, CauseKind, WhyFacts
from topicops.steps.verifying.observation import partition_names
from topicops.steps.why.wording import (
    are,
    brokers_text,
    kafka_tool,
    new_controller,
    partitions_file,
    read_from,
    state_path,
    topic_path,
    unregistered,
    zookeeper_shell,
    zookeeper_tool,
)

REFUSED = "until it ends, brokers refuse more partitions with REASSIGNMENT_IN_PROGRESS (60)"


def waits_for_new_replicas(facts: WhyFacts) -> Iterator[Cause]:
    """The target is complete only when each of its replicas is in sync."""
    by_broker: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for p, awaited in _awaited(facts).items():
        if missing := unregistered(facts, awaited):
            by_broker[tuple(missing)].append(p)
    for dead, partitions in sorted(by_broker.items()):
        commands = _move_back(facts, partitions)
        yield Cause(
            id="move-waits-for-broker",
            kind=CauseKind.STUCK,
            message=f"the reassignment of {partition_names(partitions)} cannot end: {brokers_text(dead)} {are(dead)} "
            f"not registered, and {REFUSED}",
            way_out=f"it goes on by itself when {brokers_text(dead)} {are(dead)} there",
            last_resort="move the replicas back to where they were" if commands else "",
            commands=commands,
            caution=_price(facts) if commands else "",
            read_from=read_from(facts, topic_path(facts), "/admin/reassign_partitions", "/brokers/ids"),
        )


def runs(facts: WhyFacts) -> Iterator[Cause]:
    """New replicas copy what the topic holds; a throttle makes that slow."""
    copying = [p for p, awaited in _awaited(facts).items() if not unregistered(facts, awaited)]
    if copying:
        yield Cause(
            id="move-runs",
            kind=CauseKind.WAITS,
            message=f"{partition_names(copying)}: a reassignment runs, its new replicas are not in sync yet; {REFUSED}",
            way_out="it ends when they have copied all; if nothing moves, look for a throttle that is too low",
            read_from=read_from(facts, topic_path(facts), *(state_path(facts, p) for p in copying[:3])),
        )


def _targets(facts: WhyFacts) -> Mapping[int, tuple[int, ...]]:
    """Where partitions of the topic move, by id."""
    if facts.live is None:
        return {}
    live, asked = facts.live, facts.times.targets if facts.times else {}
    targets = {p: target for p, target in asked.items() if p in live.assignment}
    for p in live.assignment:
        if live.adding.get(p) or live.removing.get(p):
            targets[p] = live.target_assignment[p]
    return dict(sorted(targets.items()))


def _awaited(facts: WhyFacts) -> Mapping[int, list[int]]:
    """Brokers of the target that are not in sync yet, by partition that moves."""
    return {
        p: [broker for broker in target if p not in facts.states or broker not in facts.states[p].isr]
        for p, target in _targets(facts).items()
    }


def _move_back(facts: WhyFacts, partitions: Sequence[int]) -> tuple[str, ...]:
    """Reassign to the replicas of before. Not with ``--cancel``: that of 3.9 finds no move that only adds replicas.

    Before 2.4 a controller forgets a move whose znode is gone only when another one is elected, and the topic keeps
    the replicas of both sides: so they are moved back then. Seen on brokers of 1.0.2.
    """
    name = f"move-back-{facts.topic}.json"
    rows = {p: {"replicas": list(_origin(facts, p))} for p in partitions}
    file, words = partitions_file(facts, name, rows, version=1), ("--reassignment-json-file", name, "--execute")
    if facts.release >= REASSIGNMENTS_IN_TOPICS:
        return (file, kafka_tool(facts, "kafka-reassign-partitions", *words, "--additional"))
    return (
        zookeeper_shell(facts, "delete", "/admin/reassign_partitions"),
        *new_controller(facts),
        file,
        zookeeper_tool(facts, "kafka-reassign-partitions", *words),
    )


def _price(facts: WhyFacts) -> str:
    if facts.release >= CANCELS_MOVES:
        return "what the new replicas have copied is removed"
    if facts.release >= REASSIGNMENTS_IN_TOPICS:
        return f"use the tool of Kafka {CANCELS_MOVES} or later; that of {facts.release} cannot change a move that runs"
    return "the first command drops all moves that run, those of other topics too; compare the file with what you know"


def _origin(facts: WhyFacts, p: int) -> tuple[int, ...]:
    """The replicas of before the move.

    Before 2.4 the znode does not tell: the topic has the replicas of both sides. Those that are not in the target were
    there before; then, up to as many as the target has, those in sync. A replica that never was in sync was not.
    """
    if facts.live is None:
        return ()
    row, target = facts.live.assignment[p], _targets(facts)[p]
    if facts.release >= REASSIGNMENTS_IN_TOPICS:
        return tuple(broker for broker in row if broker not in facts.live.adding.get(p, ()))
    in_sync = facts.states[p].isr if p in facts.states else ()
    likely = sorted(row, key=lambda broker: (broker in target, broker not in in_sync))
    origin = [broker for broker in likely[: len(target)] if broker not in target or broker in in_sync]
    return tuple(broker for broker in row if broker in origin)
