"""The loss of each rack of a large cluster, beside the loop over all partitions that one writes first.

Twelve brokers on three racks, and topics of 20 partitions with three replicas each: half of them spread over the racks,
half placed without a look at racks; every other topic needs two replicas in sync, one in ten elects unclean leaders,
and one partition in fifty has lost a follower. Both give the same answer, or there is no benchmark. CPU seconds, and
the most memory that a call holds beside the cluster, as Python counts it.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import nsmallest
from random import Random
from typing import NamedTuple

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side
from fakes.builders import live_topic, partition_state, snapshot
from topicops.features.rehearse.losses import EXAMPLES, PartitionName, RackLoss, RackLosses, without_each_rack
from topicops.model.cluster.health import UNCLEAN_ELECTION
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, PartitionState

BROKERS, RACKS = 12, 3
PARTITIONS, REPLICAS = 20, 3
ENVIRONMENT = "bench"
MIN_ISR = "min.insync.replicas"
KINDS, LOOP = "by kinds", "loop over partitions"
CPU, MEMORY = "CPU", "memory"
ALLOWED = "a second for each rack"
Call = Callable[[ClusterSnapshot], RackLosses]


def a_cluster(topics: int) -> ClusterSnapshot:
    chance = Random(topics)
    racks: dict[int, str | None] = {broker: f"r{broker % RACKS}" for broker in range(1, BROKERS + 1)}
    return snapshot(*(_a_topic(number, chance) for number in range(topics)), racks=racks)


def _a_topic(number: int, chance: Random) -> LiveTopic:
    rows = {p: _row(chance, is_spread=number % 2 == 0) for p in range(PARTITIONS)}
    overrides = {MIN_ISR: "2"} if number % 4 < 2 else {}
    if number % 10 == 0:
        overrides[UNCLEAN_ELECTION] = "true"
    in_sync = {p: row if chance.random() > 0.02 else row[: chance.randint(1, 2)] for p, row in rows.items()}
    states = {p: partition_state(isr) for p, isr in in_sync.items()}
    return live_topic(f"bench.topic-{number}", assignment=rows, states=states, overrides=overrides)


def _row(chance: Random, *, is_spread: bool) -> tuple[int, ...]:
    if not is_spread:
        return tuple(chance.sample(range(1, BROKERS + 1), REPLICAS))
    picked = [chance.choice(range(1 + rack, BROKERS + 1, RACKS)) for rack in range(RACKS)]
    chance.shuffle(picked)
    return tuple(picked)


class Seen(NamedTuple):
    """A partition while only some brokers are live."""

    leader: int | None
    is_below: bool


def by_kinds(live: ClusterSnapshot) -> RackLosses:
    return without_each_rack(live, environment=ENVIRONMENT)


def by_loop(live: ClusterSnapshot) -> RackLosses:
    """Each partition is judged again for each rack."""
    by_rack: dict[str, list[int]] = {}
    for broker, found in sorted(live.brokers.items()):
        by_rack.setdefault(str(found.rack), []).append(broker)
    now = [seen for _, _, seen in _partitions(live, live.brokers.keys())]
    return RackLosses(
        environment=ENVIRONMENT,
        cluster_id=live.cluster_id,
        after_plan=False,
        topics=len(live.topics),
        partitions=len(now),
        offline_now=sum(seen.leader is None for seen in now),
        below_min_isr_now=sum(seen.leader is not None and seen.is_below for seen in now),
        most_leaders_now=max(Counter(seen.leader for seen in now if seen.leader is not None).values()),
        racks=tuple(_loss(live, rack, brokers, now) for rack, brokers in sorted(by_rack.items())),
        brokers_without_rack=(),
    )


def _loss(live: ClusterSnapshot, rack: str, brokers: list[int], now: Sequence[Seen]) -> RackLoss:
    left = live.brokers.keys() - set(brokers)
    offline, below, moved, leaders = list[PartitionName](), list[PartitionName](), 0, Counter[int]()
    for before, (topic, p, seen) in zip(now, _partitions(live, left), strict=True):
        if seen.leader is None:
            if before.leader is not None:
                offline.append(PartitionName(topic.name, p))
            continue
        leaders[seen.leader] += 1
        moved += seen.leader != before.leader
        if seen.is_below and not before.is_below:
            below.append(PartitionName(topic.name, p))
    return RackLoss(
        rack=rack,
        brokers=tuple(brokers),
        offline=len(offline),
        below_min_isr=len(below),
        moved_leaders=moved,
        most_leaders=max(leaders.values(), default=0),
        offline_examples=tuple(nsmallest(EXAMPLES, offline)),
        below_examples=tuple(nsmallest(EXAMPLES, below)),
    )


def _partitions(live: ClusterSnapshot, left: Collection[int]) -> Iterator[tuple[LiveTopic, int, Seen]]:
    for topic in live.topics.values():
        least, unclean = int(topic.overrides.get(MIN_ISR, 1)), topic.overrides.get(UNCLEAN_ELECTION) == "true"
        states = topic.states or {}
        for p, row in topic.assignment.items():
            needed = min(least, len(row))
            yield topic, p, _seen(row, states[p], left, needed=needed, unclean=unclean)


def _seen(row: Sequence[int], state: PartitionState, left: Collection[int], *, needed: int, unclean: bool) -> Seen:
    leader = state.leader if state.leader in left else next((b for b in row if b in left and b in state.isr), None)
    in_sync = sum(broker in left for broker in state.isr)
    if leader is None and unclean:
        leader, in_sync = next((broker for broker in row if broker in left), None), 1
    return Seen(leader, leader is None or in_sync < needed)


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    live = a_cluster(topics)
    if (found := by_kinds(live)) != (plain := by_loop(live)):
        raise BenchmarkError(f"the sides disagree: {found} and {plain}")
    calls: Mapping[str, Call] = {KINDS: by_kinds, LOOP: by_loop}
    seconds = {f"{CPU}, {name}": _cpu_s(call, live) for name, call in calls.items()}
    memory = {f"{MEMORY}, {name}": _peak_mib(call, live) for name, call in calls.items()}
    yield {**seconds, **memory, ALLOWED: lambda: float(RACKS)}


def _cpu_s(call: Call, live: ClusterSnapshot) -> Side:
    def seconds() -> float:
        gc.collect()
        started = time.process_time()
        call(live)
        return time.process_time() - started

    return seconds


def _peak_mib(call: Call, live: ClusterSnapshot) -> Side:
    """Counting makes the call slow, so its seconds are not those of ``_cpu_s``."""

    def mib() -> float:
        gc.collect()
        tracemalloc.start()
        try:
            call(live)
            return tracemalloc.get_traced_memory()[1] / 2**20
        finally:
            tracemalloc.stop()

    return mib


def comparisons(topics: int) -> Sequence[Comparison]:
    kinds, loop = ({what: f"{what}, {name}" for what in (CPU, MEMORY)} for name in (KINDS, LOOP))
    size = f"{topics}-topics-of-{PARTITIONS}-partitions"
    return (
        Comparison(
            id=f"cpu-of-each-rack-to-a-loop-{size}",
            numerator=kinds[CPU],
            denominator=loop[CPU],
            goal=0.75,
            better="lower",
        ),
        Comparison(
            id=f"memory-of-each-rack-to-a-loop-{size}",
            numerator=kinds[MEMORY],
            denominator=loop[MEMORY],
            goal=1.0,
            better="lower",
        ),
        Comparison(
            id=f"cpu-of-each-rack-to-a-second-for-each-{size}",
            numerator=kinds[CPU],
            denominator=ALLOWED,
            goal=1.0,
            better="lower",
        ),
    )


BENCHMARK = Benchmark(
    name="rehearse_racks", topics=10_000, rounds=5, comparisons=comparisons, sides=sides, unit="s, MiB"
)
