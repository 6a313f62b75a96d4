"""The rows that the quality rules check, made from specs and a snapshot by plain Python: what Spark is held to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from topicops.features.quality.rules import (
    Afterwards,
    BrokerRow,
    ConfigZnodeRow,
    DifferenceRow,
    InputsRow,
    ListedTopicRow,
    LiveConfigRow,
    RowKind,
    SpecConfigRow,
    SpecRow,
    TopicRow,
    cluster_row,
    deletion_rows,
)
from topicops.model.cluster.health import health_of
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.memory import TOPICS_AT_ONCE, in_parts
from topicops.model.release import Release
from topicops.model.runs.facts import PartitionRow, partition_rows
from topicops.model.specs.config_checks import config_problem, value_problem
from topicops.model.specs.desired import Desired, DesiredTopic
from topicops.model.specs.environment import Environment
from topicops.model.specs.topic_config import THROTTLE_LISTS, min_insync_replicas

Value = TypeVar("Value")
Part = Mapping[RowKind, Collection[NamedTuple]]
Rows = Callable[[], Iterable[Part]]
"""Makes all rows of a suite anew, some of each kind at a time. A kind that never comes is not known."""


def rows_before(desired: Desired, live: ClusterSnapshot, environment: Environment, inputs: InputsRow) -> Iterator[Part]:
    """Yield the rows for: may the inputs be trusted, and is the cluster ready for changes?"""
    release = environment.spec.cluster.release
    yield {"inputs": [inputs]}
    for described in _parts(desired.topics):
        specs = described.values()
        yield {"spec": spec_rows(specs), "spec_config": [*_spec_config_rows(specs, release)]}
    for part in _parts(live.topics):
        topics = part.values()
        yield {
            "listed": [_listed_row(live, topic) for topic in topics],
            "live_config": [
                LiveConfigRow(topic.name, config, config_problem(config, text, release))
                for topic in topics
                for config, text in topic.overrides.items()
            ],
        }


def rows_after(live: ClusterSnapshot, afterwards: Afterwards) -> Iterator[Part]:
    """Yield the rows for: is the result healthy? The snapshot must have partition states."""
    brokers = BrokerTally(live.brokers)
    for part in _parts(live.topics):
        topics, partitions = part.values(), [*partition_rows(replace(live, topics=part))]
        brokers.count(partitions)
        yield {
            "partition": partitions,
            "topic": [_topic_row(live, topic, afterwards) for topic in topics],
            "config_znode": [ConfigZnodeRow(topic.name, has_topic=True) for topic in topics if topic.overrides],
        }
    yield {
        "partition": (),  # these two are known too where the cluster has no topic
        "topic": (),
        "broker": brokers.rows(),
        "deletion": deletion_rows(live, afterwards),
        "config_znode": [ConfigZnodeRow(name, has_topic=False) for name in live.orphan_configs],
        "cluster": [cluster_row(live, afterwards)],
    }
    if afterwards.differences is not None:
        yield {"difference": [DifferenceRow(*found) for found in afterwards.differences.items()]}


def _parts(topics: Mapping[str, Value]) -> Iterator[Mapping[str, Value]]:
    return in_parts(topics, list(topics), size=TOPICS_AT_ONCE)


def _spec_config_rows(topics: Iterable[DesiredTopic], release: Release) -> Iterator[SpecConfigRow]:
    for topic in topics:
        for config, text in topic.configs.items():
            if text is not None:
                yield SpecConfigRow(topic.name, config, value_problem(config, text, release))


def spec_rows(topics: Iterable[DesiredTopic]) -> list[SpecRow]:
    described = list(topics)
    counts = Counter(topic.name for topic in described)
    return [
        SpecRow(
            topic=topic.name,
            file=topic.location.file,
            owner=topic.owner,
            domain=topic.domain,
            lifecycle=topic.lifecycle.value,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            configs=tuple((name, text) for name, text in sorted(topic.configs.items()) if text is not None),
            described=counts[topic.name],
        )
        for topic in described
    ]


class BrokerTally:
    """Counts, by broker, the partitions that prefer it, and those of them that it leads."""

    def __init__(self, live: Collection[int]) -> None:
        self._preferred, self._led = Counter(dict.fromkeys(live, 0)), Counter[int]()

    def count(self, partitions: Iterable[PartitionRow]) -> None:
        for row in partitions:
            if row.replicas:
                self._preferred[row.replicas[0]] += 1
                self._led[row.replicas[0]] += row.leader == row.replicas[0]

    def rows(self) -> list[BrokerRow]:
        return [BrokerRow(broker, self._preferred[broker], self._led[broker]) for broker in sorted(self._preferred)]


def _topic_row(live: ClusterSnapshot, topic: LiveTopic, afterwards: Afterwards) -> TopicRow:
    factors = topic.replication_factors or {0}
    known = (afterwards.known_identities or {}).get(topic.name)
    return TopicRow(
        topic=topic.name,
        is_managed=topic.name in afterwards.managed,
        partitions=topic.partitions,
        lowest_partition=min(topic.assignment, default=0),
        highest_partition=max(topic.assignment, default=-1),
        fewest_replicas=min(factors),
        most_replicas=max(factors),
        min_insync_replicas=min_insync_replicas(topic.overrides, live.broker_defaults),
        is_reassigning=topic.is_reassigning or topic.name in live.reassigning,
        is_throttled=any(topic.overrides.get(name) for name in THROTTLE_LISTS),
        is_own_move=topic.name in afterwards.own_moves,
        identity=topic.identity_after(known),
        known_identity=known,
        is_own=topic.identity in afterwards.own_topic_identities,
        configs=tuple(topic.overrides.items()),
    )


def _listed_row(live: ClusterSnapshot, topic: LiveTopic) -> ListedTopicRow:
    has_health = topic.states is not None and topic.name not in live.deleting
    offline = sum(health_of(topic, p, live.brokers).is_offline for p in topic.assignment) if has_health else 0
    return ListedTopicRow(
        topic=topic.name,
        listed_partitions=topic.partitions,
        empty_partitions=sum(not replicas for replicas in topic.assignment.values()),
        offline_partitions=offline,
        is_unstable=topic.unstable,
    )
