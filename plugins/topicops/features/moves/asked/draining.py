"""Drains: which topics have replicas on a broker that is to be emptied, and what keeps them there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from topicops.features.moves.asked.wanted import refusal_of
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.memory import in_parts
from topicops.model.printable import plural
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Environment
from topicops.model.specs.topic_config import canonical_overrides
from topicops.steps.planning.blocking import moves_command

TOPICS_AT_ONCE = 2_000
MOST_NAMED = 5
"""Most topics that a sentence names."""


def drained_topics(live: ClusterSnapshot, environment: Environment) -> Mapping[str, int]:
    """Return how many partitions each topic has on brokers of ``cluster.draining``, once accepted moves have ended."""
    draining = frozenset(environment.spec.cluster.draining)
    if not draining or environment.spec.cluster.is_managed:
        return {}
    if live.totals and draining.isdisjoint(b for b, held in live.totals.replicas.items() if held):
        return {}  # moves that are accepted never lead to such a broker
    found: dict[str, int] = {}
    topics = live.with_accepted_moves.topics
    for part in in_parts(topics, sorted(topics.keys() - live.deleting.keys()), size=TOPICS_AT_ONCE):
        for name, topic in part.items():
            if partitions := sum(not draining.isdisjoint(row) for row in topic.target_assignment.values()):
                found[name] = partitions
    return found


def undescribed_topics(
    drained: Mapping[str, int], desired: Desired, live: ClusterSnapshot, environment: Environment
) -> Mapping[str, DesiredTopic]:
    """Return the topics that no file describes and that the policy lets a drain move, each as it is."""
    if environment.spec.policy.drain_unmanaged == "refuse":
        return {}
    topics = live.with_accepted_moves.topics
    return {name: as_it_is(topics[name], environment) for name in sorted(_undescribed(drained, desired))}


def _undescribed(drained: Mapping[str, int], desired: Desired) -> set[str]:
    return drained.keys() - desired.topics.keys() - desired.left_out


def as_it_is(topic: LiveTopic, environment: Environment) -> DesiredTopic:
    """Return what a file of the live topic would ask for; the place is that of ``cluster.draining``."""
    return DesiredTopic(
        name=topic.name,
        owner="",
        location=environment.locations.get("cluster.draining", Location(environment.file, 1, 1)),
        partitions=topic.partitions,
        replication_factor=max(topic.replication_factors, default=0),
        configs=dict(canonical_overrides(topic.overrides)),
    )


def plan_notes(
    drained: Mapping[str, int], desired: Desired, live: ClusterSnapshot, environment: Environment
) -> Iterator[str]:
    """Yield what a plan says of drains that do not end with it, and of accepted moves of paused topics."""
    yield from _drain_notes(drained, desired, live, environment)
    yield from _paused_notes(desired, live, environment)


def _drain_notes(
    drained: Mapping[str, int], desired: Desired, live: ClusterSnapshot, environment: Environment
) -> Iterator[str]:
    """Yield why brokers of ``cluster.draining`` are not empty after this plan, beside topics that are blocked."""
    if not drained:
        return
    if refusal := refusal_of(live, environment):
        yield _not_empty(drained, drained, refusal.reason, environment)
        return
    unmanaged = _undescribed(drained, desired)
    if unmanaged and environment.spec.policy.drain_unmanaged == "refuse":
        place = environment.place_of("policy.drainUnmanaged")
        why = f"no file describes these topics, and policy.drainUnmanaged refuses to move them ({place})"
        yield _not_empty(unmanaged, drained, why, environment)
    described = drained.keys() & desired.topics.keys()
    if paused := {name for name in described if desired.topics[name].lifecycle is Lifecycle.PAUSED}:
        yield _not_empty(paused, drained, "these topics are paused", environment)


def _paused_notes(desired: Desired, live: ClusterSnapshot, environment: Environment) -> Iterator[str]:
    """Yield a sentence for each topic whose file pauses it while moves of it are accepted."""
    for name in sorted(live.accepted_moves.keys() & desired.topics.keys()):
        if desired.topics[name].lifecycle is Lifecycle.PAUSED:
            cancel = moves_command(environment.name, cancel=name)
            yield f"the file of {name} pauses it, and moves of its replicas are accepted: {cancel} takes them back"


def _not_empty(topics: Iterable[str], drained: Mapping[str, int], why: str, environment: Environment) -> str:
    names, draining = sorted(topics), environment.spec.cluster.draining
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    partitions = plural(sum(drained[name] for name in names), "partition")
    return (
        f"{brokers_text(draining)} ({environment.place_of('cluster.draining')}) {'are' if draining[1:] else 'is'} not "
        f"empty after this plan, because {why}: {plural(len(names), 'topic')} with {partitions} there "
        f"({', '.join(names[:MOST_NAMED])}{more})"
    )
