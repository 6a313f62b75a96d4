"""Random clusters and specs for them, each from one seed, with every unusual state that can occur."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from random import Random

from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic, PartitionState
from topicops.model.specs.desired import Desired, DesiredTopic
from topicops.model.specs.environment import Environment, Limits, Policy, Risk
from topicops.testing.builders import (
    NOW,
    desired_like,
    desired_of,
    desired_topic,
    environment,
    healthy_states,
    live_topic,
    location,
    partition_state,
    paused_topic,
    snapshot,
    tombstone,
    topic_id,
)

NAMES = ("ledger", "orders", "orders.dlq", "orders_dlq", "refunds", "shop.cart", "stock", "__internal", "zebra")
BROKERS = (1, 2, 3, 10, 11, 12)
SPELLINGS = {
    "retention.ms": ("1000", " 01000", "5000", "-1", "soon"),
    "min.insync.replicas": ("1", "2", "+2"),
    "cleanup.policy": ("delete", "compact , delete", "delete,compact"),
    "preallocate": ("true", "TRUE", "false"),
    "leader.replication.throttled.replicas": ("*",),
    "some.newer.config": ("x",),
}
"""Live overrides; a spec never asks for those that only brokers may have."""
WANTED = {
    "retention.ms": ("1000", "5000", "-1", None),
    "min.insync.replicas": ("1", "2", None),
    "cleanup.policy": ("compact,delete", "delete", None),
    "preallocate": ("true", "false", None),
}
DEFAULTS = {"retention.ms": "604800000", "min.insync.replicas": "1", "cleanup.policy": "delete", "preallocate": "false"}


@dataclass(frozen=True)
class World:
    """One cluster and its specs.

    Args:
        seed: All follows from it.
        is_whole: Nothing is odd or in motion; all that is planned can be done.

    """

    seed: int
    is_whole: bool = False

    @cached_property
    def live(self) -> ClusterSnapshot:
        random = self._random("live")
        racks = _racks(random, mixed=not self.is_whole)
        names = _some(random, NAMES)
        topics = [_live(random, name, tuple(racks), is_whole=self.is_whole) for name in names]
        if self.is_whole:
            return snapshot(*topics, racks=racks, broker_defaults=random.choice((None, DEFAULTS)))
        return snapshot(
            *topics,
            racks={broker: rack for broker, rack in racks.items() if random.random() < 0.9} or racks,
            deleting=dict.fromkeys(_few(random, NAMES), 1000),
            reassigning=frozenset(_few(random, names)),
            orphan_configs=frozenset(_few(random, NAMES)) - set(names),
            broker_defaults=random.choice((None, DEFAULTS)),
            controller_id=random.choice((1, 1, None)),
        )

    @cached_property
    def desired(self) -> Desired:
        random = self._random("desired")
        return desired_of(*(_desired(random, name, self.live.topics.get(name)) for name in _some(random, NAMES)))

    @cached_property
    def environment(self) -> Environment:
        random = self._random("environment")
        limits = Limits(
            deletes_per_run=random.randint(0, 3),
            deletes_percent=random.choice((0, 5, 30, 100)),
            replicas_per_run=random.choice((0, 10, 3000)),
            expansion_factor=random.randint(1, 4),
        )
        policy = Policy(
            unlisted_configs=random.choice(("report", "remove")),
            alterable_configs=random.choice((None, ("retention.ms", "preallocate"))),
            unattended=random.choice(list(Risk)),
            protected_topics=random.choice(((), ("led*",))),
        )
        return environment(limits=limits, policy=policy, min_live_brokers=random.randint(1, 4))

    def _random(self, part: str) -> Random:
        return Random(f"{self.seed} {part}")  # noqa: S311  # worlds, not secrets


def _some(random: Random, names: tuple[str, ...]) -> list[str]:
    return random.sample(names, random.randint(0, len(names)))


def _few(random: Random, names: tuple[str, ...] | list[str]) -> list[str]:
    return [name for name in names if random.random() < 0.08]


def _racks(random: Random, *, mixed: bool) -> dict[int, str | None]:
    brokers = random.sample(BROKERS, random.randint(1, len(BROKERS)))
    choices: list[list[str | None]] = [[None], ["a"], ["a", "b"], ["a", "b", "c"]]
    words = ["a", None] if mixed and random.random() < 0.1 else random.choice(choices)
    return {broker: random.choice(words) for broker in brokers}


def _live(random: Random, name: str, brokers: tuple[int, ...], *, is_whole: bool) -> LiveTopic:
    factor = random.randint(1, min(3, len(brokers)))
    rows = {p: tuple(random.sample(brokers, factor)) for p in range(random.randint(1, 5))}
    overrides = {config: random.choice(SPELLINGS[config]) for config in SPELLINGS if random.random() < 0.3}
    states = random.choice((None, healthy_states(rows)))
    if is_whole:
        return live_topic(name, assignment=rows, overrides=overrides, states=states)
    return live_topic(
        name,
        assignment=_odd_rows(random, rows),
        adding={0: (brokers[0],)} if random.random() < 0.05 else {},
        overrides=overrides,
        unstable=random.random() < 0.05,
        topic_id=random.choice((topic_id(name), topic_id(name), None)),
        states=_odd_states(random, states),
    )


def _odd_rows(random: Random, rows: Assignment) -> Assignment:
    luck = random.random()
    if luck < 0.06:
        return {p + 2 * (p > 0): row for p, row in rows.items()}
    if luck < 0.12:
        return {p: row if p else row[:1] for p, row in rows.items()}
    return rows


def _odd_states(random: Random, states: dict[int, PartitionState] | None) -> dict[int, PartitionState] | None:
    if states is None or random.random() < 0.7:
        return states
    return {p: partition_state(state.isr[:1]) for p, state in states.items()}


def _desired(random: Random, name: str, live: LiveTopic | None) -> DesiredTopic:
    luck = random.random()
    if luck < 0.25:
        not_before = random.choice((None, NOW - timedelta(days=1), NOW + timedelta(days=1)))
        wanted_id = random.choice((None, None, live.topic_id if live else None, "somebody-elses"))
        return tombstone(name, not_before=not_before, topic_id=wanted_id)
    if luck < 0.35:
        return paused_topic(name, random.randint(1, 6), until=NOW + timedelta(days=random.choice((-1, 0, 1))))
    if luck < 0.5 and live is not None:
        return desired_like(live)
    return _wanted(random, name, live)


def _wanted(random: Random, name: str, live: LiveTopic | None) -> DesiredTopic:
    partitions = random.randint(1, 8)
    factor = min(live.replication_factors) if live and random.random() < 0.7 else random.randint(1, 3)
    configs = {config: random.choice(WANTED[config]) for config in WANTED if random.random() < 0.4}
    by_hand = {p: tuple(random.sample(BROKERS, factor)) for p in range(partitions)} if random.random() < 0.1 else None
    fields = random.sample(["partitions", "replicationFactor", *(f"configs.{c}" for c in configs)], 2)
    return desired_topic(
        name,
        partitions,
        replication_factor=factor,
        keyed=random.random() < 0.5,
        placement=random.choice(("balanced", "kafka")),
        rack_aware=random.random() < 0.8,
        assignment=by_hand,
        configs=configs,
        locations={field: location(name, line) for line, field in enumerate(fields, start=7)},
    )
