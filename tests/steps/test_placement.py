from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicops.steps.placement import (
    STRATEGIES,
    BadAssignmentError,
    Load,
    MixedRacksError,
    PlacementError,
    PlacementRequest,
    TooFewBrokersError,
    place,
)
from topicops.steps.placement.kafka import start_and_shift
from topicops.testing.builders import round_robin


def request(partitions: int = 3, replication_factor: int = 3, **fields: object) -> PlacementRequest:
    given = {"racks": {1: "r1", 2: "r2", 3: "r3"}, **fields}
    return PlacementRequest(topic="orders", partitions=partitions, replication_factor=replication_factor, **given)


def test_start_and_shift_are_the_first_two_words_of_the_names_digest() -> None:
    # sha256sum of "orders" begins with these two words
    assert start_and_shift("orders", 7) == (0x1C168ADB00D208E4 % 7, 0x2F93314529F1FA9C % 7)


def test_without_racks_kafka_placement_takes_brokers_by_id() -> None:
    one = place("kafka", request(5, 2, racks={3: None, 1: None, 2: None}))
    assert one == place("kafka", request(5, 2, racks={1: None, 2: None, 3: None}))


def test_an_expansion_follows_partition_0_and_never_moves_a_row() -> None:
    rows = place("kafka", request(6, 3, existing=round_robin(3)))
    assert list(rows) == [3, 4, 5]


def test_balanced_is_even_in_the_topic_before_it_looks_at_the_cluster() -> None:
    load = Load(replicas={1: 100, 2: 0, 3: 0}, leaders={1: 100, 2: 0, 3: 0})
    rows = place("balanced", request(3, 1, load=load))
    assert rows == {0: (2,), 1: (3,), 2: (1,)}


def test_balanced_breaks_ties_by_replicas_then_leaders_then_id() -> None:
    load = Load(replicas={1: 5, 2: 4, 3: 4}, leaders={1: 0, 2: 3, 3: 1})
    assert place("balanced", request(1, 1, load=load)) == {0: (3,)}
    assert place("balanced", request(1, 1)) == {0: (1,)}


def test_balanced_counts_the_rows_that_the_topic_has_already() -> None:
    rows = place("balanced", request(3, 1, existing={0: (1,)}, load=Load.of([{0: (1,)}])))
    assert rows == {1: (2,), 2: (3,)}


def test_balanced_takes_an_unused_rack_while_there_is_one() -> None:
    racks = {1: "a", 2: "a", 3: "a", 4: "b"}
    assert all(4 in row for row in place("balanced", request(4, 2, racks=racks)).values())
    free = place("balanced", request(4, 2, racks=racks, rack_aware=False))
    assert any(4 not in row for row in free.values())


def test_rows_by_hand_are_taken_as_they_are() -> None:
    manual = {0: (3, 1), 1: (2, 3)}
    assert place("manual", request(2, 2, manual=manual)) == manual
    assert place("manual", request(2, 2, manual=manual, existing={0: (3, 1)})) == {1: (2, 3)}


@pytest.mark.parametrize(
    ("manual", "problem"),
    [
        pytest.param({0: (1, 2), 2: (2, 3)}, "partition ids must be 0 to 1", id="ids with a gap"),
        pytest.param({0: (1, 2), 1: (2,)}, "partition 1 has 1 replica", id="another length"),
        pytest.param({0: (1, 2), 1: (2, 2)}, "partition 1 names a broker twice", id="a broker twice"),
        pytest.param({0: (1, 2), 1: (2, 9)}, "broker\\(s\\) 9, which are not live", id="a dead broker"),
        pytest.param({0: (1, 2), 1: (2, -1)}, "broker\\(s\\) -1, which are not live", id="a negative broker"),
        pytest.param({0: (), 1: ()}, "partition 0 has 0 replica", id="empty rows"),
    ],
)
def test_rows_by_hand_are_checked_for_what_kafka_lets_pass(manual: dict[int, tuple[int, ...]], problem: str) -> None:
    with pytest.raises(BadAssignmentError, match=problem):
        place("manual", request(2, 2, manual=manual))


@pytest.mark.parametrize("strategy", ["balanced", "kafka"])
def test_a_request_that_cannot_be_met_is_refused(strategy: str) -> None:
    with pytest.raises(TooFewBrokersError, match="replication factor 4 on 3 live broker"):
        place(strategy, request(1, 4))
    with pytest.raises(MixedRacksError, match="broker\\(s\\) 2 have no rack"):
        place(strategy, request(1, 1, racks={1: "a", 2: None}))
    with pytest.raises(PlacementError):
        place(strategy, request(0, 1))
    with pytest.raises(TooFewBrokersError):
        place(strategy, request(1, 1, racks={}))


def test_the_table_holds_every_strategy() -> None:
    assert set(STRATEGIES) == {"balanced", "kafka", "manual"}


@st.composite
def clusters(draw: st.DrawFn) -> dict[int, str | None]:
    brokers = draw(st.lists(st.integers(0, 50), min_size=1, max_size=12, unique=True))
    if draw(st.booleans()):
        return dict.fromkeys(brokers)
    return {broker: draw(st.sampled_from("abcd")) for broker in brokers}


@given(strategy=st.sampled_from(["balanced", "kafka"]), racks=clusters(), partitions=st.integers(1, 20), data=st.data())
def test_rows_are_distinct_live_brokers_on_as_many_racks_as_can_be(
    strategy: str, racks: dict[int, str | None], partitions: int, data: st.DataObject
) -> None:
    replicas = data.draw(st.integers(1, len(racks)))
    rows = place(strategy, request(partitions, replicas, racks=racks))
    names = {rack for rack in racks.values() if rack is not None}
    assert list(rows) == list(range(partitions))
    for row in rows.values():
        assert len(set(row)) == len(row) == replicas
        assert set(row) <= set(racks)
        assert not names or len({racks[broker] for broker in row}) == min(len(names), replicas)


@given(racks=clusters(), partitions=st.integers(1, 30), replicas=st.integers(1, 3))
def test_leaders_of_one_balanced_topic_are_never_more_than_one_apart(
    racks: dict[int, str | None], partitions: int, replicas: int
) -> None:
    rows = place("balanced", request(partitions, min(replicas, len(racks)), racks=racks))
    leaders = Counter(row[0] for row in rows.values())
    assert max(leaders.values()) - min(leaders[broker] for broker in racks) <= 1


@given(racks=clusters(), seed=st.randoms(use_true_random=False))
def test_the_order_in_which_brokers_are_listed_does_not_matter(racks: dict[int, str | None], seed: object) -> None:
    shuffled = list(racks.items())
    seed.shuffle(shuffled)  # type: ignore[attr-defined]
    for strategy in ("balanced", "kafka"):
        assert place(strategy, request(5, 1, racks=racks)) == place(strategy, request(5, 1, racks=dict(shuffled)))
