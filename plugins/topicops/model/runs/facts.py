"""Facts of a run, counted by owner and domain, and by broker and rack. They are shown; nothing is decided by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Literal, NamedTuple

from topicops.model.choices import Source
from topicops.model.cluster.health import health_of
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.model.json_types import FormatVersion
from topicops.model.plans.delta import TopicClass
from topicops.model.specs.topic_config import min_insync_replicas, needed_in_sync

FactsWhen = Literal["before", "after"]
"""Snapshot that facts come from: the run's first one, or the one after the changes."""

CAUSES: Mapping[str, str] = {
    Code.Q11: "without a live leader",
    Code.Q13: "with fewer in-sync replicas than min.insync.replicas",
    Code.Q26: "led by a broker outside the ISR",
    Code.Q27: "with a replica on a broker that is not registered",
    Code.Q12: "with a replica outside the ISR",
    Code.Q15: "on fewer racks than possible",
}
"""Words for unhealthy partitions by the quality rule that they break; the gravest first."""
DRIFT_CLASSES = (TopicClass.MISSING, TopicClass.DIFFERENT, TopicClass.TOMBSTONED)
"""Classes of topics that differ from their files."""


Owner = tuple[str | None, str | None]
"""Owner and domain (the folder) of a topic's file; None, None of topics that no file names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerCounts:
    """What one owner has in one domain, in the run's first snapshot."""

    owner: str | None
    """Owner of the topics; None means that no file names them."""
    domain: str | None
    """The folder of the files; None as for the owner."""
    missing: int
    """Number of topics that files want and that are not live."""
    different: int
    """Number of topics that differ from their files."""
    tombstoned: int
    """Number of live topics that a tombstone deletes."""
    topics: int | None = None
    """Number of topics that are live, or that files want; None, as in the next one, in files of earlier versions."""
    partitions: int | None = None
    """Number of live partitions."""
    unhealthy: int | None = None
    """Number of partitions that break a rule of ``CAUSES``; None means that partition states were not read."""

    @property
    def differing(self) -> tuple[int, ...]:
        """Topics that are not as their files want them, in the order of ``DRIFT_CLASSES``."""
        return self.missing, self.different, self.tombstoned


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one broker, or one rack, holds. While a reassignment runs, its target counts."""

    broker: int | None
    """Broker id; None means all live brokers of the rack together."""
    rack: str | None
    is_live: bool
    """A broker that is not registered can still be named by an assignment."""
    partitions: int | None
    """Partitions with a replica here; None for a rack where partition states were not read."""
    replicas: int
    preferred_leaders: int
    """Partitions whose first replica is here."""
    leaders: int | None
    """Partitions whose state names a leader here; None means that states were not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnhealthyPartitions:
    """How many partitions one broker makes unhealthy, for one cause. Topics that are being deleted do not count."""

    broker: int | None
    """Broker that is the cause; None means that no single broker is."""
    rack: str | None
    rule: str
    """The quality rule that they break, a key of ``CAUSES``."""
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts of one snapshot: ``facts-before.json`` or ``facts-after.json``."""

    owners: tuple[OwnerCounts, ...] = ()
    """By owner, then domain; empty if files and cluster were not compared."""
    load: tuple[Load, ...]
    """Racks by name, then brokers by id."""
    unhealthy: tuple[UnhealthyPartitions, ...]
    """Unhealthy partitions by broker, then in the order of ``CAUSES``."""
    has_states: bool
    """Whether partition states were read; without them leaders and unhealthy partitions are not known."""
    format_version: FormatVersion = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCounts:
    """What is counted over all partitions."""

    replicas: Mapping[int, int]
    """Replicas by broker."""
    preferred: Mapping[int, int]
    leaders: Mapping[int, int] | None = None
    """Leaders by broker; None, as in the other two, means that partition states were not read."""
    rack_partitions: Mapping[str, int] | None = None
    """Partitions with a replica on a live broker of the rack."""
    unhealthy: Mapping[tuple[str, int | None], int] | None = None
    """Unhealthy partitions by rule and broker."""
    unhealthy_by_owner: Mapping[Owner, int] | None = None
    """Partitions that break a rule of ``CAUSES``."""


def facts_file(when: FactsWhen) -> str:
    """Return the artifact's name in a run's folder."""
    return f"facts-{when}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Facts of the run's first snapshot, as ``run.json`` has them."""

    read_at: datetime
    """Time after the last read, UTC."""
    source: Source
    cluster_id: str
    topics: int
    """Number of topics."""
    partitions: int
    """Number of partitions of all topics."""
    brokers: int
    """Number of live brokers."""
    topics_at_last_good_snapshot: int | None
    """Number of topics at the last good snapshot before this one; None means that there was none."""
    host: str
    """Name of the host that read."""
    home: str
    """Token of the home."""
    brokers_run: str | None = None
    """Releases of the brokers; None means that no one asked, or no broker answered."""


class PartitionRow(NamedTuple):
    """One row per partition; key ``topic``, ``partition``. During a reassignment its target counts as the replicas."""

    topic: str
    partition: int
    leader: int
    """Id of the leader; -1 means none."""
    leader_is_live: bool
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    missing_replicas: tuple[int, ...]
    """Replicas that are not in sync, without those that a reassignment adds."""
    dead_replicas: tuple[int, ...]
    """Replicas on brokers that are not registered."""
    min_isr: int
    """Number that the leader enforces: never more than the number of replicas."""
    racks_used: int
    racks_possible: int
    """Over how many racks these replicas could be spread; 0 where a broker's rack is not known."""


def partition_rows(live: ClusterSnapshot) -> Iterator[PartitionRow]:
    """Yield one row per partition, without topics that are being deleted.

    Raises ``ValueError``: The snapshot has no partition states.
    """
    spread = cache(partial(_spread, live))  # many partitions share few sets of replicas
    for topic in live.topics.values():
        if topic.name not in live.deleting:
            yield from _rows_of_topic(live, topic, spread)


class _Spread(NamedTuple):
    """What depends on the replicas alone."""

    dead: tuple[int, ...]
    racks_used: int
    racks_possible: int


def _rows_of_topic(
    live: ClusterSnapshot, topic: LiveTopic, spread: Callable[[tuple[int, ...]], _Spread]
) -> Iterator[PartitionRow]:
    if topic.states is None:
        raise ValueError(f"{topic.name}: the snapshot was read without partition states")
    least = min_insync_replicas(topic.overrides, live.broker_defaults)
    for partition, replicas in topic.target_assignment.items():
        health, found = health_of(topic, partition, live.brokers), spread(replicas)
        yield PartitionRow(
            topic=topic.name,
            partition=partition,
            leader=health.leader,
            leader_is_live=not health.is_offline,
            replicas=replicas,
            isr=health.isr,
            missing_replicas=health.missing,
            dead_replicas=found.dead,
            min_isr=needed_in_sync(least, len(replicas), live.releases),
            racks_used=found.racks_used,
            racks_possible=found.racks_possible,
        )


def _spread(live: ClusterSnapshot, replicas: tuple[int, ...]) -> _Spread:
    dead = tuple(broker for broker in replicas if broker not in live.brokers)
    racks = {live.racks.get(broker) for broker in replicas}
    everywhere = set(live.racks.values())
    if None in racks | everywhere:
        return _Spread(dead, len(racks), 0)
    return _Spread(dead, len(racks), min(len(replicas), len(everywhere)))


def owners_with_drift(facts: Facts) -> list[OwnerCounts]:
    """Return the owners of topics that differ from their files, the one with the most such topics first."""
    found = [counts for counts in facts.owners if any(counts.differing)]
    return sorted(found, key=lambda counts: (-sum(counts.differing), counts.owner or "", counts.domain or ""))
