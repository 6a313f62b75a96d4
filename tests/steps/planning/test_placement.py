from collections import Counter
from collections.abc import Mapping
from itertools import product
from random import Random
from typing import TypedDict, TypeVar, Unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import round_robin
from topicops.model.choices import PLACEMENTS
from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement import place
from topicops.steps.planning.placement.balanced import spread_leaders
from topicops.steps.planning.placement.kafka import start_and_shift
from topicops.steps.planning.placement.request import (
    BadAssignmentError,
    BadPartitionCountError,
    Load,
    MixedRacksError,
    PlacementError,
    PlacementRequest,
    TooFewBrokersError,
)

Held = TypeVar("Held")
Racks = Mapping[int, str | None]
"""Rack by live broker."""
PLACING = ("balanced", "kafka")
"""The placements that choose."""
THREE: Racks = {1: "r1", 2: "r2", 3: "r3"}
UNEVEN: Racks = {1: "a", 2: "a", 3: "a", 4: "b"}
ELSEWHERE = Load(replicas={1: 5, 2: 4, 3: 4}, leaders={1: 0, 2: 3, 3: 1})


class Fields(TypedDict, total=False):
    racks: Racks
    existing: Assignment
    rack_aware: bool
    load: Load
    manual: Assignment


def request(partitions: int = 3, replication_factor: int = 3, **fields: Unpack[Fields]) -> PlacementRequest:
    rest: Fields = {"racks": THREE, **fields}
    return PlacementRequest(topic="orders", partitions=partitions, replication_factor=replication_factor, **rest)


def by_hand(*rows: tuple[int, ...]) -> Assignment:
    return dict(enumerate(rows))


@pytest.mark.parametrize(
    ("strategy", "asked", "expected"),
    [
        pytest.param("balanced", request(1, 1), [(1,)], id="balanced: of equal brokers the lowest id"),
        pytest.param("balanced", request(1, 1, load=ELSEWHERE), [(3,)], id="balanced: fewest replicas, then leaders"),
        pytest.param(
            "balanced",
            request(3, 1, load=Load(replicas={1: 100}, leaders={1: 100})),
            [(2,), (3,), (1,)],
            id="balanced: even in the topic, however full a broker is",
        ),
        pytest.param("balanced", request(3, 2), [(2, 1), (3, 2), (1, 3)], id="balanced: replicas and leaders"),
        pytest.param("balanced", request(3, 1, existing={0: (1,)}), [(2,), (3,)], id="balanced: what is there counts"),
        pytest.param(
            "balanced",
            request(2, 2, racks={1: "a", 2: "a", 3: "b", 4: "b"}),
            [(1, 3), (2, 4)],
            id="balanced: an unused rack before an empty broker",
        ),
        pytest.param(
            "balanced",
            request(2, 2, racks={1: "a", 2: "a", 3: "b", 4: "b"}, rack_aware=False),
            [(1, 2), (3, 4)],
            id="balanced: without racks",
        ),
        pytest.param(
            "balanced",
            request(3, 1, racks=UNEVEN, load=Load(replicas={4: 9})),
            [(1,), (2,), (3,)],
            id="balanced: a single replica looks at brokers, not at racks",
        ),
        pytest.param("kafka", request(2, 2, racks={7: None}, existing={}), TooFewBrokersError, id="kafka: few brokers"),
        pytest.param(
            "kafka",
            request(7, 4, racks=dict.fromkeys(range(4)), existing={0: (2, 3, 0, 1)}),
            [(3, 2, 0, 1), (0, 3, 1, 2), (1, 0, 2, 3), (2, 3, 0, 1), (3, 0, 1, 2), (0, 1, 2, 3)],
            id="kafka: an expansion follows partition 0",
        ),
        pytest.param(
            "kafka",
            request(4, 2, racks=dict.fromkeys((1, 2, 3)), existing={0: (9, 1)}),
            [(2, 3), (3, 1), (1, 3)],
            id="kafka: an expansion whose first broker is gone",
        ),
        pytest.param(
            "kafka",
            request(4, 3, racks={1: "r1", 2: "r1", 3: "r2", 4: "r2", 5: "r3", 6: "r3"}, existing={0: (3, 5, 1)}),
            [(2, 6, 3), (4, 1, 5), (6, 3, 2)],
            id="kafka: a position by id, used by racks",
        ),
        pytest.param("manual", request(2, 2, manual=by_hand((3, 1), (2, 3))), [(3, 1), (2, 3)], id="manual: as given"),
        pytest.param(
            "manual",
            request(2, 2, manual=by_hand((3, 9), (2, 3)), existing={0: (3, 9)}),
            [(2, 3)],
            id="manual: a live row may stand on a dead broker",
        ),
    ],
)
def test_each_placement_gives_these_rows(
    strategy: str, asked: PlacementRequest, expected: list[tuple[int, ...]] | type[PlacementError]
) -> None:
    if isinstance(expected, type):
        with pytest.raises(expected):
            place(strategy, asked)
    else:
        assert place(strategy, asked) == dict(zip(asked.new_partitions, expected, strict=True))


@pytest.mark.parametrize(
    ("manual", "problem"),
    [
        pytest.param({}, "there is no row", id="no rows"),
        pytest.param({0: (1, 2), 2: (2, 3)}, "partition ids must be 0 to 1", id="ids with a gap"),
        pytest.param({-1: (1, 2), 0: (1, 2), 3: (2, 3)}, "partition ids must be 0 to 1", id="ids that only add up"),
        pytest.param({0: (1, 2), 1: (2,)}, "partition 1 has 1 replica instead of 2", id="another length"),
        pytest.param({0: (1, 2), 1: (2, 2)}, "partition 1 names a broker twice", id="a broker twice"),
        pytest.param({0: (1, 2), 1: (2, 9)}, "names broker 9, not live", id="a dead broker"),
        pytest.param({0: (1, 2), 1: (2, -1)}, "broker -1, not live", id="a negative broker"),
        pytest.param({0: (), 1: ()}, "partition 0 has no replica; partition 1 has no replica", id="empty rows"),
    ],
)
def test_rows_by_hand_are_checked_for_what_kafka_lets_pass(manual: Assignment, problem: str) -> None:
    with pytest.raises(BadAssignmentError, match=f"^orders: .*{problem}"):
        place("manual", request(2, 2, manual=manual))


def test_an_empty_row_is_no_replica_even_where_none_are_asked_for() -> None:
    with pytest.raises(BadAssignmentError, match="partition 0 has no replica"):
        place("manual", request(1, 0, manual={0: ()}))


def test_an_expansion_by_hand_moves_no_row_and_needs_racks_of_all_or_none() -> None:
    rows = by_hand((1, 2), (2, 3))
    with pytest.raises(BadAssignmentError, match=r"partition 0 is on \[2, 1\], and no expansion moves it"):
        place("manual", request(2, 2, manual=rows, existing={0: (2, 1)}))
    mixed: Racks = {1: "a", 2: None, 3: "c"}
    with pytest.raises(MixedRacksError):
        place("manual", request(2, 2, manual=rows, existing={0: (1, 2)}, racks=mixed))
    assert place("manual", request(2, 2, manual=rows, racks=mixed)) == rows


def test_start_and_shift_are_the_first_two_words_of_the_names_digest() -> None:
    # sha256sum of "orders" begins with these two words
    assert start_and_shift("orders", 7) == (0x1C168ADB00D208E4 % 7, 0x2F93314529F1FA9C % 7)


@pytest.mark.parametrize("strategy", PLACING)
def test_a_request_that_cannot_be_met_is_refused(strategy: str) -> None:
    with pytest.raises(TooFewBrokersError, match="replication factor 4 on 3 live broker"):
        place(strategy, request(1, 4))
    with pytest.raises(MixedRacksError, match="others have a rack, but not broker 2"):
        place(strategy, request(1, 1, racks={1: "a", 2: None}))
    with pytest.raises(BadPartitionCountError):
        place(strategy, request(0, 1))
    with pytest.raises(BadPartitionCountError):
        place(strategy, request(3, 3, existing=round_robin(3)))
    with pytest.raises(TooFewBrokersError):
        place(strategy, request(1, 1, racks={}))


def test_the_table_holds_every_placement() -> None:
    assert set(PLACEMENTS) == set(PLACING)


@st.composite
def clusters(draw: st.DrawFn) -> dict[int, str | None]:
    brokers = draw(st.lists(st.integers(0, 50), min_size=1, max_size=12, unique=True))
    if draw(st.booleans()):
        return dict.fromkeys(brokers)
    return {broker: draw(st.sampled_from("abcd")) for broker in brokers}


@st.composite
def even_clusters(draw: st.DrawFn) -> dict[int, str | None]:
    """Racks of one size."""
    racks, size = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    brokers = draw(st.permutations(range(racks * size)))
    return {broker: f"rack-{position % racks}" for position, broker in enumerate(brokers)}


@st.composite
def loads(draw: st.DrawFn) -> Load:
    counts = st.dictionaries(st.integers(0, 50), st.integers(0, 30), max_size=12)
    return Load(replicas=draw(counts), leaders=draw(counts))


@st.composite
def requests(draw: st.DrawFn, racks: st.SearchStrategy[dict[int, str | None]] | None = None) -> PlacementRequest:
    """Creations and expansions; rows that are there may stand on brokers that are gone."""
    live = draw(clusters() if racks is None else racks)
    size = draw(st.integers(1, min(4, len(live))))
    anyone = st.lists(st.sampled_from([*live, *range(90, 95)]), min_size=size, max_size=size, unique=True)
    existing = draw(st.lists(anyone, max_size=5)) if racks is None else []
    return PlacementRequest(
        topic=draw(st.text("abc", min_size=1)),
        partitions=len(existing) + draw(st.integers(1, 25)),
        replication_factor=size,
        racks=live,
        existing={partition: tuple(row) for partition, row in enumerate(existing)},
        load=draw(loads()),
    )


def apart(held: Mapping[int, int], racks: Racks) -> int:
    counts = [held.get(broker, 0) for broker in racks]
    return max(counts) - min(counts)


@given(strategy=st.sampled_from(PLACING), asked=requests())
def test_rows_are_distinct_live_brokers_on_as_many_racks_as_can_be(strategy: str, asked: PlacementRequest) -> None:
    names = {rack for rack in asked.racks.values() if rack is not None}
    for row in place(strategy, asked).values():
        assert len(set(row)) == len(row) == asked.replication_factor
        assert set(row) <= asked.racks.keys()
        assert not names or len({asked.racks[broker] for broker in row}) == min(len(names), len(row))


@given(strategy=st.sampled_from(PLACING), asked=requests())
def test_only_new_partitions_are_placed(strategy: str, asked: PlacementRequest) -> None:
    assert list(place(strategy, asked)) == list(range(len(asked.existing), asked.partitions))


@given(strategy=st.sampled_from(PLACING), asked=requests(even_clusters()))
def test_leaders_of_a_new_topic_are_never_more_than_one_apart_on_an_even_cluster(
    strategy: str, asked: PlacementRequest
) -> None:
    assert apart(Load.of([place(strategy, asked)]).leaders, asked.racks) <= 1


@given(asked=requests(even_clusters()))
def test_replicas_of_a_new_balanced_topic_are_never_more_than_one_apart_there(asked: PlacementRequest) -> None:
    assert apart(Load.of([place("balanced", asked)]).replicas, asked.racks) <= 1


@given(asked=requests(clusters()))
def test_leaders_of_a_new_balanced_topic_are_so_on_every_cluster(asked: PlacementRequest) -> None:
    assert apart(Load.of([place("balanced", asked)]).leaders, asked.racks) <= 1


@given(strategy=st.sampled_from(PLACING), asked=requests(), dice=st.randoms(use_true_random=False))
def test_the_order_in_which_things_are_listed_does_not_matter(
    strategy: str, asked: PlacementRequest, dice: Random
) -> None:
    def shuffled(listed: Mapping[int, Held]) -> dict[int, Held]:
        pairs = list(listed.items())
        dice.shuffle(pairs)
        return dict(pairs)

    load = Load(replicas=shuffled(asked.load.replicas), leaders=shuffled(asked.load.leaders))
    other = PlacementRequest(
        topic=asked.topic,
        partitions=asked.partitions,
        replication_factor=asked.replication_factor,
        racks=shuffled(asked.racks),
        existing=shuffled(asked.existing),
        load=load,
    )
    assert place(strategy, other) == place(strategy, asked)


@given(
    rows=st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True), min_size=1, max_size=6),
    topic=st.dictionaries(st.integers(1, 5), st.integers(0, 3)),
    others=st.dictionaries(st.integers(1, 5), st.integers(0, 9)),
)
def test_no_choice_of_leaders_is_more_even_for_the_topic_and_then_for_the_cluster(
    rows: list[list[int]], topic: dict[int, int], others: dict[int, int]
) -> None:
    before, elsewhere = Counter(topic), Counter(topic) + Counter(others)

    def unevenness(leaders: tuple[int, ...]) -> tuple[int, int]:
        of_topic, of_cluster = before + Counter(leaders), elsewhere + Counter(leaders)
        return sum(n**2 for n in of_topic.values()), sum(n**2 for n in of_cluster.values())

    given_rows = {partition: tuple(row) for partition, row in enumerate(rows)}
    found = spread_leaders(given_rows, topic=Load(leaders=before), cluster=Load(leaders=elsewhere))
    assert {p: set(row) for p, row in found.items()} == {p: set(row) for p, row in given_rows.items()}
    assert unevenness(tuple(found[p][0] for p in found)) == min(unevenness(choice) for choice in product(*rows))
