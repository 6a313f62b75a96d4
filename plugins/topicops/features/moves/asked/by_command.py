"""Moves that no file asks for: whether one may run, although it is in no plan of now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from topicops.features.moves.asked.draining import as_it_is
from topicops.features.moves.asked.obstacles import obstacle
from topicops.features.moves.asked.wanted import move_findings, move_reason
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.plans.changes import MoveReason, ReassignTopic
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.environment import Environment
from topicops.model.specs.spellings import EPOCH
from topicops.steps.planning.blocking import Situation, unstable


def is_of_command(change: ReassignTopic, environment: Environment) -> bool:
    """Return whether no file asks for such a move: one for balance, or off a broker that is not in the drain's list."""
    draining = frozenset(environment.spec.cluster.draining)
    return change.why is MoveReason.BALANCE or (
        change.why is MoveReason.DRAIN and draining.isdisjoint(change.removed.keys())
    )


def command_problems(
    change: ReassignTopic, desired: Desired, live: ClusterSnapshot, environment: Environment
) -> Iterator[str]:
    """Yield why a move that a command asks for must not run: what blocks a move, and what its file says.

    Args:
        live: With ``draining``, the brokers' answers, and the states of the topic.
    """
    topic, described = live.topics.get(change.topic), desired.topics.get(change.topic)
    if topic is None:
        return
    if described is None and change.why is MoveReason.DRAIN and environment.spec.policy.drain_unmanaged == "refuse":
        place = environment.place_of("policy.drainUnmanaged")
        yield f"no file describes the topic, and policy.drainUnmanaged refuses to move it ({place})"
    elif described is not None:
        yield from _contradictions(change, described)
    situation = Situation(
        desired=replace(described or as_it_is(topic, environment), assignment=change.assignment),
        topic=topic,
        live=live,
        environment=environment,
        now=EPOCH,
        names_by_folded={},
        is_unmanaged=described is None,
    )
    if found := obstacle(situation):
        yield found.reason or found.way_out
    else:
        moving = move_findings(situation, None) if move_reason(situation) else ()
        yield from (finding.reason for finding in (unstable(situation), *moving) if finding)
    racks = live.racks
    for partition, row in change.assignment.items():
        before = change.assignment_before[partition]
        if len({racks.get(b) or b for b in row}) < len({racks[b] or b for b in before if b in racks}):
            yield f"the replicas of partition {partition}, {list(row)}, are on fewer racks than {list(before)}"


def _contradictions(change: ReassignTopic, desired: DesiredTopic) -> Iterator[str]:
    if desired.lifecycle is not Lifecycle.PRESENT:
        yield f"its file says {desired.lifecycle} ({desired.location})"
    elif desired.assignment is not None:
        yield f"its file gives its replicas by hand ({desired.location_of('assignment')})"
    elif {len(row) for row in change.assignment.values()} != {desired.replication_factor}:
        place = desired.location_of("replicationFactor")
        yield f"its file asks for replication factor {desired.replication_factor} ({place})"
