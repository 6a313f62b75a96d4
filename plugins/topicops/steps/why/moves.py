"""Why a reassignment does not end, and what it stops meanwhile. Source: ``controller.reassignment``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.model.release import CANCELS_MOVES
from topicops.model.why_facts import Cause, CauseKind, WhyFacts
from topicops.steps.verifying.observation import partition_names
from topicops.steps.why.wording import (
    are,
    brokers_text,
    json_file,
    kafka_tool,
    read_from,
    state_path,
    topic_path,
    unregistered,
    zookeeper_shell,
)

REFUSED = "until it ends, brokers refuse more partitions with REASSIGNMENT_IN_PROGRESS (60)"


def waits_for_new_replicas(facts: WhyFacts) -> Iterator[Cause]:
    """The target is complete only when each of its replicas is in sync."""
    for p, awaited in _awaited(facts).items():
        dead = unregistered(facts, awaited)
        if dead:
            yield Cause(
                id="move-waits-for-broker",
                kind=CauseKind.STUCK,
                message=f"the reassignment of partition {p} cannot end: {brokers_text(dead)} {are(dead)} "
                f"not registered, and {REFUSED}",
                way_out=f"it goes on by itself when {brokers_text(dead)} {are(dead)} there; or move it back",
                commands=_move_back(facts, p),
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


def _awaited(facts: WhyFacts) -> Mapping[int, list[int]]:
    """Brokers of the target that are not in sync yet, by partition that moves."""
    if facts.live is None:
        return {}
    live, targets = facts.live, dict(facts.times.targets if facts.times else {})
    for p in live.assignment:
        if live.adding.get(p) or live.removing.get(p):
            targets[p] = live.target_assignment[p]
    return {
        p: [broker for broker in target if p not in facts.states or broker not in facts.states[p].isr]
        for p, target in sorted(targets.items())
    }


def _move_back(facts: WhyFacts, p: int) -> tuple[str, ...]:
    """Move back, since 2.6 with Kafka's tool; before, by hand: a new controller forgets a move whose znode is gone.

    Not with ``--cancel``: that of 3.9 finds no move that only adds replicas.
    """
    if facts.release < CANCELS_MOVES:
        if facts.times is None:
            return ()
        return (
            zookeeper_shell(facts, "delete", "/admin/reassign_partitions"),
            zookeeper_shell(facts, "delete", "/controller"),
        )
    name = f"move-back-{facts.topic}-{p}.json"
    row = {"topic": facts.topic, "partition": p, "replicas": list(_origin(facts, p))}
    words = ["--reassignment-json-file", name, "--execute", "--additional"]
    return (
        json_file(name, {"version": 1, "partitions": [row]}),
        kafka_tool(facts, "kafka-reassign-partitions", *words),
    )


def _origin(facts: WhyFacts, p: int) -> tuple[int, ...]:
    if facts.live is None:
        return ()
    return tuple(broker for broker in facts.live.assignment[p] if broker not in facts.live.adding.get(p, ()))
