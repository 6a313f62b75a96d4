"""Why moves that may run cannot begin now: what others move, brokers that are down, replicas that are not in sync."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.codes import Code
from topicops.model.plans.changes import Change, ReassignTopic
from topicops.model.printable import plural
from topicops.model.specs.environment import Environment


def move_obstacles(
    changes: Iterable[Change], live: ClusterSnapshot, environment: Environment
) -> Mapping[str, tuple[str, ...]]:
    """Return why the moves of a topic cannot begin now, by topic; topics without a reason have no entry.

    Args:
        live: As it was read, with the states of these topics.
    """
    moves = [change for change in changes if isinstance(change, ReassignTopic)]
    foreign = list(_foreign(live, environment)) if moves else []
    found = {c.topic: (*_topic_obstacles(c, live, environment), *foreign) for c in moves}
    return {topic: reasons for topic, reasons in found.items() if reasons}


def _foreign(live: ClusterSnapshot, environment: Environment) -> Iterator[str]:
    moving, allowed = live.foreign_moves, environment.spec.limits.moves_at_once
    if moving >= allowed:
        place = environment.place_of("limits.movesAtOnce")
        yield (
            f"{Code.REASSIGNMENT_RUNS}: {plural(moving, 'partition')} move{'s' if moving == 1 else ''} by other "
            f"programs, and {allowed} may move at once ({place})"
        )


def _topic_obstacles(change: ReassignTopic, live: ClusterSnapshot, environment: Environment) -> Iterator[str]:
    topic = live.topics.get(change.topic)
    if topic is None:
        return
    draining = frozenset(environment.spec.cluster.draining)
    after = {**topic.target_assignment, **change.assignment}
    held = {b for row in topic.target_assignment.values() for b in row} - draining
    if dead := (held | {b for row in after.values() for b in row}) - live.brokers.keys():
        are = "are" if len(dead) > 1 else "is"
        yield f"{Code.BROKER_DOWN}: {brokers_text(dead)} {are} to have replicas of it, and {are} not live"
    if topic.states is None:
        yield "the ISR of its partitions was not read"
        return
    for p, row in topic.target_assignment.items():
        stay = set(row) & set(after[p])
        in_sync = stay & set(topic.states[p].isr) if p in topic.states else set()
        if len(in_sync) < len(stay):
            yield f"partition {p} is under-replicated: {sorted(in_sync)} of {sorted(stay)} are in sync"
            return
