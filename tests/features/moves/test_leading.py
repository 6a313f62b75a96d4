from collections import Counter
from collections.abc import Collection, Mapping

import pytest

from fixtures.move_worlds import large_cluster, move_world
from topicops.features.moves.planned.leading import lead_evenly
from topicops.model.cluster.snapshot import Assignment

Rows = Mapping[str, Assignment]


def after(rows: Rows, changed: Rows) -> dict[str, Assignment]:
    return {name: {**its, **changed.get(name, {})} for name, its in rows.items()}


def leads(rows: Rows, brokers: Collection[int]) -> dict[int, int]:
    found = Counter(row[0] for its in rows.values() for row in its.values())
    return {broker: found[broker] for broker in sorted(brokers)}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param({"a": {0: (1, 2), 1: (1, 2)}}, {1: 1, 2: 1, 3: 0}, id="another order"),
        pytest.param({"a": {0: (1, 2), 1: (2, 3), 2: (3, 1)}}, {1: 1, 2: 1, 3: 1}, id="even already"),
        pytest.param({"a": {0: (1, 2), 1: (1, 2), 2: (2, 3)}}, {1: 1, 2: 1, 3: 1}, id="handed on by a broker between"),
        pytest.param(
            {"a": {0: (1, 2)}, "b": {0: (1, 2)}, "c": {0: (2, 3)}}, {1: 1, 2: 1, 3: 1}, id="handed on between topics"
        ),
        pytest.param({"a": {0: (1, 3)}, "b": {0: (1, 3)}, "c": {0: (2, 1)}}, {1: 1, 2: 1, 3: 1}, id="of the cluster"),
        pytest.param({"a": {0: (1,), 1: (1,), 2: (1,)}}, {1: 3, 2: 0, 3: 0}, id="no other replica"),
        pytest.param({"a": {0: (1, 2, 9), 1: (1, 2, 9)}}, {1: 2, 2: 0, 3: 0}, id="a dead broker's rows stay"),
    ],
)
def test_leaders_are_as_even_as_the_replicas_allow(rows: Rows, expected: Mapping[int, int]) -> None:
    changed = lead_evenly(rows, live=(1, 2, 3), takers=(1, 2, 3))
    assert leads(after(rows, changed), (1, 2, 3)) == expected


def test_a_topic_is_made_even_also_where_the_cluster_is() -> None:
    rows = {"a": {0: (1, 2), 1: (1, 2)}, "b": {0: (2, 1), 1: (2, 1)}}
    changed = after(rows, lead_evenly(rows, live=(1, 2), takers=(1, 2)))
    assert [leads({name: its}, (1, 2)) for name, its in changed.items()] == [{1: 1, 2: 1}, {1: 1, 2: 1}]


def test_rows_of_a_topic_that_stay_count_for_its_evenness() -> None:
    rows = {"a": {0: (1, 9), 1: (1, 2), 2: (1, 2), 3: (2, 1)}, "b": {0: (2, 9), 1: (2, 9)}}
    changed = after(rows, lead_evenly(rows, live=(1, 2), takers=(1, 2)))
    assert leads({"a": changed["a"]}, (1, 2)) == {1: 2, 2: 2}


def test_only_takers_get_leaders() -> None:
    rows = {"a": {0: (1, 2), 1: (1, 2), 2: (1, 3), 3: (1, 3)}, "b": {0: (1, 2)}, "c": {0: (1, 3)}}
    changed = lead_evenly(rows, live=(1, 2, 3), takers=(1, 3))
    assert leads(after(rows, changed), (1, 2, 3)) == {1: 3, 2: 0, 3: 3}


def test_rows_of_topics_that_stay_count_and_stay() -> None:
    rows = {"a": {0: (1, 2)}, "b": {0: (1, 2)}, "c": {0: (2, 1)}}
    assert lead_evenly(rows, live=(1, 2), takers=(1, 2), fixed=("c",)) == {}
    assert lead_evenly(rows, live=(1, 2), takers=(1, 2), fixed=("a", "b")) == {}
    assert lead_evenly({**rows, "c": {0: (1, 2)}}, live=(1, 2), takers=(1, 2), fixed=("a", "b")) == {"c": {0: (2, 1)}}


@pytest.mark.parametrize("seed", range(60))
def test_a_row_keeps_its_brokers_and_nothing_gets_less_even(seed: int) -> None:
    world = move_world(seed)
    rows = after(world.rows, lead_evenly(world.rows, live=world.racks, takers=world.racks))
    for name, its in world.rows.items():
        assert {p: sorted(row) for p, row in rows[name].items()} == {p: sorted(row) for p, row in its.items()}
        then, now = leads({name: its}, world.racks), leads({name: rows[name]}, world.racks)
        assert max(now.values()) <= max(then.values())
    then, now = leads(world.rows, world.racks), leads(rows, world.racks)
    assert max(now.values()) <= max(then.values()) or any(
        max(leads({name: rows[name]}, world.racks).values()) < max(leads({name: its}, world.racks).values())
        for name, its in world.rows.items()
    )
    assert lead_evenly(rows, live=world.racks, takers=world.racks) == {}


def test_leaders_of_a_large_cluster_differ_by_one() -> None:
    world = large_cluster(topics=300, partitions=8, brokers=20, racks=4)
    found = leads(after(world.rows, lead_evenly(world.rows, live=world.racks, takers=world.racks)), world.racks)
    assert max(found.values()) - min(found.values()) <= 1
