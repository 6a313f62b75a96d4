"""Why a topic is not healthy, in sentences: one for each cause, with the partitions that it is about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from topicops.model.cluster.health import PartitionHealth
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.steps.listed_partitions import listed_partitions
from topicops.steps.verifying.observation import broker_names, partition_names


def health_lines(live: ClusterSnapshot, topic: LiveTopic) -> Iterator[str]:
    """Yield the gravest first; nothing for a healthy topic.

    Args:
        live: The snapshot that the topic is of; its own topics are not looked at.
    """
    if topic.states is None:
        yield "Its partition states were not read."
        return
    causes: dict[tuple[int, str], list[int]] = defaultdict(list)
    for partition in listed_partitions(live, topic):
        for cause in _causes(live, partition.health):
            causes[cause].append(partition.id)
    for (_, sentence), partitions in sorted(causes.items()):
        subject = partition_names(partitions)
        yield f"{subject[0].upper()}{subject[1:]}: {sentence}."


def _causes(live: ClusterSnapshot, health: PartitionHealth) -> Iterator[tuple[int, str]]:
    if health.is_offline:
        dead = f"{broker_names([health.leader])}, its leader, is not registered" if health.leader >= 0 else ""
        yield 0, f"no leader, so nobody can read or write: {dead or 'no replica in sync is alive'}"
    elif health.is_under_min_isr:
        least = f"{len(health.isr)} in sync where min.insync.replicas asks for {health.min_isr}"
        yield 1, f"{least}: producers with acks=all are refused"
    if health.missing and health.isr and health.is_under_replicated:
        yield 2, f"{_named(health.missing, live.brokers)} not in the ISR"


def _named(missing: Collection[int], registered: Collection[int]) -> str:
    gone = [broker for broker in missing if broker not in registered]
    slow = [broker for broker in missing if broker in registered]
    parts = [
        f"{broker_names(gone)} (not registered)" if gone else "",
        f"{broker_names(slow)} (registered, and behind)" if slow else "",
    ]
    return f"{' and '.join(filter(None, parts))} {'is' if len(missing) == 1 else 'are'}"
