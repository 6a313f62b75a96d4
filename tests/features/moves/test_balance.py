from collections import Counter
from collections.abc import Mapping
from random import Random

import pytest

from fixtures.move_worlds import MoveWorld, fewest_moves, large_cluster, move_world, topic_spreads
from topicops.features.moves.planned.balance import Balance, Balanced, balance_bytes, balance_replicas
from topicops.features.moves.planned.shares import least_moves
from topicops.model.cluster.snapshot import Assignment


def balanced(world: MoveWorld) -> Balanced:
    return balance_replicas(Balance(rows=world.rows, racks=world.racks, takers=world.racks.keys()))


def held(rows: Mapping[str, Assignment]) -> Counter[int]:
    return Counter(broker for its in rows.values() for row in its.values() for broker in row)


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(200), id="200 worlds"),
        pytest.param(range(200, 3000), id="2,800 more", marks=pytest.mark.soak),
    ],
)
@pytest.mark.slow
def test_brokers_become_even_with_about_as_few_moves_as_an_exact_solver_needs(seeds: range) -> None:
    moves, fewest = 0, 0
    for seed in seeds:
        world = move_world(seed)
        found = balanced(world)
        exact = fewest_moves(world, found.shares)
        assert exact is not None, f"seed {seed}: the shares cannot be reached"
        assert found.is_even, f"seed {seed}"
        moves, fewest = moves + world.copied(found.rows), fewest + exact
    assert fewest > 5 * len(seeds)
    assert moves <= 1.02 * fewest


@pytest.mark.parametrize("seed", range(60))
def test_a_row_keeps_its_size_and_as_many_racks_and_names_no_broker_twice(seed: int) -> None:
    world = move_world(seed)
    found = balanced(world)
    rows = world.after(found.rows)
    for name, its in world.rows.items():
        for partition, before in its.items():
            row = rows[name][partition]
            assert len(set(row)) == len(row) == len(before)
            assert len({world.rack_of[b] for b in row}) >= len({world.rack_of[b] for b in before})
    assert {broker: held(rows)[broker] for broker in world.racks} == found.after
    assert world.copied(found.rows) >= least_moves(found.before, found.shares)


def test_the_same_cluster_gives_the_same_moves() -> None:
    world = move_world(3)
    other = MoveWorld(rows=dict(reversed(world.rows.items())), racks=dict(reversed(world.racks.items())))
    assert balanced(world).rows == balanced(other).rows != {}


def test_an_even_cluster_stays_as_it_is() -> None:
    rows = {"orders": {0: (1, 2), 1: (2, 3), 2: (3, 1)}}
    assert balanced(MoveWorld(rows=rows, racks=dict.fromkeys((1, 2, 3)))).rows == {}


ROWS: dict[str, Assignment] = {f"topic-{n}": {0: (1, 2), 1: (2, 1), 2: (1, 2)} for n in range(4)}
"""Two brokers with 12 replicas each."""


@pytest.mark.parametrize(
    ("takers", "fixed", "after"),
    [
        pytest.param((1, 2, 3, 4), (), {1: 6, 2: 6, 3: 6, 4: 6}, id="all"),
        pytest.param((1, 2, 4), (), {1: 8, 2: 8, 3: 0, 4: 8}, id="a broker that takes nothing"),
        pytest.param((4,), (), {1: 8, 2: 8, 3: 0, 4: 8}, id="one that joins"),
        pytest.param((), (), {1: 12, 2: 12, 3: 0, 4: 0}, id="none"),
        pytest.param((1, 2, 3, 4), ROWS, {1: 12, 2: 12, 3: 0, 4: 0}, id="topics that stay"),
        pytest.param(
            (1, 2, 3, 4), ("topic-0", "topic-1", "topic-2"), {1: 9, 2: 9, 3: 3, 4: 3}, id="topics that stay count"
        ),
    ],
)
def test_only_takers_get_replicas(takers: tuple[int, ...], fixed: tuple[str, ...], after: dict[int, int]) -> None:
    racks: dict[int, str | None] = dict.fromkeys((1, 2, 3, 4))
    found = balance_replicas(Balance(rows=ROWS, racks=racks, takers=takers, fixed=fixed))
    assert found.after == after
    assert not found.rows.keys() & set(fixed)


def test_a_partition_with_a_replica_on_a_dead_broker_stays() -> None:
    rows = {"orders": {0: (1, 9), 1: (1, 9), 2: (1, 2), 3: (1, 2)}}
    found = balance_replicas(Balance(rows=rows, racks=dict.fromkeys((1, 2, 3)), takers=(1, 2, 3)))
    assert found.rows.keys() == {"orders"}
    assert found.rows["orders"].keys() <= {2, 3}


def test_a_broker_passes_replicas_on_where_none_may_go_straight() -> None:
    # Broker 4 has a replica too few. Each row of broker 1, which has one too many, is on its rack already.
    rows = [(1, 3), (1, 3), (1, 3), (1, 4), (2,), (2,), (2, 4)]
    world = MoveWorld(
        rows={f"topic-{number}": {0: row} for number, row in enumerate(rows)}, racks={1: "a", 2: "c", 3: "b", 4: "b"}
    )
    found = balanced(world)
    assert found.after == {1: 3, 2: 3, 3: 3, 4: 3}
    assert world.copied(found.rows) == 2


def test_no_broker_gets_a_replica_of_a_topic_of_which_it_has_as_many_as_the_giver() -> None:
    rows: dict[str, Assignment] = {"wide": {0: (1,), 1: (1,), 2: (2,), 3: (2,)}, "narrow": {0: (1,), 1: (1,)}}
    found = balanced(MoveWorld(rows=rows, racks=dict.fromkeys((1, 2))))
    assert found.rows.keys() == {"narrow"}


@pytest.mark.parametrize(
    ("topics", "joining"),
    [
        pytest.param(300, 1, id="one"),
        pytest.param(300, 3, id="three"),
        pytest.param(10_000, 1, marks=pytest.mark.soak, id="10,000 topics"),
    ],
)
def test_joining_brokers_get_their_shares_with_the_fewest_moves_and_no_topic_is_less_even(
    topics: int, joining: int
) -> None:
    world = large_cluster(topics=topics, partitions=20, brokers=100, racks=4, joining=joining)
    found = balanced(world)
    before, after = (topic_spreads(rows, world.racks) for rows in (world.rows, world.after(found.rows)))
    assert found.is_even
    assert world.copied(found.rows) == least_moves(found.before, found.shares)
    assert all(after[name] <= spread for name, spread in before.items())


SIZES = {"large": {0: 80, 1: 40, 2: 10}, "small": {0: 3, 1: 2}}
BYTE_ROWS: dict[str, Assignment] = {"large": {0: (1,), 1: (1,), 2: (1,)}, "small": {0: (2,), 1: (2,)}}


@pytest.mark.parametrize(
    ("most_bytes", "moved"),
    [
        pytest.param(1000, {("large", 1), ("large", 2)}, id="the largest that fits, then the next"),
        pytest.param(39, {("large", 2)}, id="the largest that may be copied"),
        pytest.param(9, set(), id="nothing is that small"),
    ],
)
def test_bytes_are_balanced_by_the_largest_replicas_that_fit(most_bytes: int, moved: set[tuple[str, int]]) -> None:
    found = balance_bytes(
        Balance(rows=BYTE_ROWS, racks=dict.fromkeys((1, 2)), takers=(1, 2)), SIZES, most_bytes=most_bytes
    )
    copied = {(name, partition) for name, its in found.rows.items() for partition in its}
    assert copied == moved


def test_a_replica_whose_size_is_not_known_stays() -> None:
    balance = Balance(rows=BYTE_ROWS, racks=dict.fromkeys((1, 2)), takers=(1, 2))
    assert balance_bytes(balance, {"large": {0: 80}}, most_bytes=1000).rows == {}


def test_no_replica_takes_a_broker_past_its_share_of_bytes() -> None:
    sizes = {"first": {0: 50, 1: 30, 2: 30, 3: 10}, "second": {0: 30}, "third": {0: 30}}
    rows: dict[str, Assignment] = {"first": dict.fromkeys(range(4), (1,)), "second": {0: (2,)}, "third": {0: (3,)}}
    balance = Balance(rows=rows, racks=dict.fromkeys((1, 2, 3)), takers=(1, 2, 3))
    found = balance_bytes(balance, sizes, most_bytes=1000)
    assert found.rows.keys() == {"first"}
    assert found.rows["first"].keys() == {1, 2}
    assert found.after == {1: 60, 2: 60, 3: 60}


def test_bytes_become_even_within_the_tolerance_and_little_more_is_copied_than_must_be() -> None:
    dice = Random(7)
    world = large_cluster(topics=400, partitions=6, brokers=12, racks=3, joining=3)
    sizes = {name: {p: int(dice.lognormvariate(16, 1.5)) for p in its} for name, its in world.rows.items()}
    found = balance_bytes(
        Balance(rows=world.rows, racks=world.racks, takers=world.racks.keys()), sizes, most_bytes=1 << 60
    )
    moved = sum(
        sizes[name][p] * len(set(row) - set(world.rows[name][p]))
        for name, its in found.rows.items()
        for p, row in its.items()
    )
    assert found.is_even
    assert moved <= 1.02 * least_moves(found.before, found.shares)
