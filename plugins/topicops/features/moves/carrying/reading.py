"""What one step reads of the cluster, and what became of a move by that reading."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from topicops.features.moves.carrying.ports import BrokerNow, Listed, MoveCluster, PartitionNow, TopicNow
from topicops.features.moves.record import MovesRecord, Moving, PartitionMove, TopicMove, TopicPartition


class Now(StrEnum):
    """How a partition that was asked to move is now."""

    MOVES = "moves"
    """Kafka lists it, on its way to our target."""
    ENDED = "ended"
    """It is not listed; the replicas are the target, and all of them are in sync."""
    LAGS = "lags"
    """It is not listed; the replicas are the target, and one of them is not in sync (KAFKA-15665, KAFKA-19975)."""
    BACK = "back"
    """It is not listed; the replicas are the origin."""
    OTHER = "other"
    """It moves elsewhere, or has replicas that are neither origin nor target."""
    GONE = "gone"
    """Its topic does not exist any more; one of that name is another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The cluster at one time: first what moves, then the topics, then the live brokers."""

    names: frozenset[str]
    """Topics that were asked for."""
    listed: Mapping[TopicPartition, Listed]
    topics: Mapping[str, TopicNow]
    brokers: Mapping[int, BrokerNow]

    def topic_of(self, move: TopicMove) -> TopicNow | None:
        """Return the topic that the move is of; None means that it does not exist any more."""
        topic = self.topics.get(move.topic)
        return topic if topic is not None and topic.is_same(move.identity) else None

    def partition_of(self, moving: Moving) -> PartitionNow | None:
        topic = self.topic_of(moving.move)
        return topic.partitions.get(moving.at.partition) if topic else None

    def of(self, moving: Moving) -> Now:
        """Say how a partition is by this reading."""
        listed, now, found = self.listed.get(moving.at), self.partition_of(moving), moving.found
        if self.topic_of(moving.move) is None:
            return Now.GONE
        if listed is not None:
            return Now.MOVES if leads_to(listed, found.target) else Now.OTHER
        if now is not None and now.replicas == found.target:
            return Now.ENDED if set(found.target) <= set(now.isr) else Now.LAGS
        return Now.BACK if now is not None and is_back(found, now.replicas) else Now.OTHER


def is_back(found: PartitionMove, replicas: tuple[int, ...]) -> bool:
    """Return whether these replicas are the origin.

    After a cancel they may be in the order of the target: controllers take the new ones out of all replicas.
    """
    return replicas == found.origin or (found.seen and set(replicas) == set(found.origin))


def leads_to(listed: Listed, target: Collection[int]) -> bool:
    """Return whether a move that Kafka lists ends with these replicas, in any order."""
    return set(listed.replicas) - set(listed.removing) == set(target)


def read(cluster: MoveCluster, topics: Collection[str]) -> Reading:
    """Read what moves, these topics and the live brokers. Raises ``ClusterError``."""
    listed = cluster.listed()
    return Reading(names=frozenset(topics), listed=listed, topics=cluster.topics(topics), brokers=cluster.brokers())


def concerned(record: MovesRecord) -> frozenset[str]:
    """Return the topics that the record has more of than moves that wait: those were asked for once, or owe entries."""
    return frozenset(move.topic for move in record.topics if _is_concerned(move))


def _is_concerned(move: TopicMove) -> bool:
    return (
        bool(move.leader_entries or move.follower_entries)
        or not move.partitions
        or any(found.asked_at is not None for found in move.partitions.values())
    )
