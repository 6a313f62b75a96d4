"""Why a reassignment does not end, and what it stops meanwhile. Source: kafka.controller.KafkaController."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topicops.features.why.values import STUCK, WAITS, Cause, WhyFacts
from topicops.features.why.wording import are, grouped
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.release import CANCELS_MOVES, REASSIGNMENTS_IN_TOPICS
from topicops.steps.verifying.observation import partition_names

REFUSED = "until it ends, brokers refuse more partitions with REASSIGNMENT_IN_PROGRESS (60)"


def waits_for_new_replicas(facts: WhyFacts) -> Iterator[Cause]:
    """The target is complete only when each of its replicas is in sync."""
    missing = ((tuple(facts.unregistered(awaited)), p) for p, awaited in _awaited(facts).items())
    for dead, partitions in grouped((brokers, p) for brokers, p in missing if brokers):
        commands = _move_back(facts, partitions)
        yield Cause(
            STUCK,
            f"the reassignment of {partition_names(partitions)} cannot end: {brokers_text(dead)} {are(dead)} "
            f"not registered, and {REFUSED}",
            f"it goes on by itself when {brokers_text(dead)} {are(dead)} there",
            facts.read_from(facts.topic_path, "/admin/reassign_partitions", "/brokers/ids"),
            commands,
            _price(facts),
            "move the replicas back to where they were",
        )


def runs(facts: WhyFacts) -> Iterator[Cause]:
    """New replicas copy what the topic holds; a throttle makes that slow."""
    if copying := [p for p, awaited in _awaited(facts).items() if not facts.unregistered(awaited)]:
        yield Cause(
            WAITS,
            f"{partition_names(copying)}: a reassignment runs, its new replicas are not in sync yet; {REFUSED}",
            "it ends when they have copied all; if nothing moves, look for a throttle that is too low",
            facts.read_from(facts.topic_path, *facts.state_paths(copying)),
        )


def _targets(facts: WhyFacts) -> Mapping[int, tuple[int, ...]]:
    """Where partitions of the topic move, by id."""
    if facts.live is None:
        return {}
    live, asked = facts.live, facts.times.targets if facts.times else {}
    targets = {p: target for p, target in asked.items() if p in live.assignment}
    targets |= {p: live.target_assignment[p] for p in live.assignment if live.adding.get(p) or live.removing.get(p)}
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
    file, words = facts.partitions_file(name, rows, version=1), ("--reassignment-json-file", name, "--execute")
    if facts.release >= REASSIGNMENTS_IN_TOPICS:
        return (file, facts.kafka_tool("kafka-reassign-partitions", *words, "--additional"))
    forgotten = (facts.zookeeper_shell("delete", "/admin/reassign_partitions"), *facts.new_controller())
    return *forgotten, file, facts.kafka_tool("kafka-reassign-partitions", *words, since=REASSIGNMENTS_IN_TOPICS)


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
    row, target = facts.row(p), _targets(facts)[p]
    if facts.release >= REASSIGNMENTS_IN_TOPICS and facts.live:
        return tuple(broker for broker in row if broker not in facts.live.adding.get(p, ()))
    in_sync = facts.states[p].isr if p in facts.states else ()
    likely = sorted(row, key=lambda broker: (broker in target, broker not in in_sync))
    origin = [broker for broker in likely[: len(target)] if broker not in target or broker in in_sync]
    return tuple(broker for broker in row if broker in origin)
