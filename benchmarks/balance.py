"""How evenly each placement spreads replicas and leaders: a count over seeded worlds, the same on every machine.

A world is a cluster with a load, some topics to create and some to expand. Both placements plan all of them, each on
its own, and the spread is looked at after that: what the fullest broker holds more than the emptiest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from random import Random
from statistics import mean

from benchmarks.harness import Benchmark, Comparison, Side
from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement import place
from topicops.steps.planning.placement.request import Load, PlacementRequest

PLACEMENTS = ("balanced", "kafka")
SHARE = 0.99
"""Of the worlds in which ``balanced`` must be as even as ``kafka``, or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A topic to create, or one to expand."""

    topic: str
    partitions: int
    replication_factor: int
    existing: Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    racks: Mapping[int, str | None]
    live: Sequence[Assignment]
    """Of all topics that are there, those to expand included."""
    wishes: Sequence[Wish]

    @property
    def is_even(self) -> bool:
        """Racks of one size."""
        return len(set(Counter(self.racks.values()).values())) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Of one world after one placement: most minus least over the brokers."""

    replicas: int
    leaders: int
    topic_replicas: Sequence[int]
    """Of each topic that was created or expanded."""
    topic_leaders: Sequence[int]
    new_topics: Sequence[int]
    """The larger of both for each topic that was created."""


MEASURES: Mapping[str, Callable[[Spread], float]] = {
    "replicas-in-the-cluster": lambda spread: spread.replicas,
    "leaders-in-the-cluster": lambda spread: spread.leaders,
    "replicas-of-a-topic": lambda spread: mean(spread.topic_replicas),
    "leaders-of-a-topic": lambda spread: mean(spread.topic_leaders),
}


def world(seed: int) -> World:
    """3 to 24 brokers on 1 to 4 racks, or on none; up to a third of them new and empty, the others unlike."""
    dice = Random(seed)
    brokers = sorted(dice.sample(range(1, 100), dice.randint(3, 24)))
    new = dice.sample(brokers, dice.randint(0, len(brokers) // 3))
    weights = {broker: dice.choice((1, 1, 2, 4)) for broker in brokers if broker not in new}
    live = [_rows(dice, weights) for _ in range(dice.randint(0, 40))]
    wishes = [_creation(dice, f"new-{n}", len(brokers)) for n in range(dice.randint(1, 20))]
    growing = live[: dice.randint(0, min(5, len(live)))]
    wishes += [_expansion(dice, f"old-{n}", rows) for n, rows in enumerate(growing)]
    return World(racks=_racks(dice, brokers), live=live, wishes=wishes)


def _racks(dice: Random, brokers: Sequence[int]) -> Mapping[int, str | None]:
    """As even as can be, or by chance, or none; every rack has a broker."""
    names = [f"rack-{n}" for n in range(dice.randint(1, min(4, len(brokers))))]
    by_turns = (names * len(brokers))[: len(brokers)]
    by_chance = [*names, *dice.choices(names, k=len(brokers) - len(names))]
    chosen = dice.choice((by_turns, by_turns, by_chance, [None] * len(brokers)))
    return dict(zip(brokers, chosen, strict=True))


def _rows(dice: Random, weights: Mapping[int, int]) -> Assignment:
    """A topic that somebody has placed without care."""
    size = dice.randint(1, min(3, len(weights)))
    return {partition: _row(dice, dict(weights), size) for partition in range(dice.choice((1, 3, 6, 12)))}


def _row(dice: Random, weights: dict[int, int], size: int) -> tuple[int, ...]:
    row: list[int] = []
    while len(row) < size:
        row += dice.choices(list(weights), list(weights.values()))
        del weights[row[-1]]
    return tuple(row)


def _creation(dice: Random, topic: str, brokers: int) -> Wish:
    partitions = dice.choice((1, 2, 3, 4, 6, 8, 12, 16, 24))
    return Wish(topic=topic, partitions=partitions, replication_factor=dice.randint(1, min(3, brokers)), existing={})


def _expansion(dice: Random, topic: str, rows: Assignment) -> Wish:
    partitions = len(rows) + dice.randint(1, 12)
    return Wish(topic=topic, partitions=partitions, replication_factor=len(rows[0]), existing=rows)


def spread_after(placement: str, world: World) -> Spread:
    load = Load.of(world.live)
    topics: list[tuple[Wish, Load]] = []
    for wish in world.wishes:
        rows = place(placement, _request(wish, world, load))
        load = load.plus(rows)
        topics.append((wish, Load.of([wish.existing, rows])))
    apart = [(wish, _apart(found.replicas, world), _apart(found.leaders, world)) for wish, found in topics]
    return Spread(
        replicas=_apart(load.replicas, world),
        leaders=_apart(load.leaders, world),
        topic_replicas=[replicas for _, replicas, _ in apart],
        topic_leaders=[leaders for *_, leaders in apart],
        new_topics=[max(replicas, leaders) for wish, replicas, leaders in apart if not wish.existing],
    )


def _request(wish: Wish, world: World, load: Load) -> PlacementRequest:
    return PlacementRequest(
        topic=wish.topic,
        partitions=wish.partitions,
        replication_factor=wish.replication_factor,
        racks=world.racks,
        existing=wish.existing,
        load=load,
    )


def _apart(held: Mapping[int, int], world: World) -> int:
    counts = [held.get(broker, 0) for broker in world.racks]
    return max(counts) - min(counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Both placements in every world, by seed."""

    worlds: Sequence[World]
    spreads: Mapping[str, Sequence[Spread]]
    """By placement."""

    def mean(self, placement: str, measure: str) -> float:
        return mean(MEASURES[measure](spread) for spread in self.spreads[placement])

    def worse(self, measure: str) -> list[int]:
        """Seeds of the worlds that ``balanced`` leaves less even than ``kafka``."""
        of = MEASURES[measure]
        pairs = zip(self.spreads["balanced"], self.spreads["kafka"], strict=True)
        return [seed for seed, (balanced, kafka) in enumerate(pairs) if of(balanced) > of(kafka)]

    def widest_new_topic(self, placement: str) -> int:
        """The largest spread of a created topic's replicas or leaders, in the worlds whose racks are even."""
        found = zip(self.worlds, self.spreads[placement], strict=True)
        return max(apart for world, spread in found if world.is_even for apart in spread.new_topics)


@cache
def survey(worlds: int) -> Survey:
    made = [world(seed) for seed in range(worlds)]
    return Survey(worlds=made, spreads={name: [spread_after(name, each) for each in made] for name in PLACEMENTS})


def remarks(worlds: int) -> Iterator[str]:
    """The worlds that missed, by measure."""
    for measure in MEASURES:
        seeds = ", ".join(map(str, survey(worlds).worse(measure))) or "none"
        yield f"{measure}: worlds that balanced leaves less even than kafka: {seeds}"


@contextmanager
def sides(worlds: int) -> Iterator[Mapping[str, Side]]:
    """Counts, each of which is the same in every round."""
    counted = survey(worlds)
    found: dict[str, Side] = {}
    for measure in MEASURES:
        found |= {_mean_side(name, measure): partial(counted.mean, name, measure) for name in PLACEMENTS}
        found[_share_side(measure)] = partial(_not_worse, counted, measure)
    found["worlds"] = partial(float, worlds)
    found |= {_widest_side(name): partial(counted.widest_new_topic, name) for name in PLACEMENTS}
    found["one apart"] = partial(float, 1)
    yield found


def _not_worse(counted: Survey, measure: str) -> float:
    return len(counted.worlds) - len(counted.worse(measure))


def comparisons(worlds: int) -> Sequence[Comparison]:
    return tuple(_comparisons(worlds))


def _comparisons(worlds: int) -> Iterator[Comparison]:
    for measure in MEASURES:
        yield Comparison(
            id=f"{measure}-not-worse-in-{worlds}-worlds",
            numerator=_share_side(measure),
            denominator="worlds",
            goal=SHARE,
            better="higher",
        )
        balanced, kafka = (_mean_side(name, measure) for name in PLACEMENTS)
        yield Comparison(
            id=f"{measure}-mean-spread-in-{worlds}-worlds",
            numerator=balanced,
            denominator=kafka,
            goal=1,
            better="lower",
        )
    yield Comparison(
        id=f"widest-new-topic-on-even-racks-in-{worlds}-worlds",
        numerator=_widest_side("balanced"),
        denominator="one apart",
        goal=1,
        better="lower",
    )


def _mean_side(placement: str, measure: str) -> str:
    return f"{measure}, mean spread, {placement}"


def _share_side(measure: str) -> str:
    return f"{measure}, worlds not worse"


def _widest_side(placement: str) -> str:
    return f"widest new topic on even racks, {placement}"


BENCHMARK = Benchmark(
    name="balance", topics=1_000, rounds=1, comparisons=comparisons, sides=sides, remarks=remarks, unit="count"
)
