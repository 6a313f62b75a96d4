"""The rows that the quality rules check, made from specs and a snapshot by plain Python: what Spark is held to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

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
from topicops.model.memory import in_turn
from topicops.model.runs.facts import PartitionRow, partition_rows
from topicops.model.specs.config_checks import config_problem, value_problem
from topicops.model.specs.desired import Desired, DesiredTopic
from topicops.model.specs.environment import Environment
from topicops.model.specs.topic_config import THROTTLE_LISTS, min_insync_replicas

Rows = Mapping[RowKind, Callable[[], Iterable[NamedTuple]]]
"""Makes all rows of a kind, each time anew. A kind that is left out is not known."""


def rows_before(desired: Desired, live: ClusterSnapshot, environment: Environment, inputs: InputsRow) -> Rows:
    """Return the rows for: may the inputs be trusted, and is the cluster ready for changes?"""
    release = environment.spec.cluster.release
    return {
        "spec": lambda: spec_rows(in_turn(desired.topics)),
        "spec_config": lambda: (
            SpecConfigRow(topic.name, config, value_problem(config, text, release))
            for topic in in_turn(desired.topics)
            for config, text in topic.configs.items()
            if text is not None
        ),
        "listed": lambda: (_listed_row(live, topic) for topic in in_turn(live.topics)),
        "live_config": lambda: (
            LiveConfigRow(topic.name, config, config_problem(config, text, release))
            for topic in in_turn(live.topics)
            for config, text in topic.overrides.items()
        ),
        "inputs": lambda: [inputs],
    }


def rows_after(live: ClusterSnapshot, afterwards: Afterwards) -> Rows:
    """Return the rows for: is the result healthy? The snapshot must have partition states."""
    rows: dict[RowKind, Callable[[], Iterable[NamedTuple]]] = {
        "partition": lambda: partition_rows(live),
        "topic": lambda: (_topic_row(live, topic, afterwards) for topic in in_turn(live.topics)),
        "broker": lambda: broker_rows(live.brokers, partition_rows(live)),
        "deletion": lambda: deletion_rows(live, afterwards),
        "config_znode": lambda: _config_znode_rows(live),
        "cluster": lambda: [cluster_row(live, afterwards)],
    }
    if (differences := afterwards.differences) is not None:
        rows["difference"] = lambda: (DifferenceRow(*found) for found in differences.items())
    return rows


def _config_znode_rows(live: ClusterSnapshot) -> Iterator[ConfigZnodeRow]:
    yield from (ConfigZnodeRow(topic.name, has_topic=True) for topic in in_turn(live.topics) if topic.overrides)
    yield from (ConfigZnodeRow(name, has_topic=False) for name in live.orphan_configs)


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


def broker_rows(live: Collection[int], partitions: Iterable[PartitionRow]) -> list[BrokerRow]:
    preferred, led = Counter(dict.fromkeys(live, 0)), Counter[int]()
    for row in partitions:
        if row.replicas:
            preferred[row.replicas[0]] += 1
            led[row.replicas[0]] += row.leader == row.replicas[0]
    return [BrokerRow(broker, preferred[broker], led[broker]) for broker in sorted(preferred)]


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
