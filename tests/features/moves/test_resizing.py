import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from operator import le
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topicops.features.moves.asked.resizing import resized
from topicops.features.moves.asked.rows import reassignment_json
from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement.request import Load

Racks = Mapping[int, str | None]
"""Rack by live broker."""
World = tuple[Assignment, int, Racks]
"""Rows, the size that they shall have, and the brokers."""
THREE: Racks = {1: "a", 2: "b", 3: "c"}
FOUR: Racks = {1: "a", 2: "a", 3: "b", 4: "b"}


def resize(rows: Assignment, size: int, racks: Racks, **more: Assignment) -> Assignment:
    found = resized(rows, size, racks, load=Load.of([rows, *more.values()]))
    assert found is not None
    return found


def test_the_file_is_what_kafkas_tool_reads() -> None:
    assert json.loads(reassignment_json("orders", {1: (2, 3), 0: (1, 2)})) == {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": 0, "replicas": [1, 2]},
            {"topic": "orders", "partition": 1, "replicas": [2, 3]},
        ],
    }


@pytest.mark.parametrize(
    ("rows", "size", "racks", "expected"),
    [
        pytest.param(
            {0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2)}, 2, THREE, {0: (1, 2), 1: (2, 3), 2: (3, 1)}, id="fewer"
        ),
        pytest.param({0: (1,), 1: (2,), 2: (3,)}, 2, THREE, {0: (1, 2), 1: (2, 3), 2: (3, 1)}, id="more"),
        pytest.param({0: (1, 2), 1: (3, 4)}, 3, FOUR, {0: (1, 2, 4), 1: (3, 4, 2)}, id="more, an unused rack first"),
        pytest.param({0: (1, 2, 3)}, 2, FOUR, {0: (1, 3)}, id="fewer, of a shared rack first"),
        pytest.param(
            {0: (1, 9), 1: (2, 3)}, 2, THREE, {0: (1, 3), 1: (2, 3)}, id="only the dead broker's replica moves"
        ),
        pytest.param({0: (1, 2), 1: (2,)}, 2, THREE, {0: (1, 2), 1: (2, 3)}, id="a row that is right is left alone"),
        pytest.param({0: (2, 1), 1: ()}, 2, THREE, {0: (2, 1), 1: (3, 1)}, id="a row without replicas"),
        pytest.param({0: (1,), 1: (1,), 2: (1,)}, 2, THREE, {0: (2, 1), 1: (3, 1), 2: (1, 2)}, id="leaders are spread"),
        pytest.param({0: (1,)}, 2, {1: "a", 2: None, 3: "a"}, {0: (1, 2)}, id="racks of some do not count"),
    ],
)
def test_as_few_replicas_move_as_can_be(rows: Assignment, size: int, racks: Racks, expected: Assignment) -> None:
    assert resize(rows, size, racks) == expected


def test_a_new_replica_goes_to_the_broker_that_holds_least() -> None:
    crowd = {0: (1, 2), 1: (2, 1)}
    assert resize({0: (3,)}, 2, {1: "a", 2: "b", 3: "c", 4: "d"}, crowd=crowd) == {0: (3, 4)}


@pytest.mark.parametrize("size", [0, 4])
def test_there_is_no_way_to_a_size_that_the_brokers_cannot_hold(size: int) -> None:
    assert resized({0: (1,)}, size, THREE, load=Load()) is None


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Rows of any length, some on brokers that are gone, and the brokers that are live."""
    brokers = draw(st.lists(st.integers(1, 12), min_size=2, max_size=8, unique=True))
    named = draw(st.booleans())
    racks = {broker: draw(st.sampled_from("abc")) if named else None for broker in brokers}
    anyone = st.sampled_from([*brokers, 90, 91])
    rows = draw(st.lists(st.lists(anyone, min_size=1, max_size=4, unique=True), min_size=1, max_size=6))
    size = draw(st.integers(1, min(4, len(brokers))))
    return {partition: tuple(row) for partition, row in enumerate(rows)}, size, racks


def most_kept(row: Sequence[int], size: int, racks: Racks) -> int:
    """Return how many replicas of a row may stay at most, if it is to be on as many racks as it can be."""
    rack_of = {broker: racks[broker] or broker for broker in racks}
    most = min(size, len(set(rack_of.values())))
    stays = (kept for n in range(size, 0, -1) for kept in combinations([b for b in row if b in racks], n))
    return next((len(s) for s in stays if len({rack_of[b] for b in s}) + size - len(s) >= most), 0)


@given(worlds())
def test_as_many_replicas_stay_as_racks_allow_and_a_row_that_is_right_stays_whole(world: World) -> None:
    rows, size, racks = world
    for partition, row in resize(rows, size, racks).items():
        before = rows[partition]
        assert set(row) <= racks.keys()
        assert len(set(row)) == len(row) == size
        is_right = len(before) == size and set(before) <= racks.keys()
        assert len(set(before) & set(row)) == (size if is_right else most_kept(before, size, racks))


@given(worlds())
def test_a_row_that_changes_is_on_as_many_racks_as_can_be(world: World) -> None:
    rows, size, racks = world
    for partition, row in resize(rows, size, racks).items():
        if row != rows[partition] and set(row) != set(rows[partition]):
            assert len({racks[broker] or broker for broker in row}) == min(size, len(set(racks.values()) - {None}) or 9)


@given(worlds(), st.integers(0, 3))
def test_a_broker_that_gets_nothing_keeps_what_it_has(world: World, closed: int) -> None:
    rows, size, racks = world
    staying = dict(list(racks.items())[:closed])
    takers = {broker: rack for broker, rack in racks.items() if broker not in staying}
    found = resized(rows, size, takers, load=Load.of([rows]), staying=staying)
    assert found is not None or any(len(takers.keys() | staying.keys() & set(row)) < size for row in rows.values())
    for partition, row in (found or {}).items():
        before = rows[partition]
        assert set(row) - set(before) <= takers.keys()
        assert len(row) == len(set(row)) == size
        if len(set(racks.values())) == 1:
            assert len(set(row) & set(before)) == min(size, len(set(before) & racks.keys()))


def test_rows_of_a_topic_without_a_file_keep_their_lengths() -> None:
    rows = {0: (1, 2), 1: (2,), 2: (2, 3, 1)}
    found = resized(rows, None, {1: "a", 3: "c", 4: "d"}, load=Load.of([rows]))
    assert {p: len(row) for p, row in (found or {}).items()} == {0: 2, 1: 1, 2: 3}
    assert not any(2 in row for row in (found or {}).values())


@given(worlds())
def test_no_exchange_of_a_replica_spreads_them_more(world: World) -> None:
    rows, size, racks = world
    found = resize(rows, size, racks)
    held = Load.of([found]).replicas
    for partition, row in found.items():
        live, without_rack = set(rows[partition]) & racks.keys(), None in racks.values()
        for taken, free in product(row, racks.keys() - set(row)):
            other = [free if broker == taken else broker for broker in row]
            spread = (len({racks[b] for b in r}) for r in (row, other))
            if row != rows[partition] and (taken in live) == (free in live) and (without_rack or le(*spread)):
                assert held.get(free, 0) >= held[taken] - 1


def unevenness(rows: Assignment) -> int:
    return sum(count**2 for count in Counter(row[0] for row in rows.values()).values())


@given(worlds())
def test_no_other_order_of_the_changed_rows_spreads_the_leaders_more(world: World) -> None:
    rows, size, racks = world
    found = resize(rows, size, racks)
    right = {p for p, row in rows.items() if found[p] == row and len(row) == size}
    choices = [[row] if p in right else [(leader,) for leader in row] for p, row in found.items()]
    best = min(unevenness(dict(enumerate(choice))) for choice in product(*choices))
    assert unevenness(found) == best


@given(worlds())
@example(({0: (3,), 1: (3,), 2: (3, 4, 5), 3: (3, 2, 1), 4: (2,)}, 2, {1: "a", 3: "a", 4: "a", 2: "b", 5: "a"}))
def test_a_leader_changes_only_when_that_makes_the_topic_more_even(world: World) -> None:
    rows, size, racks = world
    found = resize(rows, size, racks)
    as_they_led = {p: (rows[p][0] if rows[p][0] in row else row[0], *row) for p, row in found.items()}
    if unevenness(as_they_led) == unevenness(found):
        assert all(row[0] == rows[p][0] for p, row in found.items() if rows[p][0] in row)


@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_brokers_does_not_matter(world: World, dice: Random) -> None:
    rows, size, racks = world
    shuffled_rows, shuffled_racks = list(rows.items()), list(racks.items())
    dice.shuffle(shuffled_rows)
    dice.shuffle(shuffled_racks)
    assert resize(dict(shuffled_rows), size, dict(shuffled_racks)) == resize(rows, size, racks)


@given(worlds())
def test_what_has_been_resized_needs_no_more(world: World) -> None:
    rows, size, racks = world
    once = resize(rows, size, racks)
    assert resize(once, size, racks) == once
